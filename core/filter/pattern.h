/*
 * Patterns of bytes, shell globs and POSIX extended regular expressions, that strangers may write.
 *
 * Both become one automaton of positions (V. M. Glushkov, "The Abstract Theory of Automata", 1961). A position is a
 * place of the pattern that takes one byte. Matching keeps the set of positions that the text so far can have reached,
 * as bits, and finds the followers of several positions with one look-up. The cost of a byte of text depends only on
 * the number of positions: 2 to 26 steps of about a nanosecond. Matching does
 * not backtrack, recurse, allocate memory or take a lock. That is why regexec(3), which does all of that, is not used.
 *
 * Compiling reads the text once and copies positions for repetitions, so that its cost is bounded by the size of the
 * text and the number of positions.
 *
 * The start and the end of the text are symbols of their own, which ^ and $ take. A pattern matches where it is found
 * anywhere in those.
 */
#ifndef NETLOGGER_FILTER_PATTERN_H
#define NETLOGGER_FILTER_PATTERN_H

#include <netlogger.h>

typedef enum nl_pattern_kind { NL_PATTERN_GLOB, NL_PATTERN_REGEX } nl_pattern_kind;

typedef struct nl_pattern nl_pattern;

enum { NL_PATTERN_POSITIONS_MAX = NL_FILTER_PATTERN_MAX };

/*
 * Compiles text; freed with nl_pattern_free. NULL with the reason in nl_error_message() when it is no pattern of that
 * kind, or has more than limit positions (at most NL_PATTERN_POSITIONS_MAX).
 */
nl_pattern *nl_pattern_compile(nl_string text, nl_pattern_kind kind, size_t limit);
void nl_pattern_free(nl_pattern *pattern); /* NULL is allowed */

/* How many positions it has. */
size_t nl_pattern_positions(const nl_pattern *pattern);

/*
 * Sets *matches to whether text matches, and takes what that cost from *steps. NL_FAILED when *steps did not suffice;
 * *matches is then not known. Any thread.
 */
nl_status nl_pattern_match(const nl_pattern *pattern, nl_string text, uint64_t *steps, bool *matches);

#endif
