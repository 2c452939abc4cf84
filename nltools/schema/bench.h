/* nlschema bench: measures the cost of each event of a schema. Not thread-safe. */
#ifndef NLTOOLS_SCHEMA_BENCH_H
#define NLTOOLS_SCHEMA_BENCH_H

#include "schema.h"

typedef struct schema_bench_options {
    unsigned long count; /* number of times to log each event in each round */
    const char *cflags;  /* flags for the compiler; NULL: get the flags from pkg-config */
    const char *libs;
    bool json;
} schema_bench_options;

/*
 * Writes a C program that logs each event with typical values, compiles it with $CC (default cc), runs it and appends a
 * table to `out`. The table contains the nanoseconds per event in the best of five rounds, with /dev/null as the log,
 * and the bytes per event in ULM. Returns false and sets the error on failure.
 */
bool schema_bench(const schema *s, const schema_bench_options *how, GString *out);

#endif
