/*
 * nlkernel workload NAME FILE [ARGUMENT...]: measures the machine for a rules file or for nlkernel bench. Each
 * measurement runs in a separate process and writes its results as records to FILE. Not thread-safe.
 */
#include "config.h"

#include "command.h"

#include "base/monotonic.h"
#include "program/program.h"
#include "transport/writer.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <time.h>

static nl_record *new_result(const char *event, int64_t time_ns)
{
    char host[256];
    program_host(host, sizeof host);
    nl_record *record = nl_record_new();
    nl_record_set_time(record, time_ns);
    nl_record_set_host(record, host, strlen(host));
    nl_record_set_prog(record, "nlkernel", strlen("nlkernel"));
    nl_record_set_level(record, NL_SYSTEM);
    nl_record_set_event(record, event, strlen(event));
    nl_record_add_int(record, "PID", getpid());
    nl_record_add_int(record, "TID", (int64_t)syscall(SYS_gettid));
    return record;
}

static bool put_result(nl_writer *to, nl_record *record)
{
    bool ok = nl_writer_put(to, record) == NL_OK;
    nl_record_free(record);
    return ok;
}

/* Binds the process to the last CPU that the process may use. Returns the number of the CPU. */
static int bind_to_cpu(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 0;
    int cpu = CPU_SETSIZE - 1;
    while (cpu > 0 && !CPU_ISSET(cpu, &set))
        cpu--;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
    return cpu;
}

/* ---- noise: a loop that takes a millisecond without interruptions ---- */

static volatile uint64_t spun;

static __attribute__((noinline)) void spin(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        spun += i;
}

/* Returns the number of iterations of spin that take duration_ns. Uses the fastest of many attempts, because an
 * interrupt may slow an attempt down. */
static uint64_t calibrate(int64_t duration_ns)
{
    enum { TURNS = 100000, TRIES = 200 };
    int64_t best_ns = INT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        int64_t begin_ns = nl_monotonic_ns();
        spin(TURNS);
        int64_t took_ns = nl_monotonic_ns() - begin_ns;
        if (took_ns > 0 && took_ns < best_ns)
            best_ns = took_ns;
    }
    uint64_t turns = (uint64_t)((double)TURNS * (double)duration_ns / (double)best_ns);
    return turns > 0 ? turns : 1;
}

typedef struct turn {
    int64_t begin_ns, end_ns; /* real time, like the times of the kernel's events */
} turn;

static bool run_noise(nl_writer *to, int argc, char **argv)
{
    long count = argc > 0 ? strtol(argv[0], NULL, 10) : 3000;
    if (count < 1 || count > 10000000)
        count = 3000;
    int cpu = bind_to_cpu();
    prctl(PR_SET_NAME, "nlkernel-noise"); /* the rules search for this name */
    uint64_t turns = calibrate(1000000);
    turn *done = calloc((size_t)count, sizeof *done);
    if (done == NULL)
        return false;
    int64_t minimum_ns = INT64_MAX;
    for (long i = 0; i < count; i++) {
        done[i].begin_ns = nl_time_now_ns();
        spin(turns);
        done[i].end_ns = nl_time_now_ns();
        if (done[i].end_ns - done[i].begin_ns < minimum_ns)
            minimum_ns = done[i].end_ns - done[i].begin_ns;
    }
    bool ok = true;
    for (long i = 0; ok && i < count; i++) {
        nl_record *record = new_result("Noise.Begin", done[i].begin_ns);
        nl_record_add_int(record, "CPU", cpu);
        ok = put_result(to, record);
        record = new_result("Noise.End", done[i].end_ns);
        nl_record_add_int(record, "CPU", cpu);
        nl_record_add_int(record, "TOOK.NS", done[i].end_ns - done[i].begin_ns);
        nl_record_add_int(record, "NOISE.NS", done[i].end_ns - done[i].begin_ns - minimum_ns);
        ok = ok && put_result(to, record);
    }
    free(done);
    return ok;
}

/* ---- switch: two processes that pass a byte to each other on one CPU ---- */

static double yield_ns(int count)
{
    int64_t begin_ns = nl_monotonic_ns();
    for (int i = 0; i < count; i++)
        sched_yield();
    return (double)(nl_monotonic_ns() - begin_ns) / count;
}

/* Runs in the other process: sends each byte back. */
static void answer(int in, int out)
{
    char byte;
    while (read(in, &byte, 1) == 1 && write(out, &byte, 1) == 1)
        ;
    _exit(0);
}

