#include "config.h"

#include "base/error.h"
#include "base/memory.h"
#include "filter/pattern_build.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = NL_PATTERN_POSITIONS_MAX / 64 };

/* Matching looks up the followers of GROUP_SIZE positions at once, in a table with an entry for each set of them. */
enum { GROUP_SIZE = 4, GROUP_STATES = 1 << GROUP_SIZE, GROUPS_PER_WORD = 64 / GROUP_SIZE };

/* A compiled pattern. A set of positions is a row of words. Compilation resolves the start and end symbols. */
struct nl_pattern {
    size_t units; /* number of words in a row */
    size_t positions;
    size_t groups; /* number of groups of GROUP_SIZE positions */
    bool always;   /* matches every text */
    bool in_empty; /* matches the empty text */
    bool anchored; /* a match can begin only at the start of the text */
    /*
     * The first four are sets of positions. The pattern can begin at the positions in `first`. The positions in
     * `started` are reachable after the start symbol. The pattern matches when it reaches a position in `last` or, at
     * the end of the text, a position in `before_end`. `takes` has, for each byte, the positions that accept the byte.
     * `follow` has, for each group and each subset of its positions, the followers of the subset.
     */
    const uint64_t *first, *started, *last, *before_end, *takes, *follow;
    uint64_t rows[];
};

nl_symbols nl_symbols_others(const nl_symbols *set)
{
    nl_symbols others = {{~set->units[0], ~set->units[1], ~set->units[2], ~set->units[3]}};
    return others;
}

nl_fragment nl_build_nothing(void)
{
    return (nl_fragment){.nullable = true};
}

nl_fragment nl_build_any_of(nl_builder *builder, const nl_symbols *set)
{
    nl_fragment f = {.nullable = false};
    if (builder->count == builder->limit) {
        nl_build_fail(builder, NL_ERROR_LIMIT, "the pattern is too long, or its repetition counts are too large");
        return f;
    }
    size_t position = builder->count++;
    builder->takes[position] = *set;
    f.first.units[position / 64] |= UINT64_C(1) << position % 64;
    f.last = f.first;
    return f;
}

nl_fragment nl_build_symbol(nl_builder *builder, unsigned symbol)
{
    nl_symbols set = {{0}};
    nl_symbols_add(&set, symbol);
    return nl_build_any_of(builder, &set);
}

static void add_positions(nl_positions *a, const nl_positions *b)
{
    for (size_t i = 0; i < WORDS_MAX; i++)
        a->units[i] |= b->units[i];
}

static bool is_empty(const nl_positions *set)
{
    uint64_t any = 0;
    for (size_t i = 0; i < WORDS_MAX; i++)
        any |= set->units[i];
    return any == 0;
}

/* Makes every position in first a follower of every position in last. */
static void add_followers_of(nl_builder *builder, const nl_positions *last, const nl_positions *first)
{
    if (is_empty(first))
        return;
    for (size_t i = 0; i < WORDS_MAX; i++)
        for (uint64_t left = last->units[i]; left != 0; left &= left - 1)
            add_positions(&builder->follow[i * 64 + (size_t)__builtin_ctzll(left)], first);
}

nl_fragment nl_build_sequence(nl_builder *builder, const nl_fragment *a, const nl_fragment *b)
{
    nl_fragment f = {.nullable = a->nullable && b->nullable, .first = a->first, .last = b->last};
    add_followers_of(builder, &a->last, &b->first);
    if (a->nullable)
        add_positions(&f.first, &b->first);
    if (b->nullable)
        add_positions(&f.last, &a->last);
    return f;
}

nl_fragment nl_build_either(const nl_fragment *a, const nl_fragment *b)
{
    nl_fragment f = *a;
    f.nullable |= b->nullable;
    add_positions(&f.first, &b->first);
    add_positions(&f.last, &b->last);
    return f;
}

void nl_build_repeat(nl_builder *builder, const nl_fragment *f)
{
    add_followers_of(builder, &f->last, &f->first);
}

/* Returns a set with all positions increased by `by`. */
static nl_positions shift_positions(const nl_positions *set, size_t by)
{
    nl_positions shifted = {{0}};
    size_t units = by / 64, bits = by % 64;
    for (size_t i = units; i < WORDS_MAX; i++) {
        shifted.units[i] = set->units[i - units] << bits;
        if (bits > 0 && i > units)
            shifted.units[i] |= set->units[i - units - 1] >> (64 - bits);
    }
    return shifted;
}

static nl_positions positions_between(size_t start, size_t end)
{
    nl_positions set = {{0}};
    for (size_t i = start; i < end; i++)
        set.units[i / 64] |= UINT64_C(1) << i % 64;
    return set;
}

