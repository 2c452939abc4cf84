#include "config.h"

#include "keeping.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"
#include "file.h"
#include "program/program.h"
#include "requests/assembler.h"
#include "requests/record_sample.h"
#include "transport/writer.h"

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY "kept"
#define OPEN_SUFFIX ".open"

enum {
    MEMORY_MAX = 128 << 20, /* bytes of requests that have not ended */
    SAMPLE_MAX = 20000,     /* number of records from which the ID fields are inferred */
};

struct keeping {
    uint64_t number, kept_size;
    char *file;      /* path of the file */
    char *directory; /* path of the directory with the copies */
    char *prefix;    /* beginning of the hidden names of open requests: a dot, and the file's name before its number */
    char *open, *kept; /* paths of the files to write */
    char *before;      /* path of the open requests before the file, or NULL */
    char *expression;
    pthread_t thread;
    atomic_bool stop, ended;
    keeping_result result;

    request_filter *where;
    char **ids;      /* NULL: threads name requests */
    nl_buffer marks; /* a byte for each record: KEEP, CARRY */
    uint32_t at;     /* number of the current record */
};

enum { KEEP = 1, CARRY = 2 };

nl_status keeping_check_expression(const char *expression)
{
    request_filter *filter = NULL;
    if (!request_filter_selects_requests(expression))
        return nl_error_set(NL_ERROR_INVALID,
                            "keep_where= needs an expression on requests, such as any(STATUS >= 500) or "
                            "request.duration > 1s");
    bool good = request_filter_narrow(&filter, expression);
    request_filter_free(filter);
    return good ? NL_OK : NL_FAILED;
}

/* ---- reading ---- */

/* Reads the records of one file. Returns false after setting the error. */
static bool read_kept_source(keeping *k, const char *path, bool (*take)(void *user, const nl_record *record),
                             void *user)
{
    nl_reader *reader = nl_reader_open(path, &(nl_reader_options){.max_record_size = OUTPUT_FILE_LONGEST});
    const nl_record *record;
    nl_status status = NL_FAILED;
    if (reader == NULL)
        return false;
    while (!k->stop && (status = nl_reader_next(reader, &record)) == NL_OK) {
        if (!take(user, record)) {
            status = NL_END;
            break;
        }
        k->at++;
    }
    nl_reader_close(reader);
    if (k->stop)
        return nl_error_false(NL_ERROR_SYSTEM, "netlogd has stopped");
    return status == NL_END;
}

/* Passes the open requests before the file, and then the file, to `take`, until it returns false. */
static bool read_kept_input(keeping *k, bool (*take)(void *user, const nl_record *record), void *user)
{
    k->at = 0;
    return (k->before == NULL || read_kept_source(k, k->before, take, user)) &&
           read_kept_source(k, k->file, take, user);
}

/* ---- the fields that name requests ---- */

static bool add_to_sample(void *user, const nl_record *record)
{
    record_sample *s = user;
    record_sample_add(s, record);
    return s->record_count < SAMPLE_MAX && !record_sample_is_full(s);
}

static bool find_ids(keeping *k)
{
    record_sample sample = {0};
    bool good = read_kept_input(k, add_to_sample, &sample);
    if (good) {
        drawing *d = record_sample_infer(&sample, NULL);
        if (d->lifelines->len > 0)
            k->ids = g_strdupv(((const drawing_lifeline *)g_ptr_array_index(d->lifelines, 0))->ids);
        drawing_free(d);
    }
    record_sample_free(&sample);
    return good;
}

/* ---- requests ---- */

static void keeping_pack(void *user, const nl_record *record, nl_buffer *buffer)
{
    const keeping *k = user;
    (void)record;
    nl_buffer_append(buffer, (const char *)&k->at, sizeof k->at);
}

static void mark_request(keeping *k, const request_graph *g, char mark)
{
    for (size_t i = 0; i < g->event_count; i++) {
        uint32_t record;
        memcpy(&record, g->payloads + g->events[i].payload, sizeof record);
        k->marks.data[record] |= mark;
    }
}

