/* The URLs of netlogger/url.h, parsed. */
#ifndef NETLOGGER_TRANSPORT_URL_H
#define NETLOGGER_TRANSPORT_URL_H

#include "base/option.h"

typedef enum nl_scheme {
    NL_SCHEME_STDIO, /* "-" */
    NL_SCHEME_FILE,
    NL_SCHEME_NETLOG,
    NL_SCHEME_UNIX,
    NL_SCHEME_SYSLOG,
    NL_SCHEME_MEMORY,
    NL_SCHEME_NETLOGS,
    NL_SCHEME_UDP,
    NL_SCHEME_INHERITED,
    NL_SCHEME_NATS,
} nl_scheme;

typedef struct nl_url_option {
    char *name;
    char *value;
} nl_url_option;

typedef struct nl_url {
    nl_scheme scheme;
    char *text; /* as it was given, for messages */
    char *host; /* a collector's name or address without brackets; the servers of NATS; NULL otherwise */
    uint16_t port;
    char *path; /* file, socket, memory's, socket's or stream's name or syslog facility; NULL where there is none */
    nl_url_option *options;
    size_t option_count;
} nl_url;

/*
 * Parses text; to be freed with nl_url_free (NULL is allowed). NULL with the reason in nl_error_message() when it is no
 * URL of ours. These calls are thread-safe for URLs that no other thread frees meanwhile; not for signal handlers.
 */
nl_url *nl_url_parse(const char *text);
void nl_url_free(nl_url *url);

/* The value of an option, NULL when it was not given; belongs to url. */
const char *nl_url_option_value(const nl_url *url, const char *name);

/* What precedes the colon: "x-netlog"; "-" for standard input and output. Static storage. */
const char *nl_scheme_name(nl_scheme scheme);

/* Rows of options that a URL may have, and the settings that they set; NULL: other code reads their values. */
typedef struct nl_url_rows {
    const nl_option *rows; /* NULL ends an array of tables */
    void *settings;
} nl_url_rows;

/*
 * Sets every option of the URL by the rows of the tables that are valid in URLs and for its scheme (nl_option's
 * commands). NL_FAILED with the reason in nl_error_message() when an option is unknown or its value is invalid.
 */
nl_status nl_url_read_options(const nl_url *url, const nl_url_rows tables[]);

/* As nl_url_read_options with one table, ignoring options that the rows do not have. */
nl_status nl_url_pick_options(const nl_url *url, const nl_option *rows, void *settings);

#endif
