/* nlsort: orders and merges logs. Options, and the four ways through: sort in memory, sort by way of disk, merge,
 * check. */
#include "config.h"

#include "by_time.h"
#include "fix_clocks.h"
#include "input.h"
#include "key.h"
#include "live.h"
#include "merge.h"
#include "spill.h"
#include "store.h"
#include "unique.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

enum {
    OPTION_FORMAT = 0x1000,
    OPTION_WINDOW,
    OPTION_LATE,
    WRITE_SIZE = 256 << 10,
    RUN_BUFFER = 1 << 20,
    RUN_BUFFER_LEAST = 16 << 10,
    DESCRIPTORS_KEPT = 16, /* beside the inputs of a merge */
    MEMORY_LEAST = 16 << 20,
};

typedef struct arguments {
    input_settings input;
    key *key;
    bool merge, check, reverse;
    fix_options clocks;
    fix_clocks *fixed;
    size_t memory; /* bytes */
    const char *directory;
    const char *output;
    int64_t window_ns; /* 0: not live */
    bool follow;
    const char *late;
    char **files;
    size_t file_count;
    char **expanded; /* files, when they are to be freed */
} arguments;

static const struct argp_option options[] = {
    {"key", 'k', "FIELD[:OPTIONS]", 0,
     "Order by FIELD; again for a second key, and so on. OPTIONS: t time, n number, s text, r descending. Without a "
     "type, by content: numbers by value, before text. Without any key: by time. Records without the field come first",
     0},
    {"merge", 'm', NULL, 0, "Merge logs that are in order already, without holding them", 0},
    {"check", 'c', NULL, 0, "Only say whether the logs are in order: exit status 1 at the first record that is not", 0},
    {"reverse", 'r', NULL, 0, "Descending; records of equal keys stay in the order in which they came", 0},
    {"unique", 'u', NULL, 0, "Of identical records keep one; records of equal keys are then ordered by their text", 0},
    {"buffer-size", 'S', "SIZE", 0,
     "Use so much memory at most (256M; default a quarter of the machine's); what is "
     "larger goes by way of the disk",
     0},
    {"temporary-directory", 'T', "DIR", 0, "There (default $TMPDIR, or /tmp)", 0},
    {"output", 'o', "FILE", 0, "Write to FILE, which may be one of the inputs; it takes its place when all is done", 0},
    {"window", OPTION_WINDOW, "TIME", 0,
     "Live: order by time what comes, without an end, holding each record until it is TIME (500ms, 5s, 1m) older than "
     "the newest. What comes later than that is written at once, counted and told of",
     0},
    {"late", OPTION_LATE, "FILE", 0, "With --window: append what comes too late to FILE instead", 0},
    {"follow", 'f', NULL, 0, "With --window: wait at the end of files for what is appended", 0},
    {"format", OPTION_FORMAT, "ulm|bp|nlb", 0,
     "Write in that format (default: nlb when the output's name ends in .nlb, else the first record's, ULM when that "
     "is nlb)",
     0},
    {0},
};

static const struct argp_child children[] = {{&program_where_argp, 0, NULL, 0},
                                             {&program_reading_argp, 0, NULL, 1},
                                             {&program_strict_argp, 0, NULL, 1},
                                             {&fix_clocks_argp, 0, NULL, 2},
                                             {0}};

/* The format that the output's URL asks for, or else its name, if either does. */
static nl_format format_of_output(const arguments *a)
{
    nl_url *url = a->output != NULL ? nl_url_parse(a->output) : NULL;
    if (url == NULL) /* which opening it says, too */
        return a->input.format;
    const char *option = nl_url_option_value(url, "format");
    nl_format format = option != NULL ? nl_format_parse(option) : a->input.format;
    if (format == NL_FORMAT_UNKNOWN && url->scheme == NL_SCHEME_FILE)
        format = nl_format_of_name(url->path);
    nl_url_free(url);
    return format;
}

static void settle_format(arguments *a)
{
    input_settings *input = &a->input;
    input->format = format_of_output(a);
    input->packed = input->format == NL_FORMAT_NLB && !a->check;
    if (input->format == NL_FORMAT_NLB && a->check) /* which only shows lines */
        input->format = NL_FORMAT_ULM;
}

