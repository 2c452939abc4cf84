/*
 * memcached's text protocol without the meta commands
 * (https://github.com/memcached/memcached/blob/master/doc/protocol.txt). The module does not keep keys, because they
 * may be secret.
 */
#include "config.h"

#include "trace/protocol.h"

#include <ctype.h>
#include <string.h>

enum { MAX_ARGUMENTS = 6, MAX_KEY = 250 };

typedef struct memcached_command {
    const char *name;
    size_t least, most; /* minimum and maximum number of arguments, without "noreply" */
    size_t size_at; /* number of the argument that contains the number of bytes after the line; 0: no bytes follow */
} memcached_command;

static const memcached_command commands[] = {
    {"get", 1, SIZE_MAX, 0}, {"gets", 1, SIZE_MAX, 0}, {"gat", 2, SIZE_MAX, 0}, {"gats", 2, SIZE_MAX, 0},
    {"set", 4, 4, 4},        {"add", 4, 4, 4},         {"replace", 4, 4, 4},    {"append", 4, 4, 4},
    {"prepend", 4, 4, 4},    {"cas", 5, 5, 4},         {"delete", 1, 1, 0},     {"incr", 2, 2, 0},
    {"decr", 2, 2, 0},       {"touch", 2, 2, 0},       {"flush_all", 0, 1, 0},  {"version", 0, 0, 0},
};

typedef struct word {
    const char *at;
    size_t length;
} word;

static bool word_is(word w, const char *text)
{
    return w.length == strlen(text) && memcmp(w.at, text, w.length) == 0;
}

/* Returns the next word of a line, and advances *at beyond the word and one space. The word's length is 0 at the end of
 * the line. */
static word next_word(const char **at, const char *end)
{
    word w = {*at, 0};
    while (*at < end && (unsigned char)**at > ' ' && **at != 0x7f)
        ++*at;
    w.length = (size_t)(*at - w.at);
    if (*at < end && **at == ' ')
        ++*at;
    return w;
}

static const memcached_command *find_command(word name)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (word_is(name, commands[i].name))
            return &commands[i];
    return NULL;
}

static bool read_size(word w, uint64_t *size)
{
    *size = 0;
    if (w.length == 0 || w.length > 10)
        return false;
    for (size_t i = 0; i < w.length; i++) {
        if (!isdigit((unsigned char)w.at[i]))
            return false;
        *size = *size * 10 + (uint64_t)(w.at[i] - '0');
    }
    return true;
}

static bool read_memcached_request(const protocol_bytes *bytes, protocol_request *request)
{
    const char *at = bytes->data, *line_end = memchr(bytes->data, '\n', bytes->captured);
    bool whole = line_end != NULL && line_end > bytes->data && line_end[-1] == '\r';
    if (!whole && (line_end != NULL || bytes->captured == bytes->size))
        return false;
    const char *end = whole ? line_end - 1 : bytes->data + bytes->captured;
    word name = next_word(&at, end);
    const memcached_command *command = find_command(name);
    if (command == NULL)
        return false;

    word arguments[MAX_ARGUMENTS] = {{0}};
    size_t count = 0;
    while (at < end) {
        word w = next_word(&at, end);
        if (w.length == 0 || w.length > MAX_KEY)
            return false;
        if (count < MAX_ARGUMENTS)
            arguments[count] = w;
        count++;
    }
    if (command->most != SIZE_MAX && count > command->least && count <= MAX_ARGUMENTS &&
        word_is(arguments[count - 1], "noreply")) {
        request->silent = true;
        count--;
    }
    uint64_t body = 0;
    if (count < command->least || count > command->most ||
        (command->size_at != 0 && !read_size(arguments[command->size_at - 1], &body)))
        return false;

    protocol_copy_name(request->verb, sizeof request->verb, name.at, name.length);
    uint64_t length = whole ? (uint64_t)(line_end + 1 - bytes->data) : bytes->captured;
    if (command->size_at != 0)
        length += body + 2;
    request->several = !whole || bytes->size > length;
    return true;
}

static bool ends_with(const protocol_bytes *bytes, const char *text)
{
    bool whole = bytes->captured == bytes->size;
    const char *data = whole ? bytes->data : bytes->tail;
    size_t size = whole ? bytes->captured : bytes->tail_size, length = strlen(text);
    return size >= length && memcmp(data + size - length, text, length) == 0;
}

/* Stores the status if it is a known word. Other words may be values. */
static void read_status(const protocol_bytes *bytes, protocol_reply *reply)
{
    static const struct {
        const char *name;
        bool failed;
    } statuses[] = {
        {"STORED", false},  {"NOT_STORED", false}, {"EXISTS", false}, {"NOT_FOUND", false},   {"DELETED", false},
        {"TOUCHED", false}, {"OK", false},         {"ERROR", true},   {"CLIENT_ERROR", true}, {"SERVER_ERROR", true},
    };
    const char *at = bytes->data, *end = bytes->data + bytes->captured;
    word first = next_word(&at, end);
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (word_is(first, statuses[i].name)) {
            protocol_copy_name(reply->status, sizeof reply->status, first.at, first.length);
            reply->failed = statuses[i].failed;
        }
}

static protocol_progress read_memcached_reply(const protocol_bytes *bytes, const protocol_request *request,
                                              protocol_reply *reply)
{
    if (bytes->captured == 0)
        return PROTOCOL_UNKNOWN;
    if (!reply->begun) {
        reply->begun = true;
        read_status(bytes, reply);
    }
    if (request->several)
        return PROTOCOL_UNKNOWN;
    bool values = request->verb[0] == 'g' && !reply->failed; /* get, gets, gat, gats: any number of values, and END */
    return ends_with(bytes, values ? "END\r\n" : "\r\n") ? PROTOCOL_COMPLETE : PROTOCOL_UNKNOWN;
}

const protocol protocol_memcached = {"memcached", "OBJECT", false, read_memcached_request, read_memcached_reply, NULL};