/*
 * Sends `count` bytes, and waits for the return of each byte. Returns the mean time per byte in nanoseconds, or -1 on
 * failure. If the other end is another process, the time includes two switches. On a busy CPU, the time also includes
 * other processes that run in between.
 */
static double pass_ns(int in, int out, int count)
{
    char byte = 0;
    int64_t begin_ns = nl_monotonic_ns();
    for (int i = 0; i < count; i++)
        if (write(out, &byte, 1) != 1 || read(in, &byte, 1) != 1)
            return -1;
    return (double)(nl_monotonic_ns() - begin_ns) / count;
}

static bool measure_switches(nl_writer *to, const int there[2], const int back[2], const int self[2])
{
    /* SECONDS_MAX limits the time on a busy CPU, where each byte may wait for the time slices of other processes */
    enum { PASSES = 200, ROUNDS = 300, SECONDS_MAX = 3 };
    bool ok = true;
    int64_t end_ns = nl_monotonic_ns() + SECONDS_MAX * NL_NS_PER_SECOND;
    for (int i = 0; ok && i < ROUNDS && (i == 0 || nl_monotonic_ns() < end_ns); i++) {
        double both = pass_ns(back[0], there[1], PASSES), alone = pass_ns(self[0], self[1], PASSES);
        nl_record *record = new_result("SwitchCost", nl_time_now_ns());
        /* `both` is the time for a byte to reach the other process and to return; half of this time consists of a
         * switch and of the system calls that pass a byte within one process (`alone`) */
        nl_record_add_double(record, "NS", both / 2 - alone);
        nl_record_add_double(record, "PASS.NS", both / 2);
        nl_record_add_double(record, "CALLS.NS", alone);
        nl_record_add_double(record, "YIELD.NS", yield_ns(PASSES));
        ok = put_result(to, record);
    }
    return ok;
}

static bool run_switch(nl_writer *to, int argc, char **argv)
{
    int there[2], back[2], self[2];
    (void)argc;
    (void)argv;
    bind_to_cpu();
    if (pipe(there) != 0 || pipe(back) != 0 || pipe(self) != 0)
        return false;
    pid_t other = fork();
    if (other < 0)
        return false;
    if (other == 0) {
        close(there[1]);
        answer(there[0], back[1]);
    }
    close(back[1]);
    bool ok = measure_switches(to, there, back, self);
    close(there[1]);
    return waitpid(other, NULL, 0) == other && ok;
}

/* ---- syscalls: calls getppid, to measure the cost of recording system calls ---- */

static int64_t cpu_time_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * NL_NS_PER_SECOND + now.tv_nsec;
}

static void call(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        syscall(SYS_getppid);
}

static bool run_syscalls(nl_writer *to, int argc, char **argv)
{
    uint64_t count = argc > 0 ? strtoull(argv[0], NULL, 10) : 1000000;
    bind_to_cpu();
    call(count / 10);
    int64_t wall_ns = nl_monotonic_ns(), own_ns = cpu_time_ns();
    call(count);
    own_ns = cpu_time_ns() - own_ns;
    wall_ns = nl_monotonic_ns() - wall_ns;
    nl_record *record = new_result("Calls", nl_time_now_ns());
    nl_record_add_double(record, "OWN.NS", (double)own_ns / (double)count);
    nl_record_add_double(record, "WALL.NS", (double)wall_ns / (double)count);
    return put_result(to, record);
}

/* ---- the command ---- */

static const struct {
    const char *name;
    bool (*run)(nl_writer *to, int argc, char **argv);
} workloads[] = {{"noise", run_noise}, {"switch", run_switch}, {"syscalls", run_syscalls}, {NULL, NULL}};

int command_workload(int argc, char **argv)
{
    size_t i = 0;
    if (argc < 3) {
        program_error("workload: missing NAME or FILE");
        return PROGRAM_USAGE;
    }
    while (workloads[i].name != NULL && strcmp(workloads[i].name, argv[1]) != 0)
        i++;
    if (workloads[i].name == NULL) {
        program_error("%s: unknown workload; the workloads are noise, switch and syscalls", argv[1]);
        return PROGRAM_PROBLEM;
    }
    const nl_writer_options options = {.truncate = true, .format = NL_FORMAT_NLB};
    nl_writer *to = nl_writer_open(argv[2], &options);
    bool ok = to != NULL && workloads[i].run(to, argc - 3, argv + 3);
    if (to != NULL)
        ok = nl_writer_close(to) == NL_OK && ok;
    if (!ok)
        program_error("workload: %s", nl_error_message());
    return ok ? PROGRAM_DONE : PROGRAM_PROBLEM;
}
