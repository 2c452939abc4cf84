#include "config.h"

#include "diag/report.h"

#include "requests/printable.h"
#include "program/json_document.h"
#include "base/time_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- texts ---- */

bool report_has_wrong_clocks(const observed *o)
{
    for (guint host = 1; host < observed_host_count(o); host++)
        if (observed_clock(o, host)->is_off)
            return true;
    return false;
}

const char *report_limits(const observed *o)
{
    GPtrArray *limits = g_ptr_array_new();
    if (observed_sampled(o) < 1)
        g_ptr_array_add(limits, (gpointer)text_format("the verdict covers a sample, %.3g %% of the steps of requests, "
                                                      "because of --memory",
                                                      100 * observed_sampled(o)));
    if (observed_early(o) > 0)
        g_ptr_array_add(limits, (gpointer)text_format("%" G_GUINT64_FORMAT
                                                      " requests were examined before they ended, because of --memory",
                                                      observed_early(o)));
    if (observed_passages_left_out(o) > 0)
        g_ptr_array_add(limits, (gpointer)text_format("%" G_GUINT64_FORMAT " times between events were left out, "
                                                      "because of too many pairs of hosts",
                                                      observed_passages_left_out(o)));
    if (observed_host_count(o) == HOSTS_MAX)
        g_ptr_array_add(limits, (gpointer)text_format("only the first %d hosts were told apart", HOSTS_MAX - 1));
    bool any = limits->len > 0;
    g_ptr_array_add(limits, NULL);
    char *joined = g_strjoinv("; ", (char **)limits->pdata);
    const char *text = any ? g_intern_string(joined) : NULL;
    g_free(joined);
    g_ptr_array_free(limits, TRUE);
    return text;
}

const char *report_view(const findings *f, const finding *cause, const report_sources *sources)
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
    const char *view = g_intern_string(out->str);
    g_string_free(out, TRUE);
    return view;
}

static void print_head(const observed *o)
{
    const char *wall = text_ns((double)(observed_to_ns(o) - observed_from_ns(o)));
    guint objects = observed_objects(o)->len;
    printable_print("%" G_GUINT64_FORMAT " records, %u objects on %u hosts in %s", observed_records(o), objects,
                    observed_host_count(o) - 1, wall);
    if (objects > 0) {
        const char *mean = text_ns(observed_total_ns(o) / objects);
        printable_print("; %s each on average", mean);
    }
    printable_print("\n");
    const char *limits = report_limits(o);
    if (limits != NULL)
        printable_print("\nIncomplete: %s\n", limits);
}

/* Prints the legs with the most time. */
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
        const char *where = text_leg(o, sorted[i]), *part = text_share(leg_share(o, sorted[i])),
                   *mean = text_ns(sorted[i]->mean_ns);
        printable_print("  %7s  %s, %s on average\n", part, where, mean);
    }
    g_free(sorted);
}

static void print_clocks(const observed *o)
{
    bool any = false;
    for (guint host = 1; host < observed_host_count(o); host++) {
        const char *text = text_clock(o, host);
        if (text != NULL)
            printable_print("%s  %s\n", any ? "" : "\nClocks:\n", text);
        any = any || text != NULL;
    }
}

static void print_cause(const findings *f, const finding *cause, guint number, const report_sources *sources)
{
    const char *part = text_share(cause->share), *sure = text_share(cause->sure),
               *view = report_view(f, cause, sources);
    printable_print("\n%u. %s [%s]\n   explains %s of all %s%s; %s sure\n", number, cause->title, cause->cause, part,
                    cause->is_of_objects ? "objects" : "time",
                    cause->from_ns > observed_from_ns(f->observed) ? " since then" : "", sure);
    for (guint i = 0; i < cause->evidence->len; i++)
        printable_print("   - %s\n", (const char *)g_ptr_array_index(cause->evidence, i));
    if (cause->advice != NULL)
        printable_print("   try: %s\n", cause->advice);
    printable_print("   see: %s\n", view);
}

