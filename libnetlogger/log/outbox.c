#include "config.h"

#include "log/outbox.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "log/report.h"
#include "record/encoder.h"

#include <string.h>

enum {
    FIRST_PAUSE_NS = 100 * 1000000,
    RESERVE_STEP = 256 << 10,
    SPOOL_PIECE = 64 << 10,
    BATCH_LIMIT =
        512 << 10, /* the batch goes to the spool when it reaches this size, in bytes, and the sender cannot send it */
    BACKUP_LIMIT = 3 << 20, /* the same for the backup. The limit is larger, because the records then do not reach the
                             * destination */
    WAIT_LIMIT = NL_SHARED_BATCH_SIZE - (512 << 10), /* while the backup's sender sends a batch of this size, the batch
                                                      * accepts no more records */
    PROMPT_NS = 20 * 1000000,                        /* maximum time that a collector usually takes to reply */
    EXCHANGE_WAIT_NS = 600 * 1000000, /* maximum wait for the exchange of clocks; more than nl_destination_exchange
                                       * waits */
};
#define LONGEST_PAUSE_NS (INT64_C(10) * NL_NS_PER_SECOND)
/* Maximum time for which opening a log with a sender waits for the destination. */
#define OPEN_WAIT_NS NL_NS_PER_SECOND

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

/* The recovery of a killed process relies on the order of the stores. shared.h describes this order. */
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

/* Empties the batch. Sets batch_size before batch_start, so that the batch is empty even if the process is killed
 * between the two stores. */
static void empty_batch(nl_outbox *outbox)
{
    nl_shared_log *shared = outbox->shared;
    __atomic_store_n(&shared->batch_size, 0, __ATOMIC_RELEASE);
    shared->batch_records = 0;
    shared->batch_start = 0;
    __atomic_store_n(&shared->file_offset, UINT64_MAX, __ATOMIC_RELEASE);
    set_waiting(outbox, 0);
}

/*
 * Moves the rest of the batch to the start of its memory, so that a batch that never becomes empty does not reach the
 * end of the memory. Copies only into memory that the rest does not use. If the process is killed between the two
 * stores, batch_start is greater than or equal to batch_size, and the recovery completes the move.
 */
