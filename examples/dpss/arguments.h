/*
 * Parses the command lines of the example programs with argp(3), including --help, -h, and numbers with units. An
 * invalid command line ends the program with status 2. This module has no state.
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

/*
 * Returns the value of text, which is a number with one of the units, from `minimum` to `maximum`. The error message
 * contains "use EXAMPLE".
 */
double arguments_number(const struct argp_state *state, const char *text, const unit *units, double minimum,
                        double maximum, const char *example);

/* Parses the command line as argp describes, and also accepts -h and --help. Passes input to argp's parser function. */
void arguments_parse(const struct argp *argp, int argc, char **argv, void *input);

#endif
