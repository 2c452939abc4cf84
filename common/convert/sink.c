#include "config.h"

#include "convert/convert.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void sink_put(sink *s, const nl_record *record, bool typed)
{
    s->seen++;
    if (s->stopped || !nl_filter_matches(s->where, record))
        return;
    const exporter_kind *kind = s->out->kind;
    s->records++;
    if (typed && kind->text_only)
        for (size_t i = 0; i < record->field_count; i++)
            s->losses[LOSS_TYPES] += record->fields[i].type != NL_TYPE_STRING;
    kind->put(s->out, record, typed, s);
}

static size_t sink_keep(sink *s, const char *data, size_t size)
{
    size_t at = s->report_text.size;
    nl_buffer_append(&s->report_text, data, size);
    return at;
}

void sink_malformed(sink *s, uint64_t line, uint64_t offset, const char *reason, const char *text, size_t size)
{
    if (s->stopped)
        return;
    NL_ARRAY_GROW(s->reports, s->report_count, s->report_capacity);
    report *r = &s->reports[s->report_count++];
    *r = (report){.line = line, .offset = offset, .text_size = size};
    r->reason = sink_keep(s, reason, strlen(reason) + 1);
    r->text = sink_keep(s, text, size);
    s->stopped = s->strict;
}

void sink_report(sink *s, program_reading *reading, const char *name, uint64_t lines, uint64_t offset)
{
    for (size_t i = 0; i < s->report_count; i++) {
        const report *r = &s->reports[i];
        nl_malformed what = {.source = name,
                             .line = r->line == 0 ? 0 : lines + r->line,
                             .offset = offset + r->offset,
                             .reason = s->report_text.data + r->reason,
                             .text = {s->report_text.data + r->text, r->text_size}};
        program_malformed(reading, &what);
    }
    s->report_text.size = s->report_count = 0;
}

void sink_free(sink *s)
{
    nl_buffer_free(&s->bytes);
    nl_buffer_free(&s->report_text);
    free(s->reports);
}

exporter *exporter_open(const exporter_kind *kind, void *shared)
{
    exporter *e = nl_memory_check(calloc(1, kind->size));
    *e = (exporter){kind, shared};
    if (kind->open != NULL)
        kind->open(e);
    return e;
}

void exporter_close(exporter *e)
{
    if (e->kind->close != NULL)
        e->kind->close(e);
    free(e);
}

importer *importer_open(const importer_kind *kind, void *shared)
{
    importer *i = nl_memory_check(calloc(1, kind->size));
    *i = (importer){kind, shared};
    if (kind->open != NULL)
        kind->open(i);
    return i;
}

void importer_close(importer *i)
{
    if (i->kind->close != NULL)
        i->kind->close(i);
    free(i);
}

/* ---- losses ---- */

void losses_report(const char *format, const uint64_t losses[LOSS_COUNT])
{
    /* the singular and plural texts that follow the number */
    static const char *const messages[LOSS_COUNT][2] = {
        [LOSS_TYPES] = {"numeric or boolean value was written as text",
                        "numeric or boolean values were written as text"},
        [LOSS_UNSIGNED] = {"unsigned integer was written as signed", "unsigned integers were written as signed"},
        [LOSS_EMPTY] = {"record was written without its empty standard fields",
                        "records were written without their empty standard fields"},
        [LOSS_NAMES] = {"field name has \"_\" instead of characters that the format cannot represent",
                        "field names have \"_\" instead of characters that the format cannot represent"},
        [LOSS_FIELDS] = {"field was left out, because it is too large or the format cannot represent it",
                         "fields were left out, because they are too large or the format cannot represent them"},
        [LOSS_TIMES] = {"time before 1970 was written as 1970", "times before 1970 were written as 1970"},
        [LOSS_RECORDS] = {"record was left out, because the format cannot represent it",
                          "records were left out, because the format cannot represent them"},
    };
    for (size_t i = 0; i < LOSS_COUNT; i++)
        if (losses[i] > 0)
            program_error("%s: %" PRIu64 " %s", format, losses[i], messages[i][losses[i] != 1]);
}
