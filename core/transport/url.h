/* The URLs of netlogger/url.h, parsed. */
#ifndef NETLOGGER_TRANSPORT_URL_H
#define NETLOGGER_TRANSPORT_URL_H

#include <netlogger.h>

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

#endif
