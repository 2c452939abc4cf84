#include "config.h"

#include "options.h"

#include "base/error.h"
#include "base/memory.h"
#include "filter/filter.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void append_text(const char ***list, size_t *count, const char *text)
{
    *list = nl_memory_check(reallocarray(*list, *count + 1, sizeof **list));
    (*list)[(*count)++] = text;
}

void recording_options_add_pattern(recording_options *o, const char *pattern)
{
    append_text(&o->patterns, &o->pattern_count, pattern);
}

/* Parses a number at *text, and moves *text to the end of the number. Returns false if the text is not a number between
 * `minimum` and `maximum`. */
static bool read_number(const char **text, long minimum, long maximum, long *value)
{
    char *end;
    if (!isdigit((unsigned char)**text))
        return false;
    errno = 0;
    *value = strtol(*text, &end, 10);
    *text = end;
    return errno == 0 && *value >= minimum && *value <= maximum;
}

static bool add_event(void *settings, const nl_option *row, const char *value)
{
    (void)row;
    recording_options_add_pattern(settings, value);
    return true;
}

bool recording_add_pids(int **pids, size_t *count, const char *value)
{
    const char *at = value;
    do {
        long pid = 0;
        if (!read_number(&at, 1, INT_MAX, &pid) || (*at != ',' && *at != '\0'))
            return nl_error_false(NL_ERROR_INVALID, "\"%s\" is not a list of process IDs, such as 17,4711", value);
        *pids = nl_memory_check(reallocarray(*pids, *count + 1, sizeof **pids));
        (*pids)[(*count)++] = (int)pid;
    } while (*at++ == ',');
    return true;
}

static bool add_pids(void *settings, const nl_option *row, const char *value)
{
    recording_options *o = settings;
    (void)row;
    return recording_add_pids(&o->pids, &o->pid_count, value);
}

static bool add_cpus(void *settings, const nl_option *row, const char *value)
{
    recording_options *o = settings;
    const char *at = value;
    (void)row;
    do {
        long first = 0, last;
        bool ok = read_number(&at, 0, RECORDING_CPUS_MAX - 1, &first);
        last = first;
        if (ok && *at == '-') {
            at++;
            ok = read_number(&at, first, RECORDING_CPUS_MAX - 1, &last);
        }
        if (!ok || (*at != ',' && *at != '\0'))
            return nl_error_false(NL_ERROR_INVALID, "\"%s\" is not a list of CPUs, such as 0,2-5", value);
        memset(o->cpus + first, true, (size_t)(last - first + 1));
        if ((size_t)last >= o->cpu_count)
            o->cpu_count = (size_t)last + 1;
    } while (*at++ == ',');
    return true;
}

static bool set_functions(void *settings, const nl_option *row, const char *value)
{
    bool graph = strcmp(value, "graph") == 0, calls = strcmp(value, "calls") == 0;
    if (*value != '\0' && !graph && !calls)
        return nl_error_false(NL_ERROR_INVALID, "\"%s\" is not one of %s", value, row->choices);
    ((recording_options *)settings)->functions = graph ? FUNCTIONS_GRAPH : calls ? FUNCTIONS_CALLS : FUNCTIONS_ANY;
    return true;
}

static bool add_glob(void *settings, const nl_option *row, const char *value)
{
    recording_options *o = settings;
    (void)row;
    if (value[*value == '!'] == '\0')
        return nl_error_false(NL_ERROR_INVALID, "\"%s\" names no function; use, for example, 'tcp_*'", value);
    append_text(&o->globs, &o->glob_count, value);
    return true;
}

static bool set_filter(void *settings, const nl_option *row, const char *value)
{
    (void)row;
    return program_filter_narrow(&((recording_options *)settings)->filter, value);
}

static bool set_counters(void *settings, const nl_option *row, const char *value)
{
    (void)row;
    return counters_choose(&((recording_options *)settings)->counters, value);
}

