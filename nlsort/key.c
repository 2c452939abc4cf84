#include "config.h"

#include "key.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

typedef enum key_type { TYPE_BY_CONTENT, TYPE_TIME, TYPE_NUMBER, TYPE_TEXT } key_type;

typedef struct key_field {
    char *name;
    key_type type;
    bool reverse;
} key_field;

struct key {
    key_field *fields;
    size_t count;
    bool reverse;
};

/* The first byte of an encoded field, which orders values by kind. */
enum { TAG_MISSING = 0, TAG_NUMBER = 1, TAG_NOT_A_NUMBER = 2, TAG_TEXT = 3 };

key *key_new(void)
{
    return nl_memory_check(calloc(1, sizeof(key)));
}

void key_free(key *k)
{
    for (size_t i = 0; i < k->count; i++)
        free(k->fields[i].name);
    free(k->fields);
    free(k);
}

static bool read_letter(key_field *field, char letter)
{
    switch (letter) {
    case 't':
        field->type = TYPE_TIME;
        return true;
    case 'n':
        field->type = TYPE_NUMBER;
        return true;
    case 's':
        field->type = TYPE_TEXT;
        return true;
    case 'r':
        field->reverse = true;
        return true;
    default:
        return false;
    }
}

bool key_add(key *k, const char *text)
{
    size_t size = strcspn(text, ":");
    if (size == 0)
        return nl_error_false(NL_ERROR_INVALID, "missing field name");
    key_field field = {0};
    for (const char *letter = text + size + (text[size] == ':'); *letter != '\0'; letter++)
        if (!read_letter(&field, *letter))
            return nl_error_false(NL_ERROR_INVALID,
                                  "invalid key option; use t (time), n (number), s (text) or r (descending)");
    field.name = nl_memory_check(strndup(text, size));
    k->fields = nl_memory_check(realloc(k->fields, (k->count + 1) * sizeof *k->fields));
    k->fields[k->count++] = field;
    return true;
}

void key_set_reverse(key *k, bool reverse)
{
    k->reverse = reverse;
}

bool key_is_time(const key *k)
{
    return k->count == 0;
}

static void append_big_endian(nl_buffer *out, uint64_t value)
{
    value = __builtin_bswap64(value);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    nl_buffer_append(out, &value, sizeof value);
}

static void append_int(nl_buffer *out, int64_t value)
{
    append_big_endian(out, (uint64_t)value ^ (UINT64_C(1) << 63));
}

static void append_tag(nl_buffer *out, char tag)
{
    nl_buffer_append(out, &tag, 1);
}

/*
 * Sets *value to an integer of at least 2^63, which nl_field_int rejects. Returns false if the field is not an integer
 * of this size.
 */
static bool get_large(const nl_field *field, uint64_t *value)
{
    if (field->type == NL_TYPE_UINT)
        *value = field->uint_value;
    if (field->type != NL_TYPE_STRING)
        return field->type == NL_TYPE_UINT;
    *value = 0;
    for (size_t i = 0; i < field->string.size; i++) {
        unsigned digit = (unsigned char)field->string.data[i] - (unsigned)'0';
        if (digit > 9 || __builtin_mul_overflow(*value, 10, value) || __builtin_add_overflow(*value, digit, value))
            return false;
    }
    return true;
}

/* Returns the integer part of a number as 64 bits. Among numbers with the same sign, these bits have the same order
 * as the numbers. */
static uint64_t integer_of(const nl_field *field, double value)
{
    int64_t whole;
    uint64_t large;
    if (nl_field_int(field, &whole))
        return (uint64_t)whole;
    if (get_large(field, &large))
        return large;
    if (value > -0x1p63 && value < 0x1p63)
        return (uint64_t)(int64_t)value;
    return value < 0 ? 0 : value < 0x1p64 ? (uint64_t)value : UINT64_MAX;
}

/*
 * Appends a number as eight bytes of its double and eight bytes of its integer part. Inverts the sign bit of a positive
 * double, and all bits of a negative double, so that the bytes have the order of the doubles. The integer part is
 * necessary because different integers above 2^53 can round to the same double.
 */
static void append_number(nl_buffer *out, const nl_field *field, double value)
{
    uint64_t bits;
    if (value == 0)
        value = 0; /* -0 becomes 0 */
    memcpy(&bits, &value, sizeof bits);
    append_tag(out, TAG_NUMBER);
    append_big_endian(out, bits >> 63 ? ~bits : bits | (UINT64_C(1) << 63));
    append_big_endian(out, integer_of(field, value));
}

/* Appends text. Two zero bytes mark the end of the text; a zero byte in the text becomes 0 255. */
static void append_text(nl_buffer *out, nl_string text)
{
    append_tag(out, TAG_TEXT);
    const char *at = text.data, *end = text.data + text.size;
    const char *zero;
    while (at < end && (zero = memchr(at, '\0', (size_t)(end - at))) != NULL) {
        nl_buffer_append(out, at, (size_t)(zero - at));
        nl_buffer_append(out, "\0\xff", 2);
        at = zero + 1;
    }
    nl_buffer_append(out, at, (size_t)(end - at));
    nl_buffer_append(out, "\0\0", 2);
}

static void append_time(nl_buffer *out, const nl_field *field)
{
    int64_t time_ns = 0;
    char scratch[NL_FIELD_TEXT_SIZE];
    bool known = field->type == NL_TYPE_INT; /* true for the record's own DATE, which has already been decoded */
    if (known) {
        time_ns = field->int_value;
    } else {
        nl_string text = nl_field_text(field, scratch);
        known = nl_time_parse(text.data, text.size, NL_FRACTION_DECIMAL, &time_ns) == NL_OK;
    }
    append_tag(out, known ? TAG_NUMBER : TAG_NOT_A_NUMBER);
    append_int(out, time_ns);
}

static void append_field(nl_buffer *out, const key_field *wanted, const nl_record *record)
{
    nl_field field;
    double number;
    char scratch[NL_FIELD_TEXT_SIZE];
    if (!nl_record_find(record, wanted->name, &field)) {
        append_tag(out, TAG_MISSING);
    } else if (wanted->type == TYPE_TIME) {
        append_time(out, &field);
    } else if (wanted->type != TYPE_TEXT && nl_field_double(&field, &number) && number == number) {
        append_number(out, &field, number);
    } else if (wanted->type == TYPE_NUMBER) {
        append_tag(out, TAG_NOT_A_NUMBER);
    } else {
        append_text(out, nl_field_text(&field, scratch));
    }
}

static void invert(nl_buffer *out, size_t from)
{
    for (size_t i = from; i < out->size; i++)
        out->data[i] = (char)~out->data[i];
}

void key_encode(const key *k, const nl_record *record, nl_buffer *out)
{
    size_t start = out->size;
    if (k->count == 0)
        append_int(out, record->time_ns);
    for (size_t i = 0; i < k->count; i++) {
        size_t from = out->size;
        append_field(out, &k->fields[i], record);
        if (k->fields[i].reverse)
            invert(out, from);
    }
    if (k->reverse)
        invert(out, start);
}
