/*
 * Contexts as text: traceparent and tracestate of W3C Trace Context (https://www.w3.org/TR/trace-context-2/). The
 * module has no state.
 */
#include "config.h"

#include <netlogger.h>

#include "base/error.h"
#include "log/hex.h"
#include "log/log_internal.h"

#include <stdlib.h>
#include <string.h>

enum {
    TRACE_AT = 3,
    SPAN_AT = 36,
    FLAGS_AT = 53,
    LENGTH = 55, /* length in version 00, and minimum length in later versions */
    MEMBERS_MAX = 32,
    KEY_MAX = 256,
    VALUE_MAX = 256,
    LARGE_MEMBER = 128, /* bytes; if the text is too long, longer members are removed before other members */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static nl_string trim(const char *text, size_t size)
{
    while (size > 0 && is_blank(*text)) {
        text++;
        size--;
    }
    while (size > 0 && is_blank(text[size - 1]))
        size--;
    return (nl_string){text, size};
}

/* ---- traceparent ---- */

/*
 * Sets *context to the context of a traceparent. Returns NULL, or the reason why the traceparent is invalid; *context
 * is then invalid.
 */
static const char *parse_traceparent(nl_string text, nl_context *context)
{
    const char *at = text.data;
    uint16_t version, flags;
    uint32_t four;
    if (text.size < LENGTH)
        return "too short";
    if (at[TRACE_AT - 1] != '-' || at[SPAN_AT - 1] != '-' || at[FLAGS_AT - 1] != '-')
        return "a '-' is missing";
    memcpy(&version, at, sizeof version);
    memcpy(&flags, at + FLAGS_AT, sizeof flags);
    uint64_t digits = (uint64_t)le16toh(flags) << 16 | le16toh(version) | UINT64_C(0x3030303000000000);
    if (nl_hex_get_word(digits, &four) != 0)
        return "the version or the flags are not two hexadecimal digits";
    const unsigned char *bytes = (const unsigned char *)&four;
    if (bytes[0] == 0xff)
        return "version ff is not valid";
    if (text.size > LENGTH && (bytes[0] == 0 || at[LENGTH] != '-'))
        return "too long";
    if (!nl_hex_get(at + TRACE_AT, context->trace_id, 16) || !nl_hex_get(at + SPAN_AT, context->span_id, 8))
        return "an ID is zero or is not hexadecimal";
    context->flags = bytes[1] & (NL_CONTEXT_SAMPLED | NL_CONTEXT_RANDOM);
    return NULL;
}

nl_status nl_traceparent_parse(const char *text, size_t size, nl_context *context)
{
    NL_REQUIRE(context != NULL, "context is NULL", NL_FAILED);
    memset(context, 0, sizeof *context);
    if (text == NULL) {
        text = secure_getenv("TRACEPARENT");
        if (text == NULL)
            return NL_OFF;
        size = strlen(text);
    }
    const char *problem = parse_traceparent(trim(text, size), context);
    if (problem == NULL)
        return NL_OK;
    memset(context, 0, sizeof *context);
    return nl_error_set(NL_ERROR_INVALID, "invalid traceparent: %s", problem);
}

size_t nl_traceparent_format(const nl_context *context, char text[NL_TRACEPARENT_SIZE])
{
    static const unsigned char none[16];
    if (text == NULL)
        return 0;
    text[0] = '\0';
    if (context == NULL || memcmp(context->trace_id, none, sizeof none) == 0)
        return 0;
    const bool sampled = (context->flags & NL_CONTEXT_SAMPLED) != 0;
    const uint64_t unlogged = sampled ? 0 : nl_span_new_id();
    memcpy(text, "00-", 3);
    nl_hex_put(text + TRACE_AT, context->trace_id, 16);
    text[SPAN_AT - 1] = '-';
    nl_hex_put(text + SPAN_AT, sampled ? (const void *)context->span_id : &unlogged, 8);
    text[FLAGS_AT - 1] = '-';
    text[FLAGS_AT] = '0';
    text[FLAGS_AT + 1] = (char)('0' + (context->flags & (NL_CONTEXT_SAMPLED | NL_CONTEXT_RANDOM)));
    text[LENGTH] = '\0';
    return LENGTH;
}

/* ---- tracestate ---- */

/* Returns the size in bytes of the key at the beginning of a member; 0 if the key is invalid. */
static size_t key_size(nl_string member)
{
    size_t i = 0;
    for (; i < member.size && member.data[i] != '='; i++) {
        char c = member.data[i];
        bool first = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!first && (i == 0 || c == '\0' || strchr("_-*/@", c) == NULL))
            return 0;
    }
    return i < member.size && i <= KEY_MAX ? i : 0;
}

