#include "config.h"

#include "intake.h"

#include "base/monotonic.h"
#include "base/thread.h"
#include "link.h"

#include "base/error.h"
#include "program/program.h"
#include "base/memory.h"
#include "base/text.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum {
    ACK_WAIT_S = 10,
    IN_PROGRESS_MS = 3000,
    ASK_FOR = 64,           /* number of messages per request */
    ASK_BYTES = 4 << 20,    /* maximum number of bytes per request */
    HERE_MAX = 3 * ASK_FOR, /* maximum number of a shard's messages that the intake has or has requested */
    REQUESTS = 2,           /* maximum number of open requests for a shard */
    REQUEST_S = 5,          /* lifetime of a request */
    REQUEST_LATE_MS = 1500, /* after a request's lifetime, maximum time to wait for the server's report of its end */
    PENDING_MAX = 4096,     /* maximum number of unacknowledged messages of a shard */
    OTHERS_MS = 300,        /* time to wait for replies of other readers */
    RETRY_MS = 1000,
    TURN_MS = 250,
    ID_SIZE = 33,
};

#define QUESTION "netlogd-reads" /* followed by .STREAM.DURABLE */

struct nats_message {
    nats_message *next;
    natsMsg *msg;
    unsigned shard;
    uint64_t number; /* the message's sequence number in its JetStream stream */
    bool again;
    bool refused;       /* NATS must deliver the message again */
    int64_t touched_ms; /* time of the latest report to JetStream that the message is in progress */
};

typedef struct message_list {
    nats_message *first, **end;
    size_t count;
} message_list;

/* A request for messages to which the server may still reply. */
typedef struct pull_state {
    unsigned left; /* number of messages that may still arrive; 0: no request */
    unsigned number;
    int64_t until_ms;
} pull_state;

typedef struct shard {
    char stream[NATS_NAME_SIZE];
    bool begun;       /* the shard's consumer exists */
    int64_t from_ms;  /* the shard is not examined before this time */
    int64_t until_ms; /* end of the wait for messages that other readers have not acknowledged; 0: no wait */
    pull_state asked[REQUESTS];
    unsigned requests;
    size_t here;
} shard;

/* A request for messages that the thread has not sent yet. */
typedef struct pull_request {
    unsigned shard, number;
} pull_request;

/* The reports and requests that the thread sends in one turn. */
typedef struct turn_output {
    nats_message **late; /* messages in progress */
    size_t late_count;
    pull_request *requests;
    size_t request_count;
} turn_output;

struct nats_intake {
    nats_place *place;
    int wake;
    pthread_t thread;
    char id[ID_SIZE]; /* identifies this netlogd among the readers */

    /* Only the thread uses these members: */
    nats_link *link;
    natsSubscription *messages, *questions, *others;
    char *inbox;
    size_t ask_bytes;
    bool known; /* the streams are known */
    bool alone; /* no other netlogd reads the streams */

    /* These members are shared: */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned changes; /* number of calls of wake_thread; a different number reveals changes made while the mutex was
                         released */
    shard *shards;    /* NULL: not known yet */
    unsigned shard_count;
    message_list waiting, taken, settled;
    bool stop;
    bool reconnected;
    bool other_reads; /* another reader has replied */
    nats_intake_state state;
};

/* ---- lists ---- */

static void list_init(message_list *list)
{
    *list = (message_list){.end = &list->first};
}

static void list_add(message_list *list, nats_message *m)
{
    m->next = NULL;
    *list->end = m;
    list->end = &m->next;
    list->count++;
}

static nats_message *list_take(message_list *list)
{
    nats_message *m = list->first;
    if (m == NULL)
        return NULL;
    list->first = m->next;
    list->count--;
    if (list->first == NULL)
        list->end = &list->first;
    return m;
}

static void list_move(message_list *from, message_list *to)
{
    if (from->first == NULL)
        return;
    *to->end = from->first;
    to->end = from->end;
    to->count += from->count;
    list_init(from);
}

