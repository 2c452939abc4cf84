/*
 * nlsort: parses the options and chooses a method: sorting by time, sorting by other keys in memory or with runs on
 * disk, merging, or checking.
 */
#include "config.h"

#include "by_time.h"
#include "fix_clocks.h"
#include "input.h"
#include "key.h"
#include "live.h"
#include "merge.h"
#include "shown.h"
#include "spill.h"
#include "store.h"
#include "unique.h"
#include "transport/writer.h"
#include "record/format.h"
#include "base/memory.h"
#include "base/error.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

enum {
    WRITE_SIZE = 256 << 10,
    RUN_BUFFER = 1 << 20,
    RUN_BUFFER_MIN = 16 << 10,
    DESCRIPTORS_KEPT = 16, /* descriptors reserved for uses other than the inputs of a merge */
    MEMORY_MIN = 16 << 20,
    UNIQUE_SHARE = 8, /* --unique uses 1/8 of the memory for lines of equal time */
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
    char **expanded; /* the allocated array to which files points, or NULL */
} arguments;

static bool set_key(void *settings, const nl_option *row, const char *value)
{
    (void)row;
    return key_add(((arguments *)settings)->key, value) || (nl_error_prepend("\"%s\"", value), false);
}

static const nl_option options[] = {
    {.name = "key",
     .letter = 'k',
     .value = "FIELD[:OPTIONS]",
     .initial = "(by time)",
     .repeatable = true,
     .set = set_key,
     .help = "Sort by FIELD; each further --key orders the records whose earlier keys are equal. OPTIONS are t (time), "
             "n (number), s (text) and r (descending). If no type is given, numbers precede text. Records that lack "
             "the field come first; with r, last"},
    {.name = "merge",
     .letter = 'm',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, merge),
     .help = "Merge sorted logs without holding them in memory"},
    {.name = "check",
     .letter = 'c',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, check),
     .help = "Check whether the logs are sorted; exit with status 1 at the first record that is out of order"},
    {.name = "reverse",
     .letter = 'r',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, reverse),
     .help = "Sort in descending order; records with equal keys keep their order"},
    {.name = "unique",
     .letter = 'u',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, input.unique),
     .help = "Write identical records only once; records with equal keys are then sorted by their text"},
    {.name = "buffer-size",
     .letter = 'S',
     .type = NL_OPTION_SIZE,
     .initial = "(a quarter of the machine's memory)",
     NL_OPTION_MEMBER(arguments, memory),
     .help = "Maximum memory, at least 16m; nlsort may sort larger input with temporary files"},
    {.name = "temporary-directory",
     .letter = 'T',
     .value = "DIR",
     .initial = "/tmp",
     .environment = "TMPDIR",
     NL_OPTION_MEMBER(arguments, directory),
     .help = "Directory for temporary files"},
    {.name = "output",
     .letter = 'o',
     .value = "FILE",
     .initial = "(standard output)",
     NL_OPTION_MEMBER(arguments, output),
     .help =
         "Write the output to FILE, which may be one of the inputs; nlsort replaces FILE when the output is complete"},
    {.name = "window",
     .type = NL_OPTION_DURATION,
     .minimum = 1000000,
     NL_OPTION_MEMBER(arguments, window_ns),
     .help =
         "Sort live input by time. nlsort holds each record until a record arrives whose time is later by DURATION, or "
         "until nothing arrives for DURATION. nlsort writes late records immediately, and reports their number"},
    {.name = "late",
     .value = "FILE",
     NL_OPTION_MEMBER(arguments, late),
     .help = "With --window: append late records to FILE, not to the output"},
    {.name = "follow",
     .letter = 'f',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, follow),
     .help = "With --window: wait for new records at the end of files"},
    {.name = "format",
     .initial = "(by the output's suffix; otherwise the format of the first record, but ulm instead of nlb)",
     .type = NL_OPTION_CHOICE,
     .list_choices = nl_format_choices,
     NL_OPTION_MEMBER(arguments, input.format),
     .help = "Output format"},
    {0},
};

/* Returns the output's format from the URL's format= option, from --format, or from the URL's suffix. */
static nl_format format_of_output(const arguments *a)
{
    nl_url *url = a->output != NULL ? nl_url_parse(a->output) : NULL;
    if (url == NULL) /* opening the output will report the error */
        return a->input.format;
    const bool chosen = a->input.format != NL_FORMAT_UNKNOWN && nl_url_option_value(url, "format") == NULL;
    nl_format format = chosen ? a->input.format : nl_writer_url_format(url);
    nl_url_free(url);
    return format;
}

