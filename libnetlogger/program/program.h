/*
 * What every command-line program of the project does in the same way.
 *
 * Options are read with argp(3), which gives --help, --usage and --version and GNU habits. Exit status 0 means done, 1
 * that the work found a problem, 2 wrong use. Messages go to standard error as "program: what: why". This is linked
 * into each program and is no part of the installed library. One thread.
 */
#ifndef NETLOGGER_PROGRAM_H
#define NETLOGGER_PROGRAM_H

#include <netlogger.h>

#include <argp.h>
#include <stdio.h>

enum { PROGRAM_DONE = 0, PROGRAM_PROBLEM = 1, PROGRAM_USAGE = 2 };

/*
 * Call first in main. name is what messages begin with, argp's too (argv[0] is set to it). Sets argp's version text and
 * exit status, and makes sure that file descriptors 0 to 2 are open.
 */
void program_start(const char *name, char **argv);

/* Prints "name: MESSAGE" and a newline on standard error. */
void program_error(const char *format, ...) NL_PRINTF(1, 2);

/* As program_error, then exits with status. */
_Noreturn void program_fail(int status, const char *format, ...) NL_PRINTF(2, 3);

/*
 * Flushes and closes standard output; a failure (a full disk) is reported and gives PROGRAM_PROBLEM, otherwise status.
 * What main returns: return program_finish(status).
 */
int program_finish(int status);

/*
 * The options of every program that reads logs: --fraction and --reject. A program lists program_reading_argp among its
 * argp children, its child input being a program_reading.
 */
typedef struct program_reading {
    nl_fraction fraction;
    const char *reject_path; /* malformed input goes there, byte for byte, a line each; NULL when not asked for */
    FILE *reject_file;
    uint64_t malformed;    /* so far, over all sources */
    uint64_t gaps;         /* places where records are missing */
    uint64_t lost;         /* records missing from their streams so far, over all sources */
    uint64_t unterminated; /* so far, over all sources closed with program_reading_close */
} program_reading;

extern const struct argp program_reading_argp;

/*
 * Opens a reader on url that reports malformed input and records that are missing: the first few on standard error as
 * "name: FILE:LINE: reason", all of them in the reject file, the rest counted. NULL after having said why on standard
 * error.
 */
nl_reader *program_reading_open(program_reading *reading, const char *url, bool follow, bool nonblocking);

/* What such a reader calls, for a decoder that the program has itself; user is the program_reading. */
void program_malformed(void *user, const nl_malformed *what);
void program_lost(void *user, const nl_lost *what);

/* Closes a reader and adds its counts. */
void program_reading_close(program_reading *reading, nl_reader *reader);

/* A decoder that reports as such a reader does, of what comes from source; closed by program_reading_close_decoder. */
nl_decoder *program_reading_decoder(program_reading *reading, const char *source);
void program_reading_close_decoder(program_reading *reading, nl_decoder *decoder);

/*
 * Says once how many pieces were malformed beyond those already shown, and how many last lines had no newline; closes
 * the reject file. Returns PROGRAM_PROBLEM when that could not be written, else PROGRAM_DONE.
 */
int program_reading_finish(program_reading *reading);

/* Whether a path names a folder: an archive, as netlogd keeps it. */
bool program_is_folder(const char *path);

/*
 * The files of an archive in the order of their numbers, *count of them, without what else netlogd keeps there. All of
 * them and the array are the caller's, for free(). False after having said why on standard error.
 */
bool program_list_archive(const char *folder, char ***files, size_t *count);

/* Reads a time such as "100ms", "5" (seconds), "1.5h", "2d": more than 0. False when it is none. */
bool program_duration_parse(const char *text, int64_t *duration_ns);

/* An option's argument as a time (time.h); what is none ends the program as argp_error does. */
int64_t program_parse_time(struct argp_state *state, const char *text);

/*
 * The option --where EXPR, for programs that work on some of the records. A program lists program_where_argp among its
 * argp children, its child input being an nl_filter * that is NULL at first; the program frees it.
 */
extern const struct argp program_where_argp;

/* As nl_reader_next, but passes over records that where does not match; NULL, as no --where leaves it, matches all. */
nl_status program_next_where(nl_reader *reader, const nl_filter *where, const nl_record **record);

/*
 * A progress line on standard error, at most ten times a second and only when it is a terminal: "what 43 %  12.3 M
 * records". total 0 means unknown. program_progress_end wipes it.
 */
void program_progress(const char *what, uint64_t done, uint64_t total, uint64_t records);
void program_progress_end(void);

#endif
