#include "config.h"

#include "diag/report.h"
#include "diag/visitors.h"
#include "diag/search.h"

#include "base/text.h"
#include "base/time_internal.h"
#include "program/json_document.h"
#include "requests/printable.h"
#include "stat/subject.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES_SHOWN = 6 };

/* The report mentions lost records if at least this part of the requests lacks records. */
#define LOSSY_MIN 0.01

/* ---- texts ---- */

static const char *verdict_of(const findings *f)
{
    return findings_have_fault(f) ? "finding" : f->healthy ? "healthy" : "cannot tell";
}

char *report_answer(const findings *f)
{
    if (findings_have_fault(f))
        return g_strdup(((const finding *)g_ptr_array_index(f->list, 0))->answer);
    if (!f->healthy)
        return g_strdup_printf("cannot tell: %s", f->cannot_tell);
    return g_strconcat("healthy: found no cause that takes 7 % or more of the requests' time",
                       f->list->len > 0 ? ", apart from the requested work" : "", NULL);
}

char *report_limits(const visits *v)
{
    GString *out = g_string_new("");
    if (v->dropped > 0)
        g_string_append_printf(out, "the verdict covers a sample, %u of %u requests, because of --memory",
                               v->requests->len, v->requests->len + v->dropped);
    if (v->sites_dropped > 0)
        g_string_append_printf(
            out,
            "%s%u request%s ignored, because the log has more than 65,536 combinations of place and host; select "
            "records with --where",
            out->len > 0 ? "; " : "", v->sites_dropped, nl_plural(v->sites_dropped));
    if (v->cut > 0)
        g_string_append_printf(out, "%s%" PRIu64 " request%s examined incompletely, because of --memory",
                               out->len > 0 ? "; " : "", v->cut, nl_plural(v->cut));
    if (v->selects_records)
        g_string_append_printf(out, "%s%s", out->len > 0 ? "; " : "", SUBJECT_SELECTED_RECORDS);
    if (v->lossy > 0 && (double)v->lossy >= LOSSY_MIN * (double)v->separate)
        g_string_append_printf(out,
                               "%s%" PRIu64 " of %" PRIu64
                               " requests lack records, so nldiag may attribute their time to wrong places",
                               out->len > 0 ? "; " : "", v->lossy, v->separate);
    return g_string_free(out, out->len == 0);
}

/* Returns whether a finding's time range covers less than 90 % of the requests' time range. */
static bool is_part(const finding *x, const visits *v)
{
    return (double)x->to_ns - (double)x->from_ns < 0.9 * ((double)v->to_ns - (double)v->from_ns);
}

/* Adds an option and its value, a time that is rounded down to milliseconds. */
static void add_time(GPtrArray *command, const char *option, int64_t time_ns)
{
    char text[NL_TIME_TEXT_SIZE];
    nl_time_format_iso(time_ns, text);
    char *dot = strchr(text, '.');
    g_ptr_array_add(command, g_strdup(option));
    g_ptr_array_add(command, dot != NULL ? g_strdup_printf("%.*sZ", (int)(dot - text) + 4, text) : g_strdup(text));
}

GPtrArray *report_command(const finding *x, const visits *v, const report_sources *sources)
{
    enum { MILLISECOND = 1000000 };
    GPtrArray *command = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(command, g_strdup("nlv"));
    if (sources->config != NULL) {
        g_ptr_array_add(command, g_strdup("--config"));
        g_ptr_array_add(command, g_strdup(sources->config));
    }
    if (sources->fix_clocks)
        g_ptr_array_add(command, g_strdup("--fix-clocks"));
    if (is_part(x, v)) {
        add_time(command, "--since", x->from_ns);
        add_time(command, "--until", x->to_ns + MILLISECOND);
    }
    for (int i = 0; i < sources->count; i++)
        g_ptr_array_add(command, g_strdup(sources->names[i]));
    return command;
}

char *report_view(const finding *x, const visits *v, const report_sources *sources)
{
    static const char plain[] = G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "-_./:@%+,=";
    GPtrArray *command = report_command(x, v, sources);
    for (guint i = 0; i < command->len; i++) {
        char *argument = g_ptr_array_index(command, i);
        if (argument[0] != '\0' && argument[strspn(argument, plain)] == '\0')
            continue;
        command->pdata[i] = g_shell_quote(argument);
        g_free(argument);
    }
    g_ptr_array_add(command, NULL);
    char *line = g_strjoinv(" ", (char **)command->pdata);
    g_ptr_array_free(command, TRUE);
    return line;
}

