/* Finds objects that never end although later ones ended. */
#include "config.h"

#include "diag/findings.h"

/* The objects whose last step is at a place on a host, but not the last place of the lifeline. */
typedef struct unended {
    guint place, host;
    size_t count;
} unended;

static void count_unended(GArray *found, const step *last)
{
    for (guint i = 0; i < found->len; i++) {
        unended *u = &g_array_index(found, unended, i);
        if (u->place == last->place && u->host == last->host) {
            u->count++;
            return;
        }
    }
    unended made = {last->place, last->host, 1};
    g_array_append_val(found, made);
}

static gint compare_unended(gconstpointer a, gconstpointer b)
{
    const unended *first = a, *second = b;
    return (first->count < second->count) - (first->count > second->count);
}

/*
 * Returns the time from which on objects may still be under way at the end of the log: earlier than the end by the
 * longest object.
 */
static int64_t settled_ns(const observed *o, guint lifeline, size_t *whole)
{
    const GArray *objects = observed_objects(o);
    int64_t longest = 0;
    *whole = 0;
    for (guint i = 0; i < objects->len; i++) {
        const object *one = &g_array_index(objects, object, i);
        if (one->lifeline != lifeline || !one->whole)
            continue;
        longest = MAX(longest, one->to_ns - one->from_ns);
        (*whole)++;
    }
    return observed_to_ns(o) - longest;
}

static void tell_unended(findings *f, const drawing_lifeline *lifeline, GArray *places, size_t lost, size_t all)
{
    const observed *o = f->observed;
    g_array_sort(places, compare_unended);
    const unended *most = &g_array_index(places, unended, 0);
    const char *part = text_share((double)lost / (double)all);
    const char *end = lifeline->events[g_strv_length(lifeline->events) - 1];
    finding *made = findings_add(
        f, "unended", (double)lost / (double)all, 0.9, "%s never reach %s: the last event of most is %s%s%s", part, end,
        lifeline->events[most->place], most->host != 0 ? " on " : "", observed_host(o, most->host));
    made->is_of_objects = true;
    finding_evidence(made, "%zu of %zu, without those under way at the end of the log", lost, all);
    for (guint i = 0; i < places->len && i < 3; i++) {
        const unended *u = &g_array_index(places, unended, i);
        finding_evidence(made, "%zu end with %s%s%s", u->count, lifeline->events[u->place], u->host != 0 ? " on " : "",
                         observed_host(o, u->host));
    }
    finding_place(made, o, most->host, NULL);
    finding_advice(made, "look for their end there: an error, a lost reply, a client that gave "
                         "up; or lost records");
}

/* Applies if most objects are whole; otherwise, the last event of the lifeline is not their end. */
static void look_at(findings *f, guint number, const drawing_lifeline *lifeline)
{
    const observed *o = f->observed;
    const GArray *objects = observed_objects(o);
    size_t whole, lost = 0, all = 0;
    int64_t settled = settled_ns(o, number, &whole);
    guint last = g_strv_length(lifeline->events) - 1;
    GArray *places = g_array_new(FALSE, FALSE, sizeof(unended));
    for (guint i = 0; i < objects->len; i++) {
        const object *one = &g_array_index(objects, object, i);
        guint count;
        const step *steps = observed_steps(o, i, &count);
        if (one->lifeline != number || one->from_ns >= settled || steps[0].place != 0)
            continue;
        all++;
        bool ended = false;
        for (guint k = 0; k < count; k++)
            ended = ended || steps[k].place == last;
        lost += !ended;
        if (!ended)
            count_unended(places, &steps[count - 1]);
    }
    if (all >= PASSAGES_TELLING && 2 * whole > all && (double)lost >= FINDING_MIN / 2 * (double)all)
        tell_unended(f, lifeline, places, lost, all);
    g_array_free(places, TRUE);
}

void find_unended(findings *f)
{
    const GPtrArray *lifelines = observed_lifelines(f->observed);
    for (guint i = 0; i < lifelines->len; i++)
        look_at(f, i, g_ptr_array_index(lifelines, i));
}
