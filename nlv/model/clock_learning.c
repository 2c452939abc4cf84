#include "config.h"

#include "model/clock_learning.h"

#include "model/checks.h"

#include <math.h>

enum { HOSTS_NAMED = 5 };

typedef struct learning {
    model *model;
    const atomic_bool *stopping;
    correction *clocks;
    uint64_t done, all; /* total sizes in bytes of the previous files and of all files */
} learning;

static void learn_record(void *user, const nl_record *record)
{
    const learning *l = user;
    correction_learn(l->clocks, record);
}

static bool learn_more(void *user, uint64_t offset)
{
    const learning *l = user;
    model_set_progress(l->model, l->done + offset, l->all);
    return !*l->stopping;
}

correction *clock_learning_run(model *m, const atomic_bool *stopping)
{
    const GPtrArray *files = model_files(m);
    learning l = {.model = m, .stopping = stopping, .clocks = correction_new(&(correction_options){0})};
    for (guint i = 0; i < files->len; i++)
        l.all += ((const log_file *)g_ptr_array_index(files, i))->scanned;
    for (guint i = 0; i < files->len; i++) {
        const log_file *f = g_ptr_array_index(files, i);
        log_file_each(f, learn_record, learn_more, &l);
        l.done += f->scanned;
    }
    correction_solve(l.clocks);
    return l.clocks;
}

/* A list of host names as text, limited to the first HOSTS_NAMED hosts. */
typedef struct host_names {
    GString *text;
    size_t count;
} host_names;

static void add_host(host_names *hosts, const char *text)
{
    if (++hosts->count <= HOSTS_NAMED)
        g_string_append_printf(hosts->text, "%s%s", hosts->count > 1 ? ", " : "", text);
}

static void end_hosts(host_names *hosts)
{
    if (hosts->count > HOSTS_NAMED)
        g_string_append_printf(hosts->text, " and %zu more", hosts->count - HOSTS_NAMED);
}

static void add_corrected_host(host_names *hosts, const correction_host *h)
{
    char *off = checks_time_text(fabs(h->offset_ns)), *error = checks_time_text(h->error_ns);
    char *text = g_strdup_printf("%s %s%s%s%s%s", h->name, h->offset_ns < 0 ? "\342\210\222" : "+", off,
                                 isfinite(h->error_ns) ? " (\302\261 " : "", isfinite(h->error_ns) ? error : "",
                                 isfinite(h->error_ns) ? ")" : "");
    add_host(hosts, text);
    g_free(text);
    g_free(off);
    g_free(error);
}

char *clock_learning_describe(const correction *c)
{
    host_names corrected = {g_string_new(NULL), 0}, unknown = {g_string_new(NULL), 0};
    for (size_t i = 0; i < correction_host_count(c); i++) {
        correction_host h = correction_get_host(c, i);
        if (!h.is_known)
            add_host(&unknown, h.name);
        else if (!h.is_reference)
            add_corrected_host(&corrected, &h);
    }
    end_hosts(&corrected);
    end_hosts(&unknown);
    GString *text = g_string_new(NULL);
    if (corrected.count == 0)
        g_string_append(text, "No clock can be corrected: the log has no clock measurements (programs that log to a "
                              "collector write them) and no messages between hosts");
    else
        g_string_append_printf(text, "Times are corrected to the clock of %s by these offsets: %s",
                               correction_reference(c), corrected.text->str);
    if (corrected.count > 0 && unknown.count > 0)
        g_string_append_printf(text, "; the times of %s are as logged, because nothing is known about their clocks",
                               unknown.text->str);
    g_string_free(corrected.text, TRUE);
    g_string_free(unknown.text, TRUE);
    return g_string_free(text, FALSE);
}
