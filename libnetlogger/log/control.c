#include "config.h"

#include "log/control.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "base/text.h"
#include "log/log_internal.h"
#include "log/marker.h"
#include "log/site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { WORDS_MAX = 5, LINE_MAX_SIZE = 4096 };
#define REPORT_EVERY_NS (INT64_C(10) * NL_NS_PER_SECOND)

struct nl_control_probe {
    nl_control_probe *next;
    nl_control_origin origin;
    nl_probe probe;
    nl_probe_kind kind;
    char *pattern;
    char *to;
    char *command;     /* the words of the line, separated by single spaces */
    uint64_t reported; /* the count in the latest report */
};

/* The words of a line, in a copy of the line. */
typedef struct command {
    char *arguments[WORDS_MAX];
    size_t count;
    char text[LINE_MAX_SIZE];
} command;

/* ---- reports of counts ---- */

static void report_count(nl_log *log, const nl_control_probe *probe, const nl_probe_info *info)
{
    nl_record *record = nl_own_record_new(log, NL_USAGE, "NetLogger.Marker");
    nl_record_add_text(record, "NAME", probe->pattern);
    if (probe->to != NULL)
        nl_record_add_text(record, "TO", probe->to);
    nl_record_add_uint(record, "COUNT", info->count);
    if (probe->kind == NL_PROBE_TIME && info->count > 0) {
        nl_record_add_int(record, "MIN.NS", info->min_ns);
        nl_record_add_int(record, "MEAN.NS", info->mean_ns);
        nl_record_add_int(record, "MAX.NS", info->max_ns);
        nl_record_add_int(record, "P50.NS", info->p50_ns);
        nl_record_add_int(record, "P90.NS", info->p90_ns);
        nl_record_add_int(record, "P99.NS", info->p99_ns);
    }
    nl_own_records_add(log, record);
}

static bool has_count(const nl_control_probe *probe)
{
    return probe->kind == NL_PROBE_COUNT || probe->kind == NL_PROBE_TIME;
}

void nl_control_report(nl_log *log)
{
    nl_log_control *control = &log->control;
    int64_t now_ns = nl_monotonic_ns();
    if (now_ns < control->report_ns)
        return;
    if (control->report_ns != 0) {
        pthread_mutex_lock(&control->mutex);
        for (nl_control_probe *probe = control->probes; probe != NULL; probe = probe->next) {
            nl_probe_info info;
            if (!has_count(probe) || !nl_probe_read(probe->probe, &info) || info.count == probe->reported)
                continue;
            probe->reported = info.count;
            report_count(log, probe, &info);
        }
        pthread_mutex_unlock(&control->mutex);
    }
    control->report_ns = now_ns + REPORT_EVERY_NS;
}

/* ---- probes; the caller holds control->mutex ---- */

static void free_probe(nl_control_probe *probe)
{
    free(probe->pattern);
    free(probe->to);
    free(probe->command);
    free(probe);
}

/* Returns an unattached copy of `wanted`, or NULL if memory runs out. */
static nl_control_probe *make_probe(nl_control_origin origin, const nl_control_probe *wanted, const char *text)
{
    nl_control_probe *made = nl_memory_check(malloc(sizeof *made));
    if (made == NULL)
        return NULL;
    *made = (nl_control_probe){.origin = origin,
                               .kind = wanted->kind,
                               .pattern = nl_text_copy(wanted->pattern),
                               .to = nl_text_copy(wanted->to),
                               .command = nl_text_copy(text)};
    if (made->pattern != NULL && made->command != NULL && (made->to != NULL || wanted->to == NULL))
        return made;
    free_probe(made);
    return NULL;
}

/*
 * Detaches and frees the probe *at, and sets *at to the next probe. If the probe was still attached, reports its final
 * count. Does not wait for threads that run the probe, because they may be waiting for the writer thread.
 */
static void probe_detach(nl_log *log, nl_control_probe **at)
{
    nl_control_probe *probe = *at;
    nl_probe_info info;
    *at = probe->next;
    if (nl_marker_detach_at_once(probe->probe, &info) == NL_OK && has_count(probe))
        report_count(log, probe, &info);
    free_probe(probe);
}

