#include "config.h"

#include "base/text.h"
#include "convert/otlp_message.h"

#include "base/memory.h"
#include "convert/json_scan.h"
#include "convert/json_text.h"
#include "convert/keys.h"
#include "convert/otlp.h"
#include "convert/protobuf.h"
#include "record/field_name.h"

#include <string.h>

bool otlp_fail(otlp_input *in, const char *error)
{
    if (in->error == NULL)
        in->error = error;
    return false;
}

static char *allocate(void *user, size_t size)
{
    return builder_bytes(user, size);
}

static json_scan scan_of(const otlp_input *in, nl_string text)
{
    return (json_scan){.at = text.data, .end = text.data + text.size, .allocate = allocate, .user = in->builder};
}

bool otlp_keep(otlp_input *in, nl_string text, nl_string *copy)
{
    char *bytes = builder_bytes(in->builder, text.size);
    if (bytes == NULL)
        return otlp_fail(in, "values are too long");
    if (text.size > 0)
        memcpy(bytes, text.data, text.size);
    *copy = (nl_string){bytes, text.size};
    return true;
}

/* ---- members ---- */

static bool pick_json(otlp_input *in, nl_string text, otlp_member *members, size_t count)
{
    json_scan j = scan_of(in, text);
    bool first = true;
    nl_string key, value;
    if (!json_take(&j, '{'))
        return otlp_fail(in, "expected an object");
    while (json_next(&j, '}', &first) && json_key(&j, &key) && json_any(&j, &value))
        for (size_t i = 0; i < count; i++)
            if (nl_string_is(key, members[i].name) && !nl_string_is(value, "null"))
                members[i].value = otlp_whole(value);
    if (j.error == NULL && json_peek(&j) != '\0')
        json_fail(&j, "text after the end of the object");
    return j.error == NULL || otlp_fail(in, j.error);
}

static bool pick_protobuf(otlp_input *in, nl_string text, otlp_member *members, size_t count)
{
    const char *at = text.data, *end = at + text.size;
    size_t i = 0; /* index of the latest member, because the next field is usually the same member or the next member */
    while (at < end) {
        const char *start = at;
        protobuf_field f;
        if (!protobuf_next(&at, end, &f))
            return otlp_fail(in, "invalid protobuf");
        size_t left = count;
        for (; left > 0 && members[i].field != f.number; left--)
            i = i + 1 < count ? i + 1 : 0;
        otlp_member *m = &members[i];
        if (left == 0 || (m->repeated && m->value.text.data != NULL))
            continue;
        nl_string content = m->repeated ? (nl_string){start, (size_t)(end - start)} : (nl_string){f.data, f.size};
        m->value = (otlp_value){content, f.value, f.number, f.wire};
    }
    return true;
}

bool otlp_pick(otlp_input *in, const otlp_value *message, otlp_member *members, size_t count)
{
    if (message->text.data == NULL)
        return true;
    if (in->json)
        return pick_json(in, message->text, members, count);
    if (message->wire != PROTOBUF_BYTES)
        return otlp_fail(in, "a protobuf field does not have the type that OTLP requires");
    return pick_protobuf(in, message->text, members, count);
}

static bool each_json(otlp_input *in, nl_string text, bool (*take)(void *user, const otlp_value *element), void *user)
{
    json_scan j = scan_of(in, text);
    bool first = true;
    nl_string value;
    if (!json_take(&j, '['))
        return otlp_fail(in, "expected an array");
    while (json_next(&j, ']', &first) && json_any(&j, &value)) {
        otlp_value element = otlp_whole(value);
        if (!take(user, &element))
            return false;
    }
    return j.error == NULL || otlp_fail(in, j.error);
}

bool otlp_each(otlp_input *in, const otlp_value *list, bool (*take)(void *user, const otlp_value *element), void *user)
{
    if (list->text.data == NULL)
        return true;
    if (in->json)
        return each_json(in, list->text, take, user);
    for (const char *at = list->text.data, *end = at + list->text.size; at < end;) {
        protobuf_field f;
        if (!protobuf_next(&at, end, &f))
            return otlp_fail(in, "invalid protobuf");
        otlp_value element = {{f.data, f.size}, f.value, f.number, f.wire};
        if (f.number == list->field && !take(user, &element))
            return false;
    }
    return true;
}

