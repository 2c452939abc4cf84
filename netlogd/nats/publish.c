/*
 * Output to NATS JetStream: publishes the spool's records in messages, and waits until the messages are acknowledged.
 *
 * The module sends the messages of a shard in order. It sends at most WINDOW messages, beginning with the first
 * unacknowledged message. If a message must be sent again, fewer than WINDOW other messages have therefore overtaken
 * it. In each stream, readers have space for more than WINDOW gaps (NL_STREAM_GAPS_OWN).
 *
 * The ID of a message consists of the stream and the numbers of its records, so that the servers drop repeated messages
 * within their duplicate window. Readers recognize later repetitions by the numbers in their journals.
 */
#include "config.h"

#include "base/memory.h"
#include "base/monotonic.h"
#include "cut.h"
#include "link.h"

#include "base/error.h"
#include "base/text.h"
#include "output/kind.h"
#include "output/options.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    WINDOW = 16, /* maximum number of messages that are sent but not acknowledged; even if every second message fails,
                    readers have fewer than NL_STREAM_GAPS_OWN gaps */
    MESSAGES_MAX = 2048,  /* maximum number of messages of one delivery, not counting further parts of its last block */
    BYTES_MAX = 8 << 20,  /* maximum number of bytes of one delivery, not counting further parts of its last block */
    TOGETHER = 256 << 10, /* maximum size in bytes of a message that contains several blocks */
    HEADERS = 1 << 10,    /* maximum size in bytes of a message's headers */
    NO_LEADER_MS = 100,   /* delay before another attempt */
    ANSWER_MS = 125,
    SILENCE_MS = 2000,   /* time without a reply after which all messages are sent again */
    PATIENCE_MS = 10000, /* time without a reply after which delivery fails */
};

#define HASH_BEGIN 0xcbf29ce484222325u

typedef enum message_state { WAITING, SENT, AGAIN, STORED } message_state;

typedef struct message {
    nl_buffer data, subject;
    char id[96];
    bool marked;   /* the stream and the numbers alone do not identify the content */
    uint64_t mark; /* hash of the content, which is part of the ID if `marked` is set */
    unsigned shard;
    unsigned place; /* index among the messages of its shard */
    message_state state;
} message;

/* The end of a block or of a part of a block, and the message that contains this block or part. */
typedef struct piece {
    size_t end;
    size_t message;
} piece;

typedef struct publisher {
    nats_place *place;
    nats_link *link;
    natsSubscription *answers;
    char *inbox;
    int zstd_level;
    size_t message_size_max; /* maximum size of a message in bytes */

    message *messages;
    size_t message_count, message_capacity;
    piece *pieces;
    size_t piece_count, piece_capacity;
    size_t bytes;
    size_t open[NATS_SHARDS_MAX];    /* for each shard, the index of the message to which blocks can be added, plus 1 */
    unsigned count[NATS_SHARDS_MAX]; /* number of messages of each shard */

    /* These members, and the states of messages, are shared with libnats' threads: */
    pthread_mutex_t mutex;
    pthread_cond_t answered;
    uint64_t round; /* number of the delivery; the module ignores replies with other numbers */
    size_t stored;
    size_t wanted; /* number of stored messages at which the delivery continues */
    bool no_leader;
    int64_t answered_ms; /* time at which a message was last stored */
    int64_t sent_ms;     /* time at which all messages were last sent again */
    char refused[256];
} publisher;

/* ---- messages ---- */

static void *publish_grow(void *array, size_t *capacity, size_t count, size_t size)
{
    if (count < *capacity)
        return array;
    size_t more = *capacity == 0 ? 64 : *capacity * 2;
    array = nl_memory_check(realloc(array, more * size));
    memset((char *)array + *capacity * size, 0, (more - *capacity) * size);
    *capacity = more;
    return array;
}

