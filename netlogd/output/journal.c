#include "config.h"

#include "journal.h"

#include "base/memory.h"
#include "base/error.h"
#include "file.h"

#include "base/write_some.h"
#include "record/crc32c.h"
#include "record/varint.h"
#include "program/program.h"
#include "base/buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    AT_SIZE = 4,
    AT_CRC = 8,
    AT_FLAGS = 12,
    AT_NUMBER = 16,
    AT_INODE = 24,
    AT_FILE_SIZE = 32,
    HEAD = 40,
    NAME = 16,
    STREAM = NAME + 3 * 8, /* size in bytes of a stream's data in an entry, not counting its gaps */
    GAP = 2 * 8,
    ENDED = 1,
    COMPACT_FROM = 1 << 20,
};

struct journal {
    char *path;
    int fd;    /* -1: there is no journal yet */
    bool torn; /* the file may end with a partial entry */
    nl_streams *streams;
    uint64_t size;    /* size of all whole entries in bytes */
    uint64_t compact; /* size at which the journal is rewritten */
    bool found;
    char (*touched)[NAME];
    size_t touched_count, touched_capacity;
    nl_buffer entry;
};

/* ---- reading ---- */

/* Returns the size of the entry at `at` in bytes, or 0 if the data has no whole entry there. */
static size_t entry_at(const char *at, size_t left)
{
    if (left < HEAD || memcmp(at, "NLJ1", 4) != 0)
        return 0;
    size_t size = nl_le32_get(at + AT_SIZE);
    if (size < HEAD || size > left)
        return 0;
    return nl_crc32c(0, at + AT_FLAGS, size - AT_FLAGS) == nl_le32_get(at + AT_CRC) ? size : 0;
}

/* Parses a stream and its gaps. Returns the end of the stream, or NULL if it is incomplete. */
static const char *get_stream(const char *at, const char *end, nl_stream_state *state, nl_buffer *gaps)
{
    if (end - at < STREAM)
        return NULL;
    *state = (nl_stream_state){.next = nl_le64_get(at + NAME),
                               .latest_ns = (int64_t)nl_le64_get(at + NAME + 8),
                               .gap_count = nl_le64_get(at + NAME + 16)};
    memcpy(state->stream, at, NAME);
    at += STREAM;
    if (state->gap_count > (size_t)(end - at) / GAP)
        return NULL;
    gaps->size = 0;
    for (size_t i = 0; i < state->gap_count; i++, at += GAP) {
        nl_number_range gap = {nl_le64_get(at), nl_le64_get(at + 8)};
        nl_buffer_append(gaps, (const char *)&gap, sizeof gap);
    }
    state->gaps = (const nl_number_range *)gaps->data;
    return at;
}

static void apply(nl_streams *streams, const char *entry, size_t size, journal_mark *mark)
{
    static const char none[NAME];
    *mark = (journal_mark){.number = nl_le64_get(entry + AT_NUMBER),
                           .inode = nl_le64_get(entry + AT_INODE),
                           .size = nl_le64_get(entry + AT_FILE_SIZE),
                           .ended = (nl_le32_get(entry + AT_FLAGS) & ENDED) != 0};
    nl_stream_state state;
    nl_buffer gaps = {0};
    for (const char *at = entry + HEAD; (at = get_stream(at, entry + size, &state, &gaps)) != NULL;)
        if (memcmp(state.stream, none, NAME) != 0)
            nl_streams_set(streams, &state);
    nl_buffer_free(&gaps);
}