nl_fragment nl_build_copy(nl_builder *builder, const nl_fragment *original, size_t start, size_t end)
{
    size_t count = end - start, by = builder->count - start;
    if (count > builder->limit - builder->count) {
        nl_build_fail(builder, NL_ERROR_LIMIT, "the pattern is too long, or its repetition counts are too large");
        return nl_build_nothing();
    }
    nl_positions inside = positions_between(start, end);
    for (size_t i = start; i < end; i++) {
        nl_positions follow = builder->follow[i];
        for (size_t j = 0; j < WORDS_MAX; j++)
            follow.units[j] &= inside.units[j];
        builder->takes[i + by] = builder->takes[i];
        builder->follow[i + by] = shift_positions(&follow, by);
    }
    builder->count += count;
    return (nl_fragment){.nullable = original->nullable,
                         .first = shift_positions(&original->first, by),
                         .last = shift_positions(&original->last, by)};
}

static bool have_common(const nl_positions *a, const nl_positions *b)
{
    uint64_t both = 0;
    for (size_t i = 0; i < WORDS_MAX; i++)
        both |= a->units[i] & b->units[i];
    return both != 0;
}

static bool has_position(const nl_positions *set, size_t position)
{
    return set->units[position / 64] >> position % 64 & 1;
}

/* Adds to pending the positions of set that are in `among` and not in `reached`. */
static void add_pending(nl_positions *pending, const nl_positions *set, const nl_positions *among,
                        const nl_positions *reached)
{
    for (size_t i = 0; i < WORDS_MAX; i++)
        pending->units[i] |= set->units[i] & among->units[i] & ~reached->units[i];
}

/*
 * Returns the closure of `from` within `among`: the positions of `from` that are in `among`, and repeatedly their
 * followers that are in `among`. ^ and $ match no bytes, so several of them may follow each other.
 */
static nl_positions reach(const nl_builder *builder, const nl_positions *from, const nl_positions *among)
{
    nl_positions reached = {{0}}, pending = {{0}};
    add_pending(&pending, from, among, &reached);
    for (size_t word = 0; word < WORDS_MAX;) {
        if (pending.units[word] == 0) {
            word++;
            continue;
        }
        size_t position = word * 64 + (size_t)__builtin_ctzll(pending.units[word]);
        pending.units[word] &= pending.units[word] - 1;
        reached.units[word] |= UINT64_C(1) << position % 64;
        add_pending(&pending, &builder->follow[position], among, &reached);
        word = 0;
    }
    return reached;
}

static nl_positions positions_accepting(const nl_builder *builder, unsigned symbol)
{
    nl_positions set = {{0}};
    for (size_t i = 0; i < builder->count; i++)
        if (nl_symbols_have(&builder->takes[i], symbol))
            set.units[i / 64] |= UINT64_C(1) << i % 64;
    return set;
}

/* Describes how a pattern treats the start and the end of a text. */
typedef struct ends {
    nl_positions started, before_end;
    bool always, in_empty, anchored;
} ends;

static ends find_ends(const nl_builder *builder, const nl_fragment *whole)
{
    nl_positions start = positions_accepting(builder, NL_SYMBOL_START),
                 end = positions_accepting(builder, NL_SYMBOL_END), both = start;
    add_positions(&both, &end);
    ends e = {.started = reach(builder, &whole->first, &start), .anchored = true};
    nl_positions at_end = reach(builder, &whole->first, &end), in_empty = reach(builder, &whole->first, &both);
    e.always = whole->nullable || have_common(&e.started, &whole->last) || have_common(&at_end, &whole->last);
    e.in_empty = e.always || have_common(&in_empty, &whole->last);
    for (size_t i = 0; i < builder->count; i++) {
        nl_positions ended = reach(builder, &builder->follow[i], &end);
        if (have_common(&ended, &whole->last))
            e.before_end.units[i / 64] |= UINT64_C(1) << i % 64;
        e.anchored &= !has_position(&whole->first, i) || has_position(&both, i);
    }
    return e;
}

static uint64_t *put_row(uint64_t *row, const nl_positions *set, size_t units)
{
    memcpy(row, set->units, units * sizeof *row);
    return row + units;
}

/* Writes a table row for each subset of the positions in a group: the followers of these positions. */
static uint64_t *put_group(uint64_t *row, const nl_builder *builder, size_t group, size_t units)
{
    nl_positions follow[GROUP_STATES] = {{{0}}};
    for (unsigned state = 1; state < GROUP_STATES; state++) {
        size_t position = group * GROUP_SIZE + (size_t)__builtin_ctz(state);
        follow[state] = follow[state & (state - 1)];
        if (position < builder->count)
            add_positions(&follow[state], &builder->follow[position]);
    }
    for (unsigned state = 0; state < GROUP_STATES; state++)
        row = put_row(row, &follow[state], units);
    return row;
}

