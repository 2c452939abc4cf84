/*
 * Builds patterns from fragments of an automaton. A fragment records the positions where it can begin and end, and
 * whether it can be empty. The builder stores the followers of each position.
 */
#ifndef NETLOGGER_FILTER_PATTERN_BUILD_H
#define NETLOGGER_FILTER_PATTERN_BUILD_H

#include "base/error.h"
#include "filter/pattern.h"

enum { NL_SYMBOL_START = 256, NL_SYMBOL_END, NL_SYMBOL_COUNT };

/* A set of symbols. A symbol is a byte, NL_SYMBOL_START or NL_SYMBOL_END. */
typedef struct nl_symbols {
    uint64_t units[NL_SYMBOL_COUNT / 64 + 1];
} nl_symbols;

/* A set of positions (pattern.h), one bit per position. */
typedef struct nl_positions {
    uint64_t units[NL_PATTERN_POSITIONS_MAX / 64];
} nl_positions;

typedef struct nl_fragment {
    bool nullable;
    nl_positions first, last;
} nl_fragment;

typedef struct nl_builder {
    size_t count, limit;
    bool failed; /* the thread's error has the reason */
    nl_symbols takes[NL_PATTERN_POSITIONS_MAX];
    nl_positions follow[NL_PATTERN_POSITIONS_MAX];
} nl_builder;

static inline void nl_symbols_add(nl_symbols *set, unsigned symbol)
{
    set->units[symbol / 64] |= UINT64_C(1) << symbol % 64;
}

static inline bool nl_symbols_have(const nl_symbols *set, unsigned symbol)
{
    return set->units[symbol / 64] >> symbol % 64 & 1;
}

/* Marks the builder as failed. On the first failure, also sets this thread's error. Returns false. */
static inline bool nl_build_fail(nl_builder *builder, nl_error_code code, const char *problem)
{
    if (!builder->failed)
        nl_error_set(code, "%s", problem);
    builder->failed = true;
    return false;
}

/* Returns the set of all bytes that are not in `set`. The result does not contain the start and end symbols. */
nl_symbols nl_symbols_others(const nl_symbols *set);

/* Returns a fragment that matches only the empty text and has no positions. */
nl_fragment nl_build_nothing(void);

/*
 * Return a new fragment with one position, which accepts a symbol or any symbol of a set. The builder fails if the
 * pattern would exceed its limit of positions.
 */
nl_fragment nl_build_symbol(nl_builder *builder, unsigned symbol);
nl_fragment nl_build_any_of(nl_builder *builder, const nl_symbols *set);

/*
 * Copies a fragment that consists of the positions [start, end) to new positions. Does not copy followers outside of
 * these positions. The builder fails if the pattern would exceed its limit of positions.
 */
nl_fragment nl_build_copy(nl_builder *builder, const nl_fragment *original, size_t start, size_t end);

/* Returns a fragment that matches `a` followed by `b`. */
nl_fragment nl_build_sequence(nl_builder *builder, const nl_fragment *a, const nl_fragment *b);

/* Returns a fragment that matches either `a` or `b`. */
nl_fragment nl_build_either(const nl_fragment *a, const nl_fragment *b);

/* Changes the followers of the fragment's positions, so that the fragment matches one or more repetitions. */
void nl_build_repeat(nl_builder *builder, const nl_fragment *f);

/*
 * Reads a bracket expression from *at, which is after its '[', and moves *at past its ']'. `negation` lists the
 * characters that negate the set if they are first. `escapes` means that a backslash makes the next byte literal.
 * Returns false and fails the builder if the expression is invalid.
 */
bool nl_bracket_read(nl_builder *builder, const char **at, const char *end, const char *negation, bool escapes,
                     nl_symbols *set);

/* Read a whole glob or regular expression. If it is invalid, the builder fails. */
nl_fragment nl_glob_read(nl_builder *builder, nl_string text);
nl_fragment nl_regex_read(nl_builder *builder, nl_string text);

#endif
