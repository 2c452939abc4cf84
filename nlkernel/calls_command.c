/* nlkernel calls: reports the number of calls of each kernel function, and its callers. */
#include "config.h"

#include "call_view.h"
#include "command.h"
#include "summary.h"

#include "base/memory.h"
#include "program/json_document.h"

#include <inttypes.h>
#include <stdlib.h>

enum { TOP_DEFAULT = 30, CALLERS_SHOWN = 2 };

typedef struct arguments {
    call_view view;
    log_input input;
    const char *picture;
    bool json;
} arguments;

static const nl_option options[] = {
    {.name = "json",
     .letter = 'j',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, json),
     .help = "Print JSON, with all callers"},
    {.name = "plot",
     .value = "FILE",
     NL_OPTION_MEMBER(arguments, picture),
     .help = "Write a bar chart of the call counts to FILE.png or FILE.svg"},
    {0},
};

static const options_usage usage = {
    .name = "nlkernel calls",
    .groups = (const options_group[]){{NULL, options, 0}, CALL_VIEW_GROUPS(arguments), {0}},
    .operands = "[SOURCE...]",
    .summary = "Report the calls and the callers of each kernel function.",
    .notes = CALLS_SOURCES ".",
};

/* Returns the edges from all callers of a function, the most frequent first, and sets *count to their number. Requires
 * calls_sort_edges. */
static const call_edge *find_callers(const calls *c, uint32_t function, size_t *count)
{
    size_t low = 0, high = c->edge_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->edges[middle].function < function)
            low = middle + 1;
        else
            high = middle;
    }
    for (*count = 0; low + *count < c->edge_count && c->edges[low + *count].function == function;)
        ++*count;
    return c->edges + low;
}

static void print_callers(const calls *c, uint32_t function)
{
    size_t count;
    const call_edge *callers = find_callers(c, function, &count);
    for (size_t i = 0; i < count && i < CALLERS_SHOWN; i++)
        printf("%s%s %.0f %%", i == 0 ? "" : ", ", calls_name(c, callers[i].caller),
               100 * (double)callers[i].calls / (double)c->functions[function].calls);
    if (count > CALLERS_SHOWN)
        printf(", and %zu more", count - CALLERS_SHOWN);
}

static void print_calls(const call_view *v)
{
    const calls *c = &v->calls;
    char *summary = call_view_summary(v);
    printf("%s\n\n%12s %7s", summary, "calls", "share");
    if (c->timed)
        printf(" %10s", "ms");
    printf("  %-32s %s%s\n", "function", v->map.count > 0 ? "file, " : "", "callers");
    for (size_t i = 0; i < v->count; i++) {
        uint32_t function = v->order[i];
        const call_function *f = &c->functions[function];
        printf("%12" PRIu64 " %5.1f %%", f->calls, 100 * (double)f->calls / (double)c->total);
        if (c->timed)
            printf(" %10.3f", (double)f->time_ns / 1e6);
        printf("  %-32s ", calls_name(c, function));
        if (v->map.count > 0)
            printf("%s ", call_view_file(v, function, NULL));
        print_callers(c, function);
        putchar('\n');
    }
    free(summary);
}

static json_object *describe_function(const call_view *v, uint32_t function)
{
    const calls *c = &v->calls;
    size_t count;
    const call_edge *callers = find_callers(c, function, &count);
    const char *file = call_view_file(v, function, NULL);
    json_object *about = json_object_new_object(), *list = json_object_new_array();
    json_object_object_add(about, "function", json_text(calls_name(c, function)));
    json_object_object_add(about, "calls", json_object_new_uint64(c->functions[function].calls));
    if (c->timed)
        json_object_object_add(about, "time_ns", json_object_new_int64(c->functions[function].time_ns));
    if (*file != '\0')
        json_object_object_add(about, "file", json_text(file));
    json_object_object_add(about, "callers", list);
    for (size_t i = 0; i < count; i++) {
        json_object *caller = json_object_new_object();
        json_object_object_add(caller, "function", json_text(calls_name(c, callers[i].caller)));
        json_object_object_add(caller, "calls", json_object_new_uint64(callers[i].calls));
        json_object_array_add(list, caller);
    }
    return about;
}

static bool print_calls_json(const call_view *v)
{
    const calls *c = &v->calls;
    json_object *document = json_object_new_object(), *list = json_object_new_array();
    json_object_object_add(document, "calls", json_object_new_uint64(c->total));
    json_object_object_add(document, "functions", json_object_new_uint64(c->function_count));
    json_object_object_add(document, "lost", json_object_new_uint64(c->lost));
    json_object_object_add(document, "seconds", json_object_new_double((double)(c->to_ns - c->from_ns) / 1e9));
    json_object_object_add(document, "list", list);
    for (size_t i = 0; i < v->count; i++)
        json_object_array_add(list, describe_function(v, v->order[i]));
    return json_document_write(document, stdout);
}

/* Draws the number of calls of each function as a bar. On failure, reports the problem and returns false. */
static bool plot_calls(const call_view *v, const char *path)
{
    char *title = call_view_summary(v);
    const rules_file rules = {.title = title};
    summary bars = {.title = "Calls of functions", .plot = PLOT_BARS, .by = {"function"}, .by_count = 1, .unit = ""};
    summary_row *rows = nl_memory_check(calloc(v->count, sizeof *rows));
    bars.rows = nl_memory_check(calloc(v->count, sizeof(summary_row *)));
    for (; bars.row_count < v->count; bars.row_count++) {
        const call_function *f = &v->calls.functions[v->order[bars.row_count]];
        rows[bars.row_count] = (summary_row){.labels = {f->name}, .count = f->calls};
        bars.rows[bars.row_count] = &rows[bars.row_count];
    }
    bool ok = summaries_draw(&(summaries){.rules = &rules, .list = &bars, .count = 1}, path);
    free(bars.rows);
    free(rows);
    free(title);
    return ok;
}

int command_calls(int argc, char **argv)
{
    arguments a = {.view = {.top = TOP_DEFAULT}};
    int first = options_parse(&usage, argc, argv, &a);
    int status = call_view_read(&a.view, &a.input, argv + first, (size_t)(argc - first));
    if (a.view.count > 0 && !a.json)
        print_calls(&a.view);
    else if (a.view.count > 0 && !print_calls_json(&a.view))
        status = PROGRAM_PROBLEM;
    if (a.view.count > 0 && a.picture != NULL && !plot_calls(&a.view, a.picture)) {
        program_print_error();
        status = PROGRAM_PROBLEM;
    }
    call_view_free(&a.view);
    return status;
}
