#include "config.h"

#include "model/source.h"
#include "base/buffer.h"
#include "base/error.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    STREAM_SIZE = 4 << 20, /* maximum number of bytes to read from a stream before the loader reads other sources */
    CUT_SIZE = 32 << 20,   /* number of bytes in which the module finds blocks before all threads scan these blocks */
    LAST_LINE = 1 << 20,   /* maximum size of an incomplete line in bytes */
    FED_AT_ONCE = 4096,    /* maximum number of records that the module takes from a feed at a time */
};

static char *path_of(const char *url)
{
    nl_url *parsed = nl_url_parse(url);
    char *path = NULL;
    if (parsed != NULL && parsed->scheme == NL_SCHEME_FILE && parsed->option_count == 0)
        path = g_strdup(parsed->path);
    nl_url_free(parsed);
    return path;
}

/* ---- files ---- */

static bool is_last_file(const source *s)
{
    return s->current + 1 >= s->files->len;
}

log_file *source_file(const source *s)
{
    return s->current < s->files->len ? g_ptr_array_index(s->files, s->current) : NULL;
}

static block_cutter *cutter_of(const source *s)
{
    return s->current < s->files->len ? s->cutters[s->current] : NULL;
}

static const char *file_name(const source *s, guint file)
{
    return s->archive != NULL && file < s->archive_next ? s->archive[file] : s->url;
}

static void close_decoder(source *s)
{
    if (s->decoder != NULL)
        program_reading_close_decoder(s->reading, s->decoder, file_name(s, s->current));
    s->decoder = NULL;
}

static void prepare_file(source *s)
{
    const log_file *f = source_file(s);
    if (f->format == NL_FORMAT_NLB && s->cutters[s->current] == NULL)
        s->cutters[s->current] =
            block_cutter_new(s->reading, file_name(s, s->current), f, s->at, log_file_record_count(f));
    if (f->format != NL_FORMAT_NLB && s->decoder == NULL)
        s->decoder = program_reading_decoder(s->reading, file_name(s, s->current));
}

static void add_file(source *s, log_file *f)
{
    g_ptr_array_add(s->files, f);
    s->cutters = g_renew(block_cutter *, s->cutters, s->files->len);
    s->cutters[s->files->len - 1] = NULL;
}

void source_go_on(source *s)
{
    s->is_finished = is_last_file(s);
    s->ended = s->is_finished && s->stream == NULL && !s->follow && s->archive_next == s->archive_count;
    if (s->is_finished)
        return;
    close_decoder(s);
    s->current++;
    s->at = source_file(s)->forgotten;
}

void source_rewind(source *s)
{
    s->current = 0;
    s->at = s->files->len > 0 ? source_file(s)->forgotten : 0;
    s->ended = s->is_finished = false;
    close_decoder(s);
}

void source_forget_blocks(source *s)
{
    g_array_set_size(source_file(s)->blocks, 0);
    block_cutter_free(s->cutters[0]);
    s->cutters[0] = NULL;
}

void source_skip_to(source *s, uint64_t at)
{
    s->at = at;
    block_cutter_free(s->cutters[0]);
    s->cutters[0] = NULL;
}

void source_expect_blocks(source *s)
{
    source_file(s)->format = NL_FORMAT_NLB;
    source_rewind(s);
}

uint64_t source_size(const source *s)
{
    uint64_t sum = 0;
    for (guint i = 0; i < s->files->len; i++)
        sum += log_file_size(g_ptr_array_index(s->files, i));
    return sum;
}

static bool has_scanned_blocks(const source *s)
{
    const log_file *f = source_file(s);
    return log_file_find_block(f, s->at) == f->blocks->len;
}

uint64_t source_done(const source *s)
{
    uint64_t sum = s->at;
    for (guint i = 0; i < s->current; i++)
        sum += log_file_size(g_ptr_array_index(s->files, i));
    const block_cutter *c = cutter_of(s);
    if (c != NULL && has_scanned_blocks(s))
        sum += block_cutter_offset(c) - s->at; /* bytes after the last complete block */
    return sum;
}

bool source_has_read_all(const source *s)
{
    return s->files->len > 0 && s->feed == NULL && is_last_file(s) && s->stream == NULL &&
           s->archive_next == s->archive_count && s->at + LAST_LINE >= log_file_size(source_file(s)) &&
           (source_file(s)->format != NL_FORMAT_NLB || has_scanned_blocks(s));
}

