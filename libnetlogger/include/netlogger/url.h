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

/* The TCP and UDP port of a collector whose URL has none. */
#define NL_DEFAULT_PORT 14830

#endif
