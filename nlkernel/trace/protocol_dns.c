/* DNS (RFC 1035): messages over UDP, and messages over TCP, where each message follows its length. */
#include "config.h"

#include "trace/protocol.h"

#include "base/hash_bytes.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { HEAD_SIZE = 12, PREFIX_SIZE = 2, LABEL_MAX = 63, IS_REPLY = 0x80, OPERATION = 0x78, NO_ERROR = 0, NO_NAME = 3 };

typedef struct dns_message {
    const unsigned char *at;
    size_t size;
    size_t question_size; /* name, type and class */
} dns_message;

static unsigned read_dns_number(const unsigned char *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

/* Finds the question of a message. Returns false if the bytes are neither a query nor a reply to a query. */
static bool read_message(const char *data, size_t size, dns_message *m)
{
    *m = (dns_message){.at = (const unsigned char *)data, .size = size};
    if (size < HEAD_SIZE || (m->at[2] & OPERATION) != 0 || (m->at[3] & 0x40) != 0 || read_dns_number(m->at + 4) != 1)
        return false;
    if ((m->at[2] & IS_REPLY) == 0 && (read_dns_number(m->at + 6) != 0 || read_dns_number(m->at + 8) != 0))
        return false;
    size_t at = HEAD_SIZE;
    while (at < size && m->at[at] != 0 && m->at[at] <= LABEL_MAX)
        at += (size_t)m->at[at] + 1;
    if (at + 5 > size || m->at[at] != 0 || at - HEAD_SIZE > 254)
        return false;
    m->question_size = at + 5 - HEAD_SIZE;
    return true;
}

static void set_name_of_question(const dns_message *m, protocol_request *request)
{
    static const struct {
        unsigned type;
        const char *name;
    } types[] = {{1, "A"},     {2, "NS"},     {5, "CNAME"},  {6, "SOA"},    {12, "PTR"}, {15, "MX"},
                 {16, "TXT"},  {28, "AAAA"},  {33, "SRV"},   {35, "NAPTR"}, {43, "DS"},  {48, "DNSKEY"},
                 {64, "SVCB"}, {65, "HTTPS"}, {252, "AXFR"}, {255, "ANY"}};
    unsigned type = read_dns_number(m->at + HEAD_SIZE + m->question_size - 4);
    snprintf(request->verb, sizeof request->verb, "TYPE%u", type);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type)
            snprintf(request->verb, sizeof request->verb, "%s", types[i].name);
    char name[256];
    size_t length = 0;
    for (const unsigned char *label = m->at + HEAD_SIZE; *label != 0; label += *label + 1) {
        if (length > 0)
            name[length++] = '.';
        for (unsigned i = 1; i <= *label; i++)
            name[length++] = isalnum(label[i]) || label[i] == '-' || label[i] == '_' ? (char)tolower(label[i]) : '_';
    }
    protocol_copy_name(request->object, sizeof request->object, length > 0 ? name : ".", length > 0 ? length : 1);
}

static void set_status_of_reply(const dns_message *m, protocol_reply *reply)
{
    static const char *const codes[] = {"NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"};
    unsigned code = m->at[3] & 15;
    if (code < sizeof codes / sizeof *codes)
        snprintf(reply->status, sizeof reply->status, "%s", codes[code]);
    else
        snprintf(reply->status, sizeof reply->status, "RCODE%u", code);
    reply->failed = code != NO_ERROR && code != NO_NAME;
}

static bool read_dns_query(const char *data, size_t size, protocol_request *request)
{
    dns_message m;
    if (!read_message(data, size, &m) || (m.at[2] & IS_REPLY) != 0)
        return false;
    set_name_of_question(&m, request);
    return true;
}

static bool read_dns_request(const protocol_bytes *bytes, protocol_request *request)
{
    return bytes->captured > PREFIX_SIZE &&
           read_dns_number((const unsigned char *)bytes->data) + PREFIX_SIZE == bytes->size &&
           read_dns_query(bytes->data + PREFIX_SIZE, bytes->captured - PREFIX_SIZE, request);
}

static protocol_progress read_dns_reply(const protocol_bytes *bytes, const protocol_request *request,
                                        protocol_reply *reply)
{
    protocol_bytes rest = *bytes;
    dns_message m;
    (void)request;
    if (reply->begun && !reply->counted)
        return PROTOCOL_UNKNOWN; /* bytes were lost */
    if (!reply->begun) {
        if (bytes->captured < PREFIX_SIZE)
            return PROTOCOL_MORE;
        reply->begun = reply->counted = true;
        reply->left = read_dns_number((const unsigned char *)bytes->data);
        rest.data += PREFIX_SIZE;
        rest.captured -= PREFIX_SIZE;
        rest.size -= PREFIX_SIZE;
        if (read_message(rest.data, rest.captured, &m))
            set_status_of_reply(&m, reply);
    }
    bool empty = reply->left == 0;
    reply->left -= reply->left < rest.size ? reply->left : rest.size;
    return reply->left == 0 && !empty ? PROTOCOL_COMPLETE : PROTOCOL_MORE;
}

static bool read_datagram_request(const protocol_bytes *bytes, protocol_request *request)
{
    return read_dns_query(bytes->data, bytes->captured, request);
}

static protocol_progress read_datagram_reply(const protocol_bytes *bytes, const protocol_request *request,
                                             protocol_reply *reply)
{
    dns_message m;
    (void)request;
    if (read_message(bytes->data, bytes->captured, &m))
        set_status_of_reply(&m, reply);
    return PROTOCOL_COMPLETE;
}

bool protocol_dns_identify(const protocol_bytes *bytes, uint16_t *id, uint32_t *question, bool *is_reply)
{
    dns_message m;
    if (!read_message(bytes->data, bytes->captured, &m))
        return false;
    *id = (uint16_t)read_dns_number(m.at);
    *question = (uint32_t)hash_bytes(*id, bytes->data + HEAD_SIZE, m.question_size);
    *is_reply = (m.at[2] & IS_REPLY) != 0;
    return true;
}

const protocol protocol_dns = {"dns", "NAME", false, read_dns_request, read_dns_reply, NULL};
const protocol protocol_dns_datagram = {"dns", "NAME", false, read_datagram_request, read_datagram_reply, NULL};
