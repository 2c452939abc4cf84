#include "config.h"

#include "base/text.h"
#include "convert/json_fields.h"

#include "record/bytes.h"

#include <string.h>

static char *allocate(void *user, size_t size)
{
    return builder_bytes(user, size);
}

void json_fields_begin(json_fields *r, builder *b, const char *at, const char *end, sink *s)
{
    enum { CAPACITY_MIN = 4096, CAPACITY_FACTOR = 3 };
    builder_begin(b, CAPACITY_FACTOR * (size_t)(end - at) + CAPACITY_MIN);
    r->scan = (json_scan){.at = at, .end = end, .allocate = allocate, .user = b};
    r->builder = b;
    r->s = s;
    r->only_fields = false;
}

static member member_here(const json_fields *r, const builder_key *key)
{
    return r->only_fields ? MEMBER_NONE : builder_member(r->builder, key->member);
}

static bool json_fields_read_text(json_fields *r, const builder_key *key, nl_string text)
{
    member m = member_here(r, key);
    if (m != MEMBER_NONE)
        return builder_set(r->builder, m, text) || json_fail(&r->scan, "invalid time");
    nl_field *field = builder_add_key(r->builder, key, r->s);
    field->type = NL_TYPE_STRING;
    field->string = text;
    return true;
}

static bool json_fields_read_number(json_fields *r, const builder_key *key)
{
    nl_string text;
    if (!json_number(&r->scan, &text))
        return false;
    if (member_here(r, key) != MEMBER_NONE)
        return json_fields_read_text(r, key, text);
    json_number_value(text, builder_add_key(r->builder, key, r->s));
    return true;
}

static bool json_fields_read_bool(json_fields *r, const builder_key *key, const char *word, bool value)
{
    if (!json_word(&r->scan, word))
        return false;
    if (member_here(r, key) != MEMBER_NONE)
        return json_fields_read_text(r, key, nl_string_of(word));
    nl_field *field = builder_add_key(r->builder, key, r->s);
    field->type = NL_TYPE_BOOL;
    field->bool_value = value;
    return true;
}

/* Builds the name OUTER.INNER. Returns false on failure. */
static bool json_fields_join(json_fields *r, nl_string outer, nl_string inner, nl_string *name)
{
    char *bytes = builder_bytes(r->builder, outer.size + 1 + inner.size);
    if (bytes == NULL)
        return json_fail(&r->scan, "the names of nested objects are too long");
    memcpy(bytes, outer.data, outer.size);
    bytes[outer.size] = '.';
    memcpy(bytes + outer.size + 1, inner.data, inner.size);
    *name = (nl_string){bytes, outer.size + 1 + inner.size};
    return true;
}

/* Reads {"$bytes": ...} or {"$double": ...}. Returns false on failure. */
static bool json_fields_read_special(json_fields *r, const builder_key *key, nl_string kind)
{
    nl_string text;
    if (!json_string(&r->scan, &text))
        return false;
    if (nl_string_is(kind, "$bytes")) {
        char *bytes = builder_bytes(r->builder, text.size);
        size_t size = bytes != NULL ? base64_get(text, bytes) : SIZE_MAX;
        return size != SIZE_MAX ? json_fields_read_text(r, key, (nl_string){bytes, size})
                                : json_fail(&r->scan, "$bytes is not base64");
    }
    nl_field number = {.type = NL_TYPE_STRING, .string = text};
    double value;
    if (!nl_field_double(&number, &value))
        return json_fail(&r->scan, "$double is not a number");
    nl_field *field = builder_add_key(r->builder, key, r->s);
    field->type = NL_TYPE_DOUBLE;
    field->double_value = value;
    return true;
}

static bool json_fields_read_value(json_fields *r, const builder_key *key, int depth);

static bool json_fields_read_value_of(json_fields *r, nl_string name, int depth)
{
    builder_key key = builder_key_of(name);
    return json_fields_read_value(r, &key, depth);
}

