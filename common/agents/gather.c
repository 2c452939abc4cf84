#include "config.h"

#include "agents/gather.h"

#include "base/thread.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "base/text.h"
#include "program/program.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RETRY_MAX_S = 30, POLL_MS = 200, STACK = 256 << 10, COLLECTOR_PAUSE_MS = 20 };

typedef struct delivery {
    const char *sensor;
    nl_channel channel; /* fd is -1 if the channel is not open */
    nl_decoder *decoder;
    int64_t retry_ns;
    unsigned retry_s;
    bool was_open, was_reported;
} delivery;

typedef struct source {
    struct source *next;
    struct gathering *all;
    char *url;
    client *client; /* NULL if the peer is a collector */
    pthread_t thread;
    delivery *deliveries; /* one delivery for each sensor */
    struct pollfd *ready;
    size_t count;
} source;

struct gathering {
    gather_options options;
    pthread_mutex_t lock; /* protects put, flush, `over` and `error` */
    source *sources;
    bool over;
    nl_error error; /* the reason why the deliveries ended; may be NL_ERROR_NONE */
};

gathering *gather_new(const gather_options *o)
{
    gathering *g = nl_memory_check(calloc(1, sizeof *g));
    g->options = *o;
    pthread_mutex_init(&g->lock, NULL);
    return g;
}

/* Ends all deliveries because of this thread's error. */
static void gather_end(gathering *g)
{
    pthread_mutex_lock(&g->lock);
    if (!g->over)
        nl_error_save(&g->error);
    g->over = true;
    pthread_mutex_unlock(&g->lock);
}

bool gather_is_over(gathering *g)
{
    pthread_mutex_lock(&g->lock);
    bool over = g->over;
    if (over)
        nl_error_restore(&g->error);
    pthread_mutex_unlock(&g->lock);
    return over;
}

static void gather_put(gathering *g, const nl_record *record)
{
    pthread_mutex_lock(&g->lock);
    if (!g->over && !g->options.put(g->options.user, record))
        g->over = true;
    pthread_mutex_unlock(&g->lock);
}

static void gather_flush(gathering *g)
{
    pthread_mutex_lock(&g->lock);
    if (!g->over && g->options.flush != NULL && !g->options.flush(g->options.user))
        g->over = true;
    pthread_mutex_unlock(&g->lock);
}

/* Passes a record that reports the loss or the return of a delivery to the caller's `put`. */
static void gather_report(source *s, const delivery *t, const char *event, const char *reason)
{
    char host[256];
    nl_record *record = nl_record_new();
    program_host(host, sizeof host);
    nl_record_set_time(record, nl_time_now_ns());
    nl_record_set_level(record, NL_WARNING);
    nl_record_set_host(record, host, strlen(host));
    nl_record_set_prog(record, "nlagent", 7);
    nl_record_set_event(record, event, strlen(event));
    nl_record_add_text(record, "AGENT", s->url);
    nl_record_add_text(record, "SENSOR", t->sensor);
    if (reason != NULL)
        nl_record_add_text(record, "REASON", reason);
    gather_put(s->all, record);
    gather_flush(s->all);
    nl_record_free(record);
}

/* ---- one delivery ---- */

/* Closes a delivery because of this thread's error. Sets the time of the next attempt, and reports the loss once. */
static void lose(source *s, delivery *t)
{
    bool was_open = t->channel.fd >= 0;
    if (was_open)
        nl_channel_close(&t->channel);
    nl_decoder_free(t->decoder);
    t->decoder = NULL;
    t->channel.fd = -1;
    t->retry_s = t->retry_s == 0 ? 1 : t->retry_s * 2 < RETRY_MAX_S ? t->retry_s * 2 : RETRY_MAX_S;
    t->retry_ns = nl_monotonic_ns() + t->retry_s * NL_NS_PER_SECOND;
    nl_error error; /* a copy, because gather_report may change the error */
    nl_error_save(&error);
    if (!t->was_reported)
        gather_report(s, t, "Nlagent.Lost", error.message);
    t->was_reported = true;
}

static void gather_decode(source *s, delivery *t, const char *data, size_t size)
{
    const nl_record *record;
    nl_decoder_feed(t->decoder, data, size);
    while (nl_decoder_next(t->decoder, &record) == NL_OK)
        gather_put(s->all, record);
    gather_flush(s->all);
}

static bool subscribe(source *s, delivery *t)
{
    nl_buffer message = {0}, begun = {0};
    soap_call answer;
    soap_begin(&message, "Subscribe");
    soap_put(&message, "sensor", t->sensor);
    for (const char *const *a = s->all->options.arguments; a != NULL && a[0] != NULL; a += 2)
        soap_put(&message, a[0], a[1]);
    soap_end(&message, "Subscribe");
    bool good = client_call(s->client, &message, &answer);
    const char *id = good ? soap_value(&answer, "subscription") : NULL;
    if (good && id == NULL)
        nl_error_set(NL_ERROR_INVALID, "the agent's reply contains no subscription ID");
    good = id != NULL && client_open_delivery(s->client, id, "ulm", &t->channel, &begun);
    if (good) {
        t->decoder = nl_decoder_new(&(nl_decoder_options){.source = s->url});
        gather_decode(s, t, begun.data, begun.size);
    }
    soap_call_free(&answer);
    nl_buffer_free(&message);
    nl_buffer_free(&begun);
    return good;
}

