#include "config.h"

#include "by_time.h"

#include "cursors.h"
#include "flow.h"
#include "item.h"
#include "load.h"
#include "order.h"
#include "ordered.h"
#include "program/program.h"
#include "runs.h"
#include "table.h"

#include <inttypes.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum {
    WRITTEN_AT_ONCE = 256 << 10,
    OVERHEAD = 8 << 20, /* bytes for everything except the tables */
    LOGS_MAX = 64,      /* maximum number of logs in one merge */
    LOG_MAX = 8 << 20,  /* maximum memory for one log in bytes */
    LOG_MIN = 1 << 20,
    LINE_SHOWN = 200,
    PAGE_MAX = 64 << 10, /* maximum page size: mapping a file rounds its size up to whole pages */
    SHORT_LINE = 100,    /* estimated minimum of the mean line length in bytes */
    PACKED_SHARE = 6,    /* for packed lines, 1/6 of the memory is for the decoder and the encoder */
    SHARES_MAX = 16,     /* maximum number of passes over files that are read again */
};

typedef struct sorting {
    const by_time *what;
    table *t;
    runs *r;
    size_t planned; /* number of runs to write, each of t->goal bytes */
} sorting;

/* Returns the maximum memory for mapping all regular files: their total size, with each size rounded up, in bytes. */
static size_t size_of_files(const by_time *what)
{
    size_t total = 0;
    for (size_t i = 0; i < what->file_count; i++) {
        struct stat status;
        if (stat(what->files[i], &status) == 0 && S_ISREG(status.st_mode))
            total += (size_t)status.st_size + PAGE_MAX;
    }
    return total;
}

/* Returns the kernel's estimate of the memory that its file cache can use, in bytes, or 0 if it is unknown. */
static size_t memory_of_cache(void)
{
    FILE *info = fopen("/proc/meminfo", "re");
    char line[128];
    unsigned long long kilobytes = 0;
    while (info != NULL && fgets(line, sizeof line, info) != NULL)
        if (sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1)
            break;
    if (info != NULL)
        fclose(info);
    return (size_t)kilobytes << 10;
}

/*
 * Returns whether nlsort reads the files again for each part of the result instead of writing runs. This is faster if
 * three conditions hold: the list of lines fits into memory, the result has at most SHARES_MAX parts, and the files
 * stay in the kernel's cache. Reading the files again also requires an unlimited address space. `total` is the size of
 * the files in bytes.
 */
static bool should_refer(size_t total, size_t memory)
{
    struct rlimit addresses;
    size_t lines = total / SHORT_LINE;
    return getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur == RLIM_INFINITY &&
           lines * TABLE_LINE_COST <= memory / 4 * 3 && gather_share(memory, lines) >= total / SHARES_MAX &&
           memory_of_cache() >= total + memory;
}

/*
 * Plans the sizes of runs, for `total` bytes of text of which `fits` bytes fit into memory. The last `fits` bytes stay
 * in memory and need no run. The runs share the rest equally.
 */
static void plan_runs(sorting *s, size_t total, size_t fits)
{
    s->planned = (total - 1) / fits;
    s->t->goal = (total - fits) / s->planned;
}

static void add_run(sorting *s)
{
    runs_add(s->r, s->t);
    if (runs_count(s->r) >= s->planned)
        s->t->goal = 0;
}

/* Reads a log that load.h cannot open, such as a pipe, or any log if there is a filter. */
static void read_records(sorting *s, const char *path)
{
    const by_time *what = s->what;
    input *in = input_open(what->settings, path);
    nl_string key, line;
    while (in != NULL && input_next(in, &key, &line)) {
        table_add(s->t, item_time(key.data, key.size, what->reverse), (nl_string){line.data, line.size - 1});
        if (table_is_full(s->t))
            add_run(s);
        if (input_record(in) % PROGRESS_RECORDS == 0) {
            uint64_t done, total;
            input_progress(in, &done, &total);
            program_progress(path, done, total, input_record(in));
        }
    }
    if (in != NULL)
        input_close(in);
}

static void read_log(sorting *s, const char *path)
{
    const by_time *what = s->what;
    load *l = what->settings->where.filter == NULL ? load_open(what->settings, path) : NULL;
    if (l == NULL) {
        read_records(s, path);
        return;
    }
    while (!load_into(l, s->t)) {
        add_run(s);
        program_progress(path, 0, 0, 0);
    }
    load_close(l);
}

static void write_table(const by_time *what, table *t)
{
    order o = order_table(t);
    gather_lines(t, o.lines, o.count, WRITTEN_AT_ONCE, what->with_places, what->put, what->user);
    order_free(&o);
}

