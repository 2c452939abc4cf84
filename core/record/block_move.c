#include "config.h"

#include "record/block_move.h"

#include "base/memory.h"
#include "record/block_read_internal.h"

#include <stdlib.h>
#include <string.h>

enum { DEFINITIONS_MAX = 2 << 20 }; /* maximum size of all definitions, in bytes */

/* The index of a source or shape in the writer's block. */
typedef struct placed {
    uint64_t block; /* number of the block, from 1; 0: in no block yet */
    unsigned place;
} placed;

typedef struct moved_source {
    placed placed;
    nl_string host, prog;
} moved_source;

typedef struct moved_shape {
    placed placed;
    moved_source *source;
    nl_block_shape shape;
    size_t size; /* maximum size in bytes of the definitions of the shape and its source */
    nl_string names[];
} moved_shape;

/*
 * The indices are used only by the reading thread, and the members named `placed` only by the writing thread. Sources
 * and shapes do not move in memory, and all their other members are constant.
 */
struct nl_block_shapes {
    moved_source *sources[NL_MOVED_SHAPES_MAX];
    moved_shape *shapes[NL_MOVED_SHAPES_MAX];
    uint32_t source_count, shape_count;
    nl_block_index source_index, shape_index;
    nl_buffer source_definitions, shape_definitions, scratch;
    uint32_t numbers[NL_BLOCK_SHAPES_MAX]; /* numbers of the shapes of the current block */
};

nl_block_shapes *nl_block_shapes_new(void)
{
    return nl_memory_check(calloc(1, sizeof(nl_block_shapes)));
}

void nl_block_shapes_free(nl_block_shapes *shapes)
{
    if (shapes == NULL)
        return;
    for (uint32_t i = 0; i < shapes->source_count; i++)
        free(shapes->sources[i]);
    for (uint32_t i = 0; i < shapes->shape_count; i++)
        free(shapes->shapes[i]);
    free(shapes->source_index.slots);
    free(shapes->shape_index.slots);
    nl_buffer_free(&shapes->source_definitions);
    nl_buffer_free(&shapes->shape_definitions);
    nl_buffer_free(&shapes->scratch);
    free(shapes);
}

/* ---- reading ---- */

static bool append_string(nl_buffer *out, nl_string string)
{
    uint32_t size = (uint32_t)string.size;
    return nl_buffer_append(out, &size, sizeof size) && nl_buffer_append(out, string.data, string.size);
}

/* Copies a string to *at, and moves *at to the end of the copy. Returns the copy. */
static nl_string copy_string(char **at, nl_string string)
{
    nl_string copy = {*at, string.size};
    if (string.size > 0)
        memcpy(*at, string.data, string.size);
    *at += string.size;
    return copy;
}

/*
 * Returns the number of the definition in `scratch`, which is `count` if the definition is new. Returns
 * NL_BLOCK_NO_PLACE if the table is full or memory runs out.
 */
static unsigned find_number(nl_block_shapes *s, nl_block_index *index, nl_buffer *definitions, uint32_t count)
{
    bool full = count == NL_MOVED_SHAPES_MAX ||
                s->source_definitions.size + s->shape_definitions.size + s->scratch.size > DEFINITIONS_MAX;
    return full ? NL_BLOCK_NO_PLACE : nl_block_find_or_add(index, definitions, &s->scratch, count);
}

/* Returns the number of a source, or NL_BLOCK_NO_PLACE if the table is full or memory runs out. */
static unsigned add_source(nl_block_shapes *s, const nl_block_source_view *view)
{
    s->scratch.size = 0;
    if (!append_string(&s->scratch, view->host) || !append_string(&s->scratch, view->prog))
        return NL_BLOCK_NO_PLACE;
    unsigned number = find_number(s, &s->source_index, &s->source_definitions, s->source_count);
    if (number == NL_BLOCK_NO_PLACE || number != s->source_count)
        return number;
    moved_source *source = nl_memory_check(malloc(sizeof *source + view->host.size + view->prog.size));
    if (source == NULL)
        return NL_BLOCK_NO_PLACE;
    char *at = (char *)(source + 1);
    *source = (moved_source){.host = copy_string(&at, view->host)};
    source->prog = copy_string(&at, view->prog);
    s->sources[s->source_count++] = source;
    return number;
}

