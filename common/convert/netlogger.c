/* NetLogger's own formats, ULM, BP and the binary one: the library reads and writes them. */
#include "config.h"

#include "convert/convert.h"
#include "record/encoder.h"
#include "record/format.h"

#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

typedef struct netlogger_importer {
    importer base;
    sink *s; /* while read is running */
} netlogger_importer;

static importer *open_kind(const importer_kind *kind)
{
    netlogger_importer *i = calloc(1, sizeof *i);
    if (i == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    i->base.kind = kind;
    return &i->base;
}

static importer *open_ulm(void *shared)
{
    (void)shared;
    return open_kind(&ulm_importer);
}

static importer *open_bp(void *shared)
{
    (void)shared;
    return open_kind(&bp_importer);
}

static importer *open_nlb(void *shared)
{
    (void)shared;
    return open_kind(&nlb_importer);
}

static void close_importer(importer *i)
{
    free(i);
}

static void on_malformed(void *user, const nl_malformed *what)
{
    netlogger_importer *i = user;
    sink_malformed(i->s, what->line, what->offset, what->reason, what->text.data, what->text.size);
}

static void read_records(importer *base, const char *data, size_t size, sink *s)
{
    netlogger_importer *i = (netlogger_importer *)base;
    i->s = s;
    nl_decoder_options options = {.format = base->kind->format,
                                  .fraction = s->fraction,
                                  .max_record_size = 1 << 24,
                                  .on_malformed = on_malformed,
                                  .user = i};
    nl_decoder *decoder = nl_decoder_new(&options);
    if (size > 0)
        nl_decoder_feed(decoder, data, size);
    nl_decoder_finish(decoder);
    const nl_record *record;
    while (!s->stopped && nl_decoder_next(decoder, &record) == NL_OK)
        sink_put(s, record, record->raw.data == NULL && record->raw_format == NL_FORMAT_UNKNOWN);
    s->unterminated += nl_decoder_get_stats(decoder)->unterminated;
    nl_decoder_free(decoder);
}

static bool detect(const char *data, size_t size)
{
    return nl_format_detect(data, size) != NL_FORMAT_UNKNOWN;
}

const importer_kind ulm_importer = {
    .name = "ulm",
    .what = "NetLogger's text, DATE=... HOST=... (a log may mix ulm, bp and nlb: they are told line by line)",
    .blocks = true,
    .detect = detect,
    .open = open_ulm,
    .close = close_importer,
    .read = read_records,
};

const importer_kind bp_importer = {
    .name = "bp",
    .what = "NetLogger 4's text, ts=... event=...",
    .blocks = true,
    .open = open_bp,
    .close = close_importer,
    .read = read_records,
};

const importer_kind nlb_importer = {
    .name = "nlb",
    .what = "NetLogger's binary format",
    .blocks = true,
    .open = open_nlb,
    .close = close_importer,
    .read = read_records,
};

/* ---- writing ---- */

typedef struct netlogger_exporter {
    exporter base;
    nl_encoder *encoder; /* of blocks; NULL: text */
    nl_format format;
} netlogger_exporter;

static exporter *open_exporter(const exporter_kind *kind, nl_format format)
{
    netlogger_exporter *e = calloc(1, sizeof *e);
    if (e == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    e->base.kind = kind;
    nl_encoder_options options = {.format = format, .canonical = true};
    e->encoder = nl_encoder_new(&options);
    e->format = format;
    return &e->base;
}

static exporter *open_ulm_exporter(void *shared)
{
    (void)shared;
    return open_exporter(&ulm_exporter, NL_FORMAT_ULM);
}

static exporter *open_bp_exporter(void *shared)
{
    (void)shared;
    return open_exporter(&bp_exporter, NL_FORMAT_BP);
}

static exporter *open_nlb_exporter(void *shared)
{
    (void)shared;
    return open_exporter(&nlb_exporter, NL_FORMAT_NLB);
}

static void close_exporter(exporter *base)
{
    netlogger_exporter *e = (netlogger_exporter *)base;
    nl_encoder_free(e->encoder);
    free(e);
}

static bool is_empty(nl_string text)
{
    return text.data != NULL && text.size == 0;
}

static void put(exporter *base, const nl_record *record, bool typed, sink *s)
{
    (void)typed;
    netlogger_exporter *e = (netlogger_exporter *)base;
    if (e->format == NL_FORMAT_NLB &&
        (is_empty(record->host) || is_empty(record->prog) || is_empty(record->event) || is_empty(record->level_text)))
        sink_lose(s, LOSS_EMPTY);
    if (nl_encoder_put(e->encoder, record) != NL_OK)
        sink_lose(s, LOSS_RECORDS);
}

static void flush(exporter *base, sink *s)
{
    nl_encoder_finish(((netlogger_exporter *)base)->encoder, &s->bytes);
}

const exporter_kind ulm_exporter = {
    .name = "ulm",
    .what = "NetLogger's text, DATE=... HOST=...",
    .text_only = true,
    .open = open_ulm_exporter,
    .close = close_exporter,
    .put = put,
    .flush = flush,
};

const exporter_kind bp_exporter = {
    .name = "bp",
    .what = "NetLogger 4's text, ts=... event=...",
    .text_only = true,
    .open = open_bp_exporter,
    .close = close_exporter,
    .put = put,
    .flush = flush,
};

const exporter_kind nlb_exporter = {
    .name = "nlb",
    .what = "NetLogger's binary format",
    .open = open_nlb_exporter,
    .close = close_exporter,
    .put = put,
    .flush = flush,
};
