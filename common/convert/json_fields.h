/*
 * Reads the members of a JSON object into fields. Flattens nested objects, keeps arrays as text, and skips null. Only
 * one thread at a time may use the state.
 */
#ifndef NETLOGGER_CONVERT_JSON_FIELDS_H
#define NETLOGGER_CONVERT_JSON_FIELDS_H

#include "convert/builder.h"
#include "convert/json_scan.h"

/* The bytes between two values of the previous record, and the parsed key that they contain. */
typedef struct json_known_key {
    char text[48]; /* comma, quoted key, colon and blanks */
    uint8_t size;  /* number of bytes in text; 0 if no key is known */
    uint8_t at, key_size, name_size;
    bool is_name;
    member member;
} json_known_key;

/* The state of reading. Initialize the structure with zeros. */
typedef struct json_fields {
    json_scan scan;
    builder *builder;
    sink *s;
    bool only_fields; /* names of standard fields have no special meaning */
    /*
     * The keys of the previous record, by the index of the member. Most records have the same members in the same
     * order.
     */
    json_known_key known[64];
} json_fields;

/* Begins to read the record in the bytes [at, end). */
void json_fields_begin(json_fields *r, builder *b, const char *at, const char *end, sink *s);

/* Reads the value of the member whose name is `key`. Returns false on failure. */
bool json_take_value(json_fields *r, nl_string key);

/* Reads an object into standard fields and other fields of the record. Returns false on failure. */
bool json_take_members(json_fields *r);

#endif
