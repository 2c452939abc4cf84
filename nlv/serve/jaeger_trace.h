/*
 * A request as a trace in the JSON of Jaeger's query API (the types Trace, Span and Process of jaeger-ui), and the
 * conditions of a search. Times have microseconds, because this JSON has no smaller unit. This module has no state.
 * Any thread may call these functions.
 */
#ifndef NLV_SERVE_JAEGER_TRACE_H
#define NLV_SERVE_JAEGER_TRACE_H

#include "convert/span_ids.h"
#include "program/json_document.h"

enum { JAEGER_TAGS_MAX = 16 };

typedef struct jaeger_tag {
    const char *name, *value;
} jaeger_tag;

/* A trace matches if one of its spans meets all conditions. */
typedef struct jaeger_search {
    const char *service, *operation; /* NULL: any */
    jaeger_tag tags[JAEGER_TAGS_MAX];
    size_t tag_count;
    int64_t shortest_ns, longest_ns; /* durations of a span */
} jaeger_search;

/*
 * Return whether the current request of a stream matches, and the time at which it starts. Call them only during a call
 * of user.request.
 */
bool jaeger_search_matches(const jaeger_search *q, request_stream *s, const stream_request *r);
int64_t jaeger_trace_start(const stream_request *r);

/* The numbers of spans and tags, and the size of the tags' texts in bytes, that an answer may still have. */
typedef struct jaeger_space {
    size_t spans, tags, bytes;
    bool is_cut; /* spans or tags were left out */
} jaeger_space;

/*
 * Returns the current request as a trace with the IDs of span_ids_choose. Leaves out the spans and tags that do not fit
 * into `space`, and subtracts the others from it. The caller owns the trace. Call it only during a call of
 * user.request.
 */
json_object *jaeger_trace_new(request_stream *s, const stream_request *r, const char *trace, const span_id *ids,
                              jaeger_space *space);

/*
 * Returns the operation of a span: its name or, for a span that stands for a whole request, "request". Such a span has
 * the tag "request" with the request's name, because a service would have too many operations otherwise.
 */
const char *jaeger_operation(const stream_span *span);

/* Returns the service of a record: its program or, without a program, "unknown". The result belongs to the record. */
nl_string jaeger_service(const nl_record *record);

/* Returns the kind of a span ("server", "client" ...), or "" if it is unknown. Any thread; the text is constant. */
const char *jaeger_span_kind(const nl_record *record);

#endif
