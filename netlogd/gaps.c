#include "config.h"

#include "gaps.h"

#include "base/monotonic.h"
#include "program/program.h"

#include <stdlib.h>
#include <string.h>

enum { REPORTED_MAX = 10 /* gaps of a sender that are reported one by one */ };

typedef struct gap {
    struct gap *next;
    nl_lost what;
    const char *peer, *message; /* copies */
    uint64_t number;            /* among the sender's */
    int64_t due_ns;             /* when it is reported, while it is not */
    uint64_t reported;          /* records that count as lost */
} gap;

struct gaps {
    const nl_streams *streams;
    nl_log *log;
    gap *first, **last; /* by due_ns */
    size_t count;
    gaps_counts counts;
};

gaps *gaps_new(const nl_streams *streams, nl_log *log)
{
    gaps *g = calloc(1, sizeof *g);
    if (g == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    g->streams = streams;
    g->log = log;
    g->last = &g->first;
    return g;
}

/* Removes the gap that *link leads to. */
static void remove_gap(gaps *g, gap **link)
{
    gap *gone = *link;
    *link = gone->next;
    if (g->last == &gone->next)
        g->last = link;
    g->count--;
    free((char *)gone->peer);
    free((char *)gone->message);
    free(gone);
}

void gaps_free(gaps *g)
{
    while (g != NULL && g->first != NULL)
        remove_gap(g, &g->first);
    free(g);
}

/* Writes one of the sender's first events of this kind to netlogd's log. */
static void report_gap(gaps *g, const gap *x, const char *event, uint64_t count, uint64_t dropped, const char *note)
{
    char from[NL_TIME_TEXT_SIZE], to[NL_TIME_TEXT_SIZE];
    nl_time_format_ulm(x->what.from_ns, from);
    nl_time_format_ulm(x->what.to_ns, to);
    if (x->number <= REPORTED_MAX)
        nl_write(g->log, NL_WARNING, event, "PEER=%s%s%s COUNT=%llu DROPPED=%llu FROM=%s TO=%s%s", x->peer,
                 x->message[0] != '\0' ? " MESSAGE=" : "", x->message, (unsigned long long)count,
                 (unsigned long long)dropped, from, to, note);
    else if (x->number == REPORTED_MAX + 1)
        nl_write(g->log, NL_WARNING, event, "PEER=%s NOTE=\"further gaps of this client are only counted\"", x->peer);
}

/* How many of the gap's records have not come, as far as is known: of a stream that was forgotten, none has. */
static uint64_t count_open(const gaps *g, const gap *x)
{
    nl_number_range range = x->what.numbers;
    nl_stream_state state;
    uint64_t open = 0;
    if (!nl_streams_get(g->streams, x->what.stream, &state))
        return range.to - range.from;
    for (size_t i = 0; i < state.gap_count; i++) {
        uint64_t from = state.gaps[i].from > range.from ? state.gaps[i].from : range.from;
        uint64_t to = state.gaps[i].to < range.to ? state.gaps[i].to : range.to;
        open += from < to ? to - from : 0;
    }
    if (state.next < range.to) /* a stream that was forgotten and has begun again */
        open += range.to - (state.next > range.from ? state.next : range.from);
    return open;
}

/* Reports what has changed of a gap whose grace is over. Whether any of it is still open. */
static bool settle_gap(gaps *g, gap *x, const char *note)
{
    uint64_t open = count_open(g, x);
    if (x->due_ns == 0 && open > x->reported) /* the stream was forgotten meanwhile; what was found stays found */
        open = x->reported;
    if (x->due_ns != 0 && open > 0) {
        g->counts.lost += open;
        report_gap(g, x, "Netlogd.Lost", open, 0, note);
    } else if (x->due_ns == 0 && open < x->reported) {
        g->counts.found += x->reported - open;
        report_gap(g, x, "Netlogd.Found", x->reported - open, 0, note);
    }
    x->due_ns = 0;
    x->reported = open;
    return open > 0;
}

/* Takes the dropped numbers out of the gaps that were reported as lost. Returns how many they were. */
static uint64_t take_reported(gaps *g, const nl_lost *dropped)
{
    uint64_t left = dropped->dropped;
    for (gap *x = g->first; x != NULL && left > 0 && dropped->numbers.from < dropped->numbers.to; x = x->next) {
        uint64_t from = x->what.numbers.from > dropped->numbers.from ? x->what.numbers.from : dropped->numbers.from;
        uint64_t to = x->what.numbers.to < dropped->numbers.to ? x->what.numbers.to : dropped->numbers.to;
        if (x->due_ns != 0 || from >= to || memcmp(x->what.stream, dropped->stream, sizeof dropped->stream) != 0)
            continue;
        uint64_t open = count_open(g, x), closed = open < x->reported ? x->reported - open : 0;
        closed = closed < to - from ? closed : to - from;
        closed = closed < left ? closed : left;
        x->reported -= closed;
        left -= closed;
    }
    return dropped->dropped - left;
}

void gaps_note(gaps *g, const nl_lost *what, const char *peer, const char *message, uint64_t number)
{
    gap noticed = {.what = *what,
                   .peer = peer,
                   .message = message,
                   .number = number,
                   .due_ns = nl_monotonic_ns() + GAPS_GRACE_S * NL_NS_PER_SECOND};
    uint64_t dropped = what->dropped - (what->count == what->dropped ? take_reported(g, what) : 0);
    if (dropped > 0) {
        g->counts.lost += dropped;
        report_gap(g, &noticed, "Netlogd.Lost", dropped, dropped, "");
    }
    if (what->count == what->dropped)
        return;
    if (g->count == GAPS_MAX) {
        settle_gap(g, g->first, "");
        remove_gap(g, &g->first);
    }
    gap *x = malloc(sizeof *x);
    if (x == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    *x = noticed;
    x->peer = program_copy(peer);
    x->message = program_copy(message);
    *g->last = x;
    g->last = &x->next;
    g->count++;
}

void gaps_check(gaps *g, int64_t now_ns)
{
    for (gap **link = &g->first; *link != NULL;) {
        if ((*link)->due_ns <= now_ns && !settle_gap(g, *link, ""))
            remove_gap(g, link);
        else
            link = &(*link)->next;
    }
}

void gaps_end(gaps *g)
{
    for (gap *x = g->first; x != NULL; x = x->next)
        settle_gap(g, x, x->due_ns != 0 ? " NOTE=\"not here when netlogd ended\"" : "");
}

const gaps_counts *gaps_get_counts(const gaps *g)
{
    return &g->counts;
}

uint64_t gaps_count_lost(const gaps *g)
{
    return g->counts.lost - g->counts.found;
}
