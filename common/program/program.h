/*
 * The common parts of all command-line programs: start, messages, and reading of logs.
 *
 * Exit status 0 means success, 1 a failure, and 2 a usage error. Messages go to standard error as "program: object:
 * problem". Option tables (options.h) read command lines. Only one thread may call the functions, unless their comments
 * permit more.
 */
#ifndef NETLOGGER_PROGRAM_H
#define NETLOGGER_PROGRAM_H

#include "program/options.h"

#include <netlogger.h>

#include "reader/decoder.h"
#include "transport/source.h"

#include <stdio.h>

enum { PROGRAM_DONE = 0, PROGRAM_PROBLEM = 1, PROGRAM_USAGE = 2 };

/* ---- start, messages, end ---- */

/* Call it first in main. `name` begins the messages. Makes sure that file descriptors 0 to 2 are open. */
void program_start(const char *name);

const char *program_get_name(void);

/*
 * Prints "name: MESSAGE" and a newline on standard error. "?" replaces characters that control a terminal. Any thread
 * may call this function.
 */
void program_error(const char *format, ...) NL_PRINTF(1, 2);

/* Prints this thread's error (base/error.h) as program_error does. Returns false. */
bool program_print_error(void);

/* Like program_error, then exits with status. */
_Noreturn void program_fail(int status, const char *format, ...) NL_PRINTF(2, 3);

/* Like program_print_error, then exits with status. */
_Noreturn void program_fail_with_error(int status);

/* Copies the value of HOST in this host's records, which is $NETLOGGER_HOST or the host's name, truncated to size. */
void program_host(char *host, size_t size);

/*
 * Replaces each byte of the characters that control a terminal (record/terminal.h), except newline and tab, with "?".
 * Any thread may call this function.
 */
void program_replace_controls(char *text, size_t size);

/*
 * Sets a function that receives each message without the program's name and the newline. The function may be called in
 * any thread. NULL removes it.
 */
void program_set_listener(void (*listener)(const char *message));

/*
 * program_copy returns a copy of a text. program_format returns a text that is formatted as by printf. The caller frees
 * the result with free(). If memory runs out, the program ends.
 */
char *program_copy(const char *text);
char *program_format(const char *format, ...) NL_PRINTF(1, 2);

/*
 * Returns the first line of a file, such as a password. The caller frees it. Returns NULL and sets the error if the
 * file cannot be read or the line is empty.
 */
char *program_read_secret(const char *path);

/*
 * Flushes and closes standard output. Returns the exit status for main, which is `status`. On failure, reports the
 * error and returns PROGRAM_PROBLEM.
 */
int program_finish(int status);

/* If standard error is a terminal, shows progress there, at most ten times a second. `total` is 0 if it is unknown. */
void program_progress(const char *what, uint64_t done, uint64_t total, uint64_t records);

/* Removes the progress line. */
void program_progress_end(void);

/* ---- options of programs that read logs ---- */

/*
 * The settings of program_reading_options (--from-format, --base, --fraction, --time-field, --reject) and
 * program_strict_options (--strict), and the counts of reading. Initialize the structure with zeros, and call
 * program_reading_finish at the end.
 */
