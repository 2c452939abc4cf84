#include "config.h"

#include "input/position_log.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/replacement.h"
#include "base/write_some.h"
#include "program/program.h"
#include "record/bytes.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { STREAM_SIZE = 16, LOG_SIZE_MAX = 1 << 20, LINE_SIZE = 512 };

struct position_log {
    char *path;
    int fd;
    uint64_t size;
    uint64_t replaced_size; /* size after the latest replacement */
    unsigned char stream[STREAM_SIZE];
    nl_replacement next; /* the file that will replace the log; an fd of -1: no such file */
    bool failed;         /* a line could not be written to `next` */
};

/* ---- reading ---- */

static bool read_stream(const char *line, unsigned char stream[STREAM_SIZE])
{
    static const char begin[] = "inputs 1 ";
    if (strncmp(line, begin, sizeof begin - 1) != 0 || strlen(line) != sizeof begin - 1 + (size_t)2 * STREAM_SIZE)
        return false;
    for (size_t i = 0; i < STREAM_SIZE; i++) {
        int high = nl_hex_digit(line[sizeof begin - 1 + 2 * i]), low = nl_hex_digit(line[sizeof begin + 2 * i]);
        if (high < 0 || low < 0)
            return false;
        stream[i] = (unsigned char)(high * 16 + low);
    }
    return true;
}

static bool read_line(char *line, const position_visitor *visitor)
{
    file_state file = {0};
    file_piece piece = {0};
    uint64_t next;
    unsigned state;
    int path = 0;
    if (sscanf(line, "file %u %" SCNu64 " %" SCNu64 " %u %23s %" SCNu64 " %" SCNx64 " %" SCNx64 " %n", &file.id,
               &file.device, &file.inode, &state, file.format, &file.place.offset, &file.place.head, &file.place.tail,
               &path) == 8 &&
        path > 0) {
        file.finished = (state & 1) != 0;
        file.ending = (state & 2) != 0;
        file.path = line + path;
        visitor->on_file(visitor->user, &file);
    } else if (sscanf(line, "piece %u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNx64 " %" SCNx64, &piece.id,
                      &piece.first, &piece.count, &piece.from, &piece.to.offset, &piece.to.head, &piece.to.tail) == 7) {
        visitor->on_piece(visitor->user, &piece);
    } else if (sscanf(line, "stored %" SCNu64, &next) == 1) {
        visitor->on_stored(visitor->user, next);
    } else {
        return false;
    }
    return true;
}

/* Reads the lines. Returns false and sets the error if a line is invalid. */
static bool read_positions(position_log *log, FILE *from, const position_visitor *visitor)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    bool good = true;
    for (unsigned long number = 1; good && (length = getline(&line, &capacity, from)) > 0; number++) {
        if (line[length - 1] != '\n')
            break; /* incomplete; the next line overwrites it */
        line[length - 1] = '\0';
        good = number == 1 ? read_stream(line, log->stream) : read_line(line, visitor);
        if (!good)
            nl_error_set(NL_ERROR_INVALID, "%s:%lu: invalid line; to read all input files again, remove this file",
                         log->path, number);
        log->size += (uint64_t)length;
    }
    free(line);
    return good;
}

static nl_status add_line(position_log *log, const char *line)
{
    size_t size = strlen(line);
    if (log->next.fd >= 0) {
        log->failed = log->failed || !nl_write_all(log->next.fd, line, size);
        log->size += size;
        return log->failed ? nl_error_set_errno("write %s", log->path) : NL_OK;
    }
    if (!nl_write_all(log->fd, line, size)) {
        nl_error_set_errno("write %s", log->path);
        if (ftruncate(log->fd, (off_t)log->size) != 0 || lseek(log->fd, 0, SEEK_END) < 0)
            program_fail(PROGRAM_PROBLEM, "%s", nl_error_message());
        return NL_FAILED;
    }
    log->size += size;
    return NL_OK;
}

