/* nlconv: logs from one format into another. Options, the passes over the input, and what is said at the end. */
#include "config.h"

#include "pipeline/pipeline.h"

#include "base/write_some.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { OPTION_FORMATS = 0x1000, OPTION_THREADS, OPTION_HOST, OPTION_BASE };

typedef struct arguments {
    const importer_kind *from;
    const exporter_kind *to;
    char *input;  /* NULL: standard input */
    char **files; /* an archive's, or the input */
    size_t file_count;
    const char *output;
    const char *drawing;
    bool strict;
    bool quiet;
    unsigned threads;
    import_about about;
    nl_filter *where;
    program_reading reading;
} arguments;

static const struct argp_option options[] = {
    {"from", 'f', "FORMAT", 0, "The input's format (default: told by its content)", 0},
    {"to", 't', "FORMAT", 0, "The output's format", 0},
    {"output", 'o', "FILE", 0, "Write to FILE, which takes its name when all is done (default: standard output)", 0},
    {"config", 'c', "FILE", 0, "Take lifelines and loadlines from an nlv file (default: found from the log)", 0},
    {"quiet", 'q', NULL, 0, "Do not say what the output's format can't hold", 0},
    {"threads", OPTION_THREADS, "N", 0, "Convert with so many threads (default: as many as there are processors)", 0},
    {"host", OPTION_HOST, "NAME", 0, "The host of records that name none (strace, perf)", 0},
    {"base", OPTION_BASE, "TIME", 0,
     "What times without a date count from: the day (YYYY-MM-DD) of strace -tt, the time at which perf's clock was 0",
     0},
    {"formats", OPTION_FORMATS, NULL, 0, "List the formats and end", 0},
    {0},
};

static const struct argp_child children[] = {
    {&program_where_argp, 0, NULL, 0}, {&program_reading_argp, 0, NULL, 1}, {&program_strict_argp, 0, NULL, 1}, {0}};

static void list_formats(void)
{
    printf("read:\n");
    for (size_t i = 0; importer_kinds[i] != NULL; i++)
        printf("  %-10s %s\n", importer_kinds[i]->name, importer_kinds[i]->what);
    printf("written:\n");
    for (size_t i = 0; exporter_kinds[i] != NULL; i++)
        printf("  %-10s %s\n", exporter_kinds[i]->name, exporter_kinds[i]->what);
    exit(program_finish(PROGRAM_DONE));
}

static void take_file(arguments *a, char *name, struct argp_state *state)
{
    if (a->input != NULL)
        argp_error(state, "one input at a time: \"%s\" is a second", name);
    a->input = name;
}

/* A time; a day, which begins at midnight here; or a time here as `uptime -s` says it. */
static bool read_base(const char *text, int64_t *time_ns)
{
    struct tm day = {.tm_isdst = -1};
    const char *end = strptime(text, strchr(text, ' ') != NULL ? "%Y-%m-%d %H:%M:%S" : "%Y-%m-%d", &day);
    if (end == NULL || *end != '\0')
        return nl_time_parse(text, strlen(text), NL_FRACTION_DECIMAL, time_ns) == NL_OK;
    return !__builtin_mul_overflow((int64_t)mktime(&day), NL_NS_PER_SECOND, time_ns);
}

/* Ends the program for a format that is not known. */
static void refuse_format(struct argp_state *state, const char *option, const char *name, const char *done)
{
    const char *missing = format_missing(name);
    if (missing != NULL)
        argp_error(state, "%s %s: this nlconv was built without %s", option, name, missing);
    argp_error(state, "%s %s: no such format is %s; --formats lists them", option, name, done);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    char *end;
    long count;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->where;
        state->child_inputs[1] = &a->reading;
        state->child_inputs[2] = &a->strict;
        return 0;
    case 'f':
        a->from = importer_kind_find(argument);
        if (a->from == NULL)
            refuse_format(state, "--from", argument, "read");
        return 0;
    case 't':
        a->to = exporter_kind_find(argument);
        if (a->to == NULL)
            refuse_format(state, "--to", argument, "written");
        return 0;
    case 'o':
        a->output = argument;
        return 0;
    case 'c':
        a->drawing = argument;
        return 0;
    case 'q':
        a->quiet = true;
        return 0;
    case OPTION_THREADS:
        count = strtol(argument, &end, 10);
        if (*argument == '\0' || *end != '\0' || count < 1 || count > 1024)
            argp_error(state, "--threads %s: it is a number from 1 to 1024", argument);
        a->threads = (unsigned)count;
        return 0;
    case OPTION_HOST:
        a->about.host = argument;
        return 0;
    case OPTION_BASE:
        a->about.has_base = read_base(argument, &a->about.base_ns);
        if (!a->about.has_base)
            argp_error(state, "--base %s: it is a day, YYYY-MM-DD, or a time", argument);
        return 0;
    case OPTION_FORMATS:
        list_formats();
        return 0;
    case ARGP_KEY_ARG:
        take_file(a, argument, state);
        return 0;
    case ARGP_KEY_END:
        if (a->to == NULL)
            argp_error(state, "--to is missing: which format is wanted? --formats lists them");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "--to FORMAT [SOURCE]",
    .doc = "Convert a log from one format into another. Without SOURCE, standard input. What the output's format can't "
           "hold is said once on standard error. " PROGRAM_SOURCES "."
           "\vExit status: 0 done; 1 something could not be read or written, or is missing (the rest is done all the "
           "same); 2 wrong use.\n\nExamples: nlconv --to json all.nlb\n  nlconv --to csv -o all.csv all.log\n  nlconv "
           "--from csv --to ulm < all.csv",
    .children = children,
};

