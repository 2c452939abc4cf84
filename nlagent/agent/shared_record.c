#include "config.h"

#include "agent/shared_record.h"

#include "base/memory.h"
#include "record/text.h"

#include <stdlib.h>
#include <string.h>

static uint64_t decoded_count;

shared_record *shared_record_new(const char *line, size_t size)
{
    shared_record *r = nl_memory_check(malloc(sizeof *r + size + 1));
    *r = (shared_record){.users = 1, .received_ns = nl_time_now_ns(), .size = size + 1};
    memcpy(r->line, line, size);
    r->line[size] = '\n';
    return r;
}

shared_record *shared_record_encode(const nl_record *record)
{
    nl_buffer line = {0};
    nl_record_encode(record, NL_FORMAT_ULM, &line);
    shared_record *r = shared_record_new(line.data, line.size - 1);
    nl_buffer_free(&line);
    return r;
}

const nl_record *shared_record_decode(shared_record *r)
{
    const char *end = r->line + r->size - 1;
    size_t used;
    if (r->decoded != NULL)
        return r->decoded;
    decoded_count++;
    nl_record *record = nl_record_new();
    if (nl_text_decode(nl_text_format_of(NL_FORMAT_ULM), record, NL_FRACTION_DECIMAL, r->line, end, end, &used) !=
        NL_OK) {
        nl_record_free(record);
        return NULL;
    }
    return r->decoded = record;
}

void shared_record_release(shared_record *r)
{
    if (r == NULL || --r->users > 0)
        return;
    nl_record_free(r->decoded);
    free(r);
}

uint64_t shared_record_decoded_count(void)
{
    return decoded_count;
}
