/*
 * What the kernel offers: events and their fields, as records name them (doc/kernel-events.md).
 *
 * An event's name is SYSTEM.EVENT, a field's is the kernel's in capitals with dots: prev_pid is PREV.PID. Each field
 * says where its bytes lie in the kernel's own record of the event, so that values are taken from there by a loop over
 * a table. Never changed once made: any thread.
 */
#ifndef NLKERNEL_EVENTS_H
#define NLKERNEL_EVENTS_H

#include "tracing.h"

typedef enum field_kind {
    FIELD_INT8,
    FIELD_INT16,
    FIELD_INT32,
    FIELD_INT64,
    FIELD_UINT8,
    FIELD_UINT16,
    FIELD_UINT32,
    FIELD_UINT64,
    FIELD_BOOL,
    FIELD_TEXT,          /* size bytes, or up to a NUL */
    FIELD_DYNAMIC_TEXT,  /* anywhere in the record: a word at offset says where, and how many bytes */
    FIELD_BYTES,         /* size bytes, as hexadecimal digits */
    FIELD_DYNAMIC_BYTES, /* the same anywhere */
    FIELD_FUNCTION,      /* an address of 8 bytes, as the name of the function that it lies in */
} field_kind;

typedef struct event_field {
    char *name;        /* in records */
    char *kernel_name; /* an element of an array shares it with the others */
    char *type;        /* as the kernel has it */
    field_kind kind;
    bool relative; /* what is anywhere is counted from behind the word, not from the record's start */
    bool element;  /* of an array */
    unsigned offset, size;
} event_field;

/* Of which thread an event tells the name: where its number and its name lie. */
typedef struct event_naming {
    unsigned pid_offset, comm_offset, comm_size;
} event_naming;

enum { EVENT_NAMINGS_MAX = 4 };

typedef struct kernel_event {
    char *system, *event;
    char *name;     /* in records: SYSTEM.EVENT */
    int id;         /* in the ring buffer */
    unsigned place; /* among those that were chosen */
    event_field *fields;
    size_t field_count;
    size_t fixed_size; /* bytes that a record of it has at least */
    event_naming namings[EVENT_NAMINGS_MAX];
    size_t naming_count;
    char *kernel_filter;            /* what the kernel passes on; NULL: all */
    bool evaluate;                  /* the filter must be asked about each */
    bool traced;                    /* what a tracer writes: there is nothing to switch on */
    const struct kallsyms *symbols; /* what functions are called, where there are any among the fields; borrowed */
} kernel_event;

typedef struct kernel_events {
    kernel_event *list;
    size_t count;
    kernel_event **by_id; /* NULL where there is none */
    size_t id_count;
} kernel_events;

/* Reads the description of one event into *event. False with the reason in nl_error_message(). */
bool kernel_event_read(const tracing *t, const char *system, const char *event, kernel_event *out);

void kernel_event_free(kernel_event *event);
void kernel_events_free(kernel_events *events);

/* What a field's values are in a record. */
static inline nl_type event_field_type(const event_field *field)
{
    if (field->kind <= FIELD_INT64)
        return NL_TYPE_INT;
    if (field->kind <= FIELD_UINT64)
        return NL_TYPE_UINT;
    return field->kind == FIELD_BOOL ? NL_TYPE_BOOL : NL_TYPE_STRING;
}

/* Reads it from the text of its description, which is changed; *out has its system and event. False with the reason. */
bool kernel_event_parse(kernel_event *out, char *text, size_t size);

/* Sets its names, which are copied. */
void kernel_event_name(kernel_event *out, const char *system, const char *event);

/* Makes by_id and places, once all are in the list. */
void kernel_events_index(kernel_events *events);

/* The field of that name in records, NULL when the event has none. */
const event_field *kernel_event_field(const kernel_event *event, nl_string name);

#endif
