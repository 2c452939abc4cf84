/*
 * A log in memory. Its records are in the order of time. The trace stores each different string once. A number
 * identifies a string, and TRACE_NONE means no string. Only one thread at a time may use a trace.
 */
#ifndef NETLOGGER_ANALYSIS_TRACE_H
#define NETLOGGER_ANALYSIS_TRACE_H

#include <netlogger.h>

#define TRACE_NONE UINT32_MAX

typedef struct trace trace;

typedef struct trace_field {
    uint32_t name;
    uint32_t value;
} trace_field;

typedef struct trace_record {
    int64_t time_ns;
    uint32_t event, host, prog; /* strings, or TRACE_NONE */
    uint32_t field_count;
    uint64_t first_field; /* index of the first field, used by trace_fields */
} trace_record;

trace *trace_new(void);
void trace_free(trace *t);

/* Adds a copy of a record. Call trace_sort after the last record. */
void trace_add(trace *t, const nl_record *record);

/* Sorts the records by time. Records with equal times keep their order. */
void trace_sort(trace *t);

size_t trace_count(const trace *t);
const trace_record *trace_get(const trace *t, size_t i);

/* Returns the array of a record's fields, which has field_count elements. */
const trace_field *trace_fields(const trace *t, const trace_record *record);

/* Returns the value of the field whose name is the string `name` in a record, or TRACE_NONE. */
uint32_t trace_value(const trace *t, const trace_record *record, uint32_t name);

/* Convert between strings and their numbers. trace_find returns TRACE_NONE for an unknown string. */
size_t trace_string_count(const trace *t);
const char *trace_string(const trace *t, uint32_t id);
uint32_t trace_find(const trace *t, const char *text);

/* Converts the string `id` to a number. Returns false if the string is not a finite number. */
bool trace_number(const trace *t, uint32_t id, double *value);

#endif
