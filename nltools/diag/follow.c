#include "config.h"

#include "diag/follow.h"

#include "base/monotonic.h"
#include "base/time_internal.h"
#include "diag/repeats.h"
#include "diag/report.h"
#include "diag/place_names.h"
#include "diag/watch.h"
#include "program/json_document.h"
#include "program/own_log.h"
#include "program/program.h"
#include "requests/printable.h"

#include <stdlib.h>
#include <string.h>

/*
 * Each record goes to two readers, whose time ranges overlap by half. The second half of a reader's range is a pane.
 * For each request that ends in its pane, the reader has all records, unless the request began before the reader's
 * range. Panes become longer until they contain enough requests.
 */

#define SECOND INT64_C(1000000000)

enum {
    REQUESTS_PANE_MIN = 100,
    REQUESTS_PANE_MANY = 400,
    FAR_RECORDS = 20,
    USUAL_PANES = 64 /* number of panes between two searches for usual causes */
};

/* If healthy panes also show a cause, an alert reports the cause only if its share of the time is more than this factor
 * times the usual share. */
#define USUAL_FACTOR 1.5

static const int64_t PANE_MIN_NS = 2 * SECOND, PANE_MAX_NS = 600 * SECOND, JUMP_NS = 600 * SECOND,
                     REOPEN_NS = 1 * SECOND, REOPEN_MAX_NS = 30 * SECOND;

const nl_option follow_option_rows[] = {
    {.name = "follow",
     .letter = 'f',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(follow_options, follow),
     .help = "Watch SOURCE, which is a growing file or a collector. Print an alert when spans or edges become slower "
             "or more requests fail, and another message when the alert ends"},
    {.name = "dest",
     .letter = 'd',
     .value = "URL",
     NL_OPTION_MEMBER(follow_options, destination),
     .help = "Also write the alerts of --follow to URL, as records"},
    {.name = "run",
     .value = "COMMAND",
     NL_OPTION_MEMBER(follow_options, command),
     .help = "Also run COMMAND with the shell for each alert of --follow; environment variables describe the alert"},
    {0},
};

void follow_options_check(const follow_options *o, int operand_count)
{
    if (o->follow && operand_count > 1)
        options_fail("--follow requires one SOURCE");
    if (!o->follow && o->destination != NULL)
        options_fail("--dest requires --follow");
    if (!o->follow && o->command != NULL)
        options_fail("--run requires --follow");
}

typedef struct following {
    const follow_options *options;
    subject_options *subject;
    bool json;
    watch *watch;
    nl_log *log;               /* the log of --dest; NULL: no log */
    visits_reader *readers[2]; /* NULL before the first record */
    int64_t bounds[4]; /* the first reader covers the times bounds[0] to bounds[2], and the second reader bounds[1] to
                          bounds[3] */
    int64_t latest_ns, pane_ns;
    GHashTable *usual;    /* maps the name of a cause that a healthy pane shows to the cause's share, a double */
    unsigned until_usual; /* number of panes until the next search for usual causes */
    unsigned far;         /* number of consecutive records whose times are far from the other records */
    bool failed;
} following;

/* ---- alerts ---- */

/* Returns a name for a finding's cause and place. The name contains the pattern of the program's names, because a
 * process that starts again can have a new name. The caller frees it with g_free. */
static char *cause_name(const finding *x, const visits *v)
{
    char *where = x->place != VISIT_NONE ? text_pattern_of_place(v, x->place, x->host) : g_strdup(""),
         *name = g_strdup_printf("%s\n%s\n%s", x->cause, where, x->column != NULL ? x->column->name : "");
    g_free(where);
    return name;
}

/* Stores the causes that a healthy pane shows, and their shares, in w->usual. */
static void learn_usual(following *w, const visits *v)
{
    findings *f = findings_find(v);
    g_hash_table_remove_all(w->usual);
    for (guint i = 0; i < f->list->len; i++) {
        const finding *x = g_ptr_array_index(f->list, i);
        g_hash_table_insert(w->usual, cause_name(x, v), g_memdup2(&x->share, sizeof x->share));
    }
    findings_free(f);
}