static void free_message(nats_message *m)
{
    natsMsg_Destroy(m->msg);
    free(m);
}

/* ---- callbacks from libnats' threads ---- */

static void wake(nats_intake *in)
{
    uint64_t one = 1;
    if (write(in->wake, &one, sizeof one) < 0 && errno != EAGAIN)
        program_error("eventfd: %s", strerror(errno));
}

/* Wakes the thread. The caller holds the mutex. */
static void wake_thread(nats_intake *in)
{
    in->changes++;
    pthread_cond_signal(&in->changed);
}

/* Sets the problem to this thread's error, or clears the problem if the status is NL_OK. The caller holds the mutex. */
static void set_problem(nats_intake *in, nl_status status)
{
    nl_error now = {.code = NL_ERROR_NONE};
    if (status != NL_OK)
        nl_error_save(&now);
    bool is_new = in->state.problem.code != now.code;
    in->state.problem = now;
    if (is_new)
        wake(in);
}

/* Called when a server reports the end of a request, on the subject INBOX.SHARD.NUMBER. */
static void end_request(nats_intake *in, natsMsg *msg)
{
    unsigned at, number;
    const char *status = "";
    natsMsgHeader_Get(msg, "Status", &status);
    if (sscanf(natsMsg_GetSubject(msg) + strlen(in->inbox), ".%u.%u", &at, &number) != 2 || at >= in->shard_count)
        return;
    shard *s = &in->shards[at];
    for (int i = 0; i < REQUESTS; i++)
        if (s->asked[i].number == number)
            s->asked[i].left = 0;
    if (strcmp(status, "408") == 0)
        return;
    const char *description = "";
    natsMsgHeader_Get(msg, "Description", &description);
    if (strcasestr(description, "MaxBytes") != NULL)
        return;
    /* The consumer or its leader no longer exists, so the thread must find the consumer again. */
    s->begun = false;
    s->from_ms = nl_monotonic_ms() + RETRY_MS;
}

/* Returns the shard of a message. `stream` is the name of the message's stream. */
static shard *shard_of(nats_intake *in, const char *stream)
{
    for (unsigned i = 0; i < in->shard_count; i++)
        if (strcmp(in->shards[i].stream, stream) == 0)
            return &in->shards[i];
    return NULL;
}

static void count_arrival(shard *s)
{
    pull_state *first = &s->asked[0];
    for (int i = 1; i < REQUESTS; i++)
        if (first->left == 0 || (s->asked[i].left > 0 && s->asked[i].number < first->number))
            first = &s->asked[i];
    first->left -= first->left > 0;
    s->here++;
}

static void add_message(nats_intake *in, natsMsg *msg, const jsMsgMetaData *about)
{
    shard *s = shard_of(in, about->Stream);
    nats_message *m = s != NULL ? calloc(1, sizeof *m) : NULL;
    if (m == NULL) {
        natsMsg_Destroy(msg);
        return;
    }
    *m = (nats_message){.msg = msg,
                        .shard = (unsigned)(s - in->shards),
                        .number = about->Sequence.Stream,
                        .again = about->NumDelivered > 1,
                        .touched_ms = nl_monotonic_ms()};
    count_arrival(s);
    if (in->waiting.count == 0)
        wake(in);
    list_add(&in->waiting, m);
}

static void on_message(natsConnection *connection, natsSubscription *subscription, natsMsg *msg, void *user)
{
    (void)connection, (void)subscription;
    nats_intake *in = user;
    jsMsgMetaData *about = NULL;
    bool ours = strncmp(natsMsg_GetSubject(msg), in->inbox, strlen(in->inbox)) == 0;
    if (!ours && natsMsg_GetMetaData(&about, msg) != NATS_OK) {
        natsMsg_Destroy(msg); /* the message is not from JetStream */
        return;
    }
    pthread_mutex_lock(&in->mutex);
    if (ours)
        end_request(in, msg);
    else
        add_message(in, msg, about);
    wake_thread(in);
    pthread_mutex_unlock(&in->mutex);
    if (ours)
        natsMsg_Destroy(msg);
    jsMsgMetaData_Destroy(about);
}

