#include "config.h"

#include "reader/admission.h"
#include "reader/decoder_internal.h"

#include "base/error.h"
#include "base/memory.h"
#include "record/bytes.h"
#include "record/line_scanner.h"
#include "record/record_internal.h"
#include "record/text.h"
#include "reader/decoder_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_MAX_RECORD = 1 << 20,
    PLAIN_PAUSE_MAX = 1023,
    KEEP_PARTIAL = 512, /* bytes; a larger empty `partial` is freed, so that idle connections use little memory */
};

static void clear_partial(nl_decoder *decoder)
{
    decoder->partial.size = 0;
    decoder->partial_used = false;
}

nl_decoder *nl_decoder_new(const nl_decoder_options *options)
{
    nl_decoder *decoder = nl_memory_check(calloc(1, sizeof *decoder));
    if (decoder == NULL)
        return NULL;
    if (options != NULL)
        decoder->options = *options;
    if (decoder->options.max_record_size == 0)
        decoder->options.max_record_size = DEFAULT_MAX_RECORD;
    if (decoder->options.max_record_size > SIZE_MAX - NL_DECODER_MARK_SIZE)
        decoder->options.max_record_size = SIZE_MAX - NL_DECODER_MARK_SIZE; /* see append_partial */
    decoder->source = strdup(decoder->options.source != NULL ? decoder->options.source : "-");
    if (decoder->source == NULL) {
        nl_memory_failed();
        free(decoder);
        return NULL;
    }
    decoder->options.source = decoder->source;
    nl_decoder_restart(decoder);
    return decoder;
}

void nl_decoder_free(nl_decoder *decoder)
{
    if (decoder == NULL)
        return;
    nl_record_free(decoder->record);
    nl_buffer_free(&decoder->partial);
    nl_buffer_free(&decoder->in.held);
    nl_buffer_free(&decoder->damage.text);
    nl_block_reader_free(&decoder->block);
    nl_sequences_free(decoder->sequences);
    nl_buffer_free(&decoder->fresh);
    nl_line_scanner_free(decoder->scanner);
    free(decoder->suspect);
    free(decoder->source);
    free(decoder);
}

void nl_decoder_feed(nl_decoder *decoder, const char *data, size_t size)
{
    NL_REQUIRE(nl_input_is_used_up(&decoder->in) && !decoder->open && !decoder->paused,
               "nl_decoder_next has not yet returned NL_AGAIN for the previous input", );
    NL_REQUIRE(!decoder->in.finished, "nl_decoder_finish was already called", );
    nl_input_feed(&decoder->in, data, size);
    decoder->nul = NULL;
    decoder->stats.bytes += size;
}

void nl_decoder_pass_over(nl_decoder *decoder, nl_format format, uint64_t lines, uint64_t size)
{
    if (decoder->partial_used)
        clear_partial(decoder);
    NL_REQUIRE(!nl_decoder_is_midway(decoder) && !decoder->in_blocks, "the decoder is inside a line or a block", );
    if (lines > 0)
        decoder->format = format;
    decoder->lines += lines;
    decoder->in.end_offset += size;
}

void nl_decoder_jump(nl_decoder *decoder, uint64_t offset, uint64_t lines)
{
    decoder->in.end_offset = offset;
    decoder->lines += lines;
    if (decoder->options.streams != NULL)
        nl_streams_clear(decoder->options.streams);
    nl_sequences *sequences = nl_decoder_sequences(decoder);
    if (sequences != NULL)
        nl_sequences_pass_over(sequences);
}

void nl_decoder_finish(nl_decoder *decoder)
{
    decoder->in.finished = true;
}

void nl_decoder_abort(nl_decoder *decoder)
{
    nl_decoder_finish(decoder);
    decoder->in.at = decoder->in.end;
    decoder->in.later = decoder->in.later_end;
    decoder->skipping = false;
    clear_partial(decoder);
}

