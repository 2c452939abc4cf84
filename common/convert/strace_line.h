/* A line of strace's, taken to pieces. */
#ifndef NETLOGGER_CONVERT_STRACE_LINE_H
#define NETLOGGER_CONVERT_STRACE_LINE_H

#include "convert/lines.h"

/* A line's head, and the rest. */
typedef struct strace_line {
    uint32_t tid; /* 0: none */
    nl_string comm;
    nl_string time; /* as it is written */
    bool is_clock;  /* it is a time of day */
    nl_string rest;
} strace_line;

/* Takes the head off a line. False when it has none, or no time. */
bool strace_line_head(nl_string text, strace_line *l);

/* Takes the name of a call, with its parenthesis. */
bool strace_line_name(nl_string *text, nl_string *name);

/* Takes what comes before the next blank or '<'. */
nl_string strace_line_word(nl_string *text);

/* What came back of a call, from what stands behind its "= ". */
typedef struct strace_outcome {
    nl_string value, path, name, error, info, duration;
    int64_t duration_ns;
    bool has_duration;
} strace_outcome;

/* Splits what follows a name's parenthesis into arguments and outcome. False when there is no outcome. */
bool strace_line_split(nl_string text, nl_string *arguments, strace_outcome *o);

bool strace_outcome_is_failure(const strace_outcome *o);

/* Digits as a number below limit. False when it is none. */
bool strace_number_below(nl_string digits, uint64_t limit, uint64_t *number);

/* The digits after the point, as nanoseconds. */
int64_t strace_fraction_ns(nl_string text);

#endif
