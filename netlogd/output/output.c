#include "config.h"

#include "output.h"

#include "base/memory.h"
#include "base/monotonic.h"
#include "service/ending.h"
#include "base/error.h"
#include "file.h"
#include "file_index.h"
#include "journal.h"
#include "record/line_scanner.h"
#include "record/terminal.h"
#include "record/text.h"
#include "filter/filter.h"
#include "program/program.h"
#include "repair.h"
#include "retention.h"
#include "seal.h"
#include "reader/archive.h"
#include "record/encoder.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    BATCH = 256 << 10,    /* maximum of batch_size */
    BATCH_MIN = 64 << 10, /* minimum of batch_size with compression; the file may then exceed its maximum size */
    DUE = 4 << 20,
    REPAIRS = 2,
};

enum { STREAM = 16 };

struct output {
    output_options options;
    output_file file;
    file_index *index;   /* indexes of the file, or NULL */
    value_choice values; /* fields of the value indexes */
    seal *seal;          /* NULL: the files are not sealed */
    nl_time_piece times; /* times of the records that are not in the file yet */
    delivery *delivery;  /* NULL: the output is only a file */
    nl_encoder *encoder;
    nl_buffer batch; /* encoded records that are not written yet */
    nl_streams *streams;
    output_past past;
    journal *journal; /* NULL: the output is not a file, or cannot have a journal */
    bool noted;       /* the journal has an entry for this file */
    bool ahead;       /* the file has records for which the journal has no entry */
    bool settled;     /* netlogd may acknowledge all written records and received blocks */
    bool blocked;
    bool failed; /* encoding a record has failed since the latest output_settle */
    struct {     /* the latest block */
        unsigned char stream[STREAM];
        nl_buffer fresh; /* nl_number_range: the numbers that are new to this output */
        size_t at;       /* index of the range that contains the next record */
    } block;
    unsigned char own[STREAM]; /* stream of the records that this output numbers itself */
    uint64_t own_next;
    output_counts counts;
    retention retention; /* deletion of old files */
    uint64_t put;        /* number of encoded bytes written since the latest flush, before compression */
    size_t batch_size;   /* number of encoded bytes after which a batch is written */
    int64_t settle_ns;   /* time of the next sync, with fsync=DURATION */
    repair repairs[REPAIRS];
};

/*
 * Chooses a batch size with which the file ends at its maximum size. Compressed batches have at least BATCH_MIN bytes.
 */
static void choose_batch_size(output *out)
{
    const output_options *o = &out->options;
    uint64_t left = o->rotate_size == 0               ? BATCH
                    : o->rotate_size > out->file.size ? o->rotate_size - out->file.size
                                                      : o->rotate_size; /* for the next file */
    if (o->zstd_level > 0 && left < BATCH_MIN)
        left = BATCH_MIN;
    out->batch_size = left < BATCH ? (size_t)left : BATCH;
}

/* ---- opening ---- */

/* Returns whether the directory of a file permits no access to files. Sets errno to EACCES. */
static bool is_directory_closed(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash != NULL ? program_format("%.*s", (int)(slash - path) + 1, path) : program_copy(".");
    const bool closed = access(directory, X_OK) != 0 && errno == EACCES;
    free(directory);
    errno = EACCES;
    return closed;
}

/*
 * Opens the journal. If there is no journal and the directory is not writable, the output remembers streams only while
 * netlogd runs.
 */
static nl_status open_journal(output *out)
{
    char *name = output_file_name_beside(&out->options, ".streams"), *last = NULL;
    journal_mark mark;
    bool found;
    nl_status status = NL_OK;
    out->journal = journal_open(name, out->streams, &mark, &found);
    if (out->journal == NULL) {
        status = is_directory_closed(name) ? nl_error_set_errno("open %s", out->options.path) : NL_FAILED;
    } else if (found) {
        out->past = mark.ended ? OUTPUT_PAST_ENDED : OUTPUT_PAST_KILLED;
        last = output_file_name(&out->options, mark.number);
        status = repair_unacknowledged(last, &mark, &out->repairs[0]);
    } else {
        char *slash = strrchr(name, '/');
        if (slash != NULL)
            slash[slash == name] = '\0';
        if (access(slash != NULL ? name : ".", W_OK) != 0 && errno != ENOENT) { /* opening the file reports ENOENT */
            if (access(out->options.path, W_OK) == 0) /* otherwise, opening the file reports the error */
                program_error(
                    "%s: cannot create a journal beside this file; after a restart, netlogd may store repeated "
                    "blocks twice",
                    out->options.path);
            journal_close(out->journal);
            out->journal = NULL;
        }
    }
    free(last);
    free(name);
    return status;
}

