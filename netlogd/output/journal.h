/*
 * The journal of an output: a small file beside it that tells, after netlogd was killed, which records of which streams
 * the output has.
 *
 * Clients of the binary protocol send blocks again that were not acknowledged, and nl_streams skips those that were
 * taken; but nl_streams is lost with the process. So after each flush an entry is appended to the journal: the size up
 * to which the output was written, and the next number of each stream that was met since the entry before. Blocks are
 * acknowledged after that. The next netlogd reads the entries and cuts off what the output has beyond the last one,
 * which was never acknowledged and comes again. Because the output is written before the entry, this is right after a
 * kill at any moment, for text and for blocks. (Reading back the numbers in blocks instead would take longer with each
 * day, and text has none.) With fsync=, the output is on the disk before its entry, and the entry before the
 * acknowledgement.
 *
 * An entry, little-endian: "NLJ1", size of the entry (4), CRC-32C of the rest (4), flags (4; 1: netlogd ended, and
 * other programs may write the file), number, inode and size of the file (8 each); then for each stream its name (16),
 * next number, latest time, number of gaps, and for each gap its two ends (8 each). An incomplete last entry is
 * ignored: its flush was not acknowledged.
 *
 * When the journal has more than 1 MiB and twice its minimum size, it is rewritten under another name and renamed.
 * nl_streams holds 65,536 streams and forgets the ones that were silent longest. With the limits of reader/admission.h
 * the journal has at most about 70 MiB.
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
    bool ended; /* netlogd ended properly after this */
} journal_mark;

/* Reads the journal at path, if it exists, into streams, and its last entry into *mark; *found tells whether there was
 * an entry. Writes nothing yet. streams must stay until journal_close. NULL after setting the error. */
journal *journal_open(const char *path, nl_streams *streams, journal_mark *mark, bool *found);

/* Like journal_open, but changes nothing: for programs that examine an archive. Returns false if there is no entry, or
 * after setting the error. */
bool journal_look(const char *path, nl_streams *streams, journal_mark *mark);

/* Frees the journal. Streams that were touched since the last entry are not written. NULL is allowed. */
void journal_close(journal *j);

/* Notes that a stream was met, for the next entry. */
void journal_touch(journal *j, const unsigned char stream[16]);

/* Whether an entry is needed: there are earlier entries, or a stream was touched. */
bool journal_is_needed(const journal *j);

/* Appends an entry with the present size of the file and without streams, before more is written. Results as
 * journal_write. */
nl_status journal_begin(journal *j, const journal_mark *mark, bool sync);

/* Replaces all entries by one of all streams. Results as journal_write. */
nl_status journal_write_all(journal *j, const journal_mark *mark, bool sync);

/* Waits until all entries are on the disk. */
nl_status journal_sync(const journal *j);

/* Appends an entry with the touched streams; with sync, waits for the disk. On NL_FAILED (a full disk) there is no new
 * entry, and it can be tried again. */
nl_status journal_write(journal *j, const journal_mark *mark, bool sync);

#endif