static nl_status journal_read_all(const journal *j, nl_buffer *content)
{
    struct stat status;
    if (fstat(j->fd, &status) != 0)
        return nl_error_set_errno("read %s", j->path);
    nl_buffer_reserve(content, (size_t)status.st_size + 1);
    for (;;) {
        ssize_t got = read(j->fd, content->data + content->size, content->capacity - content->size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return nl_error_set_errno("read %s", j->path);
        if (got == 0)
            return NL_OK;
        content->size += (size_t)got;
        nl_buffer_reserve(content, 1);
    }
}

/* Reads the entries, and sets *all to the size of the file. */
static nl_status read_entries(journal *j, journal_mark *mark, size_t *all)
{
    nl_buffer content = {0};
    nl_status status = journal_read_all(j, &content);
    for (size_t size; status == NL_OK && (size = entry_at(content.data + j->size, content.size - j->size)) > 0;) {
        apply(j->streams, content.data + j->size, size, mark);
        j->size += size;
        j->found = true;
    }
    *all = content.size;
    nl_buffer_free(&content);
    return status;
}

/* Reads the entries, and removes an incomplete last entry. */
static nl_status journal_read_valid(journal *j, journal_mark *mark)
{
    size_t all;
    nl_status status = read_entries(j, mark, &all);
    if (status == NL_OK && j->size < all && ftruncate(j->fd, (off_t)j->size) != 0)
        status = nl_error_set_errno("write %s", j->path);
    return status;
}

bool journal_look(const char *path, nl_streams *streams, journal_mark *mark)
{
    journal j = {.path = (char *)path, .streams = streams, .fd = open(path, O_RDONLY | O_CLOEXEC)};
    size_t all;
    if (j.fd < 0)
        nl_error_set_errno("open %s", path);
    bool found = j.fd >= 0 && read_entries(&j, mark, &all) == NL_OK && j.found;
    if (j.fd >= 0)
        close(j.fd);
    return found;
}

journal *journal_open(const char *path, nl_streams *streams, journal_mark *mark, bool *found)
{
    journal *j = nl_memory_check(calloc(1, sizeof *j));
    j->path = program_copy(path);
    j->streams = streams;
    j->compact = COMPACT_FROM;
    j->fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
    nl_status status = NL_OK;
    if (j->fd >= 0)
        status = journal_read_valid(j, mark);
    else if (errno != ENOENT)
        status = nl_error_set_errno("open %s", path);
    *found = j->found;
    if (status == NL_OK)
        return j;
    journal_close(j);
    return NULL;
}

void journal_close(journal *j)
{
    if (j == NULL)
        return;
    if (j->fd >= 0)
        close(j->fd);
    nl_buffer_free(&j->entry);
    free(j->touched);
    free(j->path);
    free(j);
}

/* ---- writing ---- */

void journal_touch(journal *j, const unsigned char stream[NAME])
{
    /* A client usually sends many consecutive blocks of the same stream. */
    if (j->touched_count > 0 && memcmp(j->touched[j->touched_count - 1], stream, NAME) == 0)
        return;
    NL_ARRAY_GROW(j->touched, j->touched_count, j->touched_capacity);
    memcpy(j->touched[j->touched_count++], stream, NAME);
}

bool journal_is_needed(const journal *j)
{
    return j->found || j->touched_count > 0;
}

static void add_stream(void *user, const nl_stream_state *state)
{
    nl_buffer *entry = user;
    size_t size = STREAM + state->gap_count * GAP;
    nl_buffer_reserve(entry, size);
    char *at = entry->data + entry->size;
    memcpy(at, state->stream, NAME);
    nl_le64_put(at + NAME, state->next);
    nl_le64_put(at + NAME + 8, (uint64_t)state->latest_ns);
    nl_le64_put(at + NAME + 16, state->gap_count);
    for (size_t i = 0; i < state->gap_count; i++) {
        nl_le64_put(at + STREAM + i * GAP, state->gaps[i].from);
        nl_le64_put(at + STREAM + i * GAP + 8, state->gaps[i].to);
    }
    entry->size += size;
}

static void begin_entry(nl_buffer *entry)
{
    entry->size = 0;
    nl_buffer_reserve(entry, HEAD);
    entry->size = HEAD;
}

static void finish_entry(nl_buffer *entry, const journal_mark *mark)
{
    char *at = entry->data;
    memcpy(at, "NLJ1", 4);
    nl_le32_put(at + AT_SIZE, (uint32_t)entry->size);
    nl_le32_put(at + AT_FLAGS, mark->ended ? ENDED : 0);
    nl_le64_put(at + AT_NUMBER, mark->number);
    nl_le64_put(at + AT_INODE, mark->inode);
    nl_le64_put(at + AT_FILE_SIZE, mark->size);
    nl_le32_put(at + AT_CRC, nl_crc32c(0, at + AT_FLAGS, entry->size - AT_FLAGS));
}

static int by_name(const void *a, const void *b)
{
    return memcmp(a, b, NAME);
}

static void add_touched(journal *j)
{
    if (j->touched_count > 0)
        qsort(j->touched, j->touched_count, NAME, by_name);
    for (size_t i = 0; i < j->touched_count; i++) {
        nl_stream_state state;
        bool again = i > 0 && memcmp(j->touched[i], j->touched[i - 1], NAME) == 0;
        if (!again && nl_streams_get(j->streams, (const unsigned char *)j->touched[i], &state))
            add_stream(&j->entry, &state);
    }
}

/* On failure, the old journal remains. */
nl_status journal_write_all(journal *j, const journal_mark *mark, bool sync)
{
    char *beside = program_format("%s.new", j->path);
    begin_entry(&j->entry);
    nl_streams_list(j->streams, add_stream, &j->entry);
    finish_entry(&j->entry, mark);
    int fd = open(beside, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    bool good = fd >= 0 && nl_write_all(fd, j->entry.data, j->entry.size) && (!sync || fdatasync(fd) == 0) &&
                rename(beside, j->path) == 0;
    if (!good) {
        nl_error_set_errno("write %s", beside);
        unlink(beside);
    }
    free(beside);
    if (!good && fd >= 0)
        close(fd);
    if (!good)
        return NL_FAILED;
    /*
     * Ensure that the old journal cannot reappear after a crash, because the next netlogd would then remove
     * acknowledged records.
     */
    if (sync)
        output_file_sync_directory(j->path);
    if (j->fd >= 0)
        close(j->fd);
    j->fd = fd;
    j->found = true;
    j->torn = false;
    j->size = j->entry.size;
    j->compact = 2 * j->size > COMPACT_FROM ? 2 * j->size : COMPACT_FROM;
    return NL_OK;
}

/* Appends the prepared entry. */
static nl_status append(journal *j, bool sync)
{
    if (j->torn && ftruncate(j->fd, (off_t)j->size) != 0)
        return nl_error_set_errno("write %s", j->path);
    j->torn = true;
    if (nl_write_all(j->fd, j->entry.data, j->entry.size) && (!sync || fdatasync(j->fd) == 0)) {
        j->size += j->entry.size;
        j->torn = false;
        j->found = true;
        return NL_OK;
    }
    nl_error_set_errno("write %s", j->path);
    if (ftruncate(j->fd, (off_t)j->size) == 0)
        j->torn = false;
    return NL_FAILED;
}

nl_status journal_sync(const journal *j)
{
    return j->fd < 0 || fdatasync(j->fd) == 0 ? NL_OK : nl_error_set_errno("fsync %s", j->path);
}

nl_status journal_begin(journal *j, const journal_mark *mark, bool sync)
{
    if (j->fd < 0 && (j->fd = open(j->path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666)) < 0)
        return nl_error_set_errno("open %s", j->path);
    begin_entry(&j->entry);
    finish_entry(&j->entry, mark);
    return append(j, sync);
}

/* Returns whether the journal's file was removed, for example together with its directory. */
static bool journal_is_removed(const journal *j)
{
    struct stat status;
    return fstat(j->fd, &status) == 0 && status.st_nlink == 0;
}

nl_status journal_write(journal *j, const journal_mark *mark, bool sync)
{
    bool rewrite = j->fd < 0 || j->torn || j->size > j->compact || mark->ended || journal_is_removed(j);
    nl_status status = rewrite ? journal_write_all(j, mark, sync) : NL_FAILED;
    if (status != NL_OK && j->fd >= 0) {
        begin_entry(&j->entry);
        add_touched(j);
        finish_entry(&j->entry, mark);
        status = append(j, sync);
    }
    if (status == NL_OK)
        j->touched_count = 0;
    return status;
}