/* ---- opening ---- */

static bool open_stream(source *s)
{
    s->stream = program_source_open(s->reading, s->url, s->follow, s->follow);
    if (s->stream == NULL)
        program_input_failed(s->reading);
    s->begins_spill = true;
    return s->stream != NULL;
}

/* Raises the limit of open files. The files of an archive stay open, because nlv later fetches records from them. */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void list_archive(source *s)
{
    char **names = NULL;
    size_t count = 0;
    if (!program_expand_archives(s->reading, &s->path, 1, &names, &count))
        return;
    const char *last = s->archive_count > 0 ? s->archive[s->archive_count - 1] : NULL;
    for (size_t i = 0; i < count; i++) {
        if (last == NULL || strverscmp(names[i], last) > 0) {
            s->archive = g_renew(char *, s->archive, s->archive_count + 1);
            s->archive[s->archive_count++] = g_strdup(names[i]);
        }
        free(names[i]);
    }
    free(names);
}

static void notice(source *s, const char *what)
{
    char *text = g_strdup_printf("%s %s", strcmp(s->url, "-") == 0 ? "standard input" : s->url, what);
    g_free(s->notice);
    s->notice = text;
}

/* Notes that nlv cannot read the source completely. The reason is this thread's error. */
static void notice_error(source *s)
{
    char *what =
        g_strdup_printf("cannot be read completely: %s; nlv keeps the records that have arrived", nl_error_message());
    notice(s, what);
    g_free(what);
    s->reading->failed = true;
}

source *source_open(const char *url, bool follow, program_reading *reading)
{
    source *s = g_new0(source, 1);
    s->url = g_strdup(url);
    s->path = path_of(url);
    s->follow = follow;
    s->reading = reading;
    program_add_source(reading, url);
    reading->live = reading->live || follow || program_awaits_signal(url);
    s->files = g_ptr_array_new_with_free_func((GDestroyNotify)log_file_free);
    if (s->path != NULL && program_is_archive(s->path)) {
        raise_file_limit();
        s->archive = g_new0(char *, 1);
        list_archive(s);
        return s;
    }
    log_file *f = s->path != NULL ? log_file_open(s->path, reading) : NULL;
    if (f != NULL) {
        add_file(s, f);
    } else if (!open_stream(s)) {
        source_close(s);
        return NULL;
    } else if (s->path != NULL && access(s->path, F_OK) != 0) { /* with --follow, the file may be missing */
        notice(s, "does not exist; nlv waits for it");
    }
    return s;
}

source *source_open_feed(feed *f, const char *name, program_reading *reading)
{
    source *s = g_new0(source, 1);
    s->url = g_strdup(name);
    s->follow = true;
    s->reading = reading;
    s->feed = f;
    s->files = g_ptr_array_new_with_free_func((GDestroyNotify)log_file_free);
    log_file *file = log_file_spill(reading->fraction);
    if (file == NULL) {
        source_close(s);
        return NULL;
    }
    file->format = NL_FORMAT_ULM;
    add_file(s, file);
    return s;
}

void source_close(source *s)
{
    if (s->feed != NULL) {
        feed_close(s->feed);
        feed_unref(s->feed);
    }
    close_decoder(s);
    for (guint i = 0; i < s->files->len; i++)
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): each file has a cutter */
        block_cutter_free(s->cutters[i]);
    g_free(s->cutters);
    g_ptr_array_free(s->files, TRUE);
    nl_source_close(s->stream);
    reconnection_free(s->again);
    prints_free(&s->prints);
    for (size_t i = 0; i < s->archive_count; i++)
        g_free(s->archive[i]);
    g_free(s->archive);
    g_free(s->notice);
    g_free(s->url);
    g_free(s->name);
    g_free(s->path);
    g_free(s);
}

/* ---- new data ---- */

