/* nlkernel bench: what it costs a program that its events are recorded, by each means that there is. */
#include "config.h"

#include "command.h"
#include "instance.h"
#include "kernel_sum.h"
#include "reporting.h"
#include "rights.h"
#include "session.h"

#include "base/error.h"
#include "program/program.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS_MAX = 100, SIDE_COUNT = 5 };

typedef struct measurement {
    double call_ns, wall_ns; /* of the program's own time, and by the wall clock */
    double lost;             /* negative: not known */
} measurement;

typedef struct bench {
    reporting_options reporting;
    const char *tracefs;
    uint64_t calls;
    unsigned long rounds;
    char folder[64];
    char *loop_log, *kernel_log, *perf_log;
    char *loop[8]; /* the command */
    measurement all[SIDE_COUNT][ROUNDS_MAX];
    bool missing[SIDE_COUNT];
} bench;

/* ---- the loop ---- */

/* Reads what the loop said of itself. */
static bool read_loop(const bench *b, measurement *m)
{
    nl_reader *reader = nl_reader_open(b->loop_log, NULL);
    const nl_record *record;
    nl_field field;
    bool good = reader != NULL && nl_reader_next(reader, &record) == NL_OK &&
                nl_record_find(record, "OWN.NS", &field) && nl_field_double(&field, &m->call_ns) &&
                nl_record_find(record, "WALL.NS", &field) && nl_field_double(&field, &m->wall_ns);
    if (reader != NULL)
        nl_reader_close(reader);
    unlink(b->loop_log);
    return good || nl_error_set(NL_ERROR_SYSTEM, "the loop that is measured did not run") == NL_OK;
}

/* Runs a command, which says what it has to say into out: a file, or nowhere when that is NULL. */
static bool nlkernel_bench_run(char *const *command, const char *out)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        sigset_t none; /* session_run blocks some, which perf waits for */
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        int fd = open(out != NULL ? out : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, 1);
        dup2(fd, 2);
        execvp(command[0], command);
        _exit(127);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- the sides ---- */

static bool side_nothing(bench *b, measurement *m)
{
    return nlkernel_bench_run(b->loop, NULL) && read_loop(b, m);
}

static double lost_in(const instance *i)
{
    double lost = 0;
    char file[64];
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    for (long cpu = 0; cpu < cpus; cpu++) {
        snprintf(file, sizeof file, "per_cpu/cpu%ld/stats", cpu);
        char *text = instance_read(i, file);
        const char *overrun = text != NULL ? strstr(text, "\noverrun: ") : NULL;
        lost += overrun != NULL ? strtod(overrun + strlen("\noverrun: "), NULL) : 0;
        free(text);
    }
    return lost;
}

static bool measure_ftrace(bench *b, measurement *m)
{
    tracing t;
    instance i;
    if (!tracing_open(&t, b->tracefs))
        return false;
    bool good = instance_create(&i, &t, NULL);
    if (good) {
        good = instance_write(&i, "buffer_size_kb", "65536") && instance_write(&i, "trace_clock", "mono") &&
               instance_write(&i, "events/raw_syscalls/enable", "1") && instance_write(&i, "tracing_on", "1") &&
               nlkernel_bench_run(b->loop, NULL) && read_loop(b, m);
        m->lost = lost_in(&i);
        good = instance_destroy(&i) && good;
    }
    tracing_close(&t);
    return good;
}

/* The kernel's ring buffer alone, which nobody reads: what every tool that uses it pays at least. */
static bool side_ftrace(bench *b, measurement *m)
{
    rights_raise();
    bool good = measure_ftrace(b, m);
    rights_lower();
    return good;
}

static bool open_sink(sink *s, const void *user)
{
    return sink_open_file(s, user, NL_FORMAT_NLB, 0);
}

static double lost_in_log(const char *log)
{
    nl_reader *reader = nl_reader_open(log, NULL);
    const nl_record *record;
    nl_field field;
    double lost = 0, number;
    while (reader != NULL && nl_reader_next(reader, &record) == NL_OK)
        if (record->event.size == 14 && memcmp(record->event.data, "NetLogger.Lost", 14) == 0 &&
            nl_record_find(record, "COUNT", &field) && nl_field_double(&field, &number))
            lost += number;
    if (reader != NULL)
        nl_reader_close(reader);
    return lost;
}

