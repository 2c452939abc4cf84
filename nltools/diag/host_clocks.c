#include "config.h"

#include "diag/host_clocks.h"

#include "base/clock_quality.h"
#include "base/text.h"
#include "clocks/correction.h"

#include <math.h>
#include <string.h>

enum { CALLS_MIN = 20 };

/* Minimum error of a wrong clock. Synchronized clocks of different hosts usually differ by less. */
#define WRONG_MIN_NS 1e6

typedef struct wrong_clock {
    const char *host, *reference;
    double ahead_ns, error_ns;
    uint64_t evidence, all;  /* numbers of impossible calls and of all calls, or of measurements */
    bool measured, by_order; /* by_order: the evidence is the order of events */
} wrong_clock;

struct host_clocks {
    correction *correction;
    GArray *wrong;         /* wrong_clock */
    const char *rivals[2]; /* two hosts, of which one has a wrong clock; NULL if there are no such hosts */
    double apart_ns;       /* the difference between the clocks of the rivals */
    bool decided;
};

host_clocks *host_clocks_new(void)
{
    host_clocks *c = g_new0(host_clocks, 1);
    c->correction = correction_new(&(correction_options){0});
    c->wrong = g_array_new(FALSE, FALSE, sizeof(wrong_clock));
    return c;
}

void host_clocks_free(host_clocks *c)
{
    correction_free(c->correction);
    g_array_free(c->wrong, TRUE);
    g_free(c);
}

static bool event_is(const nl_record *record, const char *name)
{
    return record->event.size == strlen(name) && memcmp(record->event.data, name, record->event.size) == 0;
}

int64_t host_clocks_time(void *clocks, const nl_record *record)
{
    host_clocks *c = clocks;
    if (!c->decided) {
        nl_field machine;
        if (event_is(record, NL_CLOCK_OFFSET) || event_is(record, NL_CLOCK_STEP) ||
            (event_is(record, NL_CLOCK_KERNEL) &&
             nl_record_find(record, NL_CLOCK_MACHINE, &machine))) /* hosts on one machine share its clock */
            correction_learn(c->correction, record);
        return record->time_ns;
    }
    for (guint i = 0; i < c->wrong->len; i++) {
        const wrong_clock *w = &g_array_index(c->wrong, wrong_clock, i);
        if (strlen(w->host) == record->host.size && memcmp(w->host, record->host.data, record->host.size) == 0)
            return w->measured ? correction_time(c->correction, record->host, record->time_ns)
                               : record->time_ns - (int64_t)w->ahead_ns;
    }
    return record->time_ns;
}

static bool is_known(const host_clocks *c, const char *host)
{
    for (guint i = 0; i < c->wrong->len; i++)
        if (strcmp(g_array_index(c->wrong, wrong_clock, i).host, host) == 0)
            return true;
    return false;
}

static void take_measurements(host_clocks *c)
{
    correction_solve(c->correction);
    for (size_t i = 0; i < correction_host_count(c->correction); i++) {
        correction_host h = correction_get_host(c->correction, i);
        double largest = fmax(fabs(h.min_ns), fabs(h.max_ns));
        if (!h.is_known || h.is_reference || !(largest > h.error_ns) || largest < WRONG_MIN_NS)
            continue;
        const wrong_clock w = {g_intern_string(h.name),
                               g_intern_string(correction_reference(c->correction)),
                               -h.offset_ns,
                               h.error_ns,
                               h.measurements,
                               h.measurements,
                               true,
                               false};
        g_array_append_val(c->wrong, w);
    }
}

/*
 * Returns whether calls from one host to another would be impossible if the clocks were equal, because nearly all
 * callees begin before their callers. A few calls may be errors of the log. A callee that ends after its caller is not
 * evidence, because the caller may not wait for the callee. Returns false if the difference of the clocks was measured,
 * because the measurement is better evidence than the calls.
 */
static bool is_impossible(const clock_bound *b)
{
    return b->forward >= CALLS_MIN && !b->measured && b->high_ns < -WRONG_MIN_NS;
}

/*
 * Returns whether the clock of a callee's host may be fast: nearly all calls on this host end after their callers, but
 * the calls of the same program on other hosts end before their callers. The clock is not certainly fast, because the
 * callers may not wait for this host.
 */
