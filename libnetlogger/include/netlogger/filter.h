/*
 * Filters: expressions that select records.
 *
 * All programs, collectors and subscriptions select records with the same expression language:
 *
 *   NL.EVNT == WriteData && SEND.SZ > 65536 || PROG ~ "dpss*"
 *
 * A test consists of a field name, an operator and a value:
 *
 *   ==  (or =)  !=  <  <=  >  >=     comparison
 *   ~  !~                            the whole value matches, or does not match, a shell pattern with * ? [a-z] [!a-z]
 *   =~                               the value contains a match of a POSIX extended regular expression
 *   in (a, b, c)    not in (a, b)    the value equals a value in the list, or no value in the list
 *   has FIELD                        the field exists
 *
 * Tests are combined with !, && and || (or not, and, or), in this order of precedence, and with parentheses. ! and not
 * apply to a whole test: !A == 1 is !(A == 1). All words that are operators may be in upper case.
 *
 * Fields. Names are case-sensitive. A standard field has the same names in records of all formats: DATE or ts, HOST or
 * host, PROG or prog, LVL or level, NL.EVNT or event. If a name repeats, the test uses the first field. The left side
 * of an operator is always a field, the right side always a value.
 *
 * A test of a missing field is false, even with !=, !~ and not in: A != 1 means that A exists and is not 1. !(A == 1)
 * is true if A is missing.
 *
 * Values. A value is a word of letters, digits, non-ASCII bytes and _ . - + : / * ? [ ] @ %, or text in single or
 * double quotes with the escapes of ULM: \" \\ \n \t \r \xHH. A backslash before another character stands for itself,
 * so the regular expression "\." matches a dot.
 *
 *   Numbers  If the word and the value of the field are decimal numbers, the comparison is numeric and exact: 1e3 is
 *            equal to 1000 and 1000.0; 2^53 + 1 is not equal to 2^53. Otherwise the comparison is by bytes: SIZE > 9 is
 *            true for SIZE=abc. A value in quotes is always compared by bytes: ID == "007".
 *   Times    The time of a record is compared with a time in a form of time.h: ts >= 2012-03-14T14:04,
 *            DATE < 20000330112320.5. Eight digits alone are an error, because they look like a date but would mean
 *            seconds since 1970. Patterns apply to the text in ULM (DATE) or BP (ts): DATE ~ 20000330*.
 *   Levels   Levels are compared in the order of level.h: LVL <= Warning is true for Emergency, Alert, Error and
 *            Warning. Names are those of ULM or BP in upper or lower case, so level == Info is true for LVL=Usage. For
 *            a level with another name, == and != compare the text, and the other comparisons are false.
 *
 * Limits. The constants below limit the size, the nesting depth, the number of tests and the size of patterns of an
 * expression, and thereby the cost of nl_filter_parse. Patterns are automata that never backtrack, so the cost per byte
 * of the field depends only on the size of the pattern. The cost of a match is at most proportional to the size of the
 * expression multiplied by the size of the record. netlogd also limits the cost per record.
 *
 * Any number of threads may use a filter at the same time, because matching does not change it.
 */
#ifndef NETLOGGER_FILTER_H
#define NETLOGGER_FILTER_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

NL_BEGIN_DECLS

#define NL_FILTER_SIZE_MAX 4096 /* maximum size of an expression in bytes */
#define NL_FILTER_DEPTH_MAX 32  /* maximum nesting depth of parentheses */
#define NL_FILTER_TESTS_MAX 256 /* maximum number of tests in an expression */
/* Maximum size of one pattern: the number of bytes and sets of bytes after repetitions are expanded. */
#define NL_FILTER_PATTERN_MAX 128
/* Maximum size of all patterns of an expression together, counted in the same way. */
#define NL_FILTER_PATTERNS_MAX 256

typedef struct nl_filter nl_filter;

/*
 * Compiles an expression. Returns a filter, which the caller frees with nl_filter_free, or NULL if the expression is
 * invalid or exceeds a limit. In this case, nl_error_message() has the column (in bytes, beginning with 1) and
 * describes what was expected there.
 */
NL_API nl_filter *nl_filter_parse(const char *text);

/* Frees a filter that no thread uses. Does nothing if filter is NULL. */
NL_API void nl_filter_free(nl_filter *filter);

/*
 * Returns whether a record matches. A NULL filter matches all records. The function takes no lock, allocates no memory
 * and never fails. Thread-safe.
 */
NL_API bool nl_filter_matches(const nl_filter *filter, const nl_record *record);

NL_END_DECLS
#endif