/* Gets the requests that have ended and match. */
static void take_kept(void *user, const request_graph *g, const char *name, uint32_t by, bool cut)
{
    keeping *k = user;
    (void)name, (void)by, (void)cut;
    if (g->overlaps) /* the events of several requests, which nothing tells apart */
        return;
    mark_request(k, g, KEEP);
    k->result.requests++;
}

/* Gets the requests that have not ended. */
static void take_open(void *user, const request_graph *g, const char *name, uint32_t by, bool cut)
{
    (void)name, (void)by, (void)cut;
    mark_request(user, g, CARRY);
}

static bool add_to_requests(void *user, const nl_record *record)
{
    assembler *const *a = user;
    keeping *k = (keeping *)a[1];
    nl_buffer_append(&k->marks, "", 1);
    assembler_add(a[0], record);
    return k->marks.size < UINT32_MAX;
}

static bool find_requests(keeping *k)
{
    assembler *a = assembler_new(&(assembler_options){.ids = (const char *const *)k->ids,
                                                      .where = k->where,
                                                      .memory_max = MEMORY_MAX,
                                                      .pack = keeping_pack,
                                                      .take = take_kept,
                                                      .open = take_open,
                                                      .user = k});
    void *both[2] = {a, k};
    bool good = read_kept_input(k, add_to_requests, both);
    if (good)
        assembler_finish(a);
    assembler_free(a);
    return good;
}

/* ---- writing ---- */

typedef struct copying {
    keeping *k;
    char mark;
    nl_writer *writer;
    uint64_t records;
    bool failed;
} copying;

static bool copy_record(void *user, const nl_record *record)
{
    copying *c = user;
    const keeping *k = c->k;
    if (k->at >= k->marks.size)
        return false;
    if (!(k->marks.data[k->at] & c->mark))
        return true;
    c->failed = nl_writer_put(c->writer, record) != NL_OK;
    c->records += !c->failed;
    return !c->failed;
}

static bool has_mark(const keeping *k, char mark)
{
    size_t i = 0;
    while (i < k->marks.size && !(k->marks.data[i] & mark))
        i++;
    return i < k->marks.size;
}

/* Copies the records with a mark to a file, which appears only when it is complete. Without records, removes the file.
 */
static bool copy_marked(keeping *k, char mark, const char *path, uint64_t *records)
{
    if (!has_mark(k, mark))
        return unlink(path) == 0 || errno == ENOENT || nl_error_set_errno("delete %s", path) == NL_OK;
    const nl_writer_options options = {.format = NL_FORMAT_NLB, .buffer_size = 1 << 20, .atomic = true};
    copying c = {.k = k, .mark = mark, .writer = nl_writer_open(path, &options)};
    if (c.writer == NULL)
        return false;
    bool good = read_kept_input(k, copy_record, &c) && !c.failed;
    if (!good) {
        nl_error error;
        nl_error_save(&error);
        nl_writer_discard(c.writer);
        return nl_error_restore(&error) == NL_OK;
    }
    *records = c.records;
    if (nl_writer_close(c.writer) != NL_OK)
        return false;
    output_file_sync_directory(path);
    return true;
}

/* ---- the directory ---- */

static bool begins_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool keeping_ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), tail = strlen(end);
    return size >= tail && strcmp(text + size - tail, end) == 0;
}

/*
 * Finds the latest open requests before the file. Removes older ones, whose files were deleted.
 */
static bool find_open_before(keeping *k)
{
    struct dirent **entries;
    int count = scandir(k->directory, &entries, NULL, versionsort);
    if (count < 0)
        return nl_error_set_errno("read %s", k->directory) == NL_OK;
    const char *own = strrchr(k->open, '/') + 1;
    for (int i = count; i-- > 0;) {
        const char *name = entries[i]->d_name;
        if (begins_with(name, k->prefix) && keeping_ends_with(name, OPEN_SUFFIX) && strverscmp(name, own) < 0) {
            char *path = program_format("%s/%s", k->directory, name);
            if (k->before == NULL) {
                k->before = path;
            } else {
                unlink(path);
                free(path);
            }
        }
        free(entries[i]);
    }
    free(entries);
    return true;
}

