/* nlv: draws logs in a window, with --render into a file, or with --serve in a browser. */
#include "config.h"

#include "model/compare_query.h"
#include "model/filters.h"
#include "model/model.h"
#include "scene/render.h"
#include "scene/scene.h"
#include "serve/serve.h"
#include "view/window.h"

#include "program/program.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct arguments {
    const char *render;
    const char *serve; /* an address, or "" for the default */
    const char *write_config;
    const char *title, *caption;
    int width, height;
    window_options look; /* options that apply to the window and to --render */
    model_options model;
    char **sources;
    int source_count;
    program_reading reading;
} arguments;

static bool set_render(void *settings, const nl_option *row, const char *value)
{
    (void)row;
    ((arguments *)settings)->render = value;
    return render_knows(value) ||
           nl_error_false(NL_ERROR_INVALID, "%s: the name must end in .png, .svg or .pdf", value);
}

static bool set_size(void *settings, const nl_option *row, const char *value)
{
    arguments *a = settings;
    char more;
    (void)row;
    bool good = sscanf(value, "%5dx%5d%c", &a->width, &a->height, &more) == 2 && a->width >= 100 && a->height >= 100 &&
                a->width <= 20000 && a->height <= 20000;
    return good ||
           nl_error_false(NL_ERROR_INVALID, "\"%s\" is not WIDTHxHEIGHT, with numbers from 100 to 20000", value);
}

static bool set_serve(void *settings, const nl_option *row, const char *value)
{
    (void)row;
    ((arguments *)settings)->serve = value;
    return true;
}

static bool set_where(void *settings, const nl_option *row, const char *value)
{
    (void)row;
    ((arguments *)settings)->look.where = value;
    return filters_accept(value);
}

static bool set_compare(void *settings, const nl_option *row, const char *value)
{
    (void)row;
    window_options *look = &((arguments *)settings)->look;
    const bool is_second = look->compares && look->compared[0] != NULL;
    if (look->compares && (*value == '\0' || look->compared[0] == NULL || look->compared[1] != NULL))
        return nl_error_false(NL_ERROR_INVALID, "at most two groups can be compared");
    look->compares = true;
    if (*value == '\0')
        return true;
    look->compared[is_second] = value;
    compare_query *query = compare_query_parse(value, NULL);
    compare_query_free(query);
    return query != NULL;
}

static const nl_option options[] = {
    {.name = "config",
     .letter = 'c',
     .value = "FILE",
     .initial = "(detected in the log)",
     NL_OPTION_MEMBER(arguments, look.config),
     .help = "Configuration file, or the name of a ready-made drawing, such as connections or dpss. The file names the "
             "events of lifelines and points, and the fields of loadlines"},
    {.name = "render",
     .value = "FILE",
     .set = set_render,
     NL_OPTION_MEMBER(arguments, render),
     .help = "Write the picture to FILE.png, FILE.svg or FILE.pdf instead of opening a window"},
    {.name = "serve",
     .value = "ADDRESS",
     .initial = "(http://127.0.0.1:14832)",
     .optional_value = true,
     .set = set_serve,
     NL_OPTION_MEMBER(arguments, serve),
     .help = "Show the views in a browser instead of a window: print a URL, and serve the page at this URL until "
             "Ctrl-C. ADDRESS is http://HOST[:PORT] on loopback, or https://HOST[:PORT]?cert=FILE&key=FILE. The server "
             "also answers Jaeger's query API"},
    {.name = "size", .value = "WxH", .initial = "1200x800", .set = set_size, .help = "Size of the picture in pixels"},
    {.name = "where",
     .value = "EXPRESSION",
     .set = set_where,
     .help = "Show only requests that match EXPRESSION. A test of a field, such as 'STATUS >= 500', selects the "
             "requests of matching records; 'request.duration > 50ms && span(\"Query\").self > 10ms' tests whole "
             "requests. doc/expressions.md describes the language"},
    {.name = "compare",
     .value = "EXPRESSION",
     .optional_value = true,
     .repeatable = true,
     .set = set_compare,
     .help =
         "Compare the requests of the first two SOURCEs, or two other groups of requests. EXPRESSION, such as "
         "'VERSION == 1', selects the requests of matching records as a group; log:NAME selects the requests of the "
         "SOURCE NAME. A second --compare selects the second group. Without it, the second group consists of all "
         "other requests"},
    {.name = "since",
     .type = NL_OPTION_TIME,
     NL_OPTION_MEMBER(arguments, look.since_ns),
     .help = "Begin the picture or the first view at TIME: 2026-01-31T12:00:00.5, 20260131120000.5, seconds since "
             "1970, or -10m for ten "
             "minutes ago"},
    {.name = "until",
     .type = NL_OPTION_TIME,
     NL_OPTION_MEMBER(arguments, look.until_ns),
     .help = "End the picture or the first view at TIME"},
    {.name = "title", NL_OPTION_MEMBER(arguments, title), .help = "Text above the picture"},
    {.name = "caption", NL_OPTION_MEMBER(arguments, caption), .help = "Text below the picture"},
    {.name = "threads",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, look.threads),
     .help = "Show a row for each thread, with its spans and the states that nlkernel has recorded"},
    {.name = "dark",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, look.dark),
     .help = "Draw on a dark background"},
    {.name = "write-config",
     .value = "FILE",
     NL_OPTION_MEMBER(arguments, write_config),
     .help = "Write the detected drawing to FILE, for --config"},
    {.name = "max-memory",
     .type = NL_OPTION_SIZE,
     .initial = "(half of the machine's memory, but at most 1g for network sources)",
     .minimum = 16 << 20,
     NL_OPTION_MEMBER(arguments, model.memory_max),
     .help = "Maximum memory for records; nlv keeps the newest records, and reports how many it does not show"},
    {.name = "fix-clocks",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, model.fix_clocks),
     .help = "Correct the hosts' clocks with the measurements and messages in the logs, as nlsort --fix-clocks does"},
    {.name = "no-index",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, model.no_index),
     .help = "Do not read or write LOG.nlv-index, the index that speeds up the next opening of a large log"},
    {.name = "directory",
     .value = "URL",
     .environment = "NLAGENT_DIRECTORY",
     NL_OPTION_MEMBER(arguments, look.directory),
     .help = "Show the pane that lists the hosts and sensors of this directory: an nlagentd that runs with "
             "--serve-directory (http://HOST:14831), or ldap://HOST"},
    {0},
};