static void on_reconnected(natsConnection *connection, void *user)
{
    (void)connection;
    nats_intake *in = user;
    pthread_mutex_lock(&in->mutex);
    in->reconnected = true;
    wake_thread(in);
    pthread_mutex_unlock(&in->mutex);
}

/* Returns whether a question concerns a shard that this netlogd reads, or is about to read. */
static bool is_ours(nats_intake *in, const char *subject)
{
    char stream[NATS_NAME_SIZE] = "";
    sscanf(subject, QUESTION ".%127[^.]", stream);
    shard *s = shard_of(in, stream);
    return s != NULL && nats_place_has_share(in->place, (unsigned)(s - in->shards));
}

/*
 * Replies to another netlogd that asks whether a shard has a reader. If both are about to read the shard, the netlogd
 * with the lower ID becomes its reader.
 */
static void on_question(natsConnection *connection, natsSubscription *subscription, natsMsg *msg, void *user)
{
    (void)subscription;
    nats_intake *in = user;
    char asker[ID_SIZE];
    snprintf(asker, sizeof asker, "%.*s", natsMsg_GetDataLength(msg), natsMsg_GetData(msg));
    int order = strcmp(in->id, asker);
    pthread_mutex_lock(&in->mutex);
    bool answers = order != 0 && (in->alone || order < 0) && is_ours(in, natsMsg_GetSubject(msg));
    pthread_mutex_unlock(&in->mutex);
    if (answers && natsMsg_GetReply(msg) != NULL)
        natsConnection_PublishString(connection, natsMsg_GetReply(msg), in->id);
    natsMsg_Destroy(msg);
}

static void on_other(natsConnection *connection, natsSubscription *subscription, natsMsg *msg, void *user)
{
    (void)connection, (void)subscription;
    nats_intake *in = user;
    pthread_mutex_lock(&in->mutex);
    in->other_reads = in->other_reads || !natsMsg_IsNoResponders(msg);
    pthread_mutex_unlock(&in->mutex);
    natsMsg_Destroy(msg);
}

/* ---- the thread: start ---- */

/* Waits for a change. The caller holds the mutex. */
static void wait_a_while(nats_intake *in, int milliseconds)
{
    struct timespec until = nl_monotonic_in_ms(milliseconds);
    if (!in->stop)
        pthread_cond_timedwait(&in->changed, &in->mutex, &until);
}

static void pause_for(nats_intake *in, int milliseconds)
{
    int64_t end = nl_monotonic_ms() + milliseconds;
    pthread_mutex_lock(&in->mutex);
    while (!in->stop && nl_monotonic_ms() < end)
        wait_a_while(in, (int)(end - nl_monotonic_ms()) + 1);
    pthread_mutex_unlock(&in->mutex);
}

static natsStatus subscribe(nats_intake *in)
{
    char subject[NATS_NAME_SIZE];
    natsConnection *c = in->link->connection;
    natsStatus status = natsInbox_Create(&in->inbox);
    if (status == NATS_OK) {
        snprintf(subject, sizeof subject, "%s.*.*", in->inbox);
        status = natsConnection_Subscribe(&in->messages, c, subject, on_message, in);
    }
    if (status == NATS_OK) {
        natsSubscription_SetPendingLimits(in->messages, -1,
                                          -1); /* no limit here, because the requests limit the number of messages */
        snprintf(subject, sizeof subject, "%s.others", in->inbox);
        status = natsConnection_Subscribe(&in->others, c, subject, on_other, in);
    }
    int64_t maximum = natsConnection_GetMaxPayload(c) + (64 << 10);
    in->ask_bytes = maximum > ASK_BYTES ? (size_t)maximum : ASK_BYTES;
    return status;
}

