/* What report and schema run are told alike: what is made of the records, and how it is said. One thread. */
#ifndef NLKERNEL_REPORTING_H
#define NLKERNEL_REPORTING_H

#include "synthesis_run.h"

typedef struct reporting_options {
    program_reading reading;
    const char **parameters; /* "NAME=VALUE", NULL at the end; NULL: none */
    size_t parameter_count;
    const char *picture, *output; /* NULL: not wanted */
    const char *cdf;              /* of what is called so; NULL: not asked for */
    bool json, perl;
    long top; /* negative: what the schema says */
} reporting_options;

/* A child for argp; its input is a reporting_options of zeros. */
extern const struct argp reporting_argp;

/* Says what was found, as the options want it. Returns an exit status. */
int reporting_say(schema_run *run, const reporting_options *options);

/* Prints the records of logs in KLogger's Perl form instead. Returns an exit status. */
int reporting_print_perl(reporting_options *options, char *const *logs, size_t count);

void reporting_options_free(reporting_options *o);

#endif
