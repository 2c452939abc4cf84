#include "config.h"

#include <math.h>

#include "diag/search.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* Returns whether a candidate's `explained` is a measured part of the variation. Otherwise, the evidence omits this
 * number. */
static bool is_measured(const candidate *c)
{
    static const char *const others[] = {"timer", "timeout", "calls", "batch"};
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
        if (strcmp(others[i], c->cause) == 0)
            return false;
    return c->branch == NULL;
}

/* Returns a phrase that names the visits that a candidate compares, such as "visits with FIELD". `noun` is "visit" or
 * "visits". The caller frees it with g_free. */
static char *text_kind(const visit_kind *kind, const char *noun)
{
    static const char *const joints[] = {
        [VISITS_WITH] = " with ", [VISITS_WITHOUT] = " without ", [VISITS_MISS] = " without a hit in "};
    if (kind->column == NULL)
        return g_strdup(noun);
    if (kind->column->name[0] == '@') /* a column of a program's hosts */
        return g_strconcat(noun, " of requests", joints[kind->choice], kind->column->name + 1, NULL);
    return g_strconcat(noun, joints[kind->choice], kind->column->name, NULL);
}

/* Returns the name of a field and its slow values, such as "FIELD=a or b". The caller frees it with g_free. */
static char *text_values(const candidate *c)
{
    GString *text = g_string_new(c->column->name);
    uint32_t named = 0;
    for (uint32_t n = 0; n < MIN(c->values, SLOW_VALUES_NAMED); n++) {
        if (isnan(c->slow_values[n]))
            continue;
        char *value = column_text(c->column, c->slow_values[n]);
        bool is_last = n + 1 == c->values;
        g_string_append_printf(text, "%s%s", named == 0 ? "=" : is_last ? " or " : ", ", value);
        g_free(value);
        named++;
    }
    if (named < c->values)
        g_string_append_printf(text, " or %u other value%s", c->values - named, nl_plural(c->values - named));
    return g_string_free(text, FALSE);
}

/* Adds the number of slow visits to the evidence, or their percentage if the candidate comes from a sample. `which` is
 * a verb phrase, such as "are on HOST". */
static void describe_slow_visits(finding *f, const candidate *c, const place *p, const char *which)
{
    char *compared = text_kind(&c->kind, "visits");
    if (!c->is_sampled)
        finding_evidence(f, "%u of the %u %s %s", c->slow_count, c->count, compared, which);
    else if (c->kind.column == NULL)
        finding_evidence(f, "%.0f %% of the %u visits %s, according to a sample of %u",
                         100.0 * c->slow_count / c->count, p->work_count, which, c->count);
    else
        finding_evidence(f, "%.0f %% of the %s %s, according to a sample of %u", 100.0 * c->slow_count / c->count,
                         compared, which, c->count);
    g_free(compared);
}

/* Returns the mean length of a place's visits in nanoseconds. */
static double mean_length_ns(const visits *v, const place *p)
{
    double sum = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const visit *x = visit_at(v, v->by_place[p->first + i]);
        sum += (double)(x->to_ns - x->from_ns);
    }
    return sum / MAX(p->count, 1);
}

/* Adds the mean wait of a queue's visits to the evidence, if the finding claims these waits. Also adds the mean time of
 * the work that follows the wait, if this work is one call of the visit, or if it is in a visit without calls. */
static void describe_waits(finding *f, const visits *v, const place *p, const mechanism *m)
{
    double waited = 0, own = 0;
    if (f->cut == NULL)
        return;
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t index = v->by_place[p->first + i];
        waited += (double)f->cut[index];
        own += (double)visit_at(v, index)->own_ns;
    }
    const bool is_before_call = m->scope == QUEUE_CALL, has_work = p->kind == PLACE_SPAN && !p->has_children &&
                                                                   (m->scope == QUEUE_SPAN || m->scope == QUEUE_FIRST);
    char *wait = text_ns(waited / MAX(p->count, 1)),
         *work = text_ns(is_before_call ? mean_length_ns(v, place_at(v, m->call)) : (own - waited) / MAX(p->count, 1));
    if (is_before_call)
        finding_evidence(f, "a visit waits %s on average, before a call of %s", wait, work);
    else if (has_work)
        finding_evidence(f, "a visit waits %s on average, before %s of work", wait, work);
    else
        finding_evidence(f, "a visit waits %s on average", wait);
    g_free(wait);
    g_free(work);
}

