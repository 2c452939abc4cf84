/* Reads any log record by record. A log is one source, or the files of an archive one after another. */
#include "config.h"

#include "program/absent_fields.h"
#include "program/program.h"
#include "program/reading.h"
#include "reader/reader.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

struct program_log {
    program_reading *reading;
    char *directory; /* NULL if the log is not an archive */
    char **files;    /* files of an archive; those before index `at` have been read */
    size_t count, at;
    char *name;        /* name of the current or latest file; NULL before the first file */
    nl_reader *reader; /* NULL between files */
    bool follow, nonblocking;
    bool polled;    /* this module, not the reader, waits for records, so that signals and new files end the wait */
    bool overtaken; /* a followed archive has a newer file, so this file will not grow */
    bool sought;    /* log_skip was called for this file */
    bool failed;
};

static void free_files(char **files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(files[i]);
    free(files);
}

static bool find_files(program_log *log, const char *name)
{
    if (program_is_archive(name)) {
        log->directory = program_copy(name);
        program_archive_begin(log->reading, name);
        return program_list_archive(name, &log->files, &log->count);
    }
    log->files = nl_memory_check(calloc(1, sizeof *log->files));
    log->files[0] = program_copy(name);
    log->count = 1;
    return true;
}

/* Skips parts of a file that have no record in the time range, or no record that matches. */
static nl_status log_skip(program_log *log, const nl_filter *where)
{
    program_reading *r = log->reading;
    nl_status status = NL_OK;
    log->sought = true;
    do
        status = r->ranged || where != NULL ? nl_reader_seek_matches(log->reader, r->ranged ? r->from_ns : INT64_MIN,
                                                                     r->ranged ? r->to_ns : INT64_MAX, where)
                                            : NL_OK;
    while (status == NL_AGAIN);
    r->skipped = r->skipped || nl_reader_skips(log->reader);
    return status;
}

/* Opens the next file. Follows only the last file of an archive. On failure, reports the error and returns false. */
static bool open_next(program_log *log)
{
    free(log->name);
    log->name = program_copy(log->files[log->at++]);
    nl_decoder_options decoding = program_decoder_options(log->reading, log->name);
    bool nonblocking = log->nonblocking || log->polled;
    nl_source *source = program_source_open(log->reading, log->name, log->follow && log->at == log->count, nonblocking);
    log->reader = source != NULL ? nl_reader_open_source(source, &decoding, nonblocking) : NULL;
    log->overtaken = log->sought = false;
    if (log->reader != NULL)
        return true;
    program_input_failed(log->reading);
    log->failed = true;
    return false;
}

static void close_file(program_log *log)
{
    program_add_stats(log->reading, nl_reader_get_stats(log->reader), log->name);
    nl_reader_close(log->reader);
    log->reader = NULL;
}

program_log *program_log_open(program_reading *reading, const char *name, bool follow, bool nonblocking)
{
    program_log *log = nl_memory_check(calloc(1, sizeof *log));
    log->reading = reading;
    log->follow = follow;
    log->nonblocking = nonblocking;
    program_add_source(reading, name);
    reading->live = reading->live || follow || program_awaits_signal(name);
    bool good = find_files(log, name);
    log->polled = !nonblocking && ((log->directory != NULL && follow) || (!follow && program_awaits_signal(name)));
    if (good && (log->directory != NULL || open_next(log)))
        return log;
    program_log_close(log);
    return NULL;
}

/* Lists the files of a followed archive again. Returns whether there are new files. */
static bool find_more(program_log *log)
{
    char **files;
    size_t count;
    if (!program_list_archive(log->directory, &files, &count))
        return false;
    free_files(log->files, log->count);
    log->files = files;
    log->count = count;
    log->at = 0;
    while (log->name != NULL && log->at < count && strverscmp(files[log->at], log->name) <= 0)
        log->at++;
    return log->at < count;
}

/*
 * Called when the current file has no more records. Returns NL_OK if the caller must continue to read, because the
 * archive has a newer file. Otherwise, returns NL_AGAIN.
 */
static nl_status look_further(program_log *log)
{
    if (log->directory == NULL || !log->follow)
        return NL_AGAIN;
    if (log->overtaken) {
        close_file(log);
        return NL_OK;
    }
    log->overtaken = log->at < log->count || find_more(log);
    return log->overtaken ? NL_OK : NL_AGAIN;
}

/* Returns whether a record matches. Notes which fields rejected records have. */
static bool accepts(program_reading *reading, const nl_filter *where, const nl_record *record)
{
    if (nl_filter_matches(where, record))
        return true;
    if (reading->absent == NULL) {
        reading->absent = absent_fields_new();
        absent_fields_add(reading->absent, where);
    }
    absent_fields_look(reading->absent, record);
    return false;
}

/* Like program_log_next, but does not wait. */
static nl_status next(program_log *log, const nl_filter *where, const nl_record **record)
{
    for (;;) {
        while (log->reader == NULL && log->at < log->count && !open_next(log))
            ;
        if (log->reader == NULL && (log->directory == NULL || !log->follow))
            return log->failed ? NL_FAILED : NL_END;
        if (log->reader == NULL && !find_more(log))
            return NL_AGAIN;
        if (log->reader == NULL)
            continue;
        nl_status status = log->sought ? NL_OK : log_skip(log, where);
        if (status == NL_OK)
            do {
                status = nl_reader_next(log->reader, record);
                if (status == NL_OK && log->reading->records++ == 0)
                    program_count_records(log->reading, 0);
            } while (status == NL_OK && !accepts(log->reading, where, *record));
        if (status == NL_OK)
            return NL_OK;
        if (status == NL_AGAIN && look_further(log) == NL_AGAIN)
            return NL_AGAIN;
        if (status == NL_FAILED) {
            program_input_failed(log->reading);
            log->failed = true;
        }
        if (status != NL_AGAIN)
            close_file(log);
    }
}

nl_status program_log_next(program_log *log, const nl_filter *where, const nl_record **record)
{
    while (!program_was_stopped()) {
        nl_status status = next(log, where, record);
        if (status != NL_AGAIN || !log->polled)
            return status;
        program_pause();
    }
    return log->failed ? NL_FAILED : NL_END;
}

void program_log_progress(const program_log *log, uint64_t *done, uint64_t *total)
{
    *done = log->reader != NULL ? nl_reader_position(log->reader) : 0;
    *total = log->reader != NULL ? nl_reader_size(log->reader) : 0;
}

void program_log_close(program_log *log)
{
    if (log == NULL)
        return;
    if (log->at < log->count)
        log->reading->left_early = true;
    if (log->reader != NULL)
        close_file(log);
    free_files(log->files, log->count);
    free(log->directory);
    free(log->name);
    free(log);
}
