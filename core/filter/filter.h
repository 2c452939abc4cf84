/*
 * Additions to the public filter: its text, and matching with limited cost, for expressions from untrusted users. The
 * cost is counted in steps of about one nanosecond, and depends only on the expression and the record, not on the
 * machine.
 */
#ifndef NETLOGGER_FILTER_FILTER_H
#define NETLOGGER_FILTER_FILTER_H

#include <netlogger.h>

/* Maximum number of steps for matching one record. These steps take about 4 ms. */
#define NL_FILTER_STEPS_MAX (UINT64_C(1) << 22)

/*
 * Sets *matches to the result of nl_filter_matches, and subtracts the cost from *steps. Returns NL_OK, or NL_FAILED if
 * *steps is too small; *matches is then unchanged. A NULL filter matches every record. Does not allocate memory or take
 * locks. Any thread may call it, and threads may share a filter.
 */
nl_status nl_filter_match(const nl_filter *filter, const nl_record *record, uint64_t *steps, bool *matches);

/*
 * Returns the expression in canonical form, which compiles to an equal filter. The form has uniform blanks,
 * parentheses, operators, times, levels and quotes; the order of the tests is unchanged. The filter owns the text.
 */
const char *nl_filter_text(const nl_filter *filter);

/* A test of the form FIELD == VALUE or FIELD in (VALUE, ...). */
typedef struct nl_filter_equality {
    size_t test;    /* index of the test in the expression */
    nl_string name; /* field name, which is not the name of a standard field */
    size_t first_operand, operand_count;
} nl_filter_equality;

/*
 * Lists an expression's equality tests of fields that are not standard fields. Sets at most `capacity` elements,
 * and returns their number. The strings belong to the filter.
 */
size_t nl_filter_list_equalities(const nl_filter *filter, nl_filter_equality *list, size_t capacity);

size_t nl_filter_count_tests(const nl_filter *filter);

/* Returns the name of the field of a test, or an empty string for a standard field. The string belongs to the filter.
 */
nl_string nl_filter_test_field(const nl_filter *filter, size_t test);

/*
 * Returns whether a record may match although some tests cannot be true. impossible[i] is true if test i is false for
 * all records in question. Any other test may be true or false. Code that reads an index calls this function, because
 * an index shows which values do not occur.
 */
bool nl_filter_may_match(const nl_filter *filter, const bool *impossible);

#endif
