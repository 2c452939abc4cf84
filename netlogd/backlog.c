#include "config.h"

#include "backlog.h"

#include "output/output.h"
#include "program/program.h"
#include "record/format_info.h"
#include "record/record_internal.h"

#include <stdlib.h>

enum {
    OWN_SIZE = 1536,       /* about what the smallest record takes */
    KEPT_LINE = 4 << 10,   /* bytes of a line whose memory is used again */
    SMALL_RECORD = 8 << 10 /* likewise of a record */
};

typedef struct entry {
    nl_record *record;                /* NULL: never used */
    nl_buffer lines[NL_FORMAT_COUNT]; /* the record in the text formats, empty until one is needed */
    size_t size;
} entry;

struct backlog {
    uint64_t first, end;
    size_t size; /* of the copies */
    entry entries[BACKLOG_RECORDS];
};

static entry *entry_of(backlog *b, uint64_t number)
{
    return &b->entries[number % BACKLOG_RECORDS];
}

/* About what a copy takes. */
static size_t copy_size(const nl_record *record)
{
    size_t size = OWN_SIZE + record->field_count * sizeof *record->fields + record->raw.size;
    if (record->raw.data == NULL)
        for (size_t i = 0; i < record->field_count; i++) {
            const nl_field *field = &record->fields[i];
            size += field->name.size + (field->type == NL_TYPE_STRING ? field->string.size : 0);
        }
    return size;
}

backlog *backlog_new(void)
{
    backlog *b = calloc(1, sizeof *b);
    if (b == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    return b;
}

void backlog_free(backlog *b)
{
    for (size_t i = 0; i < BACKLOG_RECORDS; i++) {
        nl_record_free(b->entries[i].record);
        for (int format = 0; format < NL_FORMAT_COUNT; format++)
            nl_buffer_free(&b->entries[i].lines[format]);
    }
    free(b);
}

uint64_t backlog_first(const backlog *b)
{
    return b->first;
}

uint64_t backlog_end(const backlog *b)
{
    return b->end;
}

bool backlog_is_full(const backlog *b)
{
    return b->end - b->first == BACKLOG_RECORDS || b->size >= BACKLOG_BYTES;
}

void backlog_put(backlog *b, const nl_record *record)
{
    entry *e = entry_of(b, b->end++);
    if (e->record == NULL)
        e->record = nl_record_new();
    nl_record_copy(e->record, record);
    e->size = copy_size(record);
    b->size += e->size;
}

void backlog_drop(backlog *b, uint64_t before)
{
    for (; b->first < before; b->first++) {
        entry *e = entry_of(b, b->first);
        b->size -= e->size;
        if (e->size > SMALL_RECORD)
            nl_record_trim(e->record);
        for (int i = 0; i < NL_FORMAT_COUNT; i++) {
            e->lines[i].size = 0;
            if (e->lines[i].capacity > KEPT_LINE)
                nl_buffer_free(&e->lines[i]);
        }
    }
}

const nl_record *backlog_record(const backlog *b, uint64_t number)
{
    return b->entries[number % BACKLOG_RECORDS].record;
}

nl_string backlog_line(backlog *b, uint64_t number, nl_format format)
{
    entry *e = entry_of(b, number);
    nl_buffer *line = &e->lines[format];
    if (line->size == 0) {
        output_put_line(e->record, format, line);
        e->size += line->size;
        b->size += line->size;
    }
    return (nl_string){line->data, line->size};
}
