/* Options of the "report", "rules run" and "bench" commands, and the output of a report. Not thread-safe. */
#ifndef NLKERNEL_REPORTING_H
#define NLKERNEL_REPORTING_H

#include "rules_run.h"

typedef struct reporting_options {
    rules_parameters parameters;
    const char *picture, *derived; /* paths, or NULL */
    const char *cdf;               /* label of the row whose distribution to print; NULL: print the report */
    bool json, perl;
    long top; /* maximum number of rows; 0: all rows; negative: the number that the rules define */
} reporting_options;

/* The option rows for a reporting_options, which must have the initial value REPORTING_INITIAL. */
extern const nl_option reporting_rows[];
#define REPORTING_INITIAL                                                                                              \
    {                                                                                                                  \
        .top = -1                                                                                                      \
    }

/* The option groups of a command whose settings contain a reporting_options called reporting. */
#define REPORTING_GROUPS(settings)                                                                                     \
    {"Report", reporting_rows, offsetof(settings, reporting)},                                                         \
    {                                                                                                                  \
        "Report", rules_parameter_options, offsetof(settings, reporting.parameters)                                    \
    }

/* Prints the report, or the distribution that `cdf` selects. Draws the report if `picture` is set. Returns an exit
 * status. */
int reporting_print(rules_run *run, const reporting_options *options);

/* Prints the records of the logs as Perl hashes in KLogger's format. Returns an exit status. */
int reporting_print_perl(log_input *input, char *const *logs, size_t count);

#endif
