/*
 * Matches bytes with shell globs and POSIX extended regular expressions, which may come from untrusted users.
 *
 * Both kinds of patterns are compiled to a position automaton (V. M. Glushkov, "The Abstract Theory of Automata",
 * 1961). A position is a part of the pattern that accepts one byte. Matching keeps the set of reachable positions as
 * bits, and looks up the followers of several positions at once. The cost of each byte of text depends only on the
 * number of positions, and is 2 to 26 steps of about one nanosecond. Unlike regexec(3), matching does not backtrack,
 * recurse, allocate or lock.
 *
 * Compiling reads the pattern once and copies positions for repetitions, so the size of the pattern and the number of
 * positions limit the cost of compiling. The start and the end of the text are symbols, which ^ and $ accept. A match
 * may begin anywhere in the text.
 */
#ifndef NETLOGGER_FILTER_PATTERN_H
#define NETLOGGER_FILTER_PATTERN_H

#include <netlogger.h>

typedef enum nl_pattern_kind { NL_PATTERN_GLOB, NL_PATTERN_REGEX } nl_pattern_kind;

typedef struct nl_pattern nl_pattern;

enum { NL_PATTERN_POSITIONS_MAX = NL_FILTER_PATTERN_MAX };

/*
 * Compiles text. Returns NULL and sets the error if the pattern is invalid, needs more than `limit` positions (at most
 * NL_PATTERN_POSITIONS_MAX), or memory runs out. The pattern does not refer to text. The caller frees the pattern.
 */
nl_pattern *nl_pattern_compile(nl_string text, nl_pattern_kind kind, size_t limit);
void nl_pattern_free(nl_pattern *pattern); /* NULL is allowed */

size_t nl_pattern_positions(const nl_pattern *pattern);

/*
 * Sets *matches to whether text matches, and subtracts the cost from *steps. Returns NL_OK, or NL_FAILED if *steps is
 * too small; *matches is then undefined. Any thread may call this function.
 */
nl_status nl_pattern_match(const nl_pattern *pattern, nl_string text, uint64_t *steps, bool *matches);

#endif