static void disconnect(nats_intake *in)
{
    nats_subscription_end(in->messages);
    nats_subscription_end(in->questions);
    nats_subscription_end(in->others);
    in->messages = in->questions = in->others = NULL;
    nats_link_close(in->link);
    in->link = NULL;
    natsInbox_Destroy(in->inbox);
    in->inbox = NULL;
    in->known = in->alone = false;
}

static nl_status intake_connect_to(nats_intake *in)
{
    bool refused;
    in->link = nats_link_open(in->place, on_reconnected, in, &refused);
    if (in->link == NULL)
        return NL_FAILED;
    natsStatus status = subscribe(in);
    if (status == NATS_OK)
        return NL_OK;
    nats_failure(in->place->name, status, 0);
    disconnect(in);
    return NL_FAILED;
}

static nl_status find_shards(nats_intake *in)
{
    bool wrong;
    if (nats_link_find_streams(in->link, &wrong) != NL_OK)
        return NL_FAILED;
    unsigned count = in->link->shards;
    if (in->shards != NULL && count != in->shard_count)
        return nl_error_set(NL_ERROR_UNREACHABLE, "%s: the stream now has %u shard%s instead of %u; restart netlogd",
                            in->place->name, count, nl_plural(count), in->shard_count);
    if (in->shards == NULL) {
        shard *shards = nl_memory_check(calloc(count, sizeof *shards));
        for (unsigned i = 0; i < count; i++)
            nats_stream_name(in->place, i, count, shards[i].stream);
        pthread_mutex_lock(&in->mutex);
        in->shards = shards;
        in->shard_count = count;
        pthread_mutex_unlock(&in->mutex);
    }
    in->known = true;
    return NL_OK;
}

/* Asks whether another netlogd reads a shard of this share. */
static nl_status find_others(nats_intake *in)
{
    char subject[2 * NATS_NAME_SIZE], reply[NATS_NAME_SIZE];
    natsConnection *c = in->link->connection;
    natsStatus status = NATS_OK;
    snprintf(subject, sizeof subject, QUESTION ".*.%s", in->place->durable);
    if (in->questions == NULL)
        status = natsConnection_Subscribe(&in->questions, c, subject, on_question, in);
    pthread_mutex_lock(&in->mutex);
    in->other_reads = false;
    pthread_mutex_unlock(&in->mutex);
    snprintf(reply, sizeof reply, "%s.others", in->inbox);
    for (unsigned i = 0; i < in->shard_count && status == NATS_OK; i++) {
        if (!nats_place_has_share(in->place, i))
            continue;
        snprintf(subject, sizeof subject, QUESTION ".%s.%s", in->shards[i].stream, in->place->durable);
        status = natsConnection_PublishRequestString(c, subject, reply, in->id);
    }
    if (status == NATS_OK)
        status = natsConnection_FlushTimeout(c, RETRY_MS);
    if (status != NATS_OK)
        return nats_failure(in->place->name, status, 0);
    pause_for(in, OTHERS_MS);
    pthread_mutex_lock(&in->mutex);
    in->alone = !in->other_reads;
    pthread_mutex_unlock(&in->mutex);
    return in->alone
               ? NL_OK
               : nl_error_set(
                     NL_ERROR_UNREACHABLE,
                     "%s: another netlogd process is reading the same share of %s; give each process its own share=K/N",
                     in->place->name, in->place->durable);
}

/*
 * Begins to read a shard, unless a killed reader has left messages that are not acknowledged yet. In this case, a later
 * call begins to read.
 */
