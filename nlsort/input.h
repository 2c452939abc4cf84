/*
 * The logs that are sorted: records as lines of the output's format, with their keys.
 *
 * A line is what came in, byte for byte, where it was in the output's format already; other records are written anew.
 */
#ifndef NLSORT_INPUT_H
#define NLSORT_INPUT_H

#include "key.h"
#include "merge.h"

#include "program/program.h"

enum { PROGRESS_RECORDS = 64 << 10 }; /* between looks at whether it is time to say how far things are */

/* What all inputs share. */
typedef struct input_settings {
    const key *key;
    bool unique;         /* the line ends the key, so that identical records come together */
    nl_format format;    /* of the output; NL_FORMAT_UNKNOWN until the first record says */
    bool packed;         /* lines are records as nl_record_pack makes them, whatever the format */
    program_where where; /* the records to sort */
    program_reading reading;
    bool failed; /* an input could not be opened or read to its end */
} input_settings;

typedef struct input input;

/* Makes of a record what is written of it: a line with its newline, or packed. The first one settles the format. */
void input_make_line(input_settings *settings, const nl_record *record, nl_buffer *line);

/* The same, and its key. */
void input_make_entry(input_settings *settings, const nl_record *record, nl_buffer *key, nl_buffer *line);

/* Opens a log; NULL after having said why not. */
input *input_open(input_settings *settings, const char *path);

/* The next record as key and line (with its newline, or packed), valid until the next call. False at the end. */
bool input_next(input *in, nl_string *key, nl_string *line);

/* Negative, zero or positive, as memcmp. */
int input_compare_keys(nl_string a, nl_string b);

/*
 * The number of the latest record, among those that where matches, and how far reading has come (bytes read, size or
 * 0).
 */
uint64_t input_record(const input *in);
void input_progress(const input *in, uint64_t *done, uint64_t *total);

void input_close(input *in);

/*
 * A log that is said to be in order already, as a stream of items. Where it is not, the program says so once and
 * *disordered is set; NULL when it can't be opened, which was said.
 */
stream *input_open_sorted(input_settings *settings, const char *path, bool *disordered);

#endif
