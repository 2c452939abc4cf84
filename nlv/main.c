/* nlv: draws logs, in a window or (--render) into a file. */
#include "config.h"

#include "model/model.h"
#include "scene/render.h"
#include "scene/scene.h"
#include "view/window.h"

#include "program/program.h"

#include <stdlib.h>
#include <string.h>

enum {
    OPTION_RENDER = 0x1000,
    OPTION_SIZE,
    OPTION_FROM,
    OPTION_TO,
    OPTION_TITLE,
    OPTION_CAPTION,
    OPTION_DARK,
    OPTION_WRITE_CONFIG,
    OPTION_MOST,
    OPTION_NO_INDEX,
    OPTION_FIX_CLOCKS,
    OPTION_DIRECTORY
};

typedef struct arguments {
    const char *config;
    const char *render;
    const char *write_config;
    const char *title, *caption;
    const char *directory;
    int width, height;
    bool has_from, has_to, dark;
    int64_t from_ns, to_ns;
    model_options model;
    char **sources;
    int source_count;
    program_reading reading;
} arguments;

static const struct argp_option options[] = {
    {"config", 'c', "FILE", 0,
     "What to draw: which events are lifelines and points, which fields loadlines; a file, or what is ready-made: "
     "dpss, http, bp-workflow, kernel-sched, kernel-interrupts, kernel-cpus, kernel-request (default: found out from "
     "the log)",
     0},
    {"render", OPTION_RENDER, "FILE", 0, "Draw into FILE.png, .svg or .pdf instead of a window", 0},
    {"size", OPTION_SIZE, "WxH", 0, "The picture's size (default 1200x800)", 0},
    {"from", OPTION_FROM, "TIME", 0, "Begin there: 2026-01-31T12:00:00.5, 20260131120000.5 or seconds since 1970", 0},
    {"to", OPTION_TO, "TIME", 0, "End there", 0},
    {"title", OPTION_TITLE, "TEXT", 0, "Write that above the picture", 0},
    {"caption", OPTION_CAPTION, "TEXT", 0, "Write that below the picture", 0},
    {"dark", OPTION_DARK, NULL, 0, "Draw on a dark ground", 0},
    {"write-config", OPTION_WRITE_CONFIG, "FILE", 0, "Write what was found out from the log, to be edited", 0},
    {"most", OPTION_MOST, "RECORDS", 0,
     "Keep so many records, the latest, of logs that go on without end (default: all of files, 20 million of what "
     "comes over the network); 1k is 1024",
     0},
    {"fix-clocks", OPTION_FIX_CLOCKS, NULL, 0,
     "Set the hosts' clocks right by what the logs hold of measurements and messages, as nlsort --fix-clocks does", 0},
    {"no-index", OPTION_NO_INDEX, NULL, 0,
     "Neither use nor leave LOG.nlv-index, by which a large log is there at once when it is opened again", 0},
    {"directory", OPTION_DIRECTORY, "URL", 0,
     "Show the pane of hosts and sensors, which are looked up there: an nlagentd --directory, http://HOST:14831, or "
     "ldap://HOST",
     0},
    {0},
};

static const struct argp_child children[] = {{&program_reading_argp, 0, NULL, 1}, {0}};

static void parse_size(struct argp_state *state, arguments *a, const char *text)
{
    char more;
    if (sscanf(text, "%5dx%5d%c", &a->width, &a->height, &more) != 2 || a->width < 100 || a->height < 100 ||
        a->width > 20000 || a->height > 20000)
        argp_error(state, "--size %s: WIDTHxHEIGHT, each 100 to 20000, is wanted", text);
}

