#include "config.h"

#include "value_file.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/write_some.h"
#include "program/program.h"
#include "requests/record_sample.h"
#include "take_out.h"
#include "time_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SEGMENT_SIZE = 64 << 20,   /* bytes of the file that a segment describes */
    SEGMENT_ENTRIES = 1 << 19, /* entries after which a segment ends */
    FIRST_WRITE = 4 << 20,     /* bytes of the file after which a segment is written for the first time */
    INFER_INTERVAL = 64 << 20, /* bytes of files */
    INFER_RECORDS_MAX = 2000,  /* number of records from which fields are inferred */
    SEEN = 1 << 12,            /* number of latest entries that are compared with new entries */
    OPENING = O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK,
};

struct value_file {
    char *name;       /* name of the index */
    char *final_name; /* its name after value_file_rename; NULL if it is not renamed */
    int file;         /* descriptor of the indexed file; the caller closes it */
    int fd;           /* descriptor of the index; -1: it was not written yet */
    bool failed;      /* writing has failed; no more is written */
    value_choice *choice;
    nl_time_index index; /* the pieces that have ended */
    size_t capacity;
    struct {
        uint64_t at;      /* its offset in the index */
        size_t size;      /* size of its latest version in the index */
        uint64_t covered; /* bytes of the file that this version describes */
        size_t first;     /* number of its first piece */
        nl_value_fields fields;
        nl_buffer entries; /* uint64_t */
        size_t piece;      /* entries.size at the start of the current piece */
    } segment;
    bool missed; /* the current piece has records whose keys are missing */
    uint64_t seen[SEEN];
    nl_buffer encoded;
};

/* ---- the choice of fields ---- */

nl_status value_choice_set(value_choice *c, const char *names)
{
    *c = (value_choice){.given = names != NULL};
    if (names == NULL) {
        nl_value_fields_add(&c->fields, "TRACE.ID", strlen("TRACE.ID"));
        return NL_OK;
    }
    c->none = strcmp(names, "none") == 0;
    for (const char *at = names; !c->none && *at != '\0';) {
        size_t size = strcspn(at, ",");
        if (!nl_value_fields_add(&c->fields, at, size))
            return nl_error_set(
                NL_ERROR_INVALID,
                "index=%s: name 1 to %d fields, separated by commas, but no standard field; or use none", names,
                NL_VALUE_FIELDS_MAX);
        at += size + (at[size] == ',');
    }
    return NL_OK;
}

static void sample_record(void *user, const nl_record *record)
{
    record_sample *s = user;
    if (s->record_count < INFER_RECORDS_MAX)
        record_sample_add(s, record);
}

/* Infers the ID fields from a part of the file. */
static void value_file_infer(value_file *v, uint64_t begin, uint64_t end)
{
    record_sample sample = {0};
    value_choice *c = v->choice;
    nl_time_piece piece;
    c->written = 0;
    if (!time_scan_records(v->file, begin, end, end, &piece, sample_record, &sample) && sample.record_count == 0) {
        record_sample_free(&sample);
        return;
    }
    drawing *d = record_sample_infer(&sample, NULL);
    c->inferred = true;
    c->fields.count = 1; /* TRACE.ID */
    for (guint i = 0; i < d->lifelines->len; i++) {
        const drawing_lifeline *lifeline = g_ptr_array_index(d->lifelines, i);
        for (char **id = lifeline->ids; *id != NULL; id++)
            for (const char *at = *id; *at != '\0';) {
                size_t size = strcspn(at, "|");
                nl_value_fields_add(&c->fields, at, size);
                at += size + (at[size] == '|');
            }
    }
    drawing_free(d);
    record_sample_free(&sample);
}

static bool is_inference_due(const value_choice *c)
{
    return !c->given && (!c->inferred || c->written >= INFER_INTERVAL);
}

static bool are_same_fields(const nl_value_fields *a, const nl_value_fields *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; i < a->count && same; i++)
        same = strcmp(a->names[i], b->names[i]) == 0;
    return same;
}

/* ---- segments ---- */

static size_t entry_count(const value_file *v)
{
    return v->segment.entries.size / sizeof(uint64_t);
}

static void value_file_fail(value_file *v)
{
    bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG; /* writing the log file will report this */
    if (!full)
        program_error("write %s: %m; searches by value take longer without this index", v->name);
    v->failed = true;
}

