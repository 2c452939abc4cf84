#include "config.h"

#include "options.h"

#include "base/program_memory.h"
#include "base/error.h"
#include "base/size.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPTION_PID = 0x1100,
    OPTION_CPU,
    OPTION_FILTER,
    OPTION_LOW_WATER,
    OPTION_INTERVAL,
    OPTION_TRACEFS,
    OPTION_FUNCTIONS,
    OPTION_FUNCTION,
    OPTION_COUNTERS,
    OPTION_ACTIVATION
};

static const struct argp_option options[] = {
    {"event", 'e', "PATTERN", 0,
     "Record these events: SYSTEM:EVENT, with * ? [a-z] in either, or a system; again for more", 1},
    {"functions", OPTION_FUNCTIONS, "graph|calls", OPTION_ARG_OPTIONAL,
     "Record every call of the kernel's functions. calls: with its caller, ftrace.function. graph: how long it took, "
     "ftrace.funcgraph_entry and ftrace.funcgraph_exit. Default: graph, where this kernel has it for every recorder "
     "(Linux 6.11) and there is no --filter-function. nlkernel graph draws them",
     1},
    {"filter-function", OPTION_FUNCTION, "GLOB", 0,
     "--functions: only of those called so (tcp_*); !GLOB: not of those; again for more", 1},
    {"pid", OPTION_PID, "PID[,PID...]", 0, "Only what these processes do, and those that they start meanwhile", 1},
    {"cpu", OPTION_CPU, "LIST", 0, "Only these CPUs: 0,2-5, or a mask: 0x3d", 1},
    {"filter", OPTION_FILTER, "EXPR", 0,
     "Only events that EXPR is true of, such as 'NEXT.PRIO < 100 || PREV.COMM ~ \"kworker*\"'. What the kernel can "
     "test itself is tested there. doc/expressions.md is about all that it may be",
     1},
    {"counters", OPTION_COUNTERS, "NAME[,NAME...]", 0,
     "With each event what these counters of its CPU were: cycles, instructions, cache-misses, branch-misses, "
     "page-faults and more. What the machine has not is left out, and said. Of all processes only",
     1},
    {"follow", 'F', NULL, 0, "Only what COMMAND does, and the processes that it starts", 1},
    {"duration", 'd', "TIME", 0, "End after that: 10s, 500ms, 2m, 1h. A COMMAND that still runs is ended (SIGTERM)", 2},
    {"buffer", 'b', "SIZE", 0, "The kernel's buffer of each CPU (default 16m)", 3},
    {"low-water", OPTION_LOW_WATER, "PERCENT", 0,
     "Read a CPU's buffer as soon as so much of it is filled (default 5), or after the interval", 3},
    {"interval", OPTION_INTERVAL, "TIME", 0, "Read the buffers at least so often (default 200ms; live: 50ms)", 3},
    {"activation", OPTION_ACTIVATION, "FILE", 0,
     "Do what the lines of FILE say, whenever it has changed: off, on, event PATTERN off. nlkernel control does the "
     "same by hand",
     2},
    {"quiet", 'q', NULL, 0, "Say nothing when all went well", 3},
    {"tracefs", OPTION_TRACEFS, "FOLDER", 0, "Where tracefs is mounted (default: wherever it is)", 3},
    {0},
};