static void parse_most(struct argp_state *state, arguments *a, const char *text)
{
    size_t most;
    if (!nl_size_parse(text, &most) || most == 0 || most > UINT32_MAX / 2)
        argp_error(state, "--most %s: a number of records is wanted, at most 2 G", text);
    a->model.records_most = (uint32_t)most;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->reading;
        return 0;
    case 'c':
        a->config = argument;
        return 0;
    case OPTION_RENDER:
        a->render = argument;
        if (!render_knows(argument))
            argp_error(state, "--render %s: the name has to end in .png, .svg or .pdf", argument);
        return 0;
    case OPTION_SIZE:
        parse_size(state, a, argument);
        return 0;
    case OPTION_FROM:
        a->from_ns = program_parse_time(state, argument);
        a->has_from = true;
        return 0;
    case OPTION_TO:
        a->to_ns = program_parse_time(state, argument);
        a->has_to = true;
        return 0;
    case OPTION_TITLE:
        a->title = argument;
        return 0;
    case OPTION_CAPTION:
        a->caption = argument;
        return 0;
    case OPTION_DARK:
        a->dark = true;
        return 0;
    case OPTION_MOST:
        parse_most(state, a, argument);
        return 0;
    case OPTION_FIX_CLOCKS:
        a->model.fix_clocks = true;
        return 0;
    case OPTION_NO_INDEX:
        a->model.no_index = true;
        return 0;
    case OPTION_DIRECTORY:
        a->directory = argument;
        return 0;
    case OPTION_WRITE_CONFIG:
        a->write_config = argument;
        return 0;
    case ARGP_KEY_ARGS:
        a->sources = state->argv + state->next;
        a->source_count = state->argc - state->next;
        return 0;
    case ARGP_KEY_END:
        if (a->source_count == 0 && (a->render != NULL || a->write_config != NULL))
            argp_error(state, "no log given");
        if (a->has_from && a->has_to && a->from_ns >= a->to_ns)
            argp_error(state, "--from is not before --to");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "[SOURCE...]",
    .doc = "Draw logs: each request's way through all programs and hosts as a lifeline, resources as loadlines, single "
           "happenings as points. In the window logs are followed as they grow. " PROGRAM_SOURCES "."
           "\vExamples: nlv dpss.log\n  nlv --render dpss.png --config dpss.nlv dpss.log",
    .children = children,
};

static drawing *read_config(const char *path)
{
    if (path == NULL)
        return NULL;
    char *message;
    drawing *d = drawing_read(path, &message);
    if (d == NULL)
        program_fail(PROGRAM_PROBLEM, "%s", message);
    return d;
}

static void write_config(const model *m, const char *path)
{
    char *message;
    if (!drawing_write(model_drawing(m), path, &message))
        program_fail(PROGRAM_PROBLEM, "write %s: %s", path, message);
}

static void render(const arguments *a, const model *m)
{
    scene_view view = scene_fit(m, a->width, a->height);
    view.title = a->title;
    view.caption = a->caption;
    view.dark = a->dark;
    if (a->has_from)
        view.from_ns = a->from_ns;
    if (a->has_to)
        view.to_ns = a->to_ns;
    if (view.from_ns >= view.to_ns)
        program_fail(PROGRAM_PROBLEM, "nothing of the log is between those times");
    char *message;
    if (!render_to_file(m, &view, a->render, &message))
        program_fail(PROGRAM_PROBLEM, "%s", message);
}

/* What a window would show in its bar. */
static void tell_notices(model *m)
{
    for (char *text; (text = model_take_notice(m)) != NULL; g_free(text))
        program_error("%s", text);
}

/* Everything without a window. Returns the exit status. */
static int work_headless(arguments *a)
{
    model *m = model_new(read_config(a->config), &a->reading);
    bool good = true;
    model_set_options(m, a->model);
    for (int i = 0; i < a->source_count; i++)
        good = model_add_source(m, a->sources[i], false) && good;
    model_load(m);
    if (a->model.fix_clocks)
        tell_notices(m);
    int64_t from_ns, to_ns;
    if (!model_time_range(m, &from_ns, &to_ns))
        program_fail(PROGRAM_PROBLEM, "there are no records to draw");
    if (a->write_config != NULL)
        write_config(m, a->write_config);
    if (a->render != NULL)
        render(a, m);
    model_free(m);
    return good && program_reading_finish(&a->reading) == PROGRAM_DONE ? PROGRAM_DONE : PROGRAM_PROBLEM;
}

int main(int argc, char **argv)
{
    program_start("nlv", argv);
    arguments a = {.width = 1200, .height = 800};
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    int status;
    if (a.render != NULL || a.write_config != NULL)
        status = work_headless(&a);
    else
        status = window_run(read_config(a.config), a.config, &a.reading, a.model, a.sources, a.source_count,
                            a.directory, a.dark);
    return program_finish(status);
}