static moved_shape *new_shape(moved_source *source, const nl_block_shape_view *view, const nl_field *fields)
{
    size_t strings = view->level_text.size + view->event.size, types = view->field_count * sizeof(nl_type);
    for (size_t i = 0; i < view->field_count; i++)
        strings += fields[i].name.size;
    moved_shape *shape =
        nl_memory_check(malloc(sizeof *shape + view->field_count * sizeof *shape->names + types + strings));
    if (shape == NULL)
        return NULL;
    nl_type *type = (nl_type *)(shape->names + view->field_count);
    char *at = (char *)(type + view->field_count);
    *shape = (moved_shape){
        .source = source,
        .shape = {.level = view->level, .names = shape->names, .types = type, .field_count = view->field_count},
        .size = source->host.size + source->prog.size + strings + view->field_count * (NL_VARINT_SIZE + 1) +
                8 * NL_VARINT_SIZE};
    shape->shape.level_text = copy_string(&at, view->level_text);
    shape->shape.event = copy_string(&at, view->event);
    for (size_t i = 0; i < view->field_count; i++) {
        type[i] = fields[i].type;
        shape->names[i] = copy_string(&at, fields[i].name);
    }
    return shape;
}

/* Returns the number of a shape, or NL_BLOCK_NO_PLACE if the table is full or memory runs out. */
static unsigned add_shape(nl_block_shapes *s, const nl_block_shape_view *view, const nl_field *fields)
{
    uint32_t head[] = {add_source(s, &view->source), view->level};
    s->scratch.size = 0;
    bool good = head[0] != NL_BLOCK_NO_PLACE && nl_buffer_append(&s->scratch, head, sizeof head) &&
                append_string(&s->scratch, view->level_text) && append_string(&s->scratch, view->event);
    for (size_t i = 0; i < view->field_count && good; i++)
        good = nl_buffer_append(&s->scratch, &fields[i].type, sizeof fields[i].type) &&
               append_string(&s->scratch, fields[i].name);
    unsigned number = good ? find_number(s, &s->shape_index, &s->shape_definitions, s->shape_count) : NL_BLOCK_NO_PLACE;
    if (number == NL_BLOCK_NO_PLACE || number != s->shape_count)
        return number;
    moved_shape *shape = new_shape(s->sources[head[0]], view, fields);
    if (shape == NULL)
        return NL_BLOCK_NO_PLACE;
    s->shapes[s->shape_count++] = shape;
    return number;
}

bool nl_block_shapes_add(nl_block_shapes *shapes, const nl_block_reader *reader)
{
    for (size_t i = 0; i < reader->shape_count; i++) {
        const nl_block_shape_view *view = &reader->shapes[i];
        shapes->numbers[i] = add_shape(shapes, view, reader->fields + view->first_field);
        if (shapes->numbers[i] == NL_BLOCK_NO_PLACE)
            return false;
    }
    return true;
}

/*
 * Copies a value from the block to *to, and moves *to to the end of the copy. Subtracts the size of a string from
 * *space. Returns the end of the value in the block, or NULL if *space is too small.
 */
static inline const char *move_value(const char *at, const char *end, nl_field *known, char **to, size_t *space)
{
    uint64_t code = 0;
    switch (known->type) {
    case NL_TYPE_STRING:
        at = nl_varint_get(at, end, &code);
        if (at != NULL && code > 0) {
            known->string = (nl_string){at, (size_t)code - 1};
            at += code - 1;
        }
        if (known->string.size > *space)
            return NULL;
        *space -= known->string.size;
        *to = nl_varint_put(*to, known->string.size);
        nl_private_copy(*to, known->string.data, known->string.size);
        *to += known->string.size;
        return at;
    case NL_TYPE_INT:
    case NL_TYPE_UINT:
        at = nl_varint_get(at, end, &code);
        known->uint_value += (uint64_t)nl_unzigzag(code);
        memcpy(*to, &known->uint_value, 8);
        *to += 8;
        return at;
    case NL_TYPE_DOUBLE:
        memcpy(*to, at, 8);
        *to += 8;
        return at + 8;
    case NL_TYPE_BOOL:
        *(*to)++ = *at;
        return at + 1;
    }
    return NULL; /* not reached: there are no other types */
}