guint report_number(const findings *f, const finding *x)
{
    guint i = 0;
    while (g_ptr_array_index(f->list, i) != x)
        i++;
    return i + 1;
}

static int by_path(const void *a, const void *b, void *user)
{
    const visits *v = user;
    double x = place_at(v, *(const uint32_t *)a)->path_ns, y = place_at(v, *(const uint32_t *)b)->path_ns;
    return (x < y) - (x > y);
}

uint32_t *report_places(const visits *v)
{
    uint32_t *order = g_new(uint32_t, v->places->len + 1);
    for (uint32_t i = 0; i < v->places->len; i++)
        order[i] = i;
    g_qsort_with_data(order, (gint)v->places->len, sizeof *order, by_path, (gpointer)v);
    return order;
}

/* Returns the time that findings claim at a place, as a share of the total time. */
static double claimed_share(const findings *f, uint32_t place)
{
    const visits *v = f->visits;
    const struct place *p = place_at(v, place);
    double sum = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t index = v->by_place[p->first + i];
        sum += (double)f->claimed[index] * path_weight(visit_at(v, index));
    }
    return MIN(sum, p->path_ns) / v->total_ns;
}

/* Returns a phrase that names the value of a text field by which the requests that visit a place differ from the
 * others, or "". The caller frees it with g_free. */
static char *text_visiting_requests(const visits *v, uint32_t place)
{
    const column *c;
    float value;
    if (!place_find_visitors(v, place, &c, &value))
        return g_strdup("");
    return g_strdup_printf(", in requests with %s=%s", c->name, (char *)g_ptr_array_index(c->texts, (guint)value));
}

report_place_row report_describe_place(const findings *f, uint32_t place)
{
    const visits *v = f->visits;
    const struct place *p = place_at(v, place);
    const double claimed = claimed_share(f, place);
    char *mean = text_ns(p->path_ns / MAX(p->count, 1)), *requests = text_visiting_requests(v, place);
    report_place_row row = {.share = text_share(p->path_ns / v->total_ns),
                            .name = text_place(v, place, NULL),
                            .mean = p->repeats == 0 ? g_strdup_printf("%s each%s", mean, requests)
                                                    : g_strdup_printf("%s for each series of %.0f visits", mean,
                                                                      1 + (double)p->repeats / p->count),
                            .explained = claimed > 0 ? text_share(claimed) : NULL,
                            .is_unexplained = !f->healthy && p->path_ns > 0.5 * v->total_ns && claimed == 0 &&
                                              (p->kind != PLACE_SPAN || p->has_children)};
    g_free(mean);
    g_free(requests);
    return row;
}

void report_place_row_clear(report_place_row *row)
{
    g_free(row->share);
    g_free(row->name);
    g_free(row->mean);
    g_free(row->explained);
}

static void print_places(const findings *f, uint32_t shown)
{
    const visits *v = f->visits;
    uint32_t *order = report_places(v), count = v->places->len;
    double rest = 0;
    while (count > 0 && place_at(v, order[count - 1])->path_ns <= 0)
        count--; /* places without time on a critical path */
    if (count == shown + 1)
        shown++; /* show the place instead of "1 other places" */
    printable_print("\nWhere the requests' time goes:\n");
    for (uint32_t i = 0; i < count; i++) {
        const place *p = place_at(v, order[i]);
        if (i >= shown) {
            rest += p->path_ns;
            continue;
        }
        report_place_row row = report_describe_place(f, order[i]);
        printable_print("  %6s  %s, %s%s%s%s\n", row.share, row.name, row.mean,
                        row.explained != NULL ? "; explained above: " : "", row.explained != NULL ? row.explained : "",
                        row.is_unexplained ? "; unexplained, so log more events there" : "");
        report_place_row_clear(&row);
    }
    if (rest > 0) {
        char *part = text_share(rest / v->total_ns);
        printable_print("  %6s  %u other place%s\n", part, count - shown, nl_plural(count - shown));
        g_free(part);
    }
    g_free(order);
}