void nl_decoder_restart(nl_decoder *decoder)
{
    decoder->in.finished = false;
    decoder->in.end_offset = 0;
    decoder->skipping = false;
    clear_partial(decoder);
    decoder->wasted = 0;
    decoder->lines = 0;
    decoder->format = decoder->options.format;
    decoder->in_blocks = decoder->format == NL_FORMAT_NLB;
}

void nl_decoder_on_question(nl_decoder *decoder, void (*on_question)(void *user, int64_t sent_ns), void *user)
{
    decoder->on_question = on_question;
    decoder->question_user = user;
}

void nl_decoder_on_block(nl_decoder *decoder, bool take, void (*on_block)(void *user, const nl_block_view *block),
                         void *user)
{
    decoder->on_block = on_block;
    decoder->block_user = user;
    decoder->take_blocks = take;
    decoder->unread_blocks = false;
}

void nl_decoder_on_unread_block(nl_decoder *decoder, void (*on_block)(void *user, const nl_block_view *block),
                                void *user)
{
    nl_decoder_on_block(decoder, true, on_block, user);
    decoder->unread_blocks = true;
}

void nl_decoder_on_admission(nl_decoder *decoder, bool (*admit)(void *user, const nl_block_header *block), void *user)
{
    decoder->admit = admit;
    decoder->admit_user = user;
}

bool nl_decoder_is_refused(const nl_decoder *decoder)
{
    return decoder->refused;
}

void nl_decoder_ask(nl_decoder *decoder, bool (*may_continue)(void *user), void *user)
{
    decoder->may_continue = may_continue;
    decoder->may_user = user;
}

bool nl_decoder_is_paused(const nl_decoder *decoder)
{
    return decoder->paused;
}

nl_format nl_decoder_format(const nl_decoder *decoder)
{
    return decoder->format;
}

bool nl_decoder_is_midway(const nl_decoder *decoder)
{
    return (decoder->partial.size > 0 && !decoder->partial_used) || decoder->skipping ||
           nl_input_left(&decoder->in) > 0;
}

size_t nl_decoder_held(const nl_decoder *decoder)
{
    return decoder->partial.capacity + decoder->in.held.capacity + decoder->damage.text.capacity +
           nl_block_reader_held(&decoder->block);
}

const nl_decoder_stats *nl_decoder_get_stats(const nl_decoder *decoder)
{
    return &decoder->stats;
}

void nl_decoder_report(nl_decoder *decoder, const char *text, size_t size, uint64_t offset, const char *reason)
{
    decoder->stats.malformed++;
    decoder->work += NL_WORK_MALFORMED;
    decoder->ask = decoder->may_continue != NULL;
    if (decoder->options.on_malformed == NULL)
        return;
    size_t limit = decoder->options.max_record_size;
    nl_malformed what = {
        .source = decoder->source,
        .line = decoder->line,
        .offset = offset,
        .reason = reason,
        .text = {text, size < limit ? size : limit},
    };
    decoder->options.on_malformed(decoder->options.user, &what);
}

uint64_t nl_decoder_work(const nl_decoder *decoder)
{
    return decoder->work + NL_WORK_BYTE * decoder->stats.bytes + NL_WORK_LINE * decoder->lines;
}

nl_record *nl_decoder_record(nl_decoder *decoder)
{
    if (decoder->record == NULL)
        decoder->record = nl_record_new();
    nl_record_clear(decoder->record);
    return decoder->record;
}

static void report_long(nl_decoder *decoder, const char *text, size_t size, uint64_t offset)
{
    char reason[80];
    snprintf(reason, sizeof reason, "record is longer than %zu bytes", decoder->options.max_record_size);
    nl_decoder_report(decoder, text, size, offset, reason);
}

/*
 * Returns the format of a line. A log may mix formats; a line without a recognizable format has the format of the
 * previous line.
 */