static void add_word(const char ***words, size_t *count, const char *word)
{
    *words = reallocarray(*words, *count + 1, sizeof **words);
    PROGRAM_REQUIRE(*words != NULL, "out of memory");
    (*words)[(*count)++] = word;
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

static void read_pids(recording_options *o, const char *text, struct argp_state *state)
{
    const char *at = text;
    do {
        long pid = 0;
        if (!read_number(&at, 1, INT_MAX, &pid) || (*at != ',' && *at != '\0'))
            argp_error(state, "--pid %s: numbers of processes are wanted, with commas between", text);
        o->pids = reallocarray(o->pids, o->pid_count + 1, sizeof *o->pids);
        PROGRAM_REQUIRE(o->pids != NULL, "out of memory");
        o->pids[o->pid_count++] = (int)pid;
    } while (*at++ == ',');
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
    if (count == 0 || count > RECORDING_CPUS_MOST / 4)
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

static void read_cpus(recording_options *o, const char *text, struct argp_state *state)
{
    const char *at = text;
    if (o->cpus == NULL)
        o->cpus = calloc(RECORDING_CPUS_MOST, sizeof *o->cpus);
    PROGRAM_REQUIRE(o->cpus != NULL, "out of memory");
    if (strncmp(text, "0x", 2) == 0) {
        if (!read_mask(o, text + 2))
            argp_error(state, "--cpu %s: a mask of CPUs in hexadecimal digits is wanted, as in 0x3d", text);
        return;
    }
    do {
        long first = 0, last;
        bool good = read_number(&at, 0, RECORDING_CPUS_MOST - 1, &first);
        last = first;
        if (good && *at == '-') {
            at++;
            good = read_number(&at, first, RECORDING_CPUS_MOST - 1, &last);
        }
        if (!good || (*at != ',' && *at != '\0'))
            argp_error(state, "--cpu %s: numbers and ranges of CPUs are wanted, as in 0,2-5", text);
        for (long cpu = first; cpu <= last; cpu++)
            add_cpu(o, (size_t)cpu);
    } while (*at++ == ',');
}

static int64_t read_time_ns(const char *name, const char *text, struct argp_state *state)
{
    int64_t time_ns = 0;
    if (!program_duration_parse(text, &time_ns))
        argp_error(state, "%s %s: a time is wanted, as in 10s, 500ms, 2m or 1h", name, text);
    return time_ns;
}

static void read_filter(recording_options *o, const char *text, struct argp_state *state)
{
    if (o->filter != NULL)
        argp_error(state, "--filter is given twice: join the expressions by && or ||");
    o->filter = nl_filter_parse(text);
    if (o->filter == NULL)
        argp_error(state, "--filter: %s", nl_error_message());
}

static void read_functions(recording_options *o, const char *kind, struct argp_state *state)
{
    if (kind != NULL && strcmp(kind, "graph") != 0 && strcmp(kind, "calls") != 0)
        argp_error(state, "--functions=%s: graph or calls is wanted", kind);
    o->functions = kind == NULL ? FUNCTIONS_ANY : strcmp(kind, "graph") == 0 ? FUNCTIONS_GRAPH : FUNCTIONS_CALLS;
}

static void read_glob(recording_options *o, const char *glob, struct argp_state *state)
{
    if (glob[*glob == '!'] == '\0')
        argp_error(state, "--filter-function: the name of a function is wanted, such as 'tcp_*'");
    add_word(&o->globs, &o->glob_count, glob);
}

static void read_buffer_size(recording_options *o, const char *text, struct argp_state *state)
{
    if (!nl_size_parse(text, &o->buffer_size) || o->buffer_size < RECORDING_BUFFER_LEAST ||
        o->buffer_size > (size_t)1 << 34)
        argp_error(state, "--buffer %s: a size from 8k to 16g is wanted", text);
}

static void read_low_water(recording_options *o, const char *text, struct argp_state *state)
{
    const char *at = text;
    long percent = 0;
    if (!read_number(&at, 0, 100, &percent) || *at != '\0')
        argp_error(state, "--low-water %s: 0 to 100 per cent are wanted", text);
    o->low_water = (int)percent;
}

static void read_interval(recording_options *o, const char *text, struct argp_state *state)
{
    int64_t ms = (read_time_ns("--interval", text, state) + 999999) / 1000000;
    o->interval_ms = ms < INT_MAX ? (int)ms : INT_MAX;
}

/* Which options go together. */
static void check_together(const recording_options *o, struct argp_state *state)
{
    if (o->counters.count > 0 && (o->functions || o->pid_count > 0 || o->follow))
        argp_error(state, "--counters counts for whole CPUs: --pid, --follow and --functions can't go with it; "
                          "--filter 'PROG == NAME' can");
    if (o->glob_count > 0 && !o->functions)
        argp_error(state, "--filter-function is about --functions, which is not given");
    if (o->pattern_count == 0 && !o->functions && !o->events_elsewhere)
        argp_error(state, "no event is given: -e sched:sched_switch, for one; nlkernel list shows what there is");
    if (o->follow && o->command == NULL)
        argp_error(state, "--follow wants a command to follow");
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    recording_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        o->buffer_size = RECORDING_BUFFER_DEFAULT;
        o->low_water = -1;
        return 0;
    case 'e':
        add_word(&o->patterns, &o->pattern_count, argument);
        return 0;
    case OPTION_FUNCTIONS:
        read_functions(o, argument, state);
        return 0;
    case OPTION_FUNCTION:
        read_glob(o, argument, state);
        return 0;
    case OPTION_PID:
        read_pids(o, argument, state);
        return 0;
    case OPTION_CPU:
        read_cpus(o, argument, state);
        return 0;
    case OPTION_FILTER:
        read_filter(o, argument, state);
        return 0;
    case 'F':
        o->follow = true;
        return 0;
    case 'd':
        o->duration_ns = read_time_ns("--duration", argument, state);
        return 0;
    case 'b':
        read_buffer_size(o, argument, state);
        return 0;
    case OPTION_LOW_WATER:
        read_low_water(o, argument, state);
        return 0;
    case OPTION_INTERVAL:
        read_interval(o, argument, state);
        return 0;
    case 'q':
        o->quiet = true;
        return 0;
    case OPTION_COUNTERS:
        if (!counters_choose(&o->counters, argument))
            argp_error(state, "--counters: %s", nl_error_message());
        return 0;
    case OPTION_ACTIVATION:
        o->activation = argument;
        return 0;
    case OPTION_TRACEFS:
        o->tracefs = argument;
        return 0;
    case ARGP_KEY_ARGS:
        o->command = state->argv + state->next;
        return 0;
    case ARGP_KEY_END:
        check_together(o, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp recording_argp = {.options = options, .parser = parse};

void recording_options_free(recording_options *o)
{
    free(o->patterns);
    free(o->globs);
    free(o->pids);
    free(o->cpus);
    nl_filter_free(o->filter);
    *o = (recording_options){0};
}