static void say_undated(const pass *p)
{
    if (p->undated)
        program_error("%s: its times count from nobody says when, and are taken as from 1970: see --base",
                      p->sources[0]);
}

/* Copies an input to its end. False after having said what can't be read or written: half a copy is of no use. */
static bool copy_input(const char *url, int fd, const char *path)
{
    nl_source *source = program_source_open(url);
    const char *data;
    size_t size;
    nl_status status = NL_FAILED;
    if (source != NULL)
        while ((status = program_source_read(source, &data, &size)) == NL_OK && nl_write_all(fd, data, size))
            ;
    if (status == NL_FAILED)
        program_error("%s", nl_error_message());
    else if (status == NL_OK)
        program_error("write %s: %s", path, strerror(errno));
    nl_source_close(source);
    return status == NL_END;
}

/*
 * A copy of an input that can be read once only, such as standard input. Its name, which stays good while the program
 * runs; NULL after having said why there is none.
 */
static const char *keep_input(const char *url)
{
    static char name[32];
    const char *folder = getenv("TMPDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/nlconv.XXXXXX", folder != NULL && *folder != '\0' ? folder : "/tmp");
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0) {
        program_error("open %s: %s", path, strerror(errno));
        return NULL;
    }
    unlink(path);
    snprintf(name, sizeof name, "/dev/fd/%d", fd);
    return copy_input(url, fd, path) ? name : NULL;
}

static bool can_be_read_twice(const char *name)
{
    nl_url *url = nl_url_parse(name);
    nl_source *source = url != NULL && url->scheme == NL_SCHEME_FILE ? nl_source_open(url, false, false) : NULL;
    bool is_file = source != NULL && nl_source_size(source) > 0;
    nl_source_close(source);
    nl_url_free(url);
    return is_file;
}

/* When an input was written last: of one that is being written, now. */
static int64_t written_at(const char *url)
{
    struct stat what;
    nl_url *parsed = nl_url_parse(url);
    bool is_file =
        parsed != NULL && parsed->scheme == NL_SCHEME_FILE && stat(parsed->path, &what) == 0 && S_ISREG(what.st_mode);
    nl_url_free(parsed);
    return is_file ? (int64_t)what.st_mtim.tv_sec * NL_NS_PER_SECOND + what.st_mtim.tv_nsec : nl_time_now_ns();
}

/* A single source that can be read once only, a pipe, is copied for a second pass. False, after having said why. */
static bool make_readable_twice(pass *p)
{
    if (p->source_count == 1 && !can_be_read_twice(p->sources[0]))
        p->read_from = keep_input(p->sources[0]);
    return p->source_count != 1 || p->read_from != NULL || can_be_read_twice(p->sources[0]);
}

/* Makes the passes that the output's format needs. *keep: whether the output is to be kept. */
static bool convert(arguments *a, output *out, bool *keep)
{
    pass main_pass = {.sources = a->files,
                      .source_count = a->file_count,
                      .from = a->from,
                      .to = a->to,
                      .reading = &a->reading,
                      .where = a->where,
                      .strict = a->strict,
                      .about = a->about,
                      .out = out,
                      .threads = a->threads};
    main_pass.about.written_ns = a->file_count > 0 ? written_at(a->files[0]) : nl_time_now_ns();
    const exporter_kind *first = a->to->first_pass;
    if (first != NULL && !pass_reads_folder(&main_pass) && !make_readable_twice(&main_pass))
        return false;
    if (a->to->share != NULL && (main_pass.export_shared = a->to->share(a->drawing)) == NULL)
        return false;
    bool good = false;
    if (first != NULL) {
        pass first_pass = main_pass;
        first_pass.to = first;
        first_pass.is_first = true;
        pass_run(&first_pass);
        main_pass.from = first_pass.from;
        main_pass.unwritten = first_pass.unwritten;
    }
    if (!main_pass.unwritten)
        good = pass_run(&main_pass);
    if (a->to->unshare != NULL)
        a->to->unshare(main_pass.export_shared);
    if (!a->quiet)
        losses_say(main_pass.to->name, main_pass.losses);
    say_undated(&main_pass);
    *keep = !main_pass.unwritten && !main_pass.stopped;
    return good && !main_pass.stopped;
}

/* The files of the input: of an archive several, of a trace that is a folder the folder. */
static bool list_input(arguments *a)
{
    if (a->input != NULL && a->from == NULL && program_is_folder(a->input))
        a->from = importer_kind_detect_folder(a->input);
    if (a->input == NULL || a->from == NULL || a->from->read_path == NULL)
        return program_expand_archives(&a->reading, &a->input, a->input != NULL, &a->files, &a->file_count);
    a->files = calloc(1, sizeof *a->files);
    if (a->files == NULL || (a->files[0] = strdup(a->input)) == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    a->file_count = 1;
    return true;
}

int main(int argc, char **argv)
{
    program_start("nlconv", argv);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    arguments a = {.threads = processors > 1 ? (unsigned)processors : 1};
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    bool listed = list_input(&a);
    output *out = listed ? output_open(a.output) : NULL;
    bool keep = false, good = out != NULL && convert(&a, out, &keep);
    if (out != NULL)
        good &= output_close(out, keep);
    nl_filter_free(a.where);
    for (size_t i = 0; i < a.file_count; i++)
        free(a.files[i]);
    free(a.files);
    good = program_reading_finish(&a.reading) == PROGRAM_DONE && good;
    return program_finish(good ? PROGRAM_DONE : PROGRAM_PROBLEM);
}
