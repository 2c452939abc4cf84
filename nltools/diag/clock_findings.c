/*
 * Reports wrong clocks. A wrong clock does not slow a program down, but makes statements about ways between hosts
 * unreliable. A clock that is wrong by a considerable share of an object's time is therefore a finding.
 */
#include "config.h"

#include "diag/findings.h"

#include <math.h>
#include <string.h>

static double mean_object_ns(const observed *o)
{
    guint objects = observed_objects(o)->len;
    return objects > 0 ? observed_total_ns(o) / objects : 0;
}

/* Returns the weight of a clock's error. */
static double share_of(const observed *o, double off_ns)
{
    double mean_ns = mean_object_ns(o);
    return mean_ns > 0 ? fabs(off_ns) / mean_ns : 1;
}

/* Returns the largest error of a clock. */
static double furthest_ns(const host_clock *c)
{
    return fmax(fabs(c->least_ns), fabs(c->most_ns));
}

static void find_measured(findings *f, guint host)
{
    const observed *o = f->observed;
    const host_clock *c = observed_clock(o, host);
    if (!c->is_off)
        return;
    const char *name = observed_host(o, host);
    const char *off = text_ns(fabs(c->ahead_ns)), *least = text_ns(c->least_ns), *most = text_ns(c->most_ns),
               *error = text_ns(c->error_ns);
    finding *made = findings_add(f, "clock", share_of(o, furthest_ns(c)), 0.95, "the clock of %s is %s %s", name, off,
                                 c->ahead_ns > 0 ? "fast" : "slow");
    finding_evidence(made,
                     "measured against the clock of %s %" G_GUINT64_FORMAT
                     " times: %s to %s ahead, drifting by %+.1f ppm, to within %s",
                     c->reference, c->measurements, least, most, c->drift * 1e6, error);
    finding_evidence(made, "nldiag corrected the times of this host accordingly");
    finding_advice(made,
                   "synchronize the clock of %s (chronyc tracking shows its present source), and correct the times of "
                   "the log with nlsort --fix-clocks",
                   name);
    finding_place(made, o, host, NULL);
}

static void find_by_messages(findings *f, const clock_error *e)
{
    const observed *o = f->observed;
    const char *off = text_ns(fabs((double)e->taken_ns)), *least = text_ns((double)e->least_ns),
               *most = text_ns((double)e->most_ns);
    const char *host = observed_host(o, e->host), *reference = observed_host(o, e->reference);
    finding *made = findings_add(f, "clock", share_of(o, (double)e->taken_ns), 0.95, "the clock of %s is %s %s", host,
                                 off, e->taken_ns > 0 ? "fast" : "slow");
    finding_evidence(made,
                     "%" G_GUINT64_FORMAT " messages between %s and %s arrived before they were sent, by their clocks",
                     e->violations, reference, host);
    finding_evidence(made,
                     "according to the shortest times in both directions, its offset from %s is between %s and %s",
                     reference, least, most);
    finding_evidence(made, "nldiag corrected its times by %s%s", e->taken_ns > 0 ? "-" : "+", off);
    finding_advice(made, "synchronize the clock of %s; chronyc tracking shows its present source", host);
    finding_place(made, o, e->host, NULL);
}

void find_clocks(findings *f)
{
    const GArray *errors = observed_clock_errors(f->observed);
    for (guint host = 1; host < observed_host_count(f->observed); host++)
        find_measured(f, host);
    for (guint i = 0; i < errors->len; i++)
        find_by_messages(f, &g_array_index(errors, clock_error, i));
}

/* ---- what is doubtful ---- */

/* The time between two hosts is unreliable if it is shorter than the possible error of their clocks. */
static void doubt(finding *made, const observed *o)
{
    const leg *l = made->leg;
    if (l == NULL || leg_is_local(l) || l->from_host == 0 || l->to_host == 0)
        return;
    const char *from = observed_host(o, l->from_host), *to = observed_host(o, l->to_host);
    double doubt_ns = observed_clock_doubt_ns(o, l->from_host, l->to_host);
    bool is_unkept = observed_clock(o, l->from_host)->is_unkept || observed_clock(o, l->to_host)->is_unkept;
    if (isfinite(doubt_ns)) {
        const char *text = text_ns(doubt_ns);
        bool is_much = doubt_ns > l->mean_ns;
        finding_evidence(made, "the difference of the clocks of %s and %s is known to within %s%s", from, to, text,
                         is_much ? ", which exceeds the time of this way" : "");
        made->sure *= is_much ? 0.7 : 1;
    } else {
        finding_evidence(
            made, "the clocks of %s and %s%s were not compared: this way may take longer or shorter than it seems",
            from, to, is_unkept ? ", of which one is not synchronized," : "");
    }
}

void doubt_clocks(findings *f)
{
    for (guint i = 0; i < f->list->len; i++)
        doubt(g_ptr_array_index(f->list, i), f->observed);
}

/* Returns whether objects pass between the host and others. */
static bool is_compared(const observed *o, guint host)
{
    const GPtrArray *legs = observed_legs(o);
    for (guint i = 0; i < legs->len; i++) {
        const leg *l = g_ptr_array_index(legs, i);
        if (!leg_is_local(l) && (l->from_host == host || l->to_host == host))
            return true;
    }
    return false;
}

const char *text_clock(const observed *o, guint host)
{
    const host_clock *c = observed_clock(o, host);
    const char *name = observed_host(o, host), *kept = c->is_unkept ? "; it is not synchronized" : "";
    if (!is_compared(o, host))
        return NULL;
    if (c->reference == NULL && !isfinite(c->error_ns))
        return c->is_unkept ? text_format("%s: not compared with another%s", name, kept) : NULL;
    const char *text;
    const char *error = text_ns(c->error_ns), *off = text_ns(fabs(c->ahead_ns));
    if (c->reference == NULL)
        text = text_format("%s: correct to within %s, as it reports itself", name, error);
    else if (strcmp(c->reference, name) == 0)
        text = text_format("%s: the others were measured against it%s", name, kept);
    else if (!c->is_off)
        text = text_format("%s: equal to that of %s, to within %s%s", name, c->reference, error, kept);
    else
        text = text_format("%s: %s %s, to within %s; corrected above%s", name, off, c->ahead_ns > 0 ? "fast" : "slow",
                           error, kept);
    return text;
}