/* ---- values ---- */

bool otlp_text(otlp_input *in, const otlp_value *value, nl_string *text)
{
    *text = value->text;
    if (text->data == NULL)
        return true;
    if (!in->json)
        return value->wire == PROTOBUF_BYTES ||
               otlp_fail(in, "a protobuf field does not have the type that OTLP requires");
    json_scan j = scan_of(in, value->text);
    return *text->data != '"' || json_string(&j, text) || otlp_fail(in, j.error);
}

/* Writes the two hexadecimal digits of each byte. Returns whether all bytes are zero. */
static bool put_digits(const char *bytes, size_t size, char *digits)
{
    static const char values[] = "0123456789abcdef";
    unsigned any = 0;
    for (size_t i = 0; i < size; i++) {
        const unsigned byte = (unsigned char)bytes[i];
        any |= byte;
        digits[2 * i] = values[byte >> 4];
        digits[2 * i + 1] = values[byte & 15];
    }
    return any == 0;
}

/* Copies hexadecimal digits in lower case. Returns whether all digits are zero. */
static bool copy_digits(const char *text, size_t size, char *digits)
{
    bool zero = true;
    for (size_t i = 0; i < size; i++) {
        digits[i] = text[i] >= 'A' && text[i] <= 'F' ? (char)(text[i] | 32) : text[i];
        zero = zero && digits[i] == '0';
    }
    return zero;
}

bool otlp_id(otlp_input *in, const otlp_value *value, nl_string *text)
{
    nl_string id;
    *text = (nl_string){NULL, 0};
    if (!otlp_text(in, value, &id) || id.size == 0)
        return in->error == NULL;
    char *bytes = builder_bytes(in->builder, 2 * id.size);
    if (bytes == NULL)
        return otlp_fail(in, "values are too long");
    if (!(in->json ? copy_digits : put_digits)(id.data, id.size, bytes))
        *text = (nl_string){bytes, in->json ? id.size : 2 * id.size};
    return true;
}

bool otlp_unsigned(otlp_input *in, const otlp_value *value, uint64_t *number)
{
    nl_string digits;
    *number = value->number;
    if (value->text.data == NULL || !in->json)
        return value->wire != PROTOBUF_BYTES || value->text.data == NULL ||
               otlp_fail(in, "a protobuf field does not have the type that OTLP requires");
    if (!otlp_text(in, value, &digits))
        return false;
    return json_unsigned(digits, number) || otlp_fail(in, "expected an unsigned integer");
}

bool otlp_integer_field(otlp_input *in, const otlp_value *value, nl_field *field)
{
    nl_string digits;
    field->type = NL_TYPE_INT;
    field->int_value = (int64_t)value->number;
    if (!in->json)
        return value->wire != PROTOBUF_BYTES ||
               otlp_fail(in, "a protobuf field does not have the type that OTLP requires");
    if (!otlp_text(in, value, &digits))
        return false;
    json_number_value(digits, field);
    return true;
}

bool otlp_double_field(otlp_input *in, const otlp_value *value, nl_field *field)
{
    nl_field as_text = {.type = NL_TYPE_STRING};
    field->type = NL_TYPE_DOUBLE;
    if (!in->json) {
        memcpy(&field->double_value, &value->number, sizeof field->double_value);
        return value->wire == PROTOBUF_I64 ||
               otlp_fail(in, "a protobuf field does not have the type that OTLP requires");
    }
    if (!otlp_text(in, value, &as_text.string))
        return false;
    return nl_field_double(&as_text, &field->double_value) || otlp_fail(in, "a double is not a number");
}

typedef struct number_list {
    otlp_input *in;
    nl_buffer *out;
    bool doubles, later;
} number_list;

static bool put_number(void *user, const otlp_value *value)
{
    number_list *l = user;
    nl_field field = {.type = NL_TYPE_INT};
    if (!(l->doubles ? otlp_double_field : otlp_integer_field)(l->in, value, &field))
        return false;
    if (l->later)
        JSON_PUT(l->out, ",");
    l->later = true;
    sink none = {0};
    json_put_value(l->out, &field, true, &none);
    return true;
}

/*
 * Appends the numbers of a field. A protobuf field contains either one number or, in packed form, all numbers. Returns
 * false on failure.
 */