static const nl_text_format *format_of_line(nl_decoder *decoder, const nl_line *l)
{
    if (decoder->options.format != NL_FORMAT_UNKNOWN)
        return nl_text_format_of(decoder->options.format);
    size_t size = (size_t)(l->end - l->text);
    const nl_text_format *latest = nl_text_format_of(decoder->format);
    if (latest != NULL && latest->confirm == NULL && nl_text_begins_as(latest, l->text, size))
        return latest;
    const nl_text_format *format = nl_text_format_of_line(l->text, size);
    if (format == NULL)
        return latest;
    decoder->format = format->format;
    return format;
}

static bool is_blank_line(const nl_line *l)
{
    const char *at = l->text;
    while (at < l->end && nl_byte_is_blank(*at))
        at++;
    return at == l->end;
}

/* Keeps the next record for the next call. The record begins at `next`, in the same line as a truncated record. */
static void keep_rest(nl_decoder *decoder, const nl_line *l, const char *next)
{
    decoder->rest = *l;
    decoder->rest.text = next;
    decoder->rest.offset += (uint64_t)(next - l->text);
    decoder->has_rest = true;
}

/*
 * Returns whether a line exceeds the maximum record size, not counting one '\r' at its end. The check precedes any
 * trimming, so that the result does not depend on how the input was split.
 */
static bool is_too_long(const nl_decoder *decoder, const nl_line *l)
{
    size_t size = (size_t)(l->end - l->text);
    return size - (size > 0 && l->end[-1] == '\r') > decoder->options.max_record_size;
}

/* Reports a malformed line. Reports the last line as incomplete if it has no newline and follows valid records. */
static void report_line(nl_decoder *decoder, const nl_line *l, size_t size, const char *reason)
{
    char cut[NL_ERROR_MESSAGE_SIZE];
    if (l->last && l->text + size == l->end && decoder->stats.records > 0) {
        snprintf(cut, sizeof cut, "the last line is incomplete: %s", reason);
        reason = cut;
    }
    nl_decoder_report(decoder, l->text, size, l->offset, reason);
}

/* Decodes a line. If the line has no record, reports malformed text and returns NL_AGAIN. */
static nl_status decode_line(nl_decoder *decoder, nl_line l, const nl_record **record)
{
    if (is_too_long(decoder, &l)) {
        report_long(decoder, l.text, (size_t)(l.end - l.text), l.offset);
        return NL_AGAIN;
    }
    if (l.offset == 0) {
        size_t header = nl_text_header_size(l.text, (size_t)(l.end - l.text));
        l.text += header;
        l.offset += header;
    }
    while (l.end > l.text && l.end[-1] == '\r')
        l.end--;
    if (is_blank_line(&l))
        return NL_AGAIN;
    size_t size = (size_t)(l.end - l.text), used = size;
    const nl_text_format *format = format_of_line(decoder, &l);
    if (format == NULL) {
        report_line(decoder, &l, size, "no DATE=, ts= or time= field");
        return NL_AGAIN;
    }
    nl_status status =
        nl_text_decode(format, nl_decoder_record(decoder), decoder->options.fraction, l.text, l.end, l.limit, &used);
    if (status != NL_OK) {
        if (used < size)
            keep_rest(decoder, &l, l.text + used);
        report_line(decoder, &l, used, nl_error_message());
        return NL_AGAIN;
    }
    decoder->stats.records++;
    if (!l.terminated) {
        decoder->record->flags |= NL_RECORD_UNTERMINATED;
        decoder->stats.unterminated++;
    }
    *record = decoder->record;
    return NL_OK;
}

/* Keeps the last bytes of a skipped line, which may be the start of a block's mark. */
static void keep_latest(nl_decoder *decoder, const char *text, size_t size)
{
    nl_buffer *partial = &decoder->partial, latest = {0};
    size_t kept = NL_DECODER_MARK_SIZE - 1, now = size < kept ? size : kept;
    size_t before = partial->size < kept - now ? partial->size : kept - now;
    nl_buffer_append(&latest, partial->data + partial->size - before, before);
    nl_buffer_append(&latest, text + size - now, now);
    nl_buffer_free(partial);
    *partial = latest;
}

