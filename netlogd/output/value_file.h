/*
 * Writes the value index of a file while the file is written (reader/value_index.h, netlogd(8), FILES).
 *
 * The entries of the latest segment stay in memory. netlogd writes the segment whenever its pieces have doubled in
 * size, over its older version, and begins another segment after SEGMENT_SIZE. A kill loses at most the latest segment.
 * value_file_open then makes it again from the file. Writing to the file neither waits for the index nor fails because
 * of it: after a failure, pieces stay without an index.
 *
 * file_index.c calls these functions. Only the server's thread may call them.
 */
#ifndef NETLOGD_OUTPUT_VALUE_FILE_H
#define NETLOGD_OUTPUT_VALUE_FILE_H

#include "options.h"
#include "reader/value_index.h"

/*
 * The fields to index, which an output's files share: those of index=, or TRACE.ID and the ID fields that are inferred
 * from some records after every INFER_INTERVAL bytes. Starts as zeros.
 */
typedef struct value_choice {
    nl_value_fields fields;
    bool given, none; /* index= was given */
    uint64_t written; /* bytes since the latest inference */
    bool inferred;
} value_choice;

/* Sets the choice from the value of index=, or NULL. Returns NL_FAILED if it is invalid. */
nl_status value_choice_set(value_choice *c, const char *names);

typedef struct value_file value_file;

/*
 * Continues or begins the index of a file, which is open as `file` for reading. `index` has the pieces that the time
 * index has already. Makes the missing segments again if they describe at most `maximum` bytes.
 */
value_file *value_file_open(const char *path, int file, const nl_time_index *index, value_choice *choice,
                            uint64_t maximum);

/* Begins the index of a whole file in NAME.new; value_file_rename renames it. */
value_file *value_file_rebuild(const char *path, int file, value_choice *choice);
bool value_file_rename(value_file *v);

/* Returns the fields whose keys value_file_add expects; they may change when a piece ends. */
const nl_value_fields *value_file_fields(const value_file *v);

/* Adds the keys of records of the current piece. */
void value_file_add(value_file *v, const nl_value_keys *keys);

/* Notes that the current piece has records whose keys were not added. It is read when it ends. */
void value_file_miss(value_file *v);

/* Ends the current piece. `sum` is the checksum of the time index's header. Reads at most `maximum` bytes. */
void value_file_end_piece(value_file *v, const nl_time_piece *piece, uint32_t sum, uint64_t maximum);

/* Writes the rest of the index, and frees it. NULL is allowed. */
void value_file_close(value_file *v);

#endif