static nl_status begin_shard(nats_intake *in, shard *s)
{
    jsConsumerInfo *info = NULL;
    jsConsumerConfig config;
    jsErrCode code = 0;
    natsStatus status = js_GetConsumerInfo(&info, in->link->js, s->stream, in->place->durable, NULL, &code);
    if (status == NATS_NOT_FOUND || code == JSConsumerNotFoundErr) {
        jsConsumerConfig_Init(&config);
        config.Durable = in->place->durable;
        config.AckPolicy = js_AckExplicit;
        config.AckWait = ACK_WAIT_S * (int64_t)NL_NS_PER_SECOND;
        config.MaxAckPending = PENDING_MAX;
        status = js_AddConsumer(&info, in->link->js, s->stream, &config, NULL, &code);
    }
    if (status != NATS_OK)
        return nats_failure(s->stream, status, code);
    int64_t wait_ms = info->Config->AckWait / 1000000, now = nl_monotonic_ms();
    pthread_mutex_lock(&in->mutex);
    bool others = info->NumAckPending > (int64_t)s->here;
    s->until_ms = others && s->until_ms == 0 ? now + wait_ms + RETRY_MS : s->until_ms;
    s->begun = !others || now >= s->until_ms;
    s->from_ms = s->begun ? 0 : now + RETRY_MS;
    s->until_ms = s->begun ? 0 : s->until_ms;
    pthread_mutex_unlock(&in->mutex);
    jsConsumerInfo_Destroy(info);
    return NL_OK;
}

/* Begins to read the shards. The caller holds the mutex, which the function releases while it begins a shard. */
static nl_status begin_shards(nats_intake *in)
{
    nl_status status = NL_OK;
    for (unsigned i = 0; i < in->shard_count && status == NL_OK; i++) {
        if (in->shards[i].begun || !nats_place_has_share(in->place, i) || in->shards[i].from_ms > nl_monotonic_ms())
            continue;
        pthread_mutex_unlock(&in->mutex);
        status = begin_shard(in, &in->shards[i]);
        pthread_mutex_lock(&in->mutex);
    }
    return status;
}

/* Prepares everything that must exist before messages can arrive. */
static nl_status get_ready(nats_intake *in)
{
    if (in->link != NULL && natsConnection_IsClosed(in->link->connection))
        disconnect(in); /* the servers have permanently rejected this netlogd */
    pthread_mutex_lock(&in->mutex);
    bool reconnected = in->reconnected;
    in->reconnected = false;
    if (reconnected || in->link == NULL)
        for (unsigned i = 0; i < in->shard_count; i++) {
            in->shards[i].begun = false;
            memset(in->shards[i].asked, 0, sizeof in->shards[i].asked);
        }
    in->alone = in->alone && !reconnected;
    pthread_mutex_unlock(&in->mutex);
    if (in->link == NULL && intake_connect_to(in) != NL_OK)
        return NL_FAILED;
    /*
     * Do not send requests without a connection, because libnats would collect them, and the server would later answer
     * all of them together.
     */
    if (natsConnection_Status(in->link->connection) != NATS_CONN_STATUS_CONNECTED)
        return nl_error_set(NL_ERROR_UNREACHABLE, "%s: connection lost; reconnecting", in->place->name);
    if (!in->known && find_shards(in) != NL_OK)
        return NL_FAILED;
    if (!in->alone && find_others(in) != NL_OK)
        return NL_FAILED;
    pthread_mutex_lock(&in->mutex);
    nl_status status = begin_shards(in);
    pthread_mutex_unlock(&in->mutex);
    return status;
}

/* ---- the thread: turns ---- */

/* Reports the state of a message to the server. If the report is lost, the server delivers the message again. */
static void publish_state(nats_intake *in, nats_message *m, const char *what)
{
    if (in->link != NULL && natsMsg_GetReply(m->msg) != NULL)
        natsConnection_PublishString(in->link->connection, natsMsg_GetReply(m->msg), what);
}

static void publish_settled(nats_intake *in)
{
    message_list settled;
    list_init(&settled);
    pthread_mutex_lock(&in->mutex);
    for (nats_message *m = in->settled.first; m != NULL; m = m->next)
        in->shards[m->shard].here--;
    list_move(&in->settled, &settled);
    pthread_mutex_unlock(&in->mutex);
    for (nats_message *m; (m = list_take(&settled)) != NULL; free_message(m))
        publish_state(in, m, m->refused ? "-NAK {\"delay\": 30000000000}" : "+ACK"); /* nanoseconds */
}