static bool is_doubtful(const visits *v, const clock_bound *b)
{
    uint64_t others = 0, late = 0;
    if (b->forward < CALLS_MIN || b->measured || is_impossible(b))
        return false;
    for (guint i = 0; i < v->bounds->len; i++) {
        const clock_bound *o = &g_array_index(v->bounds, clock_bound, i);
        if (o->program == b->program && o->b != b->b) {
            others += o->forward;
            late += o->late;
        }
    }
    return b->late * 20 > b->forward * 19 && others >= CALLS_MIN && late * 20 < others && b->low_ns > WRONG_MIN_NS;
}

bool host_clock_is_doubtful(const visits *v, const char *host)
{
    for (guint i = 0; i < v->bounds->len; i++) {
        const clock_bound *b = &g_array_index(v->bounds, clock_bound, i);
        if (b->b == host && is_doubtful(v, b))
            return true;
    }
    return false;
}

double host_clock_error(const visits *v, const char *host)
{
    for (guint i = 0; i < v->corrections->len; i++) {
        const clock_correction *c = &g_array_index(v->corrections, clock_correction, i);
        if (c->host == host)
            return c->error_ns;
    }
    return 0;
}

void host_clocks_note(const host_clocks *c, visits *v)
{
    for (guint i = 0; i < c->wrong->len; i++) {
        const wrong_clock *w = &g_array_index(c->wrong, wrong_clock, i);
        const clock_correction correction = {w->host, w->error_ns};
        g_array_append_val(v->corrections, correction);
    }
}

/*
 * Considers the pairs in which a host is the callee or, if `callee` is false, the caller. Returns the share of these
 * pairs whose calls are impossible, 0 to 1. If the host's clock is wrong, the calls of all these pairs are impossible.
 */
static double impossible_part(const visits *v, const char *host, bool callee)
{
    double all = 0, impossible = 0;
    for (guint i = 0; i < v->bounds->len; i++) {
        const clock_bound *b = &g_array_index(v->bounds, clock_bound, i);
        bool its = b->forward >= CALLS_MIN && (callee ? b->b : b->a) == host;
        all += its;
        impossible += its && is_impossible(b);
    }
    return all > 0 ? impossible / all : 0;
}

/*
 * Finds the wrong clocks from impossible calls between two hosts: the callee's clock is slow, or the caller's clock is
 * fast. The wrong clock belongs to the host with the larger share of impossible pairs in the same role. If both shares
 * are equal, assumes that the callee's clock is wrong.
 */
static void take_calls(host_clocks *c, const visits *v)
{
    for (guint i = 0; i < v->bounds->len; i++) {
        const clock_bound *b = &g_array_index(v->bounds, clock_bound, i);
        if (!is_impossible(b))
            continue;
        bool callee = impossible_part(v, b->b, true) >= impossible_part(v, b->a, false);
        double middle = b->low_ns < b->high_ns ? (b->low_ns + b->high_ns) / 2 : b->high_ns;
        const wrong_clock w = {callee ? b->b : b->a,
                               callee ? b->a : b->b,
                               callee ? middle : -middle,
                               fabs(b->high_ns - b->low_ns) / 2,
                               b->early,
                               b->forward,
                               false,
                               false};
        if (!is_known(c, w.host))
            g_array_append_val(c->wrong, w);
    }
}

static bool is_measured(const host_clocks *c, const char *host)
{
    for (size_t i = 0; i < correction_host_count(c->correction); i++) {
        correction_host h = correction_get_host(c->correction, i);
        if (h.is_known && strcmp(h.name, host) == 0)
            return true;
    }
    return false;
}

/* Finds the wrong clocks of hosts on which events have another order than on the other hosts of the same program. */
static void take_orders(host_clocks *c, const visits *v)
{
    GArray *found = host_orders_find(v->orders);
    for (guint i = 0; i < found->len; i++) {
        const host_order *o = &g_array_index(found, host_order, i);
        if (is_known(c, o->host) || is_measured(c, o->host))
            continue;
        if (o->rival != NULL && !is_known(c, o->rival) && !is_measured(c, o->rival)) {
            c->rivals[0] = o->host;
            c->rivals[1] = o->rival;
            c->apart_ns = fabs(o->ahead_ns);
            continue;
        }
        const wrong_clock w = {o->host,     o->program,  o->ahead_ns, 2 * o->error_ns,
                               o->reversed, o->requests, false,       true};
        if (fabs(w.ahead_ns) - w.error_ns >= WRONG_MIN_NS)
            g_array_append_val(c->wrong, w);
    }
    g_array_free(found, TRUE);
}

