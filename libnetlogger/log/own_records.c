#include "config.h"

#include "log/log_internal.h"

#include <stdlib.h>
#include <string.h>

/* Maximum number of queued records while the destination is unreachable; later records are dropped. */
enum { OWN_RECORDS_MAX = 10000 };

/*
 * Number of bytes to encode at once: much less than the batch (NL_SHARED_BATCH_SIZE), because these bytes cannot be
 * divided.
 */
enum { OWN_RECORDS_SIZE = 256 << 10 };

nl_record *nl_own_record_new(nl_log *log, nl_level level, const char *event)
{
    nl_record *record = nl_record_new();
    int64_t now_ns = nl_time_now_ns();
    nl_record_set_time(record, now_ns - now_ns % 1000);
    nl_record_set_host(record, log->host.data, log->host.size);
    nl_record_set_prog(record, log->prog.data, log->prog.size);
    nl_record_set_level(record, level);
    nl_record_set_event(record, event, strlen(event));
    return record;
}

void nl_own_records_add(nl_log *log, nl_record *record)
{
    nl_log_control *control = &log->control;
    pthread_mutex_lock(&log->mutex);
    bool good =
        record != NULL && !(record->flags & NL_RECORD_INCOMPLETE) && control->own_record_count < OWN_RECORDS_MAX;
    nl_record **records =
        good ? reallocarray(control->own_records, control->own_record_count + 1, sizeof(nl_record *)) : NULL;
    if (records != NULL) {
        control->own_records = records;
        control->own_records[control->own_record_count++] = record;
    } else {
        nl_record_free(record);
    }
    pthread_mutex_unlock(&log->mutex);
    nl_log_start(log);
}

size_t nl_own_records_encode(nl_log *log, bool one_level, nl_format format, nl_buffer *out, nl_level *level)
{
    nl_log_control *control = &log->control;
    size_t count = 0;
    pthread_mutex_lock(&log->mutex);
    for (; count < control->own_record_count; count++) {
        const nl_record *record = control->own_records[count];
        size_t size = format == NL_FORMAT_NLB ? nl_block_size(&log->drain.block) : out->size;
        if (count > 0 && ((one_level && record->level != *level) || size >= OWN_RECORDS_SIZE))
            break;
        *level = record->level;
        bool good = format == NL_FORMAT_NLB ? nl_block_put(&log->drain.block, record)
                                            : nl_record_encode(record, format, out) == NL_OK;
        if (!good)
            break;
    }
    pthread_mutex_unlock(&log->mutex);
    static const nl_block_identity no_stream;
    if (count > 0 && format == NL_FORMAT_NLB)
        nl_block_finish(&log->drain.block, &no_stream, log->drain.zstd_level, out);
    return count;
}

void nl_own_records_drop(nl_log *log, size_t count)
{
    nl_log_control *control = &log->control;
    pthread_mutex_lock(&log->mutex);
    for (size_t i = 0; i < count; i++)
        nl_record_free(control->own_records[i]);
    control->own_record_count -= count;
    if (count > 0)
        memmove(control->own_records, control->own_records + count, control->own_record_count * sizeof(nl_record *));
    pthread_mutex_unlock(&log->mutex);
}