/* Finds the messages that must be reported to JetStream as in progress. The caller holds the mutex. */
static void find_late(turn_output *what, message_list *list, int64_t now)
{
    for (nats_message *m = list->first; m != NULL; m = m->next)
        if (now - m->touched_ms >= IN_PROGRESS_MS) {
            m->touched_ms = now;
            what->late[what->late_count++] = m;
        }
}

static void choose_request(turn_output *what, unsigned at, shard *s, pull_state *slot, int64_t now)
{
    *slot =
        (pull_state){.left = ASK_FOR, .number = ++s->requests, .until_ms = now + REQUEST_S * 1000 + REQUEST_LATE_MS};
    what->requests[what->request_count++] = (pull_request){at, slot->number};
}

static void intake_ask(nats_intake *in, pull_request w)
{
    const shard *s = &in->shards[w.shard]; /* the shard's name never changes */
    char subject[2 * NATS_NAME_SIZE], reply[NATS_NAME_SIZE], request[128];
    snprintf(subject, sizeof subject, "$JS.API.CONSUMER.MSG.NEXT.%s.%s", s->stream, in->place->durable);
    snprintf(reply, sizeof reply, "%s.%u.%u", in->inbox, w.shard, w.number);
    snprintf(request, sizeof request, "{\"expires\":%lld,\"batch\":%d,\"max_bytes\":%zu}",
             REQUEST_S * (long long)NL_NS_PER_SECOND, ASK_FOR, in->ask_bytes);
    natsConnection_PublishRequestString(in->link->connection, subject, reply, request);
}

/* Chooses the shards from which to request messages. The caller holds the mutex. */
static void choose_requests(nats_intake *in, turn_output *what, int64_t now)
{
    for (unsigned i = 0; i < in->shard_count; i++) {
        shard *s = &in->shards[i];
        if (!s->begun || s->from_ms > now)
            continue;
        size_t coming = s->here;
        for (int k = 0; k < REQUESTS; k++) {
            if (s->asked[k].until_ms < now)
                s->asked[k].left = 0;
            coming += s->asked[k].left;
        }
        for (int k = 0; k < REQUESTS && coming + ASK_FOR <= HERE_MAX; k++)
            if (s->asked[k].left == 0) {
                choose_request(what, i, s, &s->asked[k], now);
                coming += ASK_FOR;
            }
    }
}

/* Chooses what to send in this turn. The caller holds the mutex. */
static turn_output choose_all(nats_intake *in, bool ready)
{
    int64_t now = nl_monotonic_ms();
    turn_output what = {
        .late = nl_memory_check(calloc(in->waiting.count + in->taken.count + 1, sizeof(nats_message *))),
        .requests = nl_memory_check(calloc((size_t)in->shard_count * REQUESTS + 1, sizeof(pull_request)))};
    find_late(&what, &in->waiting, now);
    find_late(&what, &in->taken, now);
    if (ready && !in->stop)
        choose_requests(in, &what, now);
    return what;
}

/*
 * Sends reports and requests without locking the mutex, because libnats may wait for a reconnection and the server's
 * thread must not wait. This is safe: only this thread frees messages, and shards are not freed.
 */
static void publish_all_states(nats_intake *in, turn_output *what)
{
    for (size_t i = 0; i < what->late_count; i++)
        publish_state(in, what->late[i], "+WPI");
    for (size_t i = 0; i < what->request_count; i++)
        intake_ask(in, what->requests[i]);
    free(what->late);
    free(what->requests);
}

static void *intake_run(void *user)
{
    nats_intake *in = user;
    for (bool stop = false; !stop;) {
        nl_status ready = get_ready(in);
        publish_settled(in);
        pthread_mutex_lock(&in->mutex);
        set_problem(in, ready);
        turn_output what = choose_all(in, ready == NL_OK);
        unsigned changes = in->changes;
        pthread_mutex_unlock(&in->mutex);
        publish_all_states(in, &what);
        pthread_mutex_lock(&in->mutex);
        if (in->changes == changes && in->settled.first == NULL)
            wait_a_while(in, ready == NL_OK ? TURN_MS : RETRY_MS);
        stop = in->stop;
        pthread_mutex_unlock(&in->mutex);
    }
    publish_settled(in);
    return NULL;
}