static bool side_nlkernel(bench *b, measurement *m)
{
    static const char *patterns[] = {"raw_syscalls:*"};
    recording_options o = {.patterns = patterns,
                           .pattern_count = 1,
                           .buffer_size = 64 << 20,
                           .low_water = -1,
                           .quiet = true,
                           .tracefs = b->tracefs,
                           .command = b->loop};
    nl_error_set(NL_ERROR_SYSTEM, "see its message above");
    bool good = session_run(&o, open_sink, b->kernel_log) == PROGRAM_DONE && read_loop(b, m);
    if (good)
        m->lost = lost_in_log(b->kernel_log);
    return good;
}

/* What perf says that it lost. Negative: it does not say. */
static double lost_of_perf(const bench *b)
{
    char *command[] = {"perf", "report", "--stats", "-i", b->perf_log, NULL}, line[256];
    double lost = 0;
    if (!nlkernel_bench_run(command, b->loop_log))
        return -1;
    FILE *said = fopen(b->loop_log, "re");
    while (said != NULL && fgets(line, sizeof line, said) != NULL) {
        const char *found = strstr(line, "LOST_SAMPLES events:");
        if (found != NULL)
            lost += strtod(found + strlen("LOST_SAMPLES events:"), NULL);
    }
    if (said != NULL)
        fclose(said);
    unlink(b->loop_log);
    return lost;
}

static bool side_perf(bench *b, measurement *m)
{
    char *command[20] = {"perf", "record",    "-m", "64M", "-e", "raw_syscalls:sys_enter,raw_syscalls:sys_exit",
                         "-o",   b->perf_log, "--"};
    for (size_t i = 0; b->loop[i] != NULL; i++)
        command[9 + i] = b->loop[i];
    bool good = nlkernel_bench_run(command, NULL) && read_loop(b, m);
    if (good)
        m->lost = lost_of_perf(b);
    unlink(b->perf_log);
    return good || nl_error_set(NL_ERROR_SYSTEM, "perf is not there, or may not record") == NL_OK;
}

/* Sums within the kernel: each call is a span from entry to exit, and nothing of it is written. */
static bool side_ebpf(bench *b, measurement *m)
{
    static const char text[] = "[kernel BenchSum]\nbegin = raw_syscalls:sys_enter key TID\n"
                               "end = raw_syscalls:sys_exit key TID\nby = ID\n";
    rules_file s = {.name = "bench"};
    bool good = nl_sections_parse(&s.sections, text, "bench", NULL);
    rights_raise();
    kernel_sums *sums = good ? kernel_sums_start(&s, b->tracefs) : NULL;
    good = sums != NULL && nlkernel_bench_run(b->loop, NULL) && read_loop(b, m);
    kernel_sums_free(sums);
    rights_lower();
    nl_sections_free(&s.sections);
    return good;
}

static const struct {
    const char *name;
    bool (*run)(bench *b, measurement *m);
} sides[SIDE_COUNT] = {{"nothing", side_nothing},
                       {"ftrace", side_ftrace},
                       {"nlkernel", side_nlkernel},
                       {"perf", side_perf},
                       {"eBPF", side_ebpf}};

/* ---- what came of it ---- */

static int order_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(const measurement *list, size_t count, bool wall)
{
    double values[ROUNDS_MAX] = {0};
    for (size_t i = 0; i < count; i++)
        values[i] = wall ? list[i].wall_ns : list[i].call_ns;
    qsort(values, count, sizeof *values, order_doubles);
    return values[count / 2];
}

static double at_least_0(double value)
{
    return value > 0 ? value : 0;
}

static void take_measurement(rules_run *run, const bench *b, size_t side, size_t round)
{
    const measurement *m = &b->all[side][round];
    nl_record *record = nl_record_new();
    nl_record_set_time(record, nl_time_now_ns());
    nl_record_set_prog(record, "nlkernel", 8);
    nl_record_set_level(record, NL_SYSTEM);
    nl_record_set_event(record, "Bench", 5);
    nl_record_add_string(record, "SIDE", sides[side].name, strlen(sides[side].name));
    nl_record_add_double(record, "CALL.NS", m->call_ns);
    nl_record_add_double(record, "WALL.NS", m->wall_ns);
    nl_record_add_double(record, "ADDED.NS", at_least_0((m->call_ns - median(b->all[0], b->rounds, false)) / 2));
    nl_record_add_double(record, "ADDED.WALL.NS", at_least_0((m->wall_ns - median(b->all[0], b->rounds, true)) / 2));
    nl_record_add_double(record, "RATE", m->wall_ns > 0 ? 2e9 / m->wall_ns : 0);
    if (m->lost >= 0)
        nl_record_add_double(record, "LOST", m->lost);
    rules_run_take(run, record);
    nl_record_free(record);
}

