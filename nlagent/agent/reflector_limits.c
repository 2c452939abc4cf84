#include "config.h"

#include "agent/reflector_limits.h"

#include <netinet/in.h>
#include <string.h>

/* Copies the address of `from` to `address`, and returns its port in network byte order. */
static uint16_t limits_key(const struct sockaddr *from, unsigned char address[16])
{
    memset(address, 0, 16);
    if (from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)from;
        memcpy(address, &six->sin6_addr, 16);
        return six->sin6_port;
    }
    const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)from;
    memset(address + 10, 0xff, 2);
    memcpy(address + 12, &four->sin_addr, 4);
    return four->sin_port;
}

static bool bucket_take(reflector_bucket *b, double rate, int64_t now_ns)
{
    double packets = b->packets + (double)(now_ns - b->filled_ns) / 1e9 * rate;
    b->packets = packets < rate ? packets : rate;
    b->filled_ns = now_ns;
    if (b->packets < 1)
        return false;
    b->packets--;
    return true;
}

/* Returns the session of an address. A new session replaces a session that has ended. Returns NULL if there is no space
 * for a new session. */
static reflector_session *find_session(reflector_limits *l, const struct sockaddr *from, int64_t now_ns)
{
    unsigned char address[16];
    uint16_t port = limits_key(from, address);
    reflector_session *free_session = NULL;
    for (size_t i = 0; i < REFLECTOR_SESSIONS_MAX; i++) {
        reflector_session *s = &l->sessions[i];
        bool ended = !s->used || now_ns - s->heard_ns >= REFLECTOR_SESSION_NS;
        if (!ended && s->port == port && memcmp(s->address, address, sizeof address) == 0)
            return s;
        if (ended && free_session == NULL)
            free_session = s;
    }
    if (free_session == NULL)
        return NULL;
    *free_session = (reflector_session){.port = port, .used = true, .bucket = {REFLECTOR_SESSION_RATE, now_ns}};
    memcpy(free_session->address, address, sizeof address);
    return free_session;
}

bool reflector_limits_probe(reflector_limits *l, const struct sockaddr *from, int64_t now_ns, uint32_t *number)
{
    if (!bucket_take(&l->bucket, REFLECTOR_RATE, now_ns))
        return false;
    reflector_session *s = find_session(l, from, now_ns);
    if (s == NULL || !bucket_take(&s->bucket, REFLECTOR_SESSION_RATE, now_ns))
        return false;
    s->heard_ns = now_ns;
    *number = s->replies++;
    return true;
}

bool reflector_limits_transfer(reflector_limits *l, const struct sockaddr *from, int64_t now_ns)
{
    unsigned char address[16];
    limits_key(from, address);
    reflector_transfer *free_transfer = NULL;
    for (size_t i = 0; i < REFLECTOR_TRANSFERS_MAX; i++) {
        reflector_transfer *t = &l->transfers[i];
        bool ended = !t->used || now_ns - t->begin_ns >= REFLECTOR_TRANSFER_NS;
        if (!ended && memcmp(t->address, address, sizeof address) == 0)
            return false;
        if (ended)
            free_transfer = t;
    }
    if (free_transfer == NULL)
        return false;
    *free_transfer = (reflector_transfer){.begin_ns = now_ns, .used = true};
    memcpy(free_transfer->address, address, sizeof address);
    return true;
}
