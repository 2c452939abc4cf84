/* JSON's members as a record's fields: objects within are flattened, arrays stay text, null is nothing. */
#ifndef NLTOOLS_CONVERT_JSON_FIELDS_H
#define NLTOOLS_CONVERT_JSON_FIELDS_H

#include "convert/builder.h"
#include "convert/json_scan.h"

typedef struct json_fields {
    json_scan scan;
    builder *builder;
    sink *s;
    bool only_fields; /* members called as standard fields are fields like others */
} json_fields;

/* Begins a record in bytes of JSON. */
void json_fields_begin(json_fields *r, builder *b, const char *at, const char *end, sink *s);

/* Takes a member's value; its name was taken. depth is 1 at first. */
bool json_take_value(json_fields *r, nl_string key, int depth);

/* Takes the members of an object, its { too. */
bool json_take_members(json_fields *r);

#endif
