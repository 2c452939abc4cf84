/* Verifies and repairs time indexes and value indexes, for --verify and --repair. */
#include "config.h"

#include "file_index.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/write_some.h"
#include "program/program.h"
#include "take_out.h"
#include "time_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- verifying ---- */

/* Returns NL_FAILED if the entry of piece i is wrong. */
static nl_status check_piece(const nl_time_index *index, int fd, size_t i)
{
    const nl_time_piece *entry = &index->pieces[i];
    nl_time_piece found;
    if (!nl_time_index_holds(index, fd, i + 1))
        return nl_error_set(NL_ERROR_INVALID, "the entry belongs to another file");
    if (entry->records == UINT64_MAX)
        return NL_OK;
    if (!time_scan(fd, nl_time_index_start(index, i), entry->end, entry->end, &found) || found.end != entry->end)
        return nl_error_set(NL_ERROR_INVALID, "the entry does not end at the end of a record");
    if (found.records == UINT64_MAX) /* the unreadable records were already reported */
        return NL_OK;
    if (found.min_ns < entry->min_ns || found.max_ns > entry->max_ns)
        return nl_error_set(NL_ERROR_INVALID, "the file has records outside the entry's time range");
    return found.records == entry->records
               ? NL_OK
               : nl_error_set(NL_ERROR_INVALID, "the entry has the wrong number of records");
}

/* Returns whether all segments of the value index, if there is one, are valid. */
static bool check_values(const char *path, const nl_time_index *index)
{
    char *name = nl_memory_check(nl_value_index_name(path));
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status;
    uint64_t at = 0;
    bool good = true;
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        for (nl_value_segment s; good && at < (uint64_t)status.st_size; at += good ? s.size : 0)
            good = nl_value_index_read_segment(fd, at, index, &s) && nl_value_index_verify_segment(fd, &s);
    if (!good)
        printf("%s: byte %" PRIu64 ": damaged, or not an index of this file\n", name, at);
    if (fd >= 0)
        close(fd);
    free(name);
    return good;
}

static file_index_state check_pieces(const char *path, const nl_time_index *index, int fd)
{
    struct stat status;
    for (size_t i = 0; i < index->count; i++) {
        if (check_piece(index, fd, i) == NL_OK)
            continue;
        printf("%s" NL_TIME_INDEX_SUFFIX ": bytes %" PRIu64 " to %" PRIu64 ": %s\n", path,
               nl_time_index_start(index, i), index->pieces[i].end, nl_error_message());
        return FILE_INDEX_DAMAGED;
    }
    if (index->surplus) {
        printf("%s" NL_TIME_INDEX_SUFFIX ": after entry %zu: damaged, or the log file has become shorter\n", path,
               index->count);
        return FILE_INDEX_DAMAGED;
    }
    bool all = fstat(fd, &status) == 0 && nl_time_index_start(index, index->count) == (uint64_t)status.st_size;
    if (!all || nl_time_index_is_outdated(index, path, fd)) /* the value index may describe later pieces */
        return FILE_INDEX_BEHIND;
    return check_values(path, index) ? FILE_INDEX_SOUND : FILE_INDEX_DAMAGED;
}

file_index_state file_index_verify(const char *path)
{
    nl_time_index index;
    file_index_state state = FILE_INDEX_NONE;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return state;
    switch (nl_time_index_read(path, fd, &index)) {
    case NL_TIME_INDEX_NONE:
        break;
    case NL_TIME_INDEX_OTHER:
        printf("%s" NL_TIME_INDEX_SUFFIX ": not an index of this file\n", path);
        state = FILE_INDEX_DAMAGED;
        break;
    case NL_TIME_INDEX_READ:
        state = check_pieces(path, &index, fd);
        break;
    }
    nl_time_index_free(&index);
    close(fd);
    return state;
}

/* ---- rebuilding ---- */

static bool put_entries(int fd, uint64_t size, int to)
{
    char header[NL_TIME_INDEX_HEADER], entry[NL_TIME_INDEX_ENTRY];
    uint32_t sum = 0;
    for (uint64_t at = 0; at < size;) {
        nl_time_piece piece;
        if (!time_scan(fd, at, at + nl_time_index_piece_size(at), size, &piece)) {
            piece = NL_TIME_PIECE_UNKNOWN;
            piece.end = size;
        }
        if ((at == 0 &&
             (!nl_time_index_put_header(fd, piece.end, header, &sum) || !nl_write_all(to, header, sizeof header))) ||
            !nl_time_index_put_entry(fd, sum, at, &piece, entry) || !nl_write_all(to, entry, sizeof entry))
            return false;
        at = piece.end;
    }
    return true;
}

static bool file_index_check_make(int fd, int to)
{
    struct stat status;
    return fstat(fd, &status) == 0 && make_alike(to, &status) && put_entries(fd, (uint64_t)status.st_size, to) &&
           fsync(to) == 0;
}

static bool has_values(const char *path)
{
    struct stat status;
    char *name = nl_memory_check(nl_value_index_name(path));
    bool has = lstat(name, &status) == 0;
    free(name);
    return has;
}

/* If no field is given, infers the fields. */
static bool rebuild_values(const char *path, const nl_value_fields *fields)
{
    value_source source = {.path = path, .choice = {.fields = *fields, .given = true}};
    if (fields->count == 0)
        value_choice_set(&source.choice, "auto");
    value_file *v = value_file_open_new(&source);
    while (v != NULL && value_file_extend(v, true))
        ;
    bool made = v != NULL && value_file_rename(v);
    value_file_close(v);
    return made;
}

bool file_index_rebuild(const char *path)
{
    char *name = file_index_name(path), *beside = program_format("%s.new", name);
    nl_value_fields fields;
    nl_value_index_read_fields(path, &fields);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), to = -1;
    if (fd >= 0)
        to = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool made = to >= 0 && file_index_check_make(fd, to) && rename(beside, name) == 0;
    if (!made)
        program_error("create %s: %s", name, strerror(errno));
    if (!made && to >= 0)
        unlink(beside);
    if (fd >= 0)
        close(fd);
    if (to >= 0)
        close(to);
    free(name);
    free(beside);
    if (made && has_values(path))
        made = rebuild_values(path, &fields);
    return made;
}
