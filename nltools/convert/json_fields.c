#include "config.h"

#include "convert/json_fields.h"

#include <string.h>

static char *allocate(void *user, size_t size)
{
    return builder_bytes(user, size);
}

void json_fields_begin(json_fields *r, builder *b, const char *at, const char *end, sink *s)
{
    enum { ROOM_LEAST = 4096, ROOM_TIMES = 3 };
    builder_begin(b, ROOM_TIMES * (size_t)(end - at) + ROOM_LEAST);
    *r = (json_fields){
        .scan = {.at = at, .end = end, .allocate = allocate, .user = b},
        .builder = b,
        .s = s,
    };
}

static bool is_member(const json_fields *r, nl_string key)
{
    return !r->only_fields && builder_member(r->builder, key) != MEMBER_NONE;
}

/* A value that is text, whatever it was. */
static bool take_text(json_fields *r, nl_string key, nl_string text)
{
    member m = is_member(r, key) ? member_of(key) : MEMBER_NONE;
    if (m == MEMBER_NONE)
        builder_add_text(r->builder, key, text, r->s);
    else if (!builder_set(r->builder, m, text))
        return json_fail(&r->scan, "the time can't be read");
    return true;
}

static bool take_number(json_fields *r, nl_string key)
{
    nl_string text;
    if (!json_number(&r->scan, &text))
        return false;
    if (is_member(r, key))
        return take_text(r, key, text);
    json_number_value(text, builder_add(r->builder, key, r->s));
    return true;
}

static bool take_truth(json_fields *r, nl_string key, const char *word, bool value)
{
    if (!json_word(&r->scan, word))
        return false;
    if (is_member(r, key))
        return take_text(r, key, (nl_string){word, strlen(word)});
    nl_field *field = builder_add(r->builder, key, r->s);
    field->type = NL_TYPE_BOOL;
    field->bool_value = value;
    return true;
}

static bool equals(nl_string text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

/* OUTER.INNER */
static bool join(json_fields *r, nl_string outer, nl_string inner, nl_string *name)
{
    char *bytes = builder_bytes(r->builder, outer.size + 1 + inner.size);
    if (bytes == NULL)
        return json_fail(&r->scan, "the names of objects within one another take too much room");
    memcpy(bytes, outer.data, outer.size);
    bytes[outer.size] = '.';
    memcpy(bytes + outer.size + 1, inner.data, inner.size);
    *name = (nl_string){bytes, outer.size + 1 + inner.size};
    return true;
}

/* {"$bytes": ...} or {"$double": ...}, what JSON has no values for. */
static bool take_special(json_fields *r, nl_string key, nl_string kind)
{
    nl_string text;
    if (!json_string(&r->scan, &text))
        return false;
    if (equals(kind, "$bytes")) {
        char *bytes = builder_bytes(r->builder, text.size);
        size_t size = bytes != NULL ? base64_get(text, bytes) : SIZE_MAX;
        return size != SIZE_MAX ? take_text(r, key, (nl_string){bytes, size})
                                : json_fail(&r->scan, "$bytes is no base64");
    }
    nl_field number = {.type = NL_TYPE_STRING, .string = text};
    double value;
    if (!nl_field_double(&number, &value))
        return json_fail(&r->scan, "$double is no number");
    nl_field *field = builder_add(r->builder, key, r->s);
    field->type = NL_TYPE_DOUBLE;
    field->double_value = value;
    return true;
}

/* An object within the object, whose { was taken. */
static bool take_object(json_fields *r, nl_string key, int depth)
{
    bool first = true;
    nl_string inner = {0}, name = {0};
    if (depth == JSON_DEPTH)
        return json_fail(&r->scan, "objects are too deep within one another");
    while (json_next(&r->scan, '}', &first)) {
        if (!json_key(&r->scan, &inner))
            return false;
        if (json_peek(&r->scan) == '"' && (equals(inner, "$bytes") || equals(inner, "$double"))) {
            if (!take_special(r, key, inner))
                return false;
        } else if (!join(r, key, inner, &name) || !json_take_value(r, name, depth + 1)) {
            return false;
        }
    }
    return r->scan.error == NULL;
}

bool json_take_value(json_fields *r, nl_string key, int depth)
{
    nl_string text;
    switch (json_peek(&r->scan)) {
    case '"':
        return json_string(&r->scan, &text) && take_text(r, key, text);
    case '{':
        r->scan.at++;
        return take_object(r, key, depth);
    case '[':
        return json_any(&r->scan, &text) && take_text(r, key, text);
    case 't':
        return take_truth(r, key, "true", true);
    case 'f':
        return take_truth(r, key, "false", false);
    case 'n':
        return json_word(&r->scan, "null");
    default:
        return take_number(r, key);
    }
}

bool json_take_members(json_fields *r)
{
    json_scan *j = &r->scan;
    bool first = true;
    nl_string key = {0};
    if (!json_take(j, '{'))
        return json_fail(j, "an object is missing");
    while (json_next(j, '}', &first))
        if (!json_key(j, &key) || !json_take_value(r, key, 1))
            return false;
    return j->error == NULL;
}