static bool put_packed(void *user, const otlp_value *value)
{
    number_list *l = user;
    if (l->in->json || value->wire != PROTOBUF_BYTES)
        return put_number(user, value);
    for (const char *at = value->text.data, *end = at + value->text.size; at < end;) {
        otlp_value number = {.text = value->text, .wire = PROTOBUF_I64};
        if (!protobuf_fixed(&at, end, 8, &number.number))
            return otlp_fail(l->in, "invalid protobuf");
        if (!put_number(user, &number))
            return false;
    }
    return true;
}

bool otlp_put_numbers(otlp_input *in, const otlp_value *list, bool doubles, nl_buffer *out)
{
    number_list l = {.in = in, .out = out, .doubles = doubles};
    JSON_PUT(out, "[");
    bool good = otlp_each(in, list, put_packed, &l);
    JSON_PUT(out, "]");
    return good;
}

/* ---- AnyValue ---- */

enum { STRING, BOOL, INT, DOUBLE, ARRAY, MAP, BYTES, ANY_COUNT };

static bool pick_any(otlp_input *in, const otlp_value *value, otlp_member found[ANY_COUNT])
{
    static const otlp_member members[ANY_COUNT] = {
        [STRING] = {.name = "stringValue", .field = 1}, [BOOL] = {.name = "boolValue", .field = 2},
        [INT] = {.name = "intValue", .field = 3},       [DOUBLE] = {.name = "doubleValue", .field = 4},
        [ARRAY] = {.name = "arrayValue", .field = 5},   [MAP] = {.name = "kvlistValue", .field = 6},
        [BYTES] = {.name = "bytesValue", .field = 7}};
    memcpy(found, members, sizeof members);
    return otlp_pick(in, value, found, ANY_COUNT);
}

static bool bytes_value(otlp_input *in, const otlp_value *value, nl_string *out)
{
    if (!otlp_text(in, value, out) || !in->json)
        return in->error == NULL;
    char *bytes = builder_bytes(in->builder, out->size);
    size_t size = bytes != NULL ? base64_get(*out, bytes) : SIZE_MAX;
    *out = (nl_string){bytes, size};
    return size != SIZE_MAX || otlp_fail(in, "a bytesValue is not base64");
}

/* Returns whether an AnyValue contains only a text, like most AnyValues. If so, sets *text to this text. */
static bool is_plain_text(const otlp_input *in, const otlp_value *value, nl_string *text)
{
    if (in->json || value->wire != PROTOBUF_BYTES || value->text.size == 0)
        return false;
    const char *at = value->text.data, *end = at + value->text.size;
    protobuf_field f;
    if (!protobuf_next(&at, end, &f) || at != end || f.number != 1 || f.wire != PROTOBUF_BYTES)
        return false;
    *text = (nl_string){f.data, f.size};
    return true;
}

/*
 * Sets a field from a value that is neither an array nor a map. An empty value becomes an empty text. Returns false on
 * an error.
 */
static bool scalar_value(otlp_input *in, const otlp_member m[ANY_COUNT], nl_field *field)
{
    field->type = NL_TYPE_STRING;
    field->string = (nl_string){"", 0};
    if (m[INT].value.text.data != NULL)
        return otlp_integer_field(in, &m[INT].value, field);
    if (m[DOUBLE].value.text.data != NULL)
        return otlp_double_field(in, &m[DOUBLE].value, field);
    if (m[BOOL].value.text.data != NULL) {
        field->type = NL_TYPE_BOOL;
        field->bool_value = in->json ? nl_string_is(m[BOOL].value.text, "true") : m[BOOL].value.number != 0;
        return true;
    }
    if (m[BYTES].value.text.data != NULL)
        return bytes_value(in, &m[BYTES].value, &field->string);
    return m[STRING].value.text.data == NULL || otlp_text(in, &m[STRING].value, &field->string);
}

typedef struct any_text {
    otlp_input *in;
    nl_buffer *out;
    int depth;
    bool later;
} any_text;

static bool put_any(any_text *t, const otlp_value *value);

static void put_comma(any_text *t)
{
    if (t->later)
        JSON_PUT(t->out, ",");
    t->later = true;
}

