#include "config.h"

#include "sink.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/write_some.h"
#include "transport/url.h"
#include "reader/decoder.h"
#include "record/format.h"
#include "program/own_log.h"
#include "program/program.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* Time for which the rules wait for earlier records from other CPUs. It is longer than the interval between reads of
 * the buffers. */
#define REORDER_NS (INT64_C(300) * 1000000)

static void sink_start(sink *s, const char *name)
{
    *s = (sink){.fd = -1, .name = nl_memory_check(strdup(name))};
    pthread_mutex_init(&s->mutex, NULL);
    if (getrandom(s->own_id.stream, sizeof s->own_id.stream, 0) != (ssize_t)sizeof s->own_id.stream)
        program_fail(PROGRAM_PROBLEM, "cannot get random bytes for a stream ID: %s", strerror(errno));
}

static void sink_free(sink *s)
{
    nl_synthesis_free(s->rules);
    nl_block_writer_free(&s->own);
    pthread_mutex_destroy(&s->mutex);
    free(s->partial);
    free(s->name);
}

/* Stores the current error if it is the first error, and ends all writing. The caller holds the mutex. */
static void sink_fail(sink *s)
{
    if (s->error.code == NL_ERROR_NONE)
        nl_error_save(&s->error);
    atomic_store(&s->failed, true);
}

/* If `path` is a regular file, opens the binary file for the records that sink_close converts to text. Returns false
 * and sets the error on failure. */
