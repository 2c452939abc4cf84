/* The part of the decoder that reads blocks. It finds blocks, skips damage, and detects missing records. */
#include "config.h"

#include "base/text.h"
#include "reader/decoder_internal.h"

#include "base/memory.h"
#include "record/text.h"
#include "record/bytes.h"
#include "record/varint.h"
#include "reader/decoder_work.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MARK = NL_DECODER_MARK_SIZE,
    LOOK = 64, /* bytes that suffice to detect a block or a line */
    FREE_WASTE = 32 << 20,
    WASTE_PER_BYTE = 16,
};

/* ---- boundaries of blocks ---- */

static bool is_magic(const char *at, size_t size)
{
    return size >= NL_BLOCK_MAGIC_SIZE && memcmp(at, NL_BLOCK_MAGIC, NL_BLOCK_MAGIC_SIZE) == 0;
}

/* Returns whether the NUL at a position ends a block's mark, which may begin in `partial`. */
static bool ends_mark(const nl_decoder *d, const char *at)
{
    size_t here = (size_t)(at + 1 - d->in.at);
    if (here >= MARK)
        return is_magic(at + 1 - MARK, MARK);
    size_t before = MARK - here;
    if (before > d->partial.size)
        return false;
    char mark[MARK];
    memcpy(mark, d->partial.data + d->partial.size - before, before);
    memcpy(mark + before, d->in.at, here);
    return is_magic(mark, MARK);
}

/*
 * Returns the first NUL in [at, end), or `end`. The caller stores the result, and searches again only after this
 * position. Therefore, each byte is searched only once.
 */
static const char *next_nul(const char *at, const char *end)
{
    const char *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
    return nul != NULL ? nul : end;
}

bool nl_decoder_find_block(nl_decoder *d, const char *limit, size_t *text_size)
{
    if (d->nul == NULL || d->nul < d->in.at)
        d->nul = next_nul(d->in.at, d->in.end);
    for (; d->nul < limit; d->nul = next_nul(d->nul + 1, d->in.end)) {
        if (ends_mark(d, d->nul)) {
            *text_size = d->partial.size + (size_t)(d->nul + 1 - d->in.at) - MARK;
            return true;
        }
    }
    return false;
}

/*
 * Returns whether a record of text begins at a position after a newline. Looks at no more than LOOK bytes, so that the
 * result does not depend on how the input was split.
 */
static bool text_begins(const char *at, const char *end)
{
    size_t size = (size_t)(end - at);
    if (size > LOOK - 1) {
        size = LOOK - 1;
        end = at + size;
    }
    for (nl_format format = 1; format < NL_FORMAT_COUNT; format++) {
        const nl_text_format *text = nl_format_table[format]->text;
        nl_string name = text != NULL ? text->names[NL_MEMBER_TIME] : (nl_string){0};
        if (text != NULL && size > name.size + 1 && memcmp(at, name.data, name.size) == 0 && at[name.size] == '=' &&
            text->starts_record(at + name.size + 1, end, true))
            return true;
    }
    return false;
}

/* Returns the first position in [at, limit) where a block or a line of text begins, or NULL. */
static const char *find_beginning(const nl_decoder *d, const char *at, const char *limit)
{
    bool text = d->options.format != NL_FORMAT_NLB;
    const char *end = d->in.end;
    for (; (at = nl_find_any(at, limit, end, 'N', '\n', '\n')) < limit; at++) {
        if (is_magic(at, (size_t)(end - at)))
            return at;
        if (text && *at == '\n' && text_begins(at + 1, end))
            return at + 1;
    }
    return NULL;
}

/* ---- damage ---- */

static void report_damage(nl_decoder *d)
{
    nl_damage *damage = &d->damage;
    if (damage->reported)
        return;
    damage->reported = true;
    nl_decoder_report(d, damage->text.data, damage->text.size, damage->offset, damage->reason);
    nl_buffer_free(&damage->text);
}