static void settle_format(arguments *a)
{
    input_settings *input = &a->input;
    input->format = format_of_output(a);
    input->packed = input->format == NL_FORMAT_NLB && !a->check;
    if (input->format == NL_FORMAT_NLB && a->check) /* a check prints records as lines of text */
        input->format = NL_FORMAT_ULM;
}

static void check_together(const arguments *a)
{
    if (a->merge && a->check)
        options_fail("--merge cannot be used with --check");
    if (a->window_ns > 0 && (a->merge || a->check || a->reverse || a->input.unique || !key_is_time(a->key)))
        options_fail("--window cannot be used with --key, --merge, --check, --reverse or --unique");
    if (a->window_ns == 0 && (a->follow || a->late != NULL))
        options_fail("--follow and --late require --window");
    if (!a->clocks.asked &&
        (a->clocks.what.reference != NULL || a->clocks.what.id_count > 0 || a->clocks.what.message_count > 0))
        options_fail("--reference, --id and --message require --fix-clocks");
    if (a->clocks.asked && (a->merge || a->check || a->window_ns > 0))
        options_fail("--fix-clocks cannot be used with --merge, --check or --window");
}

static const options_usage usage = {
    .groups = (const options_group[]){{NULL, options, 0},
                                      {"Clocks", fix_clocks_options, offsetof(arguments, clocks)},
                                      {"Selecting records", program_where_options, offsetof(arguments, input.where)},
                                      {"Reading", program_reading_options, offsetof(arguments, input.reading)},
                                      {"Reading", program_strict_options, offsetof(arguments, input.reading)},
                                      {0}},
    .operands = "[SOURCE...]",
    .summary = "Sort and merge logs, by time or by any fields; the sort is stable. Without SOURCE, read standard "
               "input. " PROGRAM_SOURCES ".",
    .notes = "Exit status: 0 success; 1 some records were malformed, unreadable, missing, late or out of order "
             "(nlsort sorts the other records); 2 usage error.\n\nExamples:\n  nlsort -o all.log host*.log\n  nlsort "
             "-k NL.EVNT -k SEND.SZ:nr a.log",
};

static size_t default_memory(void)
{
    struct sysinfo info;
    if (sysinfo(&info) != 0)
        return (size_t)1 << 30;
    return (size_t)info.totalram * info.mem_unit / 4;
}

/* The output. The first record determines the format, so the writer is opened after this record has been read. */
typedef struct result {
    const arguments *a;
    nl_writer *writer;
    uint64_t records;
    bool on_terminal;
    nl_buffer before;  /* the latest line, for -u */
    unique *unique;    /* for -u, by time */
    nl_record *record; /* the decoded record of a packed line */
} result;

static void fail_writing(const result *r)
{
    nl_writer_discard(r->writer);
    program_fail_with_error(PROGRAM_PROBLEM);
}

static void open_result(result *r)
{
    nl_writer_options how = {.format = r->a->input.format, .buffer_size = WRITE_SIZE, .atomic = r->a->output != NULL};
    r->writer = nl_writer_open(r->a->output != NULL ? r->a->output : "-", &how);
    if (r->writer == NULL)
        program_fail_with_error(PROGRAM_PROBLEM);
    r->record = nl_record_new();
    r->on_terminal = shown_on_terminal(r->a->output);
}

/* Writes lines. `lines` are their positions, which are needed only if the lines are packed. */
static void put_text(result *r, const char *text, size_t size, const nl_scanned_line *lines, size_t count)
{
    const input_settings *input = &r->a->input;
    nl_status status = NL_OK;
    if (!input->packed)
        status = shown_put(r->writer, r->on_terminal, text, size);
    for (size_t i = 0; input->packed && i < count && status == NL_OK; i++) {
        nl_string line = {text + nl_line_offset(lines[i]), table_line_size(text, lines[i])};
        int64_t time_ns = r->a->reverse ? ~lines[i].time_ns : lines[i].time_ns;
        status = packed_put(r->writer, input->shapes, r->record, line, time_ns);
    }
    if (status != NL_OK)
        fail_writing(r);
}

static void put_line(result *r, const char *line, size_t size)
{
    size_t stored = size - 1 < NL_LINE_LONGEST ? size - 1 : NL_LINE_LONGEST;
    nl_scanned_line place = {0, nl_line_place(0, stored, true)};
    put_text(r, line, size, &place, 1);
}

static bool is_repeated(result *r, const item *it)
{
    nl_string line = {it->line, it->line_size};
    bool same = r->records > 0 && r->before.size == line.size && memcmp(r->before.data, line.data, line.size) == 0;
    r->before.size = 0;
    nl_buffer_append(&r->before, line.data, line.size);
    return same;
}

