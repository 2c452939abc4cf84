#include "config.h"

#include "base/error.h"
#include "log/format_arguments.h"
#include "transport/writer_internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* What a destination that is away may leave unsent in memory before records are given up and counted. */
enum { UNSENT_MAX = 1 << 20 };

struct nl_log {
    nl_log *next; /* in the list of all logs, for fork */
    pthread_mutex_t mutex;
    nl_writer *writer;
    nl_record *record; /* reused, so that nothing is allocated once warm */
    nl_buffer scratch;
    nl_string host; /* what HOST and PROG say */
    nl_string prog;
    atomic_int threshold;
    uint64_t undelivered; /* records that were given up */
};

static pthread_mutex_t logs_mutex = PTHREAD_MUTEX_INITIALIZER;
static nl_log *logs;

/*
 * fork: no log is in the middle of anything when the process is copied, so the child finds whole state and free locks.
 * What the parent has buffered is the parent's to write; a connection is the parent's too.
 */
static void before_fork(void)
{
    pthread_mutex_lock(&logs_mutex);
    for (nl_log *log = logs; log != NULL; log = log->next)
        pthread_mutex_lock(&log->mutex);
}

static void unlock_all(void)
{
    for (nl_log *log = logs; log != NULL; log = log->next)
        pthread_mutex_unlock(&log->mutex);
    pthread_mutex_unlock(&logs_mutex);
}

static void after_fork_in_child(void)
{
    for (nl_log *log = logs; log != NULL; log = log->next) {
        nl_writer_after_fork(log->writer);
        log->undelivered = 0;
    }
    unlock_all();
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, unlock_all, after_fork_in_child);
}

static void add_to_list(nl_log *log)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&logs_mutex);
    log->next = logs;
    logs = log;
    pthread_mutex_unlock(&logs_mutex);
}

static void remove_from_list(nl_log *log)
{
    pthread_mutex_lock(&logs_mutex);
    for (nl_log **at = &logs; *at != NULL; at = &(*at)->next)
        if (*at == log) {
            *at = log->next;
            break;
        }
    pthread_mutex_unlock(&logs_mutex);
}

static bool is_switched_off(void)
{
    const char *on = getenv("NETLOGGER_ON");
    return on != NULL && (strcmp(on, "0") == 0 || strcasecmp(on, "no") == 0 || strcasecmp(on, "off") == 0 ||
                          strcasecmp(on, "false") == 0);
}

static nl_string copy_text(const char *text)
{
    char *copy = strdup(text);
    NL_REQUIRE(copy != NULL, "out of memory");
    return (nl_string){copy, strlen(copy)};
}

static nl_string this_host(void)
{
    const char *host = getenv("NETLOGGER_HOST");
    if (host != NULL && *host != '\0')
        return copy_text(host);
    char name[256];
    if (gethostname(name, sizeof name) != 0)
        return copy_text("localhost");
    name[sizeof name - 1] = '\0';
    return copy_text(name);
}

static int first_threshold(void)
{
    const char *name = getenv("NETLOGGER_LEVEL");
    nl_level level = name != NULL ? nl_level_parse(name, strlen(name)) : NL_LEVEL_NONE;
    return level != NL_LEVEL_NONE ? level : NL_DEBUG;
}

static nl_writer *open_writer(const char *url_text, const char *prog)
{
    nl_url *url = nl_url_parse(url_text);
    if (url == NULL)
        return NULL;
    nl_writer *writer = nl_writer_open_url(url, NULL, prog);
    nl_url_free(url);
    return writer;
}

nl_log *nl_open(const char *prog, const char *url)
{
    int saved = errno;
    nl_error_clear();
    if (url == NULL)
        url = getenv("NETLOGGER_DEST");
    if (is_switched_off() || url == NULL || *url == '\0')
        return NULL;
    if (prog == NULL)
        prog = program_invocation_short_name;
    nl_writer *writer = open_writer(url, prog);
    errno = saved;
    if (writer == NULL)
        return NULL;
    nl_log *log = calloc(1, sizeof *log);
    NL_REQUIRE(log != NULL, "out of memory");
    pthread_mutex_init(&log->mutex, NULL);
    log->writer = writer;
    log->record = nl_record_new();
    log->host = this_host();
    log->prog = copy_text(prog);
    atomic_init(&log->threshold, first_threshold());
    add_to_list(log);
    return log;
}

