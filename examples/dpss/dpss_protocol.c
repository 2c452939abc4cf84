#define _GNU_SOURCE 1

#include "dpss_protocol.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static const uint32_t request_magic = 0x44505351, response_magic = 0x44505341;

static unsigned char *put32(unsigned char *at, uint32_t value)
{
    value = htobe32(value);
    memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

static unsigned char *put64(unsigned char *at, uint64_t value)
{
    value = htobe64(value);
    memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

static uint32_t get32(const unsigned char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return be32toh(value);
}

static uint64_t get64(const unsigned char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return be64toh(value);
}

void dpss_put_request(const dpss_request *request, unsigned char out[DPSS_REQUEST_SIZE])
{
    out = put32(put32(out, request_magic), request->operation);
    put32(put64(out, request->block), request->block_size);
}

bool dpss_parse_request(const unsigned char in[DPSS_REQUEST_SIZE], dpss_request *request)
{
    *request = (dpss_request){get32(in + 4), get64(in + 8), get32(in + 16)};
    return get32(in) == request_magic;
}

void dpss_put_response(const dpss_response *response, unsigned char out[DPSS_RESPONSE_SIZE])
{
    out = put32(put32(out, response_magic), response->status);
    put64(put64(out, response->block), response->size);
}

bool dpss_parse_response(const unsigned char in[DPSS_RESPONSE_SIZE], dpss_response *response)
{
    *response = (dpss_response){get32(in + 4), get64(in + 8), get64(in + 16)};
    return get32(in) == response_magic;
}

bool dpss_send(int fd, const void *data, size_t size)
{
    for (const char *at = data; size > 0;) {
        ssize_t put = send(fd, at, size, MSG_NOSIGNAL);
        if (put < 0 && errno != EINTR)
            return false;
        at += put > 0 ? put : 0;
        size -= put > 0 ? (size_t)put : 0;
    }
    return true;
}

bool dpss_receive(int fd, void *data, size_t size)
{
    for (char *at = data; size > 0;) {
        ssize_t got = recv(fd, at, size, 0);
        if (got == 0)
            errno = 0;
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        at += got > 0 ? got : 0;
        size -= got > 0 ? (size_t)got : 0;
    }
    return true;
}

void dpss_split_address(char *address, const char **host, const char **port)
{
    char *colon = strrchr(address, ':');
    *host = address;
    *port = DPSS_DEFAULT_PORT;
    if (colon != NULL) {
        *colon = '\0';
        *port = colon + 1;
    }
}
