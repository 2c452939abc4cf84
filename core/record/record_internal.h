/*
 * Internals of the record, for the formats.
 *
 * nl_record_new allocates a record with its storage: the array of fields, and an arena for bytes that the record owns.
 * A format's decoder appends fields that point into the line, and uses the arena for values with escapes. Chunks of the
 * arena never move, so pointers into the arena are valid until nl_record_clear.
 */
#ifndef NETLOGGER_RECORD_RECORD_INTERNAL_H
#define NETLOGGER_RECORD_RECORD_INTERNAL_H

#include "base/time_internal.h"

#include <netlogger.h>

typedef struct nl_chunk nl_chunk;

typedef enum nl_member {
    NL_MEMBER_TIME,
    NL_MEMBER_HOST,
    NL_MEMBER_PROG,
    NL_MEMBER_LEVEL,
    NL_MEMBER_EVENT,
    NL_MEMBER_COUNT,
    NL_MEMBER_NONE = NL_MEMBER_COUNT, /* a field that is not a standard field */
} nl_member;

enum { NL_KNOWN_NAMES = 12 };

/*
 * A field name of the previous line, with its '='. The next line probably has the same names, and comparing is faster
 * than a lookup.
 */
typedef struct nl_known_name {
    char text[16];
    unsigned char size;   /* size without the '='; 0 means that there is no name */
    unsigned char member; /* nl_member */
} nl_known_name;

typedef struct nl_known_names {
    const struct nl_text_format *format;     /* format of the previous line */
    nl_known_name names[NL_KNOWN_NAMES + 1]; /* the last entry stays empty */
    nl_known_day day;
} nl_known_names;

typedef struct nl_record_storage {
    nl_record record; /* first, so that a pointer to the record is a pointer to its storage */
    nl_field *fields;
    size_t field_capacity;
    nl_chunk *chunks; /* newest first */
    nl_known_names known;
} nl_record_storage;

/*
 * Grows the array of fields. On failure, marks the record as incomplete and returns false. Only the next two
 * functions call nl_record_grow.
 */
bool nl_record_grow(nl_record_storage *storage);

/*
 * Appends a field, which the caller must fill immediately. The field may move when the next field is appended. Returns
 * NULL if memory runs out.
 */
static inline nl_field *nl_record_append(nl_record *record)
{
    nl_record_storage *storage = (nl_record_storage *)(void *)record;
    if (record->field_count == storage->field_capacity && !nl_record_grow(storage))
        return NULL;
    return &storage->fields[record->field_count++];
}

/* Like nl_record_append, for `count` fields (at least 1). */
static inline nl_field *nl_record_append_many(nl_record *record, size_t count)
{
    nl_record_storage *storage = (nl_record_storage *)(void *)record;
    while (count > storage->field_capacity - record->field_count)
        if (!nl_record_grow(storage))
            return NULL;
    nl_field *fields = storage->fields + record->field_count;
    record->field_count += count;
    return fields;
}

/* Returns the standard field that has this name in ULM or BP, or NL_MEMBER_NONE. */
nl_member nl_member_of_name(nl_string name);

/* Like nl_record_find, for a name whose member the caller has looked up. */
bool nl_record_find_member(const nl_record *record, nl_member member, nl_string name, nl_field *field);

/*
 * Returns size bytes that are valid until the record is cleared. If memory runs out, marks the record as incomplete and
 * returns NULL.
 */
char *nl_record_allocate(nl_record *record, size_t size);

/* Clears a record that may not be used for a long time, and frees memory that small records do not need. */
void nl_record_trim(nl_record *record);

#endif