/* The stopwatch's word: how long it was from entry to exit, as they were stamped. */
static void take_stopwatch(rules_run *run, bench *b)
{
    char where[64];
    snprintf(where, sizeof where, "ENDWHERE=ID == %d", (int)SYS_getppid);
    const char *parameters[] = {where, NULL};
    rules_run watch;
    if (!rules_run_open(&watch, "stopwatch", parameters, NULL))
        return;
    rules_run_read(&watch, &b->reporting.reading, b->kernel_log);
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

static int bench_report(bench *b)
{
    rules_run run;
    if (!rules_run_open(&run, "bench", b->reporting.parameters, b->reporting.output)) {
        program_error("%s", nl_error_message());
        return PROGRAM_PROBLEM;
    }
    for (size_t side = 0; side < SIDE_COUNT; side++)
        for (size_t round = 0; !b->missing[side] && round < b->rounds; round++)
            take_measurement(&run, b, side, round);
    if (!b->missing[2])
        take_stopwatch(&run, b);
    bool good = rules_run_finish(&run);
    int status = reporting_say(&run, &b->reporting);
    rules_run_close(&run);
    return good ? status : PROGRAM_PROBLEM;
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
     .help = "Number of measurements with and without recording, in alternation"},
    {.name = "tracefs",
     .value = "FOLDER",
     .initial = "(detected)",
     NL_OPTION_MEMBER(bench, tracefs),
     .help = "Mount point of tracefs"},
    {0},
};

static const options_usage usage = {
    .name = "nlkernel bench",
    .groups = (const options_group[]){{NULL, options, 0}, REPORTING_GROUPS(bench), {0}},
    .summary =
        "Measure the cost of recording a program's events: without recording, with the kernel's ring buffer "
        "alone (ftrace), with nlkernel record, with perf record, and summed in the kernel by eBPF, side by side.",
    .notes = "A loop of getppid, bound to one CPU, runs under each in turn, with raw_syscalls:sys_enter and sys_exit "
             "recorded. nlkernel reports and omits recorders that are not installed. The cost of an event is half of "
             "the time that a "
             "call takes in addition. The machine should otherwise be idle.",
};

static char *file_in(const bench *b, const char *name)
{
    char *path = program_format("%s/%s", b->folder, name);
    return path;
}

/* False when not even the loop alone could be measured. */
static bool bench_measure(bench *b)
{
    for (size_t round = 0; round < b->rounds; round++)
        for (size_t side = 0; side < SIDE_COUNT; side++) {
            measurement *m = &b->all[side][round];
            m->lost = -1;
            if (b->missing[side] || sides[side].run(b, m))
                continue;
            program_error("%s is left out: %s", sides[side].name, nl_error_message());
            b->missing[side] = true;
            if (side == 0)
                return false;
        }
    return true;
}

int command_bench(int argc, char **argv)
{
    static bench b;
    b.reporting = (reporting_options)REPORTING_INITIAL;
    options_parse(&usage, argc, argv, &b);
    char calls[24];
    snprintf(calls, sizeof calls, "%" PRIu64, b.calls);
    const char *temporary = getenv("TMPDIR");
    snprintf(b.folder, sizeof b.folder, "%.40s/nlkernel-XXXXXX", temporary != NULL ? temporary : "/dev/shm");
    if (mkdtemp(b.folder) == NULL) {
        program_error("%s: %s", b.folder, strerror(errno));
        return PROGRAM_PROBLEM;
    }
    b.loop_log = file_in(&b, "loop");
    b.kernel_log = file_in(&b, "kernel.nlb");
    b.perf_log = file_in(&b, "perf.data");
    /* Its very path: for perf, /proc/self/exe would be perf. */
    char own[4096] = "";
    if (readlink("/proc/self/exe", own, sizeof own - 1) <= 0) {
        program_error("/proc/self/exe: %s", strerror(errno));
        return PROGRAM_PROBLEM;
    }
    memcpy(b.loop, (char *[]){own, "workload", "syscalls", b.loop_log, calls, NULL}, 6 * sizeof(char *));
    int status = bench_measure(&b) ? bench_report(&b) : PROGRAM_PROBLEM;
    unlink(b.kernel_log);
    rmdir(b.folder);
    free(b.loop_log);
    free(b.kernel_log);
    free(b.perf_log);
    reporting_options_free(&b.reporting);
    return status;
}
