/* nlarchive: logs in a database, and records out of it. Options and the two commands. */
#include "config.h"

#include "archive/load.h"
#include "archive/query.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_FROM = 0x1000, OPTION_TO, OPTION_ID, LOOK_PAUSES = 40 };

typedef enum command { COMMAND_LOAD = 1, COMMAND_QUERY = 2 } command;

typedef struct arguments {
    command command;
    unsigned asked; /* of options, which commands take them */
    const char *asked_name;
    const char *archive;
    char **sources;
    size_t source_count;
    bool follow, quiet;
    char **ids;
    size_t id_count;
    const char *output;
    query query;
    nl_filter *where;
    program_reading reading;
} arguments;

static const struct argp_option options[] = {
    {"follow", 'f', NULL, 0, "load: go on as the sources grow, until SIGINT or SIGTERM", 0},
    {"id", OPTION_ID, "FIELD,...", 0,
     "load: those fields name an object; again for others. The views lifelines and steps are about them (default: "
     "found out from the first records)",
     0},
    {"from", OPTION_FROM, "TIME", 0,
     "query: records of then or later: 2026-01-31T12:00:00.5, 20260131120000.5 or seconds since 1970", 1},
    {"to", OPTION_TO, "TIME", 0, "query: records before that", 1},
    {"format", 't', "FORMAT", 0, "query: write that, as nlconv --formats lists them (default ulm)", 1},
    {"output", 'o', "FILE", 0, "query: write to FILE, which takes its name when all is done", 1},
    {"config", 'c', "FILE", 0, "query: take lifelines and loadlines from an nlv file, for formats that draw them", 1},
    {"quiet", 'q', NULL, 0, "Do not say how much was loaded, or what the output's format can't hold", 2},
    {0},
};

static const struct argp_child children[] = {{&program_where_argp, 0, NULL, 3},
                                             {&program_reading_argp, 0, "load, reading sources:", 4},
                                             {&program_strict_argp, 0, NULL, 4},
                                             {0}};

static void take_words(arguments *a, struct argp_state *state)
{
    char **words = state->argv + state->next;
    int count = state->argc - state->next;
    if (strcmp(words[0], "load") == 0)
        a->command = COMMAND_LOAD;
    else if (strcmp(words[0], "query") == 0)
        a->command = COMMAND_QUERY;
    else
        argp_error(state, "\"%s\" is no command: load and query are", words[0]);
    if (count < 2)
        argp_error(state, "%s: which ARCHIVE?", words[0]);
    a->archive = words[1];
    a->sources = words + 2;
    a->source_count = (size_t)(count > 2 ? count - 2 : 0);
    if (a->command == COMMAND_QUERY && count > 2)
        argp_error(state, "query: \"%s\" is more than an ARCHIVE", words[2]);
}

static void ask(arguments *a, command of, const char *name)
{
    a->asked |= of;
    a->asked_name = of == COMMAND_LOAD || a->asked_name == NULL ? name : a->asked_name;
}

