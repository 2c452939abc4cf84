#include "config.h"

#include "convert.h"

#include "kallsyms.h"

#include "record/block_write.h"
#include "record/record_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The longest name that the kernel itself has for a function is shorter. */
enum { FUNCTION_NAME_MAX = 512 };

size_t convert_most(const kernel_event *event, size_t size)
{
    size_t names = event->symbols != NULL ? FUNCTION_NAME_MAX : 0;
    return event->field_count * (NL_VARINT_SIZE + 2 * size + names);
}

/* The bytes of a field that may lie anywhere; none when they are said to lie outside. */
static nl_string dynamic(const event_field *field, const char *data, size_t size)
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

static nl_string up_to_nul(nl_string text)
{
    text.size = strnlen(text.data, text.size);
    return text;
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

/* A string that is made on its way into the block, and is not compared with the one before. */
static char *put_bytes(char *at, const char *records, uint64_t *before, nl_string bytes)
{
    size_t size = 2 * bytes.size;
    at = nl_varint_put(at, size + 1);
    *before = (uint64_t)(at - records) << 32 | (uint32_t)size;
    return put_hexadecimal(at, bytes);
}

static char *convert_put_text(char *at, const char *records, uint64_t *before, nl_string text)
{
    text = up_to_nul(text);
    return nl_block_put_text(at, records, text.data, text.size, before, false);
}

/* The name of the function at an address; its digits, put into room, when it lies in none. */
static nl_string function_at(const kernel_event *event, const event_field *field, const char *data, char digits[24])
{
    uint64_t address;
    memcpy(&address, data + field->offset, sizeof address);
    nl_string name = event->symbols != NULL ? kallsyms_find(event->symbols, address) : (nl_string){NULL, 0};
    if (name.data != NULL && name.size <= FUNCTION_NAME_MAX)
        return name;
    return (nl_string){digits, (size_t)snprintf(digits, 24, "0x%" PRIx64, address)};
}

char *convert_values(char *at, const char *records, uint64_t *before, const kernel_event *event, const char *data,
                     size_t size)
{
#define PUT(field_kind, c_type)                                                                                        \
    case field_kind: {                                                                                                 \
        c_type number;                                                                                                 \
        memcpy(&number, data + field->offset, sizeof number);                                                          \
        at = nl_block_put_number(at, (uint64_t)number, before, false);                                                 \
        break;                                                                                                         \
    }
    const event_field *end = event->fields + event->field_count;
    for (const event_field *field = event->fields; field < end; field++, before++)
        switch (field->kind) {
            PUT(FIELD_INT8, int8_t)
            PUT(FIELD_INT16, int16_t)
            PUT(FIELD_INT32, int32_t)
            PUT(FIELD_INT64, int64_t)
            PUT(FIELD_UINT8, uint8_t)
            PUT(FIELD_UINT16, uint16_t)
            PUT(FIELD_UINT32, uint32_t)
            PUT(FIELD_UINT64, uint64_t)
        case FIELD_BOOL:
            *at++ = data[field->offset] != 0;
            break;
        case FIELD_TEXT:
            at = convert_put_text(at, records, before, (nl_string){data + field->offset, field->size});
            break;
        case FIELD_DYNAMIC_TEXT:
            at = convert_put_text(at, records, before, dynamic(field, data, size));
            break;
        case FIELD_BYTES:
            at = put_bytes(at, records, before, (nl_string){data + field->offset, field->size});
            break;
        case FIELD_DYNAMIC_BYTES:
            at = put_bytes(at, records, before, dynamic(field, data, size));
            break;
        case FIELD_FUNCTION: {
            char digits[24];
            at = convert_put_text(at, records, before, function_at(event, field, data, digits));
            break;
        }
        }
#undef PUT
    return at;
}

static void set_text(nl_field *added, nl_string text)
{
    added->type = NL_TYPE_STRING;
    added->string = text;
}

static void set_hexadecimal(nl_record *record, nl_field *added, nl_string bytes)
{
    char *digits = nl_record_allocate(record, 2 * bytes.size + 1);
    put_hexadecimal(digits, bytes);
    set_text(added, (nl_string){digits, 2 * bytes.size});
}

static void set_function(nl_record *record, nl_field *added, const kernel_event *event, const event_field *field,
                         const char *data)
{
    char digits[24];
    nl_string name = function_at(event, field, data, digits);
    if (name.data == digits) {
        char *kept = nl_record_allocate(record, name.size);
        memcpy(kept, digits, name.size);
        name.data = kept;
    }
    set_text(added, name);
}

static void convert_field(nl_record *record, const kernel_event *event, const event_field *field, const char *data,
                          size_t size)
{
    nl_field *added = nl_record_append(record);
    added->name = (nl_string){field->name, strlen(field->name)};
    added->type = event_field_type(field);
#define SET(field_kind, c_type, member)                                                                                \
    case field_kind: {                                                                                                 \
        c_type number;                                                                                                 \
        memcpy(&number, data + field->offset, sizeof number);                                                          \
        added->member = number;                                                                                        \
        break;                                                                                                         \
    }
    switch (field->kind) {
        SET(FIELD_INT8, int8_t, int_value)
        SET(FIELD_INT16, int16_t, int_value)
        SET(FIELD_INT32, int32_t, int_value)
        SET(FIELD_INT64, int64_t, int_value)
        SET(FIELD_UINT8, uint8_t, uint_value)
        SET(FIELD_UINT16, uint16_t, uint_value)
        SET(FIELD_UINT32, uint32_t, uint_value)
        SET(FIELD_UINT64, uint64_t, uint_value)
    case FIELD_BOOL:
        added->bool_value = data[field->offset] != 0;
        break;
    case FIELD_TEXT:
        set_text(added, up_to_nul((nl_string){data + field->offset, field->size}));
        break;
    case FIELD_DYNAMIC_TEXT:
        set_text(added, up_to_nul(dynamic(field, data, size)));
        break;
    case FIELD_BYTES:
        set_hexadecimal(record, added, (nl_string){data + field->offset, field->size});
        break;
    case FIELD_DYNAMIC_BYTES:
        set_hexadecimal(record, added, dynamic(field, data, size));
        break;
    case FIELD_FUNCTION:
        set_function(record, added, event, field, data);
        break;
    }
#undef SET
}

void convert_fields(nl_record *record, const kernel_event *event, const char *data, size_t size)
{
    for (size_t i = 0; i < event->field_count; i++)
        convert_field(record, event, &event->fields[i], data, size);
}
