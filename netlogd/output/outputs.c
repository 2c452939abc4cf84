#include "config.h"

#include "outputs.h"

#include "file.h"
#include "value_thread.h"

#include "base/error.h"
#include "base/memory.h"
#include "program/program.h"
#include "reader/admission.h"
#include "record/line_scanner.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static output **outputs;
static size_t output_count;
static nl_streams *streams; /* the numbers that all outputs have in common */
static bool any_full;       /* an output may be full (output_is_full) */

static bool any_output(bool (*is)(const output *out))
{
    for (size_t i = 0; i < output_count; i++)
        if (is(outputs[i]))
            return true;
    return false;
}

static bool all_outputs(bool (*is)(const output *out))
{
    for (size_t i = 0; i < output_count; i++)
        if (!is(outputs[i]))
            return false;
    return true;
}

/*
 * Calls a function for each output, even after failures. If calls fail, returns NL_FAILED with the error of the first
 * failure.
 */
static nl_status each_output(nl_status (*function)(output *out))
{
    nl_error error;
    nl_status status = NL_OK;
    for (size_t i = 0; i < output_count; i++) {
        if (function(outputs[i]) == NL_OK || status != NL_OK)
            continue;
        status = NL_FAILED;
        nl_error_save(&error);
    }
    return status == NL_OK ? NL_OK : nl_error_restore(&error);
}

/* ---- common numbers ---- */

typedef struct visit {
    output *out;
    bool behind; /* the output may lack records that clients will send again */
} visit;

