/* PostgreSQL's protocol, version 3 (PostgreSQL documentation, "Frontend/Backend Protocol"). */
#include "config.h"

#include "trace/protocol.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { HEAD_SIZE = 5, MESSAGE_SIZE_MAX = 1 << 30, VERSION_3 = 3 << 16, WORD_SIZE = 64 };

static uint32_t read_length(const char *at)
{
    const unsigned char *b = (const unsigned char *)at;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* ---- statements ---- */

typedef struct statement {
    const char *begin, *at, *end;
} statement;

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '$';
}

/* Skips up to and including the text `close`, or to the end. */
static void skip_past(statement *s, const char *close)
{
    const char *found = memmem(s->at, (size_t)(s->end - s->at), close, strlen(close));
    s->at = found != NULL ? found + strlen(close) : s->end;
}

/* Skips a string: 'text', or E'text' with escapes. */
static void skip_string(statement *s, bool escapes)
{
    for (s->at++; s->at < s->end && *s->at != '\''; s->at++)
        s->at += escapes && *s->at == '\\' && s->end - s->at > 1;
    s->at += s->at < s->end;
}

/* Skips a string between two equal tags, such as $$text$$ and $tag$text$tag$, or one character. */
static void skip_dollars(statement *s)
{
    const char *tag = s->at++;
    while (s->at < s->end && (isalnum((unsigned char)*s->at) || *s->at == '_'))
        s->at++;
    size_t size = (size_t)(s->at - tag) + 1;
    if (s->at == s->end || *s->at != '$' || isdigit((unsigned char)tag[1]))
        return;
    const char *found = memmem(s->at + 1, (size_t)(s->end - s->at - 1), tag, size);
    s->at = found != NULL ? found + size : s->end;
}

/* Skips what is no word: blanks, comments, and strings, which contain values. */
static void skip_to_word(statement *s)
{
    while (s->at < s->end && !isalpha((unsigned char)*s->at) && *s->at != '_' && *s->at != '"') {
        size_t left = (size_t)(s->end - s->at);
        if (*s->at == '\'') {
            skip_string(s, s->at > s->begin && (s->at[-1] == 'E' || s->at[-1] == 'e'));
        } else if (left >= 2 && memcmp(s->at, "/*", 2) == 0) {
            s->at += 2;
            skip_past(s, "*/");
        } else if (left >= 2 && memcmp(s->at, "--", 2) == 0) {
            skip_past(s, "\n");
        } else if (*s->at == '$') {
            skip_dollars(s);
        } else if (isdigit((unsigned char)*s->at)) {
            while (s->at < s->end && is_word(*s->at))
                s->at++;
        } else {
            s->at++;
        }
    }
}

/* Reads the next word. A quoted name is a word without its quotes. Returns false at the end. */
static bool next_word(statement *s, char word[WORD_SIZE])
{
    size_t length = 0;
    skip_to_word(s);
    bool quoted = s->at < s->end && *s->at == '"';
    s->at += quoted;
    for (; s->at < s->end && (is_word(*s->at) || (quoted && *s->at != '"')); s->at++)
        if (length + 1 < WORD_SIZE && is_word(*s->at))
            word[length++] = *s->at;
    s->at += quoted && s->at < s->end;
    word[length] = '\0';
    return length > 0;
}

static bool is_one_of(const char *word, const char *const *list)
{
    for (; *list != NULL; list++)
        if (strcasecmp(word, *list) == 0)
            return true;
    return false;
}

/* Finds the verb of a statement, and the table after FROM, INTO, UPDATE or TABLE, or else the first function. */
static void read_statement(protocol_request *request, const char *text, size_t size)
{
    static const char *const table_next[] = {"UPDATE", "COPY", "TRUNCATE", NULL},
                             *const table_later[] = {"SELECT", "INSERT", "DELETE",  "WITH", "CREATE",
                                                     "DROP",   "ALTER",  "EXPLAIN", NULL},
                             *const before_table[] = {"FROM", "INTO", "TABLE", "JOIN", NULL},
                             *const not_table[] = {"ONLY", "TABLE", "IF", "EXISTS", "NOT", "LATERAL", NULL};
    statement s = {text, text, text + size};
    char word[WORD_SIZE], function[WORD_SIZE] = "";
    if (!next_word(&s, word))
        return;
    for (size_t i = 0; word[i] != '\0' && i + 1 < 17; i++)
        request->verb[i] = (char)toupper((unsigned char)word[i]);
    for (size_t i = 0; request->verb[i] != '\0'; i++)
        if (!isalpha((unsigned char)request->verb[i])) {
            memset(request->verb, 0, sizeof request->verb);
            return;
        }
    bool table = is_one_of(request->verb, table_next);
    if (!table && !is_one_of(request->verb, table_later))
        return; /* BEGIN, COMMIT, SET and others have no object, or a value */
    while (next_word(&s, word)) {
        if (table && !is_one_of(word, not_table)) {
            protocol_copy_name(request->object, sizeof request->object, word, strlen(word));
            return;
        }
        if (!table && *function == '\0' && s.at < s.end && *s.at == '(')
            memcpy(function, word, sizeof function);
        table = table || is_one_of(word, before_table);
    }
    protocol_copy_name(request->object, sizeof request->object, function, strlen(function));
}

