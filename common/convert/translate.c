/* A source in a foreign format as blocks: an importer, the exporter of blocks, and what lies between them. */
#include "config.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/write_some.h"
#include "convert/convert.h"
#include "program/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    DETECT_SIZE = 64 << 10, /* bytes that tell the format */
    CHUNK_SIZE = 256 << 10, /* bytes of input that are translated at once */
    RECORD_SIZE_MAX = 64 << 20,
    REPORT_SIZE_MAX = 1 << 10, /* bytes of longer text that a report contains */
};

typedef struct translator {
    nl_source_layer base;
    program_reading *reading;
    char *name;
    import_about about;
    bool in_place;             /* the content is in the library's formats */
    bool warned;               /* about times without an origin */
    bool ended;                /* nothing more comes before end is returned */
    nl_status end;             /* the status of the source at its end */
    nl_error error;            /* if end is NL_FAILED */
    bool skipping;             /* the rest of a line that is too long */
    nl_buffer in;              /* what is not translated yet */
    size_t wanted;             /* no record is looked for in fewer bytes */
    uint64_t lines, offset;    /* of the input, before what is in in */
    const importer_kind *from; /* NULL until it is found */
    void *shared;              /* its head */
    importer *importer;        /* NULL until the head was read */
    exporter *exporter;
    sink sink;
} translator;

bool program_set_from_format(void *settings, const nl_option *row, const char *value)
{
    program_reading *reading = settings;
    const importer_kind *kind = importer_kind_find(value);
    (void)row;
    if (kind == NULL)
        return nl_error_false(NL_ERROR_INVALID, "%s: unknown format; nlconv --formats lists the formats", value);
    reading->foreign = kind->blocks ? NULL : kind;
    reading->format = kind->format;
    reading->reads_folders = kind->read_path != NULL;
    return true;
}

bool program_is_foreign(const program_reading *reading, const char *head, size_t size)
{
    if (reading->foreign != NULL || reading->format != NL_FORMAT_UNKNOWN)
        return reading->foreign != NULL;
    const importer_kind *kind = importer_kind_detect(head, size);
    return kind != NULL && !kind->blocks;
}

bool program_is_foreign_folder(const char *path)
{
    return importer_kind_detect_folder(path) != NULL;
}

/* ---- translating ---- */