bool host_clocks_decide(host_clocks *c, const visits *v)
{
    take_measurements(c);
    take_calls(c, v);
    take_orders(c, v);
    c->decided = true;
    return c->wrong->len > 0;
}

bool host_clocks_are_measured(const host_clocks *c)
{
    bool measured = false;
    for (guint i = 0; i < c->wrong->len; i++)
        measured |= g_array_index(c->wrong, wrong_clock, i).measured;
    return measured;
}

/* If the clocks of two hosts seem to differ by a large part of the requests' time, and neither clock is known to be
 * wrong, sets the reason for the lack of a verdict. */
static void report_apart(const host_clocks *c, findings *f)
{
    const visits *v = f->visits;
    for (guint i = 0; i < v->clock_doubts->len; i++) {
        const visits_clock_doubt *doubt = &g_array_index(v->clock_doubts, visits_clock_doubt, i);
        if (is_known(c, doubt->host) || is_known(c, doubt->other) || v->requests->len == 0 ||
            doubt->ahead_ns < FINDING_MIN * v->total_ns / v->requests->len)
            continue;
        char *ahead = text_ns(doubt->ahead_ns);
        g_free(f->cannot_tell);
        f->cannot_tell =
            g_strdup_printf("the clock of %s seems to be %s ahead of the clock of %s, unless messages take "
                            "that long; log ClockOffset records",
                            doubt->host, ahead, doubt->other);
        g_free(ahead);
        return;
    }
}

/* If a clock may be wrong, sets the reason why there is no verdict (cannot_tell). */
static void report_doubt(const host_clocks *c, findings *f)
{
    report_apart(c, f);
    if (c->rivals[0] != NULL && c->apart_ns >= WRONG_MIN_NS) {
        char *apart = text_ns(c->apart_ns);
        g_free(f->cannot_tell);
        f->cannot_tell =
            g_strdup_printf("the clock of %s or the clock of %s is wrong by about %s; log ClockOffset records",
                            c->rivals[0], c->rivals[1], apart);
        g_free(apart);
    }
    for (guint i = 0; i < f->visits->bounds->len; i++) {
        const clock_bound *b = &g_array_index(f->visits->bounds, clock_bound, i);
        if (!is_doubtful(f->visits, b) || is_known(c, b->b))
            continue;
        g_free(f->cannot_tell);
        f->cannot_tell = g_strdup_printf(
            "the clock of %s may be fast, or its callers do not wait for its replies; log ClockOffset records", b->b);
        return;
    }
}

void host_clocks_report(const host_clocks *c, findings *f, bool corrected)
{
    report_doubt(c, f);
    for (guint i = 0; i < c->wrong->len; i++) {
        const wrong_clock *w = &g_array_index(c->wrong, wrong_clock, i);
        finding *x = findings_add(f, "clock");
        char *off = text_ns(fabs(w->ahead_ns)), *error = text_ns(w->error_ns),
             *low = text_ns(fmax(0, fabs(w->ahead_ns) - w->error_ns)), *high = text_ns(fabs(w->ahead_ns) + w->error_ns);
        const char *direction = w->ahead_ns > 0 ? "fast" : "slow";
        x->host = w->host;
        x->sure = 0.95;
        x->explained = 1;
        x->advice = "synchronize the clock with chrony or ntpd, and log ClockOffset records (doc/clocks.md)";
        x->answer = w->measured || strcmp(low, high) == 0
                        ? g_strdup_printf("the clock of %s is %s %s", w->host, off, direction)
                        : g_strdup_printf("the clock of %s is %s to %s %s", w->host, low, high, direction);
        if (w->measured)
            finding_evidence(
                x, "measured %" G_GUINT64_FORMAT " time%s against the clock of %s, with an error of at most %s",
                w->evidence, nl_plural(w->evidence), w->reference, error);
        else if (w->by_order)
            finding_evidence(
                x,
                "in %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                " requests, events on %s and events of the program %s have the opposite order to that on other hosts",
                w->evidence, w->all, w->host, w->reference);
        else
            finding_evidence(x,
                             "according to the logged times, %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                             " calls between %s and %s begin before their callers",
                             w->evidence, w->all, w->host, w->reference);
        finding_evidence(
            x, corrected ? "all other results use corrected times"
                         : "the times of this host are not corrected, because nldiag cannot read the input twice");
        g_free(off);
        g_free(error);
        g_free(low);
        g_free(high);
    }
}
