#include "config.h"

#include "gaps.h"

#include "base/memory.h"
#include "base/monotonic.h"
#include "program/program.h"

#include <stdlib.h>
#include <string.h>

enum { REPORTED_MAX = 10 /* maximum number of a sender's gaps that are reported one by one */ };

typedef struct gap {
    struct gap *next;
    nl_lost what;
    const char *peer, *message; /* copies */
    uint64_t number;            /* number of this gap among the gaps of its sender */
    int64_t due_ns;             /* time at which the gap will be reported; 0: already reported */
    uint64_t reported;          /* number of the gap's records that count as lost */
} gap;

static struct {
    const nl_streams *streams;
    nl_log *log;
    gap *first, **last; /* sorted by due_ns */
    size_t count;
    gaps_counts counts;
} gaps;

void gaps_start(const nl_streams *streams, nl_log *log)
{
    memset(&gaps, 0, sizeof gaps);
    gaps.streams = streams;
    gaps.log = log;
    gaps.last = &gaps.first;
}

static void remove_gap(gap **link)
{
    gap *gone = *link;
    *link = gone->next;
    if (gaps.last == &gone->next)
        gaps.last = link;
    gaps.count--;
    free((char *)gone->peer);
    free((char *)gone->message);
    free(gone);
}

void gaps_free(void)
{
    while (gaps.first != NULL)
        remove_gap(&gaps.first);
}

/*
 * Writes an event to netlogd's log if the gap is one of the sender's first REPORTED_MAX gaps. Later gaps are only
 * counted.
 */
static void report_gap(const gap *x, const char *event, uint64_t count, uint64_t dropped, const char *note)
{
    char from[NL_TIME_TEXT_SIZE], to[NL_TIME_TEXT_SIZE];
    nl_time_format_ulm(x->what.from_ns, from);
    nl_time_format_ulm(x->what.to_ns, to);
    if (x->number <= REPORTED_MAX)
        nl_write(gaps.log, NL_WARNING, event, "PEER=%s%s%s COUNT=%llu DROPPED=%llu FROM=%s TO=%s%s", x->peer,
                 x->message[0] != '\0' ? " MESSAGE=" : "", x->message, (unsigned long long)count,
                 (unsigned long long)dropped, from, to, note);
    else if (x->number == REPORTED_MAX + 1)
        nl_write(gaps.log, NL_WARNING, event, "PEER=%s NOTE=\"further gaps of this client are only counted\"", x->peer);
}

/*
 * Returns the number of the gap's records that have not arrived. If the outputs have forgotten the stream, returns the
 * number of all records of the gap.
 */
static uint64_t count_open(const gap *x)
{
    nl_number_range range = x->what.numbers;
    nl_stream_state state;
    uint64_t open = 0;
    if (!nl_streams_get(gaps.streams, x->what.stream, &state))
        return range.to - range.from;
    for (size_t i = 0; i < state.gap_count; i++) {
        uint64_t from = state.gaps[i].from > range.from ? state.gaps[i].from : range.from;
        uint64_t to = state.gaps[i].to < range.to ? state.gaps[i].to : range.to;
        open += from < to ? to - from : 0;
    }
    if (state.next < range.to) /* the stream was forgotten and has begun again */
        open += range.to - (state.next > range.from ? state.next : range.from);
    return open;
}

/* Reports changes of a gap whose grace period has ended. Returns whether the gap is still open. */
static bool settle_gap(gap *x, const char *note)
{
    uint64_t open = count_open(x);
    if (x->due_ns == 0 &&
        open > x->reported) /* the stream was forgotten; records that were found still count as found */
        open = x->reported;
    if (x->due_ns != 0 && open > 0) {
        gaps.counts.lost += open;
        report_gap(x, "Netlogd.Lost", open, 0, note);
    } else if (x->due_ns == 0 && open < x->reported) {
        gaps.counts.found += x->reported - open;
        report_gap(x, "Netlogd.Found", x->reported - open, 0, note);
    }
    x->due_ns = 0;
    x->reported = open;
    return open > 0;
}

/* Subtracts dropped records from the gaps that were reported as lost. Returns the number of subtracted records. */
static uint64_t take_reported(const nl_lost *dropped)
{
    uint64_t left = dropped->dropped;
    for (gap *x = gaps.first; x != NULL && left > 0 && dropped->numbers.from < dropped->numbers.to; x = x->next) {
        uint64_t from = x->what.numbers.from > dropped->numbers.from ? x->what.numbers.from : dropped->numbers.from;
        uint64_t to = x->what.numbers.to < dropped->numbers.to ? x->what.numbers.to : dropped->numbers.to;
        if (x->due_ns != 0 || from >= to || memcmp(x->what.stream, dropped->stream, sizeof dropped->stream) != 0)
            continue;
        uint64_t open = count_open(x), closed = open < x->reported ? x->reported - open : 0;
        closed = closed < to - from ? closed : to - from;
        closed = closed < left ? closed : left;
        x->reported -= closed;
        left -= closed;
    }
    return dropped->dropped - left;
}

void gaps_note(const nl_lost *what, const char *peer, const char *message, uint64_t number)
{
    gap noticed = {.what = *what,
                   .peer = peer,
                   .message = message,
                   .number = number,
                   .due_ns = nl_monotonic_ns() + GAPS_GRACE_S * NL_NS_PER_SECOND};
    uint64_t dropped = what->dropped - (what->count == what->dropped ? take_reported(what) : 0);
    if (dropped > 0) {
        gaps.counts.lost += dropped;
        report_gap(&noticed, "Netlogd.Lost", dropped, dropped, "");
    }
    if (what->count == what->dropped)
        return;
    if (gaps.count == GAPS_MAX) {
        settle_gap(gaps.first, "");
        remove_gap(&gaps.first);
    }
    gap *x = nl_memory_check(malloc(sizeof *x));
    *x = noticed;
    x->peer = program_copy(peer);
    x->message = program_copy(message);
    *gaps.last = x;
    gaps.last = &x->next;
    gaps.count++;
}

void gaps_check(int64_t now_ns)
{
    for (gap **link = &gaps.first; *link != NULL;) {
        if ((*link)->due_ns <= now_ns && !settle_gap(*link, ""))
            remove_gap(link);
        else
            link = &(*link)->next;
    }
}

void gaps_end(void)
{
    for (gap *x = gaps.first; x != NULL; x = x->next)
        settle_gap(x, x->due_ns != 0 ? " NOTE=\"not received when netlogd ended\"" : "");
}

const gaps_counts *gaps_get_counts(void)
{
    return &gaps.counts;
}

uint64_t gaps_count_lost(void)
{
    return gaps.counts.lost - gaps.counts.found;
}