nl_status nl_block_next_moved(nl_block_reader *reader, const nl_block_shapes *shapes, char *out, size_t capacity,
                              size_t *size)
{
    if (reader->left == 0)
        return NL_END;
    uint64_t place = 0, delta = 0;
    const char *at = nl_varint_get(reader->at, reader->end, &place);
    at = nl_varint_get(at, reader->end, &delta);
    const nl_block_shape_view *shape = &reader->shapes[place];
    size_t fixed = (shape->field_count + 1) * NL_VARINT_SIZE;
    if (capacity < fixed)
        return NL_FAILED;
    size_t space = capacity - fixed;
    char *to = nl_varint_put(out, shapes->numbers[place]);
    nl_field *known = reader->fields + shape->first_field;
    for (size_t i = 0; i < shape->field_count; i++)
        if ((at = move_value(at, reader->end, &known[i], &to, &space)) == NULL)
            return NL_FAILED;
    reader->at = at;
    reader->left--;
    reader->time_ns = (int64_t)((uint64_t)reader->time_ns + (uint64_t)nl_unzigzag(delta));
    *size = (size_t)(to - out);
    return NL_OK;
}

/* ---- writing ---- */

/*
 * Returns the index of the shape in the writer's block. Returns NL_BLOCK_NO_PLACE if the block cannot have more shapes
 * or memory runs out.
 */
static unsigned place_shape(nl_block_writer *w, moved_shape *shape)
{
    if (shape->placed.block == w->block_number + 1)
        return shape->placed.place;
    moved_source *source = shape->source;
    bool known = source->placed.block == w->block_number + 1;
    if (w->field_count + shape->shape.field_count > NL_BLOCK_FIELDS_MAX || w->shape_count >= NL_BLOCK_SHAPES_MAX ||
        (!known && w->source_count >= NL_BLOCK_SOURCES_MAX))
        return NL_BLOCK_NO_PLACE;
    if (!known)
        source->placed = (placed){w->block_number + 1, nl_block_add_source(w, source->host, source->prog)};
    shape->shape.source = source->placed.place;
    if (shape->shape.source == NL_BLOCK_NO_PLACE) {
        source->placed.block = 0;
        return NL_BLOCK_NO_PLACE;
    }
    unsigned place = nl_block_add_shape(w, &shape->shape);
    shape->placed = (placed){place != NL_BLOCK_NO_PLACE ? w->block_number + 1 : 0, place};
    return place;
}

bool nl_block_put_moved(nl_block_writer *w, nl_block_shapes *shapes, nl_string moved, int64_t time_ns)
{
    uint64_t number = 0;
    const char *end = moved.data + moved.size, *from = nl_varint_get(moved.data, end, &number);
    moved_shape *shape = shapes->shapes[number];
    size_t field_count = shape->shape.field_count;
    size_t bound = NL_BLOCK_RECORD_HEAD + field_count * NL_VARINT_SIZE + moved.size + shape->size, strings = 0;
    if (!nl_block_has_space(w, bound) || !nl_buffer_reserve(&w->records, bound))
        return false;
    unsigned place = place_shape(w, shape);
    if (place == NL_BLOCK_NO_PLACE)
        return false;
    char *records = w->records.data, *at = nl_block_begin_record(w, records + w->records.size, place, time_ns);
    uint64_t *before = nl_block_before(w, place), value = 0;
    for (size_t i = 0; i < field_count; i++)
        switch (shape->shape.types[i]) {
        case NL_TYPE_STRING:
            from = nl_varint_get(from, end, &value);
            at = nl_block_put_text(at, records, from, (size_t)value, &before[i], false);
            from += value;
            strings += (size_t)value;
            break;
        case NL_TYPE_INT:
        case NL_TYPE_UINT:
            memcpy(&value, from, sizeof value);
            at = nl_block_put_number(at, value, &before[i], false);
            from += 8;
            break;
        case NL_TYPE_DOUBLE:
            memcpy(at, from, 8);
            at += 8;
            from += 8;
            break;
        case NL_TYPE_BOOL:
            /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the record has a value for each field */
            *at++ = *from++;
            break;
        }
    w->records.size = (size_t)(at - records);
    w->expanded += strings;
    return true;
}
