/*
 * The records of one process in a spool: a queue in several files.
 *
 *   NAME.row           nl_spool_row_state; locked (fcntl) by the process that writes or delivers the row
 *   NAME-000001.spool  a segment: puts of whole records, each after a put_head
 *   NAME-a.lost, -b    blocks that announce dropped numbers; state.losses_file names the valid one
 *
 * The state file is authoritative. Each change of the state is one write of a few bytes, which a kill leaves done or
 * not done, such as "segment 5 is dropped, with 100 records". A segment's file is created before the state counts it,
 * and removed after the state drops it. So a kill neither loses the count of dropped records nor counts records that
 * are still delivered. Files outside of [first, last] are remains of a kill.
 *
 * A system crash can leave an older state. Then records are delivered again, which collectors of blocks detect.
 *
 * One thread at a time.
 */
#ifndef NETLOGGER_TRANSPORT_SPOOL_ROW_H
#define NETLOGGER_TRANSPORT_SPOOL_ROW_H

#include <netlogger.h>

#include "base/descriptor.h"

enum { NL_SPOOL_NAME_SIZE = 48 };

typedef struct nl_spool_row_state {
    char magic[8];
    uint64_t first, last; /* numbers of segments; first > last: no segments */
    uint64_t delivered;   /* bytes of the first segment */
    uint64_t lost;        /* dropped records that are not reported yet */
    uint64_t losses_file; /* 1: NAME-a.lost, 2: NAME-b.lost, 0: none */
} nl_spool_row_state;

typedef struct nl_spool_segment {
    struct nl_spool_segment *next;
    uint64_t number;
    int fd;
    nl_identity identity; /* of fd */
    uint64_t size;        /* bytes */
    uint64_t records;     /* undelivered, of a segment that this process wrote */
    bool unsafe;          /* written since the latest sync */
} nl_spool_segment;

typedef struct nl_spool_row {
    const char *folder; /* the spool's path, for messages */
    int folder_fd;      /* the spool's */
    char name[NL_SPOOL_NAME_SIZE];
    int fd;
    nl_identity identity;
    bool own; /* this process writes the row and has all segments open; otherwise only the first is open, while it is
                 read */
    nl_spool_row_state state;
    nl_spool_segment *segments, **last;
    uint64_t size;          /* bytes of the open segments */
    unsigned read_failures; /* consecutive failures to read the first segment */
} nl_spool_row;

/* Creates a row for this process. Returns NULL on failure. */
nl_spool_row *nl_spool_row_make(const char *folder, int folder_fd);

/*
 * Opens the row of another process, to deliver it. Returns NL_OK; NL_END if it is gone or another process has it;
 * NL_FAILED if this cannot be determined.
 */
nl_status nl_spool_row_adopt(const char *folder, int folder_fd, const char *name, nl_spool_row **row);

/* Closes the files, which stay on disk. NULL is allowed. */
void nl_spool_row_close(nl_spool_row *row);

/* Removes and closes an empty row. */
void nl_spool_row_remove(nl_spool_row *row);

/* Returns whether the row has nothing to deliver or report. */
static inline bool nl_spool_row_is_empty(const nl_spool_row *row)
{
    return row->state.first > row->state.last && row->state.lost == 0 && row->state.losses_file == 0;
}

/* Returns whether all descriptors still refer to their files. */
bool nl_spool_row_is_sound(const nl_spool_row *row);

/* bytes of a put, not counting its data */
enum { NL_SPOOL_PUT_HEAD = 8 };

/* Appends whole records to an own row. Starts a new segment if the newest has segment_size bytes. */
nl_status nl_spool_row_put(nl_spool_row *row, const char *data, size_t size, uint64_t segment_size);

/* Drops the first segment of an own row and counts its records as lost. On NL_FAILED the segment is still there. */
nl_status nl_spool_row_drop_first(nl_spool_row *row);

/* Counts records as lost instead of putting them. */
nl_status nl_spool_row_drop(nl_spool_row *row, const char *data, size_t size);

/*
 * Sets out to whole puts from the first segment, about size bytes; to nothing if the row is empty. Removes segments
 * that are read completely. Returns NL_FAILED if the first put cannot be read. After several consecutive failures the
 * segment is renamed to *.damaged, and its records count as lost, as far as their number is known.
 */
nl_status nl_spool_row_peek(nl_spool_row *row, nl_buffer *out, size_t size);

/* Notes that the first size bytes of the latest nl_spool_row_peek are delivered. */
void nl_spool_row_delivered(nl_spool_row *row, size_t size);

/* Appends the blocks that announce dropped numbers. */
nl_status nl_spool_row_read_losses(nl_spool_row *row, nl_buffer *out);

/* Notes that the loss was reported. */
void nl_spool_row_loss_reported(nl_spool_row *row);

/* Sync an own row, or all files of another row. Return NL_FAILED on failure. */
nl_status nl_spool_row_sync(nl_spool_row *row);
nl_status nl_spool_row_sync_files(const char *folder, int folder_fd, const char *name);

#endif
