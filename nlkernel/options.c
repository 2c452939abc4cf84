#include "config.h"

#include "options.h"

#include "base/memory.h"
#include "base/error.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void add_word(const char ***list, size_t *count, const char *word)
{
    *list = nl_memory_check(reallocarray(*list, *count + 1, sizeof **list));
    (*list)[(*count)++] = word;
}

/* A number from least to most at *text, which moves on behind it. */
static bool read_number(const char **text, long least, long most, long *value)
{
    char *end;
    if (!isdigit((unsigned char)**text))
        return false;
    errno = 0;
    *value = strtol(*text, &end, 10);
    *text = end;
    return errno == 0 && *value >= least && *value <= most;
}

static bool add_event(void *settings, const nl_option *row, const char *value)
{
    recording_options *o = settings;
    (void)row;
    add_word(&o->patterns, &o->pattern_count, value);
    return true;
}

static bool add_pids(void *settings, const nl_option *row, const char *value)
{
    recording_options *o = settings;
    const char *at = value;
    (void)row;
    do {
        long pid = 0;
        if (!read_number(&at, 1, INT_MAX, &pid) || (*at != ',' && *at != '\0'))
            return nl_error_false(NL_ERROR_INVALID, "\"%s\" is not a list of process numbers with commas between",
                                  value);
        o->pids = nl_memory_check(reallocarray(o->pids, o->pid_count + 1, sizeof *o->pids));
        o->pids[o->pid_count++] = (int)pid;
    } while (*at++ == ',');
    return true;
}

static void add_cpu(recording_options *o, size_t cpu)
{
    o->cpus[cpu] = true;
    if (cpu >= o->cpu_count)
        o->cpu_count = cpu + 1;
}

/* 0x3d: bits from the right are CPUs from 0 on. False when it is none. */
static bool read_mask(recording_options *o, const char *digits)
{
    size_t count = strlen(digits), before = o->cpu_count;
    if (count == 0 || count > RECORDING_CPUS_MAX / 4)
        return false;
    for (size_t i = 0; i < count; i++) {
        char c = digits[count - 1 - i];
        if (!isxdigit((unsigned char)c))
            return false;
        int digit = isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
        for (size_t bit = 0; bit < 4; bit++)
            if (digit >> bit & 1)
                add_cpu(o, 4 * i + bit);
    }
    return o->cpu_count > before || before > 0;
}