/*
 * Sets *number to the number of the file to open. This is the number of the latest file if that file is empty, and
 * otherwise the next number. Without numbered files, sets *number to 0.
 */
static nl_status first_number(output *out, uint64_t *number)
{
    *number = 0;
    if (!out->options.numbered)
        return NL_OK;
    if (output_file_highest(&out->options, number) != NL_OK)
        return NL_FAILED;
    uint64_t size, whole;
    char *name = output_file_name(&out->options, *number);
    if (*number > 0 && (nl_archive_find_end(name, &size, &whole) != NL_OK || size > 0))
        ++*number;
    free(name);
    *number += *number == 0;
    return NL_OK;
}

/* Repairs the end of the file that will be continued, or of the previous file. */
static nl_status repair_latest(output *out, uint64_t number)
{
    char *name = output_file_name(&out->options, number > 1 ? number - 1 : number);
    nl_status status = repair_end(name, &out->repairs[1]);
    if (status == NL_OK && out->options.spool == NULL && number > 1)
        file_index_complete(name, &out->values); /* a killed netlogd may have left the index incomplete */
    free(name);
    return status;
}

/* Begins the index. The files of a spool have no index, because netlogd removes them after delivery. */
static void begin_index(output *out)
{
    file_index_close(out->index);
    out->index = out->options.spool == NULL ? file_index_open(&out->file, out->options.format, &out->values) : NULL;
}

/*
 * Waits until the journal and the names of the files are on the disk. Without this step, netlogd could remove sealed
 * bytes after a crash of the machine.
 */
static nl_status make_journal_safe(output *out)
{
    output_file_sync_directory(out->options.path);
    return out->journal != NULL ? journal_sync(out->journal) : NL_OK;
}

static nl_status open_seal(output *out)
{
    if (out->options.seal_key == NULL)
        return NL_OK;
    if (make_journal_safe(out) == NL_OK)
        out->seal = seal_open(&out->options);
    return out->seal != NULL ? NL_OK : NL_FAILED;
}

static nl_status open_files(output *out)
{
    uint64_t number = 0;
    int claim = -1;
    /* Lock the file before changing anything. A spool has its own lock. */
    if (out->options.path != NULL && out->options.spool == NULL && output_file_claim(&out->options, &claim) != NL_OK)
        return NL_FAILED;
    nl_status status = NL_OK;
    if (out->options.path != NULL && (open_journal(out) != NL_OK || first_number(out, &number) != NL_OK ||
                                      repair_latest(out, number) != NL_OK || open_seal(out) != NL_OK))
        status = NL_FAILED;
    if (claim >= 0)
        close(claim);
    if (status != NL_OK)
        return status;
    number = seal_next_number(out->seal, number);
    if (output_file_open(&out->file, &out->options, number, false) != NL_OK)
        return NL_FAILED;
    begin_index(out);
    choose_batch_size(out);
    if (!out->file.plain) {
        journal_close(out->journal);
        out->journal = NULL;
        out->past = OUTPUT_PAST_NONE;
    }
    return NL_OK;
}

static void free_output(output *out)
{
    retention_reset(&out->retention);
    file_index_close(out->index);
    seal_close(out->seal);
    output_file_close(&out->file);
    /* Allow only a part of the remaining time, because a delivery in progress may take longer. */
    delivery_close(out->delivery, ending_left_ms() / 10 * 9);
    journal_close(out->journal);
    nl_streams_free(out->streams);
    nl_encoder_free(out->encoder);
    nl_buffer_free(&out->batch);
    nl_buffer_free(&out->block.fresh);
    output_options_free(&out->options);
    for (int i = 0; i < REPAIRS; i++)
        free(out->repairs[i].file);
    free(out);
}