/* Which options go together. */
static void check_together(const arguments *a, struct argp_state *state)
{
    if (a->merge && a->check)
        argp_error(state, "-m and -c exclude each other");
    if (a->window_ns > 0 && (a->merge || a->check || a->reverse || a->input.unique || !key_is_time(a->key)))
        argp_error(state, "--window orders by time alone: without -k, -m, -c, -r and -u");
    if (a->window_ns == 0 && (a->follow || a->late != NULL))
        argp_error(state, "--follow and --late go with --window");
    if (a->clocks.asked && (a->merge || a->check || a->window_ns > 0))
        argp_error(state, "--fix-clocks sorts: without -m, -c and --window");
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    const char *why;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->input.where;
        state->child_inputs[1] = &a->input.reading;
        state->child_inputs[2] = &a->input.reading.strict;
        state->child_inputs[3] = &a->clocks;
        return 0;
    case 'k':
        why = key_add(a->key, argument);
        if (why != NULL)
            argp_error(state, "-k %s: %s", argument, why);
        return 0;
    case 'm':
        a->merge = true;
        return 0;
    case 'c':
        a->check = true;
        return 0;
    case 'r':
        a->reverse = true;
        return 0;
    case 'u':
        a->input.unique = true;
        return 0;
    case 'S':
        if (!nl_size_parse(argument, &a->memory))
            argp_error(state, "-S %s: that is no size", argument);
        return 0;
    case 'T':
        a->directory = argument;
        return 0;
    case 'o':
        a->output = argument;
        return 0;
    case OPTION_WINDOW:
        if (!program_duration_parse(argument, &a->window_ns))
            argp_error(state, "--window %s: that is no time, such as 500ms, 5s or 1m", argument);
        return 0;
    case OPTION_LATE:
        a->late = argument;
        return 0;
    case 'f':
        a->follow = true;
        return 0;
    case OPTION_FORMAT:
        a->input.format = nl_format_parse(argument);
        if (a->input.format == NL_FORMAT_UNKNOWN)
            argp_error(state, "--format %s: ulm, bp and nlb are known", argument);
        return 0;
    case ARGP_KEY_ARGS:
        a->files = state->argv + state->next;
        a->file_count = (size_t)(state->argc - state->next);
        return 0;
    case ARGP_KEY_END:
        check_together(a, state);
        settle_format(a);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "[SOURCE...]",
    .doc =
        "Order and merge logs, by time or by any fields; stable. Without SOURCE, standard input. " PROGRAM_SOURCES "."
        "\vExit status: 0 done; 1 something was malformed, unreadable or out of order (the rest is done all the same); "
        "2 wrong use.\n\nExamples: nlsort -o all.log host*.log\n  nlsort -k NL.EVNT -k SEND.SZ:nr a.log",
    .children = children,
};

static size_t default_memory(void)
{
    struct sysinfo info;
    if (sysinfo(&info) != 0)
        return (size_t)1 << 30;
    return (size_t)info.totalram * info.mem_unit / 4;
}

/* Where the result goes. The writer is opened with the first record, when the format is known. */
typedef struct result {
    const arguments *a;
    nl_writer *writer;
    uint64_t records;
    nl_buffer before;  /* the latest key and line, for -u */
    unique *unique;    /* for -u, by time */
    nl_record *record; /* of a line that was packed */
} result;

static void fail_writing(const result *r)
{
    nl_writer_discard(r->writer);
    program_fail(PROGRAM_PROBLEM, "%s", nl_error_message());
}

static void open_result(result *r)
{
    nl_writer_options how = {.format = r->a->input.format, .buffer_size = WRITE_SIZE, .atomic = r->a->output != NULL};
    r->writer = nl_writer_open(r->a->output != NULL ? r->a->output : "-", &how);
    if (r->writer == NULL)
        program_fail(PROGRAM_PROBLEM, "%s", nl_error_message());
    r->record = nl_record_new();
}

static bool is_repeated(result *r, const item *it)
{
    nl_string line = {it->line, it->line_size};
    bool same = r->records > 0 && r->before.size == line.size && memcmp(r->before.data, line.data, line.size) == 0;
    r->before.size = 0;
    nl_buffer_append(&r->before, line.data, line.size);
    return same;
}