/*
 * Appends text to `partial`. Returns false, and reports the line, if the line is certainly too long. The end of
 * `partial` may be a '\r' or the first bytes of a block's mark, which do not count.
 */
static bool append_partial(nl_decoder *decoder, const char *text, size_t size)
{
    size_t space = decoder->options.max_record_size + NL_DECODER_MARK_SIZE - decoder->partial.size;
    size_t now = size < space ? size : space;
    nl_buffer_append(&decoder->partial, text, now);
    if (size <= space)
        return true;
    report_long(decoder, decoder->partial.data, decoder->partial.size, decoder->partial_offset);
    keep_latest(decoder, text + now, size - now);
    return false;
}

/* Moves the rest of the piece to `partial`, unless the line becomes too long. */
static void keep_partial(nl_decoder *decoder)
{
    size_t size = (size_t)(decoder->in.end - decoder->in.at);
    if (size == 0)
        return;
    if (decoder->skipping) {
        keep_latest(decoder, decoder->in.at, size);
    } else {
        decoder->line = decoder->lines + 1;
        if (decoder->partial.size == 0)
            decoder->partial_offset = nl_input_offset(&decoder->in, decoder->in.at);
        decoder->skipping = !append_partial(decoder, decoder->in.at, size);
    }
    decoder->in.at = decoder->in.end;
}

static nl_line partial_line(nl_decoder *decoder, bool terminated)
{
    const char *end = decoder->partial.data + decoder->partial.size;
    decoder->partial_used = true;
    return (nl_line){decoder->partial.data, end, end, decoder->partial_offset, .terminated = terminated};
}

/* Sets *l to the line that ends at newline; its start may be in `partial`. Returns false if the line is too long. */
static bool decoder_take_line(nl_decoder *decoder, const char *newline, nl_line *l)
{
    const char *start = decoder->in.at;
    decoder->in.at = newline + 1;
    decoder->line = ++decoder->lines;
    if (decoder->skipping) {
        decoder->skipping = false;
        clear_partial(decoder);
        return false;
    }
    if (decoder->partial.size == 0) {
        *l = (nl_line){start, newline, decoder->in.end, nl_input_offset(&decoder->in, start), .terminated = true};
        return true;
    }
    if (!append_partial(decoder, start, (size_t)(newline - start))) {
        clear_partial(decoder);
        return false;
    }
    *l = partial_line(decoder, true);
    return true;
}

/*
 * Decodes the last line of the input, which has no newline. Returns NL_END if there is no such line, and NL_AGAIN if it
 * has no record.
 */
static nl_status decode_last(nl_decoder *decoder, const nl_record **record)
{
    if (decoder->partial.size == 0 || decoder->skipping)
        return NL_END;
    decoder->line = decoder->lines + 1;
    nl_line l = partial_line(decoder, false);
    l.last = true;
    return decode_line(decoder, l, record);
}

/*
 * Decodes the text_size bytes before a block as a line, which may begin in `partial`. The next call decodes the block.
 */
static nl_status decode_before_block(nl_decoder *decoder, size_t text_size, const nl_record **record)
{
    nl_input *in = &decoder->in;
    nl_line l = {in->at, in->at + text_size, in->end, nl_input_offset(in, in->at), .terminated = false};
    size_t kept = decoder->partial.size;
    bool skipped = decoder->skipping;
    if (text_size < kept) {
        nl_input_put_back(in, decoder->partial.data + text_size, kept - text_size);
        decoder->partial.size = text_size;
    } else {
        if (kept > 0 && !skipped)
            nl_buffer_append(&decoder->partial, in->at, text_size - kept);
        in->at += text_size - kept;
    }
    decoder->in_blocks = true;
    decoder->skipping = false;
    if (text_size == 0 && !skipped)
        return NL_AGAIN;
    decoder->line = ++decoder->lines;
    if (skipped) {
        clear_partial(decoder);
        return NL_AGAIN;
    }
    return decode_line(decoder, kept > 0 ? partial_line(decoder, false) : l, record);
}

