#include "config.h"

#include "value_file.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/write_some.h"
#include "program/program.h"
#include "record/block_read.h"
#include "record/format.h"
#include "record/zstd_magic.h"
#include "requests/record_sample.h"
#include "take_out.h"
#include "time_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

enum {
    SEGMENT_ENTRIES = 1 << 19, /* entries after which a segment ends */
    INDEXED_MIN = 512 << 10,  /* minimum size of a file with an index in bytes; a search reads a smaller file quickly */
    INFER_RECORDS_MAX = 2000, /* number of records from which fields are inferred */
    SEEN = 1 << 12,           /* number of latest entries that are compared with new entries */
    PIECE_READ_MAX = 16 << 20,  /* bytes; larger pieces are decoded record by record */
    PIECE_TEXT_MAX = 128 << 20, /* decompressed bytes of a piece */
    OPENING = O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK,
};

struct value_file {
    const value_source *source;
    char *name;       /* name of the index */
    char *final_name; /* name of the index after value_file_rename; NULL: the index is not renamed */
    int file;         /* descriptor of the indexed file */
    int fd;           /* descriptor of the index; -1: it has not been written yet */
    bool failed;      /* the index gets no more segments, because writing failed or the time index has changed */
    nl_time_index index;
    uint64_t at;  /* size of the index in bytes */
    size_t first; /* index of the first piece that is not indexed */

    /* The segment that is being built: */
    nl_value_keys keys; /* keys of the latest piece */
    nl_buffer entries;  /* uint64_t */
    uint64_t seen[SEEN];

    nl_buffer data, text, encoded;
    nl_block_reader block;
    ZSTD_DStream *unpacker;
};

/* ---- the choice of fields ---- */

nl_status value_choice_set(value_choice *c, const char *names)
{
    *c = (value_choice){.none = names == NULL || strcmp(names, "none") == 0};
    if (c->none)
        return NL_OK;
    if (strcmp(names, "auto") == 0) {
        nl_value_fields_add(&c->fields, "TRACE.ID", strlen("TRACE.ID"));
        return NL_OK;
    }
    c->given = true;
    for (const char *at = names; c->given;) {
        size_t size = strcspn(at, ",");
        if (!nl_value_fields_add(&c->fields, at, size))
            return nl_error_set(
                NL_ERROR_INVALID,
                "index=%s: invalid fields; use auto, none, or the names of 1 to %d fields, separated by commas, that "
                "are not standard fields",
                names, NL_VALUE_FIELDS_MAX);
        if (at[size] == '\0')
            break;
        at += size + 1;
    }
    return NL_OK;
}

static void sample_record(void *user, const nl_record *record)
{
    record_sample *s = user;
    if (s->record_count < INFER_RECORDS_MAX)
        record_sample_add(s, record);
}

/* Infers ID fields from the records of a piece, and adds them. */
static void infer_fields(const value_file *v, size_t i, nl_value_fields *fields)
{
    record_sample sample = {0};
    nl_time_piece piece;
    const uint64_t begin = nl_time_index_start(&v->index, i), end = v->index.pieces[i].end;
    time_scan_records(v->file, begin, end, end, &piece, sample_record, &sample);
    if (sample.record_count > 0) {
        drawing *d = record_sample_infer(&sample, NULL);
        for (guint l = 0; l < d->lifelines->len; l++) {
            const drawing_lifeline *lifeline = g_ptr_array_index(d->lifelines, l);
            for (char **id = lifeline->ids; *id != NULL; id++)
                for (const char *at = *id; *at != '\0';) {
                    size_t size = strcspn(at, "|");
                    nl_value_fields_add(fields, at, size);
                    at += size + (at[size] == '|');
                }
        }
        drawing_free(d);
    }
    record_sample_free(&sample);
}

/* ---- keys of a piece ---- */

static bool is_stopped(const value_file *v)
{
    return v->source->stop != NULL && atomic_load_explicit(v->source->stop, memory_order_relaxed);
}

static bool is_block(const nl_buffer *data)
{
    return data->size >= NL_BLOCK_MAGIC_SIZE && memcmp(data->data, NL_BLOCK_MAGIC, NL_BLOCK_MAGIC_SIZE) == 0;
}

/* Adds the keys of consecutive blocks. Returns false if a block is damaged, or if the data has other content. */
static bool add_blocks(value_file *v, const nl_buffer *data)
{
    nl_block_header header;
    for (size_t at = 0, size; at < data->size; at += size) {
        size = nl_block_whole_size(data->data + at, data->size - at, &header);
        if (size == 0 || nl_block_verify(&header, data->data + at) != NL_OK)
            return false;
        if (header.type != NL_BLOCK_TYPE_RECORDS)
            continue;
        if (nl_block_open(&v->block, &header, data->data + at) != NL_OK)
            return false;
        nl_value_keys_add_block(&v->keys, &v->block);
    }
    return true;
}

