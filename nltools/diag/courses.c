/*
 * Finds changes over time: of all cuts of the time in two, the one whose two means explain the most variance, or a
 * straight line if it explains more. Logarithms limit the weight of few slow objects. A short quick part is the begin
 * or end of a run, and no reference.
 */
#include "config.h"

#include "diag/courses.h"
#include "base/time_internal.h"

#include <math.h>
#include <string.h>

enum { SLICES_MIN = 20, SLICE_OBJECTS = 10 };
#define EXPLAINED_MIN 0.5
#define QUICK_MIN 0.2 /* of the time */

/* How the logarithms change over time: a step or a line. */
typedef struct course {
    double explained; /* share of the variance of slices */
    bool is_line;
    guint cut; /* the first slice after it; the middle of a line */
    double before_ns, after_ns;
} course;

/*
 * Of the objects that begin at the end of the log, only quick ones end. Leaves out the last part, as long as the
 * longest object.
 */
static int64_t end_of_begins(const observed *o, guint lifeline)
{
    const GArray *objects = observed_objects(o);
    int64_t longest = 0, span = observed_to_ns(o) - observed_from_ns(o);
    for (guint i = 0; i < objects->len; i++) {
        const object *one = &g_array_index(objects, object, i);
        if (one->lifeline == lifeline)
            longest = MAX(longest, one->to_ns - one->from_ns);
    }
    return observed_to_ns(o) - MIN(longest, span / 2);
}

static guint slice_at(const observed *o, const slices *s, int64_t time_ns)
{
    double part = (double)(time_ns - observed_from_ns(o)) / (double)(s->end_ns - observed_from_ns(o) + 1);
    return (guint)CLAMP(part * s->count, 0, s->count - 1);
}

static int64_t slice_from_ns(const observed *o, const slices *s, guint slice)
{
    return observed_from_ns(o) + (int64_t)((double)(s->end_ns - observed_from_ns(o)) * slice / s->count);
}

static bool are_whole(const observed *o, guint lifeline)
{
    const GArray *objects = observed_objects(o);
    size_t whole = 0, all = 0;
    for (guint i = 0; i < objects->len; i++) {
        const object *one = &g_array_index(objects, object, i);
        all += one->lifeline == lifeline;
        whole += one->lifeline == lifeline && one->whole;
    }
    return 2 * whole > all;
}

bool slices_has(const slices *s, const object *one)
{
    return one->lifeline == s->lifeline && (s->host == 0 || one->host == s->host) && one->to_ns > one->from_ns &&
           one->from_ns <= s->end_ns && (one->whole || !s->only_whole);
}

static void add_object(const observed *o, slices *s, const object *one, double logarithm)
{
    guint at = slice_at(o, s, one->from_ns);
    double took_ns = (double)(one->to_ns - one->from_ns);
    s->objects[at]++;
    s->logs[at] += logarithm;
    s->sums_ns[at] += took_ns;
    s->total_ns += took_ns;
}

/* Returns slices for a group with that many objects; NULL if there are too few. */
static slices *slices_new(const slices *all, guint host, size_t objects)
{
    if (objects < (size_t)SLICES_MIN * SLICE_OBJECTS)
        return NULL;
    slices *s = g_new0(slices, 1);
    *s = *all;
    s->host = host;
    s->count = (guint)MIN(SLICES_MAX, objects / SLICE_OBJECTS);
    return s;
}

