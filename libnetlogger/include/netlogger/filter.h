/*
 * Filters: which records are meant.
 *
 * Wherever records are chosen (nlsort --where, a collector's filters and subscriptions), it is with one small language
 * of expressions over their fields:
 *
 *   NL.EVNT == WriteData && SEND.SZ > 65536 || PROG ~ "dpss*"
 *
 * A test is a field's name, an operator and a value:
 *
 *   ==  (or =)  !=  <  <=  >  >=     compared as below
 *   ~  !~                            all of it matches, or does not, a shell's glob with * ? [a-z] [!a-z]
 *   =~                               a POSIX extended regular expression is found in it; ^ and $ are its ends
 *   in (a, b, c)    not in (a, b)    equal to one of them, to none of them
 *   has FIELD                        the field is there, whatever its value
 *
 * Tests are joined by ! && || or the words not and or, in that order of strength, and by parentheses. ! and not stand
 * before a whole test: !A == 1 is !(A == 1). The words may be written in capitals.
 *
 * Fields. A name is as in records, and case matters. A standard field goes by its ULM or its BP name, whatever format
 * the record came in: DATE or ts, HOST or host, PROG or prog, LVL or level, NL.EVNT or event. Of a name that repeats
 * the first field counts. Left of the operator always stands a field, right of it always a value.
 *
 * A field that is missing makes every test of it false, those with != !~ and not in too: A != 1 is "there is an A, and
 * it is not 1". !(A == 1) is true without an A.
 *
 * Values. A value is a word of letters, digits, bytes beyond ASCII and _ . - + : / * ? [ ] @ %, or text in quotes, "so"
 * or 'so', with ULM's escapes: \" \\ \n \t \r \xHH; any other backslash stands for itself (so that "\." is a regular
 * expression's dot).
 *
 *   Numbers  A word that is a decimal number is one. Where the field's value is one too (or text that is), they are
 *            compared as numbers, exactly: 1e3 is 1000 and 1000.0; 2^53 + 1 is not 2^53. Otherwise bytes are compared:
 *            SIZE > 9 is true of SIZE=abc, for 'a' comes after '9'. What is in quotes is text and is compared by bytes:
 *            ID == "007".
 *   Times    The time of a record is compared with a time in any form of time.h: ts >= 2012-03-14T14:04,
 *            DATE < 20000330112320.5. Eight bare digits are refused: they look like a day, but would be seconds.
 *            Patterns see the text that ULM (DATE) or BP (ts) would write: DATE ~ 20000330*.
 *   Levels   Are compared in the order of level.h, from Emergency, the least, to Debug: LVL <= Warning is true of
 *            Emergency, Alert, Error and Warning, and is what a log with the threshold Warning lets pass. Names are
 *            ULM's or BP's in any case, so level == Info is true of LVL=Usage. A level that has none of these names
 *            is neither before nor after any; == and != compare its text.
 *
 * Bounds. Expressions may come from strangers. Their size, nesting, number of tests and size of patterns are limited,
 * which bounds what compiling one costs. A pattern is an automaton that never backtracks: what a byte of the field
 * costs depends on the size of the pattern alone, and a match never costs more than the product of the sizes of
 * expression and record. netlogd limits the cost for each record.
 *
 * A compiled filter is never changed: any number of threads may use one at once.
 */
#ifndef NETLOGGER_FILTER_H
#define NETLOGGER_FILTER_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

NL_BEGIN_DECLS

#define NL_FILTER_SIZE_MAX 4096    /* bytes of an expression, and of its canonical form */
#define NL_FILTER_DEPTH_MAX 32     /* parentheses within parentheses */
#define NL_FILTER_TESTS_MAX 256    /* tests of an expression */
#define NL_FILTER_PATTERN_MAX 128  /* bytes or sets of bytes in a pattern, repetitions counted out */
#define NL_FILTER_PATTERNS_MAX 256 /* the same, in all its patterns together */

typedef struct nl_filter nl_filter;

/*
 * Compiles an expression, to be freed with nl_filter_free. NULL when it is none: nl_error_message() then names the
 * column (in bytes, from 1) and what was expected there.
 */
NL_API nl_filter *nl_filter_parse(const char *text);

/* NULL is allowed. Nobody may be using it. */
NL_API void nl_filter_free(nl_filter *filter);

/*
 * Whether a record is meant; NULL, no filter, means all. Takes no lock and no memory, fails never. Any thread, many at
 * once with one filter; the record is only read.
 */
NL_API bool nl_filter_matches(const nl_filter *filter, const nl_record *record);

NL_END_DECLS
#endif
