#include "config.h"

#include "base/text.h"
#include "clocks/messages.h"

#include "base/hash_bytes.h"
#include "base/memory.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    MAX = 16 << 20, /* maximum number of messages; the module ignores the events of further messages */
    NONE = UINT32_MAX,
    STEM_SIZE = 256,
};

/* The role of an event in a message. The module determines it once for each event name. */
typedef enum side { NEITHER, SENT, RECEIVED } side;

typedef struct event_kind {
    side side;
    uint64_t pair; /* a hash that is equal for both events of a message */
} event_kind;

/* The send event and the receive event of a message. NONE stands for the host of an event that the log lacks. */
typedef struct half {
    uint64_t key; /* 0: unused */
    uint32_t from, to;
    int64_t sent_ns, received_ns;
} half;

struct messages {
    const correction_options *options;
    name_table events;
    event_kind *kinds; /* indexed by the event's number */
    size_t kind_capacity;
    half *halves;
    size_t count, capacity;
};

messages *messages_new(const correction_options *options)
{
    messages *m = nl_memory_check(calloc(1, sizeof *m));
    m->options = options;
    return m;
}

/* ---- events ---- */

/* A longer word precedes the words with which it begins, so that find_word finds the longer word. */
static const struct {
    const char *word;
    side side;
} verbs[] = {{"received", RECEIVED}, {"receive", RECEIVED}, {"recvd", RECEIVED}, {"recv", RECEIVED}, {"rcvd", RECEIVED},
             {"rcv", RECEIVED},      {"sending", SENT},     {"send", SENT},      {"sent", SENT},     {"snd", SENT}};

/* Finds the word of the list that occurs first in a name. Returns false if the name contains none of the words. */
static bool find_word(const char *name, size_t *at, size_t *size, side *what)
{
    for (*at = 0; name[*at] != '\0'; ++*at)
        for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
            if (strncasecmp(name + *at, verbs[i].word, strlen(verbs[i].word)) == 0) {
                *size = strlen(verbs[i].word);
                *what = verbs[i].side;
                return true;
            }
    return false;
}

/*
 * Returns the kind of the event with this name. The two events of a message have names that differ only in one of these
 * words.
 */
static event_kind kind_by_name(const char *name)
{
    size_t at, size;
    event_kind kind = {NEITHER, 0};
    if (strlen(name) >= STEM_SIZE || !find_word(name, &at, &size, &kind.side))
        return kind;
    char stem[STEM_SIZE];
    size_t length = 0;
    for (size_t i = 0; name[i] != '\0'; i++)
        if (i < at || i >= at + size)
            stem[length++] = (char)tolower((unsigned char)name[i]);
    kind.pair = hash_bytes(1 + at, stem, length);
    return kind;
}

bool messages_is_pair(const char *sent, const char *received)
{
    event_kind first = kind_by_name(sent), second = kind_by_name(received);
    return first.side == SENT && second.side == RECEIVED && first.pair == second.pair;
}

static event_kind kind_of(const correction_options *options, const char *name)
{
    if (options->message_count == 0)
        return kind_by_name(name);
    for (size_t i = 0; i < options->message_count; i++) {
        if (strcmp(name, options->messages[i].sent) == 0)
            return (event_kind){SENT, i};
        if (strcmp(name, options->messages[i].received) == 0)
            return (event_kind){RECEIVED, i};
    }
    return (event_kind){NEITHER, 0};
}

static event_kind look_up(messages *m, nl_string event)
{
    size_t known = name_table_find(&m->events, event);
    if (known != NAME_NONE)
        return m->kinds[known];
    size_t number = name_table_add(&m->events, event);
    NL_ARRAY_GROW(m->kinds, number, m->kind_capacity);
    return m->kinds[number] = kind_of(m->options, m->events.texts[number]);
}

/* ---- IDs ---- */

/*
 * Returns whether a field is an ID by its name, such as BLOCK.ID, block_id or requestId. IDs that are local to a host,
 * such as process IDs, do not count.
 */