/* Skips the bytes up to a position, and stores them as damage. */
static void pass_to(nl_decoder *d, const char *to)
{
    nl_damage *damage = &d->damage;
    if (!damage->reported) {
        size_t size = (size_t)(to - d->in.at), capacity = d->options.max_record_size - damage->text.size;
        nl_buffer_append(&damage->text, d->in.at, size < capacity ? size : capacity);
        if (size >= capacity)
            report_damage(d);
    }
    d->in.at = to;
}

/*
 * Begins a damaged part, because no valid block begins at the current position. The decoder reports all bytes up to the
 * next block or line as one part. Returns NL_OK.
 */
static nl_status damage(nl_decoder *d, const char *reason)
{
    d->damaged = true;
    d->damage.reported = d->damage.at_end = false;
    d->damage.offset = nl_input_offset(&d->in, d->in.at);
    snprintf(d->damage.reason, sizeof d->damage.reason, "%s", reason);
    pass_to(d, d->in.at + 1);
    return NL_OK;
}

static nl_status end_damage(nl_decoder *d, nl_status status)
{
    report_damage(d);
    d->damaged = false;
    return status;
}

static void describe_truncation(nl_damage *damage)
{
    if (damage->missing == 0)
        snprintf(damage->reason, sizeof damage->reason, "truncated within the header of the last block");
    else
        snprintf(damage->reason, sizeof damage->reason,
                 "truncated: %zu byte%s and %" PRIu32 " record%s of the last block are missing", damage->missing,
                 nl_plural(damage->missing), damage->records, nl_plural(damage->records));
}

/* Skips damage up to the next block or line. Returns the same values as nl_decoder_next_in_blocks. */
static nl_status pass_damage(nl_decoder *d)
{
    nl_input *in = &d->in;
    for (unsigned failures = nl_memory_failures;;) {
        if (nl_memory_failures != failures)
            return NL_AGAIN;
        nl_input_advance(in);
        bool all = in->finished && (!in->in_held || in->later == in->later_end);
        size_t left = nl_input_left(in), sure = all ? left : left > LOOK ? left - LOOK : 0;
        const char *beginning = find_beginning(d, in->at, in->at + sure);
        pass_to(d, beginning != NULL ? beginning : in->at + sure);
        if (beginning != NULL)
            return end_damage(d, is_magic(beginning, (size_t)(in->end - beginning)) ? NL_OK : NL_END);
        if (all && d->damage.at_end)
            describe_truncation(&d->damage);
        if (all)
            return end_damage(d, NL_END);
        nl_input_release(in);
        if (!nl_input_pull(in, LOOK + 1) && !in->finished)
            return NL_AGAIN;
    }
}

/* ---- loss ---- */

static void extend_loss(nl_lost *lost, int64_t from_ns, int64_t to_ns)
{
    lost->from_ns = from_ns < lost->from_ns ? from_ns : lost->from_ns;
    lost->to_ns = to_ns > lost->to_ns ? to_ns : lost->to_ns;
}

static void report_lost(nl_decoder *d, const nl_lost *lost, bool certain)
{
    nl_decoder_stats *stats = &d->stats;
    uint64_t count = certain ? lost->count : lost->dropped;
    if (count > 0 && (stats->lost == 0 || lost->from_ns < stats->lost_from_ns))
        stats->lost_from_ns = lost->from_ns;
    if (count > 0 && (stats->lost == 0 || lost->to_ns > stats->lost_to_ns))
        stats->lost_to_ns = lost->to_ns;
    if (__builtin_add_overflow(stats->lost, count, &stats->lost))
        stats->lost = UINT64_MAX;
    if (d->options.on_lost != NULL)
        d->options.on_lost(d->options.user, lost);
}

nl_sequences *nl_decoder_sequences(nl_decoder *d)
{
    if (d->options.sequences != NULL || d->options.streams != NULL)
        return d->options.sequences;
    if (d->sequences == NULL)
        d->sequences = nl_sequences_new();
    return d->sequences;
}

static void report_missing(void *user, const nl_lost *lost)
{
    report_lost(user, lost, true);
}

void nl_decoder_report_missing(nl_decoder *d)
{
    if (d->sequences == NULL)
        return;
    nl_sequences_list_missing(d->sequences, report_missing, d);
    nl_sequences_settle(d->sequences);
}