static bool is_usual(const following *w, const finding *x, const visits *v)
{
    char *name = cause_name(x, v);
    const double *share = g_hash_table_lookup(w->usual, name);
    g_free(name);
    return share != NULL && x->share < USUAL_FACTOR * *share;
}

/*
 * Returns the finding that explains an alert, or NULL. Prefers a finding at the alert's place. Ignores findings that
 * only state that the program is slow during a part of the log, because such findings repeat the alert.
 */
static const finding *find_cause(const following *w, const findings *f, const watch_alert *a)
{
    const finding *elsewhere = NULL;
    bool failures = strcmp(a->place, WATCH_FAILURES) == 0;
    for (guint i = 0; i < f->list->len; i++) {
        const finding *x = g_ptr_array_index(f->list, i);
        if (!finding_is_fault(x) || strcmp(x->cause, "changed") == 0 || strcmp(x->cause, "cold") == 0 ||
            is_usual(w, x, f->visits))
            continue;
        if (failures ? strcmp(x->cause, "failures") == 0
                     : a->number_of_place != VISIT_NONE && finding_is_at(x, a->number_of_place))
            return x;
        if (elsewhere == NULL && !failures && x->share >= WATCH_EXCESS)
            elsewhere = x;
    }
    return elsewhere;
}

static char *text_time(int64_t time_ns)
{
    char text[NL_TIME_TEXT_SIZE];
    nl_time_format_iso(time_ns, text);
    return g_strdup(text);
}

/* Prints an alert. `f` contains the findings in the alert's requests, and `x` is the finding that explains the alert.
 * `f` and `x` may be NULL. */
static void print_alert(const following *w, const watch_alert *a, const char *message, const findings *f,
                        const finding *x)
{
    char *at = text_time(a->to_ns), *since = text_time(a->from_ns);
    if (w->json) {
        json_object *object = json_object_new_object();
        json_add_text(object, "time", at);
        json_add_text(object, "alert", a->ends ? "end" : "begin");
        json_add_int(object, "number", a->number);
        json_add_text(object, "place", a->place);
        json_add_text(object, "cause", x != NULL ? x->cause : "slower");
        json_add_text(object, "answer", x != NULL ? x->answer : NULL);
        if (x != NULL)
            json_object_object_add(object, "finding", report_finding_object(f, x, NULL));
        json_add_text(object, "since", since);
        json_add_double(object, "usual_ns", a->usual_ns);
        json_add_double(object, "now_ns", a->now_ns);
        json_add_double(object, "share", a->share);
        printf("%s\n", json_document_text(object, false));
        json_object_put(object);
    } else {
        printable_print("%s alert %u %s: %s\n", at, a->number, a->ends ? "ends" : "begins", message);
        if (x != NULL) {
            printable_print("   ");
            report_finding(f, x, NULL, false);
        }
    }
    fflush(stdout);
    g_free(at);
    g_free(since);
}

static void record_alert(following *w, const watch_alert *a, const char *message, const finding *x)
{
    const char *event = a->ends ? "nldiag.alert.end" : "nldiag.alert.start";
    nl_record *record = nl_record_new();
    nl_record_set_time(record, a->to_ns);
    nl_record_set_level(record, NL_WARNING);
    nl_record_set_event(record, event, strlen(event));
    nl_record_add_int(record, "ALERT.ID", a->number);
    nl_record_add_string(record, "PLACE", a->place, strlen(a->place));
    const char *cause = x != NULL ? x->cause : "slower";
    nl_record_add_string(record, "CAUSE", cause, strlen(cause));
    nl_record_add_double(record, "SHARE", a->share);
    nl_record_add_string(record, "MESSAGE", message, strlen(message));
    if (x != NULL)
        nl_record_add_string(record, "ANSWER", x->answer, strlen(x->answer));
    if (nl_write_record(w->log, record) < NL_OK || nl_flush(w->log) < NL_OK) {
        program_print_error();
        w->failed = true;
    }
    nl_record_free(record);
}

