/* nl_write and its like: a record is made on the caller's path, and goes whole into the caller's ring. */
#include "config.h"

#include "log/log_internal.h"

#include "base/error.h"
#include "log/format_arguments.h"
#include "log/payload.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* What a thread needs to make records of formats, kept so that nothing is allocated once warm. */
typedef struct scratch {
    nl_record *record;
    nl_buffer bytes;
} scratch;

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static void free_scratch(void *user)
{
    scratch *s = user;
    nl_record_free(s->record);
    nl_buffer_free(&s->bytes);
    free(s);
}

static void make_key(void)
{
    pthread_key_create(&key, free_scratch);
}

static scratch *own_scratch(void)
{
    pthread_once(&key_once, make_key);
    scratch *s = pthread_getspecific(key);
    if (s == NULL) {
        s = calloc(1, sizeof *s);
        NL_REQUIRE(s != NULL, "out of memory");
        s->record = nl_record_new();
        pthread_setspecific(key, s);
    }
    nl_record_clear(s->record);
    return s;
}

static bool is_off(const nl_log *log, nl_level level)
{
    return log == NULL || (int)level > __atomic_load_n(&log->gate.threshold, __ATOMIC_RELAXED);
}

/* Into the ring, as NL_EVENT does it. */
static nl_status put(nl_log *log, const nl_record *record)
{
    size_t size = sizeof(nl_event_header) + nl_payload_size(record);
    nl_ring_producer *ring = log->gate.slot < NL_PRIVATE_SLOTS ? nl_private_rings[log->gate.slot] : NULL;
    if (ring == NULL || ring->busy || ring->head + size > ring->limit || size > NL_EVENT_MOST) {
        ring = nl_producer_prepare(log, record->level, size);
        if (ring == NULL)
            return nl_error_set("the event is lost: there was no room for %zu bytes in the log's ring", size);
    }
    __atomic_store_n(&ring->busy, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    char *at = ring->data + (ring->head & ring->mask);
    nl_event_header header = {(uint32_t)size, NL_SITE_RECORD, nl_private_ticks(ring)};
    memcpy(at, &header, sizeof header);
    nl_payload_put(at + sizeof header, record);
    nl_private_commit(ring, size);
    return NL_OK;
}

nl_status nl_vwrite(nl_log *log, nl_level level, const char *event, const char *format, va_list arguments)
{
    if (is_off(log, level))
        return NL_OFF;
    NL_REQUIRE(event != NULL, "event is NULL");
    int saved = errno;
    scratch *s = own_scratch();
    errno = saved; /* for %m */
    nl_status status = NL_OK;
    if (format != NULL) {
        va_list rest;
        va_copy(rest, arguments);
        status = nl_format_arguments(s->record, &s->bytes, format, &rest);
        va_end(rest);
    }
    s->record->level = level;
    s->record->event = (nl_string){event, strlen(event)};
    if (status == NL_OK)
        status = put(log, s->record);
    if (status != NL_OK)
        nl_error_prepend("write %s", event);
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
    if (is_off(log, record->level))
        return NL_OFF;
    int saved = errno;
    nl_status status = put(log, record);
    errno = saved;
    return status;
}
