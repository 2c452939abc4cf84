/* Parses the parts of a line that strace prints. Strings point into the line. Any thread may call these functions. */
#ifndef NETLOGGER_CONVERT_STRACE_LINE_H
#define NETLOGGER_CONVERT_STRACE_LINE_H

#include "convert/lines.h"

typedef struct strace_line {
    uint32_t tid; /* 0 if the line has no thread number */
    nl_string comm;
    nl_string time;
    bool is_clock; /* `time` is a time of day, not a number of seconds */
    nl_string rest;
} strace_line;

/*
 * Reads the thread and the time at the beginning of a line. Sets l->rest to the text after them. Returns false if the
 * line has no time.
 */
bool strace_line_head(nl_string text, strace_line *l);

/*
 * Removes the name of a call and its opening parenthesis from the beginning of *text. Returns false if the text has
 * another form.
 */
bool strace_line_name(nl_string *text, nl_string *name);

/* Removes the first word of *text, and returns the word. A word ends before a blank or '<'. */
nl_string strace_line_word(nl_string *text);

/* The outcome of a call, from the text after "= ". */
typedef struct strace_outcome {
    nl_string value, path, name, error, info, duration;
    int64_t duration_ns;
    bool has_duration;
} strace_outcome;

/*
 * Splits the text after the opening parenthesis into arguments and outcome. Returns false if the text has no outcome.
 */
bool strace_line_split(nl_string text, nl_string *arguments, strace_outcome *o);

bool strace_outcome_is_failure(const strace_outcome *o);

/* Converts digits to a number. Returns false if there are no digits, or the number is not below `limit`. */
bool strace_number_below(nl_string digits, uint64_t limit, uint64_t *number);

/* Converts the digits after the decimal point of a number of seconds to nanoseconds. */
int64_t strace_fraction_ns(nl_string text);

#endif