/* Prints the other explanations of a finding's place in one line. Omits a process or host that equals the finding's. */
static void print_rivals(const findings *f, const finding *x)
{
    const char *before = "   alternative causes: ", *after = "";
    for (guint i = 0; i < f->list->len; i++) {
        const finding *rival = g_ptr_array_index(f->list, i);
        if (rival->rival_of != x)
            continue;
        bool is_field = rival->column != NULL && rival->column->name[0] != '@';
        char *what = is_field                                                 ? g_strdup(rival->column->name)
                     : rival->process != NULL && rival->process != x->process ? g_strdup(rival->process)
                     : rival->host != NULL && rival->host != x->host && rival->place != VISIT_NONE
                         ? text_host(f->visits, place_at(f->visits, rival->place), rival->host)
                         : g_strdup(rival->host != NULL && rival->host != x->host ? rival->host : "");
        char *sure = text_share(rival->sure);
        printable_print("%s%s%s%s (%s)", before, rival->cause, *what != '\0' ? " " : "", what, sure);
        before = ", ";
        after = "; see --explain\n";
        g_free(what);
        g_free(sure);
    }
    printable_print("%s", after);
}

void report_finding(const findings *f, const finding *x, const report_sources *sources, bool explain)
{
    const guint evidence_max = explain ? G_MAXUINT : 3, others_max = explain ? 4 : 1;
    const visits *v = f->visits;
    char *gain = text_share(x->gain), *sure = text_share(x->sure);
    printable_print("%s\n", x->answer);
    for (guint n = 0; n < MIN(x->evidence->len, evidence_max); n++)
        printable_print("   - %s\n", (const char *)g_ptr_array_index(x->evidence, n));
    for (guint n = 0; n < MIN(x->others->len, others_max); n++) {
        char *where = text_place(v, g_array_index(x->others, uint32_t, n), NULL);
        printable_print("   - this cause also slows %s\n", where);
        g_free(where);
    }
    printable_print("   try: %s\n", x->advice);
    if (x->gain > 0) {
        double each_ns = v->total_ns / v->requests->len;
        char *now = text_ns(each_ns), *then = text_ns((1 - x->gain) * each_ns);
        printable_print("   expected gain: %s of the requests' time (from %s to %s per request)\n", gain, now, then);
        g_free(now);
        g_free(then);
    }
    printable_print("   confidence: %s (cause \"%s\")\n", sure, x->cause);
    if (!explain)
        print_rivals(f, x);
    if (sources != NULL) {
        char *view = report_view(x, v, sources);
        printable_print("   see: %s\n", view);
        g_free(view);
    }
    g_free(gain);
    g_free(sure);
}

char *report_counts(const visits *v)
{
    const guint requests = v->requests->len;
    char *mean = text_ns(v->total_ns / MAX(requests, 1)), *wall = text_ns((double)(v->to_ns - v->from_ns));
    char *text = requests > 0 ? g_strdup_printf("%" PRIu64 " record%s, %u request%s in %s, %s each", v->records,
                                                nl_plural(v->records), requests, nl_plural(requests), wall, mean)
                              : g_strdup_printf("%" PRIu64 " record%s, no requests", v->records, nl_plural(v->records));
    g_free(mean);
    g_free(wall);
    return text;
}

static bool names_failures(const findings *f)
{
    for (guint i = 0; i < f->list->len; i++)
        if (strcmp(((const finding *)g_ptr_array_index(f->list, i))->cause, "failures") == 0)
            return true;
    return false;
}

void report_text(const findings *f, const report_sources *sources, bool explain)
{
    const visits *v = f->visits;
    char *answer = report_answer(f), *limits = report_limits(v);
    bool has_fault = findings_have_fault(f);
    if (!has_fault)
        printable_print("%s\n%s", answer, f->list->len > 0 ? "\n" : "");
    g_free(answer);
    for (guint i = 0, number = 0; i < f->list->len; i++) {
        const finding *x = g_ptr_array_index(f->list, i);
        if (!explain && x->rival_of != NULL)
            continue;
        if (++number > 1)
            printable_print("\n");
        if (number > 1 || !has_fault)
            printable_print("%u. ", number);
        if (x->rival_of != NULL)
            printable_print("Alternative to %u: ", report_number(f, x->rival_of));
        report_finding(f, x, sources, explain);
    }
    if (f->list->len > 0)
        printable_print("\n");
    if (v->requests->len > 0) {
        char *counts = report_counts(v);
        printable_print("%s\n", counts);
        g_free(counts);
    }
    if (f->failed > 0 && !names_failures(f)) {
        char *part = text_share((double)f->failed / v->requests->len);
        printable_print("%u request%s failed (%s); %s\n", f->failed, nl_plural(f->failed), part,
                        f->is_failure_searched
                            ? "no host, field or time has significantly more failures than the others"
                            : "too few to search for their cause");
        g_free(part);
    }
    if (limits != NULL)
        printable_print("Incomplete: %s\n", limits);
    g_free(limits);
    if (v->requests->len > 0 && v->total_ns > 0)
        print_places(f, explain ? v->places->len : PLACES_SHOWN);
    if (explain && f->tests > 0) {
        printable_print("\nnldiag tried %u explanation%s. %s\n", f->tests, nl_plural(f->tests),
                        f->tried->len > 0 ? "These explain part of the variation:"
                                          : "None of them explains a part of the variation.");
        for (guint i = 0; i < f->tried->len; i++)
            printable_print("  %s\n", (const char *)g_ptr_array_index(f->tried, i));
    }
}

