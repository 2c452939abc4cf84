/* nlkernel bench: measures the time that recording adds to the recorded program, for each kind of recorder. */
#include "config.h"

#include "child.h"
#include "command.h"
#include "instance.h"
#include "kernel_sum.h"
#include "reporting.h"
#include "rights.h"
#include "session.h"

#include "base/error.h"
#include "base/text.h"
#include "program/program.h"
#include "program/temporary_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROUNDS_MAX = 100, SIDE_COUNT = 5, SIDE_NOTHING = 0, SIDE_NLKERNEL = 2 };

typedef struct measurement {
    double call_ns, wall_ns; /* nanoseconds per call: the program's CPU time, and elapsed time */
    double lost;             /* number of lost events; negative: unknown */
} measurement;

typedef struct bench {
    reporting_options reporting;
    const char *tracefs;
    uint64_t calls;
    unsigned long rounds;
    char *directory; /* directory of the temporary files */
    char *loop_log, *kernel_log, *perf_log;
    char *loop[8]; /* the command to measure */
    measurement all[SIDE_COUNT][ROUNDS_MAX];
    bool missing[SIDE_COUNT];
} bench;

static bool find_double(const nl_record *record, const char *name, double *value)
{
    nl_field field;
    return nl_record_find(record, name, &field) && nl_field_double(&field, value);
}

/* Reads the result of the loop from its log, and deletes the log. Returns false and sets the error if the log has no
 * result. */
static bool read_loop(const bench *b, measurement *m)
{
    nl_reader *reader = nl_reader_open(b->loop_log, NULL);
    const nl_record *record;
    bool ok = reader != NULL && nl_reader_next(reader, &record) == NL_OK &&
              find_double(record, "OWN.NS", &m->call_ns) && find_double(record, "WALL.NS", &m->wall_ns);
    nl_reader_close(reader);
    unlink(b->loop_log);
    return ok || nl_error_false(NL_ERROR_SYSTEM, "the process that calls getppid failed");
}

static bool run_loop(const bench *b, measurement *m)
{
    return child_run(b->loop, "/dev/null") && read_loop(b, m);
}

/* ---- the recorders ---- */

static bool side_nothing(bench *b, measurement *m)
{
    return run_loop(b, m);
}

static bool measure_ftrace(bench *b, measurement *m)
{
    tracing t;
    instance i;
    if (!tracing_open(&t, b->tracefs))
        return false;
    bool ok = instance_create(&i, &t, NULL);
    if (ok) {
        ok = instance_write(&i, "buffer_size_kb", "65536") && instance_write(&i, "trace_clock", "mono") &&
             instance_write(&i, "events/raw_syscalls/enable", "1") && instance_write(&i, "tracing_on", "1") &&
             run_loop(b, m);
        m->lost = 0;
        for (long cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++)
            m->lost += (double)instance_overwritten(i.dir, (int)cpu);
        ok = instance_destroy(&i) && ok;
    }
    tracing_close(&t);
    return ok;
}

/* Measures the kernel's ring buffer without a reader. The result is a lower bound for all recorders that use this
 * buffer. */
static bool side_ftrace(bench *b, measurement *m)
{
    rights_raise();
    bool ok = measure_ftrace(b, m);
    rights_lower();
    return ok;
}

static bool open_bench_sink(sink *s, const void *user)
{
    return sink_open_file(s, user, NL_FORMAT_NLB, 0);
}

static double count_lost(const char *log)
{
    nl_reader *reader = nl_reader_open(log, NULL);
    const nl_record *record;
    double lost = 0, number;
    while (reader != NULL && nl_reader_next(reader, &record) == NL_OK)
        if (nl_string_is(record->event, "NetLogger.Lost") && find_double(record, "COUNT", &number))
            lost += number;
    nl_reader_close(reader);
    return lost;
}

static bool side_nlkernel(bench *b, measurement *m)
{
    static const char *patterns[] = {"raw_syscalls:*"};
    static recording_options o;
    o = (recording_options){.patterns = patterns,
                            .pattern_count = 1,
                            .buffer_size = 64 << 20,
                            .low_water = 5,
                            .quiet = true,
                            .tracefs = b->tracefs,
                            .command = b->loop};
    nl_error_set(NL_ERROR_SYSTEM, "nlkernel record failed");
    bool ok = session_run(&o, open_bench_sink, b->kernel_log) == PROGRAM_DONE && read_loop(b, m);
    if (ok)
        m->lost = count_lost(b->kernel_log);
    return ok;
}