void report_text(const findings *f, const report_sources *sources)
{
    print_head(f->observed);
    if (observed_objects(f->observed)->len == 0)
        printable_print("\nNo verdict: the log has no requests.\n");
    else if (f->list->len == 0)
        printable_print("\nHealthy: no cause explains %.0f %% of the time or more.\n", 100 * FINDING_MIN);
    for (guint i = 0; i < f->list->len; i++)
        print_cause(f, g_ptr_array_index(f->list, i), i + 1, sources);
    if (observed_objects(f->observed)->len > 0)
        print_legs(f->observed);
    print_clocks(f->observed);
}

/* ---- JSON ---- */

static json_object *cause_object(const findings *f, const finding *cause, const report_sources *sources)
{
    const observed *o = f->observed;
    json_object *object = json_object_new_object(), *evidence = json_object_new_array();
    json_add_text(object, "cause", cause->cause);
    json_add_text(object, "title", cause->title);
    json_add_double(object, "share", cause->share);
    json_add_double(object, "sure", cause->sure);
    json_add_int(object, "from_ns", cause->from_ns);
    json_add_int(object, "to_ns", cause->to_ns);
    json_add_text(object, "host", cause->host);
    if (cause->leg != NULL) {
        json_add_text(object, "from_event", cause->leg->from);
        json_add_text(object, "to_event", cause->leg->to);
        json_add_text(object, "from_host", observed_host(o, cause->leg->from_host));
        json_add_text(object, "to_host", observed_host(o, cause->leg->to_host));
    }
    for (guint i = 0; i < cause->evidence->len; i++)
        json_object_array_add(evidence, json_text(g_ptr_array_index(cause->evidence, i)));
    json_object_object_add(object, "evidence", evidence);
    json_add_text(object, "advice", cause->advice);
    const char *view = report_view(f, cause, sources);
    json_add_text(object, "view", view);
    return object;
}

static json_object *clock_object(const observed *o, guint host)
{
    const host_clock *c = observed_clock(o, host);
    bool measured = c->reference != NULL;
    json_object *object = json_object_new_object();
    json_add_text(object, "host", observed_host(o, host));
    json_add_text(object, "reference", c->reference);
    json_add_int(object, "measurements", (int64_t)c->measurements);
    json_add_bool(object, "off", c->is_off);
    json_add_bool(object, "kept", !c->is_unkept);
    json_add_double(object, "ahead_ns", measured ? c->ahead_ns : NAN);
    json_add_double(object, "drift_ppm", measured ? c->drift * 1e6 : NAN);
    json_add_double(object, "error_ns", c->error_ns);
    return object;
}

void report_json(const findings *f, const report_sources *sources)
{
    const observed *o = f->observed;
    json_object *document = json_object_new_object(), *causes = json_object_new_array(),
                *clocks = json_object_new_array();
    json_add_int(document, "records", (int64_t)observed_records(o));
    json_add_int(document, "objects", observed_objects(o)->len);
    json_add_int(document, "from_ns", observed_from_ns(o));
    json_add_int(document, "to_ns", observed_to_ns(o));
    json_add_double(document, "sampled", observed_sampled(o));
    const char *limits = report_limits(o);
    json_add_text(document, "incomplete", limits);
    if (observed_objects(o)->len > 0)
        json_add_bool(document, "healthy", f->list->len == 0);
    else
        json_add_text(document, "healthy", NULL);
    for (guint i = 0; i < f->list->len; i++)
        json_object_array_add(causes, cause_object(f, g_ptr_array_index(f->list, i), sources));
    json_object_object_add(document, "causes", causes);
    for (guint host = 1; host < observed_host_count(o); host++)
        json_object_array_add(clocks, clock_object(o, host));
    json_object_object_add(document, "clocks", clocks);
    json_document_write(document, stdout);
}