static bool is_value(nl_string value)
{
    if (value.size == 0 || value.size > VALUE_MAX)
        return false;
    for (size_t i = 0; i < value.size; i++)
        if (value.data[i] < 0x20 || value.data[i] > 0x7e || value.data[i] == '=')
            return false;
    return true;
}

/* Returns the member at *at of a valid state, and advances *at. At the end, the member's size is 0. */
static nl_string next_member(const char **at)
{
    nl_string member = {*at, strcspn(*at, ",")};
    *at += member.size + (member.data[member.size] == ',');
    return member;
}

static void remove_member(char *state, nl_string member)
{
    size_t at = (size_t)(member.data - state), end = at + member.size;
    if (state[end] == ',')
        end++;
    else if (at > 0)
        at--;
    memmove(state + at, state + end, strlen(state + end) + 1);
}

/* Removes the last member of more than LARGE_MEMBER bytes. Returns false if there is no such member. */
static bool remove_large(char *state)
{
    nl_string last = {0}, member;
    for (const char *at = state; (member = next_member(&at)).size > 0;)
        last = member.size > LARGE_MEMBER ? member : last;
    if (last.size > 0)
        remove_member(state, last);
    return last.size > 0;
}

static void append(char *state, nl_string member)
{
    size_t size = strlen(state);
    while (size + 1 + member.size >= NL_TRACESTATE_SIZE) {
        if (member.size > LARGE_MEMBER || !remove_large(state))
            return;
        size = strlen(state);
    }
    if (size > 0)
        state[size++] = ',';
    memcpy(state + size, member.data, member.size);
    state[size + member.size] = '\0';
}

static size_t count_members(const char *state)
{
    size_t count = 0;
    for (const char *at = state; next_member(&at).size > 0;)
        count++;
    return count;
}

/* Returns whether `state` has a member with this key. `size` is the length of the key in bytes. */
static bool has_key(const char *state, const char *key, size_t size)
{
    nl_string member;
    for (const char *at = state; (member = next_member(&at)).size > 0;)
        if (member.size > size && member.data[size] == '=' && memcmp(member.data, key, size) == 0)
            return true;
    return false;
}

nl_status nl_tracestate_append(char state[NL_TRACESTATE_SIZE], const char *text, size_t size)
{
    NL_REQUIRE(state != NULL, "state is NULL", NL_FAILED);
    NL_REQUIRE(text != NULL || size == 0, "text is NULL", NL_FAILED);
    size_t count = count_members(state);
    for (const char *end = text + size, *next; text < end; text = next) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        nl_string member = trim(text, (size_t)((comma != NULL ? comma : end) - text));
        next = comma != NULL ? comma + 1 : end;
        if (member.size == 0)
            continue;
        size_t key = key_size(member);
        if (key == 0 || !is_value((nl_string){member.data + key + 1, member.size - key - 1})) {
            *state = '\0';
            return nl_error_set(NL_ERROR_INVALID, "invalid member of tracestate");
        }
        if (count++ == MEMBERS_MAX) {
            *state = '\0';
            return nl_error_set(NL_ERROR_INVALID, "tracestate has more than %d members", MEMBERS_MAX);
        }
        if (!has_key(state, member.data, key))
            append(state, member);
    }
    return NL_OK;
}
