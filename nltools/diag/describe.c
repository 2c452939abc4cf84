#include "config.h"

#include <math.h>

#include "diag/search.h"

#include <stdlib.h>
#include <string.h>

/* Returns whether the variation that a cause explains was measured. Other causes have their own evidence. */
static bool is_measured(const candidate *c)
{
    static const char *const others[] = {"timer", "timeout", "calls", "batch"};
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
        if (strcmp(others[i], c->cause) == 0)
            return false;
    return true;
}

static void describe_slow_visits(finding *f, const candidate *c, const place *p)
{
    if (c->count == p->count)
        finding_evidence(f, "%u of %u visits", c->slow_count, c->count);
    else
        finding_evidence(f, "%.0f %% of %u visits, by a sample of %u", 100.0 * c->slow_count / c->count, p->count,
                         c->count);
}

void finding_describe(const search *s, finding *f, const candidate *c)
{
    const visits *v = s->v;
    char *where = text_place(v, c->place, c->host), *part = text_share(f->share), *value = NULL;
    char *slow = text_ns(c->slow_ns), *other = text_ns(c->other_ns), *period = text_ns(c->m.period_ns),
         *length = text_ns(c->m.length_ns);
    const place *p = place_at(v, c->place);
    if (c->column != NULL && !isnan(c->value))
        value = column_text(c->column, (float)c->value);
    if (strcmp(c->cause, "peer") == 0) {
        bool link = p->kind == PLACE_EDGE;
        f->answer = g_strdup_printf(
            link ? "%s of the requests' time: %s is behind a slower link or receiver than its peers (%s)"
                 : "%s of the requests' time: %s is slower than its peers (%s)",
            part, c->host != NULL ? c->host : "some hosts", where);
        f->advice = link ? "compare the paths and their load: nlsensor tcp on both ends, the rate and loss of the link"
                         : "compare the hosts: their load (nlsensor), hardware, versions and configuration";
        finding_evidence(f, "%s a visit, against %s for the others", slow, other);
        describe_slow_visits(f, c, p);
    } else if (strcmp(c->cause, "field") == 0) {
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): this cause has a column */
        f->answer = g_strdup_printf("%s of the requests' time: %s is slow for %s=%s", part, where, c->column->name,
                                    value != NULL ? value : "?");
        f->advice = "look at what the program does differently for this value";
        finding_evidence(f, "%s a visit, against %s for the other values", slow, other);
        describe_slow_visits(f, c, p);
    } else if (strcmp(c->cause, "size") == 0) {
        f->answer = g_strdup_printf("%s of the requests' time: %s takes longer when %s is larger", part, where,
                                    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): this cause has a column */
                                    c->column->name);
        f->advice = "reduce the amount of work, or make the cost grow more slowly with the amount";
        finding_evidence(f, "%s a visit on average, against %s in the fastest eighth of the values", slow, other);
    } else if (strcmp(c->cause, "load") == 0) {
        f->answer =
            g_strdup_printf("%s of the requests' time: %s takes longer when more requests are in progress, up to %.0f",
                            part, where, c->m.peak);
        f->advice = "find out what the requests share (processors, connections, a lock); allow more requests at a "
                    "time, or spread them over time";
        finding_evidence(f, "%s a visit on average, against %s when few requests are in progress", slow, other);
    } else if (strcmp(c->cause, "calls") == 0) {
        bool all = c->slow_count == c->count;
        f->answer = all ? g_strdup_printf("%s of the requests' time: each request calls %s %.0f times", part, where,
                                          c->m.length_ns)
                        : g_strdup_printf("%s of the requests' time: some requests call %s %.0f times, others %.0f",
                                          part, where, c->m.peak, c->m.length_ns);
        f->advice = "combine the calls into one call, or make them at the same time";
        if (!all)
            finding_evidence(f, "the requests with more calls than usual make %u of the %u calls", c->slow_count,
                             c->count);
    } else if (strcmp(c->cause, "timeout") == 0) {
        f->answer = g_strdup_printf("%s of the requests' time: %s waits for a time-out of %s and tries again", part,
                                    where, period);
        f->advice = "find out why the first attempt has no answer; a shorter time-out only hides the problem";
        finding_evidence(f, "%.1f %% of the visits take %s longer than the others, and almost no visits are in between",
                         100 * c->m.share, period);
    } else if (strcmp(c->cause, "timer") == 0) {
        f->answer =
            g_strdup_printf(c->m.constant ? "%s of the requests' time: %s always takes %s: a timer or fixed work"
                                          : "%s of the requests' time: %s waits for a timer of %s",
                            part, where, period);
        f->advice = "wait for the event itself instead of polling";
        if (c->m.acknowledgement) {
            g_free(f->answer);
            f->answer = g_strdup_printf("%s of the requests' time: %s waits for TCP's delayed acknowledgement of %s",
                                        part, where, period);
            f->advice = "write each message with one call, or set TCP_NODELAY";
            finding_evidence(f, "%.0f %% of the visits wait, at most this long", 100 * c->m.share);
        } else if (c->m.constant)
            finding_evidence(f, "half of %u visits differ by at most 0.5 %%", c->count);
        else
            finding_evidence(f, "the visits end at multiples of %s; their regularity is %.2f (maximum 1)", period,
                             c->explained);
    } else if (strcmp(c->cause, "batch") == 0) {
        f->answer = g_strdup_printf("%s of the requests' time: %s waits until a batch is full", part, where);
        f->advice = "limit the time that a batch waits, or make batches smaller";
        finding_evidence(f, "%.0f %% of the visits end together with others, %.1f at a time", 100 * c->m.share,
                         c->m.length_ns);
    } else if (strcmp(c->cause, "pause") == 0) {
        f->answer = g_strdup_printf("%s of the requests' time: %s on %s stops %s%s", part, p->program, c->host,
                                    c->m.period_ns > 0 ? "every " : "now and then", c->m.period_ns > 0 ? period : "");
        f->advice =
            "look for garbage collection, a full log or disk, a CPU quota, or suspended machines at these times";
        finding_evidence(f, "%u times, nothing began or ended for %s on average while requests were in progress",
                         c->m.count, length);
    } else if (strcmp(c->cause, "resource") == 0) {
        f->answer = g_strdup_printf("%s of the requests' time: %s is slow when %s %s changes", part, where,
                                    c->sensor->event, c->sensor->field);
        f->advice = "find out what uses this resource at these times";
        finding_evidence(f, "%s a visit on average, against %s in the fastest eighth of the values", slow, other);
    } else if (strcmp(c->cause, "cold") == 0 || strcmp(c->cause, "changed") == 0) {
        char *when = text_ns((double)(c->from_ns - v->from_ns)), *until = text_ns((double)(c->to_ns - v->from_ns));
        f->answer =
            c->cause[1] == 'o'
                ? g_strdup_printf("%s of the requests' time: %s is slow until %s after the first request began", part,
                                  where, until)
                : g_strdup_printf("%s of the requests' time: %s is slower from %s to %s after the first request began",
                                  part, where, when, until);
        f->advice = c->cause[1] == 'o' ? "warm caches and connections before taking requests"
                                       : "find out what changed at that time: load, data, deployments";
        finding_evidence(f, "%s a visit, against %s at other times", slow, other);
        g_free(when);
        g_free(until);
    } else {
        f->answer = c->m.servers == 1
                        ? g_strdup_printf(
                              "%s of the requests' time: %s lets one request through at a time (a lock, one thread)",
                              part, where)
                        : g_strdup_printf("%s of the requests' time: %s lets %d requests through at a time (a pool of "
                                          "%d); peak demand was %.0f",
                                          part, where, c->m.servers, c->m.servers, c->m.peak);
        if (strcmp(c->cause, "balance") == 0) {
            g_free(f->answer);
            f->answer = g_strdup_printf("%s of the requests' time: requests queue at %s, which receives %.1f times its "
                                        "share of the requests (%s)",
                                        part, c->host, c->m.share, where);
        }
        f->advice = strcmp(c->cause, "balance") == 0
                        ? "distribute the requests evenly"
                        : "hold the resource for a shorter time, divide it, or allow more requests at a time";
        finding_evidence(f, "up to %.0f requests are there at a time", c->m.peak);
    }
    if (is_measured(c)) {
        char *removed = text_share(c->explained);
        finding_evidence(f, "this explains %s of the variation there", removed);
        g_free(removed);
    }
    g_free(where);
    g_free(part);
    g_free(value);
    g_free(slow);
    g_free(other);
    g_free(period);
    g_free(length);
}
