/*
 * Writes OpenTelemetry logs (OTLP) as JSON or protobuf. A request is an ExportLogsServiceRequest. In JSON, a request is
 * one line. In protobuf, a request follows its size in four bytes.
 *
 * Consecutive records from the same source share a request.
 */
#include "config.h"

#include "convert/otlp_encode.h"

#include <endian.h>
#include <string.h>

enum { REQUEST_RECORDS = 100, SIZE_SIZE = 4 };

typedef struct otlp_writer {
    exporter base;
    otlp_encoder encoder;
    size_t start;   /* protobuf: offset in the sink's bytes of the open request's size */
    unsigned count; /* number of records in the open request; 0 if no request is open */
} otlp_writer;

static void otlp_write_open_json(exporter *base)
{
    ((otlp_writer *)base)->encoder.json = true;
}

static void otlp_write_close_writer(exporter *base)
{
    otlp_writer *w = (otlp_writer *)base;
    otlp_encoder_free(&w->encoder);
}

static void end_request(otlp_writer *w, nl_buffer *out)
{
    if (w->count == 0)
        return;
    w->count = 0;
    otlp_end_source(&w->encoder);
    if (w->encoder.json) {
        JSON_PUT(out, "\n");
    } else {
        uint32_t size = htobe32((uint32_t)(out->size - w->start - SIZE_SIZE));
        memcpy(out->data + w->start, &size, SIZE_SIZE);
    }
}

/* Opens a request for the record's source, unless the open request has the same source and is not full. */
static void begin_request(otlp_writer *w, const nl_record *record, nl_buffer *out)
{
    if (w->count > 0 && w->count < REQUEST_RECORDS && otlp_is_source(&w->encoder, record)) {
        w->count++;
        return;
    }
    end_request(w, out);
    w->count = 1;
    w->start = out->size;
    if (!w->encoder.json)
        nl_buffer_append(out, "\0\0\0\0", SIZE_SIZE);
    otlp_begin_source(&w->encoder, false, record);
}

static void otlp_write_put(exporter *base, const nl_record *record, bool typed, sink *s)
{
    otlp_writer *w = (otlp_writer *)base;
    w->encoder.out = &s->bytes;
    w->encoder.s = s;
    w->encoder.typed = typed;
    begin_request(w, record, &s->bytes);
    otlp_encode_log(&w->encoder, record);
}

static void otlp_write_flush(exporter *base, sink *s)
{
    end_request((otlp_writer *)base, &s->bytes);
}

const exporter_kind otlp_exporter = {
    .name = "otlp",
    .what = "OpenTelemetry logs (OTLP) as JSON lines",
    .size = sizeof(otlp_writer),
    .open = otlp_write_open_json,
    .close = otlp_write_close_writer,
    .put = otlp_write_put,
    .flush = otlp_write_flush,
};

const exporter_kind otlp_proto_exporter = {
    .name = "otlp-proto",
    .what = "OpenTelemetry logs (OTLP) as protobuf; each request begins with its size (4 bytes)",
    .size = sizeof(otlp_writer),
    .close = otlp_write_close_writer,
    .put = otlp_write_put,
    .flush = otlp_write_flush,
};
