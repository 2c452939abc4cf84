#include "config.h"

#include "transport/spool_row.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/write_some.h"
#include "record/block_read.h"
#include "transport/destination.h"
#include "transport/spool_losses.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FILE_NAME_SIZE = NL_SPOOL_NAME_SIZE + 32,
    READ_ATTEMPTS = 3,      /* attempts before an unreadable segment is renamed */
    SEGMENTS_MAX = 1 << 20, /* maximum number of segments in a valid state */
};

static const char MAGIC[8] = "NLSPOOL3";
static const char OLD_MAGIC[8] = "NLSPOOL2"; /* the state has no member `part` */

/*
 * The header of a put. The process writes the header after the data. Therefore, a killed process leaves no incomplete
 * put.
 */
typedef struct put_head {
    uint32_t size;    /* size of the data in bytes */
    uint32_t records; /* number of records */
} put_head;

_Static_assert(sizeof(put_head) == NL_SPOOL_PUT_HEAD, "no padding");

static nl_status row_failed(const nl_spool_row *row, const char *action, const char *file)
{
    return nl_error_set_errno("%s the spool %s/%s", action, row->directory, file);
}

static bool lock_file(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &whole) == 0;
}

static void name_segment(const nl_spool_row *row, uint64_t number, const char *suffix, char file[FILE_NAME_SIZE])
{
    snprintf(file, FILE_NAME_SIZE, "%s-%06" PRIu64 ".%s", row->name, number, suffix);
}

size_t nl_spool_row_name_size(const char *file)
{
    const char *hyphen = strrchr(file, '-');
    uint64_t number;
    char rest;
    const bool is_segment = hyphen != NULL && hyphen - file < NL_SPOOL_NAME_SIZE &&
                            sscanf(hyphen, "-%" SCNu64 ".spoo%c", &number, &rest) == 2 && rest == 'l';
    return is_segment ? (size_t)(hyphen - file) : 0;
}

static void name_losses(const nl_spool_row *row, uint64_t losses_file, char file[FILE_NAME_SIZE])
{
    snprintf(file, FILE_NAME_SIZE, "%s-%c.lost", row->name, losses_file == 1 ? 'a' : 'b');
}

/* Writes a new state. Returns NL_FAILED on failure; row->state is then unchanged. */
static nl_status change_state(nl_spool_row *row, const nl_spool_row_state *state)
{
    if (!nl_write_all_at(row->fd, state, sizeof *state, 0))
        return row_failed(row, "write", row->name);
    row->state = *state;
    return NL_OK;
}

/* ---- opening and closing ---- */

static nl_spool_row *new_row(const char *directory, int directory_fd, const char *name)
{
    nl_spool_row *row = nl_memory_check(calloc(1, sizeof *row));
    if (row == NULL)
        return NULL;
    row->directory = directory;
    row->directory_fd = directory_fd;
    snprintf(row->name, sizeof row->name, "%s", name);
    row->fd = -1;
    row->last = &row->segments;
    return row;
}

