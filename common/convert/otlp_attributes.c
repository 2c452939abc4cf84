/*
 * Encodes values and attributes. In records, a map is a field for each of its members, and an array is JSON text. The
 * field OTLP_KINDS names the maps and arrays, so that the encoder can write them as maps and arrays again.
 */
#include "config.h"

#include "base/text.h"
#include "convert/otlp_put.h"

#include "base/memory.h"
#include "convert/json_scan.h"

#include <math.h>
#include <stdlib.h>

/* ---- values ---- */

static void encode_any_bytes(otlp_encoder *e, nl_string bytes)
{
    if (!e->json) {
        encode_bytes(e, VALUE_BYTES, bytes);
        return;
    }
    encode_name(e, NAME("bytesValue"));
    ENCODE_PUT(e->out, "\"");
    base64_put(e->out, bytes);
    ENCODE_PUT(e->out, "\"");
}

void otlp_put_any_text(otlp_encoder *e, nl_string text)
{
    if (!encode_text(e, NAME("stringValue"), VALUE_STRING, text))
        encode_any_bytes(e, text);
}

static void encode_double(otlp_encoder *e, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    encode_fixed(e, VALUE_DOUBLE, bits);
}

/* Encodes text that json_is_number accepts. */
static void encode_any_number(otlp_encoder *e, nl_string text)
{
    bool is_double = memchr(text.data, '.', text.size) != NULL;
    if (e->json) {
        encode_word(e, is_double ? NAME("doubleValue") : NAME("intValue"), text.data, text.size, !is_double);
    } else if (is_double) {
        double value = 0;
        nl_number_parse_double(text, &value);
        encode_double(e, value);
    } else {
        int64_t value = 0;
        nl_number_parse_int(text, &value);
        encode_key(e, VALUE_INT, WIRE_VARINT);
        encode_varint(e->out, (uint64_t)value);
    }
}

static void encode_any_double(otlp_encoder *e, const nl_field *field)
{
    char scratch[NL_FIELD_TEXT_SIZE + 2];
    double value = field->double_value;
    if (!e->json) {
        encode_double(e, value);
        return;
    }
    bool finite = isfinite(value);
    const char *special = isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
    nl_string text = finite ? json_double_text(field, scratch) : nl_string_of(special);
    encode_word(e, NAME("doubleValue"), text.data, text.size, !finite);
}

static void encode_any_unsigned(otlp_encoder *e, const nl_field *field)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    begin_message(e, NAME("kvlistValue"), VALUE_MAP);
    begin_list(e, NAME("values"));
    begin_element(e, MAP_ENTRY);
    encode_text(e, NAME("key"), KEY, (nl_string){"uint", 4});
    begin_message(e, NAME("value"), VALUE);
    encode_text(e, NAME("stringValue"), VALUE_STRING, nl_field_text(field, scratch));
    end_message(e);
    end_message(e);
    end_list(e);
    end_message(e);
}

/* Encodes the content of an AnyValue from a value that is neither an array nor a map. */
static void encode_scalar(otlp_encoder *e, const nl_field *field)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_string text;
    switch (field->type) {
    case NL_TYPE_STRING:
        if (e->typed || !json_is_number(field->string))
            otlp_put_any_text(e, field->string);
        else
            encode_any_number(e, field->string);
        return;
    case NL_TYPE_DOUBLE:
        encode_any_double(e, field);
        return;
    case NL_TYPE_BOOL:
        text = nl_field_text(field, scratch);
        if (e->json)
            encode_word(e, NAME("boolValue"), text.data, text.size, false);
        else
            encode_small(e, NAME("boolValue"), VALUE_BOOL, field->bool_value);
        return;
    case NL_TYPE_UINT:
        if (field->uint_value > INT64_MAX) {
            encode_any_unsigned(e, field);
            return;
        }
        if (e->s != NULL)
            sink_lose(e->s, LOSS_UNSIGNED);
        break;
    case NL_TYPE_INT:
        break;
    }
    if (e->json) {
        text = nl_field_text(field, scratch);
        encode_word(e, NAME("intValue"), text.data, text.size, true);
    } else {
        encode_key(e, VALUE_INT, WIRE_VARINT);
        encode_varint(e->out, field->uint_value);
    }
}

/* ---- arrays ---- */

static char *allocate_text(void *user, size_t size)
{
    nl_buffer *text = user;
    text->size += size;
    return text->size <= text->capacity ? text->data + text->size - size : NULL;
}

static bool encode_json(otlp_encoder *e, json_scan *j, unsigned depth);

static bool encode_json_array(otlp_encoder *e, json_scan *j, unsigned depth)
{
    bool first = true, good = true;
    json_take(j, '[');
    begin_message(e, NAME("arrayValue"), VALUE_ARRAY);
    begin_list(e, NAME("values"));
    while (good && json_next(j, ']', &first)) {
        begin_element(e, ARRAY_VALUE);
        good = encode_json(e, j, depth + 1);
        end_message(e);
    }
    end_list(e);
    end_message(e);
    return good && j->error == NULL;
}

