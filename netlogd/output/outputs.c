#include "config.h"

#include "outputs.h"

#include "base/error.h"
#include "program/program.h"
#include "reader/admission.h"
#include "base/memory.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct outputs {
    output **at;
    size_t count;
    nl_streams *streams; /* what all of them have */
    bool full;           /* output_is_full of one, perhaps */
};

/* ---- what they have ---- */

typedef struct meeting {
    outputs *all;
    output *one;
    bool behind; /* what it lacks may yet come again */
} meeting;

/* What neither of the states lacks. Its gaps are in *gaps. */
static nl_stream_state common(const nl_stream_state *a, const nl_stream_state *b, nl_buffer *gaps)
{
    const nl_stream_state *less = a->next < b->next ? a : b, *more = less == a ? b : a;
    nl_stream_state both = *less;
    gaps->size = 0;
    /* Both rise; where they overlap they are joined. */
    for (size_t i = 0, k = 0; i < less->gap_count || k < more->gap_count;) {
        bool first = k == more->gap_count || (i < less->gap_count && less->gaps[i].from <= more->gaps[k].from);
        nl_number_range gap = first ? less->gaps[i++] : more->gaps[k++];
        gap.to = gap.to < less->next ? gap.to : less->next;
        nl_number_range *latest = gaps->size > 0 ? (nl_number_range *)(gaps->data + gaps->size) - 1 : NULL;
        if (latest != NULL && gap.from <= latest->to)
            latest->to = gap.to > latest->to ? gap.to : latest->to;
        else if (gap.from < gap.to)
            nl_buffer_append(gaps, (const char *)&gap, sizeof gap);
    }
    both.gap_count = gaps->size / sizeof(nl_number_range);
    both.gaps = (const nl_number_range *)gaps->data;
    return both;
}

/* A stream of one that was killed: others that were killed and do not know it have had nothing of it. */
static void meet_killed(void *user, const nl_stream_state *state)
{
    meeting *m = user;
    nl_stream_state joint = *state, other;
    nl_buffer gaps = {0}, before = {0};
    for (size_t i = 0; i < m->all->count; i++) {
        output *out = m->all->at[i];
        if (out == m->one || output_get_past(out) != OUTPUT_PAST_KILLED)
            continue;
        if (!nl_streams_get(output_streams(out), state->stream, &other)) {
            other = (nl_stream_state){.latest_ns = state->latest_ns};
            memcpy(other.stream, state->stream, sizeof other.stream);
        }
        nl_buffer free_one = before; /* joint's gaps may be in the other */
        before = gaps;
        gaps = free_one;
        joint = common(&joint, &other, &gaps);
    }
    nl_streams_set(m->all->streams, &joint);
    nl_buffer_free(&gaps);
    nl_buffer_free(&before);
}

/* A stream of one that had ended: who has more of it was there for longer. */
static void meet_ended(void *user, const nl_stream_state *state)
{
    meeting *m = user;
    nl_stream_state known;
    if (!nl_streams_get(m->all->streams, state->stream, &known) || known.next < state->next)
        nl_streams_set(m->all->streams, state);
}

/* A stream of all: one that is not behind goes on where they do; one that is, and does not know it, has had nothing. */
static void take_over(void *user, const nl_stream_state *state)
{
    meeting *m = user;
    nl_stream_state known, set = *state;
    bool knows = nl_streams_get(output_streams(m->one), state->stream, &known);
    if (knows && (m->behind || known.next >= state->next))
        return;
    if (m->behind) {
        set.next = 0;
        set.gap_count = 0;
    }
    nl_streams_set(output_streams(m->one), &set);
}

/* A collector to which its own records come back, round other ones, has them. */
static void know_own(outputs *all, const output *out)
{
    const unsigned char *own = output_own_stream(out);
    nl_stream_state state = {.next = UINT64_MAX};
    if (own == NULL)
        return;
    memcpy(state.stream, own, sizeof state.stream);
    nl_streams_set(all->streams, &state);
}

/* Brings one that joins the others to what they have, and notes it. */
static nl_status outputs_join(outputs *all, output *one, bool behind)
{
    nl_streams_list(all->streams, take_over, &(meeting){all, one, behind});
    return output_note_streams(one);
}