static uint64_t translator_count_lines(const char *at, size_t size)
{
    uint64_t count = 0;
    for (const char *end = at + size; size > 0 && (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
        count++;
    return count;
}

/* Reports what the importer found, finishes the blocks, and removes the first size bytes of the input. */
static void translator_take(translator *t, size_t size)
{
    if (t->exporter != NULL)
        t->exporter->kind->flush(t->exporter, &t->sink);
    sink_report(&t->sink, t->reading, t->name, t->lines, t->offset);
    t->lines += translator_count_lines(t->in.data, size);
    t->sink.lines_before = t->lines;
    t->offset += size;
    t->in.size -= size;
    memmove(t->in.data, t->in.data + size, t->in.size);
}

/* Reads the head of the input. False while it is not complete. */
static bool translator_read_head(translator *t, bool all)
{
    if (t->importer != NULL)
        return true;
    if (t->from->head != NULL) {
        translator_take(t, t->from->head(t->in.data, t->in.size, all, &t->shared, &t->sink));
        if (t->shared == NULL)
            return false;
    }
    t->importer = importer_open(t->from, t->shared);
    t->exporter = exporter_open(netlogger_exporter_kind(NL_FORMAT_NLB), NULL);
    t->sink.out = t->exporter;
    return true;
}

/* Passes over the first line, which is too long to be a record. */
static void translator_skip_line(translator *t)
{
    if (!t->skipping)
        sink_malformed(&t->sink, 1, 0, "record is longer than 64 MiB", t->in.data, REPORT_SIZE_MAX);
    const char *newline = t->in.size > 0 ? memchr(t->in.data, '\n', t->in.size) : NULL;
    t->skipping = newline == NULL;
    translator_take(t, newline != NULL ? (size_t)(newline + 1 - t->in.data) : t->in.size);
}

static size_t translator_cut(const translator *t)
{
    if (t->from->cut != NULL)
        return t->from->cut(t->in.data, t->in.size);
    const char *newline = memrchr(t->in.data, '\n', t->in.size);
    return newline != NULL ? (size_t)(newline + 1 - t->in.data) : 0;
}

/* Translates what is whole of the input; all: no more comes. */
static void translator_run(translator *t, bool all)
{
    if (t->skipping)
        translator_skip_line(t);
    bool has_head = translator_read_head(t, all);
    if (!has_head && !all && t->in.size > RECORD_SIZE_MAX)
        translator_skip_line(t);
    if (!has_head || (t->in.size == 0 && !all))
        return;
    size_t size = all ? t->in.size : translator_cut(t);
    t->wanted = size > 0 ? CHUNK_SIZE : 2 * t->in.size;
    if (size == 0 && t->in.size > RECORD_SIZE_MAX) {
        translator_skip_line(t);
        return;
    }
    if (size > 0)
        t->from->read(t->importer, t->in.data, size, &t->sink);
    if (all && t->from->end != NULL)
        t->from->end(t->importer, &t->sink);
    if (size > 0 || all)
        translator_take(t, size);
    if (t->sink.undated && !t->warned && !t->reading->undated)
        program_error("%s: its times have no date and are read as from 1970; name their origin with --base", t->name);
    t->warned = t->warned || t->sink.undated;
}

/* ---- the step of a source ---- */

/* Begins again, with what follows the end of a file that was replaced. */
static void translator_restart(translator *t)
{
    if (t->importer != NULL) {
        t->reading->unterminated += t->sink.unterminated;
        t->from->close(t->importer);
        t->exporter->kind->close(t->exporter);
    }
    if (t->shared != NULL)
        t->from->unshare(t->shared);
    nl_buffer_free(&t->sink.bytes);
    nl_buffer_free(&t->sink.report_text);
    free(t->sink.reports);
    t->importer = NULL;
    t->exporter = NULL;
    t->shared = NULL;
    t->from = t->reading->foreign;
    t->in_place = t->ended = t->skipping = false;
    t->in.size = 0;
    t->wanted = t->lines = t->offset = 0;
    t->sink = (sink){.about = &t->about, .fraction = t->reading->fraction, .strict = t->reading->strict};
}

/* Finds the format of what has come. */
static void translator_detect(translator *t, nl_status status)
{
    const importer_kind *kind = t->in.size > 0 ? importer_kind_detect(t->in.data, t->in.size) : NULL;
    bool told = t->in.size >= DETECT_SIZE || status == NL_END || status == NL_FAILED ||
                (status == NL_AGAIN && t->in.size > 0 && memchr(t->in.data, '\n', t->in.size) != NULL);
    t->in_place = kind != NULL ? kind->blocks : told;
    t->from = told ? kind : NULL;
}

static nl_status translator_end(translator *t, const nl_source *source)
{
    if (t->end == NL_FAILED)
        nl_error_restore(&t->error);
    nl_status end = t->end;
    if (nl_source_was_replaced(source))
        translator_restart(t);
    return end;
}

static nl_status translator_read(nl_source_layer *layer, nl_source *source, const char **data, size_t *size)
{
    translator *t = (translator *)layer;
    t->sink.bytes.size = 0;
    while (!t->ended && !t->sink.stopped) {
        nl_status status = nl_source_read_below(source, layer, data, size);
        t->ended = status == NL_END || status == NL_FAILED;
        t->end = status;
        if (status == NL_FAILED)
            nl_error_save(&t->error);
        if (t->in_place && status == NL_OK)
            return NL_OK;
        if (t->in_place)
            break;
        if (status == NL_OK)
            nl_buffer_append(&t->in, *data, *size);
        if (t->from == NULL)
            translator_detect(t, status);
        if (t->in_place && t->in.size > 0) {
            *data = t->in.data;
            *size = t->in.size;
            return NL_OK;
        }
        if (t->from != NULL && (status != NL_OK || t->in.size >= t->wanted))
            translator_run(t, t->ended);
        if (t->sink.bytes.size > 0) {
            *data = t->sink.bytes.data;
            *size = t->sink.bytes.size;
            return NL_OK;
        }
        if (status == NL_AGAIN)
            return NL_AGAIN;
    }
    return t->ended ? translator_end(t, source) : t->in_place ? NL_AGAIN : NL_END;
}

static void translator_close(nl_source_layer *layer)
{
    translator *t = (translator *)layer;
    translator_restart(t);
    nl_buffer_free(&t->in);
    free(t->name);
    free(t);
}

/* If only the differences of times matter, any origin does. */
static import_about translator_about_now(const program_reading *reading)
{
    return (import_about){.has_base = reading->has_base || reading->undated,
                          .base_ns = reading->has_base ? reading->base_ns : 1,
                          .written_ns = nl_time_now_ns()};
}

/* What is known of times without a date: the file was written at its modification time, a stream now. */
static import_about translator_about(const program_reading *reading, const nl_source *source)
{
    struct stat what;
    int fd = nl_source_file(source);
    bool known = fd >= 0 && fstat(fd, &what) == 0;
    import_about about = translator_about_now(reading);
    if (known)
        about.written_ns = what.st_mtim.tv_sec * NL_NS_PER_SECOND + what.st_mtim.tv_nsec;
    return about;
}

void program_translate(nl_source *source, program_reading *reading, const char *name)
{
    translator *t = nl_memory_check(calloc(1, sizeof *t));
    t->base = (nl_source_layer){.read = translator_read, .close = translator_close};
    t->reading = reading;
    t->name = program_copy(name);
    t->about = translator_about(reading, source);
    translator_restart(t);
    nl_source_add_layer(source, &t->base);
}

/* ---- folders ---- */

typedef struct spill {
    program_reading *reading;
    const char *path;
    int fd;
    bool failed;
    int error; /* errno */
} spill;

static void spill_write(sink *s)
{
    spill *to = s->drain_user;
    s->out->kind->flush(s->out, s);
    sink_report(s, to->reading, to->path, 0, 0);
    if (!to->failed && !nl_write_all(to->fd, s->bytes.data, s->bytes.size)) {
        to->failed = true;
        to->error = errno;
    }
    s->bytes.size = 0;
}

nl_source *program_translate_folder(program_reading *reading, const char *path)
{
    const char *folder = getenv("TMPDIR");
    char name[4096];
    snprintf(name, sizeof name, "%s/netlogger.XXXXXX", folder != NULL && *folder != '\0' ? folder : "/var/tmp");
    spill to = {.reading = reading, .path = path, .fd = mkostemp(name, O_CLOEXEC)};
    if (to.fd < 0) {
        nl_error_set_errno("open %s", name);
        return NULL;
    }
    unlink(name);
    import_about about = translator_about_now(reading);
    sink s = {.out = exporter_open(netlogger_exporter_kind(NL_FORMAT_NLB), NULL),
              .fraction = reading->fraction,
              .about = &about,
              .strict = reading->strict,
              .drain = spill_write,
              .drain_user = &to};
    const importer_kind *kind = reading->reads_folders ? reading->foreign : importer_kind_detect_folder(path);
    bool good = kind->read_path(path, &s);
    spill_write(&s);
    s.out->kind->close(s.out);
    nl_buffer_free(&s.bytes);
    nl_buffer_free(&s.report_text);
    free(s.reports);
    snprintf(name, sizeof name, "/dev/fd/%d", to.fd);
    nl_url *url = nl_url_parse(name);
    nl_source *source = good && !to.failed && url != NULL ? nl_source_open(url, false, false) : NULL;
    if (to.failed) {
        errno = to.error;
        nl_error_set_errno("write a temporary file");
    }
    nl_url_free(url);
    close(to.fd);
    return source;
}
