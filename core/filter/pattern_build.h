/*
 * What the two spellings of a pattern are put together from: fragments of an automaton.
 *
 * A fragment is a part of a pattern: where it can begin, where it can end, whether it can be nothing at all. Which
 * position may follow which is the builder's.
 */
#ifndef NETLOGGER_FILTER_PATTERN_BUILD_H
#define NETLOGGER_FILTER_PATTERN_BUILD_H

#include "filter/pattern.h"

#define NL_PATTERN_TOO_LONG "it is too long or repeats too much"

enum { NL_SYMBOL_START = 256, NL_SYMBOL_END, NL_SYMBOL_COUNT };

/* A set of symbols, or of positions. */
typedef struct nl_symbols {
    uint64_t units[NL_SYMBOL_COUNT / 64 + 1];
} nl_symbols;

typedef struct nl_positions {
    uint64_t units[NL_PATTERN_POSITIONS_MAX / 64];
} nl_positions;

typedef struct nl_fragment {
    bool nullable;
    nl_positions first, last;
} nl_fragment;

typedef struct nl_builder {
    size_t count, limit;
    const char *problem; /* it failed; NULL while all is well */
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

/* All bytes that are not in set; never the start or the end. */
nl_symbols nl_symbols_others(const nl_symbols *set);

/* Nothing at all; one position, taking one symbol or any of several. Beyond the limit, builder->why is set. */
nl_fragment nl_build_nothing(void);
nl_fragment nl_build_symbol(nl_builder *builder, unsigned symbol);
nl_fragment nl_build_any_of(nl_builder *builder, const nl_symbols *set);

/*
 * A copy of a fragment that is made of the positions [start, end), which take what the originals take. Links to
 * positions outside are left out.
 */
nl_fragment nl_build_copy(nl_builder *builder, const nl_fragment *original, size_t start, size_t end);

/* One after the other, one or the other, one or more of it. */
nl_fragment nl_build_sequence(nl_builder *builder, const nl_fragment *a, const nl_fragment *b);
nl_fragment nl_build_either(const nl_fragment *a, const nl_fragment *b);
void nl_build_repeat(nl_builder *builder, const nl_fragment *f);

/*
 * Reads a bracket expression, *at behind its '[', and moves *at behind its ']'. negation: the characters that negate
 * when they come first. escapes: a backslash takes away a byte's meaning. NULL, or what is wrong with it.
 */
const char *nl_bracket_read(const char **at, const char *end, const char *negation, bool escapes, nl_symbols *set);

/* The whole of a pattern. What is wrong with it is in builder->why. */
nl_fragment nl_glob_read(nl_builder *builder, nl_string text);
nl_fragment nl_regex_read(nl_builder *builder, nl_string text);

#endif