static bool put_element(void *user, const otlp_value *value)
{
    any_text *t = user;
    put_comma(t);
    return put_any(t, value);
}

/* Recognizes a protobuf KeyValue that consists of a key and a value, in this order, as nearly all do. */
static bool is_plain_pair(const otlp_input *in, const otlp_value *pair, nl_string *key, otlp_value *value)
{
    const char *at = pair->text.data, *end = at + pair->text.size;
    protobuf_field f, g;
    if (in->json || pair->wire != PROTOBUF_BYTES || pair->text.size == 0 || !protobuf_next(&at, end, &f) || at == end ||
        !protobuf_next(&at, end, &g) || at != end || f.number != 1 || f.wire != PROTOBUF_BYTES || g.number != 2)
        return false;
    *key = (nl_string){f.data, f.size};
    *value = (otlp_value){{g.data, g.size}, g.value, g.number, g.wire};
    return true;
}

static bool pick_pair(otlp_input *in, const otlp_value *pair, nl_string *key, otlp_value *value)
{
    otlp_member m[] = {{.name = "key", .field = 1}, {.name = "value", .field = 2}};
    if (is_plain_pair(in, pair, key, value))
        return true;
    if (!otlp_pick(in, pair, m, 2) || !otlp_text(in, &m[0].value, key))
        return false;
    *value = m[1].value;
    return key->data != NULL || otlp_fail(in, "an attribute has no key");
}

static bool put_pair(void *user, const otlp_value *pair)
{
    any_text *t = user;
    nl_string key;
    otlp_value value;
    if (!pick_pair(t->in, pair, &key, &value))
        return false;
    put_comma(t);
    json_put_name(t->out, key);
    JSON_PUT(t->out, ":");
    return put_any(t, &value);
}

/* Finds the repeated member `values` of an ArrayValue or a KeyValueList. Returns false on failure. */
static bool pick_values(otlp_input *in, const otlp_value *value, otlp_value *list)
{
    otlp_member m = {.name = "values", .field = 1, .repeated = true};
    bool good = otlp_pick(in, value, &m, 1);
    *list = m.value;
    return good;
}

static bool put_any(any_text *t, const otlp_value *value)
{
    otlp_member m[ANY_COUNT] = {0};
    nl_field field = {0};
    otlp_value list;
    if (t->depth == OTLP_NESTING_MAX)
        return otlp_fail(t->in, "arrays and maps are nested too deeply");
    if (!pick_any(t->in, value, m))
        return false;
    bool array = m[ARRAY].value.text.data != NULL;
    if (!array && m[MAP].value.text.data == NULL) {
        sink none = {0};
        if (!scalar_value(t->in, m, &field))
            return false;
        json_put_value(t->out, &field, true, &none);
        return true;
    }
    any_text inner = {t->in, t->out, t->depth + 1, false};
    json_put(t->out, array ? "[" : "{", 1);
    bool good = pick_values(t->in, array ? &m[ARRAY].value : &m[MAP].value, &list) &&
                otlp_each(t->in, &list, array ? put_element : put_pair, &inner);
    json_put(t->out, array ? "]" : "}", 1);
    return good;
}

typedef struct any_map {
    otlp_input *in;
    nl_string name;
    otlp_add add;
    void *user;
    int depth;
    size_t count;
} any_map;

static bool add_any(const any_map *a, const otlp_value *value);

static bool add_pair(void *user, const otlp_value *pair)
{
    any_map *outer = user;
    nl_string key;
    otlp_value value;
    outer->count++;
    if (!pick_pair(outer->in, pair, &key, &value))
        return false;
    any_map inner = {outer->in, key, outer->add, outer->user, outer->depth + 1, 0};
    if (outer->name.data != NULL) {
        char *name = builder_bytes(outer->in->builder, outer->name.size + 1 + key.size);
        if (name == NULL)
            return otlp_fail(outer->in, "values are too long");
        memcpy(name, outer->name.data, outer->name.size);
        name[outer->name.size] = '.';
        memcpy(name + outer->name.size + 1, key.data, key.size);
        inner.name = (nl_string){name, outer->name.size + 1 + key.size};
    }
    return add_any(&inner, &value);
}

/*
 * Recognizes {"values":[{"key":"uint", ...}]}, the form in which otlp_encode.c writes an integer above INT64_MAX. Sets
 * *number to the integer. Returns false if the text has another form.
 */
