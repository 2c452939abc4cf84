/* Finds the values of some fields in an open block, without building records. */
#include "config.h"

#include "base/memory.h"
#include "record/block_read.h"
#include "record/block_read_internal.h"
#include "record/varint.h"

#include <stdlib.h>
#include <string.h>

/* A field of one of the block's shapes. */
typedef struct walked_field {
    nl_field latest;    /* value of the field in the latest record of the shape */
    unsigned char name; /* index of the wanted name, or NOT_WANTED */
    bool passed;        /* `latest` was passed to `take` */
} walked_field;

enum { NOT_WANTED = NL_BLOCK_WALK_NAMES_MAX };

static unsigned char find_wanted(nl_string name, const nl_string *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (names[i].size == name.size && memcmp(names[i].data, name.data, name.size) == 0)
            return (unsigned char)i;
    return NOT_WANTED;
}

/* Returns the position after a value, or NULL. Sets *fresh to whether the value may differ from the previous value. */
static inline const char *walk_value(walked_field *f, const char *at, const char *end, bool *fresh)
{
    uint64_t number;
    *fresh = true;
    switch (f->latest.type) {
    case NL_TYPE_STRING: /* see get_text in block_read.c */
        at = nl_varint_get(at, end, &number);
        if (at == NULL || number > (size_t)(end - at) + 1)
            return NULL;
        *fresh = number > 0;
        if (number == 0)
            return at;
        f->latest.string = (nl_string){at, (size_t)number - 1};
        return at + number - 1;
    case NL_TYPE_INT:
    case NL_TYPE_UINT:
        at = nl_varint_get(at, end, &number);
        if (at != NULL)
            f->latest.uint_value += (uint64_t)nl_unzigzag(number);
        return at;
    case NL_TYPE_DOUBLE:
        if (end - at < 8)
            return NULL;
        f->latest.double_value = nl_double_get(at);
        return at + 8;
    case NL_TYPE_BOOL:
        if (at == end)
            return NULL;
        f->latest.bool_value = *at != 0;
        return at + 1;
    }
    return NULL;
}

static const char *walk_record(walked_field *fields, size_t count, const char *at, const char *end,
                               nl_block_take_value *take, void *user)
{
    bool fresh;
    for (size_t i = 0; i < count && at != NULL; i++) {
        walked_field *f = &fields[i];
        at = walk_value(f, at, end, &fresh);
        if (f->name == NOT_WANTED || at == NULL || (!fresh && f->passed))
            continue;
        f->passed = true;
        take(user, f->name, &f->latest);
    }
    return at;
}

bool nl_block_walk_values(const nl_block_reader *reader, const nl_string *names, size_t count,
                          nl_block_take_value *take, void *user)
{
    bool any = false;
    walked_field *fields = nl_memory_check(calloc(reader->field_count + 1, sizeof *fields));
    if (fields == NULL)
        return false;
    for (size_t i = 0; i < reader->field_count; i++) {
        fields[i].latest = reader->fields[i];
        fields[i].name = find_wanted(reader->fields[i].name, names, count);
        any = any || fields[i].name != NOT_WANTED;
    }
    const char *at = reader->at, *end = reader->end;
    for (uint32_t left = any ? reader->left : 0; left > 0 && at != NULL; left--) {
        uint64_t place;
        at = nl_varint_get(at, end, &place);
        if (at == NULL || place >= reader->shape_count || (at = nl_varint_skip(at, end)) == NULL) {
            at = NULL;
            break;
        }
        const nl_block_shape_view *shape = &reader->shapes[place];
        at = walk_record(fields + shape->first_field, shape->field_count, at, end, take, user);
    }
    free(fields);
    return at != NULL;
}
