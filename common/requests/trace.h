/*
 * A log in memory, for programs that look at all of it: records in order of time, every string kept once.
 *
 * A string is known by its number (an id); TRACE_NONE stands for none. One thread at a time.
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
    uint32_t event, host, prog; /* strings, TRACE_NONE when absent */
    uint32_t field_count;
    uint64_t first_field; /* see trace_fields */
} trace_record;

trace *trace_new(void);
void trace_free(trace *t);

/* Adds a copy of a record. Records may come in any order: see trace_sort. */
void trace_add(trace *t, const nl_record *record);

/* Puts the records in order of time; those of equal times stay as they came. Returns whether anything moved. */
bool trace_sort(trace *t);

size_t trace_count(const trace *t);
const trace_record *trace_get(const trace *t, size_t i);

/* The fields of a record, field_count of them. */
const trace_field *trace_fields(const trace *t, const trace_record *record);

/* The value of a field of a record (by the name's id), TRACE_NONE when it has none. */
uint32_t trace_value(const trace *t, const trace_record *record, uint32_t name);

/* Strings and their numbers; the number of one that does not occur is TRACE_NONE. */
size_t trace_string_count(const trace *t);
const char *trace_string(const trace *t, uint32_t id);
uint32_t trace_find(const trace *t, const char *text);

/* The string as a number; false when it is none. */
bool trace_number(const trace *t, uint32_t id, double *value);

#endif
