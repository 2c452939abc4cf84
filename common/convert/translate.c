/*
 * Converts sources in foreign formats to blocks while a program reads them. An importer passes records to the exporter
 * of the block format.
 */
#include "config.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/write_some.h"
#include "convert/cutter.h"
#include "program/foreign.h"
#include "program/temporary_file.h"
#include "record/format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE_SIZE = 256 << 10 };

/* A step of a source that converts a foreign format to blocks. */
typedef struct translator {
    nl_source_layer base;
    program_reading *reading;
    char *name;
    import_about about;
    cutter cut;
    bool detected;
    bool in_place;          /* the content is in a format of the library, and passes unchanged */
    bool warned;            /* a warning about times without an origin was printed */
    bool ended;             /* the source has no more bytes; translator_read returns `end` after the buffered bytes */
    nl_status end;          /* the status of the source at its end */
    nl_error error;         /* the error, if end is NL_FAILED */
    uint64_t lines, offset; /* lines and bytes of the input before the bytes in the cutter */
    importer *importer;     /* NULL before the first record */
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
    reading->reads_directories = kind->read_path != NULL;
    return true;
}

bool program_is_foreign(const program_reading *reading, const char *head, size_t size)
{
    if (reading->foreign != NULL || reading->format != NL_FORMAT_UNKNOWN)
        return reading->foreign != NULL;
    const importer_kind *kind = importer_kind_detect(head, size);
    return kind != NULL && !kind->blocks;
}

bool program_is_foreign_directory(const char *path)
{
    return importer_kind_detect_directory(path) != NULL;
}

/* ---- conversion ---- */

/*
 * Finishes the blocks of a piece of `size` bytes, reports its malformed input, and removes the piece from the cutter.
 */
static void translator_finish_piece(translator *t, size_t size)
{
    if (t->exporter != NULL)
        t->exporter->kind->flush(t->exporter, &t->sink);
    sink_report(&t->sink, t->reading, t->name, t->lines, t->offset);
    t->lines += cutter_count_lines(t->cut.in.data, size);
    t->sink.lines_before = t->lines;
    t->offset += size;
    cutter_remove(&t->cut, size);
}

static void translator_read_records(translator *t, size_t size, bool all)
{
    const importer_kind *from = t->cut.from;
    if (t->importer == NULL) {
        t->importer = importer_open(from, t->cut.head);
        t->exporter = exporter_open(netlogger_exporter_kind(NL_FORMAT_NLB), NULL);
        t->sink.out = t->exporter;
    }
    if (size > 0)
        from->read(t->importer, t->cut.in.data, size, &t->sink);
    if (all && from->end != NULL)
        from->end(t->importer, &t->sink);
    if (t->sink.undated && !t->warned && !t->reading->undated)
        program_error("%s: times without a date were read as times in 1970; set the date with --base", t->name);
    t->warned = t->warned || t->sink.undated;
}

/* Converts the records that the importer holds back, because the source may grow only after a long time. */
static void translator_pause(translator *t)
{
    if (t->importer == NULL || t->cut.from->pause == NULL)
        return;
    t->cut.from->pause(t->importer, &t->sink);
    t->exporter->kind->flush(t->exporter, &t->sink);
    sink_report(&t->sink, t->reading, t->name, t->lines, t->offset);
}

/* Converts the whole records that have arrived. If all is true, no more bytes will arrive. */
static void translator_run(translator *t, bool all)
{
    size_t size;
    cut found;
    do {
        found = cutter_next(&t->cut, all, &t->sink, &size);
        if (found == CUT_RECORDS)
            translator_read_records(t, size, all);
        if (found != CUT_NOTHING)
            translator_finish_piece(t, size);
    } while (found == CUT_OTHER || (found == CUT_RECORDS && !all && t->cut.in.size >= t->cut.wanted));
}

/* ---- the step of a source ---- */

/* Discards the state of the previous content, because a new file replaced the file. */
static void translator_restart(translator *t)
{
    if (t->importer != NULL) {
        t->reading->unterminated += t->sink.unterminated;
        importer_close(t->importer);
        exporter_close(t->exporter);
    }
    sink_free(&t->sink);
    cutter_reset(&t->cut);
    t->cut.from = t->reading->foreign;
    t->importer = NULL;
    t->exporter = NULL;
    t->detected = t->in_place = t->ended = false;
    t->lines = t->offset = 0;
    t->sink = (sink){.about = &t->about, .fraction = t->reading->fraction, .strict = t->reading->strict};
}

/*
 * Finds the format. Content in an unknown format passes unchanged, and the library's decoder reports its lines as
 * malformed.
 */
static void translator_detect(translator *t, nl_status status)
{
    const nl_buffer *in = &t->cut.in;
    bool has_line = in->size > 0 && memchr(in->data, '\n', in->size) != NULL;
    const importer_kind *kind = t->cut.from == NULL && in->size > 0 ? importer_kind_detect(in->data, in->size) : NULL;
    /* a document in one line may lack its newline */
    bool has_record = has_line || (kind != NULL && kind->cut != NULL && kind->cut(in->data, in->size) > 0);
    /* the library's decoder can wait for more bytes, except for the first line of a text */
    bool is_own = kind != NULL && kind->blocks && (has_line || nl_format_detect(in->data, in->size) == NL_FORMAT_NLB);
    bool is_last = status == NL_END || status == NL_FAILED;
    t->detected = cutter_detect(&t->cut, is_own || is_last || (status == NL_AGAIN && has_record));
    t->in_place = t->detected && (t->cut.from == NULL || t->cut.from->blocks);
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
            nl_buffer_append(&t->cut.in, *data, *size);
        if (!t->detected)
            translator_detect(t, status);
        if (t->in_place && t->cut.in.size > 0) {
            *data = t->cut.in.data;
            *size = t->cut.in.size;
            return NL_OK;
        }
        if (t->detected && !t->in_place && (status != NL_OK || t->cut.in.size >= t->cut.wanted))
            translator_run(t, t->ended);
        if (status == NL_AGAIN)
            translator_pause(t);
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
    free(t->name);
    free(t);
}

/*
 * Returns the properties of content that a stream delivers now. If the caller needs only time differences, uses an
 * arbitrary origin.
 */
static import_about translator_about_now(const program_reading *reading)
{
    return (import_about){.has_base = reading->has_base || reading->undated,
                          .base_ns = reading->has_base ? reading->base_ns : 1,
                          .time_field = reading->time_field,
                          .written_ns = nl_time_now_ns()};
}

/*
 * Returns the properties of a source's content. The time of the last change is the modification time of a file, or now
 * for a stream.
 */
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
    t->cut.piece_size = PIECE_SIZE;
    t->reading = reading;
    t->name = program_copy(name);
    t->about = translator_about(reading, source);
    translator_restart(t);
    nl_source_add_layer(source, &t->base);
}

/* ---- directories ---- */

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

nl_source *program_translate_directory(program_reading *reading, const char *path)
{
    spill to = {.reading = reading, .path = path, .fd = temporary_file_open(NULL)};
    if (to.fd < 0)
        return NULL;
    import_about about = translator_about_now(reading);
    sink s = {.out = exporter_open(netlogger_exporter_kind(NL_FORMAT_NLB), NULL),
              .fraction = reading->fraction,
              .about = &about,
              .strict = reading->strict,
              .drain = spill_write,
              .drain_user = &to};
    const importer_kind *kind = reading->reads_directories ? reading->foreign : importer_kind_detect_directory(path);
    bool good = kind->read_path(path, &s);
    spill_write(&s);
    exporter_close(s.out);
    sink_free(&s);
    char name[32];
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
