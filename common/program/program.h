/*
 * What every command-line program of the project does in the same way.
 *
 * Exit status 0 means done, 1 that the work found a problem, 2 wrong use. Messages go to standard error as "program:
 * what: why". Command lines are read by option tables (options.h). This is linked into each program and is not part of
 * the installed library. One thread.
 */
#ifndef NETLOGGER_PROGRAM_H
#define NETLOGGER_PROGRAM_H

#include "program/options.h"

#include <netlogger.h>

#include "reader/decoder.h"
#include "transport/source.h"

#include <stdio.h>

enum { PROGRAM_DONE = 0, PROGRAM_PROBLEM = 1, PROGRAM_USAGE = 2 };

/*
 * Call first in main. name is what messages begin with. Makes sure that file descriptors 0 to 2 are open.
 */
void program_start(const char *name);

/* The name that program_start was given. */
const char *program_get_name(void);

/* Prints "name: MESSAGE" and a newline on standard error, with ? for control characters, but for newlines and tabs. */
void program_error(const char *format, ...) NL_PRINTF(1, 2);

/* Prints the error of this thread (base/error.h) as program_error does. Returns false. */
bool program_print_error(void);

/*
 * What HOST says of this host, as in the library's own records: $NETLOGGER_HOST, else its name, as much of it as there
 * is room for, always ended. Any thread while nobody changes the environment.
 */
void program_host(char *host, size_t size);

/* Replaces each byte of a character that controls a terminal (record/terminal.h), except newline and tab, with "?". */
void program_replace_controls(char *text, size_t size);

/*
 * From here on messages are given to listener too, without the program's name and newline: for programs that have a
 * window. It may be called by any thread that program_error is. NULL: to nobody.
 */
void program_set_listener(void (*listener)(const char *message));

/* As program_error, then exits with status. */
_Noreturn void program_fail(int status, const char *format, ...) NL_PRINTF(2, 3);

/* A copy of text, and a text as printf has it, for free(). Out of memory, the program ends with PROGRAM_PROBLEM. */
char *program_copy(const char *text);
char *program_format(const char *format, ...) NL_PRINTF(1, 2);

/*
 * Flushes and closes standard output; a failure (a full disk) is reported and gives PROGRAM_PROBLEM, otherwise status.
 * What main returns: return program_finish(status).
 */
int program_finish(int status);

/*
 * The options of every program that reads logs: --from-format, --base, --fraction and --reject
 * (program_reading_options), and of programs that can stop at malformed input --strict too (program_strict_options).
 * The rows set members of a program_reading, which starts as zeros.
 */
typedef struct program_reading {
    nl_format format;                    /* --from-format named a format of the library; unknown: it did not */
    const struct importer_kind *foreign; /* --from-format named a foreign format (common/convert); NULL: it did not */
    bool reads_folders;                  /* that format is one of directories */
    bool has_base;                       /* --base was given */
    int64_t base_ns;                     /* the time that times without a date count from */
    nl_fraction fraction;
    const char *reject_path; /* malformed input goes there, byte for byte, a line each; NULL when not asked for */
    FILE *reject_file;
    bool strict;  /* the first malformed input ends the program, with PROGRAM_PROBLEM */
    bool undated; /* set by the program: times may have any origin. If false, a message warns of that */
    bool ranged;  /* set by the program: what is not from from_ns on and before to_ns may be passed over */
    int64_t from_ns, to_ns;
    uint64_t malformed;      /* so far, over all sources */
    uint64_t gaps;           /* places where records are missing */
    uint64_t lost;           /* records missing from their streams so far, over all sources */
    uint64_t unterminated;   /* so far, over all sources that were closed */
    uint64_t repeated;       /* records of archives that were met already, and passed over */
    bool left_early;         /* some sources were not read to their end: nobody knows what is missing */
    nl_sequences *sequences; /* the numbers that were read, over all sources; NULL: none yet */
    struct program_archive *archives;
} program_reading;

extern const nl_option program_reading_options[], program_strict_options[];

/* What --help of every such program says about its sources. */
#define PROGRAM_SOURCES                                                                                                \
    "A SOURCE is one of: a file in any format that nlconv reads, also compressed with zstd or gzip; a pipe; a "        \
    "folder, "                                                                                                         \
    "which is an archive of netlogd or a CTF trace; a running collector (x-netlog://HOST, x-netlogs://HOST or "        \
    "unix:PATH, optionally with ?where=EXPRESSION&since=TIME; press Ctrl-C to stop); or - for standard input"

/*
 * A log as programs are given one: any SOURCE as PROGRAM_SOURCES says. Malformed input and records that are missing are
 * reported: the first few on standard error as "name: FILE:LINE: reason", all of the former in the reject file, the
 * rest counted. In an archive the numbers of records are followed from file to file.
 */
