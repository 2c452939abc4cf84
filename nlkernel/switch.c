/* nlkernel switch: a recorder that runs, or some of its events, off and on again. */
#include "config.h"

#include "choice.h"
#include "command.h"
#include "instance.h"
#include "program/program.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    const char *tracefs;
    long recorder; /* its process; 0: the only one */
    bool on;
    char **patterns;
    int pattern_count;
} arguments;

enum { OPTION_RECORDER = 0x1500, OPTION_TRACEFS };

static const struct argp_option options[] = {
    {"recorder", OPTION_RECORDER, "PID", 0, "The process that records, when there are several", 1},
    {"tracefs", OPTION_TRACEFS, "FOLDER", 0, "Where tracefs is mounted (default: wherever it is)", 1},
    {0},
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case OPTION_RECORDER:
        a->recorder = strtol(argument, NULL, 10);
        if (a->recorder <= 0)
            argp_error(state, "--recorder %s: the number of a process is wanted", argument);
        return 0;
    case OPTION_TRACEFS:
        a->tracefs = argument;
        return 0;
    case ARGP_KEY_ARGS:
        a->on = strcmp(state->argv[state->next], "on") == 0;
        if (!a->on && strcmp(state->argv[state->next], "off") != 0)
            argp_error(state, "on or off is wanted");
        a->patterns = state->argv + state->next + 1;
        a->pattern_count = state->argc - state->next - 1;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "on or off is wanted");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "on|off [EVENT...]",
    .doc = "Switch a recorder that runs off and on again, or only those of its events that are named, as for record -e."
           "\vThe recorder says so in its log: NetLogger.Switch. Without a command it is done by files: those of the "
           "recorder's instance of tracefs, instances/nlkernel-*-PID-*/tracing_on and events/SYSTEM/EVENT/enable."};

/* The folder of the recorder that is meant, to be freed; NULL with the reason. */
static char *find_recorder(const arguments *a, const tracing *t)
{
    char **dirs, *found = NULL, text[256] = "";
    int *processes;
    size_t count = instance_list(t, &dirs, &processes), size = 0;
    for (size_t i = 0; i < count; i++) {
        if ((a->recorder == 0 && count == 1) || processes[i] == a->recorder) {
            found = strdup(dirs[i]);
            NL_REQUIRE(found != NULL, "out of memory");
        }
        if (size < sizeof text)
            size += (size_t)snprintf(text + size, sizeof text - size, " %d", processes[i]);
        free(dirs[i]);
    }
    free(dirs);
    free(processes);
    if (found == NULL && count == 0)
        nl_error_set("no recorder runs");
    else if (found == NULL && a->recorder != 0)
        nl_error_set("--recorder %ld: that is none: these record:%s", a->recorder, text);
    else if (found == NULL)
        nl_error_set("several record: say which by --recorder:%s", text);
    return found;
}

static bool set(const char *dir, const char *file, bool on)
{
    char *path;
    NL_REQUIRE(asprintf(&path, "%s/%s", dir, file) >= 0, "out of memory");
    bool good = tracing_write(path, on ? "1" : "0");
    free(path);
    return good;
}

/* Of the events that are named: those that the recorder has not in its log are of no use to it, and counted. */
static bool set_events(const arguments *a, const tracing *t, const char *dir)
{
    event_names names = {0};
    char file[256];
    bool good = event_names_read(&names, t);
    for (int i = 0; good && i < a->pattern_count; i++)
        good = event_names_choose(&names, a->patterns[i]);
    for (size_t i = 0; good && i < names.count; i++)
        if (names.list[i].chosen) {
            snprintf(file, sizeof file, "events/%s/%s/enable", names.list[i].system, names.list[i].event);
            good = set(dir, file, a->on);
        }
    event_names_free(&names);
    return good;
}

int command_switch(int argc, char **argv)
{
    arguments a = {0};
    tracing t;
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    if (!tracing_open(&t, a.tracefs)) {
        program_error("%s", nl_error_message());
        return PROGRAM_PROBLEM;
    }
    char *dir = find_recorder(&a, &t);
    bool good = dir != NULL && (a.pattern_count > 0 ? set_events(&a, &t, dir) : set(dir, "tracing_on", a.on));
    if (!good)
        program_error("%s", nl_error_message());
    free(dir);
    tracing_close(&t);
    return good ? PROGRAM_DONE : PROGRAM_PROBLEM;
}