/* Frees the memory of large records, because thousands of decoders may be idle. Returns NL_AGAIN. */
static nl_status rest_idle(nl_decoder *decoder)
{
    if (decoder->record != NULL)
        nl_record_trim(decoder->record);
    if (decoder->partial.size == 0 && decoder->partial.capacity > KEEP_PARTIAL)
        nl_buffer_free(&decoder->partial);
    if (!decoder->in.in_held) {
        nl_block_reader_free(&decoder->block);
        nl_buffer_free(&decoder->in.held);
    }
    return NL_AGAIN;
}

/* Decodes text. Returns NL_AGAIN if there is no record; *wait is then true if the decoder needs more bytes. */
static nl_status next_in_text(nl_decoder *decoder, const nl_record **record, bool *wait)
{
    nl_input *in = &decoder->in;
    size_t left = nl_input_left(in), text_size;
    const char *newline = left == 0 ? NULL : memchr(in->at, '\n', left);
    const char *limit = newline != NULL ? newline : in->end;
    bool may_have_block =
        (decoder->nul == NULL || decoder->nul < limit) && decoder->options.format == NL_FORMAT_UNKNOWN;
    if (may_have_block && nl_decoder_find_block(decoder, limit, &text_size))
        return decode_before_block(decoder, text_size, record);
    nl_line l;
    if (newline != NULL)
        return decoder_take_line(decoder, newline, &l) ? decode_line(decoder, l, record) : NL_AGAIN;
    keep_partial(decoder);
    if (!nl_input_is_used_up(in))
        return NL_AGAIN;
    *wait = !in->finished;
    return *wait ? NL_AGAIN : decode_last(decoder, record);
}

/*
 * Stores, in the set of sequence numbers, whether this decoder has more records to return. While any decoder has more
 * records, the set cannot determine which numbers are missing.
 */
static void note_midway(nl_decoder *decoder, bool midway)
{
    decoder->midway = midway;
    if (decoder->options.sequences != NULL)
        nl_sequences_await(decoder->options.sequences, midway);
}

/*
 * After malformed input, calls may_continue. If may_continue returns false, copies the rest of the fed piece and
 * returns true.
 */
static bool pause_after_malformed(nl_decoder *decoder)
{
    decoder->ask = false;
    decoder->paused = nl_input_left(&decoder->in) > 0 && !decoder->may_continue(decoder->may_user);
    if (decoder->paused) {
        nl_input_pull(&decoder->in, SIZE_MAX);
        decoder->nul = NULL;
    }
    return decoder->paused;
}

static nl_status next_record(nl_decoder *decoder, const nl_record **record)
{
    nl_status status = NL_AGAIN;
    bool wait = false;
    decoder->paused = false;
    while (status == NL_AGAIN && !wait) {
        if (decoder->has_rest) {
            decoder->has_rest = false;
            status = decode_line(decoder, decoder->rest, record);
            continue;
        }
        if (decoder->partial_used)
            clear_partial(decoder);
        if (decoder->ask && !decoder->in_blocks && pause_after_malformed(decoder))
            return NL_AGAIN;
        if (decoder->in_blocks) {
            status = nl_decoder_next_in_blocks(decoder, record);
            wait = status == NL_AGAIN;
            if (status == NL_END) {
                decoder->in_blocks = false;
                decoder->nul = NULL;
                status = NL_AGAIN;
            }
            continue;
        }
        if (decoder->in.in_held && decoder->in.at == decoder->in.end) {
            nl_input_advance(&decoder->in);
            decoder->nul = NULL;
        }
        status = next_in_text(decoder, record, &wait);
    }
    if (status == NL_END)
        nl_decoder_report_missing(decoder);
    if (decoder->midway != (status == NL_OK))
        note_midway(decoder, status == NL_OK);
    return wait ? rest_idle(decoder) : status;
}