/* Writes the segment over its older version. */
static void write_segment(value_file *v)
{
    const size_t first = v->segment.first, count = v->index.count - first;
    v->encoded.size = 0;
    if (v->failed || count == 0 ||
        !nl_value_index_encode(&v->index, first, count, &v->segment.fields,
                               (const uint64_t *)(const void *)v->segment.entries.data, entry_count(v), &v->encoded))
        return;
    if (v->fd < 0)
        v->fd = open(v->name, O_CREAT | O_TRUNC | OPENING, 0666);
    if (v->fd < 0 || !nl_write_all_at(v->fd, v->encoded.data, v->encoded.size, v->segment.at)) {
        value_file_fail(v);
        return;
    }
    v->segment.size = v->encoded.size;
    v->segment.covered = v->index.pieces[v->index.count - 1].end;
}

/* Ends the segment before piece `next`, at which another segment begins. */
static void end_segment(value_file *v, size_t next)
{
    v->segment.at += v->segment.size;
    v->segment.size = 0;
    v->segment.first = next;
    v->segment.covered = nl_time_index_start(&v->index, next);
    v->segment.fields = v->choice->fields;
    v->segment.entries.size = v->segment.piece = 0;
}

static void begin_value_piece(value_file *v)
{
    v->missed = false;
    v->segment.piece = v->segment.entries.size;
}

/* Writes the segment, or ends it, when it is large enough. */
static void value_file_settle(value_file *v)
{
    const uint64_t begin = nl_time_index_start(&v->index, v->segment.first),
                   end = nl_time_index_start(&v->index, v->index.count), covered = v->segment.covered - begin;
    bool ends = end - begin >= SEGMENT_SIZE || entry_count(v) >= SEGMENT_ENTRIES ||
                v->index.count - v->segment.first == NL_VALUE_PIECES_MAX;
    if (ends || end - begin >= (covered > 0 ? 2 * covered : FIRST_WRITE))
        write_segment(v);
    if (ends)
        end_segment(v, v->index.count);
}

/* ---- pieces ---- */

const nl_value_fields *value_file_fields(const value_file *v)
{
    return &v->segment.fields;
}

void value_file_miss(value_file *v)
{
    v->missed = true;
}

static void put_entry(value_file *v, uint64_t key)
{
    const uint64_t entry = nl_value_entry(key, v->index.count - v->segment.first);
    uint64_t *seen = &v->seen[key >> 16 & (SEEN - 1)];
    if (*seen == entry)
        return;
    *seen = entry;
    nl_buffer_append(&v->segment.entries, (const char *)&entry, sizeof entry);
}

void value_file_add(value_file *v, const nl_value_keys *keys)
{
    const uint64_t *key = (const uint64_t *)(const void *)keys->keys.data;
    const size_t count = nl_value_keys_count(keys);
    if (keys->unknown || !are_same_fields(&keys->fields, &v->segment.fields) ||
        entry_count(v) + count > NL_VALUE_ENTRIES_MAX)
        v->missed = true;
    for (size_t i = 0; i < count && !v->missed; i++)
        put_entry(v, key[i]);
}

static void scan_record(void *user, const nl_record *record)
{
    nl_value_keys_add_record(user, record);
}

/* Adds the keys of a piece that is read from the file. Returns false if they remain unknown. */
static bool scan_value_piece(value_file *v, uint64_t begin, uint64_t end)
{
    nl_value_keys keys = {0};
    nl_time_piece piece;
    nl_value_keys_begin(&keys, &v->segment.fields);
    bool good = time_scan_records(v->file, begin, end, end, &piece, scan_record, &keys) && piece.end == end &&
                piece.records != UINT64_MAX && !keys.unknown;
    v->missed = false;
    v->segment.entries.size = v->segment.piece;
    memset(v->seen, 0, sizeof v->seen); /* it may have removed entries */
    if (good)
        value_file_add(v, &keys);
    nl_value_keys_free(&keys);
    return good && !v->missed;
}

static void append_piece(value_file *v, const nl_time_piece *piece)
{
    if (v->index.count == v->capacity) {
        v->capacity = v->capacity > 0 ? 2 * v->capacity : 64;
        v->index.pieces = nl_memory_check(reallocarray(v->index.pieces, v->capacity, sizeof *v->index.pieces));
    }
    v->index.pieces[v->index.count++] = *piece;
}

/* Writes the segment without the current piece, which does not fit its fields or whose keys are unknown. */
static void end_before_piece(value_file *v, size_t next)
{
    v->segment.entries.size = v->segment.piece;
    write_segment(v);
    end_segment(v, next);
}