static nl_status probe_attach(nl_log *log, nl_control_origin origin, const nl_control_probe *wanted, nl_level level,
                              const char *text)
{
    nl_log_control *control = &log->control;
    nl_control_probe **at = &control->probes;
    for (; *at != NULL; at = &(*at)->next)
        if ((*at)->origin == origin && strcmp((*at)->command, text) == 0)
            return NL_OK;
    if (control->closing)
        return nl_error_set(NL_ERROR_BUSY, "the log is being closed");
    nl_control_probe *made = make_probe(origin, wanted, text);
    if (made == NULL)
        return NL_FAILED;
    made->probe = nl_marker_attach(&(nl_probe_options){
        .kind = wanted->kind, .pattern = wanted->pattern, .to = wanted->to, .log = log, .level = level});
    if (made->probe == 0) {
        free_probe(made);
        return NL_FAILED;
    }
    *at = made;
    return NL_OK;
}

static void probes_detach_pattern(nl_log *log, const char *pattern)
{
    for (nl_control_probe **at = &log->control.probes; *at != NULL;)
        if (strcmp((*at)->pattern, pattern) == 0)
            probe_detach(log, at);
        else
            at = &(*at)->next;
}

void nl_control_finish(nl_log *log)
{
    pthread_mutex_lock(&log->control.mutex);
    log->control.closing = true;
    while (log->control.probes != NULL)
        probe_detach(log, &log->control.probes);
    pthread_mutex_unlock(&log->control.mutex);
}

void nl_control_close_next(nl_log *log)
{
    const nl_next_destination next = log->control.next;
    if (next.url == NULL)
        return;
    log->control.next = (nl_next_destination){0};
    nl_destination_close(next.destination, true);
    nl_url_free(next.url);
}

void nl_control_free(nl_log *log)
{
    nl_log_control *control = &log->control;
    nl_own_records_drop(log, control->own_record_count);
    free(control->own_records);
    nl_activation *const both[] = {&control->activation, &control->collector};
    for (int i = 0; i < 2; i++) {
        free(both[i]->path);
        free(both[i]->text);
        nl_buffer_free(&both[i]->done);
    }
    nl_control_close_next(log); /* while the log's destination was being closed, a command may have arrived */
    pthread_mutex_destroy(&control->mutex);
}

/* ---- commands; if log is NULL, the functions only check them ---- */

static nl_status do_level(nl_log *log, nl_control_origin origin, const command *c)
{
    (void)origin;
    nl_level level = c->count == 2 ? nl_level_parse(c->arguments[1], strlen(c->arguments[1])) : NL_LEVEL_NONE;
    if (level == NL_LEVEL_NONE)
        return nl_error_set(NL_ERROR_INVALID, "\"level\" requires one of " NL_LEVEL_NAMES);
    if (log != NULL)
        nl_set_level(log, level);
    return NL_OK;
}

static nl_status do_event(nl_log *log, nl_control_origin origin, const command *c)
{
    (void)origin;
    bool off = c->count == 3 && strcasecmp(c->arguments[2], "off") == 0;
    if (c->count != 3 || (!off && strcasecmp(c->arguments[2], "on") != 0))
        return nl_error_set(NL_ERROR_INVALID, "\"event\" requires a pattern, and off or on");
    if (strlen(c->arguments[1]) >= NL_SITE_PATTERN_SIZE)
        return nl_error_set(NL_ERROR_LIMIT, "the pattern is longer than %d bytes", NL_SITE_PATTERN_SIZE - 1);
    if (log != NULL)
        nl_sites_switch(c->arguments[1], off);
    return NL_OK;
}

/*
 * Sets *kind and *level from the words of a "marker" line. Returns NL_OK, NL_END for "off", or NL_FAILED if the line is
 * invalid.
 */
