/*
 * What was taken, beside the output: a small file from which, after netlogd was killed, it is known which records of
 * which streams the output holds.
 *
 * Clients of the binary protocol send again what was not acknowledged, and nl_streams passes over what was taken
 * already; but it is gone when netlogd is. So after each flush of the output an entry is appended here: up to which
 * byte of which file the output was written, and where each stream that was met since the entry before goes on. Blocks
 * are acknowledged after that. Whoever starts next reads the entries and cuts off what the output has beyond the last
 * one: it was never acknowledged, and comes again. Written first and noted then, cut back to what was noted: that is
 * right whatever the moment of the kill, for text and for blocks alike. (Blocks say themselves which records they hold,
 * but reading all of an archive back at each start would take longer with each day; and what was re-encoded or is text
 * does not.) With fsync the output is on the disk before its entry is, and the entry before the acknowledgement.
 *
 * An entry, little-endian: "NLJ1", size of all of it (4), CRC-32C of what follows (4), flags (4; 1: netlogd ended, and
 * what comes behind is others'), number, inode and size of the file (8 each), then for each stream its name (16),
 * next, latest time, the number of gaps, and their two ends (8 each). A torn entry at the end is as if it were not
 * there: its flush was not acknowledged.
 *
 * When the file has grown past a mebibyte and twice what it must hold, it is written anew beside itself and renamed.
 * nl_streams holds 65,536 streams, those silent for longest are forgotten first. With the bounds of reader/admission.h
 * the journal has at most some 70 MiB.
 *
 * One thread.
 */
#ifndef NETLOGD_OUTPUT_JOURNAL_H
#define NETLOGD_OUTPUT_JOURNAL_H

#include <netlogger.h>

#include "reader/decoder.h"

typedef struct journal journal;

/* How far the output was written. */
typedef struct journal_mark {
    uint64_t number; /* of a numbered file, else 0 */
    uint64_t inode;
    uint64_t size;
    bool ended; /* netlogd ended in good order after this */
} journal_mark;

/*
 * Reads what is at path, if anything, into streams, and *mark, the latest one; *found is whether there is one. Nothing
 * is written yet. NULL with the reason in nl_error_message(). path is copied, streams are used until journal_close.
 */
journal *journal_open(const char *path, nl_streams *streams, journal_mark *mark, bool *found);

/*
 * Reads what is at path as journal_open does, but changes nothing: for who looks at an archive. False when there is no
 * entry, or, with the reason in nl_error_message(), when it can't be read.
 */
bool journal_look(const char *path, nl_streams *streams, journal_mark *mark);

/* Frees it; what was touched since the latest entry is not written. NULL is allowed. */
void journal_close(journal *j);

/* A stream was met: the next entry tells of it. */
void journal_touch(journal *j, const unsigned char stream[16]);

/* Whether there is anything to keep: entries from before, or a stream that was touched. */
bool journal_is_needed(const journal *j);

/*
 * Appends an entry that says how far a file was written before anything more is, and nothing of streams: they may have
 * gone on already by what is to be written. Results as journal_write.
 */
nl_status journal_begin(journal *j, const journal_mark *mark, bool sync);

/* Puts an entry of all streams in place of those that are there. Results as journal_write. */
nl_status journal_write_all(journal *j, const journal_mark *mark, bool sync);

/* Waits until the entries are on the disk, though they were written without sync. */
nl_status journal_sync(const journal *j);

/*
 * Appends an entry of what was touched since the latest one, and waits for the disk when sync. On NL_FAILED (a full
 * disk) there is none, and it can be tried again.
 */
nl_status journal_write(journal *j, const journal_mark *mark, bool sync);

#endif
