#include "config.h"

#include "base/error.h"
#include "filter/pattern_build.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = NL_PATTERN_POSITIONS_MAX / 64 };

/* Sets of positions are rows of words. The start and the end of the text are dealt with when it is made. */
struct nl_pattern {
    size_t words; /* of a row */
    size_t positions;
    bool always;   /* it is found in all texts */
    bool in_empty; /* it is found in the empty text */
    bool anchored; /* it begins at the start or nowhere */
    /* Where it may begin, where it is when the start has been taken, where it is found, where it is found at the end;
     * who takes a byte, by byte; who follows a position, by position. */
    const uint64_t *first, *started, *last, *before_end, *takes, *follow;
    uint64_t rows[];
};

nl_symbols nl_symbols_others(const nl_symbols *set)
{
    nl_symbols others = {{~set->words[0], ~set->words[1], ~set->words[2], ~set->words[3]}};
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
        builder->why = "it is too long or repeats too much";
        return f;
    }
    size_t position = builder->count++;
    builder->takes[position] = *set;
    f.first.words[position / 64] |= UINT64_C(1) << position % 64;
    f.last = f.first;
    return f;
}

nl_fragment nl_build_symbol(nl_builder *builder, unsigned symbol)
{
    nl_symbols set = {{0}};
    nl_symbols_add(&set, symbol);
    return nl_build_any_of(builder, &set);
}

static void unite(nl_positions *a, const nl_positions *b)
{
    for (size_t i = 0; i < WORDS_MAX; i++)
        a->words[i] |= b->words[i];
}

/* After each of last any of first may come. */
static void let_follow(nl_builder *builder, const nl_positions *last, const nl_positions *first)
{
    for (size_t i = 0; i < WORDS_MAX; i++)
        for (uint64_t left = last->words[i]; left != 0; left &= left - 1)
            unite(&builder->follow[i * 64 + (size_t)__builtin_ctzll(left)], first);
}

nl_fragment nl_build_sequence(nl_builder *builder, const nl_fragment *a, const nl_fragment *b)
{
    nl_fragment f = {.nullable = a->nullable && b->nullable, .first = a->first, .last = b->last};
    let_follow(builder, &a->last, &b->first);
    if (a->nullable)
        unite(&f.first, &b->first);
    if (b->nullable)
        unite(&f.last, &a->last);
    return f;
}

nl_fragment nl_build_either(const nl_fragment *a, const nl_fragment *b)
{
    nl_fragment f = *a;
    f.nullable |= b->nullable;
    unite(&f.first, &b->first);
    unite(&f.last, &b->last);
    return f;
}

void nl_build_repeat(nl_builder *builder, const nl_fragment *f)
{
    let_follow(builder, &f->last, &f->first);
}

static bool meet(const nl_positions *a, const nl_positions *b)
{
    uint64_t both = 0;
    for (size_t i = 0; i < WORDS_MAX; i++)
        both |= a->words[i] & b->words[i];
    return both != 0;
}

static bool has(const nl_positions *set, size_t position)
{
    return set->words[position / 64] >> position % 64 & 1;
}

/* Those of from, and of what follows them, and so on, that are in among: ^ and $ take no bytes, several may follow. */
static nl_positions reach(const nl_builder *builder, const nl_positions *from, const nl_positions *among)
{
    nl_positions reached = {{0}}, more = *from;
    for (bool grown = true; grown;) {
        grown = false;
        for (size_t i = 0; i < builder->count; i++)
            if (has(&more, i) && has(among, i) && !has(&reached, i)) {
                reached.words[i / 64] |= UINT64_C(1) << i % 64;
                unite(&more, &builder->follow[i]);
                grown = true;
            }
    }
    return reached;
}

static nl_positions takers(const nl_builder *builder, unsigned symbol)
{
    nl_positions set = {{0}};
    for (size_t i = 0; i < builder->count; i++)
        if (nl_symbols_have(&builder->takes[i], symbol))
            set.words[i / 64] |= UINT64_C(1) << i % 64;
    return set;
}

/* What is in a pattern beside what its rows say of bytes. */
typedef struct ends {
    nl_positions started, before_end;
    bool always, in_empty, anchored;
} ends;