static nl_status read_marker(const command *c, nl_probe_kind *kind, nl_level *level)
{
    const char *what = c->count >= 3 ? c->arguments[2] : "", *more = c->count == 4 ? c->arguments[3] : NULL;
    *level = NL_USAGE;
    if (c->count <= 4 && strcasecmp(what, "log") == 0) {
        *kind = NL_PROBE_LOG;
        *level = more != NULL ? nl_level_parse(more, strlen(more)) : NL_USAGE;
        return *level != NL_LEVEL_NONE
                   ? NL_OK
                   : nl_error_set(NL_ERROR_INVALID, "\"%s\" is not a level; use one of " NL_LEVEL_NAMES, more);
    }
    if (c->count == 4 && strcasecmp(what, "time") == 0) {
        *kind = NL_PROBE_TIME;
        return NL_OK;
    }
    *kind = NL_PROBE_COUNT;
    if (c->count == 3 && strcasecmp(what, "count") == 0)
        return NL_OK;
    if (c->count == 3 && strcasecmp(what, "off") == 0)
        return NL_END;
    return nl_error_set(NL_ERROR_INVALID, "\"marker\" requires a pattern, and log [LEVEL], count, time PATTERN or off");
}

static void control_join(const command *c, char text[LINE_MAX_SIZE])
{
    size_t size = 0;
    for (size_t i = 0; i < c->count; i++)
        size += (size_t)snprintf(text + size, LINE_MAX_SIZE - size, i > 0 ? " %s" : "%s", c->arguments[i]);
}

static nl_status do_marker(nl_log *log, nl_control_origin origin, const command *c)
{
    nl_control_probe wanted = {0};
    nl_level level;
    nl_status status = read_marker(c, &wanted.kind, &level);
    if (status == NL_FAILED || log == NULL)
        return status == NL_FAILED ? NL_FAILED : NL_OK;
    wanted.pattern = c->arguments[1];
    wanted.to = wanted.kind == NL_PROBE_TIME ? c->arguments[3] : NULL;
    char text[LINE_MAX_SIZE];
    control_join(c, text);
    pthread_mutex_lock(&log->control.mutex);
    if (status == NL_END)
        probes_detach_pattern(log, wanted.pattern);
    status = status == NL_OK ? probe_attach(log, origin, &wanted, level, text) : NL_OK;
    pthread_mutex_unlock(&log->control.mutex);
    return status;
}

/*
 * Returns NL_OK if a collector may set this destination. A collector must not choose files that the program reads or
 * writes with its user's rights.
 */
static nl_status check_collectors_url(const char *text)
{
    nl_url *url = nl_url_parse(text);
    if (url == NULL)
        return NL_FAILED;
    bool netlog = url->scheme == NL_SCHEME_NETLOG || url->scheme == NL_SCHEME_NETLOGS;
    bool good = netlog && !nl_log_url_names_file(url);
    nl_url_free(url);
    if (good)
        return NL_OK;
    return nl_error_set(NL_ERROR_INVALID, netlog ? "a collector may not set a destination whose URL names files"
                                                 : "a collector may set only a collector as destination");
}

static nl_status do_destination(nl_log *log, nl_control_origin origin, const command *c)
{
    if (c->count != 2)
        return nl_error_set(NL_ERROR_INVALID, "\"destination\" requires a URL");
    if (origin == NL_CONTROL_COLLECTOR && check_collectors_url(c->arguments[1]) != NL_OK)
        return NL_FAILED;
    return log != NULL ? nl_log_set_destination(log, c->arguments[1], false) : NL_OK;
}

/* ---- lines ---- */

/* Splits a line into at most WORDS_MAX words. Returns false if the line is empty or a comment. */
static bool split(command *c, const char *line, size_t size)
{
    memcpy(c->text, line, size);
    c->text[size] = '\0';
    c->count = 0;
    char *rest = c->text, *word;
    while (c->count < WORDS_MAX && (word = strsep(&rest, " \t\r")) != NULL)
        if (*word != '\0')
            c->arguments[c->count++] = word;
    return c->count > 0 && *c->arguments[0] != '#';
}

static nl_status do_command(nl_log *log, nl_control_origin origin, const command *c)
{
    static const struct {
        const char *name;
        nl_status (*function)(nl_log *log, nl_control_origin origin, const command *c);
    } all[] = {{"level", do_level}, {"event", do_event}, {"marker", do_marker}, {"destination", do_destination}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcasecmp(c->arguments[0], all[i].name) == 0)
            return all[i].function(log, origin, c);
    return nl_error_set(NL_ERROR_NOT_FOUND,
                        "unknown command \"%s\"; the commands are level, event, marker and destination",
                        c->arguments[0]);
}

