#include "config.h"

#include "by_time.h"

#include "item.h"
#include "load.h"
#include "order.h"
#include "program/program.h"
#include "runs.h"
#include "table.h"

enum {
    PROGRESS_RECORDS = 64 << 10, /* between looks at whether it is time to say how far things are */
    WRITTEN_AT_ONCE = 1 << 20,
    OVERHEAD = 8 << 20, /* beside tables: buffers, the program itself */
};

/* The time that a key of none but the time was made of. */
static int64_t time_of_key(nl_string key, bool reverse)
{
    uint64_t prefix = item_prefix(key.data, key.size);
    return (int64_t)((reverse ? ~prefix : prefix) ^ (UINT64_C(1) << 63));
}

/* A log that is no plain file of text, record by record. */
static void read_records(const by_time *what, const char *path, table *t, runs *r)
{
    input *in = input_open(what->settings, path);
    nl_string key, line;
    while (in != NULL && input_next(in, &key, &line)) {
        table_add(t, time_of_key(key, what->reverse), (nl_string){line.data, line.size - 1});
        if (table_is_full(t))
            runs_add(r, t);
        if (input_record(in) % PROGRESS_RECORDS == 0) {
            uint64_t done, total;
            input_progress(in, &done, &total);
            program_progress(path, done, total, input_record(in));
        }
    }
    if (in != NULL)
        input_close(in);
}

static void read_log(const by_time *what, const char *path, table *t, runs *r)
{
    load *l = what->settings->where == NULL ? load_open(what->settings, path) : NULL;
    if (l == NULL) {
        read_records(what, path, t, r);
        return;
    }
    while (!load_into(l, t)) {
        runs_add(r, t);
        program_progress(path, 0, 0, 0);
    }
    load_close(l);
}

static void write_table(const by_time *what, table *t)
{
    order o = order_table(t);
    what->begin(what->user);
    gather_lines(t->text, o.lines, o.count, WRITTEN_AT_ONCE, false, what->put, what->user);
    order_free(&o);
}

bool by_time_sort(const by_time *what)
{
    size_t memory = what->memory > 2 * OVERHEAD ? what->memory - OVERHEAD : what->memory / 2;
    table *t = table_new(memory, what->reverse);
    runs *r = runs_new(what->directory, memory);
    for (size_t i = 0; i < what->file_count; i++)
        read_log(what, what->files[i], t, r);
    if (runs_count(r) == 0) {
        write_table(what, t);
        table_free(t);
    } else {
        if (t->line_count > 0)
            runs_add(r, t);
        table_free(t); /* so that the runs' blocks have the memory */
        what->begin(what->user);
        runs_merge(r, what->put, what->user);
    }
    runs_free(r);
    if (table_is_damaged()) {
        program_error("a file was cut, or could not be read, while it was being sorted");
        return false;
    }
    return true;
}
