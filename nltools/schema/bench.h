/* nlschema bench: what each event of a schema costs. Uses GLib; one thread. */
#ifndef NLTOOLS_SCHEMA_BENCH_H
#define NLTOOLS_SCHEMA_BENCH_H

#include "schema.h"

typedef struct schema_bench_options {
    unsigned long count; /* how often each event is logged in one round */
    const char *cflags;  /* for the compiler; NULL: what pkg-config says of netlogger, as libs */
    const char *libs;
    bool json;
} schema_bench_options;

/*
 * Makes a C program that logs each event with typical values, compiles it with $CC (cc when that is unset), runs it and
 * adds a table to out: nanoseconds an event, being the best of some rounds into a log that goes to /dev/null, and
 * bytes an event as ULM. Returns false on failure.
 */
bool schema_bench(const schema *s, const schema_bench_options *how, GString *out);

#endif
