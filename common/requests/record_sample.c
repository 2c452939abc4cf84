#include "config.h"

#include "requests/record_sample.h"

#include "record/format.h"
#include "requests/infer.h"

#include <string.h>

enum { RECORDS_MAX = 100000, FIELDS_MAX = 1 << 20, SIZE_MAX_BYTES = 64 << 20 };

bool record_sample_add(record_sample *s, const nl_record *record)
{
    size_t begin = s->packed.size;
    uint32_t size = 0;
    nl_buffer_append(&s->packed, &size, sizeof size);
    if (!nl_record_pack(record, &s->packed)) {
        s->packed.size = begin;
        return false;
    }
    size = (uint32_t)(s->packed.size - begin - sizeof size);
    memcpy(s->packed.data + begin, &size, sizeof size);
    s->record_count++;
    s->field_count += record->field_count;
    return true;
}

bool record_sample_is_full(const record_sample *s)
{
    return s->record_count >= RECORDS_MAX || s->field_count >= FIELDS_MAX || s->packed.size >= SIZE_MAX_BYTES;
}

void record_sample_walk(const record_sample *s, void (*take)(void *user, const nl_record *record), void *user)
{
    nl_record *record = nl_record_new();
    uint32_t size;
    for (size_t at = 0; at < s->packed.size; at += size) {
        memcpy(&size, s->packed.data + at, sizeof size);
        at += sizeof size;
        if (nl_record_unpack(record, s->packed.data + at, size) == NL_OK)
            take(user, record);
    }
    nl_record_free(record);
}

static void add_to_trace(void *user, const nl_record *record)
{
    trace_add(user, record);
}

drawing *record_sample_infer(const record_sample *s, const char *const *ids)
{
    trace *t = trace_new();
    record_sample_walk(s, add_to_trace, t);
    trace_sort(t);
    drawing *d = infer_drawing_by(t, ids);
    trace_free(t);
    return d;
}

void record_sample_free(record_sample *s)
{
    nl_buffer_free(&s->packed);
    *s = (record_sample){0};
}
