/*
 * Patterns of bytes, shell globs and POSIX extended regular expressions, that strangers may write.
 *
 * Both become one automaton of positions (V. M. Glushkov, "The Abstract Theory of Automata", 1961): a position is a
 * place of the pattern that takes one byte, and matching keeps the set of positions where it may be. A byte of text
 * costs at most one step for each position, whatever the pattern: there is no backtracking, no recursion, no memory
 * taken and no lock. That is why regexec(3) is not used, which does all of that.
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

/* Whether text matches. Any thread. */
bool nl_pattern_matches(const nl_pattern *pattern, nl_string text);

#endif