static void compact_batch(nl_outbox *outbox)
{
    nl_shared_log *shared = outbox->shared;
    if (shared == NULL || shared->batch_start == 0 || shared->batch_size - shared->batch_start > shared->batch_start)
        return;
    const size_t left = shared->batch_size - shared->batch_start;
    memcpy(outbox->batch, outbox->batch + shared->batch_start, left);
    shared->batch_records = outbox->waiting;
    __atomic_store_n(&shared->batch_size, left, __ATOMIC_RELEASE);
    __atomic_store_n(&shared->batch_start, 0, __ATOMIC_RELEASE);
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

/*
 * Sets *bytes to a report of the records that the full spool dropped, followed by the announcement of their sequence
 * numbers. If there is no loss to report, *bytes is empty.
 */
static nl_status encode_losses(nl_outbox *outbox, nl_buffer *bytes)
{
    uint64_t lost = nl_spool_lost(outbox->spool);
    bytes->size = 0;
    nl_status status = lost > 0 ? encode_lost(outbox, lost, bytes) : NL_OK;
    if (status == NL_OK && outbox->how.format == NL_FORMAT_NLB)
        status = nl_spool_read_losses(outbox->spool, bytes);
    return status;
}

/* ---- parts: the bytes that one call of nl_destination_write writes ---- */

static bool has_batch(const nl_outbox *outbox)
{
    return outbox->shared != NULL && outbox->shared->batch_size > 0;
}

static nl_part part_of_batch(const nl_outbox *outbox)
{
    const nl_shared_log *shared = outbox->shared;
    return (nl_part){.data = outbox->batch + shared->batch_start, .size = shared->batch_size - shared->batch_start};
}

/* Returns whether the backup's sender may be sending records of the batch. */
static bool is_backup_sending(const nl_outbox *outbox)
{
    return outbox->backup.is_sending && !outbox->backup.interrupted;
}

/*
 * Finds the part to write next. A report of losses is first, then the records of the spool, and then the records of the
 * batch, which are newer. Returns NL_OK, NL_END if nothing waits, or NL_FAILED if the spool cannot be read. While the
 * backup's sender sends the batch, the batch does not count.
 */
static nl_status find_part(nl_outbox *outbox, nl_part *part)
{
    nl_status status = NL_END;
    while (outbox->spool != NULL && (status = nl_spool_peek(outbox->spool, &outbox->spooled)) == NL_OK) {
        *part = (nl_part){.data = outbox->spooled.data,
                          .size = outbox->spooled.size,
                          .in_spool = outbox->spooled.size,
                          .lost = nl_spool_lost(outbox->spool)};
        status = encode_losses(outbox, &outbox->losses);
        if (status == NL_OK && outbox->losses.size > 0) {
            part->is_report = true;
            part->data = outbox->losses.data;
            part->size = outbox->losses.size;
        } else if (status == NL_OK) {
            nl_spool_loss_reported(outbox->spool, part->lost);
        }
        part->front = nl_spool_get_front(outbox->spool);
        if (status != NL_OK || part->size > 0)
            return status;
        nl_spool_delivered(outbox->spool, 0);
    }
    if (status != NL_END || !has_batch(outbox) || is_backup_sending(outbox))
        return status;
    *part = part_of_batch(outbox);
    return NL_OK;
}

/* Removes the first `size` bytes from the batch, because the destination or the spool has accepted these bytes. */
static void shrink_batch(nl_outbox *outbox, size_t size)
{
    nl_shared_log *shared = outbox->shared;
    outbox->flush.left -= size < outbox->flush.left ? size : outbox->flush.left;
    if (shared->batch_start + size == shared->batch_size) {
        empty_batch(outbox);
        return;
    }
    uint64_t records = nl_records_count((nl_format)shared->format, outbox->batch + shared->batch_start, size);
    set_waiting(outbox, outbox->waiting - (records < outbox->waiting ? records : outbox->waiting));
    shared->batch_start += size;
}

/*
 * Removes from the spool the first `size` bytes of a part. If the spool has dropped some of these bytes meanwhile,
 * their records do not count as lost, because the destination has received them.
 */
static void remove_from_spool(nl_outbox *outbox, const nl_part *part, size_t size)
{
    const nl_spool_front front = nl_spool_get_front(outbox->spool);
    if (size == 0 || front.row != part->front.row)
        return;
    const uint64_t passed = front.passed - part->front.passed;
    const size_t dropped = passed < size ? (size_t)passed : size;
    const uint64_t not_lost = nl_records_count(outbox->how.format, part->data, dropped);
    outbox->from_spool += nl_records_count(outbox->how.format, part->data, size);
    if (not_lost > 0)
        nl_spool_loss_reported(outbox->spool, not_lost);
    nl_spool_delivered(outbox->spool, size - dropped);
}

/* Removes the first `written` bytes of a part from the spool and the batch, or notes that a report is written. */
static void remove_part(nl_outbox *outbox, const nl_part *part, size_t written)
{
    const nl_spool_front front = outbox->spool != NULL ? nl_spool_get_front(outbox->spool) : (nl_spool_front){0};
    if (part->is_report) {
        if (written == part->size && front.row == part->front.row)
            nl_spool_loss_reported(outbox->spool, part->lost);
        return;
    }
    size_t in_spool = written < part->in_spool ? written : part->in_spool;
    if (in_spool > 0)
        remove_from_spool(outbox, part, in_spool);
    if (written > in_spool)
        shrink_batch(outbox, written - in_spool);
}

static nl_status write_part(nl_outbox *outbox, nl_destination *destination, const nl_part *part, nl_level level)
{
    int64_t file_size = nl_destination_size(destination);
    if (file_size >= 0 && !part->is_report && part->in_spool == 0 && outbox->shared->file_offset == UINT64_MAX)
        __atomic_store_n(&outbox->shared->file_offset, (uint64_t)file_size, __ATOMIC_RELEASE);
    size_t written = 0;
    nl_status status = nl_destination_write(destination, level, part->data, part->size, &written);
    remove_part(outbox, part, written);
    return status;
}

/* Opens the destination unless it is open, and writes everything that waits. Runs in this thread. */
static nl_status write_primary(nl_outbox *outbox, nl_level level)
{
    if (outbox->destination == NULL) {
        outbox->destination = nl_destination_open(outbox->url, &outbox->how);
        if (outbox->destination == NULL)
            return NL_FAILED;
    }
    nl_part part;
    nl_status status;
    while ((status = find_part(outbox, &part)) == NL_OK)
        if (write_part(outbox, outbox->destination, &part, level) != NL_OK)
            return NL_FAILED;
    return status == NL_END ? NL_OK : status;
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
    outbox->flush.failed = true;
    outbox->hurry = false;
}

static nl_destination_options backup_options(const nl_outbox *outbox)
{
    return (nl_destination_options){
        .timeout_ms = outbox->how.timeout_ms, .now = true, .format = outbox->how.format, .ident = outbox->how.ident};
}

static nl_status open_backup(nl_outbox *outbox)
{
    const nl_destination_options how = backup_options(outbox);
    if (outbox->backup.destination == NULL)
        outbox->backup.destination = nl_destination_open(outbox->backup.url, &how);
    return outbox->backup.destination != NULL ? NL_OK : NL_FAILED;
}

static nl_status write_backup(nl_outbox *outbox, nl_level level, bool now)
{
    if (!now && nl_monotonic_ns() < outbox->backup.pace.retry_ns)
        return NL_AGAIN;
    const nl_part part = part_of_batch(outbox);
    nl_status status = open_backup(outbox);
    if (status == NL_OK)
        status = write_part(outbox, outbox->backup.destination, &part, level);
    if (status == NL_OK)
        outbox->backup.pace = (nl_pace){0};
    else
        pace_failed(&outbox->backup.pace);
    return status;
}

/* ---- the backup's sender ---- */

/* Applies the result of the job of the backup's sender if the job is done. */
static void settle_backup(nl_outbox *outbox)
{
    nl_outbox_backup *backup = &outbox->backup;
    if (!backup->is_sending || nl_sender_is_running(backup->sender))
        return;
    const nl_job *job = nl_sender_job(backup->sender);
    backup->is_sending = false;
    backup->destination = job->destination;
    if (backup->interrupted) { /* the result was applied before */
        backup->interrupted = false;
        return;
    }
    remove_part(outbox, &backup->part, job->written);
    if (job->status == NL_OK) {
        backup->pace = (nl_pace){0};
        return;
    }
    backup->failed = true;
    backup->error = job->error;
    pace_failed(&backup->pace);
}

/*
 * Interrupts the job of the backup's sender, and removes the records that it has sent from the batch. Afterwards,
 * backup.is_sending is true only if the job has not ended yet; the job then sends no more records.
 */
static void interrupt_backup(nl_outbox *outbox)
{
    nl_outbox_backup *backup = &outbox->backup;
    if (!backup->interrupted)
        remove_part(outbox, &backup->part, nl_sender_stop(backup->sender));
    backup->interrupted = true;
    backup->part = (nl_part){0};
    settle_backup(outbox);
}

/* Gives the batch to the backup's sender. */
static void start_backup(nl_outbox *outbox, nl_level level)
{
    nl_outbox_backup *backup = &outbox->backup;
    nl_job *job = nl_sender_job(backup->sender);
    nl_destination_options how = backup_options(outbox);
    nl_sender_adapt(backup->sender, &how);
    how.on_control = NULL; /* only the collector that normally gets the records controls the log */
    backup->part = part_of_batch(outbox);
    job->bytes.size = 0;
    if (!nl_buffer_append(&job->bytes, backup->part.data, backup->part.size)) {
        nl_memory_failed();
        nl_error_save(&backup->error);
        backup->failed = true;
        pace_failed(&backup->pace);
        return;
    }
    job->kind = NL_JOB_WRITE;
    job->level = level;
    job->destination = backup->destination;
    backup->is_sending = true;
    nl_sender_start(backup->sender, backup->url, &how);
    settle_backup(outbox); /* if the sender has no thread, the job is already done */
}

static void close_backup(nl_outbox *outbox)
{
    if (outbox->backup.is_sending)
        interrupt_backup(outbox);
    if (outbox->backup.is_sending) /* the sender still uses the destination */
        return;
    nl_destination *backup = outbox->backup.destination;
    if (outbox->backup.sender != NULL)
        nl_sender_job(outbox->backup.sender)->destination = NULL;
    outbox->backup.destination = NULL; /* set before the backup is closed, so that a child of fork() does not use it */
    if (backup != NULL && nl_destination_close(backup, true) != NL_OK) {
        outbox->backup.has_lost = true;
        nl_error_save(&outbox->backup.loss);
    }
}

static void report_damaged_row(const char *path)
{
    nl_report(NL_MESSAGE_CLOSE, NULL,
              "%s: this part of the spool is damaged, so its records cannot be delivered; you can remove the files %s*",
              path, path);
}

nl_status nl_outbox_open_spool(nl_outbox *outbox)
{
    const nl_log_options *options = outbox->options;
    if (outbox->spool != NULL || options == NULL || options->spool == NULL)
        return NL_OK;
    outbox->spool = nl_spool_open(options->spool, outbox->url, options->spool_size, options->spool_oldest);
    if (outbox->spool == NULL)
        return NL_FAILED;
    if (outbox->reports && !outbox->checked_rows)
        nl_spool_find_damaged(outbox->spool, report_damaged_row);
    outbox->checked_rows = true;
    return NL_OK;
}

/* Returns the number of the first bytes in the batch that the sender is sending. */
static size_t sending_from_batch(const nl_outbox *outbox)
{
    const nl_part *part = &outbox->part;
    return outbox->sending == NL_SENDING_RECORDS && !part->is_report ? part->size - part->in_spool : 0;
}

/*
 * Returns the number of bytes to move to the spool next: whole records of together at most SPOOL_PIECE bytes, or one
 * larger record. The log later sends the bytes of one nl_spool_put together. Therefore, the sender must be sending
 * either all of the returned bytes or none of them.
 */
static size_t spool_piece(const nl_outbox *outbox, const char *data, size_t size)
{
    const size_t sending = sending_from_batch(outbox);
    if (sending > 0)
        size = sending;
    if (size <= SPOOL_PIECE)
        return size;
    size_t piece = nl_records_whole(outbox->how.format, data, SPOOL_PIECE);
    return piece > 0 ? piece : nl_records_first(outbox->how.format, data, size);
}

/* Notes that the first `size` bytes of the batch are now in the spool. The sender may still be sending these bytes. */
static void note_spooled(nl_outbox *outbox, size_t size)
{
    nl_part *part = &outbox->part;
    if (sending_from_batch(outbox) == 0)
        return;
    if (part->in_spool == 0)
        part->front = nl_spool_get_front(outbox->spool);
    part->in_spool += size;
}

/*
 * Moves the batch to the spool in small parts, so that a full spool drops as little as possible. If the process is
 * killed after nl_spool_put and before batch_start advances, the same part is delivered twice. Collectors detect
 * repeated blocks. Returns NL_OK, or NL_FAILED with the reason; the rest of the batch then waits.
 */
static nl_status write_spool(nl_outbox *outbox)
{
    nl_shared_log *shared = outbox->shared;
    while (has_batch(outbox)) {
        const char *data = outbox->batch + shared->batch_start;
        size_t size = spool_piece(outbox, data, shared->batch_size - shared->batch_start);
        if (sending_from_batch(outbox) > 0 && !nl_spool_can_hold(outbox->spool, size))
            return NL_OK; /* the sender may be sending this record; wait for the result */
        if (nl_spool_put(outbox->spool, data, size) != NL_OK)
            return NL_FAILED;
        outbox->to_spool += nl_records_count(outbox->how.format, data, size);
        note_spooled(outbox, size);
        shrink_batch(outbox, size);
    }
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

uint64_t nl_outbox_count_spooled(const nl_outbox *outbox)
{
    return outbox->spool != NULL ? nl_spool_count_own(outbox->spool) : 0;
}

static bool has_backup_or_spool(const nl_outbox *outbox)
{
    return outbox->backup.url != NULL || outbox->spool != NULL;
}

static nl_status write_backup_or_spool(nl_outbox *outbox, nl_level level, nl_status status, bool now)
{
    if (has_backup_or_spool(outbox) && !has_batch(outbox))
        return NL_OK; /* the batch has no records */
    if (outbox->backup.url != NULL)
        status = write_backup(outbox, level, now);
    return outbox->spool != NULL && status != NL_OK ? write_spool(outbox) : status;
}

static void note_success(nl_outbox *outbox)
{
    outbox->away = false;
    outbox->pace = (nl_pace){0};
    close_backup(outbox);
}

/* ---- the sender ---- */

/* Returns whether the sender, and not this thread, uses the destination. */
static bool has_sender(const nl_outbox *outbox)
{
    return outbox->sender != NULL && nl_url_is_collector(outbox->url);
}

static int64_t timeout_ns(const nl_outbox *outbox)
{
    const int64_t timeout_ms = outbox->how.timeout_ms > 0 ? outbox->how.timeout_ms : NL_DESTINATION_TIMEOUT_MS;
    return timeout_ms * 1000000;
}

static void start_job(nl_outbox *outbox, nl_sending sending, nl_job_kind kind)
{
    nl_job *job = nl_sender_job(outbox->sender);
    nl_destination_options how = outbox->how;
    nl_sender_adapt(outbox->sender, &how);
    job->kind = kind;
    job->destination = outbox->destination;
    outbox->sending = sending;
    outbox->sending_since_ns = nl_monotonic_ns();
    nl_sender_start(outbox->sender, outbox->url, &how);
}

void nl_outbox_settle(nl_outbox *outbox)
{
    const nl_sending sent = outbox->sending;
    if (outbox->sender == NULL)
        return;
    settle_backup(outbox);
    nl_sender_hear(outbox->sender, outbox->how.on_control, outbox->how.user);
    if (sent == NL_SENDING_NOTHING || nl_sender_is_running(outbox->sender))
        return;
    const nl_job *job = nl_sender_job(outbox->sender);
    outbox->sending = NL_SENDING_NOTHING;
    outbox->destination = job->destination;
    if (outbox->stopped || outbox->interrupted) { /* the result was applied before */
        outbox->interrupted = false;
        return;
    }
    if (sent == NL_SENDING_EXCHANGE) {
        outbox->exchange_status = job->status;
        outbox->exchanged = true;
        return;
    }
    if (sent == NL_SENDING_RECORDS) {
        outbox->part.data = job->bytes.data;
        remove_part(outbox, &outbox->part, job->written);
    }
    if (job->status == NL_OK && (sent == NL_SENDING_RECORDS || job->error.code == NL_ERROR_NONE)) {
        note_success(outbox);
        return;
    }
    nl_error_restore(&job->error);
    nl_outbox_note_failure(outbox);
}

/* Interrupts the sender's job, and removes the records that it has sent from the batch and the spool. */
static void interrupt_sending(nl_outbox *outbox)
{
    nl_job *job = nl_sender_job(outbox->sender);
    const size_t written = nl_sender_stop(outbox->sender);
    if (outbox->sending == NL_SENDING_RECORDS) {
        outbox->part.data = job->bytes.data;
        remove_part(outbox, &outbox->part, written);
    }
    outbox->sending = NL_SENDING_GREETING; /* the only result that is still to be applied is the destination */
    outbox->interrupted = nl_sender_is_running(outbox->sender);
    if (!outbox->interrupted) {
        outbox->sending = NL_SENDING_NOTHING;
        outbox->destination = job->destination;
    }
}

void nl_outbox_stop_sending(nl_outbox *outbox)
{
    if (outbox->sender == NULL)
        return;
    outbox->stopped = true;
    if (outbox->sending != NL_SENDING_NOTHING)
        interrupt_sending(outbox);
    if (outbox->backup.is_sending)
        interrupt_backup(outbox);
}

/* Gives the next part to the sender. Returns NL_OK, NL_END if nothing waits, or NL_FAILED with the reason. */
static nl_status start_sending(nl_outbox *outbox, nl_level level)
{
    nl_job *job = nl_sender_job(outbox->sender);
    nl_status status = find_part(outbox, &outbox->part);
    if (status != NL_OK)
        return status;
    job->bytes.size = 0;
    job->level = level;
    if (!nl_buffer_append(&job->bytes, outbox->part.data, outbox->part.size))
        return nl_memory_failed();
    start_job(outbox, NL_SENDING_RECORDS, NL_JOB_WRITE);
    return NL_OK;
}

/*
 * Tries to reach the destination without sending records, while the backup's sender sends the batch. If the attempt
 * succeeds, nl_outbox_settle interrupts the backup's sender.
 */
static void start_probing(nl_outbox *outbox)
{
    outbox->part = (nl_part){0};
    nl_sender_job(outbox->sender)->bytes.size = 0;
    start_job(outbox, NL_SENDING_RECORDS, NL_JOB_WRITE);
}

/* Returns whether a flush has taken so long that it moves the rest of the batch to the spool. */
static bool is_flush_late(const nl_outbox *outbox)
{
    return outbox->flush.end_ns != 0 && nl_monotonic_ns() >= outbox->flush.end_ns;
}

/* Returns whether an attempt at the destination is due. */
static bool is_attempt_due(const nl_outbox *outbox, bool now)
{
    return !outbox->away || now || nl_monotonic_ns() >= outbox->pace.retry_ns;
}

/*
 * Reports the failure of the backup. `instead_of_slow` means that the log used the backup because the destination was
 * slow, so that the destination may still take the events. Returns NL_FAILED.
 */
static nl_status fail_backup(nl_outbox *outbox, bool instead_of_slow)
{
    report_failure(outbox, outbox->backup.url);
    if (instead_of_slow) {
        outbox->flush.failed = false;
        outbox->hurry = true;
    }
    return NL_FAILED;
}

/*
 * Leaves the batch to the backup's sender, which is sending it. When the batch reaches WAIT_LIMIT, interrupts the
 * sender if the records can go to the spool. Returns the same values as nl_outbox_send.
 */
static nl_status await_backup(nl_outbox *outbox)
{
    if (outbox->shared->batch_size < WAIT_LIMIT)
        return NL_OK;
    if (outbox->spool == NULL)
        return NL_AGAIN; /* the events wait in the rings */
    interrupt_backup(outbox);
    pace_failed(&outbox->backup.pace);
    nl_error_set(NL_ERROR_TIMEOUT, "%s: the destination accepts events too slowly; the log moves events to the spool",
                 outbox->backup.url->text);
    return fail_backup(outbox, false);
}

/*
 * Gives the batch to the backup's sender, unless it is too early for another attempt. Returns the same values as
 * nl_outbox_send.
 */
static nl_status use_backup_sender(nl_outbox *outbox, nl_level level, bool now, bool instead_of_slow)
{
    nl_outbox_backup *backup = &outbox->backup;
    if (outbox->stopped || backup->is_sending) /* an interrupted job has not ended yet */
        return NL_AGAIN;
    if (!now && nl_monotonic_ns() < backup->pace.retry_ns)
        return NL_AGAIN;
    backup->instead_of_slow = instead_of_slow;
    start_backup(outbox, level);
    return NL_OK;
}

/*
 * Writes the batch to the backup if the destination is unreachable, or so slow that the batch becomes large. First
 * interrupts the sender if it is sending a part of the batch. During a flush, the module tries a backup that has failed
 * again only when the time of the flush has elapsed. Returns the same values as nl_outbox_send.
 */
static nl_status use_backup(nl_outbox *outbox, nl_level level, bool now)
{
    /* The limit applies to batch_size, which includes bytes that were already sent. These bytes can still use space,
     * because compact_batch cannot always move the rest to the start.
     */
    const bool late = is_flush_late(outbox), full = outbox->shared->batch_size >= BACKUP_LIMIT,
               flushes = outbox->flush.end_ns != 0, is_sending = sending_from_batch(outbox) > 0,
               instead_of_slow = is_sending && flushes && !late;
    if (outbox->backup.failed) {
        outbox->backup.failed = false;
        nl_error_restore(&outbox->backup.error);
        return fail_backup(outbox, outbox->backup.instead_of_slow);
    }
    if (is_backup_sending(outbox))
        return await_backup(outbox);
    if (!late && !outbox->stopped && !outbox->away && !full)
        return NL_OK;
    if (is_sending) {
        const int64_t now_ns = nl_monotonic_ns();
        const bool is_slow = now_ns - outbox->sending_since_ns >= timeout_ns(outbox) || full,
                   has_failed = outbox->backup.pace.retry_ns != 0;
        if (!late && (!is_slow || now_ns < outbox->backup.pace.retry_ns || (flushes && has_failed)))
            return NL_OK;
        interrupt_sending(outbox);
        nl_error_set(NL_ERROR_TIMEOUT,
                     "%s: the destination accepts events too slowly; the log sends events to the backup destination",
                     outbox->url->text);
        nl_outbox_note_failure(outbox);
        if (!has_batch(outbox))
            return NL_OK;
    }
    if (outbox->backup.sender != NULL)
        return use_backup_sender(outbox, level, now || late, instead_of_slow);
    const nl_status status = write_backup(outbox, level, now || late);
    return status == NL_FAILED ? fail_backup(outbox, instead_of_slow) : status;
}

/*
 * Gives the sender its next job. Moves the batch to the backup or the spool if the destination is unreachable, or so
 * slow that the batch becomes large. Returns the same values as nl_outbox_send.
 */
static nl_status send_in_background(nl_outbox *outbox, nl_level level, bool now)
{
    nl_outbox_settle(outbox);
    compact_batch(outbox);
    while (outbox->sending == NL_SENDING_NOTHING && !outbox->stopped && is_attempt_due(outbox, outbox->hurry) &&
           !is_flush_late(outbox)) {
        nl_status status = start_sending(outbox, level);
        if (status == NL_END && outbox->away && is_backup_sending(outbox)) {
            start_probing(outbox);
            status = NL_OK;
        }
        if (status == NL_FAILED)
            nl_outbox_note_failure(outbox);
        if (status != NL_OK)
            break;
        outbox->hurry = false;
        nl_outbox_settle(outbox); /* if the sender has no thread, the job is already done */
    }
    if (has_batch(outbox) && outbox->backup.url != NULL) {
        const nl_status status = use_backup(outbox, level, now);
        if (status == NL_OK || outbox->spool == NULL || is_backup_sending(outbox))
            return status;
    }
    if (!has_batch(outbox) ||
        (!outbox->away && !outbox->stopped && part_of_batch(outbox).size < BATCH_LIMIT && !is_flush_late(outbox)))
        return NL_OK;
    nl_status status = write_spool(outbox);
    if (status != NL_OK)
        report_failure(outbox, outbox->url);
    return status;
}

nl_status nl_outbox_make_sender(nl_outbox *outbox, void (*wake)(void *user), void *user)
{
    outbox->sender = nl_sender_new(wake, user);
    if (outbox->sender == NULL)
        return NL_FAILED;
    if (outbox->backup.url != NULL && nl_url_is_collector(outbox->backup.url)) {
        outbox->backup.sender = nl_sender_new(wake, user);
        if (outbox->backup.sender == NULL)
            return NL_FAILED;
    }
    return NL_OK;
}

void nl_outbox_adapt(nl_outbox *outbox, nl_destination_options *options)
{
    if (outbox->sender != NULL)
        nl_sender_adapt(outbox->sender, options);
}

nl_status nl_outbox_open_destination(nl_outbox *outbox)
{
    nl_error_clear();
    if (has_sender(outbox)) {
        start_job(outbox, NL_SENDING_GREETING, NL_JOB_OPEN);
        nl_sender_wait(outbox->sender, OPEN_WAIT_NS);
        if (nl_sender_is_running(outbox->sender)) { /* until the sender is done, records go to the spool */
            outbox->away = true;
            return NL_OK;
        }
        const nl_job *job = nl_sender_job(outbox->sender);
        outbox->sending = NL_SENDING_NOTHING;
        outbox->destination = job->destination;
        nl_error_restore(&job->error);
    } else {
        outbox->destination = nl_destination_open(outbox->url, &outbox->how);
    }
    const nl_error_code code = nl_error_get_code();
    if (outbox->destination == NULL && code != NL_ERROR_UNREACHABLE && outbox->backup.url == NULL)
        return NL_FAILED;
    if (code != NL_ERROR_NONE)
        nl_outbox_note_failure(outbox);
    nl_error_clear();
    return NL_OK;
}

bool nl_outbox_is_sending(const nl_outbox *outbox)
{
    return outbox->sending != NL_SENDING_NOTHING || outbox->backup.is_sending;
}

bool nl_outbox_expects_reply(const nl_outbox *outbox)
{
    return outbox->sending != NL_SENDING_NOTHING && nl_monotonic_ns() - outbox->sending_since_ns < PROMPT_NS;
}

void nl_outbox_poll(nl_outbox *outbox)
{
    nl_outbox_settle(outbox);
    if (outbox->destination == NULL || outbox->sending != NL_SENDING_NOTHING)
        return;
    nl_destination_poll(outbox->destination);
    if (outbox->sender != NULL)
        nl_sender_hear(outbox->sender, outbox->how.on_control, outbox->how.user);
}

nl_status nl_outbox_exchange(nl_outbox *outbox, nl_exchange *exchange, bool wait)
{
    if (!has_sender(outbox))
        return nl_destination_exchange(outbox->destination, exchange);
    nl_outbox_settle(outbox);
    if (!outbox->exchanged && outbox->sending == NL_SENDING_NOTHING)
        start_job(outbox, NL_SENDING_EXCHANGE, NL_JOB_EXCHANGE);
    if (wait && outbox->sending == NL_SENDING_EXCHANGE)
        nl_sender_wait(outbox->sender, EXCHANGE_WAIT_NS);
    nl_outbox_settle(outbox);
    if (!outbox->exchanged)
        return NL_AGAIN;
    outbox->exchanged = false;
    *exchange = nl_sender_job(outbox->sender)->exchange;
    return outbox->exchange_status;
}

/* ---- sending ---- */

void nl_outbox_begin_flush(nl_outbox *outbox, bool flush)
{
    outbox->hurry = flush;
    outbox->flush = (nl_outbox_flush){0};
    if (flush && has_sender(outbox))
        outbox->flush.end_ns = nl_monotonic_ns() + timeout_ns(outbox);
}

bool nl_outbox_is_flushing(nl_outbox *outbox, bool stuck)
{
    nl_outbox_flush *flush = &outbox->flush;
    if (flush->end_ns == 0 || !has_sender(outbox) || outbox->stopped)
        return false;
    if (!stuck && !flush->counted) {
        flush->left = has_batch(outbox) ? part_of_batch(outbox).size : 0;
        flush->counted = true;
    }
    const bool waits = nl_outbox_is_spooled(outbox) || (stuck ? has_batch(outbox) : flush->left > 0);
    /* After the maximum time, a sender that is still busy is resolving a host name. */
    if (outbox->sending != NL_SENDING_NOTHING || is_backup_sending(outbox))
        return waits && nl_monotonic_ns() < flush->end_ns + timeout_ns(outbox);
    return waits && !flush->failed && !is_flush_late(outbox);
}

nl_status nl_outbox_send(nl_outbox *outbox, nl_level level, bool at_once)
{
    if (nl_outbox_open_spool(outbox) != NL_OK)
        return NL_FAILED;
    if (has_sender(outbox))
        return send_in_background(outbox, level, at_once);
    if (!nl_outbox_is_spooled(outbox) && !has_batch(outbox))
        return NL_OK;
    nl_status status = NL_AGAIN;
    if (is_attempt_due(outbox, at_once && (outbox->hurry || !has_backup_or_spool(outbox)))) {
        outbox->hurry = false;
        status = write_primary(outbox, level);
        if (status == NL_OK) {
            note_success(outbox);
            return NL_OK;
        }
        nl_outbox_note_failure(outbox);
    }
    status = write_backup_or_spool(outbox, level, status, at_once);
    if (status == NL_FAILED && has_backup_or_spool(outbox))
        report_failure(outbox, outbox->backup.url != NULL ? outbox->backup.url : outbox->url);
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
    outbox->reported = 0;       /* no failure of the new destination has been reported yet */
    if (outbox->shared != NULL) /* the recorded position is that of the batch in the old file */
        __atomic_store_n(&outbox->shared->file_offset, UINT64_MAX, __ATOMIC_RELEASE);
}

void nl_outbox_after_fork(nl_outbox *outbox)
{
    nl_mapping_remove(&outbox->mapping);
    outbox->shared = NULL;
    outbox->waiting = 0;
    outbox->away = false;
    outbox->pace = outbox->backup.pace = (nl_pace){0};
    nl_spool_close(outbox->spool); /* the spool belongs to the parent; the child opens its own */
    outbox->spool = NULL;
    outbox->spooled = outbox->losses =
        (nl_buffer){0}; /* the memory leaks: the parent's thread may have been changing it */
    outbox->sending = NL_SENDING_NOTHING;
    outbox->stopped = outbox->interrupted = false;
    outbox->exchanged = false;
    outbox->flush = (nl_outbox_flush){0};
    if (outbox->sender != NULL)
        nl_sender_after_fork(outbox->sender);
    if (outbox->destination != NULL)
        nl_destination_after_fork(outbox->destination);
    outbox->backup.is_sending = outbox->backup.interrupted = outbox->backup.failed = false;
    if (outbox->backup.sender != NULL)
        nl_sender_after_fork(outbox->backup.sender);
    if (outbox->backup.destination != NULL)
        nl_destination_after_fork(outbox->backup.destination);
    /* The file has already been truncated. */
    outbox->how.truncate = false;
}

nl_status nl_outbox_close_destination(nl_outbox *outbox)
{
    close_backup(outbox);
    nl_destination *destination = outbox->destination;
    const bool sends = outbox->sending != NL_SENDING_NOTHING; /* the sender uses the destination, and will close it */
    outbox->destination = NULL;
    outbox->sending = NL_SENDING_NOTHING;
    if (outbox->sender != NULL && !sends) {
        nl_sender_cancel(outbox->sender);
        nl_sender_job(outbox->sender)->destination = NULL;
    }
    /* Closes the destination first, because it passes commands to the sender. */
    nl_status status = destination != NULL && !sends ? nl_destination_close(destination, true) : NL_OK;
    nl_sender_free(outbox->sender);
    outbox->sender = NULL;
    if (status == NL_OK && outbox->backup.has_lost)
        return nl_error_restore(&outbox->backup.loss);
    return status;
}

void nl_outbox_close(nl_outbox *outbox)
{
    nl_outbox_close_destination(outbox);
    close_backup(outbox);
    if (outbox->backup.sender != NULL)
        nl_sender_free(outbox->backup.sender);
    nl_spool_close(outbox->spool);
    nl_buffer_free(&outbox->spooled);
    nl_buffer_free(&outbox->losses);
    nl_url_free(outbox->url);
    nl_url_free(outbox->backup.url);
    nl_mapping_remove(&outbox->mapping);
}