/* Returns slices of all objects of a lifeline at index 0, and of each host. */
static slices **slice(const observed *o, guint lifeline)
{
    const GArray *objects = observed_objects(o);
    guint hosts = observed_host_count(o);
    slices **groups = g_new0(slices *, hosts),
           all = {.lifeline = lifeline, .end_ns = end_of_begins(o, lifeline), .only_whole = are_whole(o, lifeline)};
    size_t *counts = g_new0(size_t, hosts);
    for (guint i = 0; i < objects->len; i++)
        if (slices_has(&all, &g_array_index(objects, object, i))) {
            guint host = g_array_index(objects, object, i).host;
            counts[0]++;
            counts[host] += host != 0;
        }
    for (guint h = 0; h < hosts; h++)
        groups[h] = slices_new(&all, h, counts[h]);
    for (guint i = 0; i < objects->len; i++) {
        const object *one = &g_array_index(objects, object, i);
        double logarithm = slices_has(&all, one) && groups[0] != NULL ? log((double)(one->to_ns - one->from_ns)) : NAN;
        if (!isnan(logarithm))
            add_object(o, groups[0], one, logarithm);
        if (!isnan(logarithm) && one->host != 0 && groups[one->host] != NULL)
            add_object(o, groups[one->host], one, logarithm);
    }
    for (guint h = 0; h < hosts; h++)
        for (guint i = 0; groups[h] != NULL && i < groups[h]->count; i++)
            groups[h]->logs[i] = groups[h]->objects[i] > 0 ? groups[h]->logs[i] / groups[h]->objects[i] : NAN;
    g_free(counts);
    return groups;
}

/* Returns the cut that explains the most; explained is a share of all. */
static course cut(const slices *s, double all, double n, double sum)
{
    course best = {0};
    double before = 0, count = 0;
    for (guint i = 0; i + 1 < s->count; i++) {
        if (isnan(s->logs[i]))
            continue;
        before += s->logs[i];
        count++;
        double difference = before / count - (sum - before) / (n - count),
               explained = difference * difference * count * (n - count) / n / all;
        if (count < n && explained > best.explained)
            best = (course){.explained = explained, .cut = i + 1};
    }
    return best;
}

static double mean_ns(const slices *s, guint from, guint to)
{
    double sum = 0, count = 0;
    for (guint i = from; i < to; i++) {
        sum += s->sums_ns[i];
        count += s->objects[i];
    }
    return count > 0 ? sum / count : NAN;
}

static course course_of(const slices *s)
{
    double n = 0, sum = 0, times = 0, all = 0, along = 0, time_all = 0;
    for (guint i = 0; i < s->count; i++)
        if (!isnan(s->logs[i])) {
            n++;
            sum += s->logs[i];
            times += i;
        }
    if (n < SLICES_MIN)
        return (course){0};
    for (guint i = 0; i < s->count; i++)
        if (!isnan(s->logs[i])) {
            double y = s->logs[i] - sum / n, x = i - times / n;
            all += y * y;
            along += x * y;
            time_all += x * x;
        }
    if (!(all > 0))
        return (course){0};
    course found = cut(s, all, n, sum);
    double by_line = along * along / time_all / all;
    if (by_line > found.explained)
        found = (course){.explained = by_line, .is_line = true, .cut = s->count / 2};
    guint fifth = s->count / 5;
    found.before_ns = mean_ns(s, 0, found.is_line ? fifth : found.cut);
    found.after_ns = mean_ns(s, found.is_line ? s->count - fifth : found.cut, s->count);
    return found;
}

/* ---- rule ---- */

/* Returns whether another finding explains at least as much; then this rule only tells the time. */
static bool is_explained(const findings *f, double share)
{
    for (guint i = 0; i < f->list->len; i++) {
        const finding *other = g_ptr_array_index(f->list, i);
        if (strcmp(other->cause, "varies") != 0 && strcmp(other->cause, "changed") != 0 && !other->is_of_objects &&
            other->sure >= 0.6 && other->share >= 0.8 * share)
            return true;
    }
    return false;
}

/* A change that persists has a share of the time since then; one that is over has a share of all time. */
static double share_of_course(const slices *s, const course *c)
{
    bool is_worse = c->after_ns > c->before_ns;
    double quick_ns = MIN(c->before_ns, c->after_ns), excess_ns = 0, part_ns = 0;
    for (guint i = 0; i < s->count; i++)
        if (c->is_line || (i >= c->cut) == is_worse) {
            excess_ns += s->sums_ns[i] - quick_ns * s->objects[i];
            part_ns += s->sums_ns[i];
        }
    return MAX(excess_ns, 0) / (is_worse && !c->is_line ? part_ns : s->total_ns);
}

