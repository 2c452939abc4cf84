/*
 * Creates the value index of a file from the file itself (reader/value_index.h, netlogd(8), FILES).
 *
 * The index grows by whole segments, for pieces that the time index already has. The module reads only the file and its
 * time index, so it does not depend on the code that writes the file. After a kill, value_file_open removes a segment
 * that was only partly written, and value_file_extend creates it again. Only one thread at a time may use a value_file,
 * and only one value_file may write an index.
 */
#ifndef NETLOGD_OUTPUT_VALUE_FILE_H
#define NETLOGD_OUTPUT_VALUE_FILE_H

#include "reader/value_index.h"
#include "record/format.h"

#include <stdatomic.h>

/*
 * The fields to index, which an output's files share: the fields of index=, or with index=auto, fields that are
 * inferred for each segment.
 */
typedef struct value_choice {
    nl_value_fields fields;
    bool given, none; /* given: index= names fields; none: no fields are indexed */
} value_choice;

/* Sets the choice from the value of index=; NULL means the default, none. Returns NL_FAILED if it is invalid. */
nl_status value_choice_set(value_choice *c, const char *names);

typedef struct value_file value_file;

/* A file to index. */
typedef struct value_source {
    const char *path;
    uint64_t inode; /* 0: not checked */
    value_choice choice;
    nl_format format; /* all lines from `own` to the end of the file have this format */
    uint64_t own;
    const atomic_bool *stop; /* stops value_file_extend early; NULL: it is not stopped */
} value_source;

/*
 * Opens a file and its index. Removes the bytes after the valid segments of the index. `source` must remain valid.
 * Returns NULL if the path does not name the file or the file cannot be read.
 */
value_file *value_file_open(const value_source *source);

/*
 * Like value_file_open, but creates another index, in NAME.new. value_file_rename renames the new index to NAME, or
 * removes NAME if the new index has no segments. value_file_rename returns false on failure.
 */
value_file *value_file_open_new(const value_source *source);
bool value_file_rename(value_file *v);

/*
 * Reads the next pieces, and appends a segment for them. Pieces whose index would be too large or whose records are
 * unknown stay without an index. If `all` is true, indexes all pieces of the time index. Otherwise, leaves the last
 * pieces until there are enough for a whole segment. Does not index a file of less than 512 KiB, because a search reads
 * such a file quickly. Returns false if no pieces are left to index, if `stop` has become true, or after a failure.
 */
bool value_file_extend(value_file *v, bool all);

/* Returns the end of the pieces that value_file_extend has read. */
uint64_t value_file_covered(const value_file *v);

/* Closes the index. Deletes the index if the file was deleted, and NAME.new if it was not renamed. NULL is allowed. */
void value_file_close(value_file *v);

enum { VALUE_SEGMENT_SIZE = 64 << 20 /* bytes of the file that a whole segment describes */ };

#endif
