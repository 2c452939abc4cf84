/* clang-format off */
/*
 * The layout of shared memory, in which events outlive the process that logged them.
 *
 * A process has a directory, /dev/shm/netlogger-UID-PID-RANDOM, that only its user may enter:
 *
 *   lock        empty; locked (fcntl) while the process runs
 *   sites       nl_shared_sites: the sites of all events that the process has logged, with names and types
 *   log-N       nl_shared_log: a log's destination, its clock, and the batch of encoded records
 *   ring-N-M    nl_shared_ring: events of one thread in log N that are not in a batch yet
 *
 * A process can be killed after any store. Therefore, the order of stores ensures that recovery finds a consistent
 * state:
 *
 *   - A producer copies an event, then stores nl_shared_ring.published: all events before this position are complete.
 *   - The writer thread encodes events at the end of the batch. It stores its new position in each ring (next_tail) and
 *     the new size of the batch (next_size), and then increments nl_shared_log.commit. From then on, the events belong to
 *     the batch. Finally, the thread stores tail, batch_size and applied. If commit and applied differ, recovery
 *     completes these stores.
 *   - The writer thread moves the rest of a batch to offset 0 if the old and the new place do not overlap. It stores the
 *     new batch_size, then batch_start. If batch_start is not less than batch_size, recovery sets batch_start to 0.
 *   - The writer thread notes the size of a file before it writes the batch, so that recovery can find the batch in the
 *   file.
 *
 * The layout depends on the machine's byte order and on the version of the layout, NL_SHARED_VERSION.
 */
/* clang-format on */
#ifndef NETLOGGER_LOG_SHARED_H
#define NETLOGGER_LOG_SHARED_H

#include <netlogger.h>

#define NL_SHARED_MAGIC "NLSHARED"
#define NL_SHARED_VERSION 2
#define NL_CACHE_LINE 64

enum {
    NL_SHARED_HEADER = 4096,         /* offset of a ring's data, of the batch and of the sites, in bytes */
    NL_SHARED_SITES_SIZE = 64 << 20, /* size of the address space in bytes; memory is allocated when needed */
    NL_SHARED_BATCH_SIZE = 4 << 20,  /* size of the address space in bytes */
    NL_STREAM_ID_SIZE = 16,
};

/*
 * The maximum size of an event in bytes. The text of an event can be four times as large as the event, and the batch
 * may already contain 256 KiB. An event whose text did not fit into the batch would block all later events.
 */
enum { NL_EVENT_MAX = 960 << 10 };
_Static_assert(4 * NL_EVENT_MAX + (256 << 10) <= NL_SHARED_BATCH_SIZE, "the batch has space for the largest event");
_Static_assert(NL_FIELDS_MAX *NL_VALUE_SIZE_MAX + 1024 <= NL_EVENT_MAX,
               "NL_EVENT does not check the event size, so the largest event must fit");

/* The maximum number of fields of a site: the program's fields, PARENT.ID, TRACE.ID, SPAN.ID and STATUS. */
enum { NL_SITE_FIELDS_MAX = NL_FIELDS_MAX + 4 };

/* The numbers of special events. The numbers of sites begin with NL_SITE_FIRST. */
enum {
    NL_SITE_RECORD = 1,  /* a whole record with names (payload.h) */
    NL_SITE_LOST = 2,    /* nl_lost_event: events were lost here */
    NL_SITE_IN_SPAN = 3, /* nl_span_ids, followed by the header and the values of an event */
    NL_SITE_FIRST = 4,
};

/* Follows the header of an NL_SITE_IN_SPAN event. */
typedef struct nl_span_ids {
    unsigned char trace_id[16];
    unsigned char span_id[8];
} nl_span_ids;

/* Follows the header of an NL_SITE_LOST event. */
typedef struct nl_lost_event {
    uint64_t full; /* number of events dropped because the ring was full, the event was too large, or memory ran out */
    uint64_t refused;    /* number of events of signal handlers that interrupted another event */
    uint64_t from_ticks; /* time of the first lost event */
    uint64_t to_ticks;   /* time of the last lost event */
} nl_lost_event;

typedef struct nl_shared_head {
    char magic[8];
    uint32_t version;
    int32_t process; /* process ID */
} nl_shared_head;

typedef struct nl_shared_sites {
    nl_shared_head head;
    _Alignas(NL_CACHE_LINE) uint64_t published; /* number of bytes after the header that contain complete sites */
} nl_shared_sites;

/*
 * A site: this struct, the event's name, then for each field a type byte and the name. Each text is a uint16_t size and
 * its bytes.
 */
typedef struct nl_shared_site {
    uint32_t size; /* bytes, including this struct */
    uint32_t id;
    uint16_t level;
    uint16_t field_count;
} nl_shared_site;

/* A reading of both clocks. */
typedef struct nl_clock_point {
    uint64_t ticks;
    int64_t time_ns;
} nl_clock_point;

typedef struct nl_shared_log {
    nl_shared_head head;
    uint32_t number;
    uint32_t format; /* nl_format */
    int32_t zstd_level;
    uint32_t slow_clock; /* nonzero: ticks are nanoseconds of the monotonic clock */
    char url[1024];
    char prog[256];
    char host[256];
    nl_clock_point clock[2]; /* two points that determine the latest rate (nl_clock_save) */
    uint64_t file_offset; /* size of the destination file before the batch was written; UINT64_MAX if the batch has not
                             been written yet, or the destination is not a file */
    _Alignas(NL_CACHE_LINE) uint64_t batch_size; /* bytes */
    uint64_t batch_records; /* number of records in the batch, including records that the destination has accepted,
                               until the batch is moved */
    uint64_t batch_start;   /* number of bytes of the batch that the destination or the spool has accepted; less than
                               batch_size, unless the batch is empty or is being moved to offset 0 */
    uint64_t next_size;     /* batch_size after the latest commit */
    uint64_t next_records;  /* batch_records after the latest commit */
    uint64_t commit;        /* number of commits */
    uint64_t applied;       /* number of commits whose stores are complete */
} nl_shared_log;

/* The top bit of tail. While this bit is set, the reader is active, and the producer must not move tail. */
#define NL_TAIL_PINNED (UINT64_C(1) << 63)

typedef struct nl_shared_ring {
    nl_shared_head head;
    uint64_t size; /* size of the data in bytes, a power of two */
    unsigned char stream[NL_STREAM_ID_SIZE];
    uint32_t log;                               /* number of the log */
    uint32_t thread;                            /* ID of the thread */
    _Alignas(NL_CACHE_LINE) uint64_t published; /* position after the last complete event */
    uint32_t thread_gone;                       /* 1: the thread has ended */
    nl_lost_event lost;                         /* lost events whose report is not in the ring yet */
    _Alignas(NL_CACHE_LINE) uint64_t tail;      /* position of the next event to read */
    uint64_t sequence;      /* sequence number of the event at tail; a report of N losses advances it by N + 1 */
    uint64_t next_tail;     /* tail after the commit next_commit */
    uint64_t next_sequence; /* sequence after the commit next_commit */
    uint64_t next_commit;   /* the value of nl_shared_log.commit for this commit */
} nl_shared_ring;

_Static_assert(sizeof(nl_shared_ring) <= NL_SHARED_HEADER, "a ring's header fits into its page");
_Static_assert(sizeof(nl_shared_log) <= NL_SHARED_HEADER, "a log's header fits into its page");

#endif