static bool is_plain_file(const char *path)
{
    struct stat status;
    return path != NULL && stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* If an empty or missing log has become a file that nlv can read in place, opens the file and returns true. */
static bool became_plain(source *s)
{
    log_file *f = s->files->len == 0 && nl_source_position(s->stream) == 0 && s->archive == NULL && s->path != NULL
                      ? log_file_open(s->path, s->reading)
                      : NULL;
    if (f == NULL)
        return false;
    nl_source_close(s->stream);
    s->stream = NULL;
    add_file(s, f);
    return true;
}

static void end_stream(source *s)
{
    nl_source_close(s->stream);
    s->stream = NULL;
    if (s->files->len > 0 && !s->begins_spill)
        log_file_complete(g_ptr_array_index(s->files, s->files->len - 1));
}

/* Appends bytes to the current spill, or begins a new spill. On failure, sets the notice and returns false. */
static bool spill(source *s, const char *data, size_t size)
{
    log_file *f =
        s->begins_spill ? log_file_spill(s->reading->fraction) : g_ptr_array_index(s->files, s->files->len - 1);
    if (f == NULL) {
        notice_error(s);
        return false;
    }
    if (s->begins_spill)
        add_file(s, f);
    s->begins_spill = false;
    if (!log_file_append(f, data, size)) {
        nl_error_set_errno("write a temporary file");
        notice_error(s);
        return false;
    }
    return true;
}

static void read_stream(source *s)
{
    const char *data;
    size_t size;
    for (uint64_t read = 0; read < STREAM_SIZE; read += size) {
        nl_status status = nl_source_read(s->stream, &data, &size);
        if (status == NL_OK && spill(s, data, size))
            continue;
        if (status == NL_AGAIN && (s->follow || !program_was_stopped()))
            return;
        bool was_replaced = status == NL_END && s->follow && s->archive == NULL && is_plain_file(s->path);
        if (was_replaced && !s->begins_spill) {
            log_file_complete(g_ptr_array_index(s->files, s->files->len - 1));
            s->begins_spill = true;
            return;
        }
        if (status == NL_FAILED)
            program_input_failed(s->reading);
        if (status != NL_OK && s->follow && program_awaits_signal(s->url)) {
            notice(s, "was disconnected; nlv keeps the records that have arrived, and tries to connect again");
            s->again = reconnection_start(s->url);
        } else if (status != NL_OK && s->follow && s->path == NULL) {
            notice(s, "ended or was disconnected; nlv keeps the records that have arrived");
        }
        end_stream(s);
        return;
    }
}

/* If nlv is connected to the collector again, reads its stream from now on, into a new file. */
static void look_for_collector(source *s)
{
    s->stream = reconnection_take(s->again);
    if (s->stream == NULL)
        return;
    reconnection_free(s->again);
    s->again = NULL;
    s->begins_spill = true;
    notice(s, "is connected again; records that the collector received meanwhile may be missing");
}

static void drop_next_of_archive(source *s)
{
    g_free(s->archive[s->archive_next]);
    s->archive_count--;
    memmove(&s->archive[s->archive_next], &s->archive[s->archive_next + 1],
            (s->archive_count - s->archive_next) * sizeof *s->archive);
}

/*
 * Copies a file of an archive that is compressed, or too short to detect its format, to a spill. Returns NL_AGAIN if
 * the file is empty.
 */
static nl_status spill_of_archive(source *s, const char *path)
{
    const char *data;
    size_t size;
    nl_source *stream = program_source_open(s->reading, path, false, false);
    nl_status status = stream != NULL ? NL_OK : NL_FAILED;
    s->begins_spill = true;
    while (status == NL_OK && (status = nl_source_read(stream, &data, &size)) == NL_OK)
        status = spill(s, data, size) ? NL_OK : NL_END;
    if (status == NL_FAILED)
        program_input_failed(s->reading);
    nl_source_close(stream);
    if (s->begins_spill)
        return status == NL_FAILED ? NL_FAILED : NL_AGAIN;
    log_file_complete(g_ptr_array_index(s->files, s->files->len - 1));
    return NL_OK;
}

/* Opens the next file of an archive, if the archive has a next file. Skips empty files, except the last file of a
 * followed archive. */
static void open_next_of_archive(source *s)
{
    if (s->archive_next == s->archive_count)
        return;
    const char *path = s->archive[s->archive_next];
    log_file *f = log_file_open(path, s->reading);
    if (f != NULL)
        add_file(s, f);
    nl_status status = f != NULL ? NL_OK : spill_of_archive(s, path);
    if (status == NL_OK)
        s->archive_next++;
    else if (status == NL_FAILED || !s->follow || s->archive_next + 1 < s->archive_count)
        drop_next_of_archive(s);
}

/* If a followed file was truncated or replaced by another file, adds the new content as the next file. */
static void look_for_replacement(source *s, uint64_t size, uint64_t read)
{
    struct stat ours, named;
    if (fstat(source_file(s)->fd, &ours) != 0)
        return;
    bool is_there = stat(s->path, &named) == 0;
    bool is_other = is_there && (named.st_dev != ours.st_dev || named.st_ino != ours.st_ino);
    if (!is_there && !s->is_gone)
        notice(s, "was removed; nlv keeps its records, and will read a new file with that name");
    s->is_gone = !is_there;
    if (size >= read && !is_other)
        return;
    if (!is_other && size == 0 && read > 0 && !s->is_emptied)
        notice(s, "was emptied; nlv keeps its records");
    s->is_emptied = size == 0;
    log_file *fresh = log_file_open(s->path, s->reading);
    if (fresh == NULL)
        return; /* the new file is still empty */
    notice(s, is_other ? "was replaced; nlv also reads the new file"
                       : "was truncated; nlv keeps its records, and reads the file again");
    add_file(s, fresh);
}

/* Returns whether a line ends in the unscanned bytes. Searches backwards, which is usually faster. */
static bool has_line(const source *s, uint64_t size)
{
    char last[4096];
    for (uint64_t end = size; end > s->at;) {
        size_t count = (size_t)MIN(end - s->at, sizeof last);
        ssize_t got = pread(source_file(s)->fd, last, count, (off_t)(end - count));
        if (got <= 0)
            return false;
        if (memchr(last, '\n', (size_t)got) != NULL)
            return true;
        end -= count;
    }
    return false;
}

/* Returns whether the current file may still grow. */
static bool may_grow(const source *s)
{
    if (!is_last_file(s))
        return false;
    if (source_file(s)->is_spill)
        return s->feed != NULL || (s->stream != NULL && !s->begins_spill);
    return s->follow;
}

static source_state look_in_file(const source *s)
{
    const log_file *f = source_file(s);
    const block_cutter *c = cutter_of(s);
    uint64_t size = log_file_size(f);
    bool grows = may_grow(s), has_more;
    if (f->format == NL_FORMAT_UNKNOWN)
        return grows ? SOURCE_QUIET : SOURCE_LAST;
    if (f->format == NL_FORMAT_NLB)
        has_more = !has_scanned_blocks(s) || block_cutter_offset(c) < size || (!grows && !block_cutter_is_finished(c));
    else
        has_more = size > s->at && has_line(s, size);
    if (!has_more && s->feed != NULL)
        return feed_is_empty(s->feed) ? SOURCE_QUIET : SOURCE_FED;
    return has_more ? SOURCE_MORE : grows ? SOURCE_QUIET : SOURCE_LAST;
}

source_state source_look(source *s)
{
    if (s->ended)
        return SOURCE_ENDED;
    if (s->again != NULL)
        look_for_collector(s);
    if (s->stream != NULL && !became_plain(s))
        read_stream(s);
    if (s->archive != NULL && (s->files->len == 0 || is_last_file(s)))
        open_next_of_archive(s);
    if (source_file(s) == NULL) {
        s->ended = s->stream == NULL && !s->follow && s->archive_next == s->archive_count;
        if (s->archive != NULL && s->follow)
            list_archive(s);
        return s->ended ? SOURCE_ENDED : SOURCE_QUIET;
    }
    if (s->is_finished)
        source_go_on(s);
    if (s->is_finished)
        return s->ended ? SOURCE_ENDED : SOURCE_QUIET;
    prepare_file(s);
    source_state state = look_in_file(s);
    if (state != SOURCE_QUIET || source_file(s)->is_spill)
        return state;
    if (s->archive != NULL) {
        list_archive(s);
        return SOURCE_QUIET;
    }
    const block_cutter *c = cutter_of(s);
    look_for_replacement(s, log_file_size(source_file(s)), c != NULL ? block_cutter_offset(c) : s->at);
    return SOURCE_QUIET;
}

/* ---- scanning ---- */

void source_cut(source *s, GArray *found)
{
    block_cutter *c = cutter_of(s);
    if (c == NULL || !has_scanned_blocks(s))
        return;
    block_cutter_read(c, CUT_SIZE, found);
    if (block_cutter_offset(c) >= log_file_size(source_file(s)) && !may_grow(s) && !block_cutter_is_finished(c))
        block_cutter_finish(c, found);
}

scan_job source_job(const source *s)
{
    const log_file *f = source_file(s);
    scan_job job = {.file = f, .from = s->at, .to = MAX(log_file_size(f), s->at)};
    guint first = f->format == NL_FORMAT_NLB ? log_file_find_block(f, s->at) : 0;
    if (f->format == NL_FORMAT_NLB && first < f->blocks->len) {
        job.blocks = &g_array_index(f->blocks, log_block, first);
        job.block_count = f->blocks->len - first;
    }
    return job;
}

typedef struct odd_rows {
    extractor *extractor;
    batch *rows;
    unsigned file;
} odd_rows;

static void take_odd_row(void *user, const nl_record *record, uint64_t position)
{
    const odd_rows *r = user;
    extract(r->extractor, record, place_make(r->file, position), r->rows);
}

/* Extracts the decoder's records to `rows`. `data` is the text that the decoder has received last, and `offset` is the
 * offset of this text in the log in bytes. */
static void take_decoded(source *s, const char *data, size_t size, uint64_t offset, extractor *x, batch *rows)
{
    const nl_record *record;
    while (nl_decoder_next(s->decoder, &record) == NL_OK) {
        const char *raw = record->raw.data;
        uint64_t at = raw != NULL && raw >= data && raw < data + size ? offset + (uint64_t)(raw - data) : offset;
        extract(x, record, place_make(source_file(s)->number, at), rows);
    }
}

void source_decode_odd(source *s, scan_part *p, extractor *x)
{
    const log_file *f = source_file(s);
    odd_rows rows = {x, &p->rows, f->number};
    for (size_t i = 0; i < p->odd_count; i++) {
        const scan_odd *odd = &p->odd[i];
        const char *text = p->odd_text.data + odd->at;
        if (odd->block != NULL) {
            block_cutter_decode_odd(cutter_of(s), odd->block, text, take_odd_row, &rows);
            continue;
        }
        nl_decoder_pass_over(s->decoder, f->format, odd->lines_before, odd->bytes_before);
        nl_decoder_feed(s->decoder, text, odd->size);
        take_decoded(s, text, odd->size, odd->offset, x, &p->rows);
    }
    if (s->decoder != NULL)
        nl_decoder_pass_over(s->decoder, f->format, p->lines_after, p->bytes_after);
}

/* Closes the feed. The source ends after the last record of the feed. */
static void end_feed(source *s)
{
    feed_close(s->feed);
    feed_unref(s->feed);
    s->feed = NULL;
    s->follow = false;
}

void source_take_fed(source *s, batch *rows, extractor *x)
{
    log_file *f = source_file(s);
    nl_buffer line = {0};
    nl_record *record;
    while (s->feed != NULL && rows->count < FED_AT_ONCE && (record = feed_take(s->feed)) != NULL) {
        line.size = 0;
        if (record->raw_format == NL_FORMAT_ULM)
            nl_buffer_append(&line, record->raw.data, record->raw.size);
        else
            nl_record_encode(record, NL_FORMAT_ULM, &line);
        if (line.size == 0 || line.data[line.size - 1] != '\n')
            nl_buffer_append(&line, "\n", 1);
        uint64_t offset = log_file_size(f);
        if (log_file_append(f, line.data, line.size)) {
            extract(x, record, place_make(f->number, offset), rows);
        } else {
            nl_error_set_errno("write a temporary file");
            notice_error(s);
            end_feed(s);
        }
        nl_record_free(record);
    }
    s->at = log_file_size(f);
    nl_buffer_free(&line);
}

void source_finish(source *s, batch *rows, extractor *x)
{
    const log_file *f = source_file(s);
    if (f == NULL || f->format == NL_FORMAT_NLB || s->decoder == NULL)
        return;
    uint64_t size = log_file_size(f), from = s->at;
    nl_buffer line = {0};
    size_t rest = (size_t)MIN(size > s->at ? size - s->at : 0, 2 << 20);
    nl_buffer_reserve(&line, rest + 64);
    ssize_t got = rest > 0 ? log_file_read_at(f->fd, line.data, rest, s->at) : 0;
    if (got > 0) {
        nl_decoder_feed(s->decoder, line.data, (size_t)got);
        take_decoded(s, line.data, (size_t)got, from, x, rows);
        s->at += (uint64_t)got;
    }
    nl_decoder_finish(s->decoder);
    take_decoded(s, line.data, (size_t)got, from, x, rows);
    nl_buffer_free(&line);
}