/* FNV-1a, not base/hash_bytes.h, because all versions on all processors must choose the same shard. */
static uint64_t hash_of(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

/* Returns the shard of a stream, which is the same for all publishers. */
static unsigned shard_of(const publisher *p, const unsigned char stream[16])
{
    uint64_t hash = hash_of(HASH_BEGIN, stream, 16);
    return (unsigned)((hash ^ hash >> 32) % p->link->shards);
}

static size_t add_message(publisher *p, const nats_cut *cut, unsigned shard)
{
    p->messages = publish_grow(p->messages, &p->message_capacity, p->message_count, sizeof *p->messages);
    static const unsigned char none[sizeof cut->stream];
    message *m = &p->messages[p->message_count];
    m->data.size = m->subject.size = 0; /* keep the memory of an earlier message */
    m->shard = shard;
    m->place = p->count[shard]++;
    m->state = WAITING;
    m->mark = HASH_BEGIN;
    m->marked = p->place->by_shard || memcmp(cut->stream, none, sizeof none) == 0;
    char end[16], *at = m->id;
    for (int i = 0; i < 16; i++)
        at += sprintf(at, "%02x", cut->stream[i]);
    snprintf(at, 48, "-%llu-%llu", (unsigned long long)cut->first, (unsigned long long)cut->count);
    nl_buffer_append_text(&m->subject, p->place->subject);
    nl_buffer_append_text(&m->subject, cut->subject);
    nl_buffer_append(&m->subject, end, (size_t)snprintf(end, sizeof end, ".%u", shard + 1) + 1);
    return p->message_count++;
}

/* Returns the message for a cut: a new message or, with messages=shard, a message that has space left. */
static size_t message_for(publisher *p, const nats_cut *cut, unsigned shard)
{
    size_t open = p->place->by_shard ? p->open[shard] : 0;
    size_t maximum = p->message_size_max < TOGETHER ? p->message_size_max : TOGETHER;
    if (open == 0 || p->messages[open - 1].data.size + cut->bytes.size > maximum)
        open = add_message(p, cut, shard) + 1;
    p->open[shard] = open;
    return open - 1;
}

static bool publish_add_cut(void *user, const nats_cut *cut)
{
    publisher *p = user;
    unsigned shard = shard_of(p, cut->stream);
    size_t at = message_for(p, cut, shard);
    message *m = &p->messages[at];
    nl_buffer_append(&m->data, cut->bytes.data, cut->bytes.size);
    if (m->marked)
        m->mark = hash_of(m->mark, cut->bytes.data, cut->bytes.size);
    p->pieces = publish_grow(p->pieces, &p->piece_capacity, p->piece_count, sizeof *p->pieces);
    p->pieces[p->piece_count++] = (piece){.end = cut->end, .message = at};
    p->bytes += cut->bytes.size;
    return p->message_count < MESSAGES_MAX && p->bytes < BYTES_MAX;
}

static void clear(publisher *p)
{
    p->message_count = p->piece_count = p->bytes = 0;
    memset(p->open, 0, sizeof p->open);
    memset(p->count, 0, sizeof p->count);
    p->round++;
    p->stored = 0;
    p->no_leader = false;
    p->refused[0] = '\0';
    p->answered_ms = p->sent_ms = nl_monotonic_ms();
}

/* Returns the number of bytes that are stored permanently. `all` is the size of all cuts. */
static size_t stored_bytes(const publisher *p, size_t all)
{
    size_t done = 0;
    for (size_t i = 0; i < p->piece_count; i++) {
        if (p->messages[p->pieces[i].message].state != STORED)
            return done;
        bool last = i + 1 == p->piece_count || p->pieces[i + 1].end != p->pieces[i].end;
        done = last ? p->pieces[i].end : done;
    }
    return all;
}

/* ---- replies ---- */

/* Stores the "description" of a JetStream error, or the whole text if the error has no description. */
static void keep_refusal(publisher *p, const char *text, size_t size)
{
    static const char name[] = "\"description\":\"";
    const char *found = memmem(text, size, name, sizeof name - 1);
    const char *from = found != NULL ? found + sizeof name - 1 : text;
    const char *to = found != NULL ? memchr(from, '"', (size_t)(text + size - from)) : NULL;
    snprintf(p->refused, sizeof p->refused, "%.*s", (int)((to != NULL ? to : text + size) - from), from);
}

/* Notes whether the server has stored a message, according to its reply. */
static void note_answer(publisher *p, message *m, natsMsg *answer)
{
    const char *text = natsMsg_GetData(answer);
    size_t size = (size_t)natsMsg_GetDataLength(answer);
    if (m->state == STORED)
        return;
    if (natsMsg_IsNoResponders(answer)) {
        m->state = AGAIN;
        p->no_leader = true;
    } else if (memmem(text, size, "\"error\"", 7) != NULL) {
        m->state = AGAIN;
        keep_refusal(p, text, size);
    } else {
        m->state = STORED;
        p->stored++;
        p->answered_ms = nl_monotonic_ms();
    }
}

static void on_answer(natsConnection *connection, natsSubscription *subscription, natsMsg *answer, void *user)
{
    (void)connection, (void)subscription;
    publisher *p = user;
    unsigned long long round, at;
    const char *behind = natsMsg_GetSubject(answer) + strlen(p->inbox);
    if (sscanf(behind, ".%llu.%llu", &round, &at) == 2) {
        pthread_mutex_lock(&p->mutex);
        if (round == p->round && at < p->message_count)
            note_answer(p, &p->messages[at], answer);
        if (p->stored >= p->wanted || p->refused[0] != '\0')
            pthread_cond_signal(&p->answered);
        pthread_mutex_unlock(&p->mutex);
    }
    natsMsg_Destroy(answer);
}

/* ---- sending ---- */

static natsStatus send(publisher *p, size_t at)
{
    message *m = &p->messages[at];
    char reply[128], id[128];
    natsMsg *sent = NULL;
    if (m->marked)
        snprintf(id, sizeof id, "%s-%llx", m->id, (unsigned long long)m->mark);
    else
        snprintf(id, sizeof id, "%s", m->id);
    snprintf(reply, sizeof reply, "%s.%llu.%zu", p->inbox, (unsigned long long)p->round, at);
    natsStatus status = natsMsg_Create(&sent, m->subject.data, reply, m->data.data, (int)m->data.size);
    if (status == NATS_OK)
        status = natsMsgHeader_Set(sent, "Nats-Msg-Id", id);
    if (status == NATS_OK)
        status = natsConnection_PublishMsg(p->link->connection, sent);
    natsMsg_Destroy(sent);
    return status;
}

/* Marks the messages that may be sent now as sent, and writes their indices to `chosen`. Returns their number. */
static size_t choose(publisher *p, size_t chosen[MESSAGES_MAX])
{
    bool broken[NATS_SHARDS_MAX] = {false};
    unsigned stored[NATS_SHARDS_MAX] = {0};
    size_t count = 0;
    for (size_t i = 0; i < p->message_count && count < MESSAGES_MAX; i++) {
        message *m = &p->messages[i];
        broken[m->shard] = broken[m->shard] || m->state != STORED;
        stored[m->shard] += !broken[m->shard];
        if ((m->state == WAITING || m->state == AGAIN) && m->place < stored[m->shard] + WINDOW) {
            m->state = SENT;
            chosen[count++] = i;
        }
    }
    return count;
}

/* Marks the messages without a reply, so that the module sends them again. */
static void publish_mark_unanswered(publisher *p)
{
    for (size_t i = 0; i < p->message_count; i++)
        if (p->messages[i].state == SENT)
            p->messages[i].state = AGAIN;
    p->sent_ms = nl_monotonic_ms();
}

static bool any_sent(const publisher *p)
{
    for (size_t i = 0; i < p->message_count; i++)
        if (p->messages[i].state == SENT)
            return true;
    return false;
}

static nl_status send_chosen(publisher *p)
{
    size_t chosen[MESSAGES_MAX], count = choose(p, chosen);
    natsStatus status = NATS_OK;
    pthread_mutex_unlock(&p->mutex);
    for (size_t i = 0; i < count && status == NATS_OK; i++)
        status = send(p, chosen[i]);
    pthread_mutex_lock(&p->mutex);
    return status == NATS_OK ? NL_OK : nats_failure(p->place->name, status, 0);
}

/* Waits until about half a window of messages is acknowledged, but for at most an eighth of a second. */
static void wait_for_answers(publisher *p)
{
    struct timespec until = nl_monotonic_in_ms(p->no_leader ? NO_LEADER_MS : ANSWER_MS);
    p->no_leader = false;
    p->wanted = p->stored + WINDOW / 2 < p->message_count ? p->stored + WINDOW / 2 : p->message_count;
    int result = p->stored < p->message_count ? 0 : ETIMEDOUT;
    while (result == 0) {
        result = pthread_cond_timedwait(&p->answered, &p->mutex, &until);
        if (p->stored >= p->wanted || p->refused[0] != '\0')
            break;
    }
}

/* Publishes all messages. The caller holds the mutex. */
static nl_status publish_all(publisher *p)
{
    while (p->stored < p->message_count) {
        int64_t now = nl_monotonic_ms();
        if (p->refused[0] != '\0' && !any_sent(p))
            return nl_error_set(NL_ERROR_UNREACHABLE, "%s: %s", p->place->name, p->refused);
        if (now - p->answered_ms > PATIENCE_MS)
            return nl_error_set(NL_ERROR_UNREACHABLE,
                                "%s: no reply to published messages; does the stream have a leader?", p->place->name);
        if (now - p->answered_ms > SILENCE_MS && now - p->sent_ms > SILENCE_MS)
            publish_mark_unanswered(p);
        if (p->refused[0] == '\0' && send_chosen(p) != NL_OK)
            return NL_FAILED;
        wait_for_answers(p);
    }
    return NL_OK;
}

/* ---- the kind of output ---- */

static nl_status deliver(void *peer, const char *data, size_t size, output_place place, output_delivered *done)
{
    (void)place;
    publisher *p = peer;
    pthread_mutex_lock(&p->mutex);
    clear(p);
    nats_cutter cutter = {.whole = p->place->by_shard,
                          .message_size_max = p->message_size_max,
                          .zstd_level = p->zstd_level,
                          .take = publish_add_cut,
                          .user = p};
    size_t all = nats_cut_blocks(&cutter, data, size);
    nl_status status = publish_all(p);
    done->taken = stored_bytes(p, all);
    clear(p); /* removes the messages, so that late replies have no effect */
    pthread_mutex_unlock(&p->mutex);
    return status;
}

static nl_status check(const nl_url *url, const output_options *options)
{
    (void)options;
    nats_place *place = nats_place_read(url, true);
    nats_place_free(place);
    return place != NULL ? NL_OK : NL_FAILED;
}

static void close_publisher(void *peer)
{
    publisher *p = peer;
    nats_subscription_end(p->answers);
    nats_link_close(p->link);
    for (size_t i = 0; i < p->message_capacity; i++) {
        nl_buffer_free(&p->messages[i].data);
        nl_buffer_free(&p->messages[i].subject);
    }
    free(p->messages);
    free(p->pieces);
    natsInbox_Destroy(p->inbox);
    nats_place_free(p->place);
    pthread_cond_destroy(&p->answered);
    pthread_mutex_destroy(&p->mutex);
    free(p);
}

static nl_status listen_for_answers(publisher *p)
{
    char subject[128];
    natsStatus status = natsInbox_Create(&p->inbox);
    if (status == NATS_OK) {
        snprintf(subject, sizeof subject, "%s.*.*", p->inbox);
        status = natsConnection_Subscribe(&p->answers, p->link->connection, subject, on_answer, p);
    }
    int64_t maximum = status == NATS_OK ? natsConnection_GetMaxPayload(p->link->connection) : 0;
    p->message_size_max = maximum > 2 * HEADERS ? (size_t)maximum - HEADERS : HEADERS;
    return status == NATS_OK ? NL_OK : nats_failure(p->place->name, status, 0);
}

static void *open_publisher(const output_options *options)
{
    nats_place *place = nats_place_read(options->url, true);
    if (place == NULL)
        return NULL;
    publisher *p = nl_memory_check(calloc(1, sizeof *p));
    p->place = place;
    p->zstd_level = options->zstd_level;
    nl_monotonic_cond_init(&p->answered);
    pthread_mutex_init(&p->mutex, NULL);
    bool wrong;
    p->link = nats_link_open(place, NULL, NULL, &wrong);
    if (p->link != NULL && nats_link_find_streams(p->link, &wrong) == NL_OK && listen_for_answers(p) == NL_OK)
        return p;
    close_publisher(p);
    return NULL;
}

static const nl_url_rows nats_tables[] = {{nats_rows, NULL}, {nats_output_rows, NULL}, {0}};

const output_kind output_kind_nats = {.name = "nats",
                                      .format = NL_FORMAT_NLB,
                                      .numbered = true,
                                      .tables = nats_tables,
                                      .check = check,
                                      .open = open_publisher,
                                      .deliver = deliver,
                                      .close = close_publisher};
