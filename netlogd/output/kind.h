/*
 * A kind of output: the destination of the records that an output has collected.
 *
 * Every output writes files. An output of the kind "file" does nothing else. Every other kind has its files in a spool
 * directory, from which a thread (delivery.h) delivers the settled part with the kind's functions. A kind therefore
 * does not deal with clients, filters, acknowledgements or full disks. delivery.c passes the records to the kind in
 * order, and repeats them until the kind accepts them. The functions of a kind may wait.
 *
 * After a kill, the next netlogd may deliver bytes again, with the same place. The destination recognizes these bytes
 * by their place or, if `numbered` is true, by the numbers in blocks.
 */
#ifndef NETLOGD_OUTPUT_KIND_H
#define NETLOGD_OUTPUT_KIND_H

#include <netlogger.h>

#include "transport/url.h"

typedef struct output_options output_options;

/* A position in a spool. It is unique as long as the spool's directory exists. */
typedef struct output_place {
    uint64_t number; /* number of the file */
    uint64_t offset; /* offset in bytes */
} output_place;

/* The result of a delivery. The caller sets all members to 0. */
typedef struct output_delivered {
    size_t taken;      /* number of bytes of whole records that need not be delivered again, even on NL_FAILED */
    uint64_t rejected; /* number of records that the destination does not accept */
    char reason[200];  /* the destination's reason for the latest rejection */
    unsigned wait_ms;  /* after NL_FAILED: minimum time before the next attempt */
} output_delivered;

typedef struct output_kind {
    const char *name; /* name for netlogctl status */
    nl_format format; /* default format of the collected records; NL_FORMAT_UNKNOWN: the same default as for files */
    bool numbered;    /* every record must have a stream and a number, so the format must be nlb */
    const nl_url_rows *tables; /* option rows of the URL that the kind itself reads; NULL: no rows */

    /*
     * Checks the URL's own options and the other options. On failure, sets the error and returns NL_FAILED. NULL means
     * that there is nothing to check.
     */
    nl_status (*check)(const nl_url *url, const output_options *options);

    /* Only the delivery's thread calls the following functions. `deliver` is NULL for files. */

    /*
     * Connects, or prepares to connect. On failure, sets the error and returns NULL. After a failure, the thread calls
     * `open` again later.
     */
    void *(*open)(const output_options *options);

    /*
     * Delivers data[0..size), which begins with a record; the last record may be incomplete. If `deliver` returns NL_OK
     * and done->taken is 0, the first record is incomplete, and the thread calls `deliver` again with more bytes.
     * `deliver` should return within a few seconds. After a slow call, the next call gets fewer bytes. After NL_FAILED,
     * the thread closes the connection and later opens it again.
     */
    nl_status (*deliver)(void *peer, const char *data, size_t size, output_place place, output_delivered *done);

    void (*close)(void *peer);
} output_kind;

extern const output_kind output_kind_file;
extern const output_kind output_kind_forward;
extern const output_kind output_kind_syslog;
extern const output_kind output_kind_nats;
extern const output_kind output_kind_otlp;

#endif
