/* clang-format off */
/*
 * What lies in shared memory, so that events outlive the process that logged them.
 *
 * A process has a folder, /dev/shm/netlogger-UID-PID-RANDOM, which only its user may enter:
 *
 *   lock        empty; locked (fcntl) as long as the process lives
 *   sites       nl_shared_sites: every NL_EVENT that was reached, with its names and types
 *   log-N       nl_shared_log: where a log goes, its clock, and the batch of encoded records on their way out
 *   ring-N-M    nl_shared_ring: the events of one thread in log N that are not in a batch yet
 *
 * A killed process leaves whatever its last store was. Hence the order of stores is the protocol:
 *
 *   - a producer copies an event, then stores nl_shared_ring.published: only complete events lie before it;
 *   - the writer thread encodes events at the end of the batch, notes in each ring where it has come to (next_tail)
 *     and in the log how long the batch is then (next_size), then stores nl_shared_log.commit: from there on the events
 *     are the batch's. Then it makes both true (tail, batch_size) and stores applied. Who finds commit and applied
 *     unequal finishes that;
 *   - before the batch is written to a file the file's size is noted, so that after a crash one can look whether it is
 *     there.
 *
 * All of one machine, in its own byte order, and of one version: NL_SHARED_VERSION.
 */
/* clang-format on */
#ifndef NETLOGGER_LOG_SHARED_H
#define NETLOGGER_LOG_SHARED_H

#include <netlogger.h>

#define NL_SHARED_MAGIC "NLSHARED"
#define NL_SHARED_VERSION 1
#define NL_CACHE_LINE 64

enum {
    NL_SHARED_HEADER = 4096,         /* bytes before a ring's data, the batch, the sites */
    NL_SHARED_SITES_SIZE = 64 << 20, /* of address space; pages are taken as they are needed */
    NL_SHARED_BATCH_SIZE = 4 << 20,  /* likewise */
    NL_STREAM_ID_SIZE = 16,
};

/*
 * The largest event. As text it takes four times as much, and the batch that it comes into, which may hold some
 * already, must have room for that: otherwise it would stand in the way of all that follows for ever.
 */
enum { NL_EVENT_MAX = 960 << 10 };
_Static_assert(4 * NL_EVENT_MAX + (256 << 10) <= NL_SHARED_BATCH_SIZE, "a batch has room for any event");
_Static_assert(NL_FIELDS_MAX *NL_VALUE_SIZE_MAX + 1024 <= NL_EVENT_MAX, "no NL_EVENT is larger: it does not ask");

/* The sites of events that are no NL_EVENT's. */
enum {
    NL_SITE_RECORD = 1, /* a whole record, names and all: nl_write, nl_write_record */
    NL_SITE_LOST = 2,   /* nl_lost_event: events were lost here */
    NL_SITE_FIRST = 3,
};

/* What follows the header of an NL_SITE_LOST event. */
typedef struct nl_lost_event {
    uint64_t full;    /* events dropped because the ring was full, or they were too large for it */
    uint64_t refused; /* events that came from signal handlers in the middle of another */
    uint64_t from_ticks;
    uint64_t to_ticks;
} nl_lost_event;

typedef struct nl_shared_head {
    char magic[8];
    uint32_t version;
    int32_t process;
} nl_shared_head;

typedef struct nl_shared_sites {
    nl_shared_head head;
    _Alignas(NL_CACHE_LINE) uint64_t published; /* bytes of sites behind the header, whole ones */
} nl_shared_sites;

/* A site: this, then its event's name, then of each field a byte of type, the name; every text is uint16_t size and
 * bytes. */
typedef struct nl_shared_site {
    uint32_t size; /* bytes, these included */
    uint32_t id;
    uint16_t level;
    uint16_t field_count;
} nl_shared_site;

/* A reading of both clocks, and the rate between them. */
typedef struct nl_clock_point {
    uint64_t ticks;
    int64_t time_ns;
} nl_clock_point;

typedef struct nl_shared_log {
    nl_shared_head head;
    uint32_t number;
    uint32_t format; /* nl_format */
    int32_t zstd_level;
    uint32_t slow_clock; /* ticks are nanoseconds of the monotonic clock */
    char url[1024];
    char prog[256];
    char host[256];
    nl_clock_point clock[2]; /* the latest two readings that are far enough apart to tell the rate */
    uint64_t file_offset;    /* size of the destination file before the batch was written; UINT64_MAX: it is no file */
    _Alignas(NL_CACHE_LINE) uint64_t batch_size;
    uint64_t batch_records;
    uint64_t batch_start; /* bytes of it that the destination has taken */
    uint64_t next_size;
    uint64_t next_records;
    uint64_t commit;
    uint64_t applied;
} nl_shared_log;

/* The top bit of tail: the reader is at work, the producer must not move it. */
#define NL_TAIL_PINNED (UINT64_C(1) << 63)

typedef struct nl_shared_ring {
    nl_shared_head head;
    uint64_t size; /* bytes of data, a power of two */
    unsigned char stream[NL_STREAM_ID_SIZE];
    uint32_t log; /* its number */
    uint32_t thread;
    _Alignas(NL_CACHE_LINE) uint64_t published; /* by the producer */
    uint32_t thread_gone;
    nl_lost_event lost;                    /* not in the ring yet, because there was no room */
    _Alignas(NL_CACHE_LINE) uint64_t tail; /* by the reader; with drop oldest by the producer too */
    uint64_t sequence;                     /* of the event at tail; lost ones count where they are reported */
    uint64_t next_tail;
    uint64_t next_sequence;
    uint64_t next_commit; /* nl_shared_log.commit that next_tail belongs to */
} nl_shared_ring;

_Static_assert(sizeof(nl_shared_ring) <= NL_SHARED_HEADER, "a ring's header fits its page");
_Static_assert(sizeof(nl_shared_log) <= NL_SHARED_HEADER, "a log's header fits its page");

#endif
