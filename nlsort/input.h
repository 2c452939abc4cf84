/*
 * Reads the input of the general sort. Returns each record's key and its line in the output's format. A line that
 * already has this format is not changed. Only one thread at a time may use these functions.
 */
#ifndef NLSORT_INPUT_H
#define NLSORT_INPUT_H

#include "key.h"
#include "merge.h"
#include "packed.h"

#include "program/program.h"

enum { PROGRESS_RECORDS = 64 << 10 }; /* number of records between progress updates */

/* The settings that all inputs share. */
typedef struct input_settings {
    const key *key;
    bool unique;             /* append the line to each key, so that identical records are adjacent */
    nl_format format;        /* format of the output; NL_FORMAT_UNKNOWN before the first record */
    bool packed;             /* lines are packed (packed.h), because the output is blocks */
    nl_block_shapes *shapes; /* if packed, the shapes of the records */
    program_where where;     /* the records to sort */
    program_reading reading;
} input_settings;

typedef struct input input;

/* Converts a record to a line with its newline, or to a packed record. Sets an unknown format to that of the record. */
void input_make_line(input_settings *settings, const nl_record *record, nl_buffer *line);

/* Like input_make_line, but also writes the sort key of the record to `key`. */
void input_make_entry(input_settings *settings, const nl_record *record, nl_buffer *key, nl_buffer *line);

/* Opens a log. On failure, reports the error and returns NULL. */
input *input_open(input_settings *settings, const char *path);

/* Reads the next record. `key` and `line` are valid until the next call. Returns false at the end, even if a part of
 * the log could not be read (program_log_next). */
bool input_next(input *in, nl_string *key, nl_string *line);

/* Compares keys. Returns a number less than, equal to or greater than 0, like memcmp. */
int input_compare_keys(nl_string a, nl_string b);

/* Returns the number of records that have matched so far. */
uint64_t input_record(const input *in);

/* Returns whether the current record is a last line without a newline, whose values may be incomplete. */
bool input_is_unterminated(const input *in);

/* Sets *done to the position in the input and *total to its size, in bytes. A value is 0 if it is unknown. */
void input_progress(const input *in, uint64_t *done, uint64_t *total);

void input_close(input *in);

/*
 * Opens a sorted log as an input of a merge. If a record is out of order, reports the first such record and sets
 * *disordered. On failure, reports the error and returns NULL.
 */
merge_input *input_open_sorted(input_settings *settings, const char *path, bool *disordered);

#endif