/* Decompresses whole frames. Returns false if they are damaged or too large. */
static bool unpack(value_file *v)
{
    const size_t step = ZSTD_DStreamOutSize();
    ZSTD_inBuffer in = {v->data.data, v->data.size, 0};
    size_t result = 1;
    if (v->unpacker == NULL)
        v->unpacker = nl_memory_check(ZSTD_createDStream());
    ZSTD_initDStream(v->unpacker);
    v->text.size = 0;
    for (bool full = false; in.pos < in.size || full;) {
        nl_buffer_reserve(&v->text, step);
        ZSTD_outBuffer out = {v->text.data + v->text.size, step, 0};
        result = ZSTD_decompressStream(v->unpacker, &out, &in);
        v->text.size += out.pos;
        if (ZSTD_isError(result) || v->text.size > PIECE_TEXT_MAX)
            return false;
        full = result != 0 && out.pos == step;
    }
    return result == 0;
}

static void scan_record(void *user, const nl_record *record)
{
    nl_value_keys_add_record(user, record);
}

/* Adds the keys of a piece that was read, without decoding all records. Returns false if this is not possible. */
static bool add_quickly(value_file *v, uint64_t begin)
{
    const nl_buffer *data = &v->data;
    if (nl_zstd_begins(data->data, data->size)) {
        if (!unpack(v))
            return false;
        data = &v->text;
    }
    if (is_block(data))
        return add_blocks(v, data);
    const nl_format_info *info = nl_format_get_info(v->source->format);
    if (begin < v->source->own || info == NULL || !info->only_pairs)
        return false;
    nl_value_keys_add_lines(&v->keys, info->format, data->data, data->size);
    return true;
}

/* Sets the keys of a piece. Returns false if they remain unknown. */
static bool read_keys(value_file *v, uint64_t begin, uint64_t end)
{
    const size_t size = end - begin < PIECE_READ_MAX ? (size_t)(end - begin) : 0;
    nl_value_keys_clear(&v->keys);
    v->data.size = 0;
    nl_buffer_reserve(&v->data, size);
    v->data.size = size;
    if (size > 0 && nl_read_all_at(v->file, v->data.data, size, begin) && add_quickly(v, begin) && !v->keys.unknown)
        return true;
    nl_time_piece piece;
    nl_value_keys_clear(&v->keys);
    return time_scan_records(v->file, begin, end, end, &piece, scan_record, &v->keys) && piece.end == end &&
           piece.records != UINT64_MAX && !v->keys.unknown;
}

/* ---- segments ---- */

static size_t entry_count(const value_file *v)
{
    return v->entries.size / sizeof(uint64_t);
}

/* Adds an entry, unless it was added shortly before. The buffer has enough space. */
static void put_entry(value_file *v, uint64_t key, size_t piece)
{
    const uint64_t entry = nl_value_entry(key, piece);
    uint64_t *seen = &v->seen[key >> 16 & (SEEN - 1)];
    if (*seen == entry)
        return;
    *seen = entry;
    memcpy(v->entries.data + v->entries.size, &entry, sizeof entry);
    v->entries.size += sizeof entry;
}

/* Adds the entries of piece i. Returns false, and adds nothing, if they are unknown or too many. */
static bool add_piece(value_file *v, size_t i)
{
    const nl_time_piece *piece = &v->index.pieces[i];
    if (piece->records == UINT64_MAX || !read_keys(v, nl_time_index_start(&v->index, i), piece->end))
        return false;
    const uint64_t *key = (const uint64_t *)(const void *)v->keys.keys.data;
    const size_t count = nl_value_keys_count(&v->keys), before = v->entries.size;
    nl_buffer_reserve(&v->entries, count * sizeof(uint64_t));
    for (size_t k = 0; k < count; k++)
        put_entry(v, key[k], i - v->first);
    if (entry_count(v) <= NL_VALUE_ENTRIES_MAX)
        return true;
    v->entries.size = before;
    return false;
}

/* Adds consecutive pieces until the segment is large enough. Returns the number after the last piece. */
static size_t add_pieces(value_file *v)
{
    size_t i = v->first;
    v->entries.size = 0;
    memset(v->seen, 0, sizeof v->seen);
    for (; i < v->index.count && !is_stopped(v); i++) {
        const uint64_t size = nl_time_index_start(&v->index, i) - nl_time_index_start(&v->index, v->first);
        if (size >= VALUE_SEGMENT_SIZE || entry_count(v) >= SEGMENT_ENTRIES || i - v->first == NL_VALUE_PIECES_MAX ||
            !add_piece(v, i))
            break;
    }
    return i;
}

static void value_file_fail(value_file *v)
{
    /* The code that writes the log file reports a full disk. */
    bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
    if (!full)
        program_error("write %s: %m; searches by value take longer without this index", v->name);
    v->failed = true;
}

static void write_segment(value_file *v)
{
    if (v->fd < 0)
        v->fd = open(v->name, O_RDWR | O_CREAT | O_TRUNC | OPENING, 0666);
    if (v->fd >= 0 && nl_write_all_at(v->fd, v->encoded.data, v->encoded.size, v->at)) {
        v->at += v->encoded.size;
        return;
    }
    value_file_fail(v);
    if (v->fd >= 0 && ftruncate(v->fd, (off_t)v->at) != 0)
        program_error("%s: %m", v->name);
}

