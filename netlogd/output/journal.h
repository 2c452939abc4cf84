/*
 * The journal of an output: a small file beside it with the numbers of the records that the output has, for each
 * stream. It survives a kill of netlogd.
 *
 * Clients of the binary protocol send unacknowledged blocks again, and nl_streams skips the blocks that were already
 * stored. But nl_streams is lost with the process. Therefore, after each flush, netlogd appends an entry to the
 * journal: the size up to which the output was written, and the next number of each stream that was used since the
 * previous entry. Then netlogd acknowledges the blocks. The next netlogd reads the entries and truncates the output to
 * the size in the last entry: the bytes beyond that size were never acknowledged, and clients send them again. Because
 * the output is written before the entry, this is correct after a kill at any moment, for text and for blocks. (Reading
 * the numbers from the blocks instead would take longer every day, and text has no numbers.) With fsync=, the output
 * reaches the disk before its entry, and the entry before the acknowledgement.
 *
 * An entry, little-endian: "NLJ1", size of the entry (4), CRC-32C of the rest (4), flags (4; 1: netlogd ended, and
 * other programs may write the file), number, inode and size of the file (8 each); then for each stream its name (16),
 * next number, latest time, number of gaps, and for each gap its two ends (8 each). An incomplete last entry is
 * ignored: its flush was not acknowledged.
 *
 * When the journal has more than 1 MiB and twice its minimum size, it is rewritten under another name and renamed.
 * nl_streams holds 65,536 streams and forgets the streams that have been silent longest. With the limits of
 * reader/admission.h the journal has at most about 70 MiB.
 *
 * The server's thread only.
 */
#ifndef NETLOGD_OUTPUT_JOURNAL_H
#define NETLOGD_OUTPUT_JOURNAL_H

#include <netlogger.h>

#include "reader/decoder.h"

typedef struct journal journal;

/* The size up to which the output was written. */
typedef struct journal_mark {
    uint64_t number; /* of a numbered file; otherwise 0 */
    uint64_t inode;
    uint64_t size;
    bool ended; /* netlogd ended properly after this entry */
} journal_mark;

/*
 * Reads the journal at path, if it exists, into streams, and its last entry into *mark; *found is true if it has an
 * entry. Does not write. streams must remain valid until journal_close. Returns NULL after setting the error.
 */
journal *journal_open(const char *path, nl_streams *streams, journal_mark *mark, bool *found);

/*
 * Like journal_open, but changes nothing: for programs that examine an archive. Returns false if the journal has no
 * entry, or after setting the error.
 */
bool journal_look(const char *path, nl_streams *streams, journal_mark *mark);

/* Frees the journal. Streams that were touched since the last entry are not written. NULL is allowed. */
void journal_close(journal *j);

/* Notes that a stream was used, for the next entry. */
void journal_touch(journal *j, const unsigned char stream[16]);

/* Returns whether an entry is needed: the journal has earlier entries, or a stream was touched. */
bool journal_is_needed(const journal *j);

/*
 * Appends an entry with the present size of the file and without streams, before more is written. Returns as
 * journal_write.
 */
nl_status journal_begin(journal *j, const journal_mark *mark, bool sync);

/* Replaces all entries by one entry with all streams. Returns as journal_write. */
nl_status journal_write_all(journal *j, const journal_mark *mark, bool sync);

/* Waits until all entries are on the disk. */
nl_status journal_sync(const journal *j);

/*
 * Appends an entry with the touched streams; with sync, waits for the disk. On NL_FAILED (a full disk) no entry was
 * added, and the call can be repeated.
 */
nl_status journal_write(journal *j, const journal_mark *mark, bool sync);

#endif
