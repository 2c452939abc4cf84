/* nlarchive: loads logs into a database, and queries it. This file contains the options and the two commands. */
#include "config.h"

#include "base/text.h"
#include "archive/load.h"
#include "archive/query.h"
#include "base/memory.h"
#include "base/error.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_PAUSES = 40 };

typedef struct arguments {
    bool is_load; /* true: load; false: query */
    const char *database;
    char **sources;
    size_t source_count;
    bool follow, quiet;
    char **ids;
    size_t id_count;
    const char *output;
    query query;
    program_where where;
    program_reading reading;
} arguments;

static bool add_id(void *settings, const nl_option *row, const char *value)
{
    arguments *a = settings;
    (void)row;
    if (!objects_are_fields(value)) {
        return nl_error_false(NL_ERROR_INVALID, "\"%s\" is not a comma-separated list of field names", value);
    }
    a->ids = nl_memory_check(reallocarray(a->ids, a->id_count + 1, sizeof *a->ids));
    a->ids[a->id_count++] = (char *)value;
    return true;
}

static bool set_format(void *settings, const nl_option *row, const char *value)
{
    (void)row;
    ((arguments *)settings)->query.to = exporter_kind_find(value);
    return ((arguments *)settings)->query.to != NULL ||
           nl_error_false(NL_ERROR_INVALID, "%s: unknown format; nlconv --formats lists the formats", value);
}

static const nl_option options[] = {
    {.name = "follow",
     .letter = 'f',
     .type = NL_OPTION_FLAG,
     .commands = "load",
     NL_OPTION_MEMBER(arguments, follow),
     .help = "Wait for new records at the end of the sources, until SIGINT or SIGTERM"},
    {.name = "id",
     .value = "FIELD,...",
     .initial = "(detected in the first records)",
     .commands = "load",
     .repeatable = true,
     .set = add_id,
     .help = "Fields that identify a request, for the lifelines and steps views"},
    {.name = "format",
     .value = "FORMAT",
     .initial = "ulm",
     .commands = "query",
     .set = set_format,
     .help = "Output format; nlconv --formats lists the formats"},
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .initial = "(standard output)",
     .commands = "query",
     NL_OPTION_MEMBER(arguments, output),
     .help = "Write the output to FILE; nlarchive creates or replaces FILE when the output is complete"},
    {.name = "config",
     .letter = 'c',
     .value = "FILE",
     .commands = "query",
     NL_OPTION_MEMBER(arguments, query.drawing),
     .help = "Read lifelines and loadlines from an nlv configuration file, for output formats that contain them"},
    {.name = "quiet",
     .letter = 'q',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, quiet),
     .help = "Do not report the number of loaded records or data that the output format cannot represent"},
    {0},
};

static const options_command commands[] = {
    {"load", "DATABASE [SOURCE...]", "Load the new records of the SOURCEs into DATABASE"},
    {"query", "DATABASE", "Write records in time order"},
    {0},
};

static const options_usage usage = {
    .groups = (const options_group[]){{NULL, options, 0},
                                      {"Selecting records", program_where_options, offsetof(arguments, where)},
                                      {"Reading sources (load)", program_reading_options, offsetof(arguments, reading)},
                                      {"Reading sources (load)", program_strict_options, offsetof(arguments, reading)},
                                      {0}},
    .commands = commands,
    .summary =
        "Store logs in a database, and query it with expressions or SQL. DATABASE is an SQLite file, which the load "
        "command creates, or postgresql://[USER@][HOST]/NAME. Without SOURCE, read standard input. " PROGRAM_SOURCES
        ".",
    .notes =
        "Examples:\n  nlarchive load all.db logs/\n  nlarchive query --where 'HOST == h1' --format json all.db\n  "
        "sqlite3 all.db 'SELECT event, count(*) FROM events GROUP BY event'\n\nExit status: 0 success; 1 "
        "reading or writing failed, or records are malformed or missing (nlarchive processes the other records); 2 "
        "usage error.",
};

static void nlarchive_read_arguments(arguments *a, int argc, char **argv)
{
    int first = options_parse(&usage, argc, argv, a);
    a->is_load = strcmp(argv[first], "load") == 0;
    if (argc - first < 2)
        options_fail("%s: missing DATABASE", argv[first]);
    a->database = argv[first + 1];
    a->sources = argv + first + 2;
    a->source_count = (size_t)(argc - first - 2);
    if (!a->is_load && a->source_count > 0)
        options_fail("query: %s: unexpected argument", a->sources[0]);
    a->query.from_ns = a->where.ranged ? a->where.since_ns : INT64_MIN;
    a->query.to_ns = a->where.ranged ? a->where.until_ns : INT64_MAX;
}

/* ---- load ---- */

/* Returns whether the process can read a directory. If not, reports the same error as for a file. */
static bool can_be_listed(loader *l, const char *directory)
{
    DIR *entries = opendir(directory);
    if (entries == NULL) {
        nl_error_set_errno("%s", directory);
        loader_trouble(l, directory);
        return false;
    }
    closedir(entries);
    loader_is_well(l, directory);
    return true;
}

static bool load_source(loader *l, const char *name)
{
    if (program_awaits_signal(name))
        return load_collector(l, name);
    if (program_is_directory(name) && !can_be_listed(l, name))
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

/* Loads the sources, and defines the lifelines. On failure, reports the error and returns false. */
static bool load_into(arguments *a, store *s)
{
    objects *lines = objects_new(a->ids, a->id_count);
    loader *l = loader_new(s, &a->reading, a->where.filter, lines);
    bool good = l != NULL;
    if (good) {
        l->quiet = a->follow;
        good = load_sources(a, l);
        program_progress_end();
        if (!l->failed && objects_define(lines, s) != NL_OK) {
            program_print_error();
            good = false;
        }
        if (!a->quiet && (a->reading.records > 0 || a->reading.live))
            printf("%" PRIu64 " record%s loaded into %s\n", l->records, nl_plural(l->records), a->database);
        loader_free(l);
    }
    objects_free(lines);
    return good;
}

static bool load(arguments *a)
{
    bool existed = access(a->database, F_OK) == 0;
    a->reading.live = a->follow;
    store *s = store_open(a->database, a->follow ? STORE_FOLLOW : STORE_LOAD);
    if (s == NULL)
        return program_print_error();
    bool good = load_into(a, s), is_file = s->kind == &sqlite_store;
    store_close(s);
    if (is_file && !existed && a->reading.records == 0 && !a->reading.live)
        unlink(a->database);
    return program_reading_finish(&a->reading) == PROGRAM_DONE && good;
}

/* ---- query ---- */

static bool ask_archive(arguments *a)
{
    store *s = store_open(a->database, STORE_READ);
    if (s == NULL)
        return program_print_error();
    a->query.where = a->where.filter;
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
    program_start("nlarchive");
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the file size limit then returns an error, as on a full disk */
    arguments a = {0};
    nlarchive_read_arguments(&a, argc, argv);
    bool good = a.is_load ? load(&a) : ask_archive(&a);
    nl_filter_free(a.where.filter);
    free(a.ids);
    return program_finish(good ? PROGRAM_DONE : PROGRAM_PROBLEM);
}
