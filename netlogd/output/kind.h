/*
 * A kind of output: the destination of the records that an output has collected.
 *
 * Every output writes files. An output of the kind "file" does nothing else. Every other kind has its files in a spool
 * directory, from which a thread (delivery.h) delivers the settled part with the kind's functions. A kind therefore
 * does not deal with clients, filters, acknowledgements or full disks. It gets whole records, in order, and gets them
 * again until it has accepted them. It may wait.
 *
 * If netlogd is killed, bytes that were delivered may be delivered again, with the same place. The destination
 * recognises them by the numbers in blocks (numbered is set) or by their place.
 */
#ifndef NETLOGD_OUTPUT_KIND_H
#define NETLOGD_OUTPUT_KIND_H

#include <netlogger.h>

#include "transport/url.h"

typedef struct output_options output_options;

/* A position in the spool, unique as long as the spool's directory exists. */
typedef struct output_place {
    uint64_t number; /* of the file */
    uint64_t offset; /* bytes */
} output_place;

typedef struct output_kind {
    const char *name;          /* for netlogctl status */
    nl_format format;          /* of the collected records, unless format= is given; NL_FORMAT_UNKNOWN: as for files */
    bool numbered;             /* every record needs a stream and a number, and so the format nlb */
    const nl_url_rows *tables; /* options of the URL that the kind reads itself; NULL: none */

    /*
     * Checks the URL's own options and the other options. Returns NL_FAILED after setting the error. NULL: no checks.
     */
    nl_status (*check)(const nl_url *url, const output_options *options);

    /* Only the delivery's thread calls the following functions. deliver is NULL for files. */

    /* Connects, or prepares to connect. Returns NULL after setting the error; then it is called again later. */
    void *(*open)(const output_options *options);

    /*
     * Delivers data[0..size), which begins with a record; the last record may be incomplete. *taken (0 at the call)
     * becomes the number of bytes of whole records that need not be delivered again, also on NL_FAILED. NL_OK with
     * *taken 0: the first record is incomplete; deliver is called again with more bytes. It waits for a few seconds at
     * most; if this is too short, it gets fewer bytes the next time. After NL_FAILED the peer is closed, and opened
     * again later.
     */
    nl_status (*deliver)(void *peer, const char *data, size_t size, output_place place, size_t *taken);

    void (*close)(void *peer);
} output_kind;

extern const output_kind output_kind_file;
extern const output_kind output_kind_forward;
extern const output_kind output_kind_syslog;
extern const output_kind output_kind_nats;

/* Returns the kind for a scheme, or NULL. */
const output_kind *output_kind_of(nl_scheme scheme);

#endif
