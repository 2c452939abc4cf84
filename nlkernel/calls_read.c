#include "config.h"

#include "calls_read.h"

#include "base/error.h"
#include "convert/convert.h"
#include "trace_dat.h"

#include <stdlib.h>
#include <string.h>

/* What tells a source's format comes first: so much of it is looked at. */
enum { HEAD_SIZE = 64 << 10, PIECE_SIZE = 1 << 20 };

/* ---- text of others ---- */

/* The importers want somewhere to put their records. */
typedef struct taker {
    exporter base;
    calls *calls;
} taker;

static void take(exporter *base, const nl_record *record, bool typed, sink *s)
{
    (void)typed, (void)s;
    calls_take(((taker *)base)->calls, record);
}

static const exporter_kind taker_kind = {.name = "calls", .put = take};

static const importer_kind *foreign_kind(nl_string head)
{
    static const importer_kind *const kinds[] = {&ftrace_importer, &perf_importer};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i]->detect(head.data, head.size))
            return kinds[i];
    return NULL;
}

typedef struct foreign {
    calls *calls;
    program_reading *reading;
    const char *name;
    importer *importer;
    taker taker;
    sink sink;
    uint64_t lines;
} foreign;

static void report_malformed(foreign *f)
{
    for (size_t i = 0; i < f->sink.report_count; i++) {
        const report *r = &f->sink.reports[i];
        nl_malformed what = {.source = f->name,
                             .line = f->lines + r->line,
                             .reason = f->sink.words.data + r->reason,
                             .text = {f->sink.words.data + r->text, r->text_size}};
        program_malformed(f->reading, &what);
    }
    f->sink.report_count = 0;
    f->sink.words.size = 0;
}

static void read_piece(foreign *f, const char *data, size_t size)
{
    f->importer->kind->read(f->importer, data, size, &f->sink);
    report_malformed(f);
    for (const char *at = data, *end = data + size; (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
        f->lines++;
}

static size_t whole_lines(const char *data, size_t size)
{
    const char *newline = size > 0 ? memrchr(data, '\n', size) : NULL;
    return newline != NULL ? (size_t)(newline + 1 - data) : 0;
}

/* Takes what is whole of the bytes, which it removes; at the end all of them. */
static void take_pieces(foreign *f, nl_buffer *bytes, bool all)
{
    const importer_kind *kind = f->importer->kind;
    size_t size = all                 ? bytes->size
                  : kind->cut != NULL ? kind->cut(bytes->data, bytes->size)
                                      : whole_lines(bytes->data, bytes->size);
    if (size == 0)
        return;
    read_piece(f, bytes->data, size);
    memmove(bytes->data, bytes->data + size, bytes->size - size);
    bytes->size -= size;
}

/* ---- one source ---- */

typedef struct input {
    calls *calls;
    program_reading *reading;
    const char *name;
    nl_source *source;
    nl_buffer bytes; /* read and not taken yet */
    bool ended;
} input;

/* Adds what comes next. False after having said why not; at the end ended is set. */
static bool read_more(input *in)
{
    const char *data;
    size_t size;
    nl_status status = program_source_read(in->source, &data, &size);
    in->ended = status == NL_END;
    if (status == NL_OK)
        nl_buffer_append(&in->bytes, data, size);
    else if (status == NL_AGAIN)
        program_pause();
    else if (status != NL_END)
        program_error("%s", nl_error_message());
    return status == NL_OK || status == NL_END || status == NL_AGAIN;
}

static bool read_foreign(input *in, const importer_kind *kind)
{
    static const import_about about = {.has_base = true, .base_ns = 1}; /* times count from nobody knows when */
    foreign f = {.calls = in->calls, .reading = in->reading, .name = in->name};
    f.taker = (taker){{&taker_kind}, in->calls};
    f.sink = (sink){.out = &f.taker.base, .about = &about};
    f.importer = importer_open(kind, NULL);
    bool good = true;
    while (good && !in->ended) {
        if (in->bytes.size >= PIECE_SIZE)
            take_pieces(&f, &in->bytes, false);
        good = read_more(in);
    }
    if (good)
        take_pieces(&f, &in->bytes, true);
    if (good && kind->end != NULL)
        kind->end(f.importer, &f.sink);
    report_malformed(&f);
    kind->close(f.importer);
    nl_buffer_free(&f.sink.words);
    free(f.sink.reports);
    return good;
}

static void take_decoded(input *in, nl_decoder *decoder)
{
    const nl_record *record;
    while (nl_decoder_next(decoder, &record) == NL_OK)
        calls_take(in->calls, record);
}

static bool read_log(input *in)
{
    nl_decoder *decoder = program_reading_decoder(in->reading, in->name);
    bool good = true;
    do {
        nl_decoder_feed(decoder, in->bytes.data, in->bytes.size);
        in->bytes.size = 0;
        take_decoded(in, decoder);
        good = in->ended || read_more(in);
    } while (good && (!in->ended || in->bytes.size > 0));
    nl_decoder_finish(decoder);
    take_decoded(in, decoder);
    program_reading_close_decoder(in->reading, decoder);
    return good;
}

static bool read_source(input *in)
{
    bool good = true;
    while (good && !in->ended && in->bytes.size < HEAD_SIZE)
        good = read_more(in);
    const importer_kind *kind = foreign_kind((nl_string){in->bytes.data, in->bytes.size});
    if (!good)
        return false;
    if (trace_dat_detect(in->bytes.data, in->bytes.size)) {
        while (good && !in->ended)
            good = read_more(in);
        if (good && !trace_dat_read(in->calls, in->bytes.data, in->bytes.size)) {
            program_error("%s: %s", in->name, nl_error_message());
            good = false;
        }
        return good;
    }
    return kind != NULL ? read_foreign(in, kind) : read_log(in);
}

static bool read_folder(calls *c, program_reading *reading, const char *name)
{
    program_log *log = program_log_open(reading, name, false, false);
    if (log == NULL)
        return false;
    const nl_record *record;
    nl_status status;
    while ((status = program_log_next(log, NULL, &record)) == NL_OK)
        calls_take(c, record);
    program_log_close(log);
    return status != NL_FAILED;
}

static bool read_one(calls *c, program_reading *reading, const char *name)
{
    if (program_is_folder(name))
        return read_folder(c, reading, name);
    input in = {.calls = c, .reading = reading, .name = name, .source = program_source_open(name)};
    if (in.source == NULL) {
        program_error("%s", nl_error_message());
        return false;
    }
    bool good = read_source(&in);
    nl_source_close(in.source);
    nl_buffer_free(&in.bytes);
    return good;
}

int calls_read(calls *c, program_reading *reading, char **names, size_t count)
{
    int status = PROGRAM_DONE;
    for (size_t i = 0; i < (count > 0 ? count : 1); i++)
        if (!read_one(c, reading, count > 0 ? names[i] : "-"))
            status = PROGRAM_PROBLEM;
    calls_finish(c);
    if (program_reading_finish(reading) != PROGRAM_DONE)
        status = PROGRAM_PROBLEM;
    if (c->total == 0) {
        program_error("there are no calls of functions in it: nlkernel record --functions makes them");
        status = PROGRAM_PROBLEM;
    }
    return status;
}
