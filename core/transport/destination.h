/*
 * Where bytes go: a file, standard output, a collector over TCP, plain or TLS, or a Unix socket, syslog, memory. A
 * destination takes whole records only, and never leaves part of one behind where it can help it.
 *
 * The library lives in other people's programs: no destination raises SIGPIPE, prints, or waits longer than its
 * timeout, but while a host's name is looked up (dial.h). One thread at a time; the writer that owns a destination sees
 * to that.
 */
#ifndef NETLOGGER_TRANSPORT_DESTINATION_H
#define NETLOGGER_TRANSPORT_DESTINATION_H

#include <netlogger.h>

#include "transport/url.h"

typedef struct nl_destination nl_destination;

typedef struct nl_destination_options {
    bool truncate;    /* files: start anew */
    bool atomic;      /* files: write aside, take the name at close */
    int timeout_ms;   /* bound on connecting, on a send that blocks, and on waiting for a pipe's reader; 0: 10 s */
    bool patient;     /* pipes and terminals: they are waited for as long as it takes */
    bool now;         /* pipes: one that nobody has open to read is not waited for */
    nl_format format; /* of what will be written: where records end */
    void (*on_control)(void *user, const char *commands, size_t size); /* collectors: what one asks for; may be NULL */
    void *user;
    const char *ident; /* syslog: the program's name; NULL for its own */
} nl_destination_options;

/* Opens what url names. NULL with the reason in nl_error_message(). Of the options in the URL only those of TLS
 * are looked at here. */
nl_destination *nl_destination_open(const nl_url *url, const nl_destination_options *options);

/*
 * Writes data[0..size), which is whole records (lines with their newline, or blocks). *written says how much of it need
 * not be written again, always whole records: all of it on NL_OK. level is of the most urgent of them, for syslog.
 */
nl_status nl_destination_write(nl_destination *destination, nl_level level, const char *data, size_t size,
                               size_t *written);

/* The size of the file in bytes, when it is a plain one; -1 for anything else. */
int64_t nl_destination_size(nl_destination *destination);

/* Hears what the other side has to say, when nothing is written for a while. */
void nl_destination_poll(nl_destination *destination);

/* How this host's clock and a collector's differ, by one exchange of timestamps. */
typedef struct nl_exchange {
    int64_t time_ns;      /* by this clock: the middle of it */
    int64_t monotonic_ns; /* when it ended */
    int64_t offset_ns;    /* the collector's clock minus this one, give or take half of: */
    int64_t delay_ns;     /* what it took there and back; the collector's part is taken off */
    char collector[256];  /* its host's name, as it says it; "" when it does not */
} nl_exchange;

/*
 * Exchanges timestamps with a collector that acknowledges, waiting for its answer, at most half a second. NL_OK; NL_OFF
 * where that cannot be done (files, text, no connection now, or a collector that does not know of it); NL_FAILED with
 * the reason. One that did not answer is not asked again before it has acknowledged what it was sent.
 */
nl_status nl_destination_exchange(nl_destination *destination, nl_exchange *exchange);

/* In the child after fork: lets go of what the parent uses on, without a word to the other side. */
void nl_destination_after_fork(nl_destination *destination);

/* Closes it; keep false throws an atomic file away. */
nl_status nl_destination_close(nl_destination *destination, bool keep);

/* ---- for the kinds of destination ---- */

typedef struct nl_destination_kind {
    nl_status (*write)(nl_destination *destination, nl_level level, const char *data, size_t size, size_t *written);
    int64_t (*size)(nl_destination *destination);                              /* may be NULL */
    void (*poll)(nl_destination *destination);                                 /* may be NULL */
    nl_status (*exchange)(nl_destination *destination, nl_exchange *exchange); /* may be NULL */
    void (*after_fork)(nl_destination *destination);                           /* may be NULL */
    nl_status (*close)(nl_destination *destination, bool keep);                /* frees it */
} nl_destination_kind;

/* Every kind's own structure begins with this. */
struct nl_destination {
    const nl_destination_kind *kind;
    nl_format format; /* set by nl_destination_open */
    bool at_once;     /* a connection is tried now, however short a time ago one was in vain; set by who writes */
};

/* How much of data, which begins with a record, written up to size, is whole records. */
size_t nl_destination_whole(const nl_destination *destination, const char *data, size_t size);

/* Of encoded records (lines or blocks): how much of data[0..size) is whole ones; and the first one, or all of size. */
size_t nl_records_whole(nl_format format, const char *data, size_t size);
size_t nl_records_first(nl_format format, const char *data, size_t size);

/* Returns the number of records in data[0..size), which holds whole lines or, with the binary format, whole blocks. */
uint64_t nl_records_count(nl_format format, const char *data, size_t size);

nl_destination *nl_file_destination_open(const nl_url *url, const nl_destination_options *options);
nl_destination *nl_socket_destination_open(const nl_url *url, const nl_destination_options *options);
nl_destination *nl_syslog_destination_open(const nl_url *url, const nl_destination_options *options);
nl_destination *nl_memory_destination_open(const nl_url *url);

/* The descriptor of this process that a path names, such as /dev/stderr and /dev/fd/3; -1 when it names none. */
int nl_path_descriptor(const char *path);

/* Appends text to out as it stands in a URL, where some of its bytes would mean something of their own. */
void nl_url_append_escaped(nl_buffer *out, const char *text);

/* Whether what is written there is nobody else's to write to: a stream, a terminal or memory of the one process. */
bool nl_url_is_of_process(const nl_url *url);

#endif
