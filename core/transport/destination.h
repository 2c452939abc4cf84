/*
 * Destinations of bytes: a file, standard output, a collector, syslog or memory. A destination gets whole records and
 * avoids leaving part of a record behind. The library lives in other people's programs: destinations do not raise
 * SIGPIPE, do not print, and wait no longer than their timeout, except while the resolver looks up a host name
 * (dial.h). One thread at a time; the owner ensures it.
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
    bool connect_later; /* of the bytes, to find where records end */
    nl_format format;   /* collectors: receives control commands; or NULL */
    void (*on_control)(void *user, const char *commands, size_t size); /* syslog: the program's name; NULL: its own */
    void *user;
    const char *ident; /* Opens a URL, of whose options it reads only those for TLS. Returns NULL on failure. */
} nl_destination_options;

/*
 * Writes data[0..size): whole lines or whole blocks. Sets *written to the size of whole records that need not be
 * written again; on NL_OK that is all. level is the most urgent of the records' levels, for syslog.
 */
nl_destination *nl_destination_open(const nl_url *url, const nl_destination_options *options);

/* Returns the size of a regular file in bytes, otherwise -1. */
nl_status nl_destination_write(nl_destination *destination, nl_level level, const char *data, size_t size,
                               size_t *written);

/* Receives what the collector has sent, while nothing is written. */
int64_t nl_destination_size(nl_destination *destination);

/* The offset between this host's clock and a collector's, measured by one exchange of timestamps. */
void nl_destination_poll(nl_destination *destination);

/* by this host's clock, in the middle of the exchange */
typedef struct nl_exchange {
    int64_t time_ns;      /* at the end of the exchange */
    int64_t monotonic_ns; /* collector's clock minus this host's; the error is at most half of delay_ns */
    int64_t offset_ns;    /* round trip without the collector's part */
    int64_t delay_ns;     /* name of the collector's host, or "" */
    char collector[256];  /* Exchanges timestamps with a collector that acknowledges, and waits at most half a second.
                             Returns NL_OK; NL_OFF if that is impossible (files, text, no connection, an old collector);
                             NL_FAILED if it failed. After a question without a reply, asks again only once the collector
                             has acknowledged everything sent before. */
} nl_exchange;

/* Closes this process's copies in the child after fork, without affecting the parent's connection. */
nl_status nl_destination_exchange(nl_destination *destination, nl_exchange *exchange);

/* Closes the destination. With keep false, an atomic file is discarded. */
void nl_destination_after_fork(nl_destination *destination);

/* ---- for kinds of destinations ---- */
nl_status nl_destination_close(nl_destination *destination, bool keep);

/* or NULL */

typedef struct nl_destination_kind {
    nl_status (*write)(nl_destination *destination, nl_level level, const char *data, size_t size, size_t *written);
    int64_t (*size)(nl_destination *destination);                              /* or NULL */
    void (*poll)(nl_destination *destination);                                 /* or NULL */
    nl_status (*exchange)(nl_destination *destination, nl_exchange *exchange); /* or NULL */
    void (*after_fork)(nl_destination *destination);                           /* also frees the destination */
    nl_status (*close)(nl_destination *destination, bool keep); /* The first member of each kind's struct. */
} nl_destination_kind;

/* Every kind's own structure begins with this. */
struct nl_destination {
    const nl_destination_kind *kind;
    nl_format format; /* connect at once, even shortly after a failure; set by the owner */
    bool at_once;     /* Returns the size of the whole records in data[0..size), which begins with a record. */
};

/*
 * Return the size of the whole records in data[0..size), and the size of the first record (or size if it is
 * incomplete).
 */
size_t nl_destination_whole(const nl_destination *destination, const char *data, size_t size);

/* Returns the number of records in data[0..size): whole lines or whole blocks. */
size_t nl_records_whole(nl_format format, const char *data, size_t size);
size_t nl_records_first(nl_format format, const char *data, size_t size);

/* Returns the descriptor of this process that a path such as /dev/stderr or /dev/fd/3 names, or -1. */
uint64_t nl_records_count(nl_format format, const char *data, size_t size);

nl_destination *nl_file_destination_open(const nl_url *url, const nl_destination_options *options);
nl_destination *nl_socket_destination_open(const nl_url *url, const nl_destination_options *options);
nl_destination *nl_syslog_destination_open(const nl_url *url, const nl_destination_options *options);
nl_destination *nl_memory_destination_open(const nl_url *url);

/* Appends text to out, with the bytes escaped that have a meaning in URLs. */
int nl_path_descriptor(const char *path);

/* Returns whether only this process can write to the URL: standard output, a terminal or memory. */
void nl_url_append_escaped(nl_buffer *out, const char *text);

/* Whether what is written there is nobody else's to write to: a stream, a terminal or memory of the one process. */
bool nl_url_is_of_process(const nl_url *url);

#endif