static nl_encoder *new_encoder(const output_options *options)
{
    return nl_encoder_new(&(nl_encoder_options){.format = options->format, .zstd_level = options->zstd_level});
}

output *output_open(output_options *options)
{
    output *out = nl_memory_check(calloc(1, sizeof *out));
    out->options = *options;
    *options = (output_options){0};
    out->file.fd = -1;
    out->settled = true;
    out->times = NL_TIME_PIECE_EMPTY;
    out->streams = nl_streams_new();
    out->encoder = new_encoder(&out->options);
    const bool is_archive = out->options.numbered && out->options.spool == NULL;
    nl_status status =
        value_choice_set(&out->values, out->options.index == NULL && is_archive ? "auto" : out->options.index);
    if (status == NL_OK && out->options.kind->numbered && getrandom(out->own, STREAM, 0) != STREAM)
        status = nl_error_set_errno("cannot get random bytes");
    /* Lock the spool before changing anything in it. */
    if (status == NL_OK && out->options.kind->deliver != NULL)
        status = (out->delivery = delivery_open(&out->options)) != NULL ? NL_OK : NL_FAILED;
    if (status == NL_OK)
        status = open_files(out);
    if (status == NL_OK)
        return out;
    free_output(out);
    return NULL;
}

void output_start(output *out, nl_log *log)
{
    if (out->delivery != NULL)
        delivery_start(out->delivery, (output_place){out->file.number, out->file.size}, log);
}

void output_report_repairs(output *out, nl_log *log)
{
    for (int i = 0; i < REPAIRS; i++) {
        repair *what = &out->repairs[i];
        if (what->cut > 0)
            nl_write(log, NL_WARNING, "Netlogd.Repaired", "FILE=%s CUT=%llu KEPT=%llu REASON=%s", what->file,
                     (unsigned long long)what->cut, (unsigned long long)what->kept, what->reason);
        free(what->file);
        *what = (repair){0};
    }
}

nl_streams *output_streams(output *out)
{
    return out->streams;
}

output_past output_get_past(const output *out)
{
    return out->past;
}

const output_options *output_get_options(const output *out)
{
    return &out->options;
}

const output_counts *output_get_counts(const output *out)
{
    return &out->counts;
}

uint64_t output_encoded(const output *out)
{
    return out->counts.encoded + nl_encoder_size(out->encoder);
}

const unsigned char *output_own_stream(const output *out)
{
    return out->options.kind->numbered ? out->own : NULL;
}

bool output_wants_blocks(const output *out)
{
    return out->options.format == NL_FORMAT_NLB && out->options.filter == NULL;
}

bool output_wants_lines(const output *out, nl_format format)
{
    return out->options.format == format && nl_format_is_text(format) && out->options.filter == NULL;
}

/* ---- writing ---- */

static nl_status note_always(output *out, nl_status (*write)(journal *, const journal_mark *, bool), bool ended)
{
    journal_mark mark = {.number = out->file.number, .inode = out->file.inode, .size = out->file.size, .ended = ended};
    nl_status status = write(out->journal, &mark, out->options.sync_ns != OUTPUT_SYNC_NEVER);
    out->noted = out->noted || status == NL_OK;
    return status;
}

/* Writes an entry with the size of the file to the journal, if a journal is needed. */
static nl_status output_note(output *out, nl_status (*write)(journal *, const journal_mark *, bool), bool ended)
{
    bool needed = out->journal != NULL && journal_is_needed(out->journal);
    return needed ? note_always(out, write, ended) : NL_OK;
}

nl_status output_note_streams(output *out)
{
    return out->journal != NULL ? note_always(out, journal_write_all, false) : NL_OK;
}

nl_status output_begin(output *out)
{
    return out->noted ? NL_OK : output_note(out, journal_begin, false);
}

static bool has_rotate_size(const output *out)
{
    return out->options.rotate_size > 0 && out->file.size >= out->options.rotate_size;
}

static bool is_time_to_rotate(const output *out)
{
    const output_options *o = &out->options;
    if (!o->numbered || out->ahead || out->file.size == 0)
        return false;
    return has_rotate_size(out) || (o->rotate_ns > 0 && nl_monotonic_ns() - out->file.opened_ns >= o->rotate_ns);
}

