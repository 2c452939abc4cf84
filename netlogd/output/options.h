/*
 * What --output says:
 *
 *   -                          standard output
 *   all.log  file:all.log      one file, appended to
 *   DIR/                       a folder: DIR/netlog-000001.log and so on; .nlb or .bp as the format is
 *   file:DIR/a-{N}.nlb         a folder whose files are called so, {N} being their number
 *   x-netlog://HOST:PORT       another collector (x-netlogs:// within TLS, unix:PATH): output_kind_forward
 *   x-syslog://FACILITY        syslog: output_kind_syslog
 *   nats://HOST:PORT/STREAM    NATS JetStream: output_kind_nats (nats/place.h)
 *
 * Options follow a URL, file:PATH?name=value&name=value:
 *
 *   format=ulm|bp|nlb          nlb where the name ends in .nlb, else ulm
 *   zstd=LEVEL                 0 to 19; 1 for nlb unless said. Text is compressed only when this is said, every flush a
 *                              frame of its own, so that a file that is cut loses the last one only
 *   rotate_size=SIZE           numbered files: begin another when one has that size (256m unless said)
 *   rotate_time=TIME           or was begun so long ago; looked at when something is to be written
 *   fsync=never|flush|TIME     when what was written is made safe against a crash of the machine: never by us; at each
 *                              flush; or so long after it at the latest. Clients' blocks are acknowledged when they are
 *                              written, and as safe as this says
 *
 *   seal=FILE                  numbered files: seal them with the key in FILE (seal.h)
 *   seal_time=TIME             so long after the first byte that is not sealed, at the latest (15m unless said)
 *
 *   where=EXPRESSION           only records that it is true of (filter.h). A & in it is written %26 (or the word
 * "and"), a # in a configuration file %23
 *
 * What goes elsewhere than into files has its files in a spool (kind.h), for which all that is said above but the
 * rotate_ ones holds, and
 *
 *   spool=FOLDER               where it is: FOLDER/WHITHER.FORMAT/, made if need be. Required. Neither may belong to
 *                              another user, or be writable by other users
 *   spool_size=SIZE            bytes that may wait there (1g unless said); when it is full, clients wait
 *
 * A TIME is a number and us, ms, s, m, h or d; s unless said.
 */
#ifndef NETLOGD_OUTPUT_OPTIONS_H
#define NETLOGD_OUTPUT_OPTIONS_H

#include "kind.h"

#include <netlogger.h>

#define OUTPUT_NUMBER "{N}"

typedef enum output_sync { OUTPUT_SYNC_NEVER, OUTPUT_SYNC_FLUSH, OUTPUT_SYNC_TIMED } output_sync;

struct output_options {
    const output_kind *kind;
    nl_url *url;
    char *target;      /* for messages, and what tells one output from another: the URL without its options */
    char *path;        /* NULL: standard output; with OUTPUT_NUMBER in its last part: numbered files */
    char *spool;       /* the folder that path is in, and the one that that is in; NULL: none */
    bool numbered;     /* files are */
    nl_filter *filter; /* NULL: all records are meant */
    nl_format format;
    int zstd_level;       /* 0: not compressed */
    uint64_t rotate_size; /* bytes; 0: at no size */
    int64_t rotate_ns;    /* 0: at no age */
    uint64_t spool_size;  /* bytes */
    output_sync sync;
    const char *seal_key; /* the file of the key, in url; NULL: files are not sealed */
    int64_t seal_ns;      /* from the first byte that is not sealed to the next seal */
    int64_t sync_ns;      /* OUTPUT_SYNC_TIMED: at the latest so long after it was written */
};

/* Reads text. NL_OK, to be freed by output_options_free; or NL_FAILED with the reason in nl_error_message(). */
nl_status output_options_parse(const char *text, output_options *options);
void output_options_free(output_options *options);

/* Whether both mean the same file, or the same place and spool. */
bool output_options_same_target(const output_options *a, const output_options *b);

#endif
