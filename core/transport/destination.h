/*
 * A destination of bytes, which is a file, standard output, a collector, syslog or memory. A destination gets whole
 * records, and tries not to leave an incomplete record when a write fails.
 *
 * The library runs in other people's programs. Therefore, destinations do not raise SIGPIPE and do not print. They wait
 * no longer than their timeout, except while the resolver looks up a host name (dial.h). The owner ensures that only
 * one thread at a time uses a destination.
 */
#ifndef NETLOGGER_TRANSPORT_DESTINATION_H
#define NETLOGGER_TRANSPORT_DESTINATION_H

#include <netlogger.h>

#include "transport/url.h"

typedef struct nl_destination nl_destination;

enum { NL_DESTINATION_TIMEOUT_MS = 10000 }; /* default of timeout_ms */

typedef struct nl_destination_options {
    bool truncate;      /* for files: truncate instead of appending */
    bool atomic;        /* for files: write to a temporary file, which closing renames to the final name */
    int timeout_ms;     /* maximum time of connecting, of a blocked send, and of waiting for a pipe's reader; 0 means 10
                         * s */
    bool patient;       /* for pipes and terminals: wait without limit */
    bool now;           /* for pipes: fail at once if no process reads the pipe */
    bool connect_later; /* for collectors: if connecting fails, opening still succeeds and sets the error; later writes
                         * connect */
    nl_format format;   /* format of the bytes; the destination needs it to find the ends of records */
    void (*on_control)(void *user, const char *commands, size_t size); /* called for control commands from collectors;
                                                                        * or NULL */
    void *user;
    unsigned *interrupt; /* for collectors: the bits of nl_interrupt, with which another thread ends a write; or NULL */
    const char *ident;   /* for syslog: the program name; NULL selects the name of this program */
} nl_destination_options;

/*
 * Two threads set these bits atomically: the thread that writes records, and another thread that interrupts it. The
 * bits determine which records the destination may still write. If the other thread sets NL_INTERRUPT_WANTED while
 * NL_INTERRUPT_WRITES is not set, the destination writes no more records, and *written of nl_destination_write does not
 * change any more. Otherwise, nl_destination_write soon returns.
 */
typedef enum nl_interrupt {
    NL_INTERRUPT_WANTED = 1, /* set by the other thread: the destination does not connect, and ends waits and writes */
    NL_INTERRUPT_WRITES = 2, /* set by the destination while it may write records */
} nl_interrupt;

/*
 * Opens a URL. Reads only the TLS options of the URL. Returns NULL on failure. nl_destination_close frees the
 * destination.
 */
nl_destination *nl_destination_open(const nl_url *url, const nl_destination_options *options);

/*
 * Writes data[0..size), which must be whole lines or whole blocks. Sets *written to the size of the records that need
 * not be written again, which is size if the call returns NL_OK. `level` is the most urgent level of the records;
 * syslog needs it. Returns NL_OK or NL_FAILED.
 */
nl_status nl_destination_write(nl_destination *destination, nl_level level, const char *data, size_t size,
                               size_t *written);

/* Returns the size of a regular file in bytes, otherwise -1. */
int64_t nl_destination_size(nl_destination *destination);

/* Receives bytes that the collector has sent. Call it while there is nothing to write. */
void nl_destination_poll(nl_destination *destination);

/* The offset between this host's clock and a collector's, measured by one exchange of timestamps. */
typedef struct nl_exchange {
    int64_t time_ns;      /* time in the middle of the exchange, by this host's clock */
    int64_t monotonic_ns; /* time at the end of the exchange, by the monotonic clock */
    int64_t offset_ns;    /* collector's clock minus this host's; the error is at most half of delay_ns */
    int64_t delay_ns;     /* round-trip time, not counting the time in the collector */
    char collector[256];  /* name of the collector's host, or "" */
} nl_exchange;

/*
 * Exchanges timestamps with a collector that acknowledges, and waits at most 0.5 s. Returns NL_OK, NL_FAILED, or NL_OFF
 * if the destination cannot exchange timestamps (files, text, no connection, an old collector). If a time question gets
 * no reply, the function asks again only after the collector has acknowledged everything that was sent before.
 */
nl_status nl_destination_exchange(nl_destination *destination, nl_exchange *exchange);

/* Closes this process's copies in the child after fork, without affecting the parent's connection. */
void nl_destination_after_fork(nl_destination *destination);

/*
 * Protect the list of connections to collectors: call nl_destinations_lock before fork, and nl_destinations_unlock
 * afterwards in the parent and, with `child` set, in the child. The child then closes its copies of all these
 * connections, also of destinations that another thread was opening or closing.
 */
void nl_destinations_lock(void);
void nl_destinations_unlock(bool child);

/* Closes and frees the destination. If keep is false, discards an atomic file. Returns NL_FAILED if closing fails. */
nl_status nl_destination_close(nl_destination *destination, bool keep);

/* ---- for kinds of destinations ---- */

typedef struct nl_destination_kind {
    nl_status (*write)(nl_destination *destination, nl_level level, const char *data, size_t size, size_t *written);
    int64_t (*size)(nl_destination *destination);                              /* or NULL */
    void (*poll)(nl_destination *destination);                                 /* or NULL */
    nl_status (*exchange)(nl_destination *destination, nl_exchange *exchange); /* or NULL */
    void (*after_fork)(nl_destination *destination);                           /* or NULL */
    nl_status (*close)(nl_destination *destination, bool keep);                /* closes and frees the destination */
} nl_destination_kind;

/* The first member of each kind's structure. */
struct nl_destination {
    const nl_destination_kind *kind;
    nl_format format; /* set by nl_destination_open */
};

/* Returns the size in bytes of the whole records in data[0..size), which begins with a record in the destination's
 * format. */
size_t nl_destination_whole(const nl_destination *destination, const char *data, size_t size);

/* Returns the size of the whole records in data[0..size), which begins with a record, in bytes. */
size_t nl_records_whole(nl_format format, const char *data, size_t size);

/* Returns the size in bytes of the first record in data[0..size), or `size` if the record is incomplete. */
size_t nl_records_first(nl_format format, const char *data, size_t size);

/* Returns the number of records in data[0..size): whole lines or whole blocks. */
uint64_t nl_records_count(nl_format format, const char *data, size_t size);

/* Open a destination of one kind. Called only by nl_destination_open. Return NULL on failure. */
nl_destination *nl_file_destination_open(const nl_url *url, const nl_destination_options *options);
nl_destination *nl_socket_destination_open(const nl_url *url, const nl_destination_options *options);
nl_destination *nl_syslog_destination_open(const nl_url *url, const nl_destination_options *options);
nl_destination *nl_memory_destination_open(const nl_url *url);

/* Returns the descriptor of this process that a path such as /dev/stderr or /dev/fd/3 names, or -1. */
int nl_path_descriptor(const char *path);

/* Appends text to `out` and escapes the bytes that have a meaning in URLs. */
void nl_url_append_escaped(nl_buffer *out, const char *text);

/*
 * Returns whether the URL has a different meaning in each process, because it names standard output, a descriptor, the
 * controlling terminal or memory.
 */
bool nl_url_is_of_process(const nl_url *url);

#endif
