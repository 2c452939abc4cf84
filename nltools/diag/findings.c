#include "config.h"

#include "diag/findings.h"

#include <math.h>
#include <string.h>

static void free_finding(gpointer data)
{
    finding *f = data;
    g_ptr_array_free(f->evidence, TRUE);
    g_free(f);
}

/* Returns a text that lasts until the program ends. Frees text. */
static const char *intern(char *text)
{
    const char *interned = g_intern_string(text);
    g_free(text);
    return interned;
}

findings *findings_new(const observed *o)
{
    findings *f = g_new0(findings, 1);
    f->observed = o;
    f->pressures = pressures_new(o);
    f->list = g_ptr_array_new_with_free_func(free_finding);
    return f;
}

void findings_free(findings *f)
{
    if (f == NULL)
        return;
    g_ptr_array_free(f->list, TRUE);
    g_free(f->pressures);
    g_free(f);
}

finding *findings_add(findings *f, const char *cause, double share, double sure, const char *title, ...)
{
    finding *made = g_new0(finding, 1);
    va_list arguments;
    va_start(arguments, title);
    made->title = intern(g_strdup_vprintf(title, arguments));
    va_end(arguments);
    made->cause = cause;
    made->share = CLAMP(share, 0, 1);
    made->sure = CLAMP(sure, 0, 1);
    made->evidence = g_ptr_array_new();
    made->from_ns = observed_from_ns(f->observed);
    made->to_ns = observed_to_ns(f->observed);
    g_ptr_array_add(f->list, made);
    return made;
}

void finding_evidence(finding *f, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_ptr_array_add(f->evidence, (gpointer)intern(g_strdup_vprintf(format, arguments)));
    va_end(arguments);
}

void finding_advice(finding *f, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    f->advice = intern(g_strdup_vprintf(format, arguments));
    va_end(arguments);
}

void finding_place(finding *f, const observed *o, guint host, const leg *l)
{
    f->host = host != 0 ? observed_host(o, host) : NULL;
    f->leg = l;
}

static gint compare_weights(gconstpointer a, gconstpointer b)
{
    const finding *first = *(finding *const *)a, *second = *(finding *const *)b;
    double left = first->share * first->sure, right = second->share * second->sure;
    return (left < right) - (left > right);
}

/* Errors of clocks differ by host. */
static bool findings_is_same(const finding *a, const finding *b)
{
    if (strcmp(a->cause, "clock") == 0 && a->host != b->host)
        return false;
    bool legs = a->leg == NULL || b->leg == NULL
                    ? a->leg == b->leg
                    : strcmp(a->leg->from, b->leg->from) == 0 && strcmp(a->leg->to, b->leg->to) == 0;
    return strcmp(a->cause, b->cause) == 0 && (a->host == b->host || (legs && a->host != NULL && b->host != NULL));
}

/* Merges findings of the same cause on other hosts, and repeated findings of one host. */
static void take_in(findings *f, guint first)
{
    finding *kept = g_ptr_array_index(f->list, first);
    GString *hosts = g_string_new(NULL);
    for (guint i = first + 1; i < f->list->len;) {
        const finding *next = g_ptr_array_index(f->list, i);
        if (!findings_is_same(kept, next)) {
            i++;
            continue;
        }
        if (next->host != kept->host) {
            kept->share = kept->is_of_host ? MAX(kept->share, next->share) : MIN(1, kept->share + next->share);
            g_string_append_printf(hosts, "%s%s", hosts->len > 0 ? ", " : "", next->host);
        }
        g_ptr_array_remove_index(f->list, i);
    }
    if (hosts->len > 0)
        finding_evidence(kept, "the same on %s", hosts->str);
    g_string_free(hosts, TRUE);
}

void findings_rank(findings *f)
{
    g_ptr_array_sort(f->list, compare_weights);
    for (guint i = 0; i < f->list->len; i++)
        take_in(f, i);
    g_ptr_array_sort(f->list, compare_weights);
    while (f->list->len > 0) {
        const finding *last = g_ptr_array_index(f->list, f->list->len - 1);
        if (last->share * last->sure >= FINDING_MIN)
            break;
        g_ptr_array_remove_index(f->list, f->list->len - 1);
    }
}

/* ---- texts ---- */

const char *text_format(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *text = intern(g_strdup_vprintf(format, arguments));
    va_end(arguments);
    return text;
}

const char *text_ns(double ns)
{
    static const struct {
        double ns;
        const char *unit;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
    size_t i = 0;
    while (i + 1 < G_N_ELEMENTS(units) && fabs(ns) < units[i].ns)
        i++;
    double value = ns / units[i].ns;
    return text_format("%.*f %s", fabs(value) < 10 ? 2 : fabs(value) < 100 ? 1 : 0, value, units[i].unit);
}

const char *text_share(double share)
{
    return text_format("%.*f %%", share < 0.0995 ? 1 : 0, 100 * share);
}

const char *text_leg(const observed *o, const leg *l)
{
    const char *events = strcmp(l->from, l->to) == 0 ? text_format("%s, first to last", l->from)
                                                     : text_format("%s -> %s", l->from, l->to);
    const char *from = observed_host(o, l->from_host);
    if (!leg_is_local(l))
        return text_format("%s from %s to %s", events, from, observed_host(o, l->to_host));
    return l->from_host != 0 ? text_format("%s on %s", events, from) : events;
}

double leg_share(const observed *o, const leg *l)
{
    double all = observed_total_ns(o);
    return all > 0 ? l->total_ns / all : 0;
}

bool leg_is_same_way(const leg *a, const leg *b)
{
    return a->lifeline == b->lifeline && a->from_place == b->from_place && a->to_place == b->to_place;
}

guint leg_way_end(const GPtrArray *legs, guint number)
{
    guint end = number + 1;
    while (end < legs->len && leg_is_same_way(g_ptr_array_index(legs, number), g_ptr_array_index(legs, end)))
        end++;
    return end;
}

bool leg_is_local(const leg *l)
{
    return l->from_host == l->to_host;
}
