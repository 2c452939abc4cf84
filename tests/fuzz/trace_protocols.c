/*
 * The protocols that nlkernel trace recognizes, in bytes that any program may send. Input: the number of bytes that a
 * call has beyond those that are captured; then a request up to a line of "%%%", and the reply.
 */
#include "config.h"

#include "fuzz.h"

#include "trace/protocol.h"

static bool is_name(const char *text, size_t size)
{
    size_t length = strnlen(text, size);
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return length < size;
}

static void check_request(const protocol *found, const protocol_request *request)
{
    fuzz_expect(is_name(request->verb, sizeof request->verb), "a verb is a name");
    fuzz_expect(is_name(request->object, sizeof request->object), "an object is a name");
    fuzz_expect(strpbrk(request->object, "?#;'") == NULL || found == &protocol_http, "an object is no value");
    fuzz_expect((*request->trace_id == '\0') == (*request->parent_id == '\0'), "a trace ID has a parent");
}

/* Reads bytes as a reply that arrives three times. */
static void check_reply(const protocol *found, const protocol_request *request, const protocol_bytes *bytes)
{
    protocol_reply reply = {0};
    for (int call = 0; call < 3; call++) {
        fuzz_expect(found->read_reply(bytes, request, &reply) <= PROTOCOL_UNKNOWN, "a progress is known");
        fuzz_expect(is_name(reply.status, sizeof reply.status), "a status is a name");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const char *all = (const char *)data + 1, *mark = memmem(all, size - 1, "%%%", 3);
    size_t request_size = mark != NULL ? (size_t)(mark - all) : size - 1;
    size_t reply_size = mark != NULL ? size - 1 - request_size - 3 : 0;
    char *request_bytes = fuzz_copy(all, request_size),
         *reply_bytes = fuzz_copy(mark != NULL ? mark + 3 : all, reply_size);
    /* Each protocol reads the bytes, also those that another protocol claims in protocol_find. */
    const protocol *const protocols[] = {&protocol_dns,   &protocol_dns_datagram, &protocol_http,  &protocol_memcached,
                                         &protocol_mysql, &protocol_postgresql,   &protocol_redis, &protocol_tls};
    protocol_bytes bytes = {.data = request_bytes, .captured = request_size, .size = request_size + data[0]},
                   answer = {.data = reply_bytes, .captured = reply_size, .size = reply_size + data[0]};
    protocol_request request;
    uint16_t id;
    uint32_t question;
    bool is_reply;
    protocol_find(&bytes, &request);
    protocol_dns_identify(&bytes, &id, &question, &is_reply);
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++) {
        memset(&request, 0, sizeof request);
        if (!protocols[i]->read_request(&bytes, &request))
            memset(&request, 0, sizeof request);
        check_request(protocols[i], &request);
        check_reply(protocols[i], &request, &answer);
    }
    free(request_bytes);
    free(reply_bytes);
    return 0;
}