const nl_option recording_rows[] = {
    {.name = "event",
     .letter = 'e',
     .value = "PATTERN",
     .repeatable = true,
     .set = add_event,
     .help = "Record the events that match PATTERN, which is SYSTEM:EVENT, a system or an event; *, ? and [a-z] are "
             "wildcards"},
    {.name = "functions",
     .choices = "graph|calls",
     .optional_value = true,
     .initial = "(graph, but calls with --filter-function or before Linux 6.11)",
     .set = set_functions,
     .help = "Record every call of the kernel's functions. With graph, the records contain each call's duration "
             "(ftrace.funcgraph_entry and ftrace.funcgraph_exit); with calls, each call's caller (ftrace.function). "
             "nlkernel graph draws the calls"},
    {.name = "filter-function",
     .value = "GLOB",
     .repeatable = true,
     .set = add_glob,
     .help = "With --functions: record only functions whose name matches GLOB (tcp_*); !GLOB excludes functions"},
    {.name = "pid",
     .value = "PID[,PID...]",
     .repeatable = true,
     .set = add_pids,
     .help = "Record only events of these processes, and of the processes that they start during the recording"},
    {.name = "cpu",
     .value = "LIST",
     .repeatable = true,
     .set = add_cpus,
     .help = "Record only events of these CPUs, such as 0,2-5"},
    {.name = "where",
     .value = "EXPRESSION",
     .repeatable = true,
     .set = set_filter,
     .help =
         "Record only events that match EXPRESSION, such as 'NEXT.PRIO < 100 || PREV.COMM ~ \"kworker*\"'. The "
         "kernel evaluates the parts of the expression that it supports. doc/expressions.md describes the language"},
    {.name = "counters",
     .value = "NAME[,NAME...]",
     .set = set_counters,
     .help = "Add to each record the values of these counters on the event's CPU, such as cycles, instructions, "
             "cache-misses, branch-misses or page-faults. nlkernel omits counters that the machine lacks, and prints "
             "their names. "
             "This option cannot be used with --pid"},
    {.name = "only-command",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(recording_options, only_command),
     .help = "Record only events of COMMAND and of the processes that it starts"},
    {.name = "duration",
     .type = NL_OPTION_DURATION,
     .minimum = 1000000,
     NL_OPTION_MEMBER(recording_options, duration_ns),
     .help = "Stop after DURATION, and send SIGTERM to COMMAND if it still runs"},
    {.name = "activation",
     .value = "FILE",
     NL_OPTION_MEMBER(recording_options, activation),
     .help = "Execute the commands in FILE (off, on, event PATTERN off) at the start and whenever the file changes; "
             "nlkernel control sends the same commands"},
    {.name = "buffer-size",
     .type = NL_OPTION_SIZE,
     .initial = "16m",
     .minimum = 8 << 10,
     .maximum = (int64_t)1 << 34,
     NL_OPTION_MEMBER(recording_options, buffer_size),
     .help = "Size of the kernel's buffer for each CPU"},
    {.name = "low-water",
     .type = NL_OPTION_COUNT,
     .value = "PERCENT",
     .initial = "5",
     .maximum = 100,
     NL_OPTION_MEMBER(recording_options, low_water),
     .help = "Read a CPU's buffer when it is PERCENT full, and at regular intervals"},
    {.name = "quiet",
     .letter = 'q',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(recording_options, quiet),
     .help = "Print only errors and warnings"},
    {.name = "tracefs",
     .value = "DIRECTORY",
     .initial = "(detected)",
     NL_OPTION_MEMBER(recording_options, tracefs),
     .help = "Mount point of tracefs"},
    {0},
};

void recording_options_check(const recording_options *o, bool needs_event)
{
    if (o->counters.count > 0 && (o->functions || o->pid_count > 0 || o->only_command))
        options_fail("--counters cannot be used with --pid, --only-command or --functions, because --counters counts "
                     "for whole CPUs; use --where 'PROG == NAME'");
    if (o->glob_count > 0 && !o->functions)
        options_fail("--filter-function requires --functions");
    if (needs_event && o->pattern_count == 0 && !o->functions)
        options_fail("missing --event, such as -e sched:sched_switch; nlkernel list shows all events");
    if (o->only_command && o->command == NULL)
        options_fail("--only-command requires a COMMAND");
}

void recording_options_free(recording_options *o)
{
    free(o->patterns);
    free(o->globs);
    free(o->pids);
    nl_filter_free(o->filter);
    *o = (recording_options){0};
}