typedef struct program_log program_log;

/*
 * Opens one. follow: at its end more may come. nonblocking: never wait for more, program_log_next returns NL_AGAIN
 * then. With neither, a collector is waited for until it ends, which is said once, or SIGINT or SIGTERM comes: then
 * this log and all later ones end where they are. NULL after having said why on standard error.
 */
program_log *program_log_open(program_reading *reading, const char *name, bool follow, bool nonblocking);

/*
 * The next record that where matches; NULL, as no --where leaves it, matches all. NL_OK with *record, valid until the
 * next call; NL_END; NL_AGAIN; or, at the end, NL_FAILED when something could not be read, which was said.
 */
nl_status program_log_next(program_log *log, const nl_filter *where, const nl_record **record);

/* How far the file is read that is read now, and its size, 0 when not known. */
void program_log_progress(const program_log *log, uint64_t *done, uint64_t *total);

/* Closes it and adds its counts. NULL is allowed. */
void program_log_close(program_log *log);

/*
 * The bytes of a SOURCE that is no archive, for programs that decode them themselves: decompressed, and in the
 * library's formats; foreign formats come as blocks. reading is as with program_log_open, and must outlive the source.
 * A collector is read as program_log_open has it. NULL with the reason in nl_error_message().
 */
nl_source *program_source_open(program_reading *reading, const char *name, bool follow, bool nonblocking);

/* The same with foreign formats as they are. */
nl_source *program_source_open_stored(const char *name);

/* As nl_source_read, but that it waits for what a collector sends, and ends when a signal came. */
nl_status program_source_read(nl_source *source, const char **data, size_t *size);

/* Whether the source has no end: a collector. Then says so once, and from here on SIGINT and SIGTERM end the reading.
 */
bool program_awaits_signal(const char *name);

/* From here on SIGINT and SIGTERM end the reading; a second one ends the program. */
void program_catch_signals(void);

/* Whether such a signal came. */
bool program_was_stopped(void);

/* Waits a moment, for what has nothing to read now. */
void program_pause(void);

/* What such a reader calls, for a decoder that the program has itself; user is the program_reading. */
void program_malformed(void *user, const nl_malformed *what);
void program_lost(void *user, const nl_lost *what);

/* A decoder that reports as such a reader does, of what comes from source; closed by program_reading_close_decoder. */
nl_decoder *program_reading_decoder(program_reading *reading, const char *source);
void program_reading_close_decoder(program_reading *reading, nl_decoder *decoder);

/*
 * Reports what is missing from all sources together, how many more pieces were malformed than were shown, and how many
 * last lines had no newline; closes the reject file. Returns PROGRAM_PROBLEM when that could not be written, or
 * anything was malformed or is missing, else PROGRAM_DONE.
 */
int program_reading_finish(program_reading *reading);

/* Returns whether a log that begins with these bytes needs no conversion: it is neither compressed nor in a foreign
 * format. */
bool program_is_read_in_place(const program_reading *reading, const char *head, size_t size);

/* Returns whether a path names a directory, or an archive of netlogd. */
bool program_is_folder(const char *path);
bool program_is_archive(const char *path);

/*
 * The files of an archive in the order of their numbers, *count of them, without what else netlogd keeps there. All of
 * them and the array are the caller's, for free(). False after having said why on standard error.
 */
bool program_list_archive(const char *folder, char ***files, size_t *count);

/*
 * The names that a program was given, in place of each folder the files in it; none at all: "-". What is read of these
 * files, by whatever name here needs a program_reading, is one archive as far as the numbers of records go. All of them
 * and the array are the caller's, for free(). False when a folder could not be read, which was said; the others are
 * there.
 */
bool program_expand_archives(program_reading *reading, char **names, size_t count, char ***files, size_t *file_count);

/* The numbers that were read of the archive that a path is a file of; NULL when it is of none. */
nl_sequences *program_archive_numbers(const program_reading *reading, const char *path);

/* The numbers that were read over all sources. What is missing from them is reported by program_reading_finish. */
nl_sequences *program_reading_numbers(program_reading *reading);

/*
 * The options of programs that work on some of the records: --where, --since and --until. The rows are about a
 * program_where, which starts as zeros.
 */
typedef struct program_where {
    nl_filter *filter; /* the records that the options choose, by their times too; NULL: all. The program frees it */
    bool ranged;       /* a time range is set */
    int64_t since_ns, until_ns;
} program_where;

extern const nl_option program_where_options[];

/*
 * A progress line on standard error, at most ten times a second and only when it is a terminal: "what 43 %  12.3 M
 * records". total 0 means unknown. program_progress_end wipes it.
 */
void program_progress(const char *what, uint64_t done, uint64_t total, uint64_t records);
void program_progress_end(void);

#endif