/* Deletes the oldest copies while all copies are larger than kept_size. */
static void limit_size(const keeping *k)
{
    struct dirent **entries;
    uint64_t total = 0;
    int count = scandir(k->directory, &entries, NULL, versionsort);
    for (int pass = 0; pass < 2 && count > 0; pass++)
        for (int i = 0; i < count; i++) {
            struct stat status;
            char *path = program_format("%s/%s", k->directory, entries[i]->d_name);
            if (entries[i]->d_name[0] != '.' && lstat(path, &status) == 0 && S_ISREG(status.st_mode)) {
                if (pass == 0)
                    total += (uint64_t)status.st_size;
                else if (total > k->kept_size && strcmp(path, k->kept) != 0 && unlink(path) == 0)
                    total -= (uint64_t)status.st_size;
            }
            free(path);
        }
    for (int i = 0; i < count; i++)
        free(entries[i]);
    if (count >= 0)
        free(entries);
}

/* ---- the thread ---- */

static bool keep_requests(keeping *k)
{
    uint64_t open;
    if (!request_filter_narrow(&k->where, k->expression))
        return false;
    if (mkdir(k->directory, 0777) != 0 && errno != EEXIST)
        return nl_error_set_errno("create %s", k->directory) == NL_OK;
    if (!find_open_before(k) || !find_ids(k) || !find_requests(k) || !copy_marked(k, CARRY, k->open, &open) ||
        !copy_marked(k, KEEP, k->kept, &k->result.records))
        return false;
    limit_size(k);
    return true;
}

static void *keeping_run(void *user)
{
    keeping *k = user;
    if (!keep_requests(k))
        snprintf(k->result.reason, sizeof k->result.reason, "%s", nl_error_message());
    k->ended = true;
    return NULL;
}

static void free_keeping(keeping *k)
{
    request_filter_free(k->where);
    g_strfreev(k->ids);
    nl_buffer_free(&k->marks);
    free(k->file);
    free(k->directory);
    free(k->prefix);
    free(k->open);
    free(k->kept);
    free(k->before);
    free(k->expression);
    free(k);
}

keeping *keeping_start(const output_options *options, uint64_t number)
{
    keeping *k = nl_memory_check(calloc(1, sizeof *k));
    const char *pattern = strrchr(options->path, '/');
    pattern = pattern != NULL ? pattern + 1 : options->path;
    k->number = number;
    k->kept_size = options->kept_size;
    k->file = output_file_name(options, number);
    const char *slash = strrchr(k->file, '/'), *name = slash != NULL ? slash + 1 : k->file;
    k->directory = program_format("%.*s" DIRECTORY, (int)(name - k->file), k->file);
    k->prefix = program_format(".%.*s", (int)(strstr(pattern, OUTPUT_NUMBER) - pattern), pattern);
    k->open = program_format("%s/.%s" OPEN_SUFFIX, k->directory, name);
    k->kept = program_format("%s/%s%s", k->directory, name, keeping_ends_with(name, ".nlb") ? "" : ".nlb");
    k->expression = program_copy(options->keep_where);
    int error = nl_thread_create(&k->thread, NULL, keeping_run, k);
    if (error == 0)
        return k;
    free_keeping(k);
    errno = error;
    nl_error_set_errno("create a thread");
    return NULL;
}

uint64_t keeping_number(const keeping *k)
{
    return k->number;
}

bool keeping_has_ended(const keeping *k, keeping_result *result)
{
    bool ended = k->ended;
    if (ended)
        *result = k->result;
    return ended;
}

void keeping_free(keeping *k)
{
    if (k == NULL)
        return;
    k->stop = true;
    pthread_join(k->thread, NULL);
    free_keeping(k);
}