/* Returns the ranges of hours in a bit set (bit 0: 00:00 to 01:00), such as "02:00 to 04:00 and 13:00 to 14:00". A
 * range may include midnight. The caller frees the text with g_free. */
static char *text_hours(uint32_t hours)
{
    enum { HOURS = 24 };
    GString *text = g_string_new("");
    uint32_t all = (1u << HOURS) - 1;
    for (int begin = 0; begin < HOURS && (hours & all) != all; begin++) {
        int end = begin;
        if (!(hours >> begin & 1) || (hours >> (begin + HOURS - 1) % HOURS & 1))
            continue;
        while (hours >> end % HOURS & 1)
            end++;
        g_string_append_printf(text, "%s%02d:00 to %02d:00", text->len > 0 ? " and " : "", begin, end % HOURS);
    }
    return g_string_free(text, FALSE);
}

/* Returns a phrase with the time range in which a candidate is slow, or "". The caller frees it with g_free. */
static char *text_range(const visits *v, const candidate *c)
{
    if (!c->is_since)
        return g_strdup("");
    char *from = text_ns((double)(c->from_ns - v->from_ns)), *to = text_ns((double)(c->to_ns - v->from_ns)),
         *text = g_strdup_printf(" from %s to %s after the first request began", from, to);
    g_free(from);
    g_free(to);
    return text;
}

/* Returns what the visits of a branch do, such as "misses its cache (FIELD)". The caller frees it with g_free. */
static char *text_branch(const visits *v, const branch *b)
{
    if (b->column != NULL)
        return g_strdup_printf("misses its cache (%s)", b->column->name);
    char *child = text_place(v, b->child, NULL), *text = g_strdup_printf("calls %s", child);
    g_free(child);
    return text;
}

static void describe_branch(finding *f, const visits *v, const candidate *c, const char *where, const char *part)
{
    const branch *b = c->branch;
    const bool is_value = b->host != NULL && host_is_value(v, place_at(v, c->place), b->host);
    char *does = text_branch(v, b), *from = text_ns((double)(b->from_ns - v->from_ns)),
         *to = text_ns((double)(b->to_ns - v->from_ns)),
         *when = b->host != NULL ? g_strdup(is_value ? " than with other values" : " than on other hosts")
                                 : g_strdup_printf(" from %s to %s after the first request began", from, to);
    f->answer = g_strdup_printf("%s of the requests' time: %s %s more often%s", part, where, does, when);
    f->advice = b->column != NULL
                    ? "find out why the cache misses more often: check its size, its expiry and its restarts"
                    : "find out why these visits make the call more often";
    const char *which = b->host == NULL ? "at this time" : is_value ? "with this value" : "on this host";
    if (b->is_repeated)
        finding_evidence(f, "a visit %s makes %.3g of these calls, and another visit makes %.3g", which, b->share,
                         b->other);
    else
        finding_evidence(f, "%.0f %% of the visits %s %s, and %.0f %% of the others", 100 * b->share, which,
                         b->column != NULL ? "miss the cache" : "make this call", 100 * b->other);
    g_free(does);
    g_free(from);
    g_free(to);
    g_free(when);
}