static void run_command(following *w, const watch_alert *a, const char *message, const finding *x)
{
    char *arguments[] = {"/bin/sh", "-c", (char *)w->options->command, NULL}, number[16];
    snprintf(number, sizeof number, "%u", a->number);
    char **environment = g_get_environ();
    environment = g_environ_setenv(environment, "NLDIAG_ALERT", a->ends ? "end" : "begin", TRUE);
    environment = g_environ_setenv(environment, "NLDIAG_NUMBER", number, TRUE);
    environment = g_environ_setenv(environment, "NLDIAG_PLACE", a->place, TRUE);
    environment = g_environ_setenv(environment, "NLDIAG_CAUSE", x != NULL ? x->cause : "slower", TRUE);
    environment = g_environ_setenv(environment, "NLDIAG_MESSAGE", message, TRUE);
    environment = g_environ_setenv(environment, "NLDIAG_ANSWER", x != NULL ? x->answer : "", TRUE);
    GError *error = NULL;
    if (!g_spawn_async(NULL, arguments, environment, G_SPAWN_DEFAULT, NULL, NULL, NULL, &error)) {
        program_error("--run: %s", error->message);
        g_error_free(error);
        w->failed = true;
    }
    g_strfreev(environment);
}

static void take_alert(void *user, const watch_alert *a, const visits *v)
{
    following *w = user;
    findings *f = NULL;
    const finding *cause = NULL;
    char *now = text_ns(a->now_ns), *usual = text_ns(a->usual_ns), *share = text_share(a->share),
         *since = text_time(a->from_ns), *message;
    if (!a->ends) {
        f = findings_find(v);
        findings_judge(f, "");
        cause = find_cause(w, f, a);
    }
    if (a->ends && strcmp(a->place, WATCH_FAILURES) == 0)
        message = g_strdup_printf("failures are back to normal; more requests had failed since %s", since);
    else if (a->ends)
        message = g_strdup_printf("%s takes %s per request again; it had been slower since %s", a->place, now, since);
    else if (strcmp(a->place, WATCH_FAILURES) == 0)
        message = g_strdup_printf("more requests fail; since %s, failed requests have taken %s of the requests' time",
                                  since, share);
    else
        message = g_strdup_printf("%s takes %s per request instead of the usual %s; since %s, this has cost %s of the "
                                  "requests' time",
                                  a->place, now, usual, since, share);
    print_alert(w, a, message, f, cause);
    if (w->log != NULL)
        record_alert(w, a, message, cause);
    if (w->options->command != NULL)
        run_command(w, a, message, cause);
    if (f != NULL)
        findings_free(f);
    g_free(now);
    g_free(usual);
    g_free(share);
    g_free(since);
    g_free(message);
}

/* ---- panes ---- */

static void drop_readers(following *w)
{
    for (int i = 0; i < 2; i++) {
        if (w->readers[i] != NULL)
            visits_free(visits_finish(w->readers[i]));
        w->readers[i] = NULL;
    }
}

static void start_panes(following *w, int64_t time_ns)
{
    drop_readers(w);
    for (int i = 0; i < 4; i++)
        w->bounds[i] = time_ns + i * w->pane_ns;
    for (int i = 0; i < 2; i++)
        w->readers[i] = visits_reader_new(w->subject, NULL, NULL);
    w->latest_ns = time_ns;
}

/* Makes all panes use the ID fields of the first pane with requests, so that their results are comparable. */
static void keep_ids(following *w, const visits *v)
{
    if (w->subject->ids != NULL || w->subject->config != NULL || v->lifelines != 1 || v->ids->len == 0)
        return;
    w->subject->ids = g_new0(char *, v->ids->len + 1);
    for (guint i = 0; i < v->ids->len; i++)
        w->subject->ids[i] = g_strdup(g_ptr_array_index(v->ids, i));
}