static nl_status add_stream(position_log *log)
{
    char line[LINE_SIZE] = "inputs 1 ";
    for (size_t i = 0, at = strlen(line); i < STREAM_SIZE; i++, at += 2)
        snprintf(line + at, sizeof line - at, "%02x", log->stream[i]);
    strcat(line, "\n");
    return add_line(log, line);
}

static bool open_log(position_log *log, const position_visitor *visitor)
{
    log->fd = open(log->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    FILE *from = log->fd >= 0 ? fopen(log->path, "re") : NULL;
    if (from == NULL)
        return nl_error_set_errno("open %s", log->path) == NL_OK;
    bool good = read_positions(log, from, visitor);
    fclose(from);
    if (!good)
        return false;
    if (ftruncate(log->fd, (off_t)log->size) != 0 || lseek(log->fd, 0, SEEK_END) < 0)
        return nl_error_set_errno("write %s", log->path) == NL_OK;
    if (log->size > 0)
        return true;
    if (getrandom(log->stream, STREAM_SIZE, 0) != STREAM_SIZE)
        return nl_error_set_errno("cannot get random bytes") == NL_OK;
    return add_stream(log) == NL_OK;
}

position_log *position_log_open(const char *path, const position_visitor *visitor)
{
    position_log *log = nl_memory_check(calloc(1, sizeof *log));
    log->path = program_copy(path);
    log->next.fd = -1;
    if (open_log(log, visitor))
        return log;
    nl_error error;
    nl_error_save(&error);
    position_log_close(log);
    nl_error_restore(&error);
    return NULL;
}

void position_log_close(position_log *log)
{
    if (log == NULL)
        return;
    if (log->fd >= 0)
        close(log->fd);
    free(log->path);
    free(log);
}

const unsigned char *position_log_stream(const position_log *log)
{
    return log->stream;
}

/* ---- writing ---- */

nl_status position_log_add_file(position_log *log, const file_state *file)
{
    char *line =
        program_format("file %u %" PRIu64 " %" PRIu64 " %u %s %" PRIu64 " %" PRIx64 " %" PRIx64 " %s\n", file->id,
                       file->device, file->inode, (unsigned)file->finished + 2 * (unsigned)file->ending, file->format,
                       file->place.offset, file->place.head, file->place.tail, file->path);
    nl_status status = add_line(log, line);
    free(line);
    return status;
}

nl_status position_log_add_piece(position_log *log, const file_piece *piece)
{
    char line[LINE_SIZE];
    snprintf(line, sizeof line, "piece %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIx64 " %" PRIx64 "\n",
             piece->id, piece->first, piece->count, piece->from, piece->to.offset, piece->to.head, piece->to.tail);
    return add_line(log, line);
}

nl_status position_log_add_stored(position_log *log, uint64_t next)
{
    char line[LINE_SIZE];
    snprintf(line, sizeof line, "stored %" PRIu64 "\n", next);
    return add_line(log, line);
}

bool position_log_is_large(const position_log *log)
{
    return log->size > LOG_SIZE_MAX && log->size > 2 * log->replaced_size;
}

nl_status position_log_begin_replacement(position_log *log, uint64_t next)
{
    if (!nl_replacement_open(&log->next, log->path)) {
        log->next.fd = -1;
        return nl_error_set_errno("write %s", log->path);
    }
    log->failed = false;
    log->size = 0;
    add_stream(log);
    position_log_add_stored(log, next);
    return NL_OK; /* position_log_end_replacement returns a failure to write */
}

nl_status position_log_end_replacement(position_log *log)
{
    nl_replacement next = log->next;
    bool good = !log->failed && nl_replacement_keep(&next);
    nl_status status = good ? NL_OK : nl_error_set_errno("write %s", log->path);
    log->next.fd = -1;
    nl_replacement_free(&next);
    if (good) {
        close(log->fd);
        log->fd = next.fd;
        log->replaced_size = log->size;
    } else {
        close(next.fd);
        log->size = (uint64_t)lseek(log->fd, 0, SEEK_END);
    }
    return status;
}