nl_spool_row *nl_spool_row_make(const char *directory, int directory_fd)
{
    uint64_t random;
    char name[NL_SPOOL_NAME_SIZE], hidden[FILE_NAME_SIZE], file[FILE_NAME_SIZE];
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        random = (uint64_t)nl_time_now_ns() ^ (uint64_t)getpid() << 32;
    snprintf(name, sizeof name, "%020" PRId64 "-%016" PRIx64, nl_time_now_ns(), random);
    snprintf(hidden, sizeof hidden, "%s.tmp", name);
    snprintf(file, sizeof file, "%s.row", name);
    nl_spool_row *row = new_row(directory, directory_fd, name);
    if (row == NULL)
        return NULL;
    nl_spool_row_state state = {.first = 1};
    memcpy(state.magic, MAGIC, sizeof MAGIC);
    row->own = true;
    row->fd = openat(directory_fd, hidden, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    row->identity = nl_identity_of(row->fd);
    /* The file gets its final name last, so that other processes find it locked. */
    if (row->fd >= 0 && lock_file(row->fd) && change_state(row, &state) == NL_OK &&
        renameat(directory_fd, hidden, directory_fd, file) == 0)
        return row;
    row_failed(row, "write", file);
    if (row->fd >= 0)
        unlinkat(directory_fd, hidden, 0);
    nl_spool_row_close(row);
    return NULL;
}

/*
 * Reads the state of an open file. Returns NL_END if another process has removed the file, and NL_MALFORMED if the file
 * has no valid state.
 */
static nl_status read_state(int fd, nl_spool_row_state *state)
{
    const size_t old_size = offsetof(nl_spool_row_state, part);
    struct stat status;
    if (fstat(fd, &status) != 0)
        return NL_FAILED;
    if (status.st_nlink == 0)
        return NL_END;
    if (!S_ISREG(status.st_mode) || status.st_nlink != 1 || status.st_size < (off_t)old_size)
        return NL_MALFORMED;
    *state = (nl_spool_row_state){0};
    const size_t size = status.st_size < (off_t)sizeof *state ? old_size : sizeof *state;
    if (!nl_read_all_at(fd, state, size, 0))
        return NL_FAILED;
    const bool old = size == old_size && memcmp(state->magic, OLD_MAGIC, sizeof OLD_MAGIC) == 0;
    if (old)
        memcpy(state->magic, MAGIC, sizeof MAGIC);
    bool valid = (old || size == sizeof *state) && memcmp(state->magic, MAGIC, sizeof MAGIC) == 0 && state->first > 0 &&
                 state->last >= state->first - 1 && state->last - state->first + 1 < SEGMENTS_MAX &&
                 state->losses_file <= 2;
    return valid ? NL_OK : NL_MALFORMED;
}

bool nl_spool_row_is_damaged(int directory_fd, const char *name)
{
    char file[FILE_NAME_SIZE];
    nl_spool_row_state state;
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    snprintf(file, sizeof file, "%s.row", name);
    int fd = openat(directory_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT;
    const bool free = fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type == F_UNLCK;
    const bool damaged = free && read_state(fd, &state) == NL_MALFORMED;
    close(fd);
    return damaged;
}

nl_status nl_spool_row_adopt(const char *directory, int directory_fd, const char *name, nl_spool_row **adopted)
{
    char file[FILE_NAME_SIZE];
    *adopted = NULL;
    nl_spool_row *row = new_row(directory, directory_fd, name);
    if (row == NULL)
        return NL_FAILED;
    nl_status status = NL_END;
    snprintf(file, sizeof file, "%s.row", name);
    row->fd = openat(directory_fd, file, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    row->identity = nl_identity_of(row->fd);
    if (row->fd < 0 && errno != ENOENT)
        status = row_failed(row, "open", file);
    else if (row->fd >= 0 && lock_file(row->fd) && (status = read_state(row->fd, &row->state)) == NL_FAILED)
        row_failed(row, "read", file);
    if (status != NL_OK) {
        nl_spool_row_close(row);
        return status == NL_MALFORMED ? NL_END : status;
    }
    /* Remove the files before and after the segments of the state, which a killed process may have left. */
    name_segment(row, row->state.first - 1, "spool", file);
    unlinkat(directory_fd, file, 0);
    name_segment(row, row->state.last + 1, "spool", file);
    unlinkat(directory_fd, file, 0);
    *adopted = row;
    return NL_OK;
}

static void pop_segment(nl_spool_row *row)
{
    nl_spool_segment *first = row->segments;
    if (first == NULL)
        return;
    row->segments = first->next;
    if (row->segments == NULL)
        row->last = &row->segments;
    row->size -= first->size;
    nl_identity_close(&first->identity, first->fd);
    free(first);
}

void nl_spool_row_close(nl_spool_row *row)
{
    if (row == NULL)
        return;
    while (row->segments != NULL)
        pop_segment(row);
    if (row->fd >= 0)
        nl_identity_close(&row->identity, row->fd);
    free(row);
}

void nl_spool_row_remove(nl_spool_row *row)
{
    char file[FILE_NAME_SIZE];
    for (uint64_t losses_file = 1; losses_file <= 2; losses_file++) {
        name_losses(row, losses_file, file);
        unlinkat(row->directory_fd, file, 0);
    }
    snprintf(file, sizeof file, "%s.row", row->name);
    unlinkat(row->directory_fd, file, 0);
    nl_spool_row_close(row);
}

bool nl_spool_row_is_sound(const nl_spool_row *row)
{
    bool sound = nl_identity_holds(&row->identity, row->fd);
    for (const nl_spool_segment *s = row->segments; s != NULL && sound; s = s->next)
        sound = nl_identity_holds(&s->identity, s->fd);
    return sound;
}

/* Returns a segment for an open file; NULL if memory runs out. */
static nl_spool_segment *new_segment(uint64_t number, int fd, uint64_t size)
{
    nl_spool_segment *s = nl_memory_check(calloc(1, sizeof *s));
    if (s != NULL)
        *s = (nl_spool_segment){.number = number, .fd = fd, .identity = nl_identity_of(fd), .size = size};
    return s;
}

static void add_segment(nl_spool_row *row, nl_spool_segment *s)
{
    *row->last = s;
    row->last = &s->next;
    row->size += s->size;
}

/* ---- putting ---- */

/*
 * Starts a segment. Creates the file before the state includes the segment, because a number without a file would cause
 * the next segment to be delivered or dropped twice. If the process is killed between these steps, nl_spool_row_adopt
 * removes the file. Returns NULL on failure.
 */
static nl_spool_segment *start_segment(nl_spool_row *row)
{
    char file[FILE_NAME_SIZE];
    nl_spool_row_state state = row->state;
    name_segment(row, ++state.last, "spool", file);
    int fd = openat(row->directory_fd, file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        row_failed(row, "write", file);
        return NULL;
    }
    nl_spool_segment *s = new_segment(state.last, fd, 0);
    if (s != NULL && change_state(row, &state) == NL_OK) {
        add_segment(row, s);
        return s;
    }
    free(s);
    unlinkat(row->directory_fd, file, 0);
    close(fd);
    return NULL;
}

/* Returns the number of records in a put, which has whole lines or whole blocks. */
static uint64_t count_put(const char *data, size_t size)
{
    bool blocks = size >= NL_BLOCK_MAGIC_SIZE && memcmp(data, NL_BLOCK_MAGIC, NL_BLOCK_MAGIC_SIZE) == 0;
    return nl_records_count(blocks ? NL_FORMAT_NLB : NL_FORMAT_ULM, data, size);
}

nl_status nl_spool_row_put(nl_spool_row *row, const char *data, size_t size, uint64_t segment_size)
{
    nl_spool_segment *s = row->segments;
    while (s != NULL && s->next != NULL)
        s = s->next;
    if (s == NULL || s->size >= segment_size)
        s = start_segment(row);
    if (s == NULL)
        return NL_FAILED;
    put_head head = {.size = (uint32_t)size, .records = (uint32_t)count_put(data, size)};
    if (!nl_write_all_at(s->fd, data, size, s->size + sizeof head) ||
        !nl_write_all_at(s->fd, &head, sizeof head, s->size)) {
        char file[FILE_NAME_SIZE];
        name_segment(row, s->number, "spool", file);
        row_failed(row, "write", file);
        head = (put_head){0}; /* part of the put may have been written */
        if (ftruncate(s->fd, (off_t)s->size) != 0)
            nl_write_all_at(s->fd, &head, sizeof head, s->size);
        return NL_FAILED;
    }
    s->size += sizeof head + size;
    s->records += head.records;
    s->bytes += size;
    s->unsafe = true;
    row->size += sizeof head + size;
    return NL_OK;
}

/* ---- reading ---- */

typedef enum put_status {
    PUT_READ,
    PUT_END, /* the end of the segment, or the point at which its writer was killed */
    PUT_UNREADABLE,
} put_status;

/* Reads the head of the put at an offset. */
static put_status read_head(const nl_spool_segment *s, uint64_t at, put_head *head)
{
    *head = (put_head){0};
    if (at + sizeof *head > s->size)
        return PUT_END;
    if (!nl_read_all_at(s->fd, head, sizeof *head, at)) {
        *head = (put_head){0};
        return PUT_UNREADABLE;
    }
    return head->size > 0 ? PUT_READ : PUT_END;
}

/* Appends the put at an offset to `out` and moves the offset past the put. */
static put_status read_put(const nl_spool_row *row, const nl_spool_segment *s, uint64_t *at, nl_buffer *out)
{
    put_head head;
    put_status status = read_head(s, *at, &head);
    if (status == PUT_READ && *at + sizeof head + head.size > s->size) {
        errno = EIO; /* the file was truncated; otherwise, it would have the data, which is written before the header */
        status = PUT_UNREADABLE;
    } else if (status == PUT_READ && !nl_buffer_reserve(out, head.size)) {
        return PUT_UNREADABLE;
    } else if (status == PUT_READ && !nl_read_all_at(s->fd, out->data + out->size, head.size, *at + sizeof head)) {
        status = PUT_UNREADABLE;
    }
    if (status == PUT_READ) {
        out->size += head.size;
        *at += sizeof head + head.size;
    } else if (status == PUT_UNREADABLE) {
        char file[FILE_NAME_SIZE];
        name_segment(row, s->number, "spool", file);
        row_failed(row, "read", file);
    }
    return status;
}

/*
 * Removes the first segment, or only renames its file if new_suffix is not NULL. `lost` is the number of its records
 * that count as lost. `losses_file` becomes the valid losses file.
 */
static nl_status leave_first(nl_spool_row *row, uint64_t lost, uint64_t losses_file, const char *new_suffix)
{
    char file[FILE_NAME_SIZE], new_file[FILE_NAME_SIZE];
    nl_spool_row_state state = row->state;
    uint64_t number = state.first++;
    state.delivered = state.part = 0;
    state.lost += lost;
    state.losses_file = losses_file;
    if (change_state(row, &state) != NL_OK)
        return NL_FAILED;
    name_segment(row, number, "spool", file);
    if (new_suffix != NULL) {
        name_segment(row, number, new_suffix, new_file);
        renameat(row->directory_fd, file, row->directory_fd, new_file);
    } else {
        unlinkat(row->directory_fd, file, 0);
    }
    if (row->segments != NULL && row->segments->number == number)
        pop_segment(row);
    row->read_failures = 0;
    return NL_OK;
}

/* Opens the first existing segment of another process's row. Returns NL_END if no segment exists. */
static nl_status open_first(nl_spool_row *row)
{
    char file[FILE_NAME_SIZE];
    struct stat status;
    while (row->segments == NULL && row->state.first <= row->state.last) {
        name_segment(row, row->state.first, "spool", file);
        int fd = openat(row->directory_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd >= 0) {
            uint64_t size = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0;
            nl_spool_segment *s = new_segment(row->state.first, fd, size);
            if (s == NULL) {
                close(fd);
                return NL_FAILED;
            }
            add_segment(row, s);
            break;
        }
        if (errno != ENOENT)
            return row_failed(row, "open", file);
        if (leave_first(row, 0, row->state.losses_file, NULL) != NL_OK) /* the segment was lost in a system crash */
            return NL_FAILED;
    }
    return row->segments != NULL ? NL_OK : NL_END;
}

/* Returns the known number of records in an unreadable segment; at least 1 if another process wrote the segment. */
static uint64_t count_unreadable(const nl_spool_row *row)
{
    const nl_spool_segment *s = row->segments;
    put_head head;
    uint64_t count = 0;
    if (row->own)
        return s->records;
    for (uint64_t at = row->state.delivered; read_head(s, at, &head) == PUT_READ; at += sizeof head + head.size)
        count += head.records;
    return count > 0 ? count : 1;
}

nl_status nl_spool_row_peek(nl_spool_row *row, nl_buffer *out, size_t size)
{
    const unsigned failures = nl_memory_failures;
    nl_status status;
    out->size = 0;
    while ((status = open_first(row)) == NL_OK) {
        uint64_t at = row->state.delivered;
        put_status put = PUT_READ;
        while (out->size < size && put == PUT_READ)
            put = read_put(row, row->segments, &at, out);
        if (out->size > row->state.part) {
            out->size -= row->state.part;
            memmove(out->data, out->data + row->state.part, out->size);
            return NL_OK;
        }
        if (put == PUT_UNREADABLE && (nl_memory_failures != failures || ++row->read_failures < READ_ATTEMPTS))
            return NL_FAILED;
        uint64_t lost = put == PUT_UNREADABLE ? count_unreadable(row) : 0;
        if (leave_first(row, lost, row->state.losses_file, put == PUT_UNREADABLE ? "damaged" : NULL) != NL_OK)
            return NL_FAILED;
    }
    return status == NL_END ? NL_OK : status;
}

size_t nl_spool_row_delivered(nl_spool_row *row, size_t size)
{
    nl_spool_segment *s = row->segments;
    put_head head;
    nl_spool_row_state state = row->state;
    put_status put = PUT_END;
    if (s == NULL)
        return 0;
    size_t left = size + (size_t)state.part;
    while (left > 0 && (put = read_head(s, state.delivered, &head)) == PUT_READ && head.size <= left) {
        left -= head.size;
        s->records -= head.records < s->records ? head.records : s->records;
        s->bytes -= head.size < s->bytes ? head.size : s->bytes;
        state.delivered += sizeof head + head.size;
    }
    state.part = put == PUT_READ ? left : 0;
    row->read_failures = 0;
    if (change_state(row, &state) != NL_OK)
        row->state = state; /* if the process is killed before the next change, the records are delivered again */
    const size_t done = size - (left - (size_t)state.part);
    row->passed += done;
    if (row->state.delivered >= s->size)
        leave_first(row, 0, row->state.losses_file, NULL);
    return done;
}

/* ---- dropping ---- */

/* Appends the content of the losses file, if it exists, to `out`. Returns NL_FAILED on failure. */
static nl_status read_losses_file(const nl_spool_row *row, nl_buffer *out)
{
    char file[FILE_NAME_SIZE];
    struct stat status;
    if (row->state.losses_file == 0)
        return NL_OK;
    name_losses(row, row->state.losses_file, file);
    int fd = openat(row->directory_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? NL_OK : row_failed(row, "open", file);
    nl_status result = NL_FAILED;
    if (fstat(fd, &status) != 0) {
        row_failed(row, "read", file);
    } else if (nl_buffer_reserve(out, (size_t)status.st_size)) {
        if (nl_read_all_at(fd, out->data + out->size, (size_t)status.st_size, 0)) {
            out->size += (size_t)status.st_size;
            result = NL_OK;
        } else {
            row_failed(row, "read", file);
        }
    }
    close(fd);
    return result;
}

/*
 * Writes losses to the losses file that is not in use, and sets the file's number, which is 0 if there are no losses.
 * Returns NL_FAILED on failure.
 */
static nl_status write_losses_file(const nl_spool_row *row, const nl_buffer *losses, uint64_t *losses_file)
{
    char file[FILE_NAME_SIZE];
    nl_buffer blocks = {0};
    nl_status status = NL_FAILED;
    *losses_file = losses->size == 0 ? 0 : row->state.losses_file == 1 ? 2 : 1;
    if (*losses_file == 0)
        return NL_OK;
    name_losses(row, *losses_file, file);
    if (nl_spool_losses_encode(losses, &blocks)) {
        int fd = openat(row->directory_fd, file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        status = fd >= 0 && nl_write_all_at(fd, blocks.data, blocks.size, 0) ? NL_OK : row_failed(row, "write", file);
        if (fd >= 0)
            close(fd);
    }
    nl_buffer_free(&blocks);
    return status;
}

/*
 * Collects the numbers that were dropped before, and the numbers in data or, if data is NULL, in the first segment.
 * Returns NL_FAILED on failure.
 */
static nl_status collect_losses(const nl_spool_row *row, const char *data, size_t size, nl_buffer *losses)
{
    nl_buffer bytes = {0};
    bool good = read_losses_file(row, &bytes) == NL_OK && nl_spool_losses_add(losses, bytes.data, bytes.size);
    if (good && data != NULL)
        good = nl_spool_losses_add(losses, data, size);
    const unsigned failures = nl_memory_failures;
    uint64_t at = row->state.delivered;
    bytes.size = 0;
    for (; good && data == NULL && read_put(row, row->segments, &at, &bytes) == PUT_READ; bytes.size = 0)
        good = nl_spool_losses_add(losses, bytes.data, bytes.size);
    nl_buffer_free(&bytes);
    return good && nl_memory_failures == failures ? NL_OK : NL_FAILED;
}

static void remove_losses_file(const nl_spool_row *row, uint64_t losses_file)
{
    char file[FILE_NAME_SIZE];
    name_losses(row, losses_file, file);
    if (losses_file != 0)
        unlinkat(row->directory_fd, file, 0);
}

/* Returns the number of records in the delivered part of the first put; 0 if the put cannot be read. */
static uint64_t count_delivered(const nl_spool_row *row)
{
    nl_buffer bytes = {0};
    uint64_t at = row->state.delivered;
    const bool read = row->state.part > 0 && read_put(row, row->segments, &at, &bytes) == PUT_READ;
    const uint64_t count = read ? count_put(bytes.data, row->state.part) : 0;
    nl_buffer_free(&bytes);
    return count;
}

uint64_t nl_spool_row_count(const nl_spool_row *row)
{
    uint64_t count = 0;
    for (const nl_spool_segment *s = row->segments; s != NULL; s = s->next)
        count += s->records;
    return count - (count > 0 ? count_delivered(row) : 0);
}

nl_status nl_spool_row_drop_first(nl_spool_row *row)
{
    nl_buffer losses = {0};
    uint64_t before = row->state.losses_file, losses_file, dropped = row->segments->bytes - row->state.part;
    nl_status status = collect_losses(row, NULL, 0, &losses);
    if (status == NL_OK && (status = write_losses_file(row, &losses, &losses_file)) == NL_OK &&
        (status = leave_first(row, row->segments->records - count_delivered(row), losses_file, NULL)) == NL_OK) {
        remove_losses_file(row, before);
        row->passed += dropped;
    }
    nl_buffer_free(&losses);
    return status;
}

nl_status nl_spool_row_drop(nl_spool_row *row, const char *data, size_t size)
{
    nl_buffer losses = {0};
    nl_spool_row_state state = row->state;
    state.lost += count_put(data, size);
    uint64_t before = state.losses_file;
    nl_status status = collect_losses(row, data, size, &losses);
    if (status == NL_OK && (status = write_losses_file(row, &losses, &state.losses_file)) == NL_OK &&
        (status = change_state(row, &state)) == NL_OK)
        remove_losses_file(row, before);
    nl_buffer_free(&losses);
    return status;
}

nl_status nl_spool_row_read_losses(nl_spool_row *row, nl_buffer *out)
{
    size_t size = out->size;
    nl_status status = read_losses_file(row, out);
    if (status == NL_OK)
        out->size = size + nl_records_whole(NL_FORMAT_NLB, out->data + size, out->size - size);
    return status;
}

void nl_spool_row_loss_reported(nl_spool_row *row, uint64_t count)
{
    nl_spool_row_state state = row->state;
    uint64_t losses_file = state.lost == count ? state.losses_file : 0;
    if (count == 0 && losses_file == 0)
        return;
    state.lost -= count;
    if (state.lost == 0)
        state.losses_file = 0;
    if (change_state(row, &state) != NL_OK)
        row->state = state; /* if the process is killed before this, the loss is reported again */
    remove_losses_file(row, losses_file);
}

/* ---- fsync ---- */

/*
 * Syncs a file. Succeeds if the file does not exist, because a delivered file may have been removed. Returns NL_FAILED
 * on failure.
 */
static nl_status sync_file(const nl_spool_row *row, const char *file)
{
    int fd = openat(row->directory_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? NL_OK : row_failed(row, "fsync", file);
    nl_status status = fdatasync(fd) == 0 ? NL_OK : row_failed(row, "fsync", file);
    close(fd);
    return status;
}

static nl_status sync_losses(const nl_spool_row *row)
{
    char file[FILE_NAME_SIZE];
    if (row->state.losses_file == 0)
        return NL_OK;
    name_losses(row, row->state.losses_file, file);
    return sync_file(row, file);
}

nl_status nl_spool_row_sync(nl_spool_row *row)
{
    nl_status status = sync_losses(row);
    for (nl_spool_segment *s = row->segments; s != NULL; s = s->next) {
        if (s->unsafe && fdatasync(s->fd) != 0)
            status = row_failed(row, "fsync", row->name);
        s->unsafe = false;
    }
    if (fdatasync(row->fd) != 0)
        status = row_failed(row, "fsync", row->name);
    return status;
}

nl_status nl_spool_row_sync_files(const char *directory, int directory_fd, const char *name)
{
    char file[FILE_NAME_SIZE];
    nl_spool_row row = {.directory = directory, .directory_fd = directory_fd};
    snprintf(row.name, sizeof row.name, "%s", name);
    snprintf(file, sizeof file, "%s.row", name);
    int fd = openat(directory_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? NL_OK : row_failed(&row, "fsync", file);
    nl_status status = read_state(fd, &row.state);
    if (status == NL_FAILED || fdatasync(fd) != 0)
        status = row_failed(&row, "fsync", file);
    close(fd);
    if (status != NL_OK)
        return status == NL_FAILED ? NL_FAILED : NL_OK;
    status = sync_losses(&row);
    for (uint64_t number = row.state.first; number <= row.state.last && status == NL_OK; number++) {
        name_segment(&row, number, "spool", file);
        status = sync_file(&row, file);
    }
    return status;
}
