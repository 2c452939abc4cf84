/*
 * Command lines of the example programs, read with argp(3): --help, -h, and numbers with units. Invalid command lines
 * end the program with status 2. No state.
 */
#ifndef DPSS_ARGUMENTS_H
#define DPSS_ARGUMENTS_H

#include <argp.h>

typedef struct unit {
    const char *name;
    double factor;
} unit;

/* Units of numbers; the last row has no name. */
extern const unit units_none[], units_rate[], units_time[], units_share[], units_size[];

/* Returns the value of text, a number with one of the units, from minimum to maximum. example completes the message
 * "use EXAMPLE". */
double arguments_number(const struct argp_state *state, const char *text, const unit *units, double minimum,
                        double maximum, const char *example);

/* Reads the command line by argp, whose parser gets input, and adds -h and --help. */
void arguments_parse(const struct argp *argp, int argc, char **argv, void *input);

#endif
