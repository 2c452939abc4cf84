/*
 * What --output says:
 *
 *   -                          standard output
 *   all.log  file:all.log      one file, appended to
 *   DIR/                       a folder: DIR/netlog-000001.log and so on; .nlb or .bp as the format is
 *   file:DIR/a-{N}.nlb         a folder whose files are called so, {N} being their number
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
 * A TIME is a number and ms, s, m, h or d; s unless said.
 */
#ifndef NETLOGD_OUTPUT_OPTIONS_H
#define NETLOGD_OUTPUT_OPTIONS_H

#include <netlogger.h>

#define OUTPUT_NUMBER "{N}"

typedef enum output_sync { OUTPUT_SYNC_NEVER, OUTPUT_SYNC_FLUSH, OUTPUT_SYNC_TIMED } output_sync;

typedef struct output_options {
    char *path;    /* NULL: standard output; with OUTPUT_NUMBER in its last part: numbered files */
    bool numbered; /* it has */
    nl_format format;
    int zstd_level;       /* 0: not compressed */
    uint64_t rotate_size; /* bytes; 0: at no size */
    int64_t rotate_ns;    /* 0: at no age */
    output_sync sync;
    int64_t sync_ns; /* OUTPUT_SYNC_TIMED: at the latest so long after it was written */
} output_options;

/* Reads text. NL_OK, path to be freed by output_options_free; or NL_FAILED with the reason in failure_text(). */
nl_status output_options_parse(const char *text, output_options *options);
void output_options_free(output_options *options);

#endif