static const options_usage usage = {
    .groups = (const options_group[]){{NULL, options, 0},
                                      {"Reading", program_reading_options, offsetof(arguments, reading)},
                                      {0}},
    .operands = "[SOURCE...]",
    .summary =
        "Draw logs. A lifeline shows a request's path through all programs and hosts, a loadline shows the use of a "
        "resource, and a point shows a single event. The window follows logs as they grow. " PROGRAM_SOURCES ".",
    .notes = "Examples:\n  nlv dpss.log\n  nlv --render dpss.png --config dpss.nlv dpss.log",
};

static void check_arguments(const arguments *a)
{
    if (a->source_count == 0 && (a->render != NULL || a->write_config != NULL || a->serve != NULL))
        options_fail("missing SOURCE");
    if (a->serve != NULL && (a->render != NULL || a->write_config != NULL))
        options_fail("--serve cannot be combined with --render or --write-config");
    if (a->look.compares && a->serve != NULL)
        options_fail("--compare cannot be combined with --serve");
    if (a->look.compares && a->look.compared[0] == NULL && a->source_count != 2)
        options_fail("--compare requires two SOURCEs or an EXPRESSION");
    if (a->look.since_ns >= a->look.until_ns)
        options_fail("--until must be after --since");
}

static drawing *read_config(const char *path)
{
    if (path == NULL)
        return NULL;
    drawing *d = drawing_read(path);
    if (d == NULL)
        program_fail_with_error(PROGRAM_PROBLEM);
    return d;
}

static void write_config(const model *m, const char *path)
{
    if (!drawing_write(model_drawing(m), path))
        program_fail(PROGRAM_PROBLEM, "write %s", nl_error_message());
}

static void render(const arguments *a, const model *m)
{
    scene_view view = scene_first(m, a->width, a->height);
    view.collapses = true;
    view.shows_threads = a->look.threads;
    view.title = a->title;
    view.caption = a->caption;
    view.dark = a->look.dark;
    view.hides_empty = true;
    view.histogram = true;
    if (a->look.since_ns != INT64_MIN)
        view.from_ns = a->look.since_ns;
    if (a->look.until_ns != INT64_MAX)
        view.to_ns = a->look.until_ns;
    if (view.from_ns >= view.to_ns)
        program_fail(PROGRAM_PROBLEM, "no records between --since and --until");
    if (!render_to_file(m, &view, a->render))
        program_fail_with_error(PROGRAM_PROBLEM);
}