/* Stores the sequence numbers of a damaged block, because its header may be valid. */
static void suspect(nl_decoder *d, const nl_block_header *h)
{
    if (h->type != NL_BLOCK_TYPE_RECORDS || !nl_block_has_stream(h))
        return;
    if (d->suspect == NULL)
        d->suspect = nl_memory_check(calloc(1, sizeof *d->suspect));
    if (d->suspect == NULL)
        return;
    nl_suspect *s = d->suspect;
    bool follows =
        s->from < s->to && memcmp(s->stream, h->stream, sizeof s->stream) == 0 && h->first_sequence - h->lost == s->to;
    if (!follows) {
        memcpy(s->stream, h->stream, sizeof s->stream);
        s->from = h->first_sequence;
        s->from_ns = h->min_time_ns;
    }
    s->to = h->first_sequence + h->record_count;
}

/*
 * Counts the records of damaged blocks just before the first valid block of a stream. The numbers of valid blocks do
 * not reveal that these records are missing.
 */
static void expect_suspect(nl_decoder *d, nl_sequences *sequences, const nl_block_header *h)
{
    const nl_suspect *s = d->suspect;
    if (s != NULL && s->from < s->to && memcmp(s->stream, h->stream, sizeof s->stream) == 0 &&
        h->first_sequence - h->lost == s->to)
        nl_sequences_expect(sequences, h->stream, s->from, s->from_ns, d->source);
}

/* Reports records that the producer dropped. The report contains their numbers if these numbers were reported as
 * missing before. */
static void report_dropped(nl_decoder *d, const nl_block_header *h, uint64_t count, nl_number_range numbers)
{
    nl_lost lost = {.source = d->source,
                    .count = count,
                    .dropped = count,
                    .from_ns = h->lost_from_ns,
                    .to_ns = h->lost_to_ns,
                    .numbers = numbers};
    memcpy(lost.stream, h->stream, sizeof lost.stream);
    if (count > 0)
        report_lost(d, &lost, true);
}

/* Compares a block's numbers with the shared streams, and adds the numbers to its stream. */
static void follow_stream(nl_decoder *d, const nl_block_header *h)
{
    nl_lost lost = {.source = d->source, .from_ns = INT64_MAX, .to_ns = INT64_MIN, .count = h->lost};
    nl_stream *stream = nl_streams_find(d->options.streams, h->stream);
    if (stream == NULL)
        return;
    bool known = stream->known;
    memcpy(lost.stream, h->stream, sizeof lost.stream);
    if (known)
        lost.count = h->first_sequence > stream->next ? h->first_sequence - stream->next : 0;
    lost.dropped = h->lost < lost.count ? h->lost : lost.count;
    if (lost.dropped > 0)
        extend_loss(&lost, h->lost_from_ns, h->lost_to_ns);
    if (lost.count > lost.dropped) {
        extend_loss(&lost, stream->latest_ns, h->record_count > 0 ? h->min_time_ns : stream->latest_ns);
        lost.numbers = (nl_number_range){stream->next, stream->next + (lost.count - lost.dropped)};
    }
    /* The numbers before the first block of a stream are not missing yet: a spool may deliver them later. */
    uint64_t next = stream->next;
    uint64_t closed =
        nl_stream_take(d->options.streams, stream, h->first_sequence, h->record_count, h->lost, &d->fresh);
    d->all_fresh = false;
    nl_stream_saw(stream, h);
    if (d->options.sequences != NULL) {
        report_dropped(d, h, lost.dropped, (nl_number_range){0});
        return;
    }
    if (lost.count > 0)
        report_lost(d, &lost, false);
    report_dropped(d, h, closed,
                   (nl_number_range){h->first_sequence > h->lost ? h->first_sequence - h->lost : 0,
                                     h->first_sequence < next ? h->first_sequence : next});
}

