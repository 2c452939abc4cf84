#include "config.h"

#include "backlog.h"

#include "output/output.h"
#include "record/format.h"
#include "record/record_internal.h"

enum {
    OWN_SIZE = 1536,        /* approximate size of the smallest record in bytes */
    KEPT_LINE = 4 << 10,    /* bytes; larger lines are freed when their record is dropped */
    SMALL_RECORD = 8 << 10, /* bytes; larger records are freed when they are dropped */
};

typedef struct entry {
    nl_record *record;                /* NULL until the entry is first used */
    nl_buffer lines[NL_FORMAT_COUNT]; /* the record as text; empty until it is needed */
    size_t size;
} entry;

static struct {
    uint64_t first, end;
    size_t size; /* size of the copies in bytes */
    entry entries[BACKLOG_RECORDS];
} backlog;

static entry *entry_of(uint64_t number)
{
    return &backlog.entries[number % BACKLOG_RECORDS];
}

/* Returns the approximate size of a copy in bytes. */
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

void backlog_free(void)
{
    for (size_t i = 0; i < BACKLOG_RECORDS; i++) {
        nl_record_free(backlog.entries[i].record);
        for (int format = 0; format < NL_FORMAT_COUNT; format++)
            nl_buffer_free(&backlog.entries[i].lines[format]);
    }
}

uint64_t backlog_first(void)
{
    return backlog.first;
}

uint64_t backlog_end(void)
{
    return backlog.end;
}

bool backlog_is_full(void)
{
    return backlog.end - backlog.first == BACKLOG_RECORDS || backlog.size >= BACKLOG_BYTES;
}

void backlog_put(const nl_record *record)
{
    entry *e = entry_of(backlog.end++);
    if (e->record == NULL)
        e->record = nl_record_new();
    nl_record_copy(e->record, record);
    e->size = copy_size(record);
    backlog.size += e->size;
}

void backlog_drop(uint64_t before)
{
    for (; backlog.first < before; backlog.first++) {
        entry *e = entry_of(backlog.first);
        backlog.size -= e->size;
        if (e->size > SMALL_RECORD)
            nl_record_trim(e->record);
        for (int i = 0; i < NL_FORMAT_COUNT; i++) {
            e->lines[i].size = 0;
            if (e->lines[i].capacity > KEPT_LINE)
                nl_buffer_free(&e->lines[i]);
        }
    }
}

const nl_record *backlog_record(uint64_t number)
{
    return backlog.entries[number % BACKLOG_RECORDS].record;
}

nl_string backlog_line(uint64_t number, nl_format format)
{
    entry *e = entry_of(number);
    nl_buffer *line = &e->lines[format];
    if (line->size == 0) {
        output_put_line(e->record, format, line);
        e->size += line->size;
        backlog.size += line->size;
    }
    return (nl_string){line->data, line->size};
}
