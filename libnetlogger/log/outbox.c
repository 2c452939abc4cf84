#include "config.h"

#include "log/outbox.h"

#include "base/error.h"
#include "base/monotonic.h"
#include "log/report.h"
#include "record/encoder.h"

#include <string.h>

enum {
    FIRST_PAUSE_NS = 100 * 1000000,
    RESERVE_STEP = 256 << 10,
    SPOOL_PIECE = 64 << 10,
};
#define LONGEST_PAUSE_NS (INT64_C(10) * NL_NS_PER_SECOND)

nl_status nl_outbox_make_batch(nl_outbox *outbox, unsigned number)
{
    if (!nl_mapping_make(&outbox->mapping, NL_SHARED_HEADER + NL_SHARED_BATCH_SIZE, NL_SHARED_HEADER + RESERVE_STEP, 0,
                         "log-%u", number))
        return nl_error_set_errno("shared memory");
    outbox->shared = (nl_shared_log *)(void *)outbox->mapping.memory;
    outbox->batch = outbox->mapping.memory + NL_SHARED_HEADER;
    outbox->reserved = RESERVE_STEP;
    nl_shared_head_set(&outbox->shared->head);
    outbox->shared->number = number;
    outbox->shared->file_offset = UINT64_MAX;
    return NL_OK;
}

bool nl_outbox_has_space(nl_outbox *outbox, size_t size)
{
    size_t end = outbox->shared->batch_size + size;
    if (end > NL_SHARED_BATCH_SIZE)
        return false;
    while (outbox->reserved < end) {
        size_t from = NL_SHARED_HEADER + outbox->reserved;
        if (!nl_mapping_reserve(&outbox->mapping, from, from + RESERVE_STEP))
            return false;
        outbox->reserved += RESERVE_STEP;
    }
    return true;
}

static void set_waiting(nl_outbox *outbox, uint64_t records)
{
    __atomic_store_n(&outbox->waiting, records, __ATOMIC_RELAXED);
}

