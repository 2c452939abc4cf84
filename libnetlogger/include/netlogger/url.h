/* clang-format off */
/*
 * Names of sources and destinations.
 *
 *   -                            standard input, or standard output
 *   /tmp/a.log  a.log            a file (anything without a scheme)
 *   file:///tmp/a.log            the same; file:a.log is relative; %20 and its like are decoded
 *   x-netlog://HOST[:PORT]       a collector over TCP, port 14830 unless said; [::1] for IPv6
 *   x-netlogs://HOST[:PORT]      the same within TLS 1.2 or later; the options ca=FILE (who may vouch for the
 *                                collector; the system's authorities unless said), cert=FILE and key=FILE (the
 *                                client's own) and name=HOST (whom the collector's certificate must be for, unless
 *                                HOST) belong to it
 *   x-netlog+udp://HOST[:PORT]   UDP, where netlogd listens; udp: for short
 *   unix:/run/netlogd.sock       a collector over a Unix stream socket
 *   nats://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]...]/STREAM
 *                                streams of NATS JetStream, by netlogd only; host is what stands before the slash
 *                                without USER and PASSWORD, which become the options user and password
 *   inherited:NAME               a socket that was handed to netlogd under that name (systemd's FileDescriptorName=)
 *   x-syslog://[FACILITY]        syslog(3): user, daemon, local0 ...; user unless said
 *   memory:NAME                  memory of this process, shared by all who use NAME
 *
 * Options follow as ?name=value&name=value (behind a bare file name not: "a?b" is a file, and what looks
 * like options, "a?b=c", must be one that is there, lest a file of that name be made; file:a?b=c is meant). Each
 * user of a URL says which options it knows; an unknown one is an error, never ignored.
 */
/* clang-format on */
#ifndef NETLOGGER_URL_H
#define NETLOGGER_URL_H
#ifndef NL_INSIDE_UMBRELLA
#error "include <netlogger.h>, not its parts"
#endif

NL_BEGIN_DECLS

#define NL_DEFAULT_PORT 14830

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
NL_API nl_url *nl_url_parse(const char *text);
NL_API void nl_url_free(nl_url *url);

/* The value of an option, NULL when it was not given; belongs to url. */
NL_API const char *nl_url_option_value(const nl_url *url, const char *name);

NL_END_DECLS
#endif
