/* What report and rules run are told alike: what is made of the records, and how it is said. One thread. */
#ifndef NLKERNEL_REPORTING_H
#define NLKERNEL_REPORTING_H

#include "rules_run.h"

typedef struct reporting_options {
    program_reading reading;
    const char **parameters; /* "NAME=VALUE", NULL at the end; NULL: none */
    size_t parameter_count;
    const char *picture, *output; /* NULL: not wanted */
    const char *cdf;              /* of what is called so; NULL: not asked for */
    bool json, perl;
    long top; /* negative: what the rules say */
} reporting_options;

/* The rows of all commands that report, about a reporting_options that begins as REPORTING_INITIAL. */
extern const nl_option reporting_rows[];
#define REPORTING_INITIAL                                                                                              \
    {                                                                                                                  \
        .top = -1                                                                                                      \
    }

/* The groups of a command whose settings hold a reporting_options named reporting. */
#define REPORTING_GROUPS(settings)                                                                                     \
    {"The report", reporting_rows, offsetof(settings, reporting)},                                                     \
    {                                                                                                                  \
        "Reading", program_reading_options, offsetof(settings, reporting.reading)                                      \
    }

/* Says what was found, as the options want it. Returns an exit status. */
int reporting_say(rules_run *run, const reporting_options *options);

/* Prints the records of logs in KLogger's Perl form instead. Returns an exit status. */
int reporting_print_perl(reporting_options *options, char *const *logs, size_t count);

void reporting_options_free(reporting_options *o);

#endif
