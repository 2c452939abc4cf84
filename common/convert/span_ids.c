#include "config.h"

#include "convert/span_ids.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void span_ids_make_trace(uint64_t next_id, char trace[OTLP_TRACE_DIGITS + 1])
{
    snprintf(trace, OTLP_TRACE_DIGITS + 1, "%016" PRIx64 "%016" PRIx64, next_id ^ UINT64_C(0x6e65746c6f676765),
             next_id);
}

void span_ids_choose(request_stream *s, const stream_request *r, uint64_t *next_id, char trace[OTLP_TRACE_DIGITS + 1],
                     span_id *ids)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    bool named = false;
    span_ids_make_trace(*next_id, trace);
    for (size_t i = 0; i < r->span_count; i++) {
        const stream_span *span = &r->spans[i];
        snprintf(ids[i].text, sizeof ids[i].text, "%016" PRIx64, (*next_id)++);
        if (span->made && span->begin == STREAM_NONE)
            continue;
        const nl_record *record = request_stream_span_record(s, span);
        nl_string id = otlp_record_id(record, OTLP_ID_SPAN, scratch);
        if (!span->made && otlp_is_id(id, OTLP_SPAN_DIGITS))
            memcpy(ids[i].text, id.data, OTLP_SPAN_DIGITS);
        id = otlp_record_id(record, OTLP_ID_TRACE, scratch);
        if (!named && otlp_is_id(id, OTLP_TRACE_DIGITS)) {
            memcpy(trace, id.data, OTLP_TRACE_DIGITS);
            named = true;
        }
    }
}

nl_string span_ids_parent(request_stream *s, const stream_request *r, size_t index, const span_id *ids,
                          char scratch[NL_FIELD_TEXT_SIZE])
{
    const stream_span *span = &r->spans[index];
    if (!span->made) {
        nl_string named = otlp_record_id(request_stream_span_record(s, span), OTLP_ID_PARENT, scratch);
        if (otlp_is_id(named, OTLP_SPAN_DIGITS))
            return named;
    }
    return span->parent != STREAM_NONE ? nl_string_of(ids[span->parent].text) : (nl_string){NULL, 0};
}
