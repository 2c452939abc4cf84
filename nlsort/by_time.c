#include "config.h"

#include "by_time.h"

#include "flow.h"
#include "item.h"
#include "load.h"
#include "order.h"
#include "program/program.h"
#include "runs.h"
#include "table.h"

#include <sys/stat.h>

enum {
    PROGRESS_RECORDS = 64 << 10, /* between looks at whether it is time to say how far things are */
    WRITTEN_AT_ONCE = 256 << 10,
    OVERHEAD = 8 << 20, /* beside tables: buffers, the program itself */
};

/* The time that a key of none but the time was made of. */
static int64_t time_of_key(nl_string key, bool reverse)
{
    uint64_t prefix = item_prefix(key.data, key.size);
    return (int64_t)((reverse ? ~prefix : prefix) ^ (UINT64_C(1) << 63));
}

typedef struct sorting {
    const by_time *what;
    table *t;
    runs *r;
    size_t planned; /* runs of t->goal bytes */
} sorting;

/*
 * What is in memory at the end needs no run. So that this is as much as can be, files that do not fit are parted
 * evenly: so many runs, and the rest.
 */
static void plan_runs(sorting *s)
{
    size_t total = 0, fits = s->t->memory / 8 * 5; /* of text: the rest is for its lists */
    for (size_t i = 0; i < s->what->file_count; i++) {
        struct stat status;
        if (stat(s->what->files[i], &status) == 0 && S_ISREG(status.st_mode))
            total += (size_t)status.st_size;
    }
    if (total <= fits)
        return;
    s->planned = (total - 1) / fits;
    s->t->goal = (total - fits) / s->planned;
}

static void add_run(sorting *s)
{
    runs_add(s->r, s->t);
    if (runs_count(s->r) >= s->planned)
        s->t->goal = 0;
}

/* A log that is no plain file of text, record by record. */
static void read_records(sorting *s, const char *path)
{
    const by_time *what = s->what;
    input *in = input_open(what->settings, path);
    nl_string key, line;
    while (in != NULL && input_next(in, &key, &line)) {
        table_add(s->t, time_of_key(key, what->reverse), (nl_string){line.data, line.size - 1});
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
    load *l = what->settings->where == NULL ? load_open(what->settings, path) : NULL;
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
    gather_lines(t->text, o.lines, o.count, WRITTEN_AT_ONCE, false, what->put, what->user);
    order_free(&o);
}

/* One file that is nearly in order already. False when it is not, and nothing was put. */
static bool pass_through(const by_time *what)
{
    input_settings *settings = what->settings;
    if (what->take_back == NULL || what->file_count != 1 || what->reverse || settings->where != NULL)
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
        if (!passed)
            what->take_back(what->user);
    }
    load_close(l);
    return passed;
}

bool by_time_sort(const by_time *what)
{
    if (pass_through(what))
        return true;
    size_t memory = what->memory > 2 * OVERHEAD ? what->memory - OVERHEAD : what->memory / 2;
    sorting s = {.what = what, .t = table_new(memory, what->reverse), .r = runs_new(what->directory, memory)};
    plan_runs(&s);
    for (size_t i = 0; i < what->file_count; i++)
        read_log(&s, what->files[i]);
    what->begin(what->user);
    if (runs_count(s.r) == 0)
        write_table(what, s.t);
    else
        runs_merge(s.r, s.t, what->put, what->user);
    table_free(s.t);
    runs_free(s.r);
    if (table_is_damaged()) {
        program_error("a file was cut, or could not be read, while it was being sorted");
        return false;
    }
    return true;
}