/* What all have, from what each has. */
static nl_status meet(outputs *all)
{
    bool killed = false;
    for (size_t i = 0; i < all->count; i++)
        killed = killed || output_get_past(all->at[i]) == OUTPUT_PAST_KILLED;
    for (size_t i = 0; i < all->count; i++) {
        output *one = all->at[i];
        if (!killed)
            nl_streams_list(output_streams(one), meet_ended, &(meeting){.all = all, .one = one});
        else if (output_get_past(one) == OUTPUT_PAST_KILLED)
            nl_streams_list(output_streams(one), meet_killed, &(meeting){.all = all, .one = one});
    }
    nl_status status = NL_OK;
    bool any = false;
    for (size_t i = 0; i < all->count; i++)
        any = any || output_get_past(all->at[i]) != OUTPUT_PAST_NONE;
    for (size_t i = 0; i < all->count && status == NL_OK && any && all->count > 1; i++)
        status = outputs_join(all, all->at[i], output_get_past(all->at[i]) == OUTPUT_PAST_KILLED);
    for (size_t i = 0; i < all->count; i++)
        know_own(all, all->at[i]);
    return status;
}

/* ---- opening ---- */

static void outputs_add(outputs *all, output *out)
{
    all->at = nl_memory_check(realloc(all->at, (all->count + 1) * sizeof(output *)));
    all->at[all->count++] = out;
}

static output *open_text(const char *text)
{
    output_options options;
    /* Its options were looked at before. */
    return output_options_parse(text, &options) == NL_OK ? output_open(&options) : NULL;
}

static void free_all(outputs *all)
{
    nl_streams_free(all->streams);
    free(all->at);
    free(all);
}

typedef struct levelling {
    const outputs *all;
    bool level;
} levelling;

/* Closes them from that one on, without a word: there is another one to be said. */
static void give_up(outputs *all, size_t from)
{
    nl_error error;
    nl_error_save(&error);
    while (all->count > from)
        output_abandon(all->at[--all->count]);
    nl_error_restore(&error);
}

/* Whether two of the texts mean the same; each is good by itself. */
static bool is_twice(char *const *texts, size_t i, size_t k)
{
    output_options a, b;
    bool same = false;
    if (output_options_parse(texts[i], &a) == NL_OK) {
        if (output_options_parse(texts[k], &b) == NL_OK) {
            same = output_options_same_target(&a, &b);
            output_options_free(&b);
        }
        output_options_free(&a);
    }
    return same;
}

/* Whether texts could be opened, as far as can be seen in them. If not, the reason is in nl_error_message(). */
static bool can_be(char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            if (is_twice(texts, i, k)) {
                nl_error_set(NL_ERROR_SYSTEM, "output %s: it is there twice, as %s too", texts[i], texts[k]);
                return false;
            }
    return true;
}

outputs *outputs_open(char *const *texts, size_t count)
{
    if (!can_be(texts, count))
        return NULL;
    outputs *all = nl_memory_check(calloc(1, sizeof *all));
    all->streams = nl_streams_new();
    nl_status status = NL_OK;
    for (size_t i = 0; i < count && status == NL_OK; i++) {
        output *out = open_text(texts[i]);
        if (out == NULL)
            status = NL_FAILED;
        else
            outputs_add(all, out);
    }
    if (status == NL_OK && meet(all) == NL_OK)
        return all;
    give_up(all, 0);
    deliveries_end();
    free_all(all);
    return NULL;
}

static void output_outputs_start(output *out, nl_log *log)
{
    output_start(out, log);
    output_report_repairs(out, log);
}

void outputs_start(outputs *all, nl_log *log)
{
    for (size_t i = 0; i < all->count; i++)
        output_outputs_start(all->at[i], log);
}

/* ---- changing ---- */

typedef struct change {
    output_options options;
    output *there;  /* that has the target already */
    output *opened; /* anew */
} change;

static output *outputs_find(const outputs *all, const output_options *options)
{
    for (size_t i = 0; i < all->count; i++)
        if (output_options_same_target(output_get_options(all->at[i]), options))
            return all->at[i];
    return NULL;
}