static void put(result *r, const item *it)
{
    if (r->a->input.unique && is_repeated(r, it))
        return;
    if (++r->records % PROGRESS_RECORDS == 0)
        program_progress("writing", 0, 0, r->records);
    nl_status status;
    if (!r->a->input.packed)
        status = nl_writer_put_text(r->writer, NL_LEVEL_NONE, it->line, it->line_size);
    else if ((status = nl_record_unpack(r->record, it->line, it->line_size)) == NL_OK)
        status = nl_writer_put(r->writer, r->record);
    if (status != NL_OK)
        fail_writing(r);
}

static void close_result(result *r)
{
    if (r->unique != NULL) {
        unique_end(r->unique);
        unique_free(r->unique);
    }
    nl_buffer_free(&r->before);
    nl_record_free(r->record);
    if (nl_writer_close(r->writer) != NL_OK)
        program_fail(PROGRAM_PROBLEM, "%s", nl_error_message());
}

static void begin_result(void *user)
{
    open_result(user);
}

static void put_lines(void *user, const char *text, size_t size, const nl_scanned_line *lines, size_t count)
{
    (void)lines;
    result *r = user;
    r->records += count;
    if (nl_writer_put_text(r->writer, NL_LEVEL_NONE, text, size) != NL_OK)
        fail_writing(r);
}

static void put_unique(void *user, const char *text, size_t size, const nl_scanned_line *lines, size_t count)
{
    result *r = user;
    unique_put(r->unique, text, size, lines, count);
}

static void take_back(void *user)
{
    result *r = user;
    nl_writer_discard(r->writer);
    nl_record_free(r->record);
    r->records = 0;
}

/* Whether the output is a file that has its name only when all is written. */
static bool is_written_aside(const char *output)
{
    nl_url *url = output != NULL ? nl_url_parse(output) : NULL;
    struct stat old;
    bool aside = url != NULL && url->scheme == NL_SCHEME_FILE && (lstat(url->path, &old) != 0 || S_ISREG(old.st_mode));
    nl_url_free(url);
    return aside;
}

/* By time alone, into text. */
static bool is_by_time(const arguments *a)
{
    return key_is_time(a->key) && !a->input.packed && !a->clocks.asked;
}

static by_time by_time_of(arguments *a, result *r)
{
    if (a->input.unique && r != NULL)
        r->unique = unique_new(put_lines, r);
    return (by_time){.settings = &a->input,
                     .reverse = a->reverse,
                     .memory = a->memory,
                     .directory = a->directory,
                     .files = a->files,
                     .file_count = a->file_count,
                     .begin = begin_result,
                     .put = a->input.unique ? put_unique : put_lines,
                     .with_places = a->input.unique,
                     .take_back = is_written_aside(a->output) ? take_back : NULL,
                     .user = r};
}

/* Whether what was said to be in order was. */
static bool was_ordered(const result *r, by_time_result what)
{
    if (what == BY_TIME_DAMAGED) {
        nl_writer_discard(r->writer);
        exit(PROGRAM_PROBLEM);
    }
    return what == BY_TIME_DONE;
}

static void spill_store(spill *runs, store *items)
{
    store_sort(items);
    spill_begin(runs);
    for (size_t i = 0; i < store_count(items); i++) {
        item it = store_get(items, i);
        spill_put(runs, &it);
    }
    spill_end(runs);
    store_clear(items);
}

static void add_entry(const arguments *a, store *items, spill *runs, nl_string key, nl_string line)
{
    store_add(items, key.data, key.size, line.data, line.size);
    if (store_memory(items) > a->memory)
        spill_store(runs, items);
}

static void read_fixed(arguments *a, store *items, spill *runs)
{
    nl_buffer key = {0}, line = {0};
    const nl_record *record;
    while ((record = fix_clocks_next(a->fixed)) != NULL) {
        input_make_entry(&a->input, record, &key, &line);
        add_entry(a, items, runs, (nl_string){key.data, key.size}, (nl_string){line.data, line.size});
    }
    nl_buffer_free(&key);
    nl_buffer_free(&line);
}