void value_file_end_piece(value_file *v, const nl_time_piece *piece, uint32_t sum, uint64_t maximum)
{
    const uint64_t begin = nl_time_index_start(&v->index, v->index.count), size = piece->end - begin;
    v->index.sum = sum;
    v->choice->written += size;
    if (is_inference_due(v->choice) && size <= maximum)
        value_file_infer(v, begin, piece->end);
    if (!are_same_fields(&v->choice->fields, &v->segment.fields)) {
        end_before_piece(v, v->index.count);
        v->missed = true;
    }
    if (v->missed && (size > maximum || !scan_value_piece(v, begin, piece->end))) {
        end_before_piece(v, v->index.count + 1);
        append_piece(v, piece);
        v->segment.covered = piece->end;
    } else {
        append_piece(v, piece);
        value_file_settle(v);
    }
    begin_value_piece(v);
}

/* ---- opening and closing ---- */

static value_file *new_value_file(const char *path, int file, value_choice *choice)
{
    value_file *v = nl_memory_check(calloc(1, sizeof *v));
    v->name = nl_memory_check(nl_value_index_name(path));
    v->file = file;
    v->fd = -1;
    v->choice = choice;
    v->segment.fields = choice->fields;
    return v;
}

/* Finds the end of the valid segments, and opens the index. */
static void go_on_with_segments(value_file *v)
{
    nl_value_segment s;
    int fd = open(v->name, O_RDWR | (OPENING & ~O_WRONLY));
    struct stat status;
    if (fd < 0)
        return;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(fd);
        return;
    }
    for (; nl_value_index_read_segment(fd, v->segment.at, &v->index, &s) && nl_value_index_verify_segment(fd, &s) &&
           s.first >= v->segment.first;
         v->segment.at += s.size)
        v->segment.first = s.first + s.count;
    v->fd = fd;
}

value_file *value_file_open(const char *path, int file, const nl_time_index *index, value_choice *choice,
                            uint64_t maximum)
{
    if (choice->none)
        return NULL;
    value_file *v = new_value_file(path, file, choice);
    nl_time_index pieces = {.sum = index->sum};
    if (index->count == 0) {
        struct stat status;
        if (lstat(v->name, &status) == 0 && S_ISREG(status.st_mode))
            unlink(v->name);
        return v;
    }
    /* Read the segments with all pieces, then repeat the pieces after the last segment. */
    v->index = *index;
    go_on_with_segments(v);
    v->index = pieces;
    for (size_t i = 0; i < v->segment.first; i++)
        append_piece(v, &index->pieces[i]);
    v->segment.covered = nl_time_index_start(index, v->segment.first);
    uint64_t left = nl_time_index_start(index, index->count) - v->segment.covered;
    for (size_t i = v->segment.first; i < index->count; i++) {
        v->missed = true;
        value_file_end_piece(v, &index->pieces[i], index->sum, left <= maximum ? maximum : 0);
    }
    v->missed = true; /* the current piece may already have bytes */
    return v;
}

value_file *value_file_rebuild(const char *path, int file, value_choice *choice)
{
    value_file *v = new_value_file(path, file, choice);
    v->final_name = v->name;
    v->name = program_format("%s.new", v->final_name);
    unlink(v->name);
    return v;
}

bool value_file_rename(value_file *v)
{
    write_segment(v);
    struct stat status;
    bool done = v->fd < 0 ? unlink(v->final_name) == 0 || errno == ENOENT
                          : fstat(v->file, &status) == 0 && make_alike(v->fd, &status) && fsync(v->fd) == 0 &&
                                rename(v->name, v->final_name) == 0;
    if (!done)
        program_error("make %s: %m", v->final_name);
    return done && !v->failed;
}

void value_file_close(value_file *v)
{
    if (v == NULL)
        return;
    if (v->final_name == NULL) {
        v->segment.entries.size = v->segment.piece; /* without a piece that has not ended */
        if (v->segment.covered < nl_time_index_start(&v->index, v->index.count))
            write_segment(v);
        if (v->fd >= 0 && ftruncate(v->fd, (off_t)(v->segment.at + v->segment.size)) != 0)
            value_file_fail(v);
    }
    if (v->fd >= 0)
        close(v->fd);
    if (v->final_name != NULL)
        unlink(v->name);
    nl_buffer_free(&v->segment.entries);
    nl_buffer_free(&v->encoded);
    free(v->index.pieces);
    free(v->final_name);
    free(v->name);
    free(v);
}