/* Draws the comparison into the file of --render. Exits with a message on failure. Returns whether there was enough
 * data. */
static bool render_comparison(const arguments *a, const model *m)
{
    const comparison *c = model_comparison(m);
    comparison_view view = {.width = a->width, .height = a->height, .dark = a->look.dark};
    waterfall *requests[COMPARED_SIDES] = {NULL};
    for (unsigned side = 0; side < COMPARED_SIDES; side++)
        view.requests[side] = requests[side] = comparison_read_typical(m, c, side);
    const bool is_drawn = render_comparison_to_file(c, &view, a->render);
    for (unsigned side = 0; side < COMPARED_SIDES; side++)
        waterfall_free(requests[side]);
    if (!is_drawn)
        program_fail_with_error(PROGRAM_PROBLEM);
    if (c->reason != NULL)
        program_error("%s", c->reason);
    return c->reason == NULL;
}

static void print_notices(model *m)
{
    for (char *text; (text = model_take_notice(m)) != NULL; g_free(text))
        program_error("%s", text);
}

static int work_headless(arguments *a)
{
    model *m = model_new(read_config(a->look.config), &a->reading);
    bool good = true;
    a->model.reads_requests = a->render != NULL;
    model_set_options(m, a->model);
    if (a->look.threads)
        model_want_threads(m);
    if (a->look.where != NULL)
        model_set_filter(m, a->look.where);
    for (int i = 0; i < a->source_count; i++)
        good = model_add_source(m, a->sources[i], false) && good;
    if (a->look.compares && !model_compare(m, a->look.compared[0], a->look.compared[1]))
        program_fail_with_error(PROGRAM_PROBLEM);
    model_load(m);
    print_notices(m);
    char *missing = model_missing(m);
    good = good && missing == NULL;
    g_free(missing);
    int64_t from_ns, to_ns;
    if (!model_time_range(m, &from_ns, &to_ns)) {
        if (good && a->look.where != NULL && a->reading.malformed == 0 && !a->reading.failed)
            program_error("no record or request matches --where");
        else
            program_has_records(&a->reading, 0, "");
        exit(program_finish(PROGRAM_PROBLEM));
    }
    program_count_records(&a->reading, 1); /* any number above 0 means that the log has records */
    if (a->write_config != NULL)
        write_config(m, a->write_config);
    if (a->render != NULL && a->look.compares)
        good = render_comparison(a, m) && good;
    else if (a->render != NULL)
        render(a, m);
    model_free(m);
    return program_reading_finish(&a->reading) == PROGRAM_DONE && good ? PROGRAM_DONE : PROGRAM_PROBLEM;
}

/* Returns false and sets the error if a source is a file that nlv cannot read. */
static bool source_exists(const char *name)
{
    const char *path = strncmp(name, "file://", 7) == 0 ? name + 7 : name;
    const bool is_file = strcmp(name, "-") != 0 && strncmp(name, "unix:", 5) != 0 && strstr(path, "://") == NULL;
    return !is_file || access(path, R_OK) == 0 || nl_error_set_errno("%s", name) == NL_OK;
}

static int work_served(arguments *a)
{
    model *m = model_new(read_config(a->look.config), &a->reading);
    bool is_live = false, good = true;
    model_set_options(m, a->model);
    if (a->look.where != NULL)
        model_set_filter(m, a->look.where);
    for (int i = 0; i < a->source_count; i++) {
        if (!source_exists(a->sources[i]))
            good = program_print_error();
        else
            good = model_add_source(m, a->sources[i], true) && good;
        is_live = is_live || program_awaits_signal(a->sources[i]);
    }
    if (!good) {
        model_free(m);
        return PROGRAM_PROBLEM;
    }
    const views_look look = {a->look.since_ns, a->look.until_ns, a->title, a->look.dark, a->look.threads};
    return serve_run(m, &a->reading, a->serve, &look, is_live);
}

int main(int argc, char **argv)
{
    program_start("nlv");
    arguments a = {.look = {.since_ns = INT64_MIN, .until_ns = INT64_MAX}};
    int first = options_parse(&usage, argc, argv, &a);
    a.sources = argv + first;
    a.source_count = argc - first;
    check_arguments(&a);
    int status;
    if (a.render != NULL || a.write_config != NULL)
        status = work_headless(&a);
    else if (a.serve != NULL)
        status = work_served(&a);
    else
        status = window_run(read_config(a.look.config), &a.reading, a.model, a.sources, a.source_count, &a.look);
    return program_finish(status);
}
