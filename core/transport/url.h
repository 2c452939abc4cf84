/* Parsed URLs of sources and destinations (netlogger/url.h). */
#ifndef NETLOGGER_TRANSPORT_URL_H
#define NETLOGGER_TRANSPORT_URL_H

#include "base/option.h"

typedef enum nl_scheme {
    NL_SCHEME_STDIO,
    NL_SCHEME_FILE,
    NL_SCHEME_NETLOG,
    NL_SCHEME_UNIX,
    NL_SCHEME_SYSLOG,
    NL_SCHEME_MEMORY,
    NL_SCHEME_NETLOGS,
    NL_SCHEME_UDP,
    NL_SCHEME_INHERITED,
    NL_SCHEME_NATS,
    NL_SCHEME_OTLP,
    NL_SCHEME_OTLP_HTTP,
    NL_SCHEME_SYSLOG_UDP,
    NL_SCHEME_SYSLOG_TCP,
    NL_SCHEME_SYSLOG_TLS,
} nl_scheme;

typedef struct nl_url_option {
    char *name;
    char *value;
} nl_url_option;

typedef struct nl_url {
    nl_scheme scheme;
    char *text; /* for messages */
    char *host; /* name of a collector, or its address without brackets; list of NATS servers; or NULL */
    uint16_t port;
    char *path; /* path of a file or socket; name of a memory destination, inherited socket, stream or syslog facility;
                   or NULL */
    nl_url_option *options;
    size_t option_count;
} nl_url;

/* The uses of URLs, as bits. */
typedef enum nl_url_use {
    NL_URL_READ = 1,   /* a source of records */
    NL_URL_WRITE = 2,  /* the destination of a log, or of a program's output */
    NL_URL_LISTEN = 4, /* an address where netlogd receives records */
    NL_URL_OUTPUT = 8, /* an output of netlogd */
    NL_URL_ANY = 15,
} nl_url_use;

/*
 * Parses a URL. Text without a scheme is the name of a file. To detect a missing scheme, the function rejects the
 * address of a host (localhost, the name of this host, an IP address, or HOST:PORT) unless a file has this name.
 * Returns NULL and sets the error on failure. The caller frees the URL; freeing NULL has no effect. Any thread may call
 * this function, but a signal handler must not.
 */
nl_url *nl_url_parse(const char *text);

/* Like nl_url_parse. The message about an unknown scheme lists the schemes for this use. */
nl_url *nl_url_parse_for(const char *text, nl_url_use use);

void nl_url_free(nl_url *url);

/* Returns the value of an option, which url owns, or NULL. */
const char *nl_url_option_value(const nl_url *url, const char *name);

/* Returns whether the URL names a collector: x-netlog, x-netlogs or unix. */
bool nl_url_is_collector(const nl_url *url);

/*
 * A table of option rows, and the settings in which to store their values. If settings is NULL, the values are not
 * stored.
 */
typedef struct nl_url_rows {
    const nl_option *rows; /* NULL marks the end of an array of tables */
    void *settings;
} nl_url_rows;

/*
 * Sets all options of a URL. Rows must be valid in URLs and for the URL's scheme (nl_option's commands). Returns
 * NL_FAILED if an option is unknown or invalid.
 */
nl_status nl_url_read_options(const nl_url *url, const nl_url_rows tables[]);

/* Like nl_url_read_options with one table, but ignores options that are not in the table. */
nl_status nl_url_pick_options(const nl_url *url, const nl_option *rows, void *settings);

#endif