typedef struct program_reading {
    nl_format format;                    /* a format of the library that --from-format named, or NL_FORMAT_UNKNOWN */
    const struct importer_kind *foreign; /* a foreign format (common/convert) that --from-format named, or NULL */
    bool reads_directories;              /* foreign is a format of directories */
    bool has_base;                       /* --base was given */
    int64_t base_ns;                     /* the origin of times that have no date */
    nl_fraction fraction;
    const char *time_field;  /* name of the field with the time, from --time-field; or NULL */
    const char *reject_path; /* file to which malformed input is written, one piece per line; or NULL */
    FILE *reject_file;
    bool strict;  /* the first malformed input ends the program with PROGRAM_PROBLEM */
    bool undated; /* set by the program: times may have any origin, so no warning about the origin is printed */
    bool ranged;  /* set by the program: records before from_ns, and records at or after to_ns, may be omitted */
    int64_t from_ns, to_ns;
    bool skipped;              /* indexes showed that parts of the sources have no matching records */
    bool live;                 /* a source is live or followed, so that it may have no records */
    bool failed;               /* a source could not be read, or not to its end; this was reported */
    bool checked;              /* program_has_records has reported that there are no records */
    uint64_t records;          /* number of records so far, of all sources, before filtering */
    uint64_t malformed;        /* number of pieces of malformed input so far */
    bool keeps_malformed;      /* set by the program: it shows malformed input itself, so no messages are printed */
    char *first_malformed;     /* if keeps_malformed: place of the first piece, and the reason why it is malformed */
    uint64_t gaps;             /* places where records are missing */
    uint64_t lost;             /* missing records */
    uint64_t unterminated;     /* last lines without a newline */
    char *unterminated_name;   /* source of the first of these lines */
    char *source;              /* name of the first source, or NULL */
    bool several;              /* the program has at least two sources */
    struct program_held *held; /* messages about malformed input before the first record, or NULL */
    uint64_t repeated;         /* number of records of archives that were already read, and therefore skipped */
    bool left_early;           /* a source was not read to its end, so it is unknown which records are missing */
    nl_sequences *sequences;   /* the sequence numbers of the records that were read, or NULL */
    struct program_archive *archives;
    struct absent_fields *absent; /* fields of the expression that no rejected record has had; or NULL */
} program_reading;

extern const nl_option program_reading_options[], program_strict_options[];

/*
 * If a source cannot be read or has no records, a program prints exactly one message. Without records, a program prints
 * no result. The program calls
 * - program_has_records after reading everything and before printing a result
 * - program_count_records if the program reads with its own decoder
 * - program_input_failed if the program opens sources without program_log_open
 */

/*
 * Returns whether there are records for a result. `selected` is the number of these records. If it is 0, prints the
 * reason, unless an earlier message has stated it. `context` begins the message.
 */
bool program_has_records(program_reading *reading, uint64_t selected, const char *context);

/* Adds to the number of records, and prints the messages that waited for the first record. */
void program_count_records(program_reading *reading, uint64_t count);

/* Prints this thread's error, and marks the reading as failed, because a source is unreadable. Returns false. */
bool program_input_failed(program_reading *reading);

/* Stores the name of a source for messages. */
void program_add_source(program_reading *reading, const char *name);

/*
 * Reports missing and duplicate records, malformed input beyond the first messages, and incomplete last lines. Also
 * reports that there are no records, unless a source is live or parts of the sources were skipped. Closes the reject
 * file. Returns PROGRAM_PROBLEM if it reported any of these except duplicates, if input was malformed, or if a source
 * was unreadable. Otherwise, returns PROGRAM_DONE.
 */
int program_reading_finish(program_reading *reading);

/* The settings of --where, --since and --until. Initialize the structure with zeros. */
typedef struct program_where {
    nl_filter *filter; /* includes the time range; NULL selects all records. The program frees the filter */
    bool ranged;       /* a time range was given */
    int64_t since_ns, until_ns;
} program_where;

extern const nl_option program_where_options[];

/* The rows of --since and --until only. */
#define PROGRAM_RANGE_OPTIONS (&program_where_options[1])

/*
 * Replaces *filter (NULL: all records) with a filter for the records that match both *filter and the expression.
 * Returns false, sets the current thread's error and does not change *filter if the expression is invalid, or both
 * together exceed a limit (filter.h).
 */
bool program_filter_narrow(nl_filter **filter, const char *expression);

/* The sentence about sources in the help of these programs. */
#define PROGRAM_SOURCES                                                                                                \
    "A SOURCE can be: a file in any format that nlconv reads, optionally compressed with zstd or gzip; a pipe; a "     \
    "directory that contains an archive of netlogd or a CTF trace; a running collector (x-netlog://HOST, "             \
    "x-netlogs://HOST or unix:PATH, optionally with ?where=EXPRESSION&since=TIME; press Ctrl-C to stop); or - for "    \
    "standard input"

/* ---- records of a source ---- */

/*
 * A log, as PROGRAM_SOURCES describes it. The functions report the first few pieces of malformed input and gaps on
 * standard error as "name: FILE:LINE: reason", and the number of further pieces and gaps. They write all malformed
 * input to the reject file. The files of an archive are one log.
 */
typedef struct program_log program_log;