/*
 * Sorts a single file that is nearly in order (flow.h). Returns false if that is not possible; `put` has then received
 * nothing, or take_back has been called.
 */
static bool pass_through(const by_time *what)
{
    input_settings *settings = what->settings;
    if (what->take_back == NULL || what->with_places || what->file_count != 1 || what->reverse ||
        settings->where.filter != NULL)
        return false;
    load *l = load_open(settings, what->files[0]);
    if (l == NULL)
        return false;
    flow_settings f = {load_descriptor(l), settings->format, settings->reading.fraction,
                       what->memory,       what->put,        what->user};
    bool passed = false;
    if (f.fd >= 0 && flow_is_likely(&f)) {
        what->begin(what->user);
        passed = flow_run(&f);
        if (passed)
            program_count_records(&settings->reading, 1); /* any number > 0 shows that records exist */
        else
            what->take_back(what->user);
    }
    load_close(l);
    return passed;
}

static bool is_damaged(void)
{
    if (table_is_damaged())
        program_error("a file was truncated or became unreadable during the sort");
    return table_is_damaged();
}

by_time_result by_time_sort(const by_time *what)
{
    if (pass_through(what))
        return BY_TIME_DONE;
    size_t memory = what->memory > 2 * OVERHEAD ? what->memory - OVERHEAD : what->memory / 2;
    if (what->settings->packed)
        memory -= memory / PACKED_SHARE;
    size_t total = size_of_files(what), fits = memory / 8 * 5; /* bytes of text; the rest is for lists */
    bool refers = total > fits && !what->settings->packed && should_refer(total, memory);
    sorting s = {.what = what,
                 .t = table_new(memory, refers ? total : 0, what->reverse),
                 .r = runs_new(what->directory, memory)};
    if (total > fits && !refers)
        plan_runs(&s, total, fits);
    for (size_t i = 0; i < what->file_count; i++)
        read_log(&s, what->files[i]);
    what->begin(what->user);
    if (runs_count(s.r) == 0)
        write_table(what, s.t);
    else
        runs_merge(s.r, s.t, what->put, what->user);
    table_free(s.t);
    runs_free(s.r);
    return is_damaged() ? BY_TIME_DAMAGED : BY_TIME_DONE;
}

/* ---- merging of sorted logs ---- */

static size_t memory_of_log(const by_time *what)
{
    size_t memory = what->memory / 2 / (what->file_count + 1);
    return memory > LOG_MAX ? LOG_MAX : memory;
}

bool by_time_can_merge(const by_time *what)
{
    return what->file_count <= LOGS_MAX && memory_of_log(what) >= LOG_MIN;
}

static void by_time_report_merged(void *user, const char *path, uint64_t record, nl_string line)
{
    (void)line;
    program_error("%s: record %" PRIu64 " is out of order, so the result is not sorted; sort without -m", path, record);
    *(bool *)user = false;
}

by_time_result by_time_merge(const by_time *what)
{
    bool ordered = true;
    ordered_log *logs[LOGS_MAX];
    cursor *cursors[LOGS_MAX];
    size_t count = 0, cursor_count = 0;
    for (size_t i = 0; i < what->file_count; i++) {
        ordered_log *log = ordered_open(what->settings, what->files[i], memory_of_log(what), what->reverse,
                                        by_time_report_merged, &ordered);
        if (log == NULL)
            continue;
        logs[count++] = log;
        cursor *c = ordered_cursor(log, i);
        if (c->more(c)) /* reading the first line determines the format */
            cursors[cursor_count++] = c;
    }
    what->begin(what->user);
    cursors_merge(cursors, cursor_count, what->put, what->user);
    for (size_t i = 0; i < count; i++)
        ordered_close(logs[i]);
    return is_damaged() ? BY_TIME_DAMAGED : ordered ? BY_TIME_DONE : BY_TIME_DISORDERED;
}

static void by_time_report_checked(void *user, const char *path, uint64_t record, nl_string line)
{
    program_error("%s: record %" PRIu64 " is out of order: %.*s", path, record,
                  (int)(line.size < LINE_SHOWN ? line.size : LINE_SHOWN), line.data);
    *(bool *)user = false;
}

bool by_time_check(const by_time *what)
{
    bool ordered = true;
    for (size_t i = 0; i < what->file_count && ordered; i++) {
        ordered_log *log =
            ordered_open(what->settings, what->files[i], LOG_MAX, what->reverse, by_time_report_checked, &ordered);
        if (log == NULL)
            continue;
        cursor *c = ordered_cursor(log, 0);
        while (ordered && c->more(c))
            program_progress(what->files[i], 0, 0, 0);
        ordered_close(log);
    }
    return ordered && !is_damaged();
}