/* ---- lines that are not decoded ---- */

/* Returns whether the decoder is between two lines of text in a format whose lines can be plain. */
static bool may_be_plain(nl_decoder *decoder, const nl_text_format *format)
{
    const nl_input *in = &decoder->in;
    return format != NULL && format->confirm == NULL && decoder->partial.size == 0 && in->at < in->end &&
           !in->in_held && nl_input_offset(in, in->at) > 0 && !decoder->in_blocks && !decoder->has_rest &&
           !decoder->skipping && !decoder->ask && !decoder->paused && !decoder->broken;
}

/* Returns a scanner for the format, or NULL if memory runs out. */
static nl_line_scanner *find_scanner(nl_decoder *decoder, nl_format format)
{
    if (decoder->scanner == NULL || decoder->scanner_format != format) {
        nl_line_scanner_free(decoder->scanner);
        decoder->scanner = nl_line_scanner_new(format, decoder->options.fraction);
        decoder->scanner_format = format;
    }
    return decoder->scanner;
}

/* Returns the number of plain lines at the beginning of the next bytes. Sets *used to their size in bytes. */
static size_t scan_plain(nl_decoder *decoder, nl_line_scanner *scanner, nl_scanned_line *lines, size_t capacity,
                         size_t *used)
{
    const nl_input *in = &decoder->in;
    const char *nul = memchr(in->at, '\0', (size_t)(in->end - in->at)), *end = nul != NULL ? nul : in->end;
    size_t found = nl_lines_scan(scanner, in->at, (size_t)(end - in->at), 0, lines, capacity, used), count = 0;
    while (count < found && nl_line_is_plain(lines[count]) &&
           nl_line_size(lines[count]) <= decoder->options.max_record_size)
        count++;
    if (count < found)
        *used = (size_t)nl_line_offset(lines[count]);
    return count;
}

size_t nl_decoder_next_plain(nl_decoder *decoder, nl_scanned_line *lines, size_t capacity, const char **text)
{
    const nl_format format = decoder->options.format != NL_FORMAT_UNKNOWN ? decoder->options.format : decoder->format;
    if (decoder->partial_used)
        clear_partial(decoder);
    if (!may_be_plain(decoder, nl_text_format_of(format)))
        return 0;
    if (decoder->plain_pause > 0) {
        decoder->plain_pause--;
        return 0;
    }
    nl_line_scanner *scanner = find_scanner(decoder, format);
    size_t used, count = scanner != NULL ? scan_plain(decoder, scanner, lines, capacity, &used) : 0;
    if (count == 0) { /* the next lines are probably not plain either, so skip some scans */
        decoder->plain_pause = decoder->plain_pause_next;
        decoder->plain_pause_next =
            decoder->plain_pause < PLAIN_PAUSE_MAX ? 2 * decoder->plain_pause + 1 : PLAIN_PAUSE_MAX;
        return 0;
    }
    decoder->plain_pause_next = 0;
    *text = decoder->in.at;
    decoder->in.at += used;
    decoder->lines += count;
    decoder->stats.records += count;
    if (!decoder->midway)
        note_midway(decoder, true);
    return count;
}

/*
 * If memory runs out, input may be lost, and the current line or block may be incomplete. The decoder therefore stops
 * reading.
 */
nl_status nl_decoder_next(nl_decoder *decoder, const nl_record **record)
{
    unsigned failures = nl_memory_failures;
    if (decoder->record == NULL)
        decoder->record = nl_record_new();
    if (decoder->record != NULL && !decoder->broken) {
        nl_status status = next_record(decoder, record);
        if (nl_memory_failures == failures)
            return status;
    }
    decoder->broken = true;
    return nl_error_set(NL_ERROR_MEMORY, "out of memory");
}