/*
 * Opens a log. If `follow` is true, program_log_next waits for more records at the end. If `nonblocking` is true,
 * program_log_next returns NL_AGAIN instead of waiting. A collector's log ends when the collector closes the
 * connection, or when SIGINT or SIGTERM arrives. The signal ends all logs. On failure, reports the error and returns
 * NULL.
 */
program_log *program_log_open(program_reading *reading, const char *name, bool follow, bool nonblocking);

/*
 * Returns NL_OK and the next record that matches the filter `where`. The record is valid until the next call. If
 * `where` is NULL, all records match. Returns NL_END at the end. If part of the log could not be read, reports an error
 * and returns NL_FAILED at the end. Returns NL_AGAIN only if the log is nonblocking.
 */
nl_status program_log_next(program_log *log, const nl_filter *where, const nl_record **record);

/* Sets *done to the position in the current file, and *total to the file's size, in bytes. Both are 0 if unknown. */
void program_log_progress(const program_log *log, uint64_t *done, uint64_t *total);

/* Closes a log and adds its counts to reading. Closing NULL has no effect. */
void program_log_close(program_log *log);

/* ---- bytes of a source ---- */

/*
 * Opens a source that is not an archive, for a program with its own decoder. The source returns decompressed bytes in a
 * format that the library reads; foreign formats become blocks. `reading` must outlive the source. Returns NULL and
 * sets the error on failure.
 */
nl_source *program_source_open(program_reading *reading, const char *name, bool follow, bool nonblocking);

/* Like program_source_open, but does not convert foreign formats. */
nl_source *program_source_open_stored(const char *name);

/* Like nl_source_read, but waits instead of returning NL_AGAIN, and returns NL_END after a signal. */
nl_status program_source_read(nl_source *source, const char **data, size_t *size);

/*
 * Returns whether a log that begins with these bytes needs no conversion because it is neither compressed nor in a
 * foreign format. Any thread may call this function.
 */
bool program_is_read_in_place(const program_reading *reading, const char *head, size_t size);

/* Returns a decoder that reports to reading. Close it with program_reading_close_decoder. */
nl_decoder *program_reading_decoder(program_reading *reading, const char *source);
void program_reading_close_decoder(program_reading *reading, nl_decoder *decoder, const char *source);

/* Adds last lines without a newline, which the program's own decoder found in a source. */
void program_add_unterminated(program_reading *reading, uint64_t count, const char *source);

/* Callbacks of decoders: report malformed input and missing records. `user` is the program_reading. */
void program_malformed(void *user, const nl_malformed *what);
void program_lost(void *user, const nl_lost *what);

/*
 * Returns the set of the sequence numbers that were read from all sources. program_reading_finish reports the missing
 * numbers.
 */
nl_sequences *program_reading_numbers(program_reading *reading);

/* ---- signals ---- */

/* Returns whether the source is a collector, which is read until it ends or a signal arrives. */
bool program_awaits_signal(const char *name);

/* Catches signals, and prints how to stop the program. Call it for each open collector; only the first call counts. */
void program_await_signal(const char *name);

/* After this call, SIGINT and SIGTERM end the reading; a second signal of the same kind ends the program. */
void program_catch_signals(void);

/* Returns whether SIGINT or SIGTERM has arrived since program_catch_signals was called. */
bool program_was_stopped(void);

/* Waits 5 ms. */
void program_pause(void);

/* ---- directories and archives ---- */

/* Returns whether a path is a directory, such as an archive of netlogd. */
bool program_is_directory(const char *path);
bool program_is_archive(const char *path);

/*
 * Lists the log files of an archive in the order of their numbers. The caller frees the names and the array. On
 * failure, reports the error and returns false.
 */
bool program_list_archive(const char *directory, char ***files, size_t *count);

/*
 * Replaces each archive among the names with its files. If there are no names, uses "-". Makes later readers check the
 * sequence numbers of an archive's files together. The caller frees the names and the array. If an archive cannot be
 * read, reports the archive and returns false; the result then has the other files.
 */
bool program_expand_archives(program_reading *reading, char **names, size_t count, char ***files, size_t *file_count);

/* Returns the set of the sequence numbers that were read from the archive to which a file belongs, or NULL. */
nl_sequences *program_archive_numbers(const program_reading *reading, const char *path);

#endif
