#include "config.h"

#include "trace/description.h"

#include "base/error.h"

#include <ctype.h>
#include <errno.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAME_SIZE = 24, FRAME_MAX = 1 << 30, AT_MAX = 255, WORD_INDEX_MAX = 64 };

/* A name of a request or a reply. */
typedef struct known_name {
    char name[NAME_SIZE];
    uint64_t number; /* with frame = length, the value that stands for the name in a message */
    unsigned body;   /* with frame = line, the index of the word that contains the length of the data after the line; 0:
                        no data */
    bool silent, failed;
} known_name;

/* A number in a message. */
typedef struct number_place {
    unsigned at, size; /* in bytes; size 0: the message has no such number */
} number_place;

struct description {
    protocol protocol;
    char name[NAME_SIZE];
    GArray *ports; /* uint16_t */
    bool is_line, is_big, has_frame;
    number_place length, request, reply;
    uint64_t added;             /* number of bytes of a message that the message's length does not include */
    GArray *requests, *replies; /* known_name */
};

struct descriptions {
    GPtrArray *list; /* description */
};

static void description_free(gpointer data)
{
    description *d = data;
    g_array_free(d->ports, TRUE);
    g_array_free(d->requests, TRUE);
    g_array_free(d->replies, TRUE);
    g_free(d);
}

descriptions *descriptions_new(void)
{
    descriptions *d = g_new0(descriptions, 1);
    d->list = g_ptr_array_new_with_free_func(description_free);
    return d;
}

void descriptions_free(descriptions *d)
{
    if (d == NULL)
        return;
    g_ptr_array_free(d->list, TRUE);
    g_free(d);
}

/* ---- the rules file ---- */

/* The unparsed rest of a line of the rules file. */
typedef struct rules_line {
    const nl_sections *sections;
    const nl_setting *setting;
    const char *rest;
} rules_line;

static bool next_text(rules_line *l, char text[NAME_SIZE])
{
    char *word = nl_word_next(&l->rest, " \t");
    bool fits = word != NULL && strlen(word) < NAME_SIZE;
    if (fits)
        g_strlcpy(text, word, NAME_SIZE);
    free(word);
    return fits;
}

static bool next_number(rules_line *l, uint64_t maximum, uint64_t *number)
{
    char text[NAME_SIZE], *end;
    if (!next_text(l, text) || !isdigit((unsigned char)*text))
        return false;
    errno = 0;
    *number = strtoull(text, &end, 0);
    return *end == '\0' && errno == 0 && *number <= maximum;
}

static bool next_keyword(rules_line *l, const char *keyword)
{
    char text[NAME_SIZE];
    return next_text(l, text) && strcmp(text, keyword) == 0;
}

static bool is_end(rules_line *l)
{
    char *word = nl_word_next(&l->rest, " \t");
    bool end = word == NULL;
    free(word);
    return end;
}

static bool is_name(const char *text)
{
    for (const char *at = text; *at != '\0'; at++)
        if (!isalnum((unsigned char)*at) && strchr("-_.#", *at) == NULL)
            return false;
    return *text != '\0';
}

static bool fail_line(const rules_line *l, const char *expected)
{
    return nl_sections_error(l->sections, l->setting->line, "%s: expected %s", l->setting->key, expected);
}

static known_name *find_name(GArray *names, const char *name)
{
    for (guint i = 0; i < names->len; i++)
        if (strcasecmp(g_array_index(names, known_name, i).name, name) == 0)
            return &g_array_index(names, known_name, i);
    return NULL;
}

static known_name *find_number(const GArray *names, uint64_t number)
{
    for (guint i = 0; i < names->len; i++)
        if (g_array_index(names, known_name, i).number == number)
            return &g_array_index(names, known_name, i);
    return NULL;
}

static bool parse_port(description *d, rules_line *l)
{
    uint64_t number;
    do {
        uint16_t port;
        if (!next_number(l, UINT16_MAX, &number) || number == 0)
            return fail_line(l, "port numbers");
        port = (uint16_t)number;
        g_array_append_val(d->ports, port);
        while (*l->rest == ' ' || *l->rest == '\t')
            l->rest++;
    } while (*l->rest != '\0');
    return true;
}

