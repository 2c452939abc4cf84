#include "nl_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * The count, minimum, maximum, sum and mean of some numbers, and the sum of their squared differences from the mean
 * (Welford's algorithm).
 */
typedef struct nl_moments {
    int64_t count;
    double min, max, sum, mean, squares;
} nl_moments;

/* The summary of some blocks. */
typedef struct nl_blocks {
    int64_t first_start_ns, last_end_ns;
    nl_moments seconds, bytes, ratio;
} nl_blocks;

typedef struct nl_stream {
    struct nl_stream *next; /* next stream, in the order of the first blocks */
    NL_transfer_op_t operation;
    NL_transfer_streamid_t id;
    int64_t start_ns; /* start of the current block; 0: no block has started */
    nl_blocks all;    /* all blocks since NL_transfer_init began the summaries */
    nl_blocks last;   /* blocks of the current interval */
    char transfer[];
} nl_stream;

struct NL_summ_T {
    pthread_mutex_t lock; /* protects all members */
    NL_log_T output;      /* NULL: no log for the summaries */
    bool owns_output, is_active, passes_events;
    int64_t interval_ns; /* 0 or less: no periodic summaries */
    NL_level_t level;
    nl_stream *streams;
    NL_log_T *logs;
    size_t log_count;
};

static const char *const event_names[] = {"disk.read", "disk.write", "net.read", "net.write"};
static const char *const operation_names[] = {"disk read", "disk write", "net read", "net write"};

static bool is_operation(NL_transfer_op_t operation)
{
    return (unsigned)operation < NL_TRANSFER_NOEVENT;
}

const char *NL_transfer_op_name(NL_transfer_op_t operation)
{
    return is_operation(operation) ? operation_names[operation] : "";
}

/* ---- summaries and their logs ---- */

NL_summ_T NL_summ(void)
{
    NL_summ_T summ = calloc(1, sizeof *summ);
    if (summ != NULL)
        pthread_mutex_init(&summ->lock, NULL);
    return summ;
}

int NL_summ_add_log(NL_summ_T summ, NL_log_T log)
{
    if (summ == NULL || log == NULL || (log->summ != NULL && log->summ != summ))
        return -1;
    if (log->summ == summ)
        return 0;
    int result = -1;
    pthread_mutex_lock(&summ->lock);
    NL_log_T *logs = realloc(summ->logs, (summ->log_count + 1) * sizeof(NL_log_T));
    if (logs != NULL) {
        summ->logs = logs;
        logs[summ->log_count++] = log;
        log->summ = summ;
        result = 0;
    }
    pthread_mutex_unlock(&summ->lock);
    return result;
}

int NL_summ_remove_log(NL_summ_T summ, NL_log_T log)
{
    if (summ == NULL || log == NULL || log->summ != summ)
        return -1;
    pthread_mutex_lock(&summ->lock);
    for (size_t i = 0; i < summ->log_count; i++)
        if (summ->logs[i] == log)
            summ->logs[i--] = summ->logs[--summ->log_count];
    log->summ = NULL;
    pthread_mutex_unlock(&summ->lock);
    return 0;
}

static int set_output(NL_summ_T summ, NL_log_T log, bool owned)
{
    if (summ == NULL)
        return -1;
    pthread_mutex_lock(&summ->lock);
    summ->output = log;
    summ->owns_output = owned;
    pthread_mutex_unlock(&summ->lock);
    return 0;
}

int NL_summ_set_output(NL_summ_T summ, NL_log_T log)
{
    return set_output(summ, log, true);
}

int NL_summ_set_shared_output(NL_summ_T summ, NL_log_T log)
{
    return set_output(summ, log, false);
}

void NL_summ_del(NL_summ_T summ)
{
    if (summ == NULL)
        return;
    for (size_t i = 0; i < summ->log_count; i++)
        summ->logs[i]->summ = NULL;
    while (summ->streams != NULL) {
        nl_stream *next = summ->streams->next;
        free(summ->streams);
        summ->streams = next;
    }
    if (summ->owns_output)
        NL_close(summ->output);
    free(summ->logs);
    pthread_mutex_destroy(&summ->lock);
    free(summ);
}

int NL_transfer_init(NL_summ_T summ, int64_t interval, NL_level_t level)
{
    if (summ == NULL)
        return -1;
    pthread_mutex_lock(&summ->lock);
    for (nl_stream *at = summ->streams; at != NULL && !summ->is_active; at = at->next)
        at->all = at->last = (nl_blocks){0}; /* NL_transfer_finalize has summarized these blocks */
    summ->interval_ns = interval > INT64_MAX / 1000 ? INT64_MAX : interval * 1000;
    summ->level = level;
    summ->is_active = true;
    pthread_mutex_unlock(&summ->lock);
    return 0;
}

void NL_transfer_set_passthrough(NL_summ_T summ)
{
    if (summ == NULL)
        return;
    pthread_mutex_lock(&summ->lock);
    summ->passes_events = true;
    pthread_mutex_unlock(&summ->lock);
}

/* ---- numbers ---- */

static void moments_add(nl_moments *m, double value)
{
    m->min = m->count == 0 || value < m->min ? value : m->min;
    m->max = m->count == 0 || value > m->max ? value : m->max;
    m->sum += value;
    m->count++;
    const double before = value - m->mean;
    m->mean += before / (double)m->count;
    m->squares += before * (value - m->mean);
}

static double moments_deviation(const nl_moments *m)
{
    return m->count > 1 ? sqrt(m->squares / (double)(m->count - 1)) : 0;
}

static void blocks_add(nl_blocks *blocks, int64_t start_ns, int64_t end_ns, double bytes)
{
    if (blocks->seconds.count == 0)
        blocks->first_start_ns = start_ns;
    blocks->last_end_ns = end_ns;
    const double seconds = (double)(end_ns - start_ns) / 1e9;
    moments_add(&blocks->seconds, seconds);
    moments_add(&blocks->bytes, bytes);
    if (seconds > 0)
        moments_add(&blocks->ratio, bytes / seconds);
}

/* ---- the summary of a stream ---- */

static const char summary_format[] = "guid=s stream.id=l n=l nv=l dur=d t.m=d t.x=d t.s=d t.sd=d v.m=d v.x=d v.s=d "
                                     "v.sd=d r.m=d r.x=d r.s=d r.sd=d";

static void write_summary(NL_log_T log, NL_level_t level, const nl_stream *stream, const nl_blocks *blocks)
{
    char event[64];
    snprintf(event, sizeof event, "transfer.%s.summ", event_names[stream->operation]);
    const nl_moments *t = &blocks->seconds, *v = &blocks->bytes, *r = &blocks->ratio;
    nl_classic_write_at(log, blocks->first_start_ns, level, event, summary_format, stream->transfer,
                        (long long)stream->id, (long long)t->count, (long long)v->count,
                        (double)(blocks->last_end_ns - blocks->first_start_ns) / 1e9, t->min, t->max, t->sum,
                        moments_deviation(t), v->min, v->max, v->sum, moments_deviation(v), r->min, r->max, r->sum,
                        moments_deviation(r));
}

void NL_transfer_finalize(NL_summ_T summ)
{
    if (summ == NULL)
        return;
    pthread_mutex_lock(&summ->lock);
    if (summ->is_active && summ->output != NULL)
        for (const nl_stream *at = summ->streams; at != NULL; at = at->next)
            if (at->all.seconds.count > 0)
                write_summary(summ->output, summ->level, at, &at->all);
    summ->is_active = false;
    pthread_mutex_unlock(&summ->lock);
}

unsigned NL_transfer_get_num_streams(NL_summ_T summ, NL_transfer_op_t operation, const char *id)
{
    unsigned count = 0;
    if (summ == NULL || id == NULL)
        return 0;
    pthread_mutex_lock(&summ->lock);
    for (const nl_stream *at = summ->streams; at != NULL; at = at->next)
        count += at->operation == operation && strcmp(at->transfer, id) == 0 && at->all.seconds.count > 0;
    pthread_mutex_unlock(&summ->lock);
    return count;
}

char *NL_transfer_get_result_string(NL_summ_T summ, const char *id)
{
    char name[40], url[80];
    snprintf(name, sizeof name, "nl-transfer-%p", (void *)&name);
    snprintf(url, sizeof url, "memory:%s?format=bp", name);
    struct NL_log_T log = {.level = NL_LVL_USER, .lock = PTHREAD_MUTEX_INITIALIZER};
    log.log = nl_open("", url);
    log.constants = nl_record_new();
    log.record = nl_record_new();
    if (log.log != NULL && log.constants != NULL && log.record != NULL && summ != NULL && id != NULL) {
        pthread_mutex_lock(&summ->lock);
        for (const nl_stream *at = summ->streams; at != NULL; at = at->next)
            if (strcmp(at->transfer, id) == 0 && at->all.seconds.count > 0)
                write_summary(&log, NL_LVL_INFO, at, &at->all);
        pthread_mutex_unlock(&summ->lock);
    }
    nl_buffer lines = {0};
    char *text = NULL;
    if (log.log != NULL && nl_close(log.log) == NL_OK) {
        nl_memory_read(name, &lines);
        text = strndup(lines.size > 0 ? lines.data : "", lines.size);
    }
    nl_memory_free(name);
    nl_buffer_free(&lines);
    nl_record_free(log.constants);
    nl_record_free(log.record);
    return text;
}

/* ---- events ---- */

/*
 * Returns the stream of an event. If the stream does not exist, the function creates it or, if make is false, returns
 * NULL. Also returns NULL if memory runs out. The caller holds the lock.
 */
static nl_stream *stream_find(NL_summ_T summ, NL_transfer_op_t operation, const char *transfer,
                              NL_transfer_streamid_t id, bool make)
{
    nl_stream **at = &summ->streams;
    for (; *at != NULL; at = &(*at)->next)
        if ((*at)->operation == operation && (*at)->id == id && strcmp((*at)->transfer, transfer) == 0)
            return *at;
    nl_stream *stream = make ? calloc(1, sizeof *stream + strlen(transfer) + 1) : NULL;
    if (stream != NULL) {
        stream->operation = operation;
        stream->id = id;
        memcpy(stream->transfer, transfer, strlen(transfer) + 1);
        *at = stream;
    }
    return stream;
}

static void stream_end(NL_summ_T summ, nl_stream *stream, int64_t now_ns, double bytes)
{
    if (stream == NULL || stream->start_ns == 0)
        return;
    blocks_add(&stream->all, stream->start_ns, now_ns, bytes);
    blocks_add(&stream->last, stream->start_ns, now_ns, bytes);
    stream->start_ns = 0;
    if (summ->interval_ns <= 0 || now_ns - stream->last.first_start_ns < summ->interval_ns)
        return;
    if (summ->output != NULL)
        write_summary(summ->output, summ->level, stream, &stream->last);
    memset(&stream->last, 0, sizeof stream->last);
}

static bool log_writes(NL_log_T log, NL_level_t level, NL_transfer_op_t operation, const char *id)
{
    return NL_is_active(log) && level <= NL_get_level(log) && is_operation(operation) && id != NULL;
}

static int64_t now_in_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void NL_transfer_start(NL_log_T log, NL_level_t level, NL_transfer_op_t operation, const char *id,
                       NL_transfer_streamid_t stream, NL_transfer_blockid_t block)
{
    if (!log_writes(log, level, operation, id))
        return;
    const int64_t now_ns = now_in_ns();
    NL_summ_T summ = log->summ;
    bool passes = true;
    if (summ != NULL) {
        pthread_mutex_lock(&summ->lock);
        nl_stream *found = summ->is_active ? stream_find(summ, operation, id, stream, true) : NULL;
        if (found != NULL)
            found->start_ns = now_ns;
        passes = summ->passes_events || !summ->is_active;
        pthread_mutex_unlock(&summ->lock);
    }
    if (!passes)
        return;
    char event[64];
    snprintf(event, sizeof event, "transfer.%s.start", event_names[operation]);
    nl_classic_write_at(log, now_ns, level, event, "guid=s stream.id=l block.id=l", id, (long long)stream,
                        (long long)block);
}

void NL_transfer_end(NL_log_T log, NL_level_t level, NL_transfer_op_t operation, const char *id,
                     NL_transfer_streamid_t stream, NL_transfer_blockid_t block, double bytes)
{
    if (!log_writes(log, level, operation, id))
        return;
    const int64_t now_ns = now_in_ns();
    NL_summ_T summ = log->summ;
    bool passes = summ == NULL;
    if (!passes) {
        pthread_mutex_lock(&summ->lock);
        passes = summ->passes_events || !summ->is_active;
        pthread_mutex_unlock(&summ->lock);
    }
    if (passes) {
        char event[64];
        snprintf(event, sizeof event, "transfer.%s.end", event_names[operation]);
        nl_classic_write_at(log, now_ns, level, event, "guid=s stream.id=l block.id=l bytes=d", id, (long long)stream,
                            (long long)block, bytes);
    }
    if (summ == NULL)
        return;
    pthread_mutex_lock(&summ->lock);
    if (summ->is_active)
        stream_end(summ, stream_find(summ, operation, id, stream, false), now_ns, bytes);
    pthread_mutex_unlock(&summ->lock);
}