void finding_describe(const search *s, finding *f, const candidate *c)
{
    const visits *v = s->v;
    char *where = c->m.is_from_host          ? text_place_from(v, c->place, c->host)
                  : c->m.scope == QUEUE_CALL ? text_place(v, c->m.call, c->host)
                                             : text_process_place(v, c->place, c->process, c->host),
         *part = text_share(f->share);
    char *compared = text_kind(&c->kind, "a visit"), *slow = text_ns(c->slow_logged_ns),
         *other = text_ns(c->other_logged_ns), *period = text_ns(c->m.period_ns), *length = text_ns(c->m.length_ns);
    const place *p = place_at(v, c->place);
    if (c->branch != NULL) {
        describe_branch(f, v, c, where, part);
    } else if (strcmp(c->cause, "peer") == 0) {
        bool link = p->kind == PLACE_EDGE;
        const bool has_value = c->process == NULL && c->host != NULL && host_is_value(v, p, c->host);
        char *who = c->process != NULL ? g_strdup(c->process)
                    : c->host != NULL  ? text_host(v, p, c->host)
                                       : g_strdup("some hosts"),
             *when = text_range(v, c);
        if (has_value) {
            char *of = text_place(v, c->place, NULL);
            f->answer = g_strdup_printf("%s of the requests' time: %s is slow for %s%s", part, of, who, when);
            g_free(of);
        } else {
            f->answer = g_strdup_printf(
                link ? "%s of the requests' time: %s is behind a slower link or receiver than its peers%s (%s)"
                     : "%s of the requests' time: %s is slower than its peers%s (%s)",
                part, who, when, where);
        }
        f->advice = c->process != NULL
                        ? "compare the processes: their work, memory, limits and versions, and the processors they use"
                    : has_value
                        ? "find out what is different for this value; if the field names servers, compare their "
                          "load (nlsensor), hardware and versions"
                    : link ? "compare the paths and their load: run nlsensor tcp at both ends, and check the rate and "
                             "loss of the links"
                           : "compare the hosts: their load (nlsensor), hardware, versions and configuration";
        char *which = g_strdup_printf(c->process != NULL ? "are in %s"
                                      : has_value        ? "have %s"
                                                         : "are on %s",
                                      c->host != NULL ? who : "these hosts");
        finding_evidence(f,
                         c->is_since          ? "at this time, %s takes %s %s %s, and %s at other times or elsewhere"
                         : c->process != NULL ? "%s takes %s %s %s, and %s in the other processes"
                         : has_value          ? "%s takes %s %s %s, and %s with other values"
                                              : "%s takes %s %s %s, and %s on the other hosts",
                         compared, slow,
                         c->process != NULL ? "in"
                         : has_value        ? "with"
                                            : "on",
                         c->host != NULL ? who : "these hosts", other);
        if (!c->is_since)
            describe_slow_visits(f, c, p, which);
        g_free(which);
        g_free(when);
        g_free(who);
    } else if (strcmp(c->cause, "field") == 0) {
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): this cause has a column */
        char *values = text_values(c);
        bool of_host = c->uneven_host != NULL && c->host == c->uneven_host;
        char *when = text_range(v, c);
        f->answer = of_host
                        ? g_strdup_printf("%s of the requests' time: %s is slow for %s, which is more frequent "
                                          "there than on other hosts",
                                          part, where, values)
                        : g_strdup_printf("%s of the requests' time: %s is slow for %s%s", part, where, values, when);
        g_free(when);
        f->advice = of_host ? "find out why the host has this value more often"
                            : "find out what the program does differently for this value";
        if (of_host) {
            char *host = text_host(v, p, c->host);
            finding_evidence(f, "%.0f %% of the visits %s %s have %s, and %.0f %% of the others", 100 * c->uneven_share,
                             host_is_value(v, p, c->host) ? "with" : "on", host,
                             c->values > 1 ? "these values" : "this value", 100 * c->other_share);
            g_free(host);
        }
        char *which = g_strdup_printf("have %s", c->values > 1 ? "one of these values" : values);
        finding_evidence(f,
                         c->is_since ? "at this time, %s takes %s with %s, and %s at other times or with other values"
                                     : "%s takes %s with %s, and %s with other values",
                         c->kind.column == c->column ? "a visit" : compared, slow,
                         c->values > 1 ? "these values" : values, other);
        if (!c->is_since)
            describe_slow_visits(f, c, p, which);
        if (c->amount != NULL)
            finding_evidence(f, "the time of these visits grows with %s, which is larger for %s", c->amount->name,
                             c->values > 1 ? "these values" : "this value");
        if (c->is_ordinary || c->is_uneven)
            finding_evidence(f, c->is_uneven ? "the share of slow visits differs greatly between hosts or times"
                                             : "the share of slow visits is similar on all hosts and at all times");
        g_free(which);
        g_free(values);
    } else if (strcmp(c->cause, "size") == 0) {
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): this cause has a column */
        const char *name = c->column->name;
        f->answer = g_strdup_printf("%s of the requests' time: %s takes longer when %s is %s", part, where, name,
                                    c->falls ? "smaller" : "larger");
        f->advice = c->is_ordinary ? "to save this time, request less work, or do the work faster"
                    : c->is_uneven ? "find out why the work is uneven between hosts or times"
                    : c->meaning != NUMBER_WORK || c->power == 0
                        ? "find out how this number affects the time"
                        : "find out why the cost grows faster than the amount of work";
        finding_evidence(f, "for the %s values of %s, %s takes %s on average, and for the other values %s",
                         c->falls ? "largest" : "smallest", name, compared, other, slow);
        if ((c->is_ordinary || c->is_uneven) && c->falls)
            finding_evidence(f, "less work does not take longer, so %s probably differs between kinds of requests",
                             name);
        else if (c->is_ordinary || c->is_uneven)
            finding_evidence(f, "the time grows at most in proportion to %s, which is usual for an amount of work",
                             name);
        else if (c->power > 0)
            finding_evidence(f, "the time grows like %s to the power of %.1f", name, c->power);
        if (c->is_uneven)
            finding_evidence(f, "the share of %s values differs greatly between hosts or times",
                             c->falls ? "small" : "large");
    } else if (strcmp(c->cause, "load") == 0) {
        f->answer =
            c->m.rate > 0
                ? g_strdup_printf(
                      "%s of the requests' time: %s takes longer while more requests arrive (%.3g/s instead "
                      "of %.3g/s)",
                      part, where, c->m.rate, c->m.other_rate)
                : g_strdup_printf(
                      "%s of the requests' time: %s takes longer when more requests are in progress (up to %.0f)", part,
                      where, c->m.peak);
        f->advice = "find out what the requests share (processors, connections, a lock); allow more requests at a "
                    "time, or spread them over time";
        finding_evidence(f, "while %s, %s takes %s on average, and at other times %s",
                         c->m.rate > 0 ? "fewer requests arrive" : "few requests are in progress", compared, other,
                         slow);
    } else if (strcmp(c->cause, "calls") == 0) {
        bool all = c->slow_count == c->count;
        char *value = c->caller_column != NULL ? column_text(c->caller_column, c->caller_value) : NULL,
             *callers = value != NULL ? g_strdup_printf("requests with %s=%s", c->caller_column->name, value)
                                      : g_strdup("some requests");
        f->answer = all ? g_strdup_printf("%s of the requests' time: each request calls %s %.0f times", part, where,
                                          c->m.length_ns)
                        : g_strdup_printf("%s of the requests' time: %s call %s %.0f times, others %.0f", part, callers,
                                          where, c->m.peak, c->m.length_ns);
        g_free(callers);
        g_free(value);
        f->advice = "combine the calls into one call, or make them at the same time";
        if (!all)
            finding_evidence(f, "these requests make %u of the %u calls", c->slow_count, c->count);
    } else if (strcmp(c->cause, "timeout") == 0 && c->m.is_retry) {
        f->answer = g_strdup_printf("%s of the requests' time: %s fails, and its callers try again", part, where);
        f->advice = "find out why the first attempt fails";
        finding_evidence(
            f,
            "%.1f %% of the %u visits fail in callers that try again; a failed visit costs %s, including the "
            "wait until the next attempt",
            100 * c->m.share, p->count, period);
    } else if (strcmp(c->cause, "timeout") == 0 && c->m.given_up) {
        f->answer = g_strdup_printf("%s of the requests' time: %s ends after a timeout of %s", part, where, period);
        f->advice = "find out why no answer arrives in this time";
        finding_evidence(f,
                         "%.1f %% of the %u visits take this time, to within 2 %%; few other visits take about as long",
                         100 * c->m.share, p->work_count);
    } else if (strcmp(c->cause, "timeout") == 0 || c->m.is_sometimes) {
        f->answer = g_strdup_printf(
            "%s of the requests' time: %s sometimes takes %s longer, like %s", part, where, period,
            c->m.acknowledgement     ? "TCP's delayed acknowledgements"
            : c->m.is_retransmission ? p->kind == PLACE_SPAN ? "a timeout, or a TCP retransmission"
                                                             : "a TCP retransmission after its minimum timeout"
                                     : "a timeout");
        f->advice = c->m.is_retransmission && p->kind == PLACE_EDGE
                        ? "look for lost packets: run nlsensor tcp on the hosts, and check the "
                          "errors and drops of the links (ip -s link)"
                    : c->m.acknowledgement ? "write each message with one call, or set TCP_NODELAY; if no messages are "
                                             "sent here, find out what waits for this time"
                                           : "find out what waits for this time: an attempt without an answer, a pause "
                                             "before a retry, or another fixed delay";
        finding_evidence(f, "%.1f %% of the %u visits take %s longer than the others, and almost none are in between",
                         100 * c->m.share, p->count, period);
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
            finding_evidence(f, "%.0f %% of the messages wait for at most this time", 100 * c->m.share);
        } else if (c->m.constant)
            finding_evidence(f, "half of the %u visits take the same time, to within 0.5 %%", c->count);
        else
            finding_evidence(f, "the visits end at multiples of %s, with a regularity of %.2f (0: random; 1: exact)",
                             period, c->explained);
    } else if (strcmp(c->cause, "batch") == 0) {
        f->answer = g_strdup_printf("%s of the requests' time: %s waits until a batch is full", part, where);
        f->advice = "limit the time that a batch waits, or make batches smaller";
        finding_evidence(
            f,
            c->m.by_arrivals
                ? "%.0f %% of the waits for an idle server end when another visit arrives, %.1f visits at a time"
                : "%.0f %% of the visits end together with others, %.1f at a time",
            100 * c->m.share, c->m.length_ns);
    } else if (strcmp(c->cause, "pause") == 0 && c->m.is_quota) {
        char *what = text_program(v, p, c->process, c->host);
        f->answer = g_strdup_printf("%s of the requests' time: %s stops until the end of each period of %s, like a "
                                    "program that has used its CPU quota",
                                    part, what, period);
        g_free(what);
        f->advice = "compare the quota with the use: cpu.max, and nr_throttled in cpu.stat, of the program's control "
                    "group; raise the quota (the CPU limit of a container), or use fewer threads at a time";
        finding_evidence(f, "during %s of each period, hardly any work ends, although work is in progress", length);
    } else if (strcmp(c->cause, "pause") == 0) {
        char *when = c->m.period_ns > 0 ? g_strdup_printf("every %s", period) : g_strdup("now and then"),
             *what = text_program(v, p, c->process, c->host);
        f->answer =
            c->m.is_joint
                ? g_strdup_printf("%s of the requests' time: several programs stop %s at the same time (mainly %s)",
                                  part, c->m.count == 1 ? "once" : when, where)
            : c->m.count == 1 ? g_strdup_printf("%s of the requests' time: %s stopped once, for %s", part, what, length)
            : c->host != NULL
                ? g_strdup_printf("%s of the requests' time: %s stops %s", part, what, when)
                : g_strdup_printf("%s of the requests' time: %s stops %s on %d hosts", part, what, when, c->m.hosts);
        g_free(what);
        g_free(when);
        f->advice =
            c->m.is_joint
                ? "look for a service that all these programs need and that stops at these times, such as a database"
                : "look for garbage collection, a full log or disk, a CPU quota, or suspended machines at these times";
        finding_evidence(f, "%u time%s, nothing %s for %s%s while requests were in progress", c->m.count,
                         nl_plural(c->m.count), c->m.by_ends ? "ended" : "began or ended", length,
                         c->m.count > 1 ? " on average" : "");
    } else if (strcmp(c->cause, "resource") == 0) {
        f->answer = g_strdup_printf("%s of the requests' time: %s is slow when %s of %s is %s", part, where,
                                    c->sensor->field, c->sensor->event, c->falls ? "low" : "high");
        f->advice = "find out what uses this resource at these times";
        finding_evidence(f, "while the value is %s, a visit takes %s on average, and at other times %s",
                         c->falls ? "highest" : "lowest", other, slow);
    } else if (strcmp(c->cause, "hour") == 0) {
        char *hours = text_hours(c->hours);
        f->answer = g_strdup_printf("%s of the requests' time: %s is slower at the same time each day, %s UTC", part,
                                    where, hours);
        f->advice = "find out what runs at that time: backups, scheduled jobs, a daily peak of the load";
        finding_evidence(f, "at this time of the day, %s takes %s, and at other times %s", compared, slow, other);
        g_free(hours);
    } else if (strcmp(c->cause, "cold") == 0 || strcmp(c->cause, "changed") == 0) {
        char *when = text_ns((double)(c->from_ns - v->from_ns)), *until = text_ns((double)(c->to_ns - v->from_ns));
        f->answer =
            c->cause[1] == 'o'
                ? g_strdup_printf("%s of the requests' time: %s is slow until %s after the first request began", part,
                                  where, until)
                : g_strdup_printf("%s of the requests' time: %s is slower from %s to %s after the first request began",
                                  part, where, when, until);
        f->advice = c->cause[1] == 'o' ? "warm up caches and connections before accepting requests"
                                       : "find out what changed at that time: load, data, deployments";
        finding_evidence(f, "in this time, %s takes %s, and at other times %s", compared, slow, other);
        g_free(when);
        g_free(until);
    } else {
        const char *shared = c->m.is_shared ? " that the hosts share" : "";
        f->answer = c->m.servers == 1
                        ? g_strdup_printf("%s of the requests' time: %s lets one request through at a time (a lock%s)",
                                          part, where, c->m.is_shared ? shared : ", one thread")
                        : g_strdup_printf("%s of the requests' time: %s lets %d requests through at a time (a pool of "
                                          "%d%s); peak demand was %.0f",
                                          part, where, c->m.servers, c->m.servers, shared, c->m.peak);
        if (strcmp(c->cause, "balance") == 0) {
            char *host = text_host(v, p, c->host);
            g_free(f->answer);
            f->answer = g_strdup_printf("%s of the requests' time: requests queue at %s, which receives %.1f times its "
                                        "share of the requests (%s)",
                                        part, host, c->m.share, where);
            g_free(host);
        }
        f->advice = strcmp(c->cause, "balance") == 0
                        ? "distribute the requests evenly"
                        : "hold the resource for a shorter time, divide it, or allow more requests at a time";
        finding_evidence(f, "up to %.0f requests wait or work here at the same time", c->m.peak);
        describe_waits(f, v, p, &c->m);
        if (c->m.scope == QUEUE_CALL) {
            char *caller = text_process_place(v, c->place, c->process, NULL);
            finding_evidence(f, "the wait is in %s, directly before this call", caller);
            g_free(caller);
        }
    }
    if (c->queue_servers > 0)
        finding_evidence(f, "requests also wait here for earlier requests, because at most %d %s served at a time%s",
                         c->queue_servers, c->queue_servers == 1 ? "is" : "are",
                         strcmp(c->cause, "pause") == 0 ? "" : "; the times above do not include this wait");
    if (is_measured(c)) {
        char *removed = text_share(c->explained);
        finding_evidence(f, "without this effect, these times would vary %s less", removed);
        g_free(removed);
    }
    g_free(where);
    g_free(part);
    g_free(compared);
    g_free(slow);
    g_free(other);
    g_free(period);
    g_free(length);
}