bool output_is_full(const output *out)
{
    return out->ahead && !out->blocked && has_rotate_size(out);
}

/*
 * Syncs the file. On failure, ends netlogd as if it were killed. The kernel reports only once that bytes did not reach
 * the disk, and may have dropped them; a second fsync would succeed. Because the bytes were not acknowledged, the next
 * netlogd removes them, and clients send them again.
 */
static void sync_file(output *out)
{
    if (output_file_sync(&out->file) != NL_OK)
        program_fail(PROGRAM_PROBLEM,
                     "%s; the latest records were not acknowledged, and netlogd removes them at the next start",
                     nl_error_message());
}

/* Seals the file up to the size in the journal. `ended` is true if the file will not grow. */
static nl_status seal_file(output *out, bool ended)
{
    if (out->seal == NULL)
        return NL_OK;
    sync_file(out);
    return make_journal_safe(out) == NL_OK ? seal_write(out->seal, ended) : NL_FAILED;
}

static nl_status open_another(output *out)
{
    uint64_t number = 0;
    if (out->options.numbered) {
        if (output_file_highest(&out->options, &number) != NL_OK)
            return NL_FAILED;
        number = (number > out->file.number ? number : out->file.number) + 1;
    }
    /* Ignore a failure for a removed file. The file occupies space until it is closed, so there may be no space for a
     * seal. */
    if (seal_file(out, true) != NL_OK && !output_file_is_removed(&out->file))
        return NL_FAILED;
    if (output_file_open(&out->file, &out->options, number, out->options.numbered) != NL_OK)
        return NL_FAILED;
    begin_index(out);
    out->noted = false;
    choose_batch_size(out);
    return NL_OK;
}

static void unsettle(output *out)
{
    if (out->settled)
        out->settle_ns = nl_monotonic_ns() + out->options.sync_ns;
    out->settled = false;
}

/* Returns NL_FAILED if the spool is full. */
static nl_status check_spool(output *out)
{
    if (out->delivery == NULL || delivery_has_space(out->delivery, out->batch.size, out->options.spool_size))
        return NL_OK;
    delivery_state state;
    delivery_describe(out->delivery, &state);
    const bool away = state.problem.code != NL_ERROR_NONE;
    return nl_error_set(NL_ERROR_FULL, "the spool %s is full, and %s%s%s", out->options.spool, out->options.target,
                        away ? " cannot be reached: " : " is slow", away ? state.problem.message : "");
}

/*
 * Begins another file if the file was removed. Without this step, netlogd would acknowledge records that nobody can
 * read, and the removed file would still occupy space on the disk.
 */
static nl_status leave_removed(output *out)
{
    if (out->options.path == NULL || !output_file_is_removed(&out->file))
        return NL_OK;
    char *name = program_copy(out->file.name);
    nl_status status = open_another(out);
    if (status == NL_OK)
        program_error("%s was removed; continuing with a new file", name);
    free(name);
    return status;
}

static nl_status write_batch(output *out)
{
    size_t written;
    if (leave_removed(out) != NL_OK || check_spool(out) != NL_OK ||
        (is_time_to_rotate(out) && open_another(out) != NL_OK) || output_begin(out) != NL_OK ||
        seal_begin_file(out->seal, out->file.number) != NL_OK)
        return NL_FAILED;
    unsettle(out);
    out->ahead = true;
    nl_status status = output_file_write(&out->file, out->batch.data, out->batch.size, &written);
    seal_wrote(out->seal, out->batch.data, written);
    file_index_wrote(out->index, written, out->file.size, status == NL_OK ? &out->times : NULL);
    if (status == NL_OK)
        out->times = NL_TIME_PIECE_EMPTY;
    out->counts.bytes += written;
    if (out->delivery != NULL)
        delivery_wrote(out->delivery, written);
    out->batch.size -= written;
    memmove(out->batch.data, out->batch.data + written, out->batch.size);
    choose_batch_size(out);
    return status;
}

