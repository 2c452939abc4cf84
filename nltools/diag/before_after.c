/*
 * Shows what differs before and after a time: the ways that take longer or are passed more often, and the resource
 * that changed most, on any host or on the host of the objects.
 */
#include "config.h"

#include "diag/courses.h"

#include <math.h>

enum { SHOWN = 2, SAMPLES_MIN = 10 };
#define NUMBER_MIN 0.75 /* of what it varies by, the time explains */

typedef struct share_of_change {
    guint first, end;                                      /* legs of the same way */
    double before_ns, after_ns, before_times, after_times; /* an object: time in it, and how often it is passed */
} share_of_change;

/* Compares a way for the objects that began before and after a time. */
static share_of_change compare_way(const observed *o, const slices *s, guint first, guint end, int64_t at_ns,
                                   const double objects[2])
{
    const GArray *all = observed_objects(o);
    double times[2] = {0}, sums_ns[2] = {0};
    for (guint i = first; i < end; i++) {
        const leg *l = g_ptr_array_index(observed_legs(o), i);
        for (size_t k = 0; k < l->count; k++) {
            const object *one = &g_array_index(all, object, l->passages[k].object);
            if (!slices_has(s, one))
                continue;
            times[one->from_ns >= at_ns]++;
            sums_ns[one->from_ns >= at_ns] += (double)l->passages[k].took_ns;
        }
    }
    return (share_of_change){first,
                             end,
                             sums_ns[0] / MAX(objects[0], 1),
                             sums_ns[1] / MAX(objects[1], 1),
                             times[0] / MAX(objects[0], 1),
                             times[1] / MAX(objects[1], 1)};
}

/* Adds the evidence of a way. */
static void show_way(finding *made, const observed *o, const share_of_change *c, double difference_ns)
{
    const leg *l = g_ptr_array_index(observed_legs(o), c->first);
    const char *before = text_ns(c->before_times > 0 ? c->before_ns / c->before_times : 0),
               *after = text_ns(c->after_times > 0 ? c->after_ns / c->after_times : 0),
               *part = text_share(MIN(1, (c->after_ns - c->before_ns) / difference_ns));
    finding_evidence(made,
                     "%s -> %s%s%s is %s of the difference: %s each before, %s after; passed %.2f times per object "
                     "before, %.2f after",
                     l->from, l->to, c->end == c->first + 1 && leg_is_local(l) && l->from_host != 0 ? " on " : "",
                     c->end == c->first + 1 && leg_is_local(l) ? observed_host(o, l->from_host) : "", part, before,
                     after, c->before_times, c->after_times);
}

static gint compare_changes(gconstpointer a, gconstpointer b)
{
    const share_of_change *first = a, *second = b;
    double left = fabs(first->after_ns - first->before_ns), right = fabs(second->after_ns - second->before_ns);
    return (left < right) - (left > right);
}

static void show_ways(finding *made, const observed *o, const slices *s, int64_t at_ns)
{
    const GPtrArray *legs = observed_legs(o);
    const GArray *all = observed_objects(o);
    GArray *ways = g_array_new(FALSE, FALSE, sizeof(share_of_change));
    double objects[2] = {0}, sums_ns[2] = {0};
    for (guint i = 0; i < all->len; i++) {
        const object *one = &g_array_index(all, object, i);
        if (slices_has(s, one)) {
            objects[one->from_ns >= at_ns]++;
            sums_ns[one->from_ns >= at_ns] += (double)(one->to_ns - one->from_ns);
        }
    }
    for (guint first = 0, end; first < legs->len; first = end) {
        end = leg_way_end(legs, first);
        share_of_change found = compare_way(o, s, first, end, at_ns, objects);
        g_array_append_val(ways, found);
    }
    g_array_sort(ways, compare_changes);
    double difference_ns = sums_ns[1] / MAX(objects[1], 1) - sums_ns[0] / MAX(objects[0], 1);
    for (guint i = 0; i < ways->len && i < SHOWN; i++) {
        const share_of_change *c = &g_array_index(ways, share_of_change, i);
        if ((c->after_ns - c->before_ns) / difference_ns >= FINDING_MIN)
            show_way(made, o, c, difference_ns);
    }
    g_array_free(ways, TRUE);
}

/* Returns the share of a resource's variance that the cut explains. */
static double explained_by_cut(const resource *r, int64_t at_ns, double means[2])
{
    double n[2] = {0}, all = 0;
    means[0] = means[1] = 0;
    for (guint i = 0; i < r->samples->len; i++) {
        const sample *one = &g_array_index(r->samples, sample, i);
        n[one->time_ns >= at_ns]++;
        means[one->time_ns >= at_ns] += one->value;
    }
    if (n[0] < 2 || n[1] < 2 || n[0] + n[1] < SAMPLES_MIN)
        return 0;
    double mean = (means[0] + means[1]) / (n[0] + n[1]);
    means[0] /= n[0];
    means[1] /= n[1];
    for (guint i = 0; i < r->samples->len; i++)
        all += pow(g_array_index(r->samples, sample, i).value - mean, 2);
    double between = n[0] * pow(means[0] - mean, 2) + n[1] * pow(means[1] - mean, 2);
    return all > 0 ? between / all : 0;
}

/* Adds the resource that changed most clearly. */
static void show_number(finding *made, const observed *o, const slices *s, int64_t at_ns)
{
    const GPtrArray *all = observed_resources(o);
    const resource *best = NULL;
    double most = NUMBER_MIN, before = 0, after = 0;
    for (guint i = 0; i < all->len; i++) {
        const resource *r = g_ptr_array_index(all, i);
        if (s->host != 0 && r->host != s->host)
            continue;
        double means[2], explained = explained_by_cut(r, at_ns, means);
        if (explained > most) {
            most = explained;
            best = r;
            before = means[0];
            after = means[1];
        }
    }
    if (best != NULL)
        finding_evidence(made, "%s %s of %s%s%s was %.4g on average before, %.4g after", best->event, best->field,
                         observed_host(o, best->host), best->instance[0] != '\0' ? " " : "", best->instance, before,
                         after);
}

void show_difference(finding *made, const observed *o, const slices *s, int64_t at_ns)
{
    show_ways(made, o, s, at_ns);
    show_number(made, o, s, at_ns);
}