static ends find_ends(const nl_builder *builder, const nl_fragment *whole)
{
    nl_positions start = takers(builder, NL_SYMBOL_START), end = takers(builder, NL_SYMBOL_END), both = start;
    unite(&both, &end);
    ends e = {.started = reach(builder, &whole->first, &start), .anchored = true};
    nl_positions at_end = reach(builder, &whole->first, &end), in_empty = reach(builder, &whole->first, &both);
    e.always = whole->nullable || meet(&e.started, &whole->last) || meet(&at_end, &whole->last);
    e.in_empty = e.always || meet(&in_empty, &whole->last);
    for (size_t i = 0; i < builder->count; i++) {
        nl_positions ended = reach(builder, &builder->follow[i], &end);
        if (meet(&ended, &whole->last))
            e.before_end.words[i / 64] |= UINT64_C(1) << i % 64;
        e.anchored &= !has(&whole->first, i) || has(&both, i);
    }
    return e;
}

static uint64_t *put_row(uint64_t *row, const nl_positions *set, size_t words)
{
    memcpy(row, set->words, words * sizeof *row);
    return row + words;
}

static nl_pattern *make(const nl_builder *builder, const nl_fragment *whole)
{
    size_t words = builder->count / 64 + (builder->count % 64 != 0), rows = 4 + 256 + builder->count;
    nl_pattern *p = calloc(1, sizeof *p + rows * words * sizeof(uint64_t));
    NL_REQUIRE(p != NULL, "out of memory");
    ends e = find_ends(builder, whole);
    *p = (nl_pattern){.words = words,
                      .positions = builder->count,
                      .always = e.always,
                      .in_empty = e.in_empty,
                      .anchored = e.anchored,
                      .first = p->rows,
                      .started = p->rows + words,
                      .last = p->rows + 2 * words,
                      .before_end = p->rows + 3 * words,
                      .takes = p->rows + 4 * words,
                      .follow = p->rows + (4 + 256) * words};
    uint64_t *row = put_row(p->rows, &whole->first, words);
    row = put_row(row, &e.started, words);
    row = put_row(row, &whole->last, words);
    row = put_row(row, &e.before_end, words);
    for (unsigned byte = 0; byte < 256; byte++) {
        nl_positions taking = takers(builder, byte);
        row = put_row(row, &taking, words);
    }
    for (size_t i = 0; i < builder->count; i++)
        row = put_row(row, &builder->follow[i], words);
    return p;
}

nl_pattern *nl_pattern_compile(nl_string text, nl_pattern_kind kind, size_t limit)
{
    nl_builder *builder = calloc(1, sizeof *builder);
    NL_REQUIRE(builder != NULL, "out of memory");
    builder->limit = limit < NL_PATTERN_POSITIONS_MAX ? limit : NL_PATTERN_POSITIONS_MAX;
    nl_fragment whole = kind == NL_PATTERN_GLOB ? nl_glob_read(builder, text) : nl_regex_read(builder, text);
    nl_pattern *pattern = NULL;
    if (builder->why == NULL)
        pattern = make(builder, &whole);
    else
        nl_error_set("%s", builder->why);
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

/* Takes one byte. True when the pattern is found. */
static inline bool step(const nl_pattern *p, const size_t words, uint64_t now[WORDS_MAX], unsigned char byte)
{
    uint64_t next[WORDS_MAX];
    for (size_t i = 0; i < words; i++)
        next[i] = p->first[i];
    for (size_t i = 0; i < words; i++)
        for (uint64_t left = now[i]; left != 0; left &= left - 1) {
            const uint64_t *follow = p->follow + (i * 64 + (size_t)__builtin_ctzll(left)) * words;
            for (size_t j = 0; j < words; j++)
                next[j] |= follow[j];
        }
    uint64_t found = 0;
    for (size_t i = 0; i < words; i++) {
        now[i] = next[i] & p->takes[byte * words + i];
        found |= now[i] & p->last[i];
    }
    return found != 0;
}

static inline bool find(const nl_pattern *p, const size_t words, nl_string text)
{
    uint64_t now[WORDS_MAX], any = 1;
    for (size_t i = 0; i < words; i++)
        now[i] = p->started[i];
    for (size_t i = 0; i < text.size && any != 0; i++) {
        if (step(p, words, now, (unsigned char)text.data[i]))
            return true;
        any = !p->anchored;
        for (size_t j = 0; j < words; j++)
            any |= now[j];
    }
    uint64_t found = 0;
    for (size_t i = 0; i < words; i++)
        found |= now[i] & p->before_end[i];
    return found != 0;
}

bool nl_pattern_matches(const nl_pattern *pattern, nl_string text)
{
    if (pattern->always || text.size == 0)
        return pattern->in_empty;
    /* Most patterns have few positions: for them the loops over words are none. */
    return pattern->words == 1 ? find(pattern, 1, text) : find(pattern, pattern->words, text);
}
