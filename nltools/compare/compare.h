/* The options --compare and --with of nldiag and nlstat, and the comparison that these options request. */
#ifndef NLTOOLS_COMPARE_H
#define NLTOOLS_COMPARE_H

#include "stat/subject.h"

#include <json-c/json.h>

typedef struct compare_options {
    bool compare;
    char **after; /* logs of --with; NULL-terminated; compare_options_finish frees it */
} compare_options;

extern const nl_option compare_option_rows[];

/* Exits with a message if the options and the operands do not match. */
void compare_options_check(const compare_options *o, int operand_count);
void compare_options_finish(compare_options *o);

/* Reads the logs and prints the comparison. Returns the exit status. With --with, `operands` are the logs recorded
 * before the change. Otherwise, `operands` are the two logs to compare. */
int compare_logs(const compare_options *o, subject_options *subject, char **operands, int operand_count, bool json);

#endif
