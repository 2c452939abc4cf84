/* Parses the parts of a line that strace prints. Strings point into the line. Any thread may call these functions. */
#ifndef NETLOGGER_CONVERT_STRACE_LINE_H
#define NETLOGGER_CONVERT_STRACE_LINE_H

#include "convert/lines.h"

typedef struct strace_line {
    uint32_t tid; /* 0 if the line has no thread number */
    nl_string comm;
    nl_string time;
    bool is_clock; /* time is a time of day */
    nl_string rest;
} strace_line;

/* Reads the beginning of a line, which has the thread and the time. Returns false if the line has no time. */
bool strace_line_head(nl_string text, strace_line *l);

/* Reads the name of a call and its opening parenthesis. */
bool strace_line_name(nl_string *text, nl_string *name);

/* Reads up to the next blank or '<'. */
nl_string strace_line_word(nl_string *text);

/* The outcome of a call, from the text after "= ". */
typedef struct strace_outcome {
    nl_string value, path, name, error, info, duration;
    int64_t duration_ns;
    bool has_duration;
} strace_outcome;

/* Splits the text after the opening parenthesis into arguments and outcome. Returns false if there is no outcome. */
bool strace_line_split(nl_string text, nl_string *arguments, strace_outcome *o);

bool strace_outcome_is_failure(const strace_outcome *o);

/* Converts digits to a number. Returns false if the number is not below `limit`. */
bool strace_number_below(nl_string digits, uint64_t limit, uint64_t *number);

/* Returns the digits after the point as nanoseconds. */
int64_t strace_fraction_ns(nl_string text);

#endif
