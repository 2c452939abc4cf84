/*
 * A record being read from a foreign format: keys and values as they come, into standard fields and others. One record
 * after the other; one thread.
 *
 * Values are views of the caller's bytes, or of bytes from builder_bytes, of which there are as many as builder_begin
 * was told.
 */
#ifndef NETLOGGER_CONVERT_BUILDER_H
#define NETLOGGER_CONVERT_BUILDER_H

#include "convert/convert.h"
#include "convert/keys.h"

typedef struct builder {
    nl_record *record;
    nl_field *fields;
    size_t count, capacity;
    nl_buffer bytes;
    unsigned seen;     /* a bit for each standard field */
    int64_t second_ns; /* the second that was read last ... */
    char second[24];   /* ... and its text, "" at first */
} builder;

/* Zeroes at first. Makes room for so many bytes of values that must be kept. */
void builder_begin(builder *b, size_t capacity);
void builder_free(builder *b);

/* Bytes that last until the next record; NULL when there is no more room for them. */
char *builder_bytes(builder *b, size_t size);

/* What a key is. The same bytes are the same in every record. */
typedef struct builder_key {
    nl_string text;
    nl_string name; /* of the field: text, or what it begins with */
    member member;  /* by the text */
    bool is_name;   /* the name is one, and need not be made one */
} builder_key;

builder_key builder_key_of(nl_string text);

/* Which standard field it is in this record: MEMBER_NONE for one that was there before. */
static inline member builder_member(const builder *b, member m)
{
    return (b->seen & 1u << m) == 0 ? m : MEMBER_NONE;
}

/* Sets a standard field. False, with the reason in nl_error_message(), when it is the time and its text is none. */
bool builder_set(builder *b, member m, nl_string text);

/* Appends a field for the caller to give type and value at once. A name that is none is made one. */
nl_field *builder_add(builder *b, nl_string key, sink *s);

/* As builder_add, by its name, which is taken as it is: no #2 is taken from it. */
nl_field *builder_add_name(builder *b, nl_string name, sink *s);

/* As builder_add_name, by a name that is one, and stays. */
nl_field *builder_add_good_name(builder *b, nl_string name);

/* As builder_add, of text. */
void builder_add_text(builder *b, nl_string key, nl_string value, sink *s);

/* As builder_add, by what the key is. */
nl_field *builder_add_key(builder *b, const builder_key *key, sink *s);

/* The record is complete: gives it to the sink. False when it has no time. */
bool builder_finish(builder *b, bool typed, sink *s);

#endif
