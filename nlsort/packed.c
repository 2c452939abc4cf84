#include "config.h"

#include "packed.h"

#include "record/format.h"
#include "program/program.h"

#include <stdlib.h>
#include <string.h>

/*
 * Numbers that replace the shape number of a moved record, for the other kinds of packed lines. Their varints do not
 * contain a newline byte.
 */
enum { ENCODED = NL_MOVED_SHAPES_MAX, ESCAPED };

enum {
    ESCAPE = 27,
    ESCAPED_NEWLINE = 'n',
    MOVED_BLOCK_MAX = 2 << 20, /* bytes; the lines of records from smaller blocks are shorter than NL_LINE_LONGEST */
};

_Static_assert(NL_BLOCK_EXPANDED_MAX + MOVED_BLOCK_MAX + NL_BLOCK_SHAPE_FIELDS_MAX * NL_VARINT_SIZE < NL_LINE_LONGEST,
               "MOVED_BLOCK_MAX is too large");

/* Replaces a line without its newline with an escaped line. */
static void escape(nl_buffer *line)
{
    nl_buffer escaped = {0};
    nl_buffer_reserve(&escaped, 2 * line->size + NL_VARINT_SIZE);
    char *to = nl_varint_put(escaped.data, ESCAPED);
    for (size_t i = 0; i < line->size; i++) {
        char c = line->data[i];
        if (c == '\n' || c == ESCAPE)
            *to++ = ESCAPE;
        *to++ = c == '\n' ? ESCAPED_NEWLINE : c;
    }
    escaped.size = (size_t)(to - escaped.data);
    nl_buffer_free(line);
    *line = escaped;
}

/* Returns the original bytes of an escaped line. The caller frees the result. */
static nl_buffer unescape(const char *from, const char *end)
{
    nl_buffer bytes = {0};
    nl_buffer_reserve(&bytes, (size_t)(end - from));
    for (const char *at = from; at < end; at++) {
        bool escaped = *at == ESCAPE;
        at += escaped;
        bytes.data[bytes.size++] = escaped && *at == ESCAPED_NEWLINE ? '\n' : *at;
    }
    return bytes;
}

void packed_append(const nl_record *record, nl_buffer *line)
{
    line->size = 0;
    nl_buffer_reserve(line, NL_VARINT_SIZE);
    line->size = (size_t)(nl_varint_put(line->data, ENCODED) - line->data);
    if (!nl_record_pack(record, line))
        program_fail(PROGRAM_PROBLEM, "a record is larger than the nlb format allows; use a text format");
    if (line->size >= NL_LINE_LONGEST)
        escape(line);
    nl_buffer_append(line, "\n", 1);
}

bool packed_add_block(nl_block_shapes *shapes, nl_block_reader *block, table *t)
{
    if (block->end - block->at > MOVED_BLOCK_MAX || !nl_block_shapes_add(shapes, block))
        return false;
    size_t size, first = t->lists[0].count;
    line_list_reserve(&t->lists[0], block->left);
    while (nl_block_next_moved(block, shapes, t->text + t->used, t->reserved - t->used - 1, &size) == NL_OK)
        table_add_moved(t, block->time_ns, size);
    if (block->left > 0)
        program_fail(
            PROGRAM_PROBLEM,
            "damaged input: the records of a block are larger than its header states; netlogd --verify finds the file");
    table_add_lines(t, first);
    return true;
}

static nl_status put_encoded(nl_writer *writer, nl_record *scratch, const char *data, size_t size)
{
    nl_status status = nl_record_unpack(scratch, data, size);
    return status == NL_OK ? nl_writer_put(writer, scratch) : status;
}

nl_status packed_put(nl_writer *writer, nl_block_shapes *shapes, nl_record *scratch, nl_string line, int64_t time_ns)
{
    uint64_t kind = 0;
    const char *end = line.data + line.size, *rest = nl_varint_get(line.data, end, &kind);
    if (kind < NL_MOVED_SHAPES_MAX)
        return nl_writer_put_moved(writer, shapes, line, time_ns);
    if (kind == ENCODED)
        return put_encoded(writer, scratch, rest, (size_t)(end - rest));
    nl_buffer bytes = unescape(rest, end);
    nl_status status = packed_put(writer, shapes, scratch, (nl_string){bytes.data, bytes.size}, time_ns);
    nl_buffer_free(&bytes);
    return status;
}
