#include "config.h"

#include "trace/protocol.h"

#include <string.h>

static const protocol *const protocols[] = {&protocol_http, &protocol_redis,      &protocol_memcached, &protocol_mysql,
                                            &protocol_dns,  &protocol_postgresql, &protocol_tls};

const protocol *protocol_find(const protocol_bytes *bytes, protocol_request *request)
{
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++) {
        memset(request, 0, sizeof *request);
        if (protocols[i]->read_request(bytes, request))
            return protocols[i];
    }
    memset(request, 0, sizeof *request);
    return NULL;
}

void protocol_copy_name(char *to, size_t size, const char *from, size_t length)
{
    size_t i = 0;
    while (i < length && i + 1 < size && from[i] > ' ' && from[i] <= '~') {
        to[i] = from[i];
        i++;
    }
    to[i] = '\0';
}

/* ---- TLS: requests and replies are encrypted, and differ only in their directions ---- */

static bool has_tls_record(const protocol_bytes *bytes, char type)
{
    enum { MAJOR_VERSION = 3, HEAD_SIZE = 5 };
    return bytes->captured >= HEAD_SIZE && bytes->data[0] == type && bytes->data[1] == MAJOR_VERSION;
}

bool protocol_begins_tls(const protocol_bytes *bytes)
{
    return has_tls_record(bytes, 22);
}

bool protocol_is_encrypted(const protocol_bytes *bytes)
{
    return has_tls_record(bytes, 23);
}

static bool read_tls_request(const protocol_bytes *bytes, protocol_request *request)
{
    (void)request;
    return protocol_begins_tls(bytes) || protocol_is_encrypted(bytes);
}

static protocol_progress read_tls_reply(const protocol_bytes *bytes, const protocol_request *request,
                                        protocol_reply *reply)
{
    (void)bytes, (void)request, (void)reply;
    return PROTOCOL_UNKNOWN;
}

const protocol protocol_tls = {"tls", "OBJECT", false, read_tls_request, read_tls_reply, NULL};