/* Opens what is new. */
static nl_status prepare(outputs *all, change *changes, char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        change *c = &changes[i];
        if (output_options_parse(texts[i], &c->options) != NL_OK)
            return NL_FAILED;
        c->there = outputs_find(all, &c->options);
        if (c->there == NULL &&
            ((c->opened = output_open(&c->options)) == NULL || outputs_join(all, c->opened, false) != NL_OK))
            return NL_FAILED;
    }
    return NL_OK;
}

static void undo(change *changes, size_t count)
{
    nl_error error;
    nl_error_save(&error);
    for (size_t i = 0; i < count; i++) {
        output_options_free(&changes[i].options);
        if (changes[i].opened != NULL)
            output_close(changes[i].opened);
    }
    nl_error_restore(&error);
}

static bool is_kept(const change *changes, size_t count, const output *out)
{
    for (size_t i = 0; i < count; i++)
        if (changes[i].there == out)
            return true;
    return false;
}

static void close_one(output *out, nl_log *log)
{
    const char *target = output_get_options(out)->target;
    delivery_state state = {0};
    output_delivers(out, &state);
    nl_write(log, NL_USAGE, "Netlogd.OutputClosed", "OUTPUT=%s SPOOLED=%llu", target,
             (unsigned long long)state.waiting);
    if (output_close(out) != NL_OK) {
        program_error("%s; what it had not taken is not written", nl_error_message());
        nl_write(log, NL_ERROR, "Netlogd.OutputClosed", "REASON=%s", nl_error_message());
    }
}

/* Nothing fails any more, but that options of one that is there stay as they were. */
static void carry_out(outputs *all, change *changes, size_t count, nl_log *log)
{
    output **now = nl_memory_check(calloc(count + 1, sizeof(output *)));
    for (size_t i = 0; i < all->count; i++)
        if (!is_kept(changes, count, all->at[i]))
            close_one(all->at[i], log);
    for (size_t i = 0; i < count; i++) {
        change *c = &changes[i];
        now[i] = c->there != NULL ? c->there : c->opened;
        if (c->opened != NULL) {
            output_outputs_start(c->opened, log);
            know_own(all, c->opened);
            nl_write(log, NL_USAGE, "Netlogd.OutputOpened", "OUTPUT=%s", output_get_options(c->opened)->target);
        } else if (strcmp(c->options.url->text, output_get_options(c->there)->url->text) == 0) {
            output_options_free(&c->options);
        } else if (output_change(c->there, &c->options) != NL_OK) {
            program_error("%s; its options are not changed", nl_error_message());
        }
    }
    free(all->at);
    all->at = now;
    all->count = count;
}

nl_status outputs_change(outputs *all, char *const *texts, size_t count, nl_log *log)
{
    if (!can_be(texts, count))
        return NL_FAILED;
    outputs_settle(all); /* one that cannot be written may be what is to be changed */
    change *changes = nl_memory_check(calloc(count + 1, sizeof *changes));
    nl_status status = prepare(all, changes, texts, count);
    if (status == NL_OK)
        carry_out(all, changes, count, log);
    else
        undo(changes, count);
    free(changes);
    return status;
}

/* ---- all of them ---- */

nl_streams *outputs_streams(outputs *all)
{
    return all->streams;
}

void outputs_touch_stream(outputs *all, const unsigned char stream[16])
{
    nl_streams_touch(all->streams, stream);
    for (size_t i = 0; i < all->count; i++)
        nl_streams_touch(output_streams(all->at[i]), stream);
}

bool outputs_admit_block(outputs *all, const nl_block_header *block, unsigned owner)
{
    bool admitted = nl_streams_admit(all->streams, block, owner);
    for (size_t i = 0; i < all->count && admitted; i++)
        admitted = nl_streams_admit(output_streams(all->at[i]), block, owner);
    return admitted;
}

output *outputs_get(const outputs *all, size_t i)
{
    return i < all->count ? all->at[i] : NULL;
}

uint64_t outputs_encoded(const outputs *all)
{
    uint64_t encoded = 0;
    for (size_t i = 0; i < all->count; i++)
        encoded += output_encoded(all->at[i]);
    return all->count > 0 ? encoded / all->count : 0;
}

bool outputs_want_blocks(const outputs *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (!output_wants_blocks(all->at[i]))
            return false;
    return true;
}

