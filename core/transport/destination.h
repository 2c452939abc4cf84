/*
 * Destinations of bytes: a file, standard output, a collector, syslog or memory. A destination gets whole records and
 * avoids leaving part of a record behind.
 *
 * The library runs in programs of others, so destinations do not raise SIGPIPE, do not print, and wait no longer than
 * their timeout, except while the resolver looks up a host name (dial.h). The owner ensures that only one thread at a
 * time uses a destination.
 */
#ifndef NETLOGGER_TRANSPORT_DESTINATION_H
#define NETLOGGER_TRANSPORT_DESTINATION_H

#include <netlogger.h>

#include "transport/url.h"

typedef struct nl_destination nl_destination;

typedef struct nl_destination_options {
    bool truncate;      /* files: truncate */
    bool atomic;        /* files: write to a temporary file, which close renames */
    int timeout_ms;     /* maximum time of connecting, of a blocked send, and of waiting for a pipe's reader; 0: 10 s */
    bool patient;       /* pipes and terminals: wait without limit */
    bool now;           /* pipes: fail at once if no process reads the pipe */
    bool connect_later; /* collectors: opening succeeds without a connection and sets the error; writes connect */
    nl_format format;   /* of the bytes, to find where records end */
    void (*on_control)(void *user, const char *commands, size_t size); /* from collectors; or NULL */
    void *user;
    const char *ident; /* syslog: the program's name; NULL: its own */
} nl_destination_options;

/* Opens a URL. Reads only the TLS options of the URL. Returns NULL on failure. */
nl_destination *nl_destination_open(const nl_url *url, const nl_destination_options *options);

/*
 * Writes data[0..size): whole lines or whole blocks. Sets *written to the size of whole records that need not be
 * written again; on NL_OK that is all. level is the most urgent of the records' levels, for syslog.
 */
nl_status nl_destination_write(nl_destination *destination, nl_level level, const char *data, size_t size,
                               size_t *written);

/* Returns the size of a regular file in bytes, otherwise -1. */
int64_t nl_destination_size(nl_destination *destination);

/* Receives bytes that the collector has sent. For times when nothing is written. */
void nl_destination_poll(nl_destination *destination);

/* The offset between this host's clock and a collector's, measured by one exchange of timestamps. */
typedef struct nl_exchange {
    int64_t time_ns;      /* by this host's clock, in the middle of the exchange */
    int64_t monotonic_ns; /* at the end of the exchange */
    int64_t offset_ns;    /* collector's clock minus this host's; the error is at most half of delay_ns */
    int64_t delay_ns;     /* round-trip time, not counting the time in the collector */
    char collector[256];  /* name of the collector's host, or "" */
} nl_exchange;

/*
 * Exchanges timestamps with a collector that acknowledges, and waits at most half a second. Returns NL_OK; NL_OFF if
 * the destination does not support this (files, text, no connection, an old collector); NL_FAILED on failure. After a
 * question without a reply, asks again only after the collector has acknowledged everything sent before.
 */
nl_status nl_destination_exchange(nl_destination *destination, nl_exchange *exchange);

/* Closes this process's copies in the child after fork, without affecting the parent's connection. */
void nl_destination_after_fork(nl_destination *destination);

/* Closes the destination. If keep is false, discards an atomic file. */
nl_status nl_destination_close(nl_destination *destination, bool keep);

/* ---- for kinds of destinations ---- */

typedef struct nl_destination_kind {
    nl_status (*write)(nl_destination *destination, nl_level level, const char *data, size_t size, size_t *written);
    int64_t (*size)(nl_destination *destination);                              /* or NULL */
    void (*poll)(nl_destination *destination);                                 /* or NULL */
    nl_status (*exchange)(nl_destination *destination, nl_exchange *exchange); /* or NULL */
    void (*after_fork)(nl_destination *destination);                           /* or NULL */
    nl_status (*close)(nl_destination *destination, bool keep);                /* also frees the destination */
} nl_destination_kind;

/* The first member of each kind's struct. */
struct nl_destination {
    const nl_destination_kind *kind;
    nl_format format; /* set by nl_destination_open */
};

/* Returns the size of the whole records in data[0..size), which begins with a record. */
size_t nl_destination_whole(const nl_destination *destination, const char *data, size_t size);

/*
 * Return the size of the whole records in data[0..size), and the size of the first record (or size if it is
 * incomplete).
 */
size_t nl_records_whole(nl_format format, const char *data, size_t size);
size_t nl_records_first(nl_format format, const char *data, size_t size);

/* Returns the number of records in data[0..size): whole lines or whole blocks. */
uint64_t nl_records_count(nl_format format, const char *data, size_t size);

nl_destination *nl_file_destination_open(const nl_url *url, const nl_destination_options *options);
nl_destination *nl_socket_destination_open(const nl_url *url, const nl_destination_options *options);
nl_destination *nl_syslog_destination_open(const nl_url *url, const nl_destination_options *options);
nl_destination *nl_memory_destination_open(const nl_url *url);

/* Returns the descriptor of this process that a path such as /dev/stderr or /dev/fd/3 names, or -1. */
int nl_path_descriptor(const char *path);

/* Appends text to out and escapes the bytes that have a meaning in URLs. */
void nl_url_append_escaped(nl_buffer *out, const char *text);

/* Returns whether only this process can write to the URL: standard output, a terminal or memory. */
bool nl_url_is_of_process(const nl_url *url);

#endif