static bool parse_place(rules_line *l, number_place *place)
{
    uint64_t at, size;
    if (!next_number(l, AT_MAX, &at) || !next_number(l, 8, &size) || size == 0 || !is_end(l))
        return fail_line(l, "OFFSET SIZE, in bytes");
    *place = (number_place){(unsigned)at, (unsigned)size};
    return true;
}

static bool parse_frame(description *d, rules_line *l)
{
    char text[NAME_SIZE];
    uint64_t at, size;
    if (d->has_frame)
        return fail_line(l, "only one line of this key in a section");
    d->has_frame = true;
    if (!next_text(l, text))
        return fail_line(l, "line, or length");
    d->is_line = strcmp(text, "line") == 0;
    if (d->is_line)
        return is_end(l) || fail_line(l, "line, and nothing after it");
    if (strcmp(text, "length") != 0 || !next_keyword(l, "at") || !next_number(l, AT_MAX, &at) ||
        !next_keyword(l, "size") || !next_number(l, 8, &size) || size == 0 || !next_text(l, text) ||
        (strcmp(text, "big") != 0 && strcmp(text, "little") != 0) || !next_keyword(l, "add") ||
        !next_number(l, AT_MAX, &d->added) || !is_end(l))
        return fail_line(l, "line, or length at OFFSET size SIZE big|little add BYTES");
    d->is_big = *text == 'b';
    d->length = (number_place){(unsigned)at, (unsigned)size};
    return true;
}

/* Parses names of requests or replies: NAME... if messages are lines, otherwise NUMBER NAME. Returns false and sets the
 * error if the line is invalid. */
static bool parse_names(const description *d, rules_line *l, GArray *names, bool silent, bool failed)
{
    known_name n = {.silent = silent, .failed = failed};
    if (!d->has_frame)
        return fail_line(l, "frame before this line");
    do {
        if (!d->is_line && !next_number(l, UINT64_MAX, &n.number))
            return fail_line(l, "NUMBER NAME");
        if (!next_text(l, n.name) || !is_name(n.name))
            return fail_line(l, "names of letters, digits, - . _ and #, shorter than 24 characters");
        known_name *known = d->is_line ? find_name(names, n.name) : find_number(names, n.number);
        if (known != NULL) {
            known->silent |= silent;
            known->failed |= failed;
        } else {
            g_array_append_val(names, n);
        }
        while (*l->rest == ' ' || *l->rest == '\t')
            l->rest++;
    } while (*l->rest != '\0');
    return true;
}

static bool parse_body(const description *d, rules_line *l, GArray *names)
{
    char text[NAME_SIZE];
    uint64_t index;
    known_name *known = next_text(l, text) ? find_name(names, text) : NULL;
    if (!d->is_line || known == NULL || !next_number(l, WORD_INDEX_MAX, &index) || index == 0 || !is_end(l))
        return fail_line(
            l, "NAME WORD, and frame = line above it. NAME is a request or reply of a line above. WORD is the "
               "position of the length, in bytes, among the words after NAME, from 1");
    known->body = (unsigned)index + 1;
    return true;
}

static bool parse_setting(description *d, rules_line *l)
{
    const char *key = l->setting->key;
    l->rest = l->setting->value;
    if (strcmp(key, "port") == 0)
        return parse_port(d, l);
    if (strcmp(key, "frame") == 0)
        return parse_frame(d, l);
    if (strcmp(key, "request") == 0)
        return parse_names(d, l, d->requests, false, false);
    if (strcmp(key, "silent") == 0)
        return parse_names(d, l, d->requests, true, false);
    if (strcmp(key, "reply") == 0)
        return parse_names(d, l, d->replies, false, false);
    if (strcmp(key, "failed") == 0)
        return parse_names(d, l, d->replies, false, true);
    if (strcmp(key, "request-body") == 0)
        return parse_body(d, l, d->requests);
    if (strcmp(key, "reply-body") == 0)
        return parse_body(d, l, d->replies);
    if (strcmp(key, "request-at") == 0)
        return parse_place(l, &d->request);
    if (strcmp(key, "reply-at") == 0)
        return parse_place(l, &d->reply);
    return nl_sections_error(l->sections, l->setting->line,
                             "unknown key \"%s\"; use port, frame, request, request-at, request-body, silent, reply, "
                             "reply-at, reply-body or failed",
                             key);
}