static void main_put(result *r, const item *it)
{
    if (r->a->input.unique && is_repeated(r, it))
        return;
    if (++r->records % PROGRESS_RECORDS == 0)
        program_progress("writing", 0, 0, r->records);
    put_line(r, it->line, it->line_size);
}

static void close_result(result *r)
{
    if (r->unique != NULL) {
        unique_end(r->unique);
        unique_free(r->unique);
    }
    nl_buffer_free(&r->before);
    nl_record_free(r->record);
    const program_reading *reading = &r->a->input.reading;
    if (reading->records == 0 && !reading->skipped && (reading->failed || !reading->live))
        nl_writer_discard(r->writer); /* an existing file stays unchanged */
    else if (nl_writer_close(r->writer) != NL_OK)
        program_fail_with_error(PROGRAM_PROBLEM);
}

static void begin_result(void *user)
{
    open_result(user);
}

static void put_lines(void *user, const char *text, size_t size, const nl_scanned_line *lines, size_t count)
{
    result *r = user;
    r->records += count;
    put_text(r, text, size, lines, count);
}

static void put_unique(void *user, const char *text, size_t size, const nl_scanned_line *lines, size_t count)
{
    result *r = user;
    unique_put(r->unique, text, size, lines, count);
}

static void put_item_unique(result *r, const item *it)
{
    nl_scanned_line line = {(int64_t)it->prefix, nl_line_place(0, it->line_size - 1, true)};
    unique_put(r->unique, it->line, it->line_size, &line, 1);
}

static void take_back(void *user)
{
    result *r = user;
    nl_writer_discard(r->writer);
    nl_record_free(r->record);
    r->records = 0;
}

/* Returns whether nlsort writes the output to a temporary file, which it renames at the end. */
static bool is_written_aside(const char *output)
{
    nl_url *url = output != NULL ? nl_url_parse(output) : NULL;
    struct stat old;
    bool aside = url != NULL && url->scheme == NL_SCHEME_FILE && (lstat(url->path, &old) != 0 || S_ISREG(old.st_mode));
    nl_url_free(url);
    return aside;
}

/*
 * Returns whether by_time.h can do the sort. by_time.h sorts only by time, finds identical records only in lines of
 * text, and does not correct clocks.
 */
static bool is_by_time(const arguments *a)
{
    return key_is_time(a->key) && !(a->input.packed && a->input.unique) && !a->clocks.asked;
}

static by_time by_time_of(arguments *a, result *r)
{
    size_t unique_memory = a->input.unique ? a->memory / UNIQUE_SHARE : 0;
    if (a->input.unique && r != NULL)
        r->unique = unique_new(unique_memory, a->directory, put_lines, r);
    return (by_time){.settings = &a->input,
                     .reverse = a->reverse,
                     .memory = a->memory - unique_memory,
                     .directory = a->directory,
                     .files = a->files,
                     .file_count = a->file_count,
                     .begin = begin_result,
                     .put = a->input.unique ? put_unique : put_lines,
                     .with_places = a->input.unique || a->input.packed,
                     .take_back = is_written_aside(a->output) ? take_back : NULL,
                     .user = r};
}

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

/* The items in memory, as the last input of the merge. */
typedef struct store_input {
    merge_input base;
    const store *items;
    size_t at;
} store_input;

static bool store_input_next(merge_input *base, item *out)
{
    store_input *s = (store_input *)base;
    if (s->at == store_count(s->items))
        return false;
    *out = store_get(s->items, s->at++);
    return true;
}

static void store_input_close(merge_input *base)
{
    (void)base;
}

static void write_merged(result *r, merge_input **inputs, size_t count)
{
    merge *m = merge_new(inputs, count);
    item it;
    while (merge_next(m, &it))
        main_put(r, &it);
    merge_free(m);
}

static merge_input **new_inputs(size_t count)
{
    return nl_memory_check(calloc(count + 1, sizeof(merge_input *)));
}

