#include "config.h"

#include "transport/peer.h"

#include <stdbool.h>
#include <string.h>

#define CHECK "; check host and port"

const char nl_peer_closed[] =
    "the peer closed the connection without a reply; perhaps it is not netlogd, does not allow this host, or "
    "requires TLS (x-netlogs://)";
const char nl_peer_control[] =
    "this is netlogd's control socket, which accepts no events; use one of netlogd's --listen URLs";
const char nl_peer_silent[] = "no reply; check that the peer is netlogd, and that netlogd can write its output";

static bool begins(const char *data, size_t size, const char *start)
{
    return size >= strlen(start) && memcmp(data, start, strlen(start)) == 0;
}

/* Returns a message about a peer that sends text of another protocol; NULL for other data. */
static const char *problem_of_text(const char *data, size_t size)
{
    static const struct {
        const char *start, *problem;
    } peers[] = {
        {"HTTP/", "the peer is an HTTP server, not netlogd" CHECK},
        {"<", "the peer is an HTTP server, not netlogd" CHECK},
        {"SSH-", "the peer is an SSH server, not netlogd" CHECK},
        {"220", "the peer is a mail or FTP server, not netlogd" CHECK},
        {"NLB1", "the peer is not netlogd, but a service that echoes its input" CHECK},
        {"NETLOGGER/1", "the peer is not netlogd, but a service that echoes its input" CHECK},
    };
    for (size_t i = 0; i < sizeof peers / sizeof peers[0]; i++)
        if (begins(data, size, peers[i].start))
            return peers[i].problem;
    return NULL;
}

const char *nl_peer_problem(const char *data, size_t size)
{
    const char *problem = problem_of_text(data, size);
    if (problem != NULL)
        return problem;
    if (begins(data, size, "\x15\x03") || begins(data, size, "\x16\x03"))
        return "the port requires TLS; use x-netlogs:// in the URL";
    /* The frames and text replies that netlogd sends. */
    static const char *const own[] = {"NLA1", "NLC1", "NLT1", "DATE="};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (memcmp(data, own[i], size < 4 ? size : 4) == 0)
            return NULL;
    return "the peer is not netlogd" CHECK;
}

const char *nl_peer_problem_of_tls(const char *data, size_t size)
{
    if (begins(data, size, "HTTP/") || begins(data, size, "<"))
        return "the peer is an HTTP server without TLS; check the scheme, host and port";
    const char *problem = problem_of_text(data, size);
    if (problem != NULL || !begins(data, size, "\x15\x03"))
        return problem;
    const bool plain = size >= 7 && (unsigned char)data[6] == NL_PEER_ALERT_PLAIN;
    return plain ? "the port does not use TLS; use x-netlog:// in the URL, or a port of netlogd's x-netlogs listeners"
                 : NULL;
}