/* Returns the name of a key that the description lacks, or NULL. */
static const char *find_missing_key(const description *d)
{
    if (d->ports->len == 0)
        return "port";
    if (!d->has_frame)
        return "frame";
    if (d->is_line)
        return d->requests->len == 0 ? "request" : NULL;
    if (d->requests->len > 0 && d->request.size == 0)
        return "request-at";
    return d->replies->len > 0 && d->reply.size == 0 ? "reply-at" : NULL;
}

static bool parse_description(description *d, const nl_sections *sections, const nl_section *section)
{
    if (!is_name(section->name) || strchr(section->name, '#') != NULL || strlen(section->name) >= NAME_SIZE)
        return nl_sections_error(sections, section->line, "[protocol %s]: invalid name", section->name);
    g_strlcpy(d->name, section->name, sizeof d->name);
    for (size_t i = 0; i < section->setting_count; i++) {
        rules_line l = {.sections = sections, .setting = &section->settings[i]};
        if (!parse_setting(d, &l))
            return false;
    }
    const char *missing = find_missing_key(d);
    if (missing != NULL)
        return nl_sections_error(sections, section->line, "[protocol %s]: missing %s", section->name, missing);
    if (d->is_line && (d->request.size > 0 || d->reply.size > 0))
        return nl_sections_error(sections, section->line,
                                 "[protocol %s]: request-at and reply-at require frame = length", section->name);
    return true;
}

bool descriptions_add(descriptions *all, const nl_sections *sections)
{
    bool found = false;
    for (size_t i = 0; i < sections->count; i++) {
        if (strcmp(sections->list[i].kind, "protocol") != 0)
            continue;
        description *d = g_new0(description, 1);
        d->ports = g_array_new(FALSE, FALSE, sizeof(uint16_t));
        d->requests = g_array_new(FALSE, FALSE, sizeof(known_name));
        d->replies = g_array_new(FALSE, FALSE, sizeof(known_name));
        d->protocol = (protocol){.name = d->name, .object_field = "OBJECT", .description = d};
        g_ptr_array_add(all->list, d);
        if (!parse_description(d, sections, &sections->list[i]))
            return false;
        found = true;
    }
    return found || nl_error_false(NL_ERROR_INVALID, "%s: no section [protocol NAME]", sections->file);
}

/* ---- messages ---- */

/* Returns whether a word of a message has this name. */
static bool matches(const char *name, const char *word, size_t length)
{
    if (strlen(name) != length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (name[i] == '#' ? !isdigit((unsigned char)word[i])
                           : tolower((unsigned char)name[i]) != tolower((unsigned char)word[i]))
            return false;
    return true;
}

/* Returns the word with this index in a line, and sets *length. The first word has the index 1. Returns NULL if there
 * is no such word. */
static const char *find_word(const char *line, const char *end, unsigned index, size_t *length)
{
    while (line < end) {
        const char *begin = line;
        while (line < end && strchr(" \t\r\n", *line) == NULL)
            line++;
        if (--index == 0 && line > begin) {
            *length = (size_t)(line - begin);
            return begin;
        }
        while (line < end && (*line == ' ' || *line == '\t'))
            line++;
        if (index == 0 || line == end || *line == '\r' || *line == '\n')
            return NULL;
    }
    return NULL;
}

/* Returns the name that is the first word of a line, or NULL. If `cut` is true, - or : also ends the word, so that the
 * reply 250-text has the name 250. */
static const known_name *find_by_word(const GArray *names, const char *line, const char *end, bool cut)
{
    size_t length = 0;
    const char *word = find_word(line, end, 1, &length);
    for (guint i = 0; word != NULL && i < names->len; i++) {
        const known_name *n = &g_array_index(names, known_name, i);
        size_t size = strlen(n->name);
        bool is_cut = cut && length > size && (word[size] == '-' || word[size] == ':');
        if (matches(n->name, word, is_cut ? size : length))
            return n;
    }
    return NULL;
}

/* Returns the size in bytes of the message at the start of the data, or 0 if the size is unknown. The message consists
 * of a line and, if `n` has a body, the data whose length the line contains. */
static uint64_t measure_line_message(const known_name *n, const protocol_bytes *bytes)
{
    const char *end = bytes->captured > 0 ? memchr(bytes->data, '\n', bytes->captured) : NULL, *word;
    size_t length;
    if (end == NULL)
        return 0;
    uint64_t size = (uint64_t)(end + 1 - bytes->data), body = 0;
    if (n == NULL || n->body == 0)
        return size;
    if ((word = find_word(bytes->data, end, n->body, &length)) == NULL || length > 10)
        return 0;
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)word[i]))
            return 0;
        body = body * 10 + (uint64_t)(word[i] - '0');
    }
    return size + body + (end > bytes->data && end[-1] == '\r' ? 2 : 1);
}

