/* nlconv: converts logs between formats. This file contains the options, the passes, and the final report. */
#include "config.h"

#include "pipeline/pipeline.h"

#include "base/memory.h"
#include "base/write_some.h"
#include "base/error.h"
#include "program/temporary_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct arguments {
    const importer_kind *from;
    const exporter_kind *to;
    char *input;  /* NULL: standard input */
    char **files; /* the files of an archive, or the input */
    size_t file_count;
    const char *output;
    const char *drawing;
    bool quiet;
    bool strict;
    unsigned threads;
    import_about about;
    program_where where;
    program_reading reading;
} arguments;

static bool list_formats(void *settings, const nl_option *row, const char *value)
{
    (void)settings, (void)row, (void)value;
    printf("read:\n");
    const importer_kind *from;
    for (size_t i = 0; (from = importer_kind_at(i)) != NULL; i++)
        printf("  %-10s %s\n", from->name, from->what);
    printf("written:\n");
    const exporter_kind *to;
    for (size_t i = 0; (to = exporter_kind_at(i)) != NULL; i++)
        printf("  %-10s %s\n", to->name, to->what);
    exit(program_finish(PROGRAM_DONE));
}

static bool set_format(void *settings, const nl_option *row, const char *value)
{
    arguments *a = settings;
    (void)row;
    a->to = exporter_kind_find(value);
    return a->to != NULL || nl_error_false(NL_ERROR_INVALID, "%s: unknown format; --formats lists the formats", value);
}

static const nl_option options[] = {
    {.name = "format", .value = "FORMAT", .set = set_format, .help = "Output format; required"},
    {.name = "formats", .type = NL_OPTION_FLAG, .set = list_formats, .help = "List all formats and exit"},
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .initial = "(standard output)",
     NL_OPTION_MEMBER(arguments, output),
     .help = "Write the output to FILE; nlconv creates or replaces FILE when the output is complete"},
    {.name = "config",
     .letter = 'c',
     .value = "FILE",
     .initial = "(detected in the log)",
     NL_OPTION_MEMBER(arguments, drawing),
     .help = "Read lifelines and loadlines from an nlv configuration file"},
    {.name = "quiet",
     .letter = 'q',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, quiet),
     .help = "Do not report data that the output format cannot represent"},
    {.name = "threads",
     .type = NL_OPTION_COUNT,
     .initial = "(one per processor)",
     .minimum = 1,
     .maximum = 1024,
     NL_OPTION_MEMBER(arguments, threads),
     .help = "Number of conversion threads"},
    {.name = "host",
     .value = "NAME",
     NL_OPTION_MEMBER(arguments, about.host),
     .help = "Value of HOST in records that do not name a host, unless the input is ulm, bp, logfmt or nlb"},
    {0},
};

static const options_usage usage = {
    .groups = (const options_group[]){{NULL, options, 0},
                                      {"Selecting records", program_where_options, offsetof(arguments, where)},
                                      {"Reading", program_reading_options, offsetof(arguments, reading)},
                                      {"Reading", program_strict_options, offsetof(arguments, reading)},
                                      {0}},
    .operands = "--format FORMAT [SOURCE]",
    .summary = "Convert a log from one format into another. Without SOURCE, read standard input. For each kind "
               "of data that the output format cannot represent, nlconv prints one message. " PROGRAM_SOURCES ".",
    .notes = "Exit status: 0 success; 1 reading or writing failed, or records are malformed or missing (nlconv "
             "converts the other records); 2 usage error.\n\nExamples:\n  nlconv --format json all.nlb\n  nlconv "
             "--format csv -o all.csv "
             "all.log\n  nlconv --from-format csv --format ulm < all.csv",
};

static void say_undated(const pass *p)
{
    if (p->undated)
        program_error("%s: times without a date were read as times in 1970; set the date with --base", p->sources[0]);
}

/* Copies the whole input to fd. On failure, reports the error and returns false, because a partial copy is useless. */
static bool copy_input(program_reading *reading, const char *url, int fd)
{
    nl_source *source = program_source_open_stored(url);
    const char *data;
    size_t size;
    nl_status status = NL_FAILED;
    if (source != NULL)
        while ((status = program_source_read(source, &data, &size)) == NL_OK && nl_write_all(fd, data, size))
            ;
    if (status == NL_FAILED)
        program_input_failed(reading);
    else if (status == NL_OK)
        program_error("write a temporary file: %s", strerror(errno));
    nl_source_close(source);
    return status == NL_END;
}

/*
 * Copies an input that can be read only once, such as standard input. Returns the name of the copy, which is valid
 * while the program runs, or NULL after reporting an error.
 */
