/* nlkernel report --functions: how often each of the kernel's functions was called, and by whom. */
#include "config.h"

#include "call_draw.h"
#include "command.h"
#include "json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TOP_DEFAULT = 30, CALLERS_SHOWN = 2 };

typedef struct arguments {
    call_view view;
    const char *picture;
    bool functions, json;
    char **sources;
    size_t source_count;
} arguments;

static bool set_draw(void *settings, const nl_option *row, const char *value)
{
    (void)row;
    ((arguments *)settings)->picture = value;
    return call_draw_knows(value);
}

static const nl_option options[] = {
    {.name = "functions",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, functions),
     .help = "Report calls of functions"},
    {.name = "json",
     .letter = 'j',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, json),
     .help = "Print JSON, with all callers"},
    {.name = "draw",
     .value = "FILE",
     .set = set_draw,
     NL_OPTION_MEMBER(arguments, picture),
     .help = "Draw the calls of functions as bars in FILE.pdf, .svg, .png or .dot"},
    {0},
};

static const options_usage usage = {
    .name = "nlkernel report --functions",
    .groups = (const options_group[]){{NULL, options, 0}, CALL_VIEW_GROUPS(arguments), {0}},
    .operands = "[SOURCE...]",
    .summary = "Report the calls and the callers of each kernel function.",
    .notes = CALLS_SOURCES ".",
};

/* Who called a function, most calls first; *count of them. The edges are in order of functions. */
static const call_edge *callers_of(const calls *c, uint32_t function, size_t *count)
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

static void print_time(const calls *c, const call_function *f)
{
    if (c->timed)
        printf(" %10.3f", (double)f->time_ns / 1e6);
}

static void print_callers(const calls *c, uint32_t function)
{
    size_t count;
    const call_edge *callers = callers_of(c, function, &count);
    for (size_t i = 0; i < count && i < CALLERS_SHOWN; i++)
        printf("%s%s %.0f %%", i == 0 ? "" : ", ", calls_name(c, callers[i].caller),
               100 * (double)callers[i].calls / (double)c->functions[function].calls);
    if (count > CALLERS_SHOWN)
        printf(", and %zu more", count - CALLERS_SHOWN);
}

static void print_text(const call_view *v)
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
        size_t more;
        printf("%12" PRIu64 " %5.1f %%", f->calls, 100 * (double)f->calls / (double)c->total);
        print_time(c, f);
        printf("  %-32s ", calls_name(c, function));
        if (v->map.count > 0)
            printf("%s ", call_view_file(v, function, &more));
        print_callers(c, function);
        putchar('\n');
    }
    free(summary);
}

static void print_json(const call_view *v)
{
    const calls *c = &v->calls;
    printf("{\"calls\":%" PRIu64 ",\"functions\":%zu,\"lost\":%" PRIu64 ",\"seconds\":%.9f,\"list\":[", c->total,
           c->function_count, c->lost, (double)(c->to_ns - c->from_ns) / 1e9);
    for (size_t i = 0; i < v->count; i++) {
        uint32_t function = v->order[i];
        size_t count, more;
        const call_edge *callers = callers_of(c, function, &count);
        const char *file = call_view_file(v, function, &more);
        printf("%s{\"function\":", i == 0 ? "" : ",\n ");
        json_print_string(calls_name(c, function));
        printf(",\"calls\":%" PRIu64, c->functions[function].calls);
        if (c->timed)
            printf(",\"time_ns\":%" PRId64, c->functions[function].time_ns);
        if (*file != '\0') {
            printf(",\"file\":");
            json_print_string(file);
        }
        printf(",\"callers\":[");
        for (size_t j = 0; j < count; j++) {
            printf("%s{\"function\":", j == 0 ? "" : ",");
            json_print_string(calls_name(c, callers[j].caller));
            printf(",\"calls\":%" PRIu64 "}", callers[j].calls);
        }
        printf("]}");
    }
    printf("]}\n");
}

bool report_is_of_functions(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--functions") == 0)
            return true;
    return false;
}

int report_functions(int argc, char **argv)
{
    arguments a = {.view = {.top = TOP_DEFAULT}};
    int first = options_parse(&usage, argc, argv, &a);
    a.sources = argv + first;
    a.source_count = (size_t)(argc - first);
    int status = call_view_read(&a.view, a.sources, a.source_count);
    if (a.view.count > 0 && a.json)
        print_json(&a.view);
    else if (a.view.count > 0)
        print_text(&a.view);
    if (a.view.count > 0 && a.picture != NULL && !call_draw_bars(&a.view, a.picture))
        status = PROGRAM_PROBLEM;
    call_view_free(&a.view);
    return status;
}
