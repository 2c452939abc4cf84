/*
 * What one process has in a spool: a row of files of encoded records, first in, first out. One thread at a time.
 *
 *   NAME.row           nl_spool_row_state; locked (fcntl) by the process that writes or delivers the row
 *   NAME-000001.spool  a segment: puts of whole records, each behind a put_head
 *   NAME-a.lost, -b    blocks that announce the numbers which the full spool dropped; state.losses_file names the one
 *                      that counts
 *
 * The state file decides. Each change of it is a single write of a few bytes, which a kill leaves done or not done:
 * "segment 5 was dropped, with 100 records" is one such change. A segment is removed after that, and only then. So a
 * kill neither loses the count of dropped records nor counts records that are still delivered. Numbers below
 * state.first are remains of such a removal.
 *
 * A crash of the machine can leave an older state: then records are delivered again, which collectors of blocks notice.
 */
#ifndef NETLOGGER_TRANSPORT_SPOOL_ROW_H
#define NETLOGGER_TRANSPORT_SPOOL_ROW_H

#include <netlogger.h>

#include "base/descriptor.h"

enum { NL_SPOOL_NAME_SIZE = 48 };

typedef struct nl_spool_row_state {
    char magic[8];
    uint64_t first, last; /* numbers of segments; first > last: there are none */
    uint64_t delivered;   /* bytes of the first one */
    uint64_t lost;        /* records that were dropped, and not reported yet */
    uint64_t losses_file; /* 1: NAME-a.lost, 2: NAME-b.lost, 0: neither */
} nl_spool_row_state;

typedef struct nl_spool_segment {
    struct nl_spool_segment *next; /* newer */
    uint64_t number;
    int fd;
    nl_identity identity; /* of fd */
    uint64_t size;        /* bytes */
    uint64_t records;     /* that are not delivered; of a segment that this process wrote */
    bool unsafe;          /* bytes were written since its latest fsync */
} nl_spool_segment;

typedef struct nl_spool_row {
    const char *folder; /* path, for messages; the spool's */
    int folder_fd;      /* the spool's */
    char name[NL_SPOOL_NAME_SIZE];
    int fd;
    nl_identity identity;
    bool own; /* this process writes it, and has all segments open. Otherwise only the first is, while it is read */
    nl_spool_row_state state;
    nl_spool_segment *segments, **last;
    uint64_t size;          /* bytes of the open segments */
    unsigned read_failures; /* in succession, of the first segment */
} nl_spool_row;

/* Makes a row of this process. NULL with the reason. */
nl_spool_row *nl_spool_row_make(const char *folder, int folder_fd);

/*
 * Opens the row of another process, to deliver it. NL_OK; NL_END when it is gone, or another process has it; NL_FAILED
 * with the reason when that is not known.
 */
nl_status nl_spool_row_adopt(const char *folder, int folder_fd, const char *name, nl_spool_row **row);

/* Closes the files, which stay. NULL is allowed. */
void nl_spool_row_close(nl_spool_row *row);

/* Removes an empty row, and closes it. */
void nl_spool_row_remove(nl_spool_row *row);

/* Whether the row has nothing to deliver or to report. */
static inline bool nl_spool_row_is_empty(const nl_spool_row *row)
{
    return row->state.first > row->state.last && row->state.lost == 0 && row->state.losses_file == 0;
}

/* Whether the program has not closed any of its descriptors. */
bool nl_spool_row_is_sound(const nl_spool_row *row);

/* Bytes that a put takes besides its data. */
enum { NL_SPOOL_PUT_HEAD = 8 };

/* Appends data[0..size), whole records, to an own row; to a new segment when the newest has segment_size bytes. */
nl_status nl_spool_row_put(nl_spool_row *row, const char *data, size_t size, uint64_t segment_size);

/* Drops the first segment of an own row, and counts its records as lost. NL_FAILED with the reason: it is still there.
 */
nl_status nl_spool_row_drop_first(nl_spool_row *row);

/* Counts the records in data[0..size) as lost instead of putting them. */
nl_status nl_spool_row_drop(nl_spool_row *row, const char *data, size_t size);

/*
 * Reads about size bytes, whole puts, from the first segment that has any, into out (emptied first). Reads none, and
 * NL_OK, when there are none. Removes segments that were read to the end. NL_FAILED with the reason when the first put
 * cannot be read. After several failures in succession the segment is renamed to *.damaged; its records count as lost,
 * as far as their number can be read.
 */
nl_status nl_spool_row_peek(nl_spool_row *row, nl_buffer *out, size_t size);

/* The first size bytes of what nl_spool_row_peek read are delivered. */
void nl_spool_row_delivered(nl_spool_row *row, size_t size);

/* Appends the blocks that announce the dropped numbers to out. */
nl_status nl_spool_row_read_losses(nl_spool_row *row, nl_buffer *out);

/* What was dropped is reported. */
void nl_spool_row_lost_told(nl_spool_row *row);

/* Calls fdatasync for all that was written to an own row, or for all files of another row. NL_FAILED with the reason.
 */
nl_status nl_spool_row_sync(nl_spool_row *row);
nl_status nl_spool_row_sync_files(const char *folder, int folder_fd, const char *name);

#endif