static void read_logs(arguments *a, store *items, spill *runs)
{
    uint64_t records = 0;
    for (size_t i = 0; i < a->file_count; i++) {
        input *in = input_open(&a->input, a->files[i]);
        if (in == NULL)
            continue;
        nl_string key, line;
        while (input_next(in, &key, &line)) {
            add_entry(a, items, runs, key, line);
            if (++records % PROGRESS_RECORDS == 0) {
                uint64_t done, total;
                input_progress(in, &done, &total);
                program_progress(a->files[i], done, total, records);
            }
        }
        input_close(in);
    }
}

/* What is in memory, as the last of the streams that are merged. */
typedef struct store_stream {
    stream base;
    const store *items;
    size_t at;
} store_stream;

static bool store_stream_next(stream *base, item *out)
{
    store_stream *s = (store_stream *)base;
    if (s->at == store_count(s->items))
        return false;
    *out = store_get(s->items, s->at++);
    return true;
}

static void store_stream_close(stream *base)
{
    (void)base;
}

static void write_merged(result *r, stream **streams, size_t count)
{
    merge *m = merge_new(streams, count);
    item it;
    while (merge_next(m, &it))
        put(r, &it);
    merge_free(m);
}

static stream **new_streams(size_t count)
{
    stream **streams = calloc(count + 1, sizeof *streams);
    if (streams == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    return streams;
}

static size_t run_buffer(const arguments *a, size_t runs)
{
    size_t share = a->memory / (runs + 1);
    return share > RUN_BUFFER ? RUN_BUFFER : share < RUN_BUFFER_LEAST ? RUN_BUFFER_LEAST : share;
}

static void sort(arguments *a, result *r)
{
    store *items = store_new();
    spill *runs = spill_new(a->directory);
    if (a->clocks.asked)
        read_fixed(a, items, runs);
    else
        read_logs(a, items, runs);
    size_t count = spill_run_count(runs);
    if (count > 0 && store_count(items) > 0) { /* so that the buffers of the runs have the memory */
        spill_store(runs, items);
        count++;
    }
    if (count > 0) {
        store_free(items);
        items = store_new();
    }
    store_sort(items);
    open_result(r);
    stream **streams = new_streams(count + 1);
    for (size_t i = 0; i < count; i++)
        streams[i] = spill_open_run(runs, i, run_buffer(a, count));
    store_stream in_memory = {{store_stream_next, store_stream_close}, items, 0};
    streams[count] = &in_memory.base;
    write_merged(r, streams, count + 1);
    free(streams);
    store_free(items);
    spill_free(runs);
}

static size_t descriptors_for_inputs(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= 2 * DESCRIPTORS_KEPT)
        return DESCRIPTORS_KEPT;
    return limit.rlim_cur == RLIM_INFINITY ? 4096 : (size_t)limit.rlim_cur - DESCRIPTORS_KEPT;
}

/* Merges one group of inputs onto disk: there are more of them than may be open at once. */
static void merge_group(arguments *a, spill *runs, size_t from, size_t to, bool *disordered)
{
    stream **streams = new_streams(to - from);
    size_t count = 0;
    for (size_t i = from; i < to; i++) {
        streams[count] = input_open_sorted(&a->input, a->files[i], disordered);
        count += streams[count] != NULL;
    }
    merge *m = merge_new(streams, count);
    item it;
    spill_begin(runs);
    while (merge_next(m, &it))
        spill_put(runs, &it);
    spill_end(runs);
    merge_free(m);
    free(streams);
}