/* Writes all records. After a kill, the next netlogd removes them unless they are settled. */
static nl_status write_all(output *out)
{
    out->put += nl_encoder_size(out->encoder);
    out->counts.encoded += nl_encoder_size(out->encoder);
    nl_encoder_finish(out->encoder, &out->batch);
    nl_status status = out->batch.size > 0 ? write_batch(out) : NL_OK;
    out->blocked = status != NL_OK;
    return status;
}

/* Writes a batch if it is large enough. Returns whether the file is full and must be settled. */
static bool write_if_much(output *out)
{
    if (out->blocked || nl_encoder_size(out->encoder) < out->batch_size)
        return false;
    write_all(out);
    return output_is_full(out);
}

/* Returns whether the line begins with a field. A prefix from another program may precede the first field. */
static bool has_no_prefix(const nl_record *record)
{
    return nl_text_begins_with_field(nl_format_get_info(record->raw_format)->text, record->raw);
}

/* Returns whether the raw text of a record is a clean line of this format, which can be written unchanged. */
static bool output_takes_raw(const nl_record *record, nl_format format)
{
    return record->raw_format == format && record->raw.data != NULL && has_no_prefix(record) &&
           !nl_terminal_controls(record->raw.data, record->raw.size);
}

void output_put_line(const nl_record *record, nl_format format, nl_buffer *line)
{
    if (output_takes_raw(record, format)) {
        nl_buffer_append(line, record->raw.data, record->raw.size);
        nl_buffer_append(line, "\n", 1);
    } else {
        nl_record_encode(record, format, line);
    }
}

/* Returns whether the record with this number in the latest block is new. Call it with ascending numbers. */
static bool is_new(output *out, uint64_t sequence)
{
    const nl_number_range *fresh = (const nl_number_range *)out->block.fresh.data;
    size_t count = out->block.fresh.size / sizeof *fresh;
    while (out->block.at < count && sequence >= fresh[out->block.at].to)
        out->block.at++;
    return out->block.at < count && sequence >= fresh[out->block.at].from;
}

/* Returns whether the output itself numbers the record. An output with a filter numbers all its records, because the
 * records that it omits would look like a loss in their producers' streams. */
static bool is_own(const output *out, const uint64_t *sequence)
{
    return (sequence == NULL || out->options.filter != NULL) && out->options.kind->numbered;
}

static void set_stream(output *out, const uint64_t *sequence)
{
    if (out->options.format != NL_FORMAT_NLB)
        return;
    if (is_own(out, sequence))
        nl_encoder_set_stream(out->encoder, out->own, out->own_next);
    else if (sequence != NULL && out->options.filter == NULL)
        nl_encoder_set_stream(out->encoder, out->block.stream, *sequence);
    else
        nl_encoder_set_stream(out->encoder, NULL, 0);
}

static void add_times(output *out, int64_t min_ns, int64_t max_ns, uint64_t records)
{
    nl_time_piece_add(&out->times, &(nl_time_piece){.min_ns = min_ns, .max_ns = max_ns, .records = records});
}

/*
 * Returns whether the record matches the filter. Also returns true if the evaluation of the filter takes too many
 * steps.
 */
static bool is_meant(output *out, const nl_record *record)
{
    uint64_t steps = NL_FILTER_STEPS_MAX;
    bool matches;
    if (out->options.filter == NULL)
        return true;
    if (nl_filter_match(out->options.filter, record, &steps, &matches) == NL_OK)
        return matches;
    if (out->counts.undecided++ == 0)
        program_error(
            "output %s: evaluating where= for a record takes more than %llu steps; netlogd stores and counts such "
            "records, and does not report further ones",
            out->options.target, (unsigned long long)NL_FILTER_STEPS_MAX);
    return true;
}

/* Counts records that cannot be encoded. Reports the first of them since the latest output_settle. */
static void report_unwritten(output *out, uint64_t count)
{
    out->counts.unwritten += count;
    if (out->failed)
        return;
    out->failed = true;
    program_error("%s: %s; record omitted", out->file.name, nl_error_message());
}

static size_t end_of(nl_scanned_line line)
{
    return (size_t)nl_line_offset(line) + nl_line_size(line) + 1;
}

