/*
 * The headers traceparent and tracestate of W3C Trace Context. Input: a traceparent up to the first NUL, then
 * tracestates that are separated by NULs, as a request with several headers has them.
 */
#include "fuzz.h"

static void check_traceparent(const char *text, size_t size)
{
    nl_context context, again;
    char formatted[NL_TRACEPARENT_SIZE];
    memset(&context, 0x5a, sizeof context);
    nl_error_clear();
    if (nl_traceparent_parse(text, size, &context) != NL_OK) {
        fuzz_expect(*nl_error_message() != '\0', "a malformed traceparent has a message");
        fuzz_expect(memcmp(&context, NL_NO_PARENT, sizeof context) == 0, "a malformed traceparent is no context");
        return;
    }
    fuzz_expect(nl_traceparent_format(&context, formatted) == NL_TRACEPARENT_SIZE - 1, "a context has a traceparent");
    fuzz_expect(formatted[NL_TRACEPARENT_SIZE - 1] == '\0', "a traceparent ends with NUL");
    fuzz_expect(nl_traceparent_parse(formatted, NL_TRACEPARENT_SIZE - 1, &again) == NL_OK, "it is valid");
    fuzz_expect(memcmp(context.trace_id, again.trace_id, sizeof context.trace_id) == 0, "it has the same trace");
    fuzz_expect(context.flags == again.flags, "it has the same flags");
    if (context.flags & NL_CONTEXT_SAMPLED)
        fuzz_expect(memcmp(context.span_id, again.span_id, sizeof context.span_id) == 0, "it has the same span");
}

/* Returns the number of members; -1 if the state is invalid. */
static int count_members(const char *state)
{
    int count = 0;
    while (*state != '\0') {
        size_t size = strcspn(state, ",");
        if (memchr(state, '=', size) == NULL)
            return -1;
        count++;
        state += size + (state[size] == ',');
    }
    return count;
}

static void check_tracestate(const char *text, size_t size)
{
    char state[NL_TRACESTATE_SIZE] = "";
    for (size_t at = 0; at <= size;) {
        const char *end = memchr(text + at, '\0', size - at);
        size_t part = end != NULL ? (size_t)(end - text) - at : size - at;
        nl_status status = nl_tracestate_append(state, text + at, part);
        fuzz_expect(memchr(state, '\0', sizeof state) != NULL, "a tracestate ends with NUL");
        fuzz_expect(status == NL_OK || *state == '\0', "with a malformed header nothing is left");
        int members = count_members(state);
        fuzz_expect(members >= 0 && members <= 32, "a tracestate has at most 32 members");
        at += part + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data, size);
    const char *end = size > 0 ? memchr(text, '\0', size) : NULL;
    size_t parent = end != NULL ? (size_t)(end - text) : size;
    check_traceparent(text, parent);
    if (parent < size)
        check_tracestate(text + parent + 1, size - parent - 1);
    free(text);
    return 0;
}