/*
 * Appends the line number (0: no number) and the latest error to the failures. Does nothing if the failures already
 * have more than 400 bytes.
 */
static void add_failure(nl_buffer *failures, size_t line)
{
    char number[48];
    if (failures->size > 400)
        return;
    if (failures->size > 0)
        nl_buffer_append(failures, "; ", 2);
    size_t size = (size_t)snprintf(number, sizeof number, "line %zu: ", line);
    if (line > 0)
        nl_buffer_append(failures, number, size);
    nl_buffer_append_text(failures, nl_error_message());
}

static nl_status do_line(nl_log *log, nl_control_origin origin, const char *line, size_t size, nl_buffer *good)
{
    command c;
    if (size >= sizeof c.text)
        return nl_error_set(NL_ERROR_LIMIT, "the line is longer than %zu bytes", sizeof c.text - 1);
    if (memchr(line, '\0', size) != NULL)
        return nl_error_set(NL_ERROR_INVALID, "the line contains a NUL");
    if (!split(&c, line, size))
        return NL_OK;
    nl_status status = do_command(log, origin, &c);
    if (status == NL_OK && good != NULL) {
        char text[LINE_MAX_SIZE];
        control_join(&c, text);
        if (!nl_buffer_append(good, text, strlen(text) + 1))
            return NL_FAILED;
    }
    return status;
}

nl_status nl_control_do(nl_log *log, nl_control_origin origin, const char *text, size_t size, nl_buffer *good)
{
    NL_REQUIRE(text != NULL || size == 0, "commands is NULL", NL_FAILED);
    nl_buffer failures = {0};
    bool failed = false;
    const char *end = text + size, *first_end = size > 0 ? memchr(text, '\n', size) : NULL;
    const bool has_lines = first_end != NULL && first_end + 1 < end;
    for (size_t number = 1; text < end; number++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *line_end = newline != NULL ? newline : end;
        if (do_line(log, origin, text, (size_t)(line_end - text), good) != NL_OK) {
            failed = true;
            add_failure(&failures, has_lines ? number : 0);
        }
        text = newline != NULL ? newline + 1 : end;
    }
    if (failures.size > 0)
        nl_error_set(NL_ERROR_INVALID, "%.*s", (int)failures.size, failures.data);
    nl_status status = failed ? NL_FAILED : NL_OK;
    nl_buffer_free(&failures);
    return status;
}

nl_status nl_control_undo(nl_log *log, const nl_activation *activation, const char *text)
{
    command c;
    split(&c, text, strlen(text));
    if (strcasecmp(c.arguments[0], "level") == 0)
        nl_set_level(log, (nl_level)activation->level_before);
    else if (strcasecmp(c.arguments[0], "event") == 0)
        nl_sites_forget_rule(c.arguments[1]);
    else if (strcasecmp(c.arguments[0], "destination") == 0)
        return nl_log_set_destination(log, log->control.first_url->text, true);
    else {
        pthread_mutex_lock(&log->control.mutex);
        for (nl_control_probe **at = &log->control.probes; *at != NULL; at = &(*at)->next)
            if ((*at)->origin == activation->origin && strcmp((*at)->command, text) == 0) {
                probe_detach(log, at);
                break;
            }
        pthread_mutex_unlock(&log->control.mutex);
    }
    return NL_OK;
}

nl_status nl_control_check(const char *commands, size_t size)
{
    return nl_control_do(NULL, NL_CONTROL_COLLECTOR, commands, size, NULL);
}

nl_status nl_control(nl_log *log, const char *commands, size_t size)
{
    if (log == NULL)
        return NL_OFF;
    const nl_visit visit = nl_enter();
    nl_status status = nl_control_do(log, NL_CONTROL_CALL, commands, size, NULL);
    nl_log_start(log);
    nl_leave(&visit);
    return status;
}