/* After a record could not be sent: it waits in the writer's buffer, unless too much does already. */
static void limit_unsent(nl_log *log)
{
    if (nl_writer_buffered(log->writer) > UNSENT_MAX)
        log->undelivered += nl_writer_drop_buffer(log->writer);
}

static nl_status put(nl_log *log, const nl_record *record)
{
    nl_status status = nl_writer_put(log->writer, record);
    if (status != NL_OK)
        limit_unsent(log);
    return status;
}

static void stamp(nl_log *log, nl_record *record)
{
    nl_record_set_time(record, nl_time_now_ns() / 1000 * 1000); /* what six digits say */
    record->host = log->host;
    record->prog = log->prog;
}

nl_status nl_vwrite(nl_log *log, nl_level level, const char *event, const char *format, va_list arguments)
{
    if (log == NULL || (int)level > atomic_load_explicit(&log->threshold, memory_order_relaxed))
        return NL_OFF;
    NL_REQUIRE(event != NULL, "event is NULL");
    int saved = errno;
    va_list rest;
    va_copy(rest, arguments);
    pthread_mutex_lock(&log->mutex);
    nl_record *record = log->record;
    nl_record_clear(record);
    nl_record_set_level(record, level);
    nl_record_set_event(record, event, strlen(event));
    nl_status status = NL_OK;
    errno = saved;
    if (format != NULL)
        status = nl_format_arguments(record, &log->scratch, format, &rest);
    /* Stamped last and under the lock, so that the times in one log never run backwards. */
    stamp(log, record);
    if (status == NL_OK)
        status = put(log, record);
    else
        nl_error_prepend("write %s", event);
    pthread_mutex_unlock(&log->mutex);
    va_end(rest);
    errno = saved;
    return status;
}

nl_status nl_write(nl_log *log, nl_level level, const char *event, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    nl_status status = nl_vwrite(log, level, event, format, arguments);
    va_end(arguments);
    return status;
}

nl_status nl_write_record(nl_log *log, const nl_record *record)
{
    if (log == NULL || (int)record->level > atomic_load_explicit(&log->threshold, memory_order_relaxed))
        return NL_OFF;
    int saved = errno;
    pthread_mutex_lock(&log->mutex);
    nl_status status;
    if (record->time_ns != 0 && record->host.data != NULL && record->prog.data != NULL) {
        status = put(log, record);
    } else {
        /* A shallow copy serves: it is used up before this returns. */
        nl_record filled = *record;
        filled.raw = (nl_string){0};
        filled.host = record->host.data != NULL ? record->host : log->host;
        filled.prog = record->prog.data != NULL ? record->prog : log->prog;
        if (filled.time_ns == 0)
            filled.time_ns = nl_time_now_ns() / 1000 * 1000;
        status = put(log, &filled);
    }
    pthread_mutex_unlock(&log->mutex);
    errno = saved;
    return status;
}

nl_status nl_flush(nl_log *log)
{
    if (log == NULL)
        return NL_OK;
    int saved = errno;
    pthread_mutex_lock(&log->mutex);
    nl_status status = nl_writer_flush(log->writer);
    if (status != NL_OK)
        limit_unsent(log);
    pthread_mutex_unlock(&log->mutex);
    errno = saved;
    return status;
}

void nl_set_level(nl_log *log, nl_level level)
{
    if (log != NULL)
        atomic_store_explicit(&log->threshold, level, memory_order_relaxed);
}

nl_status nl_close(nl_log *log)
{
    if (log == NULL)
        return NL_OK;
    int saved = errno;
    remove_from_list(log);
    nl_status status = nl_writer_flush(log->writer);
    if (status != NL_OK)
        log->undelivered += nl_writer_drop_buffer(log->writer);
    if (nl_writer_close(log->writer) != NL_OK)
        status = NL_FAILED;
    if (log->undelivered > 0)
        status = nl_error_prepend("%llu events could not be delivered", (unsigned long long)log->undelivered);
    pthread_mutex_destroy(&log->mutex);
    nl_record_free(log->record);
    nl_buffer_free(&log->scratch);
    free((char *)log->host.data);
    free((char *)log->prog.data);
    free(log);
    errno = saved;
    return status;
}