static void end_pane(following *w)
{
    visits *v = visits_finish(w->readers[0]);
    visits_join_repeats(v);
    uint32_t count = watch_add(w->watch, v, w->bounds[1], w->bounds[2]);
    if (count > 0)
        keep_ids(w, v);
    if (count > 0 && watch_is_calm(w->watch)) {
        if (w->until_usual == 0) {
            learn_usual(w, v);
            w->until_usual = USUAL_PANES;
        }
        w->until_usual--;
    }
    visits_free(v);
    if (count < REQUESTS_PANE_MIN)
        w->pane_ns = MIN(w->pane_ns * 2, PANE_MAX_NS);
    else if (count > REQUESTS_PANE_MANY)
        w->pane_ns = MAX(w->pane_ns / 2, PANE_MIN_NS);
    w->readers[0] = w->readers[1];
    w->readers[1] = visits_reader_new(w->subject, NULL, NULL);
    memmove(w->bounds, w->bounds + 1, 3 * sizeof *w->bounds);
    w->bounds[3] = w->bounds[2] + w->pane_ns;
}

static void follow_take(following *w, const nl_record *record)
{
    int64_t time_ns = record->time_ns;
    bool is_far = w->readers[0] == NULL || time_ns > w->latest_ns + JUMP_NS || time_ns < w->latest_ns - JUMP_NS;
    w->far = is_far ? w->far + 1 : 0;
    if (w->readers[0] == NULL || w->far >= FAR_RECORDS) {
        start_panes(w, time_ns); /* the clock has jumped, or nothing was logged for a long time */
        w->far = 0;
    } else if (is_far) {
        return;
    }
    w->latest_ns = MAX(w->latest_ns, time_ns);
    while (w->latest_ns >= w->bounds[2])
        end_pane(w);
    visits_add(w->readers[0], record);
    if (time_ns >= w->bounds[1])
        visits_add(w->readers[1], record);
}

/* ---- reading ---- */

/* Reads until the source ends or a signal arrives. Returns whether there were records. */
static bool read_while_open(following *w, program_log *log)
{
    const nl_record *record;
    nl_status status = NL_OK;
    bool any = false;
    while (!program_was_stopped() && (status == NL_OK || status == NL_AGAIN)) {
        status = program_log_next(log, w->subject->where.filter, &record);
        if (status == NL_OK) {
            any = true;
            follow_take(w, record);
        } else if (status == NL_AGAIN) {
            program_pause();
        }
    }
    return any;
}

static void wait_ns(int64_t duration_ns)
{
    int64_t until_ns = nl_monotonic_ns() + duration_ns;
    while (!program_was_stopped() && nl_monotonic_ns() < until_ns)
        program_pause();
}

/* Reads a source. If the source is a collector, connects again after each end of the connection, until a signal
 * arrives. */
static void read_source(following *w, const char *source)
{
    int64_t pause_ns = REOPEN_NS;
    bool again = program_awaits_signal(source);
    do {
        program_log *log = program_log_open(&w->subject->reading, source, true, true);
        bool any = log != NULL && read_while_open(w, log);
        program_log_close(log);
        pause_ns = any ? REOPEN_NS : MIN(pause_ns * 2, REOPEN_MAX_NS);
        w->failed = w->failed || (log == NULL && !again);
        if (again && !program_was_stopped()) {
            program_error("%s: not connected; trying again in %d s", source, (int)(pause_ns / SECOND));
            wait_ns(pause_ns);
        }
    } while (again && !program_was_stopped());
}

int follow_source(const follow_options *o, subject_options *subject, const char *source, bool json)
{
    following w = {.options = o, .subject = subject, .json = json, .pane_ns = PANE_MIN_NS};
    subject->memory_max /= 2; /* each of the two readers gets half of the memory */
    if (o->destination != NULL && (w.log = program_open_log("nldiag", o->destination, true)) == NULL)
        program_fail_with_error(PROGRAM_PROBLEM);
    program_catch_signals();
    w.watch = watch_new(take_alert, &w);
    w.usual = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    read_source(&w, source);
    drop_readers(&w);
    watch_free(w.watch);
    g_hash_table_destroy(w.usual);
    if (w.log != NULL && nl_close(w.log) < NL_OK)
        w.failed = !program_print_error();
    return w.failed ? PROGRAM_PROBLEM : PROGRAM_DONE;
}
