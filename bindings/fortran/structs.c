/*
 * Functions for netlogger.f90: wrappers of inline C functions, and of functions with structs whose layout Fortran
 * cannot know.
 */
#include <netlogger.h>

#include <stdio.h>
#include <string.h>

nl_reader *nl_fortran_reader_open(const char *url, bool follow);
void nl_fortran_record_add_string(nl_record *record, const char *name, const char *value, size_t size);
void nl_fortran_record_add_int(nl_record *record, const char *name, int64_t value);
void nl_fortran_record_add_double(nl_record *record, const char *name, double value);
void nl_fortran_record_add_bool(nl_record *record, const char *name, bool value);

/* A span in its scope, as netlogger.f90 stores it. */
typedef struct fortran_span {
    nl_span span;
    nl_context previous;
} fortran_span;
_Static_assert(sizeof(fortran_span) == 96, "netlogger.f90 declares the same size");

void nl_fortran_span_begin(fortran_span *span, nl_log *log, const nl_record *record);
void nl_fortran_span_end(fortran_span *span, nl_log *log, const nl_record *record, int status);
void nl_fortran_attach(const char *traceparent);
int nl_fortran_traceparent(char text[NL_TRACEPARENT_SIZE]);
bool nl_fortran_tracestate_append(char state[NL_TRACESTATE_SIZE], const char *text, size_t size);

nl_reader *nl_fortran_reader_open(const char *url, bool follow)
{
    nl_reader_options options = {.follow = follow};
    return nl_reader_open(url, &options);
}

void nl_fortran_record_add_string(nl_record *record, const char *name, const char *value, size_t size)
{
    nl_record_add_string(record, name, value, size);
}

void nl_fortran_record_add_int(nl_record *record, const char *name, int64_t value)
{
    nl_record_add_int(record, name, value);
}

void nl_fortran_record_add_double(nl_record *record, const char *name, double value)
{
    nl_record_add_double(record, name, value);
}

void nl_fortran_record_add_bool(nl_record *record, const char *name, bool value)
{
    nl_record_add_bool(record, name, value);
}

enum { NAME_SIZE = 4001 };

/*
 * Begins a span with the level and the fields of the record. The name of the span is the event of the record. If the
 * span is logged, makes its context the current context.
 */
void nl_fortran_span_begin(fortran_span *span, nl_log *log, const nl_record *record)
{
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "%.*s", (int)record->event.size, record->event.data);
    nl_span_begin_fields(&span->span, log, record->level, name, NULL, record->fields, record->field_count);
    if (span->span.log != NULL)
        span->previous = nl_context_attach(&span->span.context);
}

void nl_fortran_span_end(fortran_span *span, nl_log *log, const nl_record *record, int status)
{
    char name[NAME_SIZE];
    if (span->span.log == NULL)
        return;
    snprintf(name, sizeof name, "%.*s", (int)record->event.size, record->event.data);
    nl_context_attach(&span->previous);
    span->span.begun = name;
    span->span.status = status;
    span->span.log = log;
    nl_span_end_fields(&span->span, record->fields, record->field_count);
}

/*
 * Attaches the context of a traceparent or, for NULL, of the environment variable TRACEPARENT. If the text is invalid
 * or the variable is missing, attaches the empty context.
 */
void nl_fortran_attach(const char *traceparent)
{
    nl_context context;
    nl_traceparent_parse(traceparent, traceparent != NULL ? strlen(traceparent) : 0, &context);
    nl_context_attach(&context);
}

int nl_fortran_traceparent(char text[NL_TRACEPARENT_SIZE])
{
    const nl_context current = nl_context_current();
    return (int)nl_traceparent_format(&current, text);
}

bool nl_fortran_tracestate_append(char state[NL_TRACESTATE_SIZE], const char *text, size_t size)
{
    return nl_tracestate_append(state, text, size) == NL_OK;
}
