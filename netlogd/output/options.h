/*
 * The options of an output, parsed from the URL in --output:
 * - "-": standard output
 * - all.log or file:all.log: one file, to which netlogd appends
 * - DIR/: a directory with DIR/netlog-000001.log and so on; the suffix depends on the format
 * - file:DIR/a-{N}.nlb: a directory with files whose names have this pattern; {N} is the file's number
 * - x-netlog://HOST:PORT, x-netlogs://HOST:PORT or unix:PATH: another collector (output_kind_forward)
 * - x-syslog://FACILITY: syslog (output_kind_syslog)
 * - nats://HOST:PORT/STREAM: NATS JetStream (output_kind_nats, nats/place.h)
 * - otlp://HOST:PORT or otlp+http://HOST:PORT: a receiver of OTLP (output_kind_otlp)
 *
 * Options follow a URL: file:PATH?name=value&name=value. The option rows are output_rows, output_file_rows for files,
 * output_spool_rows for all other outputs, and the kind's own rows (kind.h). This module has no state.
 */
#ifndef NETLOGD_OUTPUT_OPTIONS_H
#define NETLOGD_OUTPUT_OPTIONS_H

#include "kind.h"

#include <netlogger.h>

#define OUTPUT_NUMBER "{N}"

/* Values of sync_ns that are not durations. */
enum { OUTPUT_SYNC_NEVER = -1, OUTPUT_SYNC_FLUSH = -2 };

struct output_options {
    const output_kind *kind;
    nl_url *url;
    char *target;      /* the URL without options; it is used in messages, and is unique for each output */
    char *path;        /* NULL: standard output; if the last part contains OUTPUT_NUMBER, files are numbered */
    char *spool;       /* directory of `path`; NULL: no spool */
    bool numbered;     /* files are numbered */
    nl_filter *filter; /* NULL: all records */
    nl_format format;
    int zstd_level;       /* 0: not compressed */
    uint64_t rotate_size; /* bytes; 0: no limit */
    int64_t rotate_ns;    /* 0: no limit */
    int64_t keep_ns;      /* age at which old files are deleted; 0: never */
    uint64_t keep_size;   /* bytes that all files may have before old files are deleted; 0: no limit */
    struct request_filter
        *keep_where;           /* requests whose records are kept when old files are deleted; NULL: no requests */
    const char *keep_where_id; /* fields that identify a request; `url` owns the text; NULL: inferred */
    int64_t keep_where_ns;     /* age at which kept files are deleted; 0: never */
    uint64_t keep_where_size;  /* bytes of all kept files; 0: no limit */
    char *kept_path;           /* pattern of the names of the kept files; NULL if keep_where is NULL */
    uint64_t spool_size;       /* bytes */
    const char *spool_root;    /* as given in the URL; NULL: not given */
    int64_t sync_ns;           /* maximum time from a flush to syncing, or OUTPUT_SYNC_... */
    const char *seal_key;      /* path of the key file; `url` owns the text; NULL: files are not sealed */
    const char
        *index;      /* fields of the value index, separated by commas, or "none"; `url` owns the text; NULL: default */
    int64_t seal_ns; /* maximum time from writing a byte to sealing it */
};

extern const nl_option output_rows[], output_file_rows[], output_spool_rows[];

/* Parses a URL. Free the result with output_options_free. On failure, sets the error and returns NL_FAILED. */
nl_status output_options_parse(const char *text, output_options *options);
void output_options_free(output_options *options);

/*
 * Returns options whose files are the kept files, with only the members path, numbered, keep_ns and keep_size.
 * `options` must have keep_where, and owns the path.
 */
output_options output_options_of_kept(const output_options *options);

/* Returns whether two outputs have the same file, or the same destination and spool. */
bool output_options_same_target(const output_options *a, const output_options *b);

#endif