/* Returns the number of events that perf reports as lost, or -1 if perf fails. */
static double count_lost_by_perf(const bench *b)
{
    char *command[] = {"perf", "report", "--stats", "-i", b->perf_log, NULL}, line[256];
    double lost = 0;
    if (!child_run(command, b->loop_log))
        return -1;
    FILE *output = fopen(b->loop_log, "re");
    if (output == NULL)
        return -1;
    while (fgets(line, sizeof line, output) != NULL) {
        const char *found = strstr(line, "LOST_SAMPLES events:");
        if (found != NULL)
            lost += strtod(found + strlen("LOST_SAMPLES events:"), NULL);
    }
    fclose(output);
    unlink(b->loop_log);
    return lost;
}

static bool side_perf(bench *b, measurement *m)
{
    char *command[20] = {"perf", "record",    "-m", "64M", "-e", "raw_syscalls:sys_enter,raw_syscalls:sys_exit",
                         "-o",   b->perf_log, "--"};
    for (size_t i = 0; b->loop[i] != NULL; i++)
        command[9 + i] = b->loop[i];
    bool ok = child_run(command, "/dev/null") && read_loop(b, m);
    if (ok)
        m->lost = count_lost_by_perf(b);
    unlink(b->perf_log);
    return ok || nl_error_false(NL_ERROR_SYSTEM, "perf is not installed, or has no permission to record");
}

/* Measures eBPF sums: the kernel adds the duration of each call, from entry to exit, to a sum and writes no events. */
static bool side_ebpf(bench *b, measurement *m)
{
    static const char text[] = "[kernel BenchSum]\nbegin = raw_syscalls:sys_enter key TID\n"
                               "end = raw_syscalls:sys_exit key TID\nby = ID\n";
    rules_file file = {.name = "bench"};
    bool ok = nl_sections_parse(&file.sections, text, "bench", NULL);
    rights_raise();
    kernel_sums *sums = ok ? kernel_sums_start(&file, b->tracefs) : NULL;
    ok = sums != NULL && run_loop(b, m);
    kernel_sums_free(sums);
    rights_lower();
    nl_sections_free(&file.sections);
    return ok;
}

static const struct {
    const char *name;
    bool (*run)(bench *b, measurement *m);
} sides[SIDE_COUNT] = {[SIDE_NOTHING] = {"nothing", side_nothing},
                       {"ftrace", side_ftrace},
                       [SIDE_NLKERNEL] = {"nlkernel", side_nlkernel},
                       {"perf", side_perf},
                       {"eBPF", side_ebpf}};

/* ---- the report ---- */

static int order_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Returns the nanoseconds per event by which `value`, in nanoseconds per call, exceeds the median without recording; at
 * least 0. Each call causes 2 events. */
static double added_per_event(const bench *b, double value, bool wall)
{
    double base[ROUNDS_MAX] = {0};
    for (size_t i = 0; i < b->rounds; i++)
        base[i] = wall ? b->all[SIDE_NOTHING][i].wall_ns : b->all[SIDE_NOTHING][i].call_ns;
    qsort(base, b->rounds, sizeof *base, order_doubles);
    double added = (value - base[b->rounds / 2]) / 2;
    return added > 0 ? added : 0;
}

static void bench_read_measurement(rules_run *run, const bench *b, size_t side, const measurement *m)
{
    nl_record *record = nl_record_new();
    nl_record_set_time(record, nl_time_now_ns());
    nl_record_set_prog(record, "nlkernel", 8);
    nl_record_set_level(record, NL_SYSTEM);
    nl_record_set_event(record, "Bench", 5);
    nl_record_add_text(record, "SIDE", sides[side].name);
    nl_record_add_double(record, "CALL.NS", m->call_ns);
    nl_record_add_double(record, "WALL.NS", m->wall_ns);
    nl_record_add_double(record, "ADDED.NS", added_per_event(b, m->call_ns, false));
    nl_record_add_double(record, "ADDED.WALL.NS", added_per_event(b, m->wall_ns, true));
    nl_record_add_double(record, "RATE", m->wall_ns > 0 ? 2e9 / m->wall_ns : 0);
    if (m->lost >= 0)
        nl_record_add_double(record, "LOST", m->lost);
    rules_run_take(run, record);
    nl_record_free(record);
}

/* Applies the "stopwatch" rules to nlkernel's log, and adds the percentiles of the call durations to the report. */
static void bench_read_stopwatch(rules_run *run, const bench *b)
{
    char where[64];
    snprintf(where, sizeof where, "ENDWHERE=ID == %d", (int)SYS_getppid);
    rules_parameters parameters = {(const char *[]){where, NULL}, 1};
    rules_run watch;
    log_input input = {0};
    if (!rules_run_open(&watch, "stopwatch", &parameters, NULL))
        return;
    log_input_read(&input, b->kernel_log, rules_run_take, &watch);
    log_input_finish(&input);
    rules_run_finish(&watch);
    for (size_t i = 0; i < watch.summaries.count; i++) {
        const summary *s = &watch.summaries.list[i];
        for (size_t j = 0; strcmp(s->name, "All") == 0 && j < s->row_count; j++)
            for (int percent = 1; percent <= 100; percent++) {
                nl_record *record = nl_record_new();
                nl_record_set_time(record, nl_time_now_ns());
                nl_record_set_event(record, "BenchStopwatch", 14);
                nl_record_add_int(record, "DUR.NS", nl_distribution_quantile(&s->rows[j]->values, percent / 100.0));
                rules_run_take(run, record);
                nl_record_free(record);
            }
    }
    rules_run_close(&watch);
}

