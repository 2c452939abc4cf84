/*
 * A kind of output: who is to have what an output has collected.
 *
 * Every output is a row of files first. One of kind "file" is no more than that. Every other kind has its files in a
 * spool folder, where a thread of the output's own (delivery.h) takes what is settled, noted in the journal and never
 * taken back, to where it is to go, by the functions here, and removes files that were delivered. So a kind has
 * nothing to do with clients, filters, acknowledgements or full disks: it gets bytes of whole records, in order, again
 * and again until it has taken them, and may wait.
 *
 * What is delivered and not yet known to be when netlogd is killed is delivered again, the same bytes at the same
 * place: whoever is at the other end knows them by the numbers in blocks (numbered is set then), or by their place.
 */
#ifndef NETLOGD_OUTPUT_KIND_H
#define NETLOGD_OUTPUT_KIND_H

#include <netlogger.h>

#include "transport/url.h"

typedef struct output_options output_options;

/* Where something is in the spool. Never twice the same, as long as the spool's folder is kept. */
typedef struct output_place {
    uint64_t number; /* of the file */
    uint64_t offset; /* bytes */
} output_place;

typedef struct output_kind {
    const char *name; /* for status */
    nl_format format; /* of what is collected, unless format= says another; NL_FORMAT_UNKNOWN: as files have it */
    bool numbered;    /* every record is to have a stream and a number: needs format nlb */
    const nl_url_rows *tables; /* the URL's options that are its own, which it reads itself; NULL: none */

    /* Looks at the URL's own options and at what was settled. NL_FAILED with the reason in nl_error_message(). NULL:
     * all is good. */
    nl_status (*check)(const nl_url *url, const output_options *options);

    /* These three are called by the delivery's thread, and only by it; the reason of a failure is in
     * nl_error_message(), which each thread has its own of. deliver NULL: a file. */

    /* Connects, or only prepares to. NULL: tried again after a while. */
    void *(*open)(const output_options *options);

    /*
     * Delivers data[0..size), which begins with a record; the last may be cut short. *taken (0 at the call) becomes how
     * many bytes, whole records, need not be delivered again: on NL_FAILED too. NL_OK with nothing taken: not even the
     * first record is whole, and it is called again with more. It waits no longer than some seconds:
     * where that is so little time that it fails, it is given less the next time. After NL_FAILED it
     * is closed, and opened anew after a while.
     */
    nl_status (*deliver)(void *peer, const char *data, size_t size, output_place place, size_t *taken);

    void (*close)(void *peer);
} output_kind;

extern const output_kind output_kind_file;
extern const output_kind output_kind_forward;
extern const output_kind output_kind_syslog;
extern const output_kind output_kind_nats;

/* The kind for a scheme; NULL when there is none. */
const output_kind *output_kind_of(nl_scheme scheme);

#endif