static nl_pattern *pattern_make(const nl_builder *builder, const nl_fragment *whole)
{
    size_t units = builder->count / 64 + (builder->count % 64 != 0);
    size_t groups = builder->count / GROUP_SIZE + (builder->count % GROUP_SIZE != 0);
    size_t rows = 4 + 256 + groups * GROUP_STATES;
    nl_pattern *p = nl_memory_check(calloc(1, sizeof *p + rows * units * sizeof(uint64_t)));
    if (p == NULL)
        return NULL;
    ends e = find_ends(builder, whole);
    *p = (nl_pattern){.units = units,
                      .positions = builder->count,
                      .groups = groups,
                      .always = e.always,
                      .in_empty = e.in_empty,
                      .anchored = e.anchored,
                      .first = p->rows,
                      .started = p->rows + units,
                      .last = p->rows + 2 * units,
                      .before_end = p->rows + 3 * units,
                      .takes = p->rows + 4 * units,
                      .follow = p->rows + (4 + 256) * units};
    uint64_t *row = put_row(p->rows, &whole->first, units);
    row = put_row(row, &e.started, units);
    row = put_row(row, &whole->last, units);
    row = put_row(row, &e.before_end, units);
    for (unsigned byte = 0; byte < 256; byte++) {
        nl_positions taking = positions_accepting(builder, byte);
        row = put_row(row, &taking, units);
    }
    for (size_t i = 0; i < groups; i++)
        row = put_group(row, builder, i, units);
    return p;
}

nl_pattern *nl_pattern_compile(nl_string text, nl_pattern_kind kind, size_t limit)
{
    nl_builder *builder = nl_memory_check(calloc(1, sizeof *builder));
    if (builder == NULL)
        return NULL;
    builder->limit = limit < NL_PATTERN_POSITIONS_MAX ? limit : NL_PATTERN_POSITIONS_MAX;
    nl_fragment whole = kind == NL_PATTERN_GLOB ? nl_glob_read(builder, text) : nl_regex_read(builder, text);
    nl_pattern *pattern = builder->failed ? NULL : pattern_make(builder, &whole);
    free(builder);
    return pattern;
}

void nl_pattern_free(nl_pattern *pattern)
{
    free(pattern);
}

size_t nl_pattern_positions(const nl_pattern *pattern)
{
    return pattern->positions;
}

/* Adds the followers of `now` to `next`. */
static inline void add_followers(const nl_pattern *p, const size_t units, const uint64_t *now, uint64_t *next)
{
    const uint64_t *rows = p->follow;
    for (size_t group = 0; group < p->groups; group++, rows += GROUP_STATES * units) {
        uint64_t state = now[group / GROUPS_PER_WORD] >> group % GROUPS_PER_WORD * GROUP_SIZE & (GROUP_STATES - 1);
        for (size_t j = 0; j < units; j++)
            next[j] |= rows[state * units + j];
    }
}

/* Reads one byte. Returns whether the pattern matches. *any is nonzero if the text so far has reached a position of the
 * pattern; the function updates it. */
static inline bool step(const nl_pattern *p, const size_t units, uint64_t now[WORDS_MAX], unsigned char byte,
                        uint64_t *any)
{
    uint64_t next[WORDS_MAX];
    for (size_t i = 0; i < units; i++)
        next[i] = p->first[i];
    if (*any != 0)
        add_followers(p, units, now, next);
    uint64_t found = 0;
    *any = 0;
    for (size_t i = 0; i < units; i++) {
        now[i] = next[i] & p->takes[byte * units + i];
        *any |= now[i];
        found |= now[i] & p->last[i];
    }
    return found != 0;
}

/* Returns whether the text matches. Sets *end to the byte offset at which the search ended. */
static inline bool pattern_find(const nl_pattern *p, const size_t units, nl_string text, size_t *end)
{
    uint64_t now[WORDS_MAX], any = 0, found = 0;
    for (size_t i = 0; i < units; i++)
        any |= now[i] = p->started[i];
    for (*end = 0; *end < text.size && (any != 0 || !p->anchored); ++*end)
        if (step(p, units, now, (unsigned char)text.data[*end], &any))
            return true;
    for (size_t i = 0; i < units; i++)
        found |= now[i] & p->before_end[i];
    return found != 0;
}

/* Returns the maximum cost of matching one byte of text, in steps. */
static uint64_t byte_cost(const nl_pattern *pattern)
{
    return 2 + pattern->groups * 3 / 4;
}

nl_status nl_pattern_match(const nl_pattern *pattern, nl_string text, uint64_t *steps, bool *matches)
{
    uint64_t cost = byte_cost(pattern), affordable = *steps / cost;
    *matches = pattern->in_empty;
    if (pattern->always || text.size == 0)
        return NL_OK;
    bool whole = text.size <= affordable;
    nl_string part = {text.data, whole ? text.size : (size_t)affordable};
    size_t end;
    /* A constant number of words lets the compiler keep the sets in registers. */
    _Static_assert(WORDS_MAX == 2, "the next statement has one call for each value");
    *matches = pattern->units == 1 ? pattern_find(pattern, 1, part, &end) : pattern_find(pattern, 2, part, &end);
    *steps -= end * cost;
    /*
     * If only a part of the text was searched, $ may have matched at the end of the part, although the text continues.
     */
    return whole || end < part.size ? NL_OK : NL_FAILED;
}
