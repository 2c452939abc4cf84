#include "config.h"

#include "diag/report.h"

#include "requests/printable.h"
#include "requests/json.h"
#include "base/time_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- words ---- */

bool report_has_wrong_clocks(const observed *o)
{
    for (guint host = 1; host < observed_host_count(o); host++)
        if (observed_clock(o, host)->is_off)
            return true;
    return false;
}

char *report_view(const findings *f, const finding *cause, const report_sources *sources)
{
    char from[NL_TIME_TEXT_SIZE], to[NL_TIME_TEXT_SIZE];
    GString *out = g_string_new("nlv");
    if (sources->config != NULL) {
        char *quoted = g_shell_quote(sources->config);
        g_string_append_printf(out, " --config %s", quoted);
        g_free(quoted);
    }
    if (report_has_wrong_clocks(f->observed))
        g_string_append(out, " --fix-clocks");
    nl_time_format_iso(cause->from_ns, from);
    nl_time_format_iso(cause->to_ns, to);
    g_string_append_printf(out, " --since %s --until %s", from, to);
    for (int i = 0; i < sources->count; i++) {
        char *quoted = g_shell_quote(sources->names[i]);
        g_string_append_printf(out, " %s", quoted);
        g_free(quoted);
    }
    return g_string_free(out, FALSE);
}

static void print_head(const observed *o)
{
    char *wall = text_ns((double)(observed_to_ns(o) - observed_from_ns(o)));
    guint objects = observed_objects(o)->len;
    printable_print("%" G_GUINT64_FORMAT " records, %u objects on %u hosts in %s", observed_records(o), objects,
                    observed_host_count(o) - 1, wall);
    if (objects > 0) {
        char *mean = text_ns(observed_total_ns(o) / objects);
        printable_print("; %s each on the average", mean);
        g_free(mean);
    }
    printable_print("\n");
    g_free(wall);
}

/* The legs that take most, for who wants to look himself. */
static int compare_totals(const void *a, const void *b)
{
    const leg *first = *(leg *const *)a, *second = *(leg *const *)b;
    return (first->total_ns < second->total_ns) - (first->total_ns > second->total_ns);
}

static void print_legs(const observed *o)
{
    enum { SHOWN = 5 };
    const GPtrArray *legs = observed_legs(o);
    const leg **sorted = g_new(const leg *, legs->len + 1);
    memcpy(sorted, legs->pdata, legs->len * sizeof *sorted);
    qsort(sorted, legs->len, sizeof *sorted, compare_totals);
    printable_print("\nWhere the time goes:\n");
    for (guint i = 0; i < legs->len && i < SHOWN; i++) {
        char *where = text_leg(o, sorted[i]), *part = text_share(leg_share(o, sorted[i])),
             *mean = text_ns(sorted[i]->mean_ns);
        printable_print("  %7s  %s, %s on the average\n", part, where, mean);
        g_free(where);
        g_free(part);
        g_free(mean);
    }
    g_free(sorted);
}

static void print_clocks(const observed *o)
{
    bool any = false;
    for (guint host = 1; host < observed_host_count(o); host++) {
        char *text = text_clock(o, host);
        if (text != NULL)
            printable_print("%s  %s\n", any ? "" : "\nClocks:\n", text);
        any = any || text != NULL;
        g_free(text);
    }
}

static void print_cause(const findings *f, const finding *cause, guint number, const report_sources *sources)
{
    char *part = text_share(cause->share), *sure = text_share(cause->sure), *view = report_view(f, cause, sources);
    printable_print("\n%u. %s [%s]\n   explains %s of all %s%s; %s sure\n", number, cause->title, cause->cause, part,
                    cause->is_of_objects ? "objects" : "time",
                    cause->from_ns > observed_from_ns(f->observed) ? " since then" : "", sure);
    for (guint i = 0; i < cause->evidence->len; i++)
        printable_print("   - %s\n", (const char *)g_ptr_array_index(cause->evidence, i));
    if (cause->advice != NULL)
        printable_print("   try: %s\n", cause->advice);
    printable_print("   see: %s\n", view);
    g_free(part);
    g_free(sure);
    g_free(view);
}