/* Reads the time index again. Returns false if it no longer has the pieces that were indexed. */
static bool refresh_pieces(value_file *v)
{
    const uint32_t sum = v->index.sum;
    const bool known = v->index.count > 0;
    const uint64_t covered = value_file_covered(v);
    nl_time_index_free(&v->index);
    return nl_time_index_read(v->source->path, v->file, &v->index) == NL_TIME_INDEX_READ &&
           (!known || (v->index.sum == sum && v->index.count >= v->first && value_file_covered(v) == covered));
}

bool value_file_extend(value_file *v, bool all)
{
    if (v->failed || !refresh_pieces(v)) {
        v->failed = true;
        return false;
    }
    const uint64_t end = nl_time_index_start(&v->index, v->index.count);
    if (v->first == v->index.count || end < INDEXED_MIN || (!all && end - value_file_covered(v) < VALUE_SEGMENT_SIZE))
        return false;
    nl_value_fields fields = v->source->choice.fields;
    if (!v->source->choice.given)
        infer_fields(v, v->first, &fields);
    nl_value_keys_begin(&v->keys, &fields);
    const size_t next = add_pieces(v);
    if (is_stopped(v))
        return false;
    v->encoded.size = 0;
    if (next > v->first &&
        nl_value_index_encode(&v->index, v->first, next - v->first, &fields,
                              (const uint64_t *)(const void *)v->entries.data, entry_count(v), &v->encoded))
        write_segment(v);
    v->first = next > v->first ? next : next + 1; /* the keys of piece `next` are unknown */
    return !v->failed;
}

uint64_t value_file_covered(const value_file *v)
{
    return v->first <= v->index.count ? nl_time_index_start(&v->index, v->first) : 0;
}

/* ---- opening and closing ---- */

static value_file *new_value_file(const value_source *source)
{
    value_file *v = nl_memory_check(calloc(1, sizeof *v));
    struct stat status;
    v->source = source;
    v->name = nl_memory_check(nl_value_index_name(source->path));
    v->fd = -1;
    v->file = open(source->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (v->file >= 0 && fstat(v->file, &status) == 0 && (source->inode == 0 || source->inode == status.st_ino))
        return v;
    value_file_close(v);
    return NULL;
}

/* Finds the end of the valid segments, and removes the rest. A kill can truncate only the last segment. */
static void go_on_with_segments(value_file *v)
{
    nl_value_segment s, latest = {0};
    struct stat status;
    int fd = open(v->name, O_RDWR | OPENING);
    if (fd < 0)
        return;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(fd);
        return;
    }
    size_t before = 0;
    while (nl_value_index_read_segment(fd, v->at, &v->index, &s) && s.first >= v->first) {
        before = v->first;
        latest = s;
        v->first = s.first + s.count;
        v->at += s.size;
    }
    if (v->at > 0 && !nl_value_index_verify_segment(fd, &latest)) {
        v->at = latest.at;
        v->first = before;
    }
    v->fd = fd;
    if ((uint64_t)status.st_size > v->at && ftruncate(fd, (off_t)v->at) != 0)
        value_file_fail(v);
}

value_file *value_file_open(const value_source *source)
{
    value_file *v = new_value_file(source);
    if (v != NULL && nl_time_index_read(source->path, v->file, &v->index) == NL_TIME_INDEX_READ)
        go_on_with_segments(v);
    return v;
}

value_file *value_file_open_new(const value_source *source)
{
    value_file *v = new_value_file(source);
    if (v == NULL)
        return NULL;
    v->final_name = v->name;
    v->name = program_format("%s.new", v->final_name);
    unlink(v->name);
    return v;
}

bool value_file_rename(value_file *v)
{
    struct stat status;
    bool done = v->fd < 0 ? unlink(v->final_name) == 0 || errno == ENOENT
                          : fstat(v->file, &status) == 0 && make_alike(v->fd, &status) && fsync(v->fd) == 0 &&
                                rename(v->name, v->final_name) == 0;
    if (!done)
        program_error("create %s: %m", v->final_name);
    return done && !v->failed;
}

void value_file_close(value_file *v)
{
    struct stat status;
    if (v == NULL)
        return;
    bool deleted = v->file >= 0 && fstat(v->file, &status) == 0 && status.st_nlink == 0;
    if (v->final_name != NULL || (deleted && v->fd >= 0))
        unlink(v->name);
    if (v->fd >= 0)
        close(v->fd);
    if (v->file >= 0)
        close(v->file);
    nl_value_keys_free(&v->keys);
    nl_buffer_free(&v->entries);
    nl_buffer_free(&v->data);
    nl_buffer_free(&v->text);
    nl_buffer_free(&v->encoded);
    nl_block_reader_free(&v->block);
    ZSTD_freeDStream(v->unpacker);
    nl_time_index_free(&v->index);
    free(v->final_name);
    free(v->name);
    free(v);
}