static void show_course(finding *made, const observed *o, const slices *s, const course *c)
{
    double objects[2] = {0}, span = (double)(s->end_ns - observed_from_ns(o)) / 1e9 / s->count;
    for (guint i = 0; i < s->count; i++)
        objects[i >= c->cut] += s->objects[i];
    finding_evidence(made,
                     "that explains %.0f %% of the differences over time; %.3g begin per second before %s, %.3g after",
                     100 * c->explained, objects[0] / (c->cut * span), c->is_line ? "the middle" : "then",
                     objects[1] / ((s->count - c->cut) * span));
    show_difference(made, o, s, slice_from_ns(o, s, c->cut));
}

static finding *tell_course(findings *f, const slices *s, const course *c)
{
    const observed *o = f->observed;
    bool is_worse = c->after_ns > c->before_ns;
    int64_t at_ns = slice_from_ns(o, s, c->cut);
    char at[NL_TIME_TEXT_SIZE];
    const char *before = text_ns(c->before_ns), *after = text_ns(c->after_ns);
    nl_time_format_iso(at_ns, at);
    const char *of = s->host != 0 ? " of " : "", *host = observed_host(o, s->host);
    double share = share_of_course(s, c), sure = MIN(0.9, c->explained) * (is_explained(f, share) ? 0.5 : 1);
    finding *made = c->is_line
                        ? findings_add(f, "changed", share, sure,
                                       "increasingly %s: objects%s%s take %s at the beginning, %s at the end",
                                       is_worse ? "slow" : "fast", of, host, before, after)
                        : findings_add(f, "changed", share, sure, "%s %s: objects%s%s take %s before that, %s after",
                                       is_worse ? "slower since" : "slow until", at, of, host, before, after);
    if (!c->is_line)
        *(is_worse ? &made->from_ns : &made->to_ns) = at_ns;
    show_course(made, o, s, c);
    finding_place(made, o, s->host, NULL);
    finding_advice(made, "%s",
                   c->is_line ? "look for something that grows or fills up"
                   : is_worse ? "look for a change or a program start at that time"
                              : "look for what was missing before (caches, connections, compiled code), or what ended "
                                "at that time");
    return made;
}

/* Returns whether the objects of a group changed clearly enough to report. */
static bool is_course(const slices *s, course *c)
{
    if (s == NULL)
        return false;
    *c = course_of(s);
    double quick = c->after_ns > c->before_ns ? (double)c->cut : (double)(s->count - c->cut);
    return c->explained >= EXPLAINED_MIN && quick >= QUICK_MIN * s->count;
}

/* Reports the change of all objects or, if none exists, that of the host that changed most. */
static void find_course(findings *f, slices *const *groups)
{
    guint worst = 0, others = 0;
    course all, most = {0};
    if (is_course(groups[0], &all)) {
        tell_course(f, groups[0], &all);
        return;
    }
    for (guint host = 1; host < observed_host_count(f->observed); host++) {
        course c;
        if (!is_course(groups[host], &c) || share_of_course(groups[host], &c) < FINDING_MIN)
            continue;
        others += worst != 0;
        if (worst == 0 || share_of_course(groups[host], &c) > share_of_course(groups[worst], &most)) {
            worst = host;
            most = c;
        }
    }
    finding *made = worst != 0 ? tell_course(f, groups[worst], &most) : NULL;
    if (others > 0)
        finding_evidence(made, "the objects of %u more hosts changed, too", others);
}

static void look_at(findings *f, guint lifeline)
{
    slices **groups = slice(f->observed, lifeline);
    find_course(f, groups);
    for (guint host = 0; host < observed_host_count(f->observed); host++)
        g_free(groups[host]);
    g_free(groups);
}

void find_courses(findings *f)
{
    for (guint i = 0; i < observed_lifelines(f->observed)->len; i++)
        look_at(f, i);
}