static bool is_id_by_name(nl_string name)
{
    static const char *const of_hosts[] = {"PID", "TID", "UID", "GID", "PPID", "TGID"};
    const char *end = name.data + name.size;
    for (size_t i = 0; i < sizeof of_hosts / sizeof of_hosts[0]; i++)
        if (name.size >= strlen(of_hosts[i]) &&
            strncasecmp(end - strlen(of_hosts[i]), of_hosts[i], strlen(of_hosts[i])) == 0)
            return false;
    if (nl_string_is(name, "SEQ") || nl_string_is(name, "id"))
        return true;
    return name.size >= 2 && (memcmp(end - 2, "ID", 2) == 0 || memcmp(end - 2, "Id", 2) == 0 ||
                              (name.size >= 3 && memcmp(end - 2, "id", 2) == 0 && strchr("._-", end[-3]) != NULL));
}

static bool is_id(const correction_options *options, nl_string name)
{
    for (size_t i = 0; i < options->id_count; i++)
        if (nl_string_is(name, options->ids[i]))
            return true;
    return options->id_count == 0 && is_id_by_name(name);
}

/*
 * Adds a hash of the IDs of a record, in any order, to *hash. Returns false if the record has no ID, or lacks one of
 * the IDs in the options.
 */
static bool hash_ids(const correction_options *options, const nl_record *record, uint64_t *hash)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    size_t found = 0;
    for (size_t i = 0; i < record->field_count; i++) {
        const nl_field *field = &record->fields[i];
        if (!is_id(options, field->name))
            continue;
        nl_string text = nl_field_text(field, scratch);
        *hash += hash_bytes(hash_bytes(2, field->name.data, field->name.size), text.data, text.size);
        found++;
    }
    return options->id_count > 0 ? found == options->id_count : found > 0;
}

/* ---- halves ---- */

static size_t messages_place_of(const messages *m, uint64_t key)
{
    return hash_mix(key, UINT64_C(0x9e3779b97f4a7c15)) & (m->capacity - 1);
}

static void messages_grow(messages *m)
{
    messages bigger = {.capacity = m->capacity == 0 ? 1024 : 2 * m->capacity};
    bigger.halves = nl_memory_check(calloc(bigger.capacity, sizeof *bigger.halves));
    for (size_t i = 0; i < m->capacity; i++) {
        if (m->halves[i].key == 0)
            continue;
        size_t at = messages_place_of(&bigger, m->halves[i].key);
        while (bigger.halves[at].key != 0)
            at = (at + 1) & (bigger.capacity - 1);
        bigger.halves[at] = m->halves[i];
    }
    free(m->halves);
    m->halves = bigger.halves;
    m->capacity = bigger.capacity;
}

/*
 * Adds the sending or the receipt of a message. If a message is repeated, keeps the earliest times, because the first
 * received copy cannot have been sent before the first sent copy. If several hosts sent or received the message, makes
 * the message unusable.
 */
static void messages_note(half *h, side side, uint32_t host, int64_t time_ns)
{
    uint32_t *known = side == SENT ? &h->from : &h->to;
    int64_t *time = side == SENT ? &h->sent_ns : &h->received_ns;
    if (*known == NONE || (*known == host && time_ns < *time))
        *time = time_ns;
    if (*known != NONE && *known != host)
        h->from = h->to = host; /* the message is from a host to itself, so messages_next ignores it */
    else
        *known = host;
}

void messages_put(messages *m, const nl_record *record, uint32_t host)
{
    event_kind kind = look_up(m, record->event);
    uint64_t key = kind.pair;
    if (kind.side == NEITHER || !hash_ids(m->options, record, &key))
        return;
    key = key == 0 ? 1 : key;
    if (m->count < MAX && 2 * (m->count + 1) > m->capacity)
        messages_grow(m);
    size_t at = messages_place_of(m, key);
    while (m->halves[at].key != 0 && m->halves[at].key != key)
        at = (at + 1) & (m->capacity - 1);
    if (m->halves[at].key == 0) {
        if (m->count >= MAX)
            return;
        m->halves[at] = (half){.key = key, .from = NONE, .to = NONE};
        m->count++;
    }
    messages_note(&m->halves[at], kind.side, host, record->time_ns);
}

bool messages_next(const messages *m, size_t *at, message *found)
{
    for (; *at < m->capacity; ++*at) {
        const half *h = &m->halves[*at];
        if (h->key == 0 || h->from == NONE || h->to == NONE || h->from == h->to)
            continue;
        *found = (message){h->from, h->to, h->sent_ns, h->received_ns};
        ++*at;
        return true;
    }
    return false;
}

void messages_free(messages *m)
{
    name_table_free(&m->events);
    free(m->kinds);
    free(m->halves);
    free(m);
}