static bool open_partial(sink *s, const char *path)
{
    static const char suffix[] = ".partial.nlb";
    struct stat what;
    if (stat(path, &what) != 0 || !S_ISREG(what.st_mode))
        return true; /* a device or a FIFO gets the text directly */
    size_t size = strlen(path) + sizeof suffix;
    s->partial = nl_memory_check(malloc(size));
    snprintf(s->partial, size, "%s%s", path, suffix);
    s->fd = open(s->partial, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return s->fd >= 0 || nl_error_set_errno("open %s", s->partial) == NL_OK;
}

bool sink_open_file(sink *s, const char *path, nl_format format, int zstd_level)
{
    nl_url *url = nl_url_parse_for(path, NL_URL_WRITE);
    if (url == NULL)
        return false;
    bool plain = url->scheme == NL_SCHEME_FILE && url->option_count == 0;
    if (!plain && url->scheme != NL_SCHEME_STDIO) {
        nl_error_set(NL_ERROR_INVALID, "%s: nlkernel record writes only files; use nlkernel live --dest %s", path,
                     path);
        nl_url_free(url);
        return false;
    }
    sink_start(s, path);
    s->zstd_level = zstd_level;
    if (format == NL_FORMAT_UNKNOWN && plain)
        format = nl_format_of_name(url->path);
    if (format == NL_FORMAT_UNKNOWN)
        format = NL_FORMAT_ULM;
    bool good;
    if (format == NL_FORMAT_NLB) {
        s->fd = plain ? open(url->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : fcntl(1, F_DUPFD_CLOEXEC, 3);
        good = s->fd >= 0;
        if (!good)
            nl_error_set_errno("%s", path);
    } else {
        nl_writer_options options = {.format = format, .buffer_size = 256 << 10, .truncate = true};
        s->writer = nl_writer_open(path, &options);
        good = s->writer != NULL && (!plain || open_partial(s, url->path));
        if (s->writer != NULL && !good)
            nl_writer_discard(s->writer);
    }
    nl_url_free(url);
    if (!good)
        sink_free(s);
    return good;
}

bool sink_open_log(sink *s, const char *url)
{
    sink_start(s, url != NULL ? url : "$NETLOGGER_DEST");
    s->log = program_open_log("nlkernel", url, true);
    if (s->log != NULL)
        return true;
    if (*nl_error_message() == '\0')
        nl_error_set(NL_ERROR_INVALID, "logging is off; use --dest, or set NETLOGGER_DEST");
    sink_free(s);
    return false;
}

/* Writes whole blocks. The caller holds the mutex. */
static void write_blocks(sink *s, const char *data, size_t size)
{
    if (s->failed || nl_write_all(s->fd, data, size))
        return;
    nl_error_set_errno("%s: write", s->name);
    sink_fail(s);
}

void sink_put_blocks(sink *s, const char *data, size_t size)
{
    pthread_mutex_lock(&s->mutex);
    write_blocks(s, data, size);
    pthread_mutex_unlock(&s->mutex);
}

void sink_apply(sink *s, nl_synthesis *rules)
{
    s->rules = rules;
}

/* Writes a record. The caller holds the mutex. */
static void write_record(sink *s, const nl_record *record)
{
    if (s->failed)
        return;
    if (s->log != NULL) {
        if (nl_write_record(s->log, record) == NL_FAILED)
            s->refused++;
    } else if (nl_writer_put(s->writer, record) != NL_OK) {
        sink_fail(s);
    }
}

/* Writes the records that the rules have derived. The caller holds the mutex. */
static void write_derived(sink *s)
{
    const nl_record *derived;
    while ((derived = nl_synthesis_next(s->rules)) != NULL)
        write_record(s, derived);
}

/* Without rules, writes a record. With rules, passes the record to them, and writes only NetLogger.Lost records.
 * The caller holds the mutex. */
static void take_record(sink *s, const nl_record *record)
{
    static const char lost[] = "NetLogger.Lost";
    if (s->rules != NULL)
        nl_synthesis_put(s->rules, record);
    if (s->rules == NULL ||
        (record->event.size == sizeof lost - 1 && memcmp(record->event.data, lost, sizeof lost - 1) == 0))
        write_record(s, record);
}

void sink_put_record(sink *s, const nl_record *record)
{
    pthread_mutex_lock(&s->mutex);
    take_record(s, record);
    pthread_mutex_unlock(&s->mutex);
}

void sink_put_own(sink *s, const nl_record *record)
{
    if (s->rules != NULL)
        return; /* with rules, omit the record, which describes events that the sink does not write */
    pthread_mutex_lock(&s->mutex);
    if (!sink_takes_blocks(s)) {
        take_record(s, record);
    } else if (nl_block_put(&s->own, record)) {
        nl_buffer block = {0};
        nl_block_finish(&s->own, &s->own_id, 0, &block);
        s->own_id.first_sequence++;
        write_blocks(s, block.data, block.size);
        nl_buffer_free(&block);
    }
    pthread_mutex_unlock(&s->mutex);
}

void sink_flush(sink *s)
{
    pthread_mutex_lock(&s->mutex);
    if (s->rules != NULL) {
        nl_synthesis_advance(s->rules, nl_time_now_ns() - REORDER_NS);
        write_derived(s);
    }
    if (s->writer != NULL && !s->failed && nl_writer_flush(s->writer) != NL_OK)
        sink_fail(s);
    pthread_mutex_unlock(&s->mutex);
}

/* Writes the records of the binary file as text. Returns false and sets the error on failure. */
static bool convert_partial(sink *s)
{
    enum { PIECE = 1 << 20 };
    char *piece = nl_memory_check(malloc(PIECE));
    nl_decoder *decoder = nl_decoder_new(&(nl_decoder_options){.source = s->partial, .format = NL_FORMAT_NLB});
    const nl_record *record;
    ssize_t got;
    bool good = decoder != NULL && lseek(s->fd, 0, SEEK_SET) == 0;
    while (good && (got = read(s->fd, piece, PIECE)) != 0) {
        if (got < 0) {
            good = nl_error_set_errno("read %s", s->partial) == NL_OK;
            break;
        }
        nl_decoder_feed(decoder, piece, (size_t)got);
        while (good && nl_decoder_next(decoder, &record) == NL_OK)
            good = nl_writer_put(s->writer, record) == NL_OK;
    }
    nl_decoder_free(decoder);
    free(piece);
    return good;
}

/* Completes the text file from the binary file, and deletes the binary file. Returns false and sets the error on
 * failure. */
static bool finish_partial(sink *s)
{
    bool good = convert_partial(s);
    if (good) {
        good = nl_writer_close(s->writer) == NL_OK;
        s->writer = NULL;
    }
    if (good)
        unlink(s->partial);
    else
        nl_error_prepend("the records are in %s, but not in %s", s->partial, s->name);
    return good;
}

bool sink_close(sink *s)
{
    bool good = true;
    if (s->partial != NULL && !s->failed)
        good = finish_partial(s);
    if (s->rules != NULL) {
        nl_synthesis_finish(s->rules);
        write_derived(s);
    }
    if (s->fd >= 0 && close(s->fd) != 0 && good) {
        nl_error_set_errno("%s: close", s->name);
        good = false;
    }
    if (s->writer != NULL && (s->failed || !good))
        nl_writer_discard(s->writer);
    else if (s->writer != NULL)
        good = nl_writer_close(s->writer) == NL_OK;
    if (s->log != NULL)
        good = nl_close(s->log) == NL_OK;
    if (s->failed) {
        nl_error_restore(&s->error);
        good = false;
    }
    sink_free(s);
    return good;
}