/* Adds a block's numbers, and determines its new records. Without shared sets, all records are new. */
static void decoder_add_numbers(nl_decoder *d, const nl_block_header *h)
{
    nl_sequences_news news = {.fresh = &d->fresh};
    d->all_fresh = true;
    d->fresh.size = 0;
    if (!nl_block_has_stream(h)) {
        report_dropped(d, h, h->lost, (nl_number_range){0});
        return;
    }
    if (d->options.streams != NULL) {
        follow_stream(d, h);
    } else if (d->options.once != NULL) {
        nl_sequences_add(d->options.once, h, d->source, &news);
        d->all_fresh = !news.followed;
    }
    nl_sequences *sequences = nl_decoder_sequences(d);
    if (sequences == NULL)
        return;
    if (sequences != d->options.once) {
        news.fresh = NULL;
        nl_sequences_add(sequences, h, d->source, &news);
    }
    expect_suspect(d, sequences, h);
    if (d->options.streams == NULL)
        report_dropped(d, h, news.dropped, (nl_number_range){0});
}

/* ---- blocks ---- */

/* Begins a damaged part if the input can contain only blocks. Otherwise, returns NL_END, and text follows. */
static nl_status end_blocks(nl_decoder *d)
{
    return d->options.format == NL_FORMAT_NLB ? damage(d, "no block begins here") : NL_END;
}

static bool may_be_block(const nl_input *in)
{
    size_t left = nl_input_left(in);
    return memcmp(in->at, NL_BLOCK_MAGIC, left < NL_BLOCK_MAGIC_SIZE ? left : NL_BLOCK_MAGIC_SIZE) == 0;
}

/*
 * Returns NL_AGAIN if the rest of a block may still arrive. Otherwise, begins a damaged part. `header` is NULL if the
 * header is incomplete too.
 */
static nl_status wait_for_more(nl_decoder *d, const nl_block_header *header)
{
    if (!d->in.finished)
        return NL_AGAIN;
    size_t missing = header != NULL ? nl_block_total_size(header) - nl_input_left(&d->in) : 0;
    damage(d, "block is incomplete");
    d->damage.at_end = true;
    d->damage.missing = missing;
    d->damage.records = header != NULL ? header->record_count : 0;
    return NL_OK;
}

/*
 * Returns whether to verify the checksum of a block. Limits the total size of the blocks whose verification fails,
 * because many large blocks may seem to begin within one another. The limit grows with the bytes before the block, so
 * that it does not depend on how the input was split.
 */
static bool may_check(const nl_decoder *d, const nl_block_header *header)
{
    return d->wasted + nl_block_total_size(header) <= FREE_WASTE + WASTE_PER_BYTE * nl_input_offset(&d->in, d->in.at);
}

/* Returns whether the checksum is correct. Otherwise, adds the block's size to the wasted bytes. */
static bool verify_checksum(nl_decoder *d, const nl_block_header *header)
{
    if (nl_block_verify(header, d->in.at) == NL_OK)
        return true;
    d->wasted += nl_block_total_size(header);
    return false;
}

/* Sets the members of view that describe which records of the block are already known. */
static void note_repeated(const nl_decoder *d, nl_block_view *view)
{
    view->first_new = view->first_sequence;
    if (d->all_fresh)
        return;
    view->repeated = view->record_count;
    const nl_number_range *fresh = (const nl_number_range *)d->fresh.data;
    size_t count = d->fresh.size / sizeof *fresh;
    for (size_t i = 0; i < count; i++)
        view->repeated -= fresh[i].to - fresh[i].from;
    view->first_new += count > 0 ? fresh[0].from : view->record_count;
    view->in_parts = count > 1;
}

static nl_block_view make_view(const nl_decoder *d, const nl_block_header *header)
{
    nl_block_view view = {
        .bytes = d->block_bytes,
        .first_sequence = header->first_sequence,
        .record_count = header->record_count,
        .offset = d->block_offset,
        .min_time_ns = header->min_time_ns,
        .max_time_ns = header->max_time_ns,
        .expanded = nl_block_expanded_max(header->record_count, header->stored_size),
    };
    memcpy(view.stream, header->stream, sizeof view.stream);
    note_repeated(d, &view);
    return view;
}