/* ---- messages ---- */

static bool read_start(const protocol_bytes *bytes, protocol_request *request)
{
    if (bytes->captured < 8 || bytes->data[0] != 0 || read_length(bytes->data) != bytes->size)
        return false;
    uint32_t code = read_length(bytes->data + 4);
    if (code != VERSION_3 && code >> 16 != 1234) /* 1234: cancellation, or a request for encryption */
        return false;
    snprintf(request->verb, sizeof request->verb, "%s", code == VERSION_3 ? "startup" : "negotiate");
    return true;
}

/* Returns the start of the text after the first NUL, for Parse: name, NUL, statement, NUL. */
static const char *skip_name(const char *at, const char *end)
{
    const char *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
    return nul != NULL ? nul + 1 : end;
}

static bool read_postgresql_request(const protocol_bytes *bytes, protocol_request *request)
{
    if (read_start(bytes, request))
        return true;
    if (bytes->captured < HEAD_SIZE || strchr("QPBCDEFSHXdcfp", *bytes->data) == NULL || *bytes->data == '\0')
        return false;
    uint32_t length = read_length(bytes->data + 1);
    if (length < 4 || length > MESSAGE_SIZE_MAX || (*bytes->data == 'Q' && length + 1 != bytes->size))
        return false;
    const char *text = bytes->data + HEAD_SIZE, *end = bytes->data + bytes->captured;
    if ((uint64_t)length + 1 < bytes->captured)
        end = bytes->data + length + 1;
    if (*bytes->data == 'P')
        text = skip_name(text, end);
    if (*bytes->data == 'Q' || *bytes->data == 'P')
        read_statement(request, text, (size_t)(end - text));
    else
        snprintf(request->verb, sizeof request->verb, "%s",
                 *bytes->data == 'p'                          ? "authenticate"
                 : *bytes->data == 'B' || *bytes->data == 'E' ? "execute"
                 : *bytes->data == 'd' || *bytes->data == 'c' ? "copy"
                 : *bytes->data == 'X'                        ? "terminate"
                                                              : "protocol");
    request->silent = *bytes->data == 'X';
    return true;
}

/* Reads the fields of an error: a type, a text, NUL. The status is the code, which contains no values. */
static void read_error(protocol_reply *reply, const char *at, const char *end)
{
    while (at < end && *at != '\0') {
        const char *next = skip_name(at, end);
        if (*at == 'C')
            protocol_copy_name(reply->status, sizeof reply->status, at + 1, (size_t)(next - at - 1));
        at = next;
    }
    reply->failed = true;
}

static protocol_progress read_postgresql_reply(const protocol_bytes *bytes, const protocol_request *request,
                                               protocol_reply *reply)
{
    enum { READY_SIZE = 6 };
    static const char ready[] = {'Z', 0, 0, 0, 5};
    (void)request;
    const char *at = bytes->data, *end = at + bytes->captured;
    while (!reply->begun && end - at >= HEAD_SIZE) {
        uint32_t length = read_length(at + 1);
        const char *next = length >= 4 && length <= (size_t)(end - at) - 1 ? at + 1 + length : end;
        if (*at == 'E')
            read_error(reply, at + HEAD_SIZE, next);
        at = next;
    }
    reply->begun = true;
    const char *tail = bytes->tail_size > 0 ? bytes->tail : bytes->data;
    size_t size = bytes->tail_size > 0 ? bytes->tail_size : bytes->captured;
    if (bytes->tail_size == 0 && bytes->captured < bytes->size)
        return PROTOCOL_UNKNOWN;
    return size >= READY_SIZE && memcmp(tail + size - READY_SIZE, ready, sizeof ready) == 0 ? PROTOCOL_COMPLETE
                                                                                            : PROTOCOL_MORE;
}

const protocol protocol_postgresql = {"postgresql", "OBJECT", true, read_postgresql_request, read_postgresql_reply};