/* Recovery after a kill relies on the order of stores, which shared.h describes. */
void nl_outbox_commit(nl_outbox *outbox, nl_ring *rings, const nl_buffer *bytes, uint64_t records)
{
    nl_shared_log *shared = outbox->shared;
    uint64_t commit = shared->commit + 1;
    memcpy(outbox->batch + shared->batch_size, bytes->data, bytes->size);
    for (nl_ring *ring = rings; ring != NULL; ring = ring->next) {
        if (ring->at == nl_ring_tail(ring))
            continue;
        ring->shared->next_tail = ring->at;
        ring->shared->next_sequence = ring->sequence;
        ring->shared->next_commit = commit;
    }
    shared->next_size = shared->batch_size + bytes->size;
    shared->next_records = shared->batch_records + records;
    __atomic_store_n(&shared->commit, commit, __ATOMIC_RELEASE);
    for (nl_ring *ring = rings; ring != NULL; ring = ring->next) {
        if (ring->shared->next_commit != commit)
            continue;
        __atomic_store_n(&ring->shared->sequence, ring->sequence, __ATOMIC_RELAXED);
        __atomic_store_n(&ring->shared->tail, ring->at | NL_TAIL_PINNED, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&shared->batch_size, shared->next_size, __ATOMIC_RELAXED);
    shared->batch_records = shared->next_records;
    __atomic_store_n(&shared->applied, commit, __ATOMIC_RELEASE);
    set_waiting(outbox, outbox->waiting + records);
}

uint64_t nl_outbox_waiting(const nl_outbox *outbox)
{
    return __atomic_load_n(&outbox->waiting, __ATOMIC_RELAXED);
}

bool nl_outbox_is_empty(const nl_outbox *outbox)
{
    return outbox->shared == NULL || __atomic_load_n(&outbox->shared->batch_size, __ATOMIC_ACQUIRE) == 0;
}

/* Empties the batch. Stores the size first, so that recovery after a kill finds an empty batch. */
static void empty_batch(nl_outbox *outbox)
{
    nl_shared_log *shared = outbox->shared;
    __atomic_store_n(&shared->batch_size, 0, __ATOMIC_RELEASE);
    shared->batch_records = 0;
    shared->batch_start = 0;
    __atomic_store_n(&shared->file_offset, UINT64_MAX, __ATOMIC_RELEASE);
    set_waiting(outbox, 0);
}

/* Counts the records of the batch again after some of them were written. */
static void count_waiting(nl_outbox *outbox)
{
    const nl_shared_log *shared = outbox->shared;
    set_waiting(outbox, nl_records_count((nl_format)shared->format, outbox->batch + shared->batch_start,
                                         shared->batch_size - shared->batch_start));
}

static nl_status write_batch(nl_outbox *outbox, nl_destination *destination, nl_level level)
{
    nl_shared_log *shared = outbox->shared;
    int64_t file_size = nl_destination_size(destination);
    if (file_size >= 0 && shared->file_offset == UINT64_MAX)
        __atomic_store_n(&shared->file_offset, (uint64_t)file_size, __ATOMIC_RELEASE);
    size_t written = 0;
    nl_status status = nl_destination_write(destination, level, outbox->batch + shared->batch_start,
                                            shared->batch_size - shared->batch_start, &written);
    if (status == NL_OK) {
        empty_batch(outbox);
        return NL_OK;
    }
    shared->batch_start += written;
    if (written > 0)
        count_waiting(outbox);
    return status;
}

/* Encodes a report of the `count` records that the full spool dropped. The report belongs to no stream. */
static nl_status encode_lost(const nl_outbox *outbox, uint64_t count, nl_buffer *bytes)
{
    static const char event[] = "NetLogger.Lost", reason[] = "the spool was full";
    const char *host = outbox->shared != NULL ? outbox->shared->host : "";
    nl_encoder *encoder = nl_encoder_new(&(nl_encoder_options){.format = outbox->how.format});
    nl_record *record = nl_record_new();
    nl_status status = NL_FAILED;
    if (encoder == NULL || record == NULL)
        goto out;
    nl_record_set_time(record, nl_time_now_ns() / 1000 * 1000);
    nl_record_set_level(record, NL_WARNING);
    if (*host != '\0')
        nl_record_set_host(record, host, strlen(host));
    nl_record_set_prog(record, outbox->how.ident, strlen(outbox->how.ident));
    nl_record_set_event(record, event, sizeof event - 1);
    nl_record_add_uint(record, "COUNT", count);
    nl_record_add_string(record, "REASON", reason, sizeof reason - 1);
    status = nl_encoder_put(encoder, record);
    if (status == NL_OK)
        status = nl_encoder_finish(encoder, bytes);
out:
    nl_record_free(record);
    nl_encoder_free(encoder);
    return status;
}

/* Sends a report of the records that the full spool dropped, and announces their sequence numbers. */
static nl_status report_lost(nl_outbox *outbox)
{
    uint64_t lost = nl_spool_lost(outbox->spool);
    nl_buffer bytes = {0};
    size_t written;
    nl_status status = lost > 0 ? encode_lost(outbox, lost, &bytes) : NL_OK;
    if (status == NL_OK && outbox->how.format == NL_FORMAT_NLB)
        status = nl_spool_read_losses(outbox->spool, &bytes);
    if (status == NL_OK && bytes.size > 0)
        status = nl_destination_write(outbox->destination, NL_WARNING, bytes.data, bytes.size, &written);
    nl_buffer_free(&bytes);
    if (status == NL_OK)
        nl_spool_loss_reported(outbox->spool);
    return status;
}

/*
 * Delivers the records in the spool, which are older than the records in the batch. Returns NL_OK if the spool is empty
 * afterwards.
 */
static nl_status deliver_spool(nl_outbox *outbox, nl_level level)
{
    nl_status status = NL_OK;
    while (status == NL_OK && (status = nl_spool_peek(outbox->spool, &outbox->spooled)) == NL_OK) {
        size_t written = 0;
        status = report_lost(outbox);
        if (status != NL_OK)
            break;
        if (outbox->spooled.size > 0)
            status =
                nl_destination_write(outbox->destination, level, outbox->spooled.data, outbox->spooled.size, &written);
        outbox->from_spool += nl_records_count(outbox->how.format, outbox->spooled.data, written);
        nl_spool_delivered(outbox->spool, written);
    }
    return status == NL_END ? NL_OK : status;
}

static nl_status write_primary(nl_outbox *outbox, nl_level level)
{
    if (outbox->destination == NULL) {
        outbox->destination = nl_destination_open(outbox->url, &outbox->how);
        if (outbox->destination == NULL)
            return NL_FAILED;
    }
    nl_status status = outbox->spool != NULL ? deliver_spool(outbox, level) : NL_OK;
    if (status != NL_OK || outbox->shared == NULL || outbox->shared->batch_size == 0)
        return status;
    return write_batch(outbox, outbox->destination, level);
}

/* Reports the thread's error about the destination, unless an error with this code was already reported. */
static void report_failure(nl_outbox *outbox, const nl_url *url)
{
    const nl_error_code code = nl_error_get_code();
    if (!outbox->reports || (outbox->reported & 1U << code) != 0)
        return;
    outbox->reported |= 1U << code;
    nl_report(NL_MESSAGE_RETRY, nl_url_is_collector(url) ? NULL : url, "%s (retrying)", nl_error_message());
}

static void pace_failed(nl_pace *pace)
{
    pace->pause_ns = pace->pause_ns > 0 ? 2 * pace->pause_ns : FIRST_PAUSE_NS;
    if (pace->pause_ns > LONGEST_PAUSE_NS)
        pace->pause_ns = LONGEST_PAUSE_NS;
    pace->retry_ns = nl_monotonic_ns() + pace->pause_ns;
}

void nl_outbox_note_failure(nl_outbox *outbox)
{
    report_failure(outbox, outbox->url);
    pace_failed(&outbox->pace);
    outbox->away = true;
}

static nl_status open_backup(nl_outbox *outbox)
{
    if (outbox->backup == NULL) {
        nl_destination_options how = {.timeout_ms = outbox->how.timeout_ms,
                                      .now = true,
                                      .format = outbox->how.format,
                                      .ident = outbox->how.ident};
        outbox->backup = nl_destination_open(outbox->backup_url, &how);
    }
    return outbox->backup != NULL ? NL_OK : NL_FAILED;
}

static nl_status write_backup(nl_outbox *outbox, nl_level level, bool now)
{
    if (!now && nl_monotonic_ns() < outbox->backup_pace.retry_ns)
        return NL_AGAIN;
    nl_status status = open_backup(outbox);
    if (status == NL_OK)
        status = write_batch(outbox, outbox->backup, level);
    if (status == NL_OK)
        outbox->backup_pace = (nl_pace){0};
    else
        pace_failed(&outbox->backup_pace);
    return status;
}

static void close_backup(nl_outbox *outbox)
{
    nl_destination *backup = outbox->backup;
    outbox->backup = NULL; /* set before the backup is closed, so that a child of fork() does not use it */
    if (backup != NULL)
        nl_destination_close(backup, true);
}

nl_status nl_outbox_open_spool(nl_outbox *outbox)
{
    const nl_log_options *options = outbox->options;
    if (outbox->spool != NULL || options == NULL || options->spool == NULL)
        return NL_OK;
    outbox->spool = nl_spool_open(options->spool, outbox->url, options->spool_size, options->spool_oldest);
    return outbox->spool != NULL ? NL_OK : NL_FAILED;
}

/*
 * Returns the number of bytes to move to the spool next: whole records of at most SPOOL_PIECE bytes together, or one
 * larger record.
 */
static size_t spool_piece(const nl_outbox *outbox, const char *data, size_t size)
{
    if (size <= SPOOL_PIECE)
        return size;
    size_t piece = nl_records_whole(outbox->how.format, data, SPOOL_PIECE);
    return piece > 0 ? piece : nl_records_first(outbox->how.format, data, size);
}

/*
 * Moves the batch to the spool in small parts, so that a full spool drops as little as possible. If the process is
 * killed after nl_spool_put and before batch_start advances, the same part is delivered twice. Collectors detect
 * repeated blocks. Returns NL_OK, or NL_FAILED with the reason; the rest of the batch then waits.
 */
static nl_status write_spool(nl_outbox *outbox)
{
    nl_shared_log *shared = outbox->shared;
    while (shared->batch_start < shared->batch_size) {
        const char *data = outbox->batch + shared->batch_start;
        size_t size = spool_piece(outbox, data, shared->batch_size - shared->batch_start);
        if (nl_spool_put(outbox->spool, data, size) != NL_OK) {
            count_waiting(outbox);
            return NL_FAILED;
        }
        outbox->to_spool += nl_records_count(outbox->how.format, data, size);
        shared->batch_start += size;
    }
    empty_batch(outbox);
    return NL_OK;
}

nl_status nl_outbox_sync(nl_outbox *outbox, bool flush)
{
    const int64_t after_ns = outbox->spool != NULL ? outbox->options->spool_sync_ns : NL_SPOOL_SYNC_NEVER;
    if (after_ns == NL_SPOOL_SYNC_NEVER)
        return NL_OK;
    int64_t since_ns = nl_spool_unsafe_since_ns(outbox->spool);
    bool due = after_ns >= 0 && nl_monotonic_ns() - since_ns >= after_ns;
    if (since_ns == 0 || (!flush && !due))
        return NL_OK;
    return nl_spool_sync(outbox->spool);
}

bool nl_outbox_is_spooled(const nl_outbox *outbox)
{
    return outbox->spool != NULL && !nl_spool_is_empty(outbox->spool);
}

static bool has_stand_in(const nl_outbox *outbox)
{
    return outbox->backup_url != NULL || outbox->spool != NULL;
}

static nl_status stand_in(nl_outbox *outbox, nl_level level, nl_status status, bool now)
{
    if (has_stand_in(outbox) && (outbox->shared == NULL || outbox->shared->batch_size == 0))
        return NL_OK; /* no records wait in the batch */
    if (outbox->backup_url != NULL)
        return write_backup(outbox, level, now);
    return outbox->spool != NULL ? write_spool(outbox) : status;
}

nl_status nl_outbox_send(nl_outbox *outbox, nl_level level, bool at_once)
{
    if (nl_outbox_open_spool(outbox) != NL_OK)
        return NL_FAILED;
    if (!nl_outbox_is_spooled(outbox) && (outbox->shared == NULL || outbox->shared->batch_size == 0))
        return NL_OK;
    nl_status status = NL_AGAIN;
    bool now = at_once && (outbox->hurry || !has_stand_in(outbox));
    if (!outbox->away || now || nl_monotonic_ns() >= outbox->pace.retry_ns) {
        outbox->hurry = false;
        status = write_primary(outbox, level);
        if (status == NL_OK) {
            outbox->away = false;
            outbox->pace = (nl_pace){0};
            close_backup(outbox);
            return NL_OK;
        }
        nl_outbox_note_failure(outbox);
    }
    status = stand_in(outbox, level, status, at_once);
    if (status == NL_FAILED && has_stand_in(outbox))
        report_failure(outbox, outbox->backup_url != NULL ? outbox->backup_url : outbox->url);
    return status;
}

void nl_outbox_change(nl_outbox *outbox, nl_url *url, nl_destination *destination, const nl_writer_options *writer)
{
    if (outbox->destination != NULL)
        nl_destination_close(outbox->destination, true);
    close_backup(outbox);
    outbox->destination = destination;
    outbox->url = url;
    outbox->how.truncate = false; /* the file was truncated when it was opened */
    outbox->how.timeout_ms = writer->timeout_ms;
    outbox->how.format = writer->format;
    outbox->away = false;
    outbox->pace = (nl_pace){0};
    outbox->reported = 0;       /* no failure of the new destination was reported yet */
    if (outbox->shared != NULL) /* forgets the position of the batch in the old file */
        __atomic_store_n(&outbox->shared->file_offset, UINT64_MAX, __ATOMIC_RELEASE);
}

void nl_outbox_after_fork(nl_outbox *outbox)
{
    nl_mapping_remove(&outbox->mapping);
    outbox->shared = NULL;
    outbox->waiting = 0;
    outbox->away = false;
    outbox->pace = outbox->backup_pace = (nl_pace){0};
    nl_spool_close(outbox->spool); /* the spool belongs to the parent; the child opens its own */
    outbox->spool = NULL;
    outbox->spooled = (nl_buffer){0}; /* the memory leaks, because the parent's thread may have been changing it */
    if (outbox->destination != NULL)
        nl_destination_after_fork(outbox->destination);
    if (outbox->backup != NULL)
        nl_destination_after_fork(outbox->backup);
    /* The file has already been truncated. */
    outbox->how.truncate = false;
}

nl_status nl_outbox_close_destination(nl_outbox *outbox)
{
    nl_destination *destination = outbox->destination;
    outbox->destination = NULL;
    return destination != NULL ? nl_destination_close(destination, true) : NL_OK;
}

void nl_outbox_close(nl_outbox *outbox)
{
    nl_outbox_close_destination(outbox);
    close_backup(outbox);
    nl_spool_close(outbox->spool);
    nl_buffer_free(&outbox->spooled);
    nl_url_free(outbox->url);
    nl_url_free(outbox->backup_url);
    nl_mapping_remove(&outbox->mapping);
}