static bool merge_sorted(arguments *a, result *r)
{
    by_time what = by_time_of(a, r);
    if (is_by_time(a) && by_time_can_merge(&what))
        return was_ordered(r, by_time_merge(&what));
    bool disordered = false;
    size_t most = descriptors_for_inputs();
    spill *runs = spill_new(a->directory);
    stream **streams;
    size_t count = 0;
    if (a->file_count > most) {
        for (size_t from = 0; from < a->file_count; from += most)
            merge_group(a, runs, from, from + most < a->file_count ? from + most : a->file_count, &disordered);
        streams = new_streams(spill_run_count(runs));
        for (; count < spill_run_count(runs); count++)
            streams[count] = spill_open_run(runs, count, run_buffer(a, spill_run_count(runs)));
    } else {
        streams = new_streams(a->file_count);
        for (size_t i = 0; i < a->file_count; i++) {
            streams[count] = input_open_sorted(&a->input, a->files[i], &disordered);
            count += streams[count] != NULL;
        }
    }
    merge *m = merge_new(streams, count); /* reads each input's first record, which settles the format */
    open_result(r);
    item it;
    while (merge_next(m, &it))
        put(r, &it);
    merge_free(m);
    free(streams);
    spill_free(runs);
    return !disordered;
}

/* Says where the first record out of order is. */
static bool check_order(arguments *a)
{
    if (is_by_time(a) && !a->input.unique) {
        by_time what = by_time_of(a, NULL);
        return by_time_check(&what);
    }
    bool ordered = true;
    nl_buffer before = {0};
    for (size_t i = 0; i < a->file_count && ordered; i++) {
        input *in = input_open(&a->input, a->files[i]);
        nl_string key, line;
        while (in != NULL && ordered && input_next(in, &key, &line)) {
            int order = input_record(in) == 1 ? 1 : input_compare_keys(key, (nl_string){before.data, before.size});
            ordered = order > 0 || (order == 0 && !a->input.unique);
            if (!ordered)
                program_error("%s: record %" PRIu64 " is out of order: %.*s", a->files[i], input_record(in),
                              (int)(line.size - 1 < 200 ? line.size - 1 : 200), line.data);
            before.size = 0;
            nl_buffer_append(&before, key.data, key.size);
        }
        if (in != NULL)
            input_close(in);
    }
    nl_buffer_free(&before);
    return ordered;
}

/* Files of an archive are sorted as files; within a window it is one log, which may go on in files to come. */
static void expand_sources(arguments *a)
{
    static char *standard_input[] = {"-"};
    a->input.reading.interleaved = a->merge;
    if (a->window_ns == 0) {
        if (!program_expand_archives(&a->input.reading, a->files, a->file_count, &a->expanded, &a->file_count))
            a->input.failed = true;
        a->files = a->expanded;
    } else if (a->file_count == 0) {
        a->files = standard_input;
        a->file_count = 1;
    }
}

int main(int argc, char **argv)
{
    program_start("nlsort", argv);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow further is told of as a full disk is */
    arguments a = {.memory = default_memory(), .directory = getenv("TMPDIR")};
    a.input.key = a.key = key_new();
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    key_set_reverse(a.key, a.reverse);
    if (a.directory == NULL || *a.directory == '\0')
        a.directory = "/tmp";
    if (a.memory < MEMORY_LEAST)
        a.memory = MEMORY_LEAST;
    expand_sources(&a);
    bool good = true;
    if (a.window_ns > 0) {
        live what = {.settings = &a.input,
                     .window_ns = a.window_ns,
                     .memory = a.memory,
                     .follow = a.follow,
                     .files = a.files,
                     .file_count = a.file_count,
                     .output = a.output,
                     .late = a.late};
        good = live_run(&what);
    } else if (a.check) {
        good = check_order(&a);
    } else {
        result r = {.a = &a};
        if (a.clocks.asked)
            a.fixed = fix_clocks_read(&a.clocks, &a.input, a.files, a.file_count, a.directory);
        if (a.merge)
            good = merge_sorted(&a, &r);
        else if (is_by_time(&a)) {
            by_time what = by_time_of(&a, &r);
            was_ordered(&r, by_time_sort(&what));
        } else
            sort(&a, &r);
        close_result(&r);
        fix_clocks_free(a.fixed);
    }
    fix_options_free(&a.clocks);
    program_progress_end();
    if (program_reading_finish(&a.input.reading) != PROGRAM_DONE || a.input.failed)
        good = false;
    for (size_t i = 0; a.expanded != NULL && i < a.file_count; i++)
        free(a.expanded[i]);
    free(a.expanded);
    key_free(a.key);
    nl_filter_free(a.input.where);
    return program_finish(good ? PROGRAM_DONE : PROGRAM_PROBLEM);
}