/* ---- the server's thread ---- */

static void make_id(char id[ID_SIZE])
{
    unsigned char bytes[(ID_SIZE - 1) / 2];
    if (getentropy(bytes, sizeof bytes) != 0)
        program_fail(PROGRAM_PROBLEM, "getentropy: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(id + 2 * i, 3, "%02x", bytes[i]);
}

nats_intake *nats_intake_open(nats_place *place)
{
    nats_intake *in = nl_memory_check(calloc(1, sizeof *in));
    in->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (in->wake < 0)
        program_fail(PROGRAM_PROBLEM, "eventfd: %s", strerror(errno));
    in->place = place;
    list_init(&in->waiting);
    list_init(&in->taken);
    list_init(&in->settled);
    make_id(in->id);
    nl_monotonic_cond_init(&in->changed);
    pthread_mutex_init(&in->mutex, NULL);
    int error = nl_thread_create(&in->thread, NULL, intake_run, in);
    if (error != 0)
        program_fail(PROGRAM_PROBLEM, "cannot start a thread: %s", strerror(error));
    return in;
}

int nats_intake_descriptor(const nats_intake *in)
{
    return in->wake;
}

nats_message *nats_intake_next(nats_intake *in)
{
    uint64_t count;
    pthread_mutex_lock(&in->mutex);
    nats_message *m = list_take(&in->waiting);
    if (m != NULL) {
        list_add(&in->taken, m);
        in->state.messages++;
        in->state.again += m->again;
    }
    if (in->waiting.count == 0 && read(in->wake, &count, sizeof count) < 0 && errno != EAGAIN)
        program_error("eventfd: %s", strerror(errno));
    pthread_mutex_unlock(&in->mutex);
    return m;
}

nl_string nats_message_data(const nats_message *m)
{
    return (nl_string){natsMsg_GetData(m->msg), (size_t)natsMsg_GetDataLength(m->msg)};
}

const char *nats_message_name(const nats_message *m, char name[NATS_NAME_SIZE])
{
    snprintf(name, NATS_NAME_SIZE, "%.120s:%llu", natsMsg_GetSubject(m->msg), (unsigned long long)m->number);
    return name;
}

void nats_message_refuse(nats_message *m)
{
    m->refused = true;
}

void nats_intake_acknowledge(nats_intake *in)
{
    pthread_mutex_lock(&in->mutex);
    list_move(&in->taken, &in->settled);
    wake_thread(in);
    pthread_mutex_unlock(&in->mutex);
}

void nats_intake_describe(nats_intake *in, nats_intake_state *state)
{
    pthread_mutex_lock(&in->mutex);
    *state = in->state;
    state->waiting = in->waiting.count + in->taken.count + in->settled.count;
    pthread_mutex_unlock(&in->mutex);
}

static void return_messages(nats_intake *in, message_list *list)
{
    for (nats_message *m; (m = list_take(list)) != NULL; free_message(m))
        publish_state(in, m, "-NAK");
}

void nats_intake_close(nats_intake *in)
{
    if (in == NULL)
        return;
    pthread_mutex_lock(&in->mutex);
    in->stop = true;
    wake_thread(in);
    pthread_mutex_unlock(&in->mutex);
    pthread_join(in->thread, NULL);
    if (in->link != NULL)
        nats_subscription_end(in->messages);
    in->messages = NULL;
    return_messages(in, &in->taken);
    return_messages(in, &in->waiting);
    disconnect(in);
    close(in->wake);
    nats_place_free(in->place);
    pthread_cond_destroy(&in->changed);
    pthread_mutex_destroy(&in->mutex);
    free(in->shards);
    free(in);
}