/* Passes the open block to on_block. Closes the block if its records are not decoded. */
static void show_block(nl_decoder *d, const nl_block_header *header)
{
    nl_block_view view = make_view(d, header);
    view.taken = d->take_blocks && view.repeated == 0 && nl_block_check(&d->block, &view.expanded);
    d->declined = false;
    d->on_block(d->block_user, &view);
    if (!view.taken || d->declined)
        return;
    d->open = false;
    d->work += NL_WORK_CHECK * (uint64_t)header->record_count;
    d->stats.blocks++;
    d->stats.records += header->record_count;
}

/* Passes a block to on_block without opening it, unless all its records are known. */
static void pass_on_unread(nl_decoder *d, const nl_block_header *header)
{
    nl_block_view view = make_view(d, header);
    view.taken = true;
    d->stats.blocks++;
    if (view.repeated == view.record_count && view.repeated > 0) {
        d->stats.repeated += view.repeated;
        return;
    }
    d->on_block(d->block_user, &view);
    d->stats.records += header->record_count;
}

/* Calls on_question if the block is a time question. A later version's question may have a longer payload. */
static void pass_on_question(nl_decoder *d, const nl_block_header *header)
{
    if (header->type == NL_BLOCK_TYPE_TIME && header->flags == 0 && header->stored_size >= 8 &&
        d->on_question != NULL) {
        d->work += NL_WORK_QUESTION;
        d->on_question(d->question_user, (int64_t)nl_le64_get(d->block_bytes.data + header->header_size));
    }
}

/* Returns whether admit refuses the block. */
static bool is_refused(nl_decoder *d, const nl_block_header *header)
{
    if (d->admit == NULL || d->options.streams == NULL || header->type != NL_BLOCK_TYPE_RECORDS ||
        !nl_block_has_stream(header))
        return false;
    d->refused = !d->admit(d->admit_user, header);
    return d->refused;
}

/*
 * Reads and opens a block. Returns NL_OK if it made progress, and NL_END if no block comes next. Returns NL_AGAIN if it
 * needs more bytes, the block is refused, or memory has run out.
 */
static nl_status decoder_read_block(nl_decoder *d)
{
    nl_input *in = &d->in;
    nl_block_header header;
    if (nl_input_left(in) == 0)
        return in->finished ? NL_END : NL_AGAIN;
    if (!may_be_block(in))
        return end_blocks(d);
    if (!nl_input_pull(in, NL_BLOCK_HEADER_SIZE))
        return may_be_block(in) ? wait_for_more(d, NULL) : end_blocks(d);
    if (!may_be_block(in))
        return end_blocks(d);
    if (nl_block_parse_header(in->at, nl_input_left(in), &header) != NL_OK)
        return damage(d, nl_error_message());
    if (!may_check(d, &header))
        return damage(d, "too much damage to examine every block");
    if (!nl_input_pull(in, nl_block_total_size(&header)))
        return wait_for_more(d, &header);
    if (!verify_checksum(d, &header)) {
        suspect(d, &header);
        return damage(d, nl_error_message());
    }
    if (is_refused(d, &header))
        return NL_AGAIN;
    d->block_bytes = (nl_string){in->at, nl_block_total_size(&header)};
    d->block_offset = nl_input_offset(in, in->at);
    in->at += d->block_bytes.size;
    d->format = NL_FORMAT_NLB;
    if (header.type != NL_BLOCK_TYPE_RECORDS) {
        d->stats.blocks++;
        pass_on_question(d, &header);
        return NL_OK;
    }
    d->place = d->fresh_at = 0;
    d->first_sequence = header.first_sequence;
    decoder_add_numbers(d, &header);
    if (d->unread_blocks) {
        pass_on_unread(d, &header);
        return NL_OK;
    }
    nl_status opened = nl_block_open(&d->block, &header, d->block_bytes.data);
    d->open = opened == NL_OK;
    d->work += NL_WORK_ENTRY * nl_block_entries(&d->block) + NL_WORK_RAW * d->block.decompressed;
    if (opened == NL_FAILED)
        return NL_AGAIN; /* nl_decoder_next reports the lack of memory */
    if (!d->open) {
        d->stats.blocks++;
        nl_decoder_report(d, d->block_bytes.data, d->block_bytes.size, d->block_offset, nl_error_message());
    } else if (d->on_block != NULL) {
        show_block(d, &header);
    }
    return NL_OK;
}