static bool add_cpus(void *settings, const nl_option *row, const char *value)
{
    recording_options *o = settings;
    const char *at = value;
    (void)row;
    if (o->cpus == NULL)
        o->cpus = nl_memory_check(calloc(RECORDING_CPUS_MAX, sizeof *o->cpus));
    if (strncmp(value, "0x", 2) == 0)
        return read_mask(o, value + 2) ||
               nl_error_false(NL_ERROR_INVALID, "\"%s\" is not a mask of CPUs, such as 0x3d", value);
    do {
        long first = 0, last;
        bool good = read_number(&at, 0, RECORDING_CPUS_MAX - 1, &first);
        last = first;
        if (good && *at == '-') {
            at++;
            good = read_number(&at, first, RECORDING_CPUS_MAX - 1, &last);
        }
        if (!good || (*at != ',' && *at != '\0'))
            return nl_error_false(NL_ERROR_INVALID, "\"%s\" is not a list of CPUs, such as 0,2-5", value);
        for (long cpu = first; cpu <= last; cpu++)
            add_cpu(o, (size_t)cpu);
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
        return nl_error_false(NL_ERROR_INVALID, "\"%s\" names no function; write for example 'tcp_*'", value);
    add_word(&o->globs, &o->glob_count, value);
    return true;
}

static bool set_filter(void *settings, const nl_option *row, const char *value)
{
    recording_options *o = settings;
    (void)row;
    if (o->filter != NULL)
        return nl_error_false(NL_ERROR_INVALID, "given twice; join the expressions with && or ||");
    o->filter = nl_filter_parse(value);
    return o->filter != NULL;
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
     .help = "Record the events that match PATTERN: SYSTEM:EVENT, with * ? [a-z] in either part, or a system"},
    {.name = "functions",
     .choices = "graph|calls",
     .optional_value = true,
     .initial =
         "(graph where this kernel allows it for every recorder (Linux 6.11), unless --filter-function is given)",
     .set = set_functions,
     .help = "Record every call of the kernel's functions: graph records each call's duration (ftrace.funcgraph_entry "
             "and ftrace.funcgraph_exit), calls records the caller (ftrace.function); nlkernel graph draws them"},
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
     .help = "Record only events of these CPUs: 0,2-5, or a mask: 0x3d"},
    {.name = "where",
     .value = "EXPRESSION",
     .set = set_filter,
     .help = "Record only events that match EXPRESSION, such as 'NEXT.PRIO < 100 || PREV.COMM ~ \"kworker*\"'; the "
             "kernel evaluates the parts that it can; doc/expressions.md describes the language"},
    {.name = "counters",
     .value = "NAME[,NAME...]",
     .set = set_counters,
     .help = "Add the values of these counters of the event's CPU to each record: cycles, instructions, cache-misses, "
             "branch-misses, page-faults and more; counters that the machine lacks are reported and omitted; excludes "
             "--pid"},
    {.name = "only-command",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(recording_options, only_command),
     .help = "Record only events of COMMAND and of the processes that it starts"},
    {.name = "duration",
     .type = NL_OPTION_DURATION,
     .minimum = 1000000,
     NL_OPTION_MEMBER(recording_options, duration_ns),
     .help = "Stop after DURATION, and send SIGTERM to a COMMAND that still runs"},
    {.name = "activation",
     .value = "FILE",
     NL_OPTION_MEMBER(recording_options, activation),
     .help = "Execute the commands in FILE whenever the file changes: off, on, event PATTERN off; nlkernel control "
             "sends the same commands"},
    {.name = "buffer-size",
     .type = NL_OPTION_SIZE,
     .initial = "16m",
     .minimum = RECORDING_BUFFER_MIN,
     .maximum = (int64_t)1 << 34,
     NL_OPTION_MEMBER(recording_options, buffer_size),
     .help = "Size of the kernel's buffer per CPU"},
    {.name = "low-water",
     .type = NL_OPTION_COUNT,
     .value = "PERCENT",
     .initial = "5",
     .maximum = 100,
     NL_OPTION_MEMBER(recording_options, low_water),
     .help = "Read a CPU's buffer when it is filled to PERCENT, or after the interval"},
    {.name = "interval",
     .type = NL_OPTION_DURATION,
     .minimum = 1000000,
     .unit = 1000000,
     .initial = "(200ms; live: 50ms)",
     NL_OPTION_MEMBER(recording_options, interval_ms),
     .help = "Maximum time between reads of the buffers"},
    {.name = "quiet",
     .letter = 'q',
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(recording_options, quiet),
     .help = "Print only errors and warnings"},
    {.name = "tracefs",
     .value = "FOLDER",
     .initial = "(detected)",
     NL_OPTION_MEMBER(recording_options, tracefs),
     .help = "Mount point of tracefs"},
    {0},
};

void recording_options_check(const recording_options *o)
{
    if (o->counters.count > 0 && (o->functions || o->pid_count > 0 || o->only_command))
        options_fail(
            "--counters: excludes --pid, --only-command and --functions, because it counts for whole CPUs; use "
            "--where 'PROG == NAME'");
    if (o->glob_count > 0 && !o->functions)
        options_fail("--filter-function: needs --functions");
    if (o->pattern_count == 0 && !o->functions && !o->events_elsewhere)
        options_fail("missing --event, such as -e sched:sched_switch; nlkernel list shows all events");
    if (o->only_command && o->command == NULL)
        options_fail("--only-command: needs a COMMAND");
}

void recording_options_free(recording_options *o)
{
    free(o->patterns);
    free(o->globs);
    free(o->pids);
    free(o->cpus);
    nl_filter_free(o->filter);
    *o = (recording_options){0};
}
