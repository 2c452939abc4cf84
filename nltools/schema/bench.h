/* nlschema bench: measures the cost of each event of a schema. One thread. */
#ifndef NLTOOLS_SCHEMA_BENCH_H
#define NLTOOLS_SCHEMA_BENCH_H

#include "schema.h"

typedef struct schema_bench_options {
    unsigned long count; /* number of times to log each event in each round */
    const char *cflags;  /* for the compiler; NULL: from pkg-config, as libs */
    const char *libs;
    bool json;
} schema_bench_options;

/*
 * Writes a C program that logs each event with typical values, compiles it with $CC (default cc), runs it and appends a
 * table: nanoseconds per event, in the best of five rounds with the log in /dev/null, and bytes per event as ULM.
 * Returns false on failure.
 */
bool schema_bench(const schema *s, const schema_bench_options *how, GString *out);

#endif