static size_t run_buffer(const arguments *a, size_t runs)
{
    size_t share = a->memory / (runs + 1);
    return share > RUN_BUFFER ? RUN_BUFFER : share < RUN_BUFFER_MIN ? RUN_BUFFER_MIN : share;
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
    if (count > 0 && store_count(items) > 0) { /* this frees memory for the buffers of the runs */
        spill_store(runs, items);
        count++;
    }
    if (count > 0) {
        store_free(items);
        items = store_new();
    }
    store_sort(items);
    open_result(r);
    merge_input **inputs = new_inputs(count + 1);
    for (size_t i = 0; i < count; i++)
        inputs[i] = spill_open_run(runs, i, run_buffer(a, count));
    store_input in_memory = {{store_input_next, store_input_close}, items, 0};
    inputs[count] = &in_memory.base;
    write_merged(r, inputs, count + 1);
    free(inputs);
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

/* Merges a group of inputs into a run on disk, because merging all inputs at once would require too many open files. */
static void merge_group(arguments *a, spill *runs, size_t from, size_t to, bool *disordered)
{
    merge_input **inputs = new_inputs(to - from);
    size_t count = 0;
    for (size_t i = from; i < to; i++) {
        inputs[count] = input_open_sorted(&a->input, a->files[i], disordered);
        count += inputs[count] != NULL;
    }
    merge *m = merge_new(inputs, count);
    item it;
    spill_begin(runs);
    while (merge_next(m, &it))
        spill_put(runs, &it);
    spill_end(runs);
    merge_free(m);
    free(inputs);
}

static bool merge_sorted(arguments *a, result *r)
{
    by_time what = by_time_of(a, r);
    if (is_by_time(a) && by_time_can_merge(&what))
        return was_ordered(r, by_time_merge(&what));
    bool unique_by_time = is_by_time(a) && a->input.unique, disordered = false;
    if (unique_by_time)
        a->input.unique = false; /* lines with equal times may be in any order */
    size_t maximum = descriptors_for_inputs();
    spill *runs = spill_new(a->directory);
    merge_input **inputs;
    size_t count = 0;
    if (a->file_count > maximum) {
        for (size_t from = 0; from < a->file_count; from += maximum)
            merge_group(a, runs, from, from + maximum < a->file_count ? from + maximum : a->file_count, &disordered);
        inputs = new_inputs(spill_run_count(runs));
        for (; count < spill_run_count(runs); count++)
            inputs[count] = spill_open_run(runs, count, run_buffer(a, spill_run_count(runs)));
    } else {
        inputs = new_inputs(a->file_count);
        for (size_t i = 0; i < a->file_count; i++) {
            inputs[count] = input_open_sorted(&a->input, a->files[i], &disordered);
            count += inputs[count] != NULL;
        }
    }
    merge *m = merge_new(inputs, count); /* this reads the first record of each input, which determines the format */
    open_result(r);
    item it;
    while (merge_next(m, &it))
        if (unique_by_time)
            put_item_unique(r, &it);
        else
            main_put(r, &it);
    merge_free(m);
    free(inputs);
    spill_free(runs);
    return !disordered;
}

/* Reports the first record that is out of order. Returns true if all records are in order. */
static bool find_disorder(arguments *a)
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
            ordered = order > 0 || (order == 0 && !a->input.unique) || input_is_unterminated(in);
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

static bool check_order(arguments *a)
{
    bool ordered = find_disorder(a);
    a->input.reading.left_early = !ordered;
    return ordered;
}

/* Replaces each archive with its files. With --window, an archive stays one log, because new files can appear in it. */
static void expand_sources(arguments *a)
{
    static char *standard_input[] = {"-"};
    if (a->window_ns == 0) {
        program_expand_archives(&a->input.reading, a->files, a->file_count, &a->expanded, &a->file_count);
        a->files = a->expanded;
    } else if (a->file_count == 0) {
        a->files = standard_input;
        a->file_count = 1;
    }
}

int main(int argc, char **argv)
{
    program_start("nlsort");
    signal(SIGXFSZ, SIG_IGN); /* so that exceeding the file size limit is reported like a full disk */
    arguments a = {.memory = default_memory()};
    a.input.key = a.key = key_new();
    int first = options_parse(&usage, argc, argv, &a);
    a.files = argv + first;
    a.file_count = (size_t)(argc - first);
    check_together(&a);
    settle_format(&a);
    a.input.shapes = a.input.packed ? nl_block_shapes_new() : NULL;
    key_set_reverse(a.key, a.reverse);
    if (a.memory < MEMORY_MIN)
        a.memory = MEMORY_MIN;
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
    if (program_reading_finish(&a.input.reading) != PROGRAM_DONE)
        good = false;
    for (size_t i = 0; a.expanded != NULL && i < a.file_count; i++)
        free(a.expanded[i]);
    free(a.expanded);
    nl_block_shapes_free(a.input.shapes);
    key_free(a.key);
    nl_filter_free(a.input.where.filter);
    return program_finish(good ? PROGRAM_DONE : PROGRAM_PROBLEM);
}