void report_text(const findings *f, const report_sources *sources)
{
    print_head(f->observed);
    if (f->list->len == 0)
        printable_print("\nHealthy: nothing found that would give %.0f %% of the time or more back.\n",
                        100 * FINDING_MIN);
    for (guint i = 0; i < f->list->len; i++)
        print_cause(f, g_ptr_array_index(f->list, i), i + 1, sources);
    if (observed_objects(f->observed)->len > 0)
        print_legs(f->observed);
    print_clocks(f->observed);
}

/* ---- JSON ---- */

static void append(GString *out, const char *name, const char *text)
{
    g_string_append_printf(out, ", \"%s\": ", name);
    if (text != NULL)
        json_append_string(out, text);
    else
        g_string_append(out, "null");
}

static void append_leg(GString *out, const observed *o, const leg *l)
{
    if (l == NULL)
        return;
    append(out, "from_event", l->from);
    append(out, "to_event", l->to);
    append(out, "from_host", observed_host(o, l->from_host));
    append(out, "to_host", observed_host(o, l->to_host));
}

static void append_cause(GString *out, const findings *f, const finding *cause, const report_sources *sources)
{
    char *view = report_view(f, cause, sources);
    g_string_append_printf(
        out, "{\"share\": %.4f, \"sure\": %.4f, \"from_ns\": %" G_GINT64_FORMAT ", \"to_ns\": %" G_GINT64_FORMAT,
        cause->share, cause->sure, cause->from_ns, cause->to_ns);
    append(out, "cause", cause->cause);
    append(out, "title", cause->title);
    append(out, "host", cause->host);
    append_leg(out, f->observed, cause->leg);
    g_string_append(out, ", \"evidence\": [");
    for (guint i = 0; i < cause->evidence->len; i++) {
        g_string_append(out, i > 0 ? ", " : "");
        json_append_string(out, g_ptr_array_index(cause->evidence, i));
    }
    g_string_append(out, "]");
    append(out, "advice", cause->advice);
    append(out, "view", view);
    g_string_append(out, "}");
    g_free(view);
}

/* JSON has no number for what is not known. */
static void append_number(GString *out, const char *name, double value)
{
    if (isfinite(value))
        g_string_append_printf(out, ", \"%s\": %.6g", name, value);
    else
        g_string_append_printf(out, ", \"%s\": null", name);
}

static void append_clock(GString *out, const observed *o, guint host)
{
    const host_clock *c = observed_clock(o, host);
    bool measured = c->reference != NULL;
    g_string_append_printf(out, "{\"measurements\": %" G_GUINT64_FORMAT ", \"off\": %s, \"kept\": %s", c->measurements,
                           c->is_off ? "true" : "false", c->is_unkept ? "false" : "true");
    append(out, "host", observed_host(o, host));
    append(out, "reference", c->reference);
    append_number(out, "ahead_ns", measured ? c->ahead_ns : NAN);
    append_number(out, "drift_ppm", measured ? c->drift * 1e6 : NAN);
    append_number(out, "error_ns", c->error_ns);
    g_string_append(out, "}");
}

static void append_clocks(GString *out, const observed *o)
{
    g_string_append(out, "], \"clocks\": [");
    for (guint host = 1; host < observed_host_count(o); host++) {
        g_string_append(out, host > 1 ? ",\n " : "\n ");
        append_clock(out, o, host);
    }
}

void report_json(const findings *f, const report_sources *sources)
{
    const observed *o = f->observed;
    GString *out = g_string_new(NULL);
    g_string_append_printf(out,
                           "{\"records\": %" G_GUINT64_FORMAT ", \"objects\": %u, \"from_ns\": %" G_GINT64_FORMAT
                           ", \"to_ns\": %" G_GINT64_FORMAT ", \"healthy\": %s, \"causes\": [",
                           observed_records(o), observed_objects(o)->len, observed_from_ns(o), observed_to_ns(o),
                           f->list->len == 0 ? "true" : "false");
    for (guint i = 0; i < f->list->len; i++) {
        g_string_append(out, i > 0 ? ",\n " : "\n ");
        append_cause(out, f, g_ptr_array_index(f->list, i), sources);
    }
    append_clocks(out, o);
    g_string_append(out, "]}\n");
    fputs(out->str, stdout);
    g_string_free(out, TRUE);
}