/* Returns the state with the numbers that both states have. Its gaps are in *gaps. */
static nl_stream_state intersect(const nl_stream_state *a, const nl_stream_state *b, nl_buffer *gaps)
{
    const nl_stream_state *less = a->next < b->next ? a : b, *more = less == a ? b : a;
    nl_stream_state both = *less;
    gaps->size = 0;
    /* Merge the two sorted lists of gaps, and join overlapping gaps. */
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

/*
 * Sets the state of a stream in `streams` to the numbers that all outputs with OUTPUT_PAST_KILLED have. If an output
 * does not know the stream, it has no records of the stream.
 */
static void collect_killed(void *user, const nl_stream_state *state)
{
    const visit *v = user;
    nl_stream_state joint = *state, other;
    nl_buffer gaps = {0}, before = {0};
    for (size_t i = 0; i < output_count; i++) {
        output *out = outputs[i];
        if (out == v->out || output_get_past(out) != OUTPUT_PAST_KILLED)
            continue;
        if (!nl_streams_get(output_streams(out), state->stream, &other)) {
            other = (nl_stream_state){.latest_ns = state->latest_ns};
            memcpy(other.stream, state->stream, sizeof other.stream);
        }
        nl_buffer free_one = before; /* `joint` may point to the gaps in the other buffer */
        before = gaps;
        gaps = free_one;
        joint = intersect(&joint, &other, &gaps);
    }
    nl_streams_set(streams, &joint);
    nl_buffer_free(&gaps);
    nl_buffer_free(&before);
}

/*
 * Adds a stream of an output that ended cleanly to `streams`. If outputs have different next numbers of the
 * stream, the highest number is correct, because the output with this number has existed longest.
 */
static void collect_ended(void *user, const nl_stream_state *state)
{
    (void)user;
    nl_stream_state known;
    if (!nl_streams_get(streams, state->stream, &known) || known.next < state->next)
        nl_streams_set(streams, state);
}

/*
 * Copies a common stream of the other outputs to a joining output. If the joining output is not behind, it gets the
 * state of the other outputs, unless its own next number is at least as high. If the joining output is behind and does
 * not know the stream, it must get all records of the stream.
 */
static void adopt_stream(void *user, const nl_stream_state *state)
{
    const visit *v = user;
    nl_stream_state known, set = *state;
    bool knows = nl_streams_get(output_streams(v->out), state->stream, &known);
    if (knows && (v->behind || known.next >= state->next))
        return;
    if (v->behind) {
        set.next = 0;
        set.gap_count = 0;
    }
    nl_streams_set(output_streams(v->out), &set);
}

/* Marks the output's own stream as complete, because other collectors may send its records back. */
static void complete_own_stream(const output *out)
{
    const unsigned char *own = output_own_stream(out);
    nl_stream_state state = {.next = UINT64_MAX};
    if (own == NULL)
        return;
    memcpy(state.stream, own, sizeof state.stream);
    nl_streams_set(streams, &state);
}

/* Sets the streams of a joining output to those of the other outputs, and writes them to its journal. */
static nl_status outputs_join(output *one, bool behind)
{
    nl_streams_list(streams, adopt_stream, &(visit){one, behind});
    return output_note_streams(one);
}

static bool is_killed(const output *out)
{
    return output_get_past(out) == OUTPUT_PAST_KILLED;
}

static bool has_past(const output *out)
{
    return output_get_past(out) != OUTPUT_PAST_NONE;
}

/* Computes the numbers that all outputs have in common. */
static nl_status unify_streams(void)
{
    bool killed = any_output(is_killed), any = any_output(has_past);
    nl_status status = NL_OK;
    for (size_t i = 0; i < output_count; i++)
        if (!killed || is_killed(outputs[i]))
            nl_streams_list(output_streams(outputs[i]), killed ? collect_killed : collect_ended,
                            &(visit){.out = outputs[i]});
    for (size_t i = 0; i < output_count && status == NL_OK && any && output_count > 1; i++)
        status = outputs_join(outputs[i], is_killed(outputs[i]));
    for (size_t i = 0; i < output_count; i++)
        complete_own_stream(outputs[i]);
    return status;
}

/* ---- opening ---- */

static output *open_text(const char *text)
{
    output_options options;
    return output_options_parse(text, &options) == NL_OK ? output_open(&options) : NULL;
}

static void free_all(void)
{
    deliveries_end();
    nl_streams_free(streams);
    free(outputs);
}

/* Returns whether two valid URLs have the same target. */
static bool is_same_target(const char *one, const char *other)
{
    output_options a, b;
    bool same = false;
    if (output_options_parse(one, &a) == NL_OK) {
        if (output_options_parse(other, &b) == NL_OK) {
            same = output_options_same_target(&a, &b);
            output_options_free(&b);
        }
        output_options_free(&a);
    }
    return same;
}

static nl_status check_targets(char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            if (is_same_target(texts[i], texts[k]))
                return nl_error_set(NL_ERROR_INVALID, "output %s: another output, %s, has the same destination",
                                    texts[i], texts[k]);
    return NL_OK;
}

nl_status outputs_open(char *const *texts, size_t count)
{
    nl_error error;
    if (check_targets(texts, count) != NL_OK)
        return NL_FAILED;
    streams = nl_streams_new();
    outputs = nl_memory_check(calloc(count + 1, sizeof *outputs));
    while (output_count < count && (outputs[output_count] = open_text(texts[output_count])) != NULL)
        output_count++;
    if (output_count == count && unify_streams() == NL_OK)
        return NL_OK;
    nl_error_save(&error);
    while (output_count > 0)
        output_abandon(outputs[--output_count]);
    free_all();
    return nl_error_restore(&error);
}

static void start_output(output *out, nl_log *log)
{
    output_start(out, log);
    output_report_repairs(out, log);
}

void outputs_start(nl_log *log)
{
    value_thread_allow();
    for (size_t i = 0; i < output_count; i++)
        start_output(outputs[i], log);
}

/* ---- changing ---- */

typedef struct change {
    output_options options;
    output *existing; /* the output that already has this target */
    output *opened;   /* the output that was opened for a new target */
} change;

static output *find_output(const output_options *options)
{
    for (size_t i = 0; i < output_count; i++)
        if (output_options_same_target(output_get_options(outputs[i]), options))
            return outputs[i];
    return NULL;
}

/* Parses the texts, and opens the outputs that do not exist yet. */
static nl_status prepare(change *changes, char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        change *c = &changes[i];
        if (output_options_parse(texts[i], &c->options) != NL_OK)
            return NL_FAILED;
        c->existing = find_output(&c->options);
        if (c->existing == NULL &&
            ((c->opened = output_open(&c->options)) == NULL || outputs_join(c->opened, false) != NL_OK))
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

static bool stays(const change *changes, size_t count, const output *out)
{
    for (size_t i = 0; i < count; i++)
        if (changes[i].existing == out)
            return true;
    return false;
}

static void close_output(output *out, nl_log *log)
{
    delivery_state state = {0};
    output_delivers(out, &state);
    nl_write(log, NL_USAGE, "Netlogd.OutputClosed", "OUTPUT=%s SPOOLED=%llu", output_get_options(out)->target,
             (unsigned long long)state.waiting);
    if (output_close(out) != NL_OK) {
        program_error("%s; records that this output had not written are lost", nl_error_message());
        nl_write(log, NL_ERROR, "Netlogd.OutputClosed", "REASON=%s", nl_error_message());
    }
}

/* Applies the changes after prepare() has succeeded. An existing output that cannot change its options keeps its old
 * options. */
static void apply_changes(change *changes, size_t count, nl_log *log)
{
    output **now = nl_memory_check(calloc(count + 1, sizeof *now));
    for (size_t i = 0; i < output_count; i++)
        if (!stays(changes, count, outputs[i]))
            close_output(outputs[i], log);
    for (size_t i = 0; i < count; i++) {
        change *c = &changes[i];
        now[i] = c->existing != NULL ? c->existing : c->opened;
        if (c->opened != NULL) {
            start_output(c->opened, log);
            complete_own_stream(c->opened);
            nl_write(log, NL_USAGE, "Netlogd.OutputOpened", "OUTPUT=%s", output_get_options(c->opened)->target);
        } else if (strcmp(c->options.url->text, output_get_options(c->existing)->url->text) == 0) {
            output_options_free(&c->options);
        } else if (output_change(c->existing, &c->options) != NL_OK) {
            program_error("%s; the output keeps its old options", nl_error_message());
        }
    }
    free(outputs);
    outputs = now;
    output_count = count;
}

nl_status outputs_change(char *const *texts, size_t count, nl_log *log)
{
    if (check_targets(texts, count) != NL_OK)
        return NL_FAILED;
    outputs_settle(); /* ignore a failure, because the change may replace the output that cannot be written */
    change *changes = nl_memory_check(calloc(count + 1, sizeof *changes));
    nl_status status = prepare(changes, texts, count);
    if (status == NL_OK)
        apply_changes(changes, count, log);
    else
        undo(changes, count);
    free(changes);
    return status;
}

/* ---- all outputs ---- */

nl_streams *outputs_streams(void)
{
    return streams;
}

void outputs_touch_stream(const unsigned char stream[16])
{
    nl_streams_touch(streams, stream);
    for (size_t i = 0; i < output_count; i++)
        nl_streams_touch(output_streams(outputs[i]), stream);
}

bool outputs_admit_block(const nl_block_header *block, unsigned owner)
{
    bool admitted = nl_streams_admit(streams, block, owner);
    for (size_t i = 0; i < output_count && admitted; i++)
        admitted = nl_streams_admit(output_streams(outputs[i]), block, owner);
    return admitted;
}

output *outputs_get(size_t i)
{
    return i < output_count ? outputs[i] : NULL;
}

uint64_t outputs_encoded(void)
{
    uint64_t encoded = 0;
    for (size_t i = 0; i < output_count; i++)
        encoded += output_encoded(outputs[i]);
    return output_count > 0 ? encoded / output_count : 0;
}

bool outputs_want_blocks(void)
{
    return all_outputs(output_wants_blocks);
}

/* Creates all journals before any output writes an entry for its records. */
static nl_status outputs_begin(void)
{
    return output_count > 1 ? each_output(output_begin) : NL_OK;
}

/*
 * Settles outputs whose files are full. Call it only when no block is partly stored. After a failure, a later call
 * tries again.
 */
static void end_full_files(void)
{
    bool begun = outputs_begin() == NL_OK;
    for (size_t i = 0; i < output_count && begun; i++)
        if (output_is_full(outputs[i]))
            output_settle(outputs[i]);
    any_full = false;
}

void outputs_put(const nl_record *record, const uint64_t *sequence)
{
    for (size_t i = 0; i < output_count; i++)
        any_full = output_put(outputs[i], record, sequence) || any_full;
    if (any_full && sequence == NULL)
        end_full_files();
}

bool outputs_want_lines(nl_format format)
{
    for (size_t i = 0; i < output_count; i++)
        if (!output_wants_lines(outputs[i], format))
            return false;
    return true;
}

void outputs_put_lines(const char *text, const nl_scanned_line *lines, size_t count)
{
    while (count > 0) {
        size_t now = count;
        for (size_t i = 0; i < output_count; i++)
            now = output_count_due(outputs[i], lines, now);
        for (size_t i = 0; i < output_count; i++)
            any_full = output_put_lines(outputs[i], text, lines, now) || any_full;
        if (any_full)
            end_full_files();
        lines += now;
        count -= now;
    }
}

bool outputs_put_block(const nl_block_view *block)
{
    bool whole = block->taken;
    if (any_full)
        end_full_files();
    for (size_t i = 0; i < output_count; i++)
        whole = output_begin_block(outputs[i], block) && whole;
    for (size_t i = 0; i < output_count && whole; i++)
        any_full = output_put_block(outputs[i], block) || any_full;
    if (any_full && whole)
        end_full_files();
    return whole;
}

nl_status outputs_flush(void)
{
    return outputs_begin() == NL_OK ? each_output(output_flush) : NL_FAILED;
}

nl_status outputs_settle(void)
{
    return outputs_begin() == NL_OK ? each_output(output_settle) : NL_FAILED;
}

bool outputs_are_empty(void)
{
    return all_outputs(output_is_empty);
}

bool outputs_are_blocked(void)
{
    return any_output(output_is_blocked);
}

bool outputs_are_due(void)
{
    return any_output(output_is_due);
}

bool outputs_are_settled(void)
{
    return all_outputs(output_is_settled);
}

int outputs_settle_ms(void)
{
    int minimum = INT_MAX;
    for (size_t i = 0; i < output_count; i++)
        if (!output_is_settled(outputs[i])) {
            int ms = output_settle_ms(outputs[i]);
            minimum = ms < minimum ? ms : minimum;
        }
    return minimum;
}

bool outputs_have_seal_due(void)
{
    return any_output(output_is_seal_due);
}

nl_status outputs_reopen(void)
{
    return outputs_begin() == NL_OK ? each_output(output_reopen) : NL_FAILED;
}

/* ---- closing ---- */

/* Sets *level to false if another output has different numbers of this stream. */
static void compare_stream(void *user, const nl_stream_state *state)
{
    bool *level = user;
    nl_stream_state other;
    for (size_t i = 0; i < output_count && *level; i++)
        *level =
            nl_streams_get(output_streams(outputs[i]), state->stream, &other) && other.next == state->next &&
            other.gap_count == state->gap_count &&
            (state->gap_count == 0 || memcmp(other.gaps, state->gaps, state->gap_count * sizeof *state->gaps) == 0);
}

/*
 * Returns whether all outputs have the same numbers. After netlogd was killed, the numbers become the same when clients
 * have sent their blocks again.
 */
static bool are_level(void)
{
    bool level = true;
    for (size_t i = 0; i < output_count && output_count > 1; i++)
        nl_streams_list(output_streams(outputs[i]), compare_stream, &level);
    return level;
}

nl_status outputs_close(void)
{
    nl_status status = outputs_begin();
    nl_status closed = each_output(are_level() ? output_close : output_close_behind);
    free_all();
    value_thread_stop();
    return status == NL_OK ? closed : status;
}

char *outputs_name_beside(const char *suffix)
{
    char *name = NULL;
    for (size_t i = 0; i < output_count && name == NULL; i++)
        name = output_file_name_beside(output_get_options(outputs[i]), suffix);
    return name;
}

const output *outputs_with_all(void)
{
    for (size_t i = 0; i < output_count; i++)
        if (output_holds_all(outputs[i]))
            return outputs[i];
    return NULL;
}