/* Reads a nested object after its {. Returns false on failure. */
static bool json_fields_read_object(json_fields *r, const builder_key *key, int depth)
{
    bool first = true;
    nl_string inner = {0}, name = {0};
    if (depth == JSON_DEPTH)
        return json_fail(&r->scan, "objects are nested too deeply");
    while (json_next(&r->scan, '}', &first)) {
        if (!json_key(&r->scan, &inner))
            return false;
        if (json_peek(&r->scan) == '"' && (nl_string_is(inner, "$bytes") || nl_string_is(inner, "$double"))) {
            if (!json_fields_read_special(r, key, inner))
                return false;
        } else if (!json_fields_join(r, key->text, inner, &name) || !json_fields_read_value_of(r, name, depth + 1)) {
            return false;
        }
    }
    return r->scan.error == NULL;
}

static bool json_fields_read_value(json_fields *r, const builder_key *key, int depth)
{
    nl_string text;
    switch (json_peek(&r->scan)) {
    case '"':
        return json_string(&r->scan, &text) && json_fields_read_text(r, key, text);
    case '{':
        r->scan.at++;
        return json_fields_read_object(r, key, depth);
    case '[':
        return json_any(&r->scan, &text) && json_fields_read_text(r, key, text);
    case 't':
        return json_fields_read_bool(r, key, "true", true);
    case 'f':
        return json_fields_read_bool(r, key, "false", false);
    case 'n':
        return json_word(&r->scan, "null");
    default:
        return json_fields_read_number(r, key);
    }
}

bool json_take_value(json_fields *r, nl_string key)
{
    return json_fields_read_value_of(r, key, 1);
}

/* ---- keys ---- */

static bool begins_as(const json_scan *j, const json_known_key *k)
{
    enum { BLOCK = 16 };
    const char *at = j->at, *text = k->text;
    size_t left = k->size;
    for (; left > BLOCK; at += BLOCK, text += BLOCK, left -= BLOCK)
        if (!nl_begins_as(at, text, BLOCK, j->end))
            return false;
    return k->size > 0 && nl_begins_as(at, text, left, j->end);
}

/*
 * Stores a key and the bytes around it, [at, end), for the next records. Does nothing if they are too long or the key
 * has escapes.
 */
static void know(json_known_key *k, const char *at, const char *end, const builder_key *key)
{
    size_t size = (size_t)(end - at);
    if (size > sizeof k->text || key->text.data < at || key->text.data >= end)
        return;
    memcpy(k->text, at, size);
    k->size = (uint8_t)size;
    k->at = (uint8_t)(key->text.data - at);
    k->key_size = (uint8_t)key->text.size;
    k->name_size = (uint8_t)key->name.size;
    k->is_name = key->is_name;
    k->member = key->member;
}

/*
 * Reads the key of the next member, whose index is `place`, and the colon. Returns false at the end of the object and
 * on failure.
 */
static bool json_fields_read_key(json_fields *r, size_t place, builder_key *key)
{
    json_scan *j = &r->scan;
    json_known_key *k = place < sizeof r->known / sizeof r->known[0] ? &r->known[place] : NULL;
    const char *start = j->at;
    if (k != NULL && begins_as(j, k)) {
        const char *text = start + k->at;
        *key = (builder_key){{text, k->key_size}, {text, k->name_size}, k->member, k->is_name};
        j->at += k->size;
        return true;
    }
    nl_string text;
    bool first = place == 0;
    if (!json_next(j, '}', &first) || !json_key(j, &text))
        return false;
    *key = builder_key_of(text);
    if (k != NULL)
        know(k, start, j->at, key);
    return true;
}

bool json_take_members(json_fields *r)
{
    json_scan *j = &r->scan;
    builder_key key;
    if (!json_take(j, '{'))
        return json_fail(j, "expected an object");
    for (size_t place = 0; json_fields_read_key(r, place, &key); place++)
        if (!json_fields_read_value(r, &key, 1))
            return false;
    return j->error == NULL;
}