/* Returns whether the next record's number is new. */
static bool is_fresh(nl_decoder *d)
{
    uint64_t place = d->place++;
    if (d->all_fresh)
        return true;
    const nl_number_range *fresh = (const nl_number_range *)d->fresh.data;
    size_t count = d->fresh.size / sizeof *fresh;
    while (d->fresh_at < count && place >= fresh[d->fresh_at].to)
        d->fresh_at++;
    return d->fresh_at < count && place >= fresh[d->fresh_at].from;
}

/* Returns NL_OK and the next record of the open block, or NL_END. */
static nl_status next_of_block(nl_decoder *d, const nl_record **record)
{
    nl_status status;
    while ((status = nl_block_next(&d->block, d->record)) == NL_OK && !is_fresh(d))
        d->stats.repeated++;
    if (status == NL_OK) {
        d->stats.records++;
        *record = d->record;
        return NL_OK;
    }
    d->open = false;
    d->work += NL_WORK_RECORD * (uint64_t)d->place + NL_WORK_EXPANDED * d->block.expanded;
    d->stats.blocks++;
    if (status == NL_MALFORMED)
        nl_decoder_report(d, d->block_bytes.data, d->block_bytes.size, d->block_offset, nl_error_message());
    return NL_END;
}

nl_status nl_decoder_next_of_taken(nl_decoder *d, const nl_record **record)
{
    *record = nl_decoder_record(d);
    d->work += NL_WORK_RECORD;
    return nl_block_next(&d->block, d->record) == NL_OK ? NL_OK : NL_END;
}

nl_block_reader *nl_decoder_taken_block(nl_decoder *d)
{
    return &d->block;
}

void nl_decoder_decline_block(nl_decoder *d)
{
    d->declined = true;
}

uint64_t nl_decoder_next_work(const nl_decoder *d)
{
    nl_block_header header;
    const nl_input *in = &d->in;
    if (nl_input_left(in) < NL_BLOCK_HEADER_SIZE || nl_block_parse_header(in->at, nl_input_left(in), &header) != NL_OK)
        return 0;
    uint64_t records = header.record_count < NL_BLOCK_EXPANDED_MAX / NL_BLOCK_RECORD_EXPANDED
                           ? header.record_count
                           : NL_BLOCK_EXPANDED_MAX / NL_BLOCK_RECORD_EXPANDED;
    uint64_t raw = header.flags & NL_BLOCK_FLAG_ZSTD ? NL_WORK_RAW * (uint64_t)header.raw_size : 0;
    return raw + (d->take_blocks ? NL_WORK_CHECK : NL_WORK_RECORD) * records;
}

uint64_t nl_decoder_sequence(const nl_decoder *d)
{
    return d->first_sequence + d->place - 1;
}

/*
 * Calls may_continue before the next block. If may_continue returns false, copies the rest of the piece and returns
 * true.
 */
static bool pause_before_block(nl_decoder *d)
{
    d->ask = false;
    d->paused = d->may_continue != NULL && nl_input_left(&d->in) > 0 && !d->may_continue(d->may_user);
    if (d->paused)
        nl_input_pull(&d->in, SIZE_MAX);
    return d->paused;
}

nl_status nl_decoder_next_in_blocks(nl_decoder *d, const nl_record **record)
{
    d->line = 0;
    for (;;) {
        if (d->refused)
            return NL_AGAIN;
        if (d->open && next_of_block(d, record) == NL_OK)
            return NL_OK;
        nl_input_advance(&d->in);
        if (!d->damaged && pause_before_block(d))
            return NL_AGAIN;
        nl_status status = d->damaged ? pass_damage(d) : decoder_read_block(d);
        if (status != NL_OK)
            return status;
    }
}