static bool read_number_at(const description *d, number_place place, const protocol_bytes *bytes, uint64_t *number)
{
    *number = 0;
    if (place.size == 0 || (size_t)place.at + place.size > bytes->captured)
        return false;
    for (unsigned i = 0; i < place.size; i++) {
        unsigned at = d->is_big ? i : place.size - 1 - i;
        *number = *number << 8 | (unsigned char)bytes->data[place.at + at];
    }
    return true;
}

static const known_name *find_by_number(const description *d, const GArray *names, number_place place,
                                        const protocol_bytes *bytes)
{
    uint64_t number;
    return read_number_at(d, place, bytes, &number) ? find_number(names, number) : NULL;
}

/* Returns the size in bytes of the message at the start of the data, or 0 if the size is unknown. */
static uint64_t measure_frame_message(const description *d, const protocol_bytes *bytes)
{
    uint64_t length;
    if (!read_number_at(d, d->length, bytes, &length) || length > FRAME_MAX ||
        length + d->added < (uint64_t)d->length.at + d->length.size)
        return 0;
    return length + d->added;
}

bool description_read_request(const description *d, const protocol_bytes *bytes, protocol_request *request)
{
    const known_name *n = d->is_line ? find_by_word(d->requests, bytes->data, bytes->data + bytes->captured, false)
                                     : find_by_number(d, d->requests, d->request, bytes);
    uint64_t size = d->is_line ? measure_line_message(n, bytes) : measure_frame_message(d, bytes);
    if (size == 0 || (n == NULL && (d->is_line || d->requests->len > 0)))
        return false;
    if (n != NULL)
        g_strlcpy(request->verb, n->name, sizeof request->verb);
    request->several = bytes->size > size;
    request->silent = n != NULL && n->silent && !request->several;
    return true;
}

protocol_progress description_read_reply(const description *d, const protocol_bytes *bytes,
                                         const protocol_request *request, protocol_reply *reply)
{
    if (!reply->begun) {
        const known_name *n = d->is_line ? find_by_word(d->replies, bytes->data, bytes->data + bytes->captured, true)
                                         : find_by_number(d, d->replies, d->reply, bytes);
        reply->left = d->is_line ? measure_line_message(n, bytes) : measure_frame_message(d, bytes);
        reply->counted = reply->left > 0;
        reply->begun = true;
        reply->failed = n != NULL && n->failed;
        if (n != NULL) /* copy from the message, because a # in the name stands for a digit */
            protocol_copy_name(reply->status, sizeof reply->status, d->is_line ? bytes->data : n->name,
                               strlen(n->name));
    }
    if (!reply->counted || request->several)
        return PROTOCOL_UNKNOWN;
    if (reply->left < bytes->size)
        reply->counted = false; /* not complete, because unknown bytes follow the reply */
    reply->left -= MIN(reply->left, bytes->size);
    return !reply->counted ? PROTOCOL_UNKNOWN : reply->left == 0 ? PROTOCOL_COMPLETE : PROTOCOL_MORE;
}

const protocol *descriptions_find(const descriptions *all, uint16_t port, uint16_t other_port,
                                  const protocol_bytes *bytes, protocol_request *request)
{
    for (guint i = 0; all != NULL && i < all->list->len; i++) {
        const description *d = g_ptr_array_index(all->list, i);
        for (guint k = 0; k < d->ports->len; k++) {
            uint16_t at = g_array_index(d->ports, uint16_t, k);
            memset(request, 0, sizeof *request);
            if ((at == port || at == other_port) && description_read_request(d, bytes, request))
                return &d->protocol;
        }
    }
    memset(request, 0, sizeof *request);
    return NULL;
}
