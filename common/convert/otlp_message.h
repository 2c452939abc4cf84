/*
 * Reads OTLP messages in protobuf or JSON, member by member.
 *
 * The module checks every length against the message that contains it, and limits the nesting. Values point into the
 * input or to bytes of the builder. Only one thread at a time may use an otlp_input.
 */
#ifndef NETLOGGER_CONVERT_OTLP_MESSAGE_H
#define NETLOGGER_CONVERT_OTLP_MESSAGE_H

#include "convert/builder.h"

typedef struct otlp_input {
    builder *builder; /* owns the converted texts */
    bool json;
    const char *error; /* the first error, or NULL */
    nl_buffer kinds;   /* value of the field OTLP_KINDS, from all attributes since the caller emptied it */
} otlp_input;

/* A value in a message. text.data is NULL if the message does not have the member. */
typedef struct otlp_value {
    nl_string text;     /* JSON text, or the bytes of a protobuf field; for a repeated field, the rest of the message */
    uint64_t number;    /* the value of a numeric protobuf field */
    uint32_t field;     /* number of the protobuf field */
    unsigned char wire; /* wire type of the protobuf field */
} otlp_value;

/* A member to find: its name in JSON and its number in protobuf. */
typedef struct otlp_member {
    const char *name;
    uint32_t field;
    bool repeated;
    otlp_value value;
} otlp_member;

/* Sets the error unless one is set. Returns false. */
bool otlp_fail(otlp_input *in, const char *error);

/* Returns a value that contains a whole message. */
static inline otlp_value otlp_whole(nl_string text)
{
    return (otlp_value){.text = text, .wire = 2};
}

/* Sets the values of the given members from a message. Returns false and sets the error if the message is malformed. */
bool otlp_pick(otlp_input *in, const otlp_value *message, otlp_member *members, size_t count);

/*
 * Calls `take` for each element of a repeated member. Returns false if `take` returns false or the input is malformed.
 */
bool otlp_each(otlp_input *in, const otlp_value *list, bool (*take)(void *user, const otlp_value *element), void *user);

/*
 * Read a string, an ID (as lower-case hexadecimal digits), or an integer. For an absent value, return an empty text or
 * 0. For an ID of zeros, return an empty text. Return false on failure.
 */
bool otlp_text(otlp_input *in, const otlp_value *value, nl_string *text);
bool otlp_id(otlp_input *in, const otlp_value *value, nl_string *text);
bool otlp_unsigned(otlp_input *in, const otlp_value *value, uint64_t *number);

/* Set the type and value of a field from a double or a signed integer. Return false on failure. */
bool otlp_double_field(otlp_input *in, const otlp_value *value, nl_field *field);
bool otlp_integer_field(otlp_input *in, const otlp_value *value, nl_field *field);

/* Appends a repeated number, such as the counts of a histogram, as a JSON array. Returns false on failure. */
bool otlp_put_numbers(otlp_input *in, const otlp_value *list, bool doubles, nl_buffer *out);

/*
 * Calls `add` for each field that an AnyValue named `name` becomes. A map becomes a field NAME.KEY for each of its
 * members. An array becomes a field with JSON text. Other values become one field. Returns false on failure.
 */
typedef void (*otlp_add)(void *user, const nl_field *field);
bool otlp_any(otlp_input *in, nl_string name, const otlp_value *value, otlp_add add, void *user);

/* Like otlp_any, for a KeyValue. If `outer` is not NULL, the fields are named OUTER.KEY. */
bool otlp_attribute(otlp_input *in, const char *outer, const otlp_value *attribute, otlp_add add, void *user);

/* Copies text to the builder's bytes. If the text does not fit, sets the error and returns false. */
bool otlp_keep(otlp_input *in, nl_string text, nl_string *copy);

#endif
