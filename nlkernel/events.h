/*
 * The events that the kernel offers, and the fields of their records (doc/kernel-events.md).
 *
 * The name of an event is SYSTEM.EVENT. A field has the kernel's name in capitals, with dots instead of underscores:
 * prev_pid becomes PREV.PID. Each field has the offset of its bytes in the kernel's record of the event, so that a loop
 * over the fields reads the values. Events do not change after kernel_events_read, so any thread may use them.
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
    FIELD_TEXT,          /* ends after `size` bytes, or at a NUL */
    FIELD_DYNAMIC_TEXT,  /* the 32-bit word at `offset` contains the text's offset and size */
    FIELD_BYTES,         /* `size` bytes, written in hexadecimal */
    FIELD_DYNAMIC_BYTES, /* bytes whose offset and size are stored as for FIELD_DYNAMIC_TEXT */
    FIELD_FUNCTION,      /* an address of 8 bytes, written as the function's name */
} field_kind;

typedef struct event_field {
    char *name;        /* name in records */
    char *kernel_name; /* the kernel's name; all elements of an array have the same name */
    char *type;        /* type in the kernel's notation */
    field_kind kind;
    bool relative; /* the offset of a dynamic field counts from the end of the field's word, not from the start of the
                      record */
    bool element;  /* element of an array */
    unsigned offset, size; /* position in the kernel's record, and size, in bytes */
} event_field;

/* The offsets and size, in bytes, of a thread's ID and name in an event that contains the name of a thread. */
typedef struct event_naming {
    unsigned pid_offset, comm_offset, comm_size;
} event_naming;

enum { EVENT_NAMINGS_MAX = 4 };

typedef struct kernel_event {
    char *system, *event;
    char *name;     /* name in records: SYSTEM.EVENT */
    int id;         /* ID in the ring buffer */
    unsigned place; /* index among the chosen events */
    event_field *fields;
    size_t field_count;
    size_t fixed_size; /* minimum size of a record in bytes */
    event_naming namings[EVENT_NAMINGS_MAX];
    size_t naming_count;
    char *kernel_filter;            /* the filter that the kernel evaluates; NULL: no filter */
    bool evaluate;                  /* nlkernel must also evaluate the filter for each event */
    bool traced;                    /* a tracer writes the event, which therefore cannot be enabled separately */
    const struct kallsyms *symbols; /* names of functions for FIELD_FUNCTION; borrowed */
} kernel_event;

typedef struct kernel_events {
    kernel_event *list;
    size_t count;
    kernel_event **by_id; /* indexed by ID; NULL: no event has this ID */
    size_t id_count;
} kernel_events;

/* Reads the description of an event. kernel_event_free frees it. Returns false and sets the error on failure. */
bool kernel_event_read(const tracing *t, const char *system, const char *event, kernel_event *out);

void kernel_event_free(kernel_event *event);
void kernel_events_free(kernel_events *events);

/* Returns the type of a field's values in records. */
static inline nl_type event_field_type(const event_field *field)
{
    if (field->kind <= FIELD_INT64)
        return NL_TYPE_INT;
    if (field->kind <= FIELD_UINT64)
        return NL_TYPE_UINT;
    return field->kind == FIELD_BOOL ? NL_TYPE_BOOL : NL_TYPE_STRING;
}

/* Parses a description of `size` bytes in `text`, which the function changes. Call kernel_event_name first. Returns
 * false and sets the error on failure. */
bool kernel_event_parse(kernel_event *out, char *text, size_t size);

/* Initializes an event with copies of its names. */
void kernel_event_name(kernel_event *out, const char *system, const char *event);

/* Sets by_id, and `place` of each event. Call this function once, when the list is complete. */
void kernel_events_index(kernel_events *events);

/* Returns the field that has this name in records, or NULL. */
const event_field *kernel_event_field(const kernel_event *event, nl_string name);

#endif