static int report_bench(const bench *b)
{
    rules_run run;
    if (!rules_run_open(&run, "bench", &b->reporting.parameters, b->reporting.derived)) {
        program_print_error();
        return PROGRAM_PROBLEM;
    }
    for (size_t side = 0; side < SIDE_COUNT; side++)
        for (size_t round = 0; !b->missing[side] && round < b->rounds; round++)
            bench_read_measurement(&run, b, side, &b->all[side][round]);
    if (!b->missing[SIDE_NLKERNEL])
        bench_read_stopwatch(&run, b);
    bool ok = rules_run_finish(&run);
    int status = reporting_print(&run, &b->reporting);
    rules_run_close(&run);
    return ok ? status : PROGRAM_PROBLEM;
}

/* ---- the command ---- */

static const nl_option options[] = {
    {.name = "count",
     .letter = 'n',
     .type = NL_OPTION_COUNT,
     .initial = "1000000",
     .minimum = 1000,
     .maximum = 999999999999,
     NL_OPTION_MEMBER(bench, calls),
     .help = "Number of getppid calls per measurement"},
    {.name = "rounds",
     .type = NL_OPTION_COUNT,
     .initial = "3",
     .minimum = 1,
     .maximum = ROUNDS_MAX,
     NL_OPTION_MEMBER(bench, rounds),
     .help = "Number of rounds; each round measures every recorder once"},
    {.name = "tracefs",
     .value = "DIRECTORY",
     .initial = "(detected)",
     NL_OPTION_MEMBER(bench, tracefs),
     .help = "Mount point of tracefs"},
    {0},
};

static const options_usage usage = {
    .name = "nlkernel bench",
    .groups = (const options_group[]){{NULL, options, 0}, REPORTING_GROUPS(bench), {0}},
    .summary = "Measure the cost of recording a program's events, and compare five cases: no recording, the kernel's "
               "ring buffer alone (ftrace), nlkernel record, perf record, and sums that eBPF computes in the kernel.",
    .notes = "The recorders run one after the other. Each recorder records raw_syscalls:sys_enter and sys_exit while a "
             "process bound to one CPU calls getppid in a loop. nlkernel reports and omits recorders that are not "
             "installed. The cost of one event is half of the time that recording adds to a call. The machine should "
             "otherwise be idle.",
};

/* Measures all recorders. Returns false if even the loop without recording cannot be measured. */
static bool measure_sides(bench *b)
{
    for (size_t round = 0; round < b->rounds; round++)
        for (size_t side = 0; side < SIDE_COUNT; side++) {
            measurement *m = &b->all[side][round];
            m->lost = -1;
            if (b->missing[side] || sides[side].run(b, m))
                continue;
            program_error("%s is omitted: %s", sides[side].name, nl_error_message());
            b->missing[side] = true;
            if (side == SIDE_NOTHING)
                return false;
        }
    return true;
}

int command_bench(int argc, char **argv)
{
    static bench b;
    b.reporting = (reporting_options)REPORTING_INITIAL;
    options_parse(&usage, argc, argv, &b);
    char calls[24], own[4096] = "";
    snprintf(calls, sizeof calls, "%" PRIu64, b.calls);
    b.directory = temporary_directory_make("/dev/shm");
    if (b.directory == NULL)
        program_fail_with_error(PROGRAM_PROBLEM);
    b.loop_log = program_format("%s/loop", b.directory);
    b.kernel_log = program_format("%s/kernel.nlb", b.directory);
    b.perf_log = program_format("%s/perf.data", b.directory);
    /* resolve the path of nlkernel now, because in a command that perf executes, /proc/self/exe would be perf */
    if (readlink("/proc/self/exe", own, sizeof own - 1) <= 0) {
        program_error("/proc/self/exe: %s", strerror(errno));
        return PROGRAM_PROBLEM;
    }
    memcpy(b.loop, (char *[]){own, "workload", "syscalls", b.loop_log, calls, NULL}, 6 * sizeof(char *));
    int status = measure_sides(&b) ? report_bench(&b) : PROGRAM_PROBLEM;
    unlink(b.kernel_log);
    rmdir(b.directory);
    free(b.directory);
    free(b.loop_log);
    free(b.kernel_log);
    free(b.perf_log);
    free(b.reporting.parameters.list);
    return status;
}
