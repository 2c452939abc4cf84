/*
 * nlkernel trace reads messages of several protocols, which any program may send. The input begins with the number of
 * bytes of a call that are not captured. A request follows, then a line of "%%%", and then the reply.
 */
#include "config.h"

#include "fuzz.h"

#include "trace/description.h"

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

/* Reads bytes as messages of protocols that a rules file describes. */
static void check_described(const protocol_bytes *bytes, const protocol_bytes *answer)
{
    static const char rules[] = "[protocol lines]\nport = 1\nframe = line\nrequest = get put\nrequest-body = put 2\n"
                                "reply = OK VALUE 2##\nreply-body = VALUE 2\nfailed = 5##\n"
                                "[protocol lengths]\nport = 2\nframe = length at 1 size 4 little add 5\n"
                                "request-at = 5 1\nrequest = 1 query\nreply-at = 6 2\nfailed = 2 error\n";
    nl_sections sections = {0};
    protocol_request request;
    descriptions *d = descriptions_new();
    fuzz_expect(nl_sections_parse(&sections, rules, "rules", NULL) && descriptions_add(d, &sections), "valid rules");
    nl_sections_free(&sections);
    for (uint16_t port = 1; port <= 2; port++) {
        const protocol *found = descriptions_find(d, port, 0, bytes, &request);
        check_request(NULL, &request);
        protocol_reply reply = {0};
        for (int call = 0; found != NULL && call < 3; call++) {
            description_read_reply(found->description, answer, &request, &reply);
            fuzz_expect(is_name(reply.status, sizeof reply.status), "a status is a name");
        }
    }
    descriptions_free(d);
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
    /* Each protocol reads the bytes, even if protocol_find chooses another protocol. */
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
    check_described(&bytes, &answer);
    free(request_bytes);
    free(reply_bytes);
    return 0;
}