/*
 * Encodes {"$bytes": BASE64} or {"$double": NUMBER}, in which json_put_value writes values that JSON cannot represent.
 * Returns false, and encodes and reads nothing, if the object has another form.
 */
static bool encode_json_special(otlp_encoder *e, json_scan *j)
{
    json_scan ahead = *j;
    bool first = true, good;
    nl_string key, text;
    nl_field field = {.type = NL_TYPE_STRING};
    json_take(&ahead, '{');
    if (!json_next(&ahead, '}', &first) || !json_key(&ahead, &key) || key.size == 0 || *key.data != '$' ||
        json_peek(&ahead) != '"' || !json_string(&ahead, &text) || json_next(&ahead, '}', &first))
        return false;
    if (nl_string_is(key, "$bytes")) {
        char *bytes = ahead.allocate(ahead.user, text.size);
        size_t size = bytes != NULL ? base64_get(text, bytes) : SIZE_MAX;
        good = size != SIZE_MAX;
        if (good)
            encode_any_bytes(e, (nl_string){bytes, size});
    } else {
        field.string = text;
        good = nl_string_is(key, "$double") && nl_field_double(&field, &field.double_value);
        field.type = NL_TYPE_DOUBLE;
        if (good)
            encode_any_double(e, &field);
    }
    if (good)
        *j = ahead;
    return good;
}

static bool encode_json_object(otlp_encoder *e, json_scan *j, unsigned depth)
{
    bool first = true, good = true;
    nl_string key;
    if (encode_json_special(e, j))
        return true;
    json_take(j, '{');
    begin_message(e, NAME("kvlistValue"), VALUE_MAP);
    begin_list(e, NAME("values"));
    while (good && json_next(j, '}', &first) && json_key(j, &key)) {
        begin_element(e, MAP_ENTRY);
        encode_valid_text(e, NAME("key"), KEY, key);
        begin_message(e, NAME("value"), VALUE);
        good = encode_json(e, j, depth + 1);
        end_message(e);
        end_message(e);
    }
    end_list(e);
    end_message(e);
    return good && j->error == NULL;
}

static bool encode_json_number(otlp_encoder *e, json_scan *j)
{
    nl_string text;
    nl_field field = {.type = NL_TYPE_INT};
    if (!json_number(j, &text))
        return false;
    if (!nl_number_parse_int(text, &field.int_value)) {
        field.type = NL_TYPE_DOUBLE;
        if (!nl_number_parse_double(text, &field.double_value))
            return false;
    }
    encode_scalar(e, &field);
    return true;
}

/*
 * Encodes the content of an AnyValue from JSON. If the JSON is invalid, returns false; a part of the content may then
 * be encoded.
 */
static bool encode_json(otlp_encoder *e, json_scan *j, unsigned depth)
{
    nl_field field = {.type = NL_TYPE_BOOL};
    nl_string text;
    if (depth >= OTLP_NESTING_MAX)
        return false;
    switch (json_peek(j)) {
    case '[':
        return encode_json_array(e, j, depth);
    case '{':
        return encode_json_object(e, j, depth);
    case '"':
        if (!json_string(j, &text))
            return false;
        otlp_put_any_text(e, text);
        return true;
    case 't':
    case 'f':
        field.bool_value = json_peek(j) == 't';
        if (!json_word(j, field.bool_value ? "true" : "false"))
            return false;
        encode_scalar(e, &field);
        return true;
    case 'n':
        return json_word(j, "null");
    default:
        return encode_json_number(e, j);
    }
}

/* Encodes an array from JSON. Returns false, and encodes nothing, if the text is not a JSON array. */
static bool encode_array(otlp_encoder *e, nl_string text, unsigned depth)
{
    size_t before = e->out->size;
    unsigned messages = e->depth;
    bool comma = e->comma;
    e->text.size = 0;
    nl_buffer_reserve(&e->text, 2 * text.size); /* space for the strings, and for their decoded bytes */
    json_scan j = {.at = text.data, .end = text.data + text.size, .allocate = allocate_text, .user = &e->text};
    if (json_peek(&j) == '[' && encode_json(e, &j, depth) && json_peek(&j) == '\0')
        return true;
    e->out->size = before;
    e->depth = messages;
    e->comma = comma;
    return false;
}

/* ---- attributes ---- */

static bool next_word(nl_string *text, nl_string *word)
{
    while (text->size > 0 && *text->data == ' ')
        *text = (nl_string){text->data + 1, text->size - 1};
    const char *end = text->size > 0 ? memchr(text->data, ' ', text->size) : NULL;
    *word = (nl_string){text->data, end != NULL ? (size_t)(end - text->data) : text->size};
    *text = (nl_string){text->data + word->size, text->size - word->size};
    return word->size > 0;
}

/* Removes the next NAME=KIND from *kinds. Returns false if *kinds has no further pair. */
static bool next_kind(nl_string *kinds, nl_string *name, nl_string *kind)
{
    nl_string word;
    while (next_word(kinds, &word)) {
        const char *sign = memchr(word.data, '=', word.size);
        if (sign == NULL)
            continue;
        *name = (nl_string){word.data, (size_t)(sign - word.data)};
        *kind = (nl_string){sign + 1, word.size - name->size - 1};
        return true;
    }
    return false;
}

