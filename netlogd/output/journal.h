/*
 * The journal of an output: a small file beside the output's file, with the numbers of the output's records for each
 * stream. The journal remains after netlogd was killed.
 *
 * Clients of the binary protocol send unacknowledged blocks again, and nl_streams skips blocks that are already stored.
 * nl_streams is only in memory, so it is lost if netlogd is killed. Therefore, netlogd appends an entry to the journal
 * each time it settles the output. The entry contains the size up to which the output was written, and the next number
 * of each stream that was used since the previous entry. Then netlogd acknowledges the blocks. The next netlogd reads
 * the entries and truncates the output to the size in the last entry. The bytes beyond that size were never
 * acknowledged, so clients send them again. Because netlogd writes the output before the entry, no record is lost or
 * stored twice after a kill at any moment. This is true for text and for blocks. (netlogd cannot read the numbers from
 * the files instead: text has no numbers, and large files would take too long.) With fsync=, the output reaches the
 * disk before its entry, and the entry before the acknowledgement.
 *
 * An entry begins with the following parts, with little-endian numbers (size in bytes, content):
 *   4  "NLJ1"
 *   4  size of the entry in bytes
 *   4  CRC-32C of the rest of the entry
 *   4  flags; 1: netlogd has ended, and other programs may write the file
 *   8  number of the file
 *   8  inode of the file
 *   8  size of the file in bytes
 *
 * The following parts follow for each stream:
 *  16  name of the stream
 *   8  next number
 *   8  latest time
 *   8  number of gaps
 *  16  for each gap: the two ends of the gap, 8 bytes each
 *
 * netlogd ignores an incomplete last entry, because it has not acknowledged the records of this entry.
 *
 * If the journal is larger than 1 MiB, and has doubled since it was last rewritten, netlogd writes one new entry under
 * another name and renames it. nl_streams contains at most 65,536 streams, and forgets the streams that have been
 * silent longest. With the limits of reader/admission.h, the journal has at most about 70 MiB.
 *
 * Only the server's thread may call these functions.
 */
#ifndef NETLOGD_OUTPUT_JOURNAL_H
#define NETLOGD_OUTPUT_JOURNAL_H

#include <netlogger.h>

#include "reader/decoder.h"

typedef struct journal journal;

/* The position up to which the output was written. */
typedef struct journal_mark {
    uint64_t number; /* number of a numbered file; otherwise 0 */
    uint64_t inode;
    uint64_t size;
    bool ended; /* netlogd wrote this entry when it ended cleanly */
} journal_mark;

/*
 * Reads the journal at path, if it exists, into `streams`. If it has an entry, copies the last entry to *mark and sets
 * *found to true; otherwise, sets *found to false. Removes an incomplete last entry. `streams` must remain valid until
 * journal_close. On failure, sets the error and returns NULL.
 */
journal *journal_open(const char *path, nl_streams *streams, journal_mark *mark, bool *found);

/*
 * Reads the journal like journal_open, but does not change the file. Returns false if the journal has no entry. On
 * failure, sets the error and returns false.
 */
bool journal_look(const char *path, nl_streams *streams, journal_mark *mark);

/* Frees the journal. Does not write the streams that were touched since the last entry. `j` may be NULL. */
void journal_close(journal *j);

/* Adds a stream to the next entry, because it was used. */
void journal_touch(journal *j, const unsigned char stream[16]);

/* Returns whether an entry is needed: the journal has earlier entries, or a stream was touched. */
bool journal_is_needed(const journal *j);

/*
 * Appends an entry with the file's current size and without streams. Call it before writing to the file. Returns the
 * same values as journal_write.
 */
nl_status journal_begin(journal *j, const journal_mark *mark, bool sync);

/* Replaces all entries with one entry that contains all streams. Returns the same values as journal_write. */
nl_status journal_write_all(journal *j, const journal_mark *mark, bool sync);

/* Waits until all entries are on the disk. On failure, sets the error and returns NL_FAILED. */
nl_status journal_sync(const journal *j);

/*
 * Appends an entry with the touched streams. If `sync` is true, waits for the disk. On NL_FAILED (a full disk), no
 * entry was added, and the call can be repeated.
 */
nl_status journal_write(journal *j, const journal_mark *mark, bool sync);

#endif
