/*
 * The record from inside: by-reference access for the codecs.
 *
 * What nl_record_new makes is a record with its memory behind it: the array of fields, and an arena of chunks for bytes
 * that the record must own. A codec appends fields that view the line it reads and takes arena bytes only for values
 * that differ from the line (those with escapes). Chunks never move, so views into them stay good until
 * nl_record_clear.
 */
#ifndef NETLOGGER_FORMAT_RECORD_INTERNAL_H
#define NETLOGGER_FORMAT_RECORD_INTERNAL_H

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
    NL_MEMBER_NONE = NL_MEMBER_COUNT, /* a field like any other */
} nl_member;

enum { NL_KNOWN_NAMES = 12 };

/*
 * The names that the fields of a line had, in their order, with the '=' behind each: the next line's are likely to be
 * the same, and comparing takes less than looking a name up.
 */
typedef struct nl_known_name {
    char text[16];
    unsigned char size;   /* without the '='; 0: none */
    unsigned char member; /* an nl_member */
} nl_known_name;

typedef struct nl_known_names {
    const struct nl_text_format *format;     /* that they are of */
    nl_known_name names[NL_KNOWN_NAMES + 1]; /* the last stays empty */
    nl_known_day day;
} nl_known_names;

typedef struct nl_record_storage {
    nl_record record; /* the first member: a pointer to a record is a pointer to its storage */
    nl_field *fields;
    size_t field_capacity;
    nl_chunk *chunks; /* newest first */
    nl_known_names known;
} nl_record_storage;

/*
 * Makes room for more fields; only the two below call it. False when there is no memory, and the record is marked as
 * incomplete.
 */
bool nl_record_grow(nl_record_storage *storage);

/*
 * Appends a field for the caller to fill at once; it may move when the next one is appended. NULL when there is no
 * memory.
 */
static inline nl_field *nl_record_append(nl_record *record)
{
    nl_record_storage *storage = (nl_record_storage *)(void *)record;
    if (record->field_count == storage->field_capacity && !nl_record_grow(storage))
        return NULL;
    return &storage->fields[record->field_count++];
}

/* As nl_record_append, for count fields; count is above 0. */
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

/* The standard field that a name is in either text format, NL_MEMBER_NONE when it is none. */
nl_member nl_member_of_name(nl_string name);

/* As nl_record_find, for a name whose member is known: what is looked up often. */
bool nl_record_find_member(const nl_record *record, nl_member member, nl_string name, nl_field *field);

/* size bytes that last until the record is cleared. NULL, and the record is incomplete, when there is no memory. */
char *nl_record_allocate(nl_record *record, size_t size);

/* Clears the record and gives back memory beyond what small records need: for one that may lie idle for long. */
void nl_record_trim(nl_record *record);

#endif
