#include "config.h"

#include "convert.h"

#include "kallsyms.h"

#include "base/text.h"
#include "record/block_write.h"
#include "record/record_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The kernel's KSYM_NAME_LEN. */
enum { FUNCTION_NAME_MAX = 512 };

size_t convert_size_max(const kernel_event *event, size_t size)
{
    size_t names = event->symbols != NULL ? FUNCTION_NAME_MAX : 0;
    return event->field_count * (NL_VARINT_SIZE + 2 * size + names);
}

/* Returns the bytes of a dynamic field, or an empty string if they are outside of the record. */
static nl_string find_dynamic(const event_field *field, const char *data, size_t size)
{
    uint32_t word;
    memcpy(&word, data + field->offset, sizeof word);
    size_t offset = word & 0xffff, length = word >> 16;
    if (field->relative)
        offset += field->offset + sizeof word;
    if (offset > size || length > size - offset)
        return (nl_string){data, 0};
    return (nl_string){data + offset, length};
}

/* Returns the value of an integer or Boolean field, sign-extended if its type is signed. */
static inline uint64_t read_number(const event_field *field, const char *data)
{
#define READ(field_kind, c_type)                                                                                       \
    case field_kind: {                                                                                                 \
        c_type number;                                                                                                 \
        memcpy(&number, data + field->offset, sizeof number);                                                          \
        return (uint64_t)number;                                                                                       \
    }
    switch (field->kind) {
        READ(FIELD_INT8, int8_t)
        READ(FIELD_INT16, int16_t)
        READ(FIELD_INT32, int32_t)
        READ(FIELD_INT64, int64_t)
        READ(FIELD_UINT8, uint8_t)
        READ(FIELD_UINT16, uint16_t)
        READ(FIELD_UINT32, uint32_t)
        READ(FIELD_UINT64, uint64_t)
    default:
        return data[field->offset] != 0;
    }
#undef READ
}

/* Returns the value of a text field. For the address of an unknown function, writes the address in hexadecimal into
 * `digits` and returns that text. */
static nl_string read_text(const kernel_event *event, const event_field *field, const char *data, size_t size,
                           char digits[24])
{
    nl_string text = {data + field->offset, field->size};
    if (field->kind == FIELD_FUNCTION) {
        uint64_t address;
        memcpy(&address, data + field->offset, sizeof address);
        text = event->symbols != NULL ? kallsyms_find(event->symbols, address) : (nl_string){NULL, 0};
        if (text.data != NULL && text.size <= FUNCTION_NAME_MAX)
            return text;
        return (nl_string){digits, (size_t)snprintf(digits, 24, "0x%" PRIx64, address)};
    }
    if (field->kind == FIELD_DYNAMIC_TEXT)
        text = find_dynamic(field, data, size);
    text.size = strnlen(text.data, text.size);
    return text;
}

static nl_string read_bytes(const event_field *field, const char *data, size_t size)
{
    return field->kind == FIELD_BYTES ? (nl_string){data + field->offset, field->size}
                                      : find_dynamic(field, data, size);
}

static char *put_hexadecimal(char *at, nl_string bytes)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes.size; i++) {
        *at++ = digits[(unsigned char)bytes.data[i] >> 4];
        *at++ = digits[(unsigned char)bytes.data[i] & 15];
    }
    return at;
}

/* Writes bytes in hexadecimal, and returns the end of the written text. To save time, does not compare the bytes with
 * the previous record. */
static char *put_bytes(char *at, const char *records, uint64_t *before, nl_string bytes)
{
    size_t size = 2 * bytes.size;
    at = nl_varint_put(at, size + 1);
    *before = (uint64_t)(at - records) << 32 | (uint32_t)size;
    return put_hexadecimal(at, bytes);
}

char *convert_values(char *at, const char *records, uint64_t *before, const kernel_event *event, const char *data,
                     size_t size)
{
    const event_field *end = event->fields + event->field_count;
    for (const event_field *field = event->fields; field < end; field++, before++)
        switch (field->kind) {
        case FIELD_BOOL:
            *at++ = data[field->offset] != 0;
            break;
        case FIELD_TEXT:
        case FIELD_DYNAMIC_TEXT:
        case FIELD_FUNCTION: {
            char digits[24];
            nl_string text = read_text(event, field, data, size, digits);
            at = nl_block_put_text(at, records, text.data, text.size, before, false);
            break;
        }
        case FIELD_BYTES:
        case FIELD_DYNAMIC_BYTES:
            at = put_bytes(at, records, before, read_bytes(field, data, size));
            break;
        default:
            at = nl_block_put_number(at, read_number(field, data), before, false);
        }
    return at;
}

static void convert_field(nl_record *record, const kernel_event *event, const event_field *field, const char *data,
                          size_t size)
{
    nl_field *added = nl_record_append(record);
    added->name = nl_string_of(field->name);
    added->type = event_field_type(field);
    if (added->type == NL_TYPE_BOOL) {
        added->bool_value = data[field->offset] != 0;
    } else if (added->type == NL_TYPE_UINT) {
        added->uint_value = read_number(field, data);
    } else if (added->type == NL_TYPE_INT) {
        added->int_value = (int64_t)read_number(field, data);
    } else if (field->kind == FIELD_BYTES || field->kind == FIELD_DYNAMIC_BYTES) {
        nl_string bytes = read_bytes(field, data, size);
        char *digits = nl_record_allocate(record, 2 * bytes.size + 1);
        put_hexadecimal(digits, bytes);
        added->string = (nl_string){digits, 2 * bytes.size};
    } else {
        char *digits = nl_record_allocate(record, field->kind == FIELD_FUNCTION ? 24 : 1);
        added->string = read_text(event, field, data, size, digits);
    }
}

void convert_fields(nl_record *record, const kernel_event *event, const char *data, size_t size)
{
    for (size_t i = 0; i < event->field_count; i++)
        convert_field(record, event, &event->fields[i], data, size);
}
