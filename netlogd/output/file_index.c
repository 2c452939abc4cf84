#include "config.h"

#include "file_index.h"

#include "base/memory.h"
#include "program/program.h"
#include "time_scan.h"
#include "value_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CATCH_UP = 64 << 20, /* maximum number of bytes that are read when a file is opened */
    OPENING = O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK,
};

struct file_index {
    char *name;
    int file; /* descriptor of the indexed file, for reading; -1: there is no index */
    int fd;   /* descriptor of the index; -1: it has not been written yet */
    uint64_t size;
    uint32_t sum;        /* checksum of the index's header */
    uint64_t begin, end; /* offsets of the current piece */
    uint64_t next;       /* minimum end of the current piece */
    nl_time_piece times; /* times of the records in this piece */
    bool reported;       /* a failed write was reported */
    value_job *values;   /* builds the value index; NULL: netlogd writes no value index */
};

char *file_index_name(const char *path)
{
    return nl_memory_check(nl_time_index_name(path));
}

/* ---- writing ---- */

static void begin_piece(file_index *x, uint64_t at)
{
    x->begin = x->end = at;
    x->next = at + nl_time_index_piece_size(at);
    x->times = NL_TIME_PIECE_EMPTY;
}

static void give_up(file_index *x)
{
    close(x->file);
    x->file = -1;
}

static bool put_at_end(file_index *x, const char *data, size_t size)
{
    ssize_t put = pwrite(x->fd, data, size, (off_t)x->size);
    if (put == (ssize_t)size) {
        x->size += size;
        return true;
    }
    errno = put < 0 ? errno : ENOSPC;
    return false;
}

static bool put_header(file_index *x, uint64_t end)
{
    char header[NL_TIME_INDEX_HEADER];
    if (x->fd < 0)
        x->fd = open(x->name, O_CREAT | O_TRUNC | OPENING, 0666);
    return x->fd >= 0 && nl_time_index_put_header(x->file, end, header, &x->sum) &&
           put_at_end(x, header, sizeof header);
}

/* Closes an index that has no header, and removes its file. Keeps the file if it is not a regular file. */
static void remove_empty(file_index *x)
{
    struct stat status;
    if (fstat(x->fd, &status) == 0 && S_ISREG(status.st_mode))
        unlink(x->name);
    close(x->fd);
    x->fd = -1;
}

/* Ends the current piece. If its entry cannot be written, the piece continues until it is twice as large. */
static void end_piece(file_index *x)
{
    char entry[NL_TIME_INDEX_ENTRY];
    nl_time_piece piece = x->times;
    piece.end = x->end;
    if ((x->size > 0 || put_header(x, x->end)) && nl_time_index_put_entry(x->file, x->sum, x->begin, &piece, entry) &&
        put_at_end(x, entry, sizeof entry)) {
        value_thread_advance(x->values, x->end);
        begin_piece(x, x->end);
        return;
    }
    int error = errno;
    if (x->fd >= 0 && x->size == 0)
        remove_empty(x);
    /* Remove a partial entry, because the next entry would follow it. */
    if (x->fd >= 0 && ftruncate(x->fd, (off_t)x->size) != 0)
        give_up(x);
    bool full = error == ENOSPC || error == EDQUOT || error == EFBIG; /* writing the log file will report this */
    if (!x->reported && !full)
        program_error("write %s: %s; searches by time take longer without this index", x->name, strerror(error));
    x->reported = x->reported || !full;
    x->next = x->end + (x->end - x->begin);
}

/* Adds the part of the file, up to size, that is missing from the index. New records extend the last piece. */
static void catch_up(file_index *x, uint64_t size)
{
    bool good = size - x->end <= CATCH_UP;
    while (good && x->end < size) {
        nl_time_piece piece;
        good = time_scan(x->file, x->end, x->next, size, &piece);
        if (good) {
            x->end = piece.end;
            nl_time_piece_add(&x->times, &piece);
        }
        if (x->end >= x->next)
            end_piece(x);
    }
    if (x->end < size) {
        x->end = size;
        x->times = NL_TIME_PIECE_UNKNOWN;
        end_piece(x);
    }
}

static void continue_index(file_index *x, const char *path)
{
    nl_time_index index;
    if (nl_time_index_read(path, x->file, &index) != NL_TIME_INDEX_READ)
        return;
    if (index.count > 0 && nl_time_index_holds(&index, x->file, index.count))
        x->fd = open(x->name, OPENING);
    if (x->fd >= 0) {
        x->size = NL_TIME_INDEX_HEADER + index.count * NL_TIME_INDEX_ENTRY;
        x->sum = index.sum;
        begin_piece(x, nl_time_index_start(&index, index.count));
        if (index.surplus && ftruncate(x->fd, (off_t)x->size) != 0)
            give_up(x);
    }
    nl_time_index_free(&index);
}

/* Removes the value index of a removed file with the same name. */
static void remove_old_values(const char *path)
{
    char *name = nl_memory_check(nl_value_index_name(path));
    struct stat status;
    if (lstat(name, &status) == 0 && S_ISREG(status.st_mode))
        unlink(name);
    free(name);
}

static file_index *open_index(const char *path, uint64_t inode, uint64_t size, nl_format format,
                              const value_choice *choice)
{
    file_index *x = nl_memory_check(calloc(1, sizeof *x));
    struct stat status;
    x->name = file_index_name(path);
    x->fd = -1;
    x->file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    begin_piece(x, 0);
    if (x->file >= 0 && (fstat(x->file, &status) != 0 || status.st_ino != inode))
        give_up(x);
    if (x->file >= 0 && size == 0) {
        unlink(x->name); /* the index of a removed file with the same name */
        remove_old_values(path);
    } else if (x->file >= 0) {
        continue_index(x, path);
    }
    if (x->file >= 0)
        x->values = value_thread_add(path, inode, size, format, choice);
    if (x->file >= 0 && x->end < size)
        catch_up(x, size);
    value_thread_advance(x->values, x->begin);
    return x;
}

file_index *file_index_open(const output_file *file, nl_format format, const value_choice *choice)
{
    return file->plain ? open_index(file->name, file->inode, file->size, format, choice) : NULL;
}

void file_index_wrote(file_index *x, size_t written, uint64_t size, const nl_time_piece *times)
{
    if (x == NULL || x->file < 0)
        return;
    x->end += written;
    if (times == NULL)
        return;
    nl_time_piece_add(&x->times, times);
    if (x->end != size) { /* another program has also written to the file */
        x->end = size;
        x->times = NL_TIME_PIECE_UNKNOWN;
    }
    if (x->end >= x->next)
        end_piece(x);
}

static void close_index(file_index *x)
{
    value_thread_end(x->values);
    if (x->file >= 0)
        close(x->file);
    if (x->fd >= 0)
        close(x->fd);
    free(x->name);
    free(x);
}

void file_index_close(file_index *x)
{
    if (x == NULL)
        return;
    if (x->file >= 0 && x->end > x->begin && (x->fd >= 0 || x->end >= FILE_INDEX_MIN))
        end_piece(x);
    close_index(x);
}

void file_index_complete(const char *path, const value_choice *choice)
{
    struct stat status;
    if (stat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= FILE_INDEX_MIN)
        file_index_close(open_index(path, status.st_ino, (uint64_t)status.st_size, NL_FORMAT_UNKNOWN, choice));
}
