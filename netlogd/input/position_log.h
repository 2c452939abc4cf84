/*
 * The log of positions in the files that netlogd follows (OUTPUT.inputs). The log remains after netlogd was killed.
 *
 * All records of file inputs belong to one stream, and have consecutive numbers. Before netlogd puts the records of a
 * piece of a file into the outputs, it appends the numbers and the place of the piece to this log. The outputs'
 * journals contain the number up to which all outputs have stored the stream. After a kill at any moment, the next
 * netlogd therefore knows which pieces are stored. It reads the other pieces again, at the same boundaries and with the
 * same numbers. Therefore, an output that has some of the records skips these records.
 *
 * The log is text. Its lines are:
 *   inputs 1 STREAM                                         the first line
 *   file ID DEVICE INODE STATE FORMAT OFFSET HEAD TAIL PATH
 *   piece ID FIRST COUNT FROM OFFSET HEAD TAIL              records [FIRST, FIRST + COUNT) are the bytes [FROM, OFFSET)
 *   stored NEXT                                             the outputs have stored all records before NEXT
 *
 * STATE is the sum of 1 (finished) and 2 (ending). A later line about a file replaces all values of the earlier line
 * except the place, which only pieces change. An incomplete last line is ignored.
 *
 * Only the server's thread may call these functions.
 */
#ifndef NETLOGD_INPUT_POSITION_LOG_H
#define NETLOGD_INPUT_POSITION_LOG_H

#include "input/file_content.h"

typedef struct file_state {
    unsigned id;
    uint64_t device, inode;
    bool finished;    /* netlogd has read all of the content, or cannot read the rest */
    bool ending;      /* the content does not grow, and its last line may lack a newline */
    char format[24];  /* name of the format; "?" while it is unknown */
    file_place place; /* netlogd has put the records before this place into the outputs */
    char *path;       /* the latest known path */
} file_state;

typedef struct file_piece {
    unsigned id; /* the file */
    uint64_t first, count, from;
    file_place to;
} file_piece;

typedef struct position_log position_log;

typedef struct position_visitor {
    void (*on_file)(void *user, const file_state *file); /* the path is valid only during the call */
    void (*on_piece)(void *user, const file_piece *piece);
    void (*on_stored)(void *user, uint64_t next);
    void *user;
} position_visitor;

/*
 * Reads the log at path, and calls the visitor's functions for its lines in order. Creates the log if it does not
 * exist; its stream is then random. On failure, sets the error and returns NULL.
 */
position_log *position_log_open(const char *path, const position_visitor *visitor);
void position_log_close(position_log *log); /* accepts NULL */

const unsigned char *position_log_stream(const position_log *log);

/*
 * Append a line. Return NL_FAILED and append nothing if the line cannot be written. End the program if a part of the
 * line was written and cannot be removed.
 */
nl_status position_log_add_file(position_log *log, const file_state *file);
nl_status position_log_add_piece(position_log *log, const file_piece *piece);
nl_status position_log_add_stored(position_log *log, uint64_t next);

/* Returns whether the log is so large that it should be replaced. */
bool position_log_is_large(const position_log *log);

/*
 * Replaces all lines with the current state. Between the two calls, the caller adds all files. If the first function
 * returns NL_FAILED, do not call the second. The second also fails if a new line could not be written. After a failure,
 * the old lines remain.
 */
nl_status position_log_begin_replacement(position_log *log, uint64_t next);
nl_status position_log_end_replacement(position_log *log);

#endif