static void open_delivery(source *s, delivery *t)
{
    if (nl_monotonic_ns() < t->retry_ns)
        return;
    if (!subscribe(s, t)) {
        t->channel.fd = -1;
        if (s->all->options.once && !t->was_open)
            gather_end(s->all);
        lose(s, t);
        return;
    }
    if (t->was_reported)
        gather_report(s, t, "Nlagent.Back", NULL);
    t->was_open = true;
    t->was_reported = false;
    t->retry_s = 0;
}

static void read_delivery(source *s, delivery *t)
{
    static __thread char bytes[64 << 10];
    ssize_t got = nl_channel_read(&t->channel, bytes, sizeof bytes);
    int error = errno;
    if (got > 0) {
        gather_decode(s, t, bytes, (size_t)got);
    } else if (got == 0 || (error != EAGAIN && error != EINTR)) {
        if (got == 0)
            nl_error_set(NL_ERROR_UNREACHABLE, "the agent stopped sending records");
        else
            nl_channel_fail(&t->channel, error);
        lose(s, t);
    }
}

/* ---- threads ---- */

static void *gather_run(void *user)
{
    source *s = user;
    while (!gather_is_over(s->all)) {
        struct pollfd *ready = s->ready;
        bool more = false;
        for (size_t i = 0; i < s->count; i++) {
            delivery *t = &s->deliveries[i];
            if (t->channel.fd < 0)
                open_delivery(s, t);
            ready[i] = (struct pollfd){.fd = t->channel.fd};
            if (t->channel.fd < 0)
                continue;
            ready[i].events = nl_channel_wants(&t->channel, POLLIN);
            more = more || nl_channel_has_more(&t->channel);
        }
        poll(ready, s->count, more ? 0 : POLL_MS);
        for (size_t i = 0; i < s->count; i++)
            if (s->deliveries[i].channel.fd >= 0 &&
                (ready[i].revents != 0 || nl_channel_has_more(&s->deliveries[i].channel)))
                read_delivery(s, &s->deliveries[i]);
    }
    for (size_t i = 0; i < s->count; i++) {
        if (s->deliveries[i].channel.fd >= 0)
            nl_channel_close(&s->deliveries[i].channel);
        nl_decoder_free(s->deliveries[i].decoder);
    }
    return NULL;
}

static void *run_collector(void *user)
{
    source *s = user;
    const nl_record *record;
    nl_reader *reader = nl_reader_open(s->url, &(nl_reader_options){.nonblocking = true});
    nl_status status = reader != NULL ? NL_OK : NL_FAILED;
    while ((status == NL_OK || status == NL_AGAIN) && !gather_is_over(s->all)) {
        status = nl_reader_next(reader, &record);
        if (status == NL_OK)
            gather_put(s->all, record);
        else if (status == NL_AGAIN) {
            gather_flush(s->all);
            usleep(COLLECTOR_PAUSE_MS * 1000);
        }
    }
    gather_flush(s->all);
    if (status == NL_END)
        nl_error_set(NL_ERROR_UNREACHABLE, "the collector ended the connection");
    if (status != NL_OK && status != NL_AGAIN) {
        nl_error_prepend("%s", s->url);
        gather_end(s->all);
    }
    nl_reader_close(reader);
    return NULL;
}

static void free_source(source *s)
{
    client_free(s->client);
    free(s->deliveries);
    free(s->ready);
    free(s->url);
    free(s);
}

static bool gather_start(gathering *g, source *s, void *(*function)(void *))
{
    int error = nl_thread_create_small(&s->thread, STACK, function, s);
    if (error != 0) {
        free_source(s);
        return nl_error_false(NL_ERROR_SYSTEM, "cannot start a thread: %s", strerror(error));
    }
    s->next = g->sources;
    g->sources = s;
    return true;
}

bool gather_add(gathering *g, const char *url)
{
    for (const source *s = g->sources; s != NULL; s = s->next)
        if (strcmp(s->url, url) == 0)
            return true;
    source *s = nl_memory_check(calloc(1, sizeof *s));
    s->url = nl_memory_check(strdup(url));
    s->all = g;
    s->client = client_new(url, &g->options.client);
    if (s->client == NULL) {
        free_source(s);
        return false;
    }
    while (g->options.sensors[s->count] != NULL)
        s->count++;
    s->deliveries = nl_memory_check(calloc(s->count + 1, sizeof *s->deliveries));
    s->ready = nl_memory_check(calloc(s->count + 1, sizeof *s->ready));
    for (size_t i = 0; i < s->count; i++)
        s->deliveries[i] = (delivery){.sensor = g->options.sensors[i], .channel = {.fd = -1}};
    return gather_start(g, s, gather_run);
}

bool gather_add_collector(gathering *g, const char *url)
{
    source *s = nl_memory_check(calloc(1, sizeof *s));
    s->url = nl_memory_check(strdup(url));
    s->all = g;
    return gather_start(g, s, run_collector);
}

void gather_free(gathering *g)
{
    gather_end(g);
    while (g->sources != NULL) {
        source *s = g->sources;
        g->sources = s->next;
        pthread_join(s->thread, NULL);
        free_source(s);
    }
    pthread_mutex_destroy(&g->lock);
    free(g);
}
