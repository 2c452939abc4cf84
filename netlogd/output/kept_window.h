/*
 * The decisions about the records of the oldest files of an archive with keep_where=.
 *
 * A record is open for a kind of requests (a lifeline) while it belongs to a request of this kind that is not over. The
 * window has two facts about each record: whether it is kept, and for which kinds it is open. A kept record stays kept.
 * The window is stored in a file (NAME.keeping), so that netlogd continues with the same decisions after a restart. The
 * file also describes the finished file: the latest file of the archive whose requests are all decided and whose kept
 * file is complete.
 *
 * The file consists of the following parts; integers have 64 bits and are little-endian:
 *   "NLKEEP1\n" (8 bytes)
 *   the finished file
 *   the number of names of requests whose records are all kept, and a hash of each name
 *   the number of later files, and for each later file:
 *     the file
 *     the number of records that were read
 *     a bit for each record that is kept, and a bit for each record that is open, both in whole bytes
 *   the CRC32C of the other parts (4 bytes)
 *
 * Each file is described by its number, inode, size, and time of its last change in nanoseconds since 1970.
 *
 * The caller owns the window. Only one thread at a time may use it.
 */
#ifndef NETLOGD_OUTPUT_KEPT_WINDOW_H
#define NETLOGD_OUTPUT_KEPT_WINDOW_H

#include "file.h"
#include "requests/key_map.h"

enum { KEPT_KINDS_MAX = 8, KEPT_NAMES_MAX = 1 << 16 };

typedef struct kept_identity {
    uint64_t number, inode, size;
    int64_t written_ns;
} kept_identity;

/* A bit for each record. Bits beyond the end are 0. */
typedef struct kept_bits {
    nl_buffer bytes;
} kept_bits;

typedef struct kept_window_file {
    kept_identity identity;
    uint64_t count;      /* number of records that were read */
    uint64_t open_count; /* number of pairs of a record and a kind for which it is open */
    kept_bits kept;
    kept_bits open[KEPT_KINDS_MAX];
    uint64_t stored_count; /* number of records whose stored decisions apply */
    kept_bits stored_open; /* the records that were open when the decisions were stored */
} kept_window_file;

typedef struct kept_window {
    kept_window_file *files; /* in ascending order of their numbers */
    size_t count, capacity;
    kept_identity finished; /* the latest finished file; its number is 0 if no file is finished */
    key_map names;          /* hashes of the names of requests whose records are all kept */
} kept_window;

bool kept_bits_get(const kept_bits *b, uint64_t i);
void kept_bits_set(kept_bits *b, uint64_t i);
void kept_bits_clear(kept_bits *b, uint64_t i);

/* Describes the file with this name. If it does not exist, only the number is set. */
kept_identity kept_identity_read(const char *name, uint64_t number);

/* Returns the file with this number, or NULL. */
kept_window_file *kept_window_find(kept_window *w, uint64_t number);

/* Adds a file that the window does not have. Earlier pointers to files become invalid. */
kept_window_file *kept_window_add(kept_window *w, kept_identity identity);

/* Removes the files with lower numbers. */
void kept_window_drop_below(kept_window *w, uint64_t number);

/*
 * Adds the name of a request whose records are all kept, and returns whether the window has a name. The window forgets
 * all names when it has KEPT_NAMES_MAX names.
 */
void kept_window_add_name(kept_window *w, const char *name);
bool kept_window_has_name(const kept_window *w, const char *name);

/*
 * Stores the window at `path`, and syncs it. The name of the new file is `path` with the suffix ".new" until the file
 * is complete. On failure, sets the error and returns NL_FAILED.
 */
nl_status kept_window_save(const kept_window *w, const char *path);

/*
 * Reads a stored window into an empty window. Omits the decisions about files that have changed since. Without a valid
 * stored window, the window stays empty.
 */
void kept_window_load(kept_window *w, const char *path, const output_options *options);

/* Frees the members, and empties the window. */
void kept_window_clear(kept_window *w);

#endif
