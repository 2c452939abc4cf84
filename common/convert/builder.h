/*
 * Builds a record from the keys and values of a foreign format. Determines which keys are standard fields. Values point
 * into the caller's bytes, or into bytes from builder_bytes. Only one thread at a time may use a builder.
 */
#ifndef NETLOGGER_CONVERT_BUILDER_H
#define NETLOGGER_CONVERT_BUILDER_H

#include "convert/convert.h"
#include "convert/keys.h"

typedef struct builder {
    nl_record *record;
    nl_field *fields;
    size_t count, capacity;
    nl_string time; /* text of the standard field */
    nl_buffer bytes;
    unsigned seen;     /* bit 1 << m is set if the record has the standard field m */
    int64_t second_ns; /* the second of the previous time */
    char second[24];   /* the text of that second */
} builder;

/*
 * Begins a record. Initialize a builder with zeros. `capacity` is the number of bytes that builder_bytes may return for
 * the record.
 */
void builder_begin(builder *b, size_t capacity);
void builder_free(builder *b);

/* Returns bytes that are valid until the next record, or NULL if they would exceed the capacity. */
char *builder_bytes(builder *b, size_t size);

/* A key and its meaning, which is the same in every record. */
typedef struct builder_key {
    nl_string text;
    nl_string name; /* name of the field, which is the text without a number such as "#2" at its end */
    member member;
    bool is_name; /* the name is valid */
} builder_key;

builder_key builder_key_of(nl_string text);

/* Returns MEMBER_NONE if the record already has the standard field m, and otherwise m. */
static inline member builder_member(const builder *b, member m)
{
    return (b->seen & 1u << m) == 0 ? m : MEMBER_NONE;
}

/*
 * Sets the standard field m to a text. Returns false and sets the error if m is MEMBER_TIME and the text is not a valid
 * time.
 */
bool builder_set(builder *b, member m, nl_string text);

/* Appends a field with this key; the caller sets its type and value. Replaces invalid bytes of the name with "_". */
nl_field *builder_add(builder *b, nl_string key, sink *s);

/* Like builder_add, with a name instead of a key. */
nl_field *builder_add_name(builder *b, nl_string name, sink *s);

/* Like builder_add_name, for a valid name that outlives the record. */
nl_field *builder_add_good_name(builder *b, nl_string name);

/* Appends a field with a text value. */
void builder_add_text(builder *b, nl_string key, nl_string value, sink *s);

/* Like builder_add, for a key that builder_key_of has parsed. */
nl_field *builder_add_key(builder *b, const builder_key *key, sink *s);

/*
 * Determines the time of the record, after its last field. If import_about names the time field, that field is the
 * time. Otherwise, the time is the standard field. Without this field, the time is the first valid field of time,
 * timestamp and @timestamp, and the function removes this field from the record. A number is in seconds since 1970, or
 * in milliseconds, microseconds or nanoseconds if it would otherwise be after the year 5138. Returns false and sets the
 * error if the record has no time.
 */
bool builder_find_time(builder *b, sink *s);

/* Calls nl_record_use_common_names for the record. */
void builder_use_common_names(builder *b);

/* Passes the record to the sink. A record without a host gets that of import_about. Call builder_find_time first. */
void builder_put(builder *b, bool typed, sink *s);

/*
 * Determines the time of the record and passes the record to the sink. Returns false and sets the error if the record
 * has no time. The caller must then report the record as malformed.
 */
__attribute__((warn_unused_result)) bool builder_finish(builder *b, bool typed, sink *s);

#endif