size_t output_count_due(const output *out, const nl_scanned_line *lines, size_t count)
{
    const size_t held = nl_encoder_size(out->encoder), left = out->batch_size > held ? out->batch_size - held : 0,
                 begin = (size_t)nl_line_offset(lines[0]);
    if (end_of(lines[count - 1]) - begin < left)
        return count;
    size_t due = 1;
    while (due < count && end_of(lines[due - 1]) - begin < left)
        due++;
    return due;
}

bool output_put_lines(output *out, const char *text, const nl_scanned_line *lines, size_t count)
{
    const size_t begin = (size_t)nl_line_offset(lines[0]);
    int64_t min_ns = INT64_MAX, max_ns = INT64_MIN;
    for (size_t i = 0; i < count; i++) {
        min_ns = lines[i].time_ns < min_ns ? lines[i].time_ns : min_ns;
        max_ns = lines[i].time_ns > max_ns ? lines[i].time_ns : max_ns;
    }
    if (nl_encoder_put_lines(out->encoder, text + begin, end_of(lines[count - 1]) - begin) == NL_OK) {
        add_times(out, min_ns, max_ns, count);
        out->counts.records += count;
    } else {
        report_unwritten(out, count);
    }
    return write_if_much(out);
}

bool output_put(output *out, const nl_record *record, const uint64_t *sequence)
{
    nl_record clean;
    if ((sequence != NULL && !is_new(out, *sequence)) || !is_meant(out, record))
        return false;
    set_stream(out, sequence);

    /* Clear the raw line, because the encoder would copy it with its prefix. */
    if (record->raw_format == out->options.format && record->raw.data != NULL && !has_no_prefix(record)) {
        clean = *record;
        clean.raw = (nl_string){0};
        record = &clean;
    }
    nl_status status = nl_encoder_put(out->encoder, record);
    if (status == NL_OK)
        add_times(out, record->time_ns, record->time_ns, 1);
    if (status == NL_OK && out->options.format == NL_FORMAT_NLB && is_own(out, sequence))
        out->own_next++;
    out->counts.records += status == NL_OK;
    if (status != NL_OK)
        report_unwritten(out, 1);
    return write_if_much(out);
}

static bool has_stream(const nl_block_view *block)
{
    static const unsigned char none[STREAM];
    return memcmp(block->stream, none, STREAM) != 0;
}

/* Adds the numbers of a block to the output's streams. Returns how many records of the block are new to this output. */
static uint64_t take_numbers(output *out, const nl_block_view *block)
{
    uint64_t count = 0;
    memcpy(out->block.stream, block->stream, STREAM);
    nl_streams_take(out->streams, block, &out->block.fresh);
    out->block.at = 0;
    const nl_number_range *fresh = (const nl_number_range *)out->block.fresh.data;
    for (size_t i = 0; i < out->block.fresh.size / sizeof *fresh; i++)
        count += fresh[i].to - fresh[i].from;
    if (out->journal != NULL)
        journal_touch(out->journal, block->stream);
    return count;
}

bool output_begin_block(output *out, const nl_block_view *block)
{
    bool whole = has_stream(block) ? take_numbers(out, block) == block->record_count : !out->options.kind->numbered;
    unsettle(out); /* the journal must contain the stream even if no record is new */
    return whole;
}

bool output_put_block(output *out, const nl_block_view *block)
{
    nl_encoder_put_block(out->encoder, block);
    add_times(out, block->min_time_ns, block->max_time_ns, block->record_count);
    out->counts.records += block->record_count;
    return write_if_much(out);
}

nl_status output_settle(output *out)
{
    nl_status status = write_all(out);
    nl_encoder_set_stream(out->encoder, NULL, 0);
    if (status == NL_OK && !out->settled && out->options.sync_ns != OUTPUT_SYNC_NEVER)
        sync_file(out);
    if (status == NL_OK && !out->settled)
        status = output_note(out, journal_write, false);
    if (status == NL_OK && seal_is_due(out->seal))
        status = seal_file(out, false);
    out->settled = status == NL_OK;
    out->ahead = out->ahead && status != NL_OK;
    if (out->settled && out->delivery != NULL)
        delivery_settled(out->delivery, (output_place){out->file.number, out->file.size});
    out->blocked = status != NL_OK;
    out->put = 0;
    out->failed = false;
    return status;
}