static void add_id(arguments *a, struct argp_state *state, char *fields)
{
    if (!objects_are_fields(fields))
        argp_error(state, "--id %s: names of fields are wanted, with commas between", fields);
    a->ids = reallocarray(a->ids, a->id_count + 1, sizeof *a->ids);
    if (a->ids == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    a->ids[a->id_count++] = fields;
}

static void check(struct argp_state *state, const arguments *a)
{
    if (a->asked != 0 && (a->asked & ~(unsigned)a->command) != 0)
        argp_error(state, "%s: %s has no such option", a->asked_name, a->command == COMMAND_LOAD ? "load" : "query");
    if (a->query.from_ns >= a->query.to_ns)
        argp_error(state, "--from is not before --to");
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->where;
        state->child_inputs[1] = &a->reading;
        state->child_inputs[2] = &a->reading.strict;
        return 0;
    case 'f':
        a->follow = true;
        ask(a, COMMAND_LOAD, "--follow");
        return 0;
    case OPTION_ID:
        add_id(a, state, argument);
        ask(a, COMMAND_LOAD, "--id");
        return 0;
    case OPTION_FROM:
        a->query.from_ns = program_parse_time(state, argument);
        ask(a, COMMAND_QUERY, "--from");
        return 0;
    case OPTION_TO:
        a->query.to_ns = program_parse_time(state, argument);
        ask(a, COMMAND_QUERY, "--to");
        return 0;
    case 't':
        a->query.to = exporter_kind_find(argument);
        if (a->query.to == NULL)
            argp_error(state, "--format %s: no such format is written; nlconv --formats lists them", argument);
        ask(a, COMMAND_QUERY, "--format");
        return 0;
    case 'o':
        a->output = argument;
        ask(a, COMMAND_QUERY, "--output");
        return 0;
    case 'c':
        a->query.drawing = argument;
        ask(a, COMMAND_QUERY, "--config");
        return 0;
    case 'q':
        a->quiet = true;
        return 0;
    case ARGP_KEY_ARGS:
        take_words(a, state);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no command given: load or query");
        return 0;
    case ARGP_KEY_END:
        check(state, a);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .children = children,
    .args_doc = "load ARCHIVE [SOURCE...]\nquery ARCHIVE",
    .doc =
        "Keep logs in a database, where SQL can be asked of them. ARCHIVE is a file of SQLite, made if need be, or "
        "postgresql://[USER@][HOST]/DATABASE. load puts in what of the SOURCEs was not loaded yet, no event twice; "
        "query writes records in order of time. Without SOURCE, standard input. " PROGRAM_SOURCES "."
        "\vExamples: nlarchive load all.db logs/\n  nlarchive query --where 'HOST == h1' --format json all.db\n"
        "  sqlite3 all.db 'SELECT event, count(*) FROM events GROUP BY event'\n\n"
        "Exit status: 0 done; 1 something could not be read or written, or is missing (the rest is done all the same); "
        "2 wrong use.",
};

/* ---- load ---- */

/* A folder that can't be read is in trouble as a file is. */
static bool can_be_listed(loader *l, const char *folder)
{
    DIR *entries = opendir(folder);
    if (entries == NULL) {
        loader_trouble(l, folder, "open %s: %s", folder, strerror(errno));
        return false;
    }
    closedir(entries);
    loader_is_well(l, folder);
    return true;
}

static bool load_source(loader *l, const char *name)
{
    if (program_awaits_signal(name))
        return load_collector(l, name);
    if (program_is_folder(name) && !can_be_listed(l, name))
        return false;
    char **files;
    size_t count;
    char *names[] = {(char *)name};
    bool good = program_expand_archives(l->reading, names, 1, &files, &count);
    for (size_t i = 0; i < count; i++) {
        if (!l->failed && !program_was_stopped())
            good = load_file(l, files[i]) && good;
        free(files[i]);
    }
    free(files);
    return good;
}

static bool load_once(loader *l, char **names, size_t count)
{
    bool good = true;
    for (size_t i = 0; i < count && !l->failed && !program_was_stopped(); i++)
        good = load_source(l, names[i]) && good;
    return good;
}

static bool load_sources(const arguments *a, loader *l)
{
    static char *standard_input[] = {"-"};
    char **names = a->source_count > 0 ? a->sources : standard_input;
    size_t count = a->source_count > 0 ? a->source_count : 1;
    if (a->follow)
        program_catch_signals();
    bool good = load_once(l, names, count);
    l->quiet = true;
    while (a->follow && !l->failed && !program_was_stopped()) {
        for (int i = 0; i < LOOK_PAUSES && !program_was_stopped(); i++)
            program_pause();
        good = load_once(l, names, count) && good;
    }
    return good;
}

static bool load(arguments *a)
{
    store *s = store_open(a->archive, STORE_LOAD);
    if (s == NULL) {
        program_error("%s", store_why());
        return false;
    }
    objects *lines = objects_new(a->ids, a->id_count);
    loader *l = loader_new(s, &a->reading, a->where, lines);
    bool good = l != NULL;
    if (good) {
        l->quiet = a->follow;
        good = load_sources(a, l);
        program_progress_end();
        if (!l->failed && objects_define(lines, s) != NL_OK) {
            program_error("%s", store_why());
            good = false;
        }
        if (!a->quiet)
            fprintf(stderr, "nlarchive: %" PRIu64 " records loaded into %s\n", l->records, a->archive);
        loader_free(l);
    }
    objects_free(lines);
    store_close(s);
    return program_reading_finish(&a->reading) == PROGRAM_DONE && good;
}

/* ---- query ---- */

static bool ask_archive(arguments *a)
{
    store *s = store_open(a->archive, STORE_READ);
    if (s == NULL) {
        program_error("%s", store_why());
        return false;
    }
    a->query.where = a->where;
    a->query.quiet = a->quiet;
    output *out = output_open(a->output);
    bool good = out != NULL && query_run(s, &a->query, out);
    if (out != NULL)
        good = output_close(out, good) && good;
    store_close(s);
    return good;
}

int main(int argc, char **argv)
{
    program_start("nlarchive", argv);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow further is told of as a full disk is */
    arguments a = {.query = {.from_ns = INT64_MIN, .to_ns = INT64_MAX, .to = &ulm_exporter}};
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    bool good = a.command == COMMAND_LOAD ? load(&a) : ask_archive(&a);
    nl_filter_free(a.where);
    free(a.ids);
    return program_finish(good ? PROGRAM_DONE : PROGRAM_PROBLEM);
}