static bool is_large_unsigned(const otlp_input *in, nl_string text, uint64_t *number)
{
    /* In the protobuf form, each point stands for a length byte. */
    static const char json[] = "{\"values\":[{\"key\":\"uint\",\"value\":{\"stringValue\":\"", after[] = "\"}}]}",
                      protobuf[] = "\x0a.\x0a\x04uint\x12.\x0a.";
    const char *before = in->json ? json : protobuf;
    size_t begin = strlen(before), around = begin + (in->json ? sizeof after - 1 : 0);
    if (text.size <= around)
        return false;
    for (size_t i = 0; i < begin; i++)
        if (before[i] != text.data[i] && (in->json || before[i] != '.'))
            return false;
    return (in->json || (size_t)(unsigned char)text.data[begin - 1] == text.size - begin) &&
           json_unsigned((nl_string){text.data + begin, text.size - around}, number);
}

/*
 * Adds the kind of a value to in->kinds, because the value's field does not show the kind. `key` is the key of the
 * value. Omits kinds beyond OTLP_KINDS_MAX bytes.
 */
static void note_kind(otlp_input *in, nl_string key, const char *kind)
{
    bool repeated;
    nl_buffer *out = &in->kinds;
    nl_string name = key_name(key, &repeated);
    size_t size = strlen(kind);
    if (name.size == 0 || out->size + 1 + name.size + size > OTLP_KINDS_MAX)
        return;
    if (out->size > 0)
        JSON_PUT(out, " ");
    nl_buffer_append(out, name.data, name.size);
    nl_name_make_valid(out->data + out->size - name.size, name.size);
    nl_buffer_append(out, kind, size);
}

static bool add_map(const any_map *a, const otlp_value *map, nl_field *field)
{
    any_map outer = *a;
    otlp_value list;
    if (is_large_unsigned(a->in, map->text, &field->uint_value)) {
        field->type = NL_TYPE_UINT;
    } else {
        note_kind(a->in, a->name, "=map");
        if (!pick_values(a->in, map, &list) || !otlp_each(a->in, &list, add_pair, &outer))
            return false;
        field->string = (nl_string){"{}", 2};
    }
    if (field->type == NL_TYPE_UINT || outer.count == 0)
        a->add(a->user, field);
    return true;
}

static bool add_any(const any_map *a, const otlp_value *value)
{
    otlp_member m[ANY_COUNT];
    nl_field field = {.name = a->name, .type = NL_TYPE_STRING};
    if (a->depth == OTLP_NESTING_MAX)
        return otlp_fail(a->in, "arrays and maps are nested too deeply");
    if (is_plain_text(a->in, value, &field.string)) {
        a->add(a->user, &field);
        return true;
    }
    if (!pick_any(a->in, value, m))
        return false;
    if (m[MAP].value.text.data != NULL)
        return add_map(a, &m[MAP].value, &field);
    bool good;
    if (m[ARRAY].value.text.data != NULL) {
        nl_buffer text = {0};
        any_text t = {.in = a->in, .out = &text};
        note_kind(a->in, a->name, "=array");
        good = put_any(&t, value) && otlp_keep(a->in, (nl_string){text.data, text.size}, &field.string);
        nl_buffer_free(&text);
    } else {
        good = scalar_value(a->in, m, &field);
        if (m[BYTES].value.text.data != NULL && utf8_is_valid(field.string))
            note_kind(a->in, a->name, "=bytes");
        else if (field.type == NL_TYPE_STRING && m[STRING].value.text.data == NULL && m[BYTES].value.text.data == NULL)
            note_kind(a->in, a->name, "=empty");
    }
    if (good)
        a->add(a->user, &field);
    return good;
}

bool otlp_any(otlp_input *in, nl_string name, const otlp_value *value, otlp_add add, void *user)
{
    any_map a = {.in = in, .name = name, .add = add, .user = user};
    return add_any(&a, value);
}

bool otlp_attribute(otlp_input *in, const char *outer, const otlp_value *attribute, otlp_add add, void *user)
{
    any_map a = {.in = in, .add = add, .user = user};
    if (outer != NULL)
        a.name = nl_string_of(outer);
    return add_pair(&a, attribute);
}