static const char *keep_input(program_reading *reading, const char *url)
{
    static char name[32];
    int fd = temporary_file_open(NULL);
    if (fd < 0) {
        program_print_error();
        return NULL;
    }
    snprintf(name, sizeof name, "/dev/fd/%d", fd);
    return copy_input(reading, url, fd) ? name : NULL;
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

/* Returns the time of the last write to a file or, for other inputs, the current time. In nanoseconds since 1970. */
static int64_t written_at(const char *url)
{
    struct stat what;
    nl_url *parsed = nl_url_parse(url);
    bool is_file =
        parsed != NULL && parsed->scheme == NL_SCHEME_FILE && stat(parsed->path, &what) == 0 && S_ISREG(what.st_mode);
    nl_url_free(parsed);
    return is_file ? (int64_t)what.st_mtim.tv_sec * NL_NS_PER_SECOND + what.st_mtim.tv_nsec : nl_time_now_ns();
}

/*
 * If the only source can be read only once, such as a pipe, copies it for a second pass. On failure, reports the error
 * and returns false.
 */
static bool make_readable_twice(pass *p)
{
    if (p->source_count == 1 && !can_be_read_twice(p->sources[0]))
        p->copy = keep_input(p->reading, p->sources[0]);
    return p->source_count != 1 || p->copy != NULL || can_be_read_twice(p->sources[0]);
}

/*
 * Makes the passes that the output format requires. Sets *keep to whether the output is valid. On failure, reports the
 * error and returns false.
 */
static bool convert(arguments *a, output *out, bool *keep)
{
    pass main_pass = {.sources = a->files,
                      .source_count = a->file_count,
                      .from = a->from,
                      .to = a->to,
                      .reading = &a->reading,
                      .where = a->where.filter,
                      .strict = a->strict,
                      .about = a->about,
                      .out = out,
                      .threads = a->threads};
    main_pass.about.written_ns = a->file_count > 0 ? written_at(a->files[0]) : nl_time_now_ns();
    const exporter_kind *first = a->to->first_pass;
    if (first != NULL && !pass_reads_directory(&main_pass) && !make_readable_twice(&main_pass))
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
        main_pass.failed = first_pass.failed;
    }
    if (!main_pass.failed)
        good = pass_run(&main_pass);
    if (a->to->unshare != NULL)
        a->to->unshare(main_pass.export_shared);
    if (!a->quiet)
        losses_report(main_pass.to->name, main_pass.losses);
    say_undated(&main_pass);
    *keep = !main_pass.unwritten && !main_pass.stopped;
    return good && !main_pass.stopped;
}

/*
 * Lists the input files: the files of an archive, or a single input, which may be a trace directory. On failure,
 * reports the error and returns false.
 */
static bool list_input(arguments *a)
{
    if (a->input != NULL && a->from == NULL && program_is_directory(a->input))
        a->from = importer_kind_detect_directory(a->input);
    if (a->input == NULL || a->from == NULL || a->from->read_path == NULL)
        return program_expand_archives(&a->reading, &a->input, a->input != NULL, &a->files, &a->file_count);
    program_add_source(&a->reading, a->input);
    a->files = nl_memory_check(calloc(1, sizeof *a->files));
    a->files[0] = nl_memory_check(strdup(a->input));
    a->file_count = 1;
    return true;
}

int main(int argc, char **argv)
{
    program_start("nlconv");
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    arguments a = {.threads = processors > 1 ? (unsigned)processors : 1};
    int first = options_parse(&usage, argc, argv, &a);
    a.from = a.reading.foreign != NULL               ? a.reading.foreign
             : a.reading.format != NL_FORMAT_UNKNOWN ? netlogger_importer_kind(a.reading.format)
                                                     : NULL;
    /* With --strict, nlconv must write the records before the first malformed record, so the reader must not end the
     * program. */
    a.strict = a.reading.strict;
    a.reading.strict = false;
    a.about.has_base = a.reading.has_base;
    a.about.base_ns = a.reading.base_ns;
    a.about.time_field = a.reading.time_field;
    if (a.to == NULL)
        options_fail("missing --format; --formats lists the formats");
    if (argc - first > 1)
        options_fail("%s: unexpected argument; nlconv converts one input", argv[first + 1]);
    a.input = argv[first];
    bool listed = list_input(&a);
    output *out = listed ? output_open(a.output) : NULL;
    bool keep = false, good = out != NULL && convert(&a, out, &keep);
    if (out != NULL)
        good &= output_close(out, keep);
    else
        a.reading.failed = true; /* do not also report that the input has no records */
    nl_filter_free(a.where.filter);
    for (size_t i = 0; i < a.file_count; i++)
        free(a.files[i]);
    free(a.files);
    good = program_reading_finish(&a.reading) == PROGRAM_DONE && good;
    return program_finish(good ? PROGRAM_DONE : PROGRAM_PROBLEM);
}
