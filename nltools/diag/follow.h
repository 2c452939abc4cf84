/* The options --follow, --dest and --run of nldiag, and the function that reads a running program's records and prints
 * alerts. */
#ifndef NLDIAG_FOLLOW_H
#define NLDIAG_FOLLOW_H

#include "stat/subject.h"

typedef struct follow_options {
    bool follow;
    const char *destination, *command; /* NULL: not given */
} follow_options;

extern const nl_option follow_option_rows[];

/* Exits with a message if the options cannot be combined, or do not match the operands. */
void follow_options_check(const follow_options *o, int operand_count);

/* Reads a source until a signal arrives, or until the end of standard input. Returns the exit status. */
int follow_source(const follow_options *o, subject_options *subject, const char *source, bool json);

#endif