static nl_string find_kind(nl_string kinds, nl_string field)
{
    nl_string name, kind;
    while (next_kind(&kinds, &name, &kind))
        if (name.size == field.size && memcmp(name.data, field.data, name.size) == 0)
            return kind;
    return (nl_string){"", 0};
}

static bool is_member_of(nl_string field, nl_string map)
{
    return field.size > map.size && field.data[map.size] == '.' && memcmp(field.data, map.data, map.size) == 0;
}

/*
 * Considers the maps that contain a field and whose names have at least `prefix` bytes. Returns the name of the
 * outermost of these maps. Returns an empty text if there is no such map.
 */
static nl_string find_map(nl_string kinds, nl_string field, size_t prefix)
{
    nl_string name, kind, found = {"", 0};
    while (next_kind(&kinds, &name, &kind))
        if (name.size >= prefix && nl_string_is(kind, "map") && is_member_of(field, name) &&
            (found.size == 0 || name.size < found.size))
            found = name;
    return found;
}

static void encode_any(otlp_encoder *e, const nl_field *field, nl_string kind, unsigned depth)
{
    bool text = field->type == NL_TYPE_STRING;
    if (text && nl_string_is(kind, "array") && encode_array(e, field->string, depth))
        return;
    if (text && nl_string_is(kind, "bytes")) {
        encode_any_bytes(e, field->string);
    } else if (text && nl_string_is(kind, "map") && nl_string_is(field->string, "{}")) {
        begin_message(e, NAME("kvlistValue"), VALUE_MAP);
        end_message(e);
    } else if (!text || field->string.size > 0 || !nl_string_is(kind, "empty")) {
        encode_scalar(e, field);
    }
}

/* Appends a key and, for the second and later fields with this name in a message, "#" and a number. */
static void put_key(otlp_encoder *e, nl_string key, uint32_t number)
{
    nl_buffer_append(e->out, key.data, key.size);
    if (number > 1) {
        char digits[NUMBER_SIZE];
        ENCODE_PUT(e->out, "#");
        encode_put(e->out, digits, nl_number_format_uint(number, digits));
    }
}

/* Encodes a field's key, which is its name without the first `prefix` bytes. */
static void encode_key_of(otlp_encoder *e, nl_string name, size_t prefix)
{
    uint32_t number = keys_count(&e->keys, name) - (member_of(name) != MEMBER_NONE);
    nl_string key = {name.data + prefix, name.size - prefix};
    if (e->json) {
        encode_name(e, NAME("key"));
        ENCODE_PUT(e->out, "\"");
        put_key(e, key, number);
        ENCODE_PUT(e->out, "\"");
    } else {
        encode_open(e, KEY);
        put_key(e, key, number);
        encode_close(e);
    }
}

void otlp_put_attribute(otlp_encoder *e, unsigned list, const char *key, nl_string text)
{
    begin_element(e, list);
    encode_text(e, NAME("key"), KEY, nl_string_of(key));
    begin_message(e, NAME("value"), VALUE);
    otlp_put_any_text(e, text);
    end_message(e);
    end_message(e);
}

static void put_fields(otlp_encoder *e, unsigned list, const otlp_fields *f, size_t begin, size_t end, size_t prefix,
                       unsigned depth)
{
    for (size_t i = begin; i < end;) {
        nl_string name = f->fields[i]->name, map = {"", 0};
        if (f->kinds.size > 0 && depth < OTLP_NESTING_MAX)
            map = find_map(f->kinds, name, prefix);
        begin_element(e, list);
        if (map.size == 0) {
            encode_key_of(e, name, prefix);
            begin_message(e, NAME("value"), VALUE);
            encode_any(e, f->fields[i], find_kind(f->kinds, name), depth);
            i++;
        } else {
            size_t first = i;
            while (i < end && is_member_of(f->fields[i]->name, map))
                i++;
            encode_valid_text(e, NAME("key"), KEY, (nl_string){map.data + prefix, map.size - prefix});
            begin_message(e, NAME("value"), VALUE);
            begin_message(e, NAME("kvlistValue"), VALUE_MAP);
            begin_list(e, NAME("values"));
            put_fields(e, MAP_ENTRY, f, first, i, map.size + 1, depth + 1);
            end_list(e);
            end_message(e);
        }
        end_message(e);
        end_message(e);
    }
}

void otlp_put_fields(otlp_encoder *e, unsigned list, const otlp_fields *fields, size_t prefix)
{
    put_fields(e, list, fields, 0, fields->count, prefix, 0);
}

void otlp_fields_add(otlp_fields *f, const nl_field *field)
{
    NL_ARRAY_GROW(f->fields, f->count, f->capacity);
    f->fields[f->count++] = field;
}

void otlp_fields_clear(otlp_fields *f)
{
    f->count = 0;
    f->kinds = (nl_string){"", 0};
}

void otlp_fields_free(otlp_fields *f)
{
    free(f->fields);
    *f = (otlp_fields){0};
}