/* Calls a function of each, whatever comes of the others; the error is the first. */
static nl_status each(outputs *all, nl_status (*function)(output *out))
{
    nl_error error;
    nl_status status = NL_OK;
    for (size_t i = 0; i < all->count; i++) {
        if (function(all->at[i]) == NL_OK || status != NL_OK)
            continue;
        status = NL_FAILED;
        nl_error_save(&error);
    }
    return status == NL_OK ? NL_OK : nl_error_restore(&error);
}

/* None notes what it has before each has a journal. */
static nl_status outputs_begin(outputs *all)
{
    return all->count > 1 ? each(all, output_begin) : NL_OK;
}

/* Settles those whose files are to grow no further. No block is read in part. What fails is tried again. */
static void end_full_files(outputs *all)
{
    bool begun = outputs_begin(all) == NL_OK;
    for (size_t i = 0; i < all->count && begun; i++)
        if (output_is_full(all->at[i]))
            output_settle(all->at[i]);
    all->full = false;
}

void outputs_put(outputs *all, const nl_record *record, const uint64_t *sequence)
{
    for (size_t i = 0; i < all->count; i++)
        all->full = output_put(all->at[i], record, sequence) || all->full;
    if (all->full && sequence == NULL)
        end_full_files(all);
}

bool outputs_put_block(outputs *all, const nl_block_view *block)
{
    bool whole = block->taken;
    if (all->full)
        end_full_files(all);
    for (size_t i = 0; i < all->count; i++)
        whole = output_begin_block(all->at[i], block) && whole;
    for (size_t i = 0; i < all->count && whole; i++)
        all->full = output_put_block(all->at[i], block) || all->full;
    if (all->full && whole)
        end_full_files(all);
    return whole;
}

nl_status outputs_flush(outputs *all)
{
    return outputs_begin(all) == NL_OK ? each(all, output_flush) : NL_FAILED;
}

nl_status outputs_settle(outputs *all)
{
    return outputs_begin(all) == NL_OK ? each(all, output_settle) : NL_FAILED;
}

bool outputs_are_empty(const outputs *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (!output_is_empty(all->at[i]))
            return false;
    return true;
}

bool outputs_are_blocked(const outputs *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (output_is_blocked(all->at[i]))
            return true;
    return false;
}

bool outputs_are_due(const outputs *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (output_is_due(all->at[i]))
            return true;
    return false;
}

bool outputs_are_settled(const outputs *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (!output_is_settled(all->at[i]))
            return false;
    return true;
}

int outputs_settle_ms(const outputs *all)
{
    int least = INT_MAX;
    for (size_t i = 0; i < all->count; i++)
        if (!output_is_settled(all->at[i])) {
            int ms = output_settle_ms(all->at[i]);
            least = ms < least ? ms : least;
        }
    return least;
}

bool outputs_have_seal_due(const outputs *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (output_is_seal_due(all->at[i]))
            return true;
    return false;
}

nl_status outputs_reopen(outputs *all)
{
    return outputs_begin(all) == NL_OK ? each(all, output_reopen) : NL_FAILED;
}

/* Whether an output has the same of a stream as another has. */
static void outputs_compare(void *user, const nl_stream_state *state)
{
    levelling *l = user;
    nl_stream_state other;
    for (size_t i = 0; i < l->all->count && l->level; i++)
        l->level =
            nl_streams_get(output_streams(l->all->at[i]), state->stream, &other) && other.next == state->next &&
            other.gap_count == state->gap_count &&
            (state->gap_count == 0 || memcmp(other.gaps, state->gaps, state->gap_count * sizeof *state->gaps) == 0);
}

/* Whether all have the same. After a kill one may have what another has not until the clients have sent it again. */
static bool are_level(outputs *all)
{
    levelling l = {all, true};
    for (size_t i = 0; i < all->count && all->count > 1; i++)
        nl_streams_list(output_streams(all->at[i]), outputs_compare, &l);
    return l.level;
}

nl_status outputs_close(outputs *all)
{
    nl_status status = outputs_begin(all) == NL_OK ? NL_OK : NL_FAILED;
    nl_status closed = each(all, are_level(all) ? output_close : output_close_behind);
    deliveries_end();
    free_all(all);
    return status == NL_OK ? closed : status;
}

const output *outputs_with_all(const outputs *all)
{
    for (size_t i = 0; i < all->count; i++)
        if (output_holds_all(all->at[i]))
            return all->at[i];
    return NULL;
}