/* ---- JSON ---- */

static void add_place(json_object *object, const visits *v, uint32_t number)
{
    const place *p = place_at(v, number);
    if (p->kind == PLACE_SPAN) {
        json_add_text(object, "span", p->span);
    } else {
        json_add_text(object, "from_event", p->from);
        json_add_text(object, "to_event", p->to);
        json_add_text(object, "from_program", p->from_program);
    }
    json_add_text(object, "program", p->program);
}

struct json_object *report_finding_object(const findings *f, const finding *x, const report_sources *sources)
{
    json_object *object = json_object_new_object(), *evidence = json_object_new_array();
    json_add_text(object, "cause", x->cause);
    json_add_text(object, "title", x->answer);
    json_object_object_add(object, "ordinary", json_object_new_boolean(x->is_ordinary));
    if (x->rival_of != NULL)
        json_add_int(object, "instead_of", report_number(f, x->rival_of));
    json_add_double(object, "share", x->share);
    json_add_double(object, "gain", x->gain);
    json_add_double(object, "sure", x->sure);
    json_add_double(object, "explained", x->explained);
    json_add_double(object, "chance", x->chance);
    json_add_double(object, "margin", x->margin);
    json_add_int(object, "from_ns", x->from_ns);
    json_add_int(object, "to_ns", x->to_ns);
    json_add_text(object, "host", x->host);
    if (x->process != NULL)
        json_add_text(object, "process", x->process);
    if (x->place != VISIT_NONE)
        add_place(object, f->visits, x->place);
    if (x->column != NULL)
        json_add_text(object, "field", x->column->name[0] == '@' ? NULL : x->column->name);
    else if (x->host != NULL && x->place != VISIT_NONE &&
             host_is_value(f->visits, place_at(f->visits, x->place), x->host))
        json_add_text(object, "field", place_at(f->visits, x->place)->server_field);
    for (guint i = 0; i < x->evidence->len; i++)
        json_object_array_add(evidence, json_text(g_ptr_array_index(x->evidence, i)));
    json_object_object_add(object, "evidence", evidence);
    json_add_text(object, "advice", x->advice);
    if (sources != NULL) {
        char *view = report_view(x, f->visits, sources);
        json_add_text(object, "view", view);
        g_free(view);
    }
    return object;
}

void report_json(const findings *f, const report_sources *sources)
{
    const visits *v = f->visits;
    json_object *document = json_object_new_object(), *causes = json_object_new_array(),
                *places = json_object_new_array();
    char *answer = report_answer(f), *limits = report_limits(v);
    json_add_text(document, "verdict", verdict_of(f));
    json_add_text(document, "answer", answer);
    json_add_int(document, "records", (int64_t)v->records);
    json_add_int(document, "requests", v->requests->len);
    json_add_int(document, "failed", f->failed);
    json_add_double(document, "total_ns", v->total_ns);
    json_add_int(document, "from_ns", v->requests->len > 0 ? v->from_ns : 0);
    json_add_int(document, "to_ns", v->requests->len > 0 ? v->to_ns : 0);
    json_add_text(document, "incomplete", limits);
    for (guint i = 0; i < f->list->len; i++)
        json_object_array_add(causes, report_finding_object(f, g_ptr_array_index(f->list, i), sources));
    json_object_object_add(document, "causes", causes);
    uint32_t *order = report_places(v);
    for (guint i = 0; i < v->places->len; i++) {
        json_object *object = json_object_new_object();
        add_place(object, v, order[i]);
        json_add_int(object, "visits", place_at(v, order[i])->count);
        json_add_double(object, "share", v->total_ns > 0 ? place_at(v, order[i])->path_ns / v->total_ns : NAN);
        json_add_double(object, "claimed", v->total_ns > 0 ? claimed_share(f, order[i]) : NAN);
        json_object_array_add(places, object);
    }
    g_free(order);
    json_object_object_add(document, "places", places);
    json_document_write(document, stdout);
    g_free(answer);
    g_free(limits);
}
