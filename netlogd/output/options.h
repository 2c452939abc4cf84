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
 * Options follow a URL, file:PATH?name=value&name=value. They are rows: output_rows, output_file_rows for files,
 * output_spool_rows for all else, and those of the kind (kind.h).
 */
#ifndef NETLOGD_OUTPUT_OPTIONS_H
#define NETLOGD_OUTPUT_OPTIONS_H

#include "kind.h"

#include <netlogger.h>

#define OUTPUT_NUMBER "{N}"

/* sync_ns, when it is not a duration */
enum { OUTPUT_SYNC_NEVER = -1, OUTPUT_SYNC_FLUSH = -2 };

struct output_options {
    const output_kind *kind;
    nl_url *url;
    char *target;      /* for messages, and what tells one output from another: the URL without its options */
    char *path;        /* NULL: standard output; with OUTPUT_NUMBER in its last part: numbered files */
    char *spool;       /* the folder that path is in, and the one that that is in; NULL: none */
    bool numbered;     /* files are */
    nl_filter *filter; /* NULL: all records are meant */
    nl_format format;
    int zstd_level;         /* 0: not compressed */
    uint64_t rotate_size;   /* bytes; 0: at no size */
    int64_t rotate_ns;      /* 0: at no age */
    uint64_t spool_size;    /* bytes */
    const char *spool_root; /* as the URL has it; NULL: not given */
    int64_t sync_ns;        /* from a flush to syncing at most */
    const char *seal_key;   /* the file of the key, in url; NULL: files are not sealed */
    int64_t seal_ns;        /* from the first byte that is not sealed to the next seal */
};

/* The options of outputs, about an output_options. */
extern const nl_option output_rows[], output_file_rows[], output_spool_rows[];

/* Reads text. NL_OK, to be freed by output_options_free; or NL_FAILED with the reason in failure_text(). */
nl_status output_options_parse(const char *text, output_options *options);
void output_options_free(output_options *options);

/* Whether both mean the same file, or the same place and spool. */
bool output_options_same_target(const output_options *a, const output_options *b);

#endif