nl_status output_flush(output *out)
{
    if (out->options.sync_ns < 0 || output_settle_ms(out) == 0)
        return output_settle(out);
    nl_status status = write_all(out);
    out->put = 0;
    return status;
}

bool output_is_empty(const output *out)
{
    return nl_encoder_size(out->encoder) == 0 && out->batch.size == 0;
}

bool output_is_blocked(const output *out)
{
    return out->blocked;
}

bool output_is_due(const output *out)
{
    return out->put >= DUE;
}

bool output_is_settled(const output *out)
{
    return out->settled;
}

int output_settle_ms(const output *out)
{
    int64_t left_ns = out->settle_ns - nl_monotonic_ns();
    int64_t left_ms = left_ns <= 0 ? 0 : (left_ns + 999999) / 1000000;
    return left_ms < INT_MAX ? (int)left_ms : INT_MAX;
}

bool output_is_seal_due(const output *out)
{
    return seal_is_due(out->seal);
}

bool output_delivers(output *out, delivery_state *state)
{
    if (out->delivery != NULL)
        delivery_describe(out->delivery, state);
    return out->delivery != NULL;
}

bool output_holds_all(const output *out)
{
    const output_options *o = &out->options;
    return o->path != NULL && o->spool == NULL && out->file.plain && o->filter == NULL &&
           (o->format == NL_FORMAT_NLB || o->zstd_level == 0);
}

void output_delete_old(output *out, uint64_t first_needed, size_t memory_max, nl_log *log)
{
    const output_options *o = &out->options;
    if ((o->keep_ns == 0 && o->keep_size == 0) || out->blocked)
        return;
    /* The journal may still name the previous file, which the next netlogd would look for after a kill. */
    if (out->journal != NULL && journal_is_needed(out->journal) && !out->noted)
        return;
    retention_check(&out->retention, o, &out->file, first_needed, memory_max, log);
    const keeper_counts kept = retention_count_kept(&out->retention);
    out->counts.deleted = out->retention.files;
    out->counts.deleted_bytes = out->retention.bytes;
    out->counts.unsearched = out->retention.unsearched;
    out->counts.kept_requests = kept.requests;
    out->counts.kept_records = kept.records;
}

nl_status output_reopen(output *out)
{
    nl_status status = output_settle(out);
    bool another = out->options.path != NULL && (!out->options.numbered || out->file.size > 0);
    return status == NL_OK && another ? open_another(out) : status;
}

nl_status output_change(output *out, output_options *options)
{
    nl_status status = output_settle(out);
    if (status != NL_OK) {
        output_options_free(options);
        return status;
    }
    retention_reset(&out->retention); /* it uses the old options */
    output_options before = out->options;
    const char *key = before.seal_key, *new_key = options->seal_key;
    if (key == NULL ? new_key != NULL : new_key == NULL || strcmp(key, new_key) != 0) {
        output_options_free(options);
        return nl_error_set(NL_ERROR_SYSTEM, "%s: seal= changes only when netlogd restarts", before.target);
    }
    out->options = *options;
    *options = before;
    bool renamed = before.path != NULL && strcmp(before.path, out->options.path) != 0;
    if (renamed && (status = open_another(out)) != NL_OK) {
        *options = out->options;
        out->options = before;
    } else {
        nl_encoder_free(out->encoder);
        out->encoder = new_encoder(&out->options);
        choose_batch_size(out);
        if (out->delivery != NULL)
            delivery_change(out->delivery, &out->options);
    }
    output_options_free(options);
    return status;
}

static nl_status close_as(output *out, bool ended)
{
    nl_status status = output_settle(out);
    if (status == NL_OK)
        status = seal_file(out, true);
    if (status == NL_OK)
        status = output_note(out, journal_write, ended);
    nl_status closed = output_file_close(&out->file);
    free_output(out);
    return status == NL_OK ? closed : status;
}

nl_status output_close(output *out)
{
    return close_as(out, true);
}

nl_status output_close_behind(output *out)
{
    return close_as(out, false);
}

void output_abandon(output *out)
{
    output_file_close(&out->file);
    free_output(out);
}
