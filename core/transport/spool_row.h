/*
 * The records of one process in a spool. They form a queue in several files.
 *
 *   NAME.row           nl_spool_row_state; locked (fcntl) by the process that writes or delivers the row
 *   NAME-000001.spool  a segment: puts; each consists of a put_head and whole records
 *   NAME-a.lost, -b    blocks that announce dropped numbers; state.losses_file names the valid file
 *
 * The state file is authoritative. Each change of the state, such as "segment 5 is dropped, with 100 records", is one
 * write of a few bytes, which a kill cannot interrupt halfway. A process creates a segment's file before the state
 * includes the segment, and removes the file after the state no longer includes the segment. Therefore, a kill does not
 * lose the count of dropped records, and does not count records that will still be delivered. Segment files with
 * numbers outside [first, last] remain from processes that were killed.
 *
 * A system crash can leave an older state. Records are then delivered again. A collector that receives blocks detects
 * the repetition.
 *
 * Only one thread at a time may use a row.
 */
#ifndef NETLOGGER_TRANSPORT_SPOOL_ROW_H
#define NETLOGGER_TRANSPORT_SPOOL_ROW_H

#include <netlogger.h>

#include "base/descriptor.h"

enum { NL_SPOOL_NAME_SIZE = 48 };

typedef struct nl_spool_row_state {
    char magic[8];
    uint64_t first, last; /* numbers of the first and last segment; first > last if there are no segments */
    uint64_t delivered;   /* number of bytes of the first segment that contain delivered puts */
    uint64_t lost;        /* number of dropped records that are not reported yet */
    uint64_t losses_file; /* 1 is NAME-a.lost, 2 is NAME-b.lost, and 0 means that no records were dropped */
    uint64_t part;        /* number of delivered bytes of the put at `delivered` */
} nl_spool_row_state;

typedef struct nl_spool_segment {
    struct nl_spool_segment *next;
    uint64_t number;
    int fd;
    nl_identity identity; /* identity of the file that fd refers to */
    uint64_t size;        /* bytes */
    uint64_t records;     /* number of undelivered records, if this process wrote the segment */
    uint64_t bytes;       /* number of bytes of these records, including records of which a part was delivered */
    bool unsafe;          /* written since the latest sync */
} nl_spool_segment;

typedef struct nl_spool_row {
    const char *directory; /* path of the spool's directory, for messages */
    int directory_fd;      /* descriptor of the spool's directory */
    char name[NL_SPOOL_NAME_SIZE];
    int fd;               /* NAME.row */
    nl_identity identity; /* identity of the file that fd refers to */
    bool own; /* this process writes the row, and has all segments open; otherwise, only the first segment is open,
               * while it is being read */
    nl_spool_row_state state;
    nl_spool_segment *segments; /* open segments, oldest first */
    nl_spool_segment **last;    /* the NULL pointer at the end of this list */
    uint64_t size;              /* total size of the open segments in bytes */
    uint64_t passed;            /* number of bytes of records that were delivered or dropped since the row was opened */
    unsigned read_failures;     /* consecutive failures to read the first segment */
} nl_spool_row;

/* Creates a row for this process. Returns NULL on failure. */
nl_spool_row *nl_spool_row_make(const char *directory, int directory_fd);

/*
 * Opens the row of another process, to deliver it. Returns NL_END if the row no longer exists, has no valid state, or
 * if another process has opened it, and NL_FAILED if this cannot be determined.
 */
nl_status nl_spool_row_adopt(const char *directory, int directory_fd, const char *name, nl_spool_row **row);

/* Returns the size of the row's name in the name of a segment's file; 0 if this is not the name of such a file. */
size_t nl_spool_row_name_size(const char *file);

/* Returns whether a row that no process uses has no state, or an invalid state. */
bool nl_spool_row_is_damaged(int directory_fd, const char *name);

/* Closes the files, which stay on disk. Closing NULL has no effect. */
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

/* Returns the number of undelivered records in a row of this process. */
uint64_t nl_spool_row_count(const nl_spool_row *row);

/* Size of a put in bytes, not counting its data. */
enum { NL_SPOOL_PUT_HEAD = 8 };

/*
 * Appends whole records to a row of this process. Starts a new segment if the newest segment has segment_size bytes.
 * Returns NL_OK or NL_FAILED.
 */
nl_status nl_spool_row_put(nl_spool_row *row, const char *data, size_t size, uint64_t segment_size);

/*
 * Drops the first segment of a row of this process, and counts its records as lost. If it returns NL_FAILED, the
 * segment still exists.
 */
nl_status nl_spool_row_drop_first(nl_spool_row *row);

/* Counts records as lost instead of putting them. Returns NL_OK or NL_FAILED. */
nl_status nl_spool_row_drop(nl_spool_row *row, const char *data, size_t size);

/*
 * Sets `out` to about `size` bytes of whole puts from the first segment, or to nothing if the row is empty. Removes
 * segments that were read completely. Returns NL_FAILED if the first put cannot be read. After several consecutive
 * failures, renames the segment to *.damaged and counts its records as lost, as far as their number is known.
 */
nl_status nl_spool_row_peek(nl_spool_row *row, nl_buffer *out, size_t size);

/* Marks the first size bytes as delivered, up to the end of the first segment. Returns their number. */
size_t nl_spool_row_delivered(nl_spool_row *row, size_t size);

/* Appends the blocks that announce dropped numbers. Returns NL_OK or NL_FAILED. */
nl_status nl_spool_row_read_losses(nl_spool_row *row, nl_buffer *out);

/*
 * Notes that the loss of `count` records was reported. If more records were dropped after the report was written, the
 * next report announces the dropped numbers again, with these records.
 */
void nl_spool_row_loss_reported(nl_spool_row *row, uint64_t count);

/* Sync a row of this process, or all files of another row. Return NL_FAILED on failure. */
nl_status nl_spool_row_sync(nl_spool_row *row);
nl_status nl_spool_row_sync_files(const char *directory, int directory_fd, const char *name);

#endif
