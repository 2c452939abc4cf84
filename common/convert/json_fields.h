/* JSON's members as a record's fields: objects within are flattened, arrays stay text, null is nothing. */
#ifndef NETLOGGER_CONVERT_JSON_FIELDS_H
#define NETLOGGER_CONVERT_JSON_FIELDS_H

#include "convert/builder.h"
#include "convert/json_scan.h"

/* What stands between two values, and what the key in it is. */
typedef struct json_known_key {
    char text[48]; /* the comma, the key in its quotes, the colon, and blanks */
    uint8_t size;  /* of that; 0: nothing is known */
    uint8_t at, key_size, name_size;
    bool is_name;
    member member;
} json_known_key;

/* Zeroes at first. */
typedef struct json_fields {
    json_scan scan;
    builder *builder;
    sink *s;
    bool only_fields; /* members called as standard fields are fields like others */
    /* By the member's place in the object: most records have the same members, in the same order. */
    json_known_key known[64];
} json_fields;

/* Begins a record in bytes of JSON. */
void json_fields_begin(json_fields *r, builder *b, const char *at, const char *end, sink *s);

/* Takes a member's value; its name was taken. */
bool json_take_value(json_fields *r, nl_string key);

/* Takes the members of an object, its { too. */
bool json_take_members(json_fields *r);

#endif
