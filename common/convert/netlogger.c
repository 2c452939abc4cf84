/* Importers and exporters for the formats of the library. */
#include "config.h"

#include "convert/convert.h"
#include "record/encoder.h"
#include "record/format.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- reading ---- */

typedef struct netlogger_importer {
    importer base;
    sink *s; /* valid during read */
} netlogger_importer;

static void netlogger_on_malformed(void *user, const nl_malformed *what)
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
                                  .on_malformed = netlogger_on_malformed,
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

/* ---- writing ---- */

enum { GATHERED_MAX = 1 << 20 }; /* maximum number of bytes in an encoder whose sink has a drain */

typedef struct netlogger_exporter {
    exporter base;
    nl_encoder *encoder; /* NULL until the first record */
} netlogger_exporter;

static void close_exporter(exporter *base)
{
    netlogger_exporter *e = (netlogger_exporter *)base;
    nl_encoder_free(e->encoder);
}

static bool is_empty(nl_string text)
{
    return text.data != NULL && text.size == 0;
}

static void netlogger_put(exporter *base, const nl_record *record, bool typed, sink *s)
{
    (void)typed;
    netlogger_exporter *e = (netlogger_exporter *)base;
    nl_format format = base->kind->format;
    if (e->encoder == NULL)
        e->encoder = nl_encoder_new(&(nl_encoder_options){.format = format, .canonical = true});
    if (!nl_format_is_text(format) &&
        (is_empty(record->host) || is_empty(record->prog) || is_empty(record->event) || is_empty(record->level_text)))
        sink_lose(s, LOSS_EMPTY);
    if (nl_encoder_put(e->encoder, record) != NL_OK)
        sink_lose(s, LOSS_RECORDS);
    if (s->drain != NULL && nl_encoder_size(e->encoder) >= GATHERED_MAX)
        nl_encoder_finish(e->encoder, &s->bytes);
}

static void netlogger_flush(exporter *base, sink *s)
{
    netlogger_exporter *e = (netlogger_exporter *)base;
    if (e->encoder != NULL)
        nl_encoder_finish(e->encoder, &s->bytes);
}

/* ---- rows, from the table of the library ---- */

/* The importer of NL_FORMAT_UNKNOWN detects the format of each line, so a log may mix formats. */
static importer_kind importer_kinds[NL_FORMAT_COUNT];
static exporter_kind exporter_kinds[NL_FORMAT_COUNT];
static pthread_once_t made = PTHREAD_ONCE_INIT;

static void make_kinds(void)
{
    for (nl_format format = NL_FORMAT_UNKNOWN; format < NL_FORMAT_COUNT; format++) {
        const nl_format_info *info = nl_format_get_info(format != NL_FORMAT_UNKNOWN ? format : NL_FORMAT_ULM);
        importer_kinds[format] = (importer_kind){
            .name = info->name,
            .what = info->description,
            .blocks = true,
            .format = format,
            .size = sizeof(netlogger_importer),
            .read = read_records,
        };
        exporter_kinds[format] = (exporter_kind){
            .name = info->name,
            .what = info->description,
            .text_only = info->text != NULL,
            .format = format,
            .size = sizeof(netlogger_exporter),
            .close = close_exporter,
            .put = netlogger_put,
            .flush = netlogger_flush,
        };
    }
}

const importer_kind *netlogger_importer_kind(nl_format format)
{
    pthread_once(&made, make_kinds);
    return &importer_kinds[format];
}

const exporter_kind *netlogger_exporter_kind(nl_format format)
{
    pthread_once(&made, make_kinds);
    return &exporter_kinds[format];
}
