#include "config.h"

#include "workload.h"

#include "base/monotonic.h"
#include "program/program.h"
#include "transport/writer.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <time.h>

static nl_record *own_record(const char *event, int64_t time_ns)
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

static bool workload_put(nl_writer *to, nl_record *record)
{
    bool good = nl_writer_put(to, record) == NL_OK;
    nl_record_free(record);
    return good;
}

/* On one CPU from here on: the last one that we may use. Returns it. */
static int stay_on_one(void)
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

/* ---- noise: a loop that would always take a millisecond, were there nothing else ---- */

static volatile uint64_t spun;

static __attribute__((noinline)) void spin(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        spun += i;
}

/* How many turns take so long, by the fastest of many tries: what took longer was disturbed. */
static uint64_t calibrate(int64_t wanted_ns)
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
    uint64_t turns = (uint64_t)((double)TURNS * (double)wanted_ns / (double)best_ns);
    return turns > 0 ? turns : 1;
}

typedef struct turn {
    int64_t begin_ns, end_ns; /* real time, so that it belongs to the kernel's events */
} turn;

static bool run_noise(nl_writer *to, int argc, char **argv)
{
    long count = argc > 0 ? strtol(argv[0], NULL, 10) : 3000;
    if (count < 1 || count > 10000000)
        count = 3000;
    int cpu = stay_on_one();
    prctl(PR_SET_NAME, "nlkernel-noise"); /* by which the rules know it */
    uint64_t turns = calibrate(1000000);
    turn *done = calloc((size_t)count, sizeof *done);
    if (done == NULL)
        return false;
    int64_t least_ns = INT64_MAX;
    for (long i = 0; i < count; i++) {
        done[i].begin_ns = nl_time_now_ns();
        spin(turns);
        done[i].end_ns = nl_time_now_ns();
        if (done[i].end_ns - done[i].begin_ns < least_ns)
            least_ns = done[i].end_ns - done[i].begin_ns;
    }
    bool good = true;
    for (long i = 0; good && i < count; i++) {
        nl_record *record = own_record("Noise.Begin", done[i].begin_ns);
        nl_record_add_int(record, "CPU", cpu);
        good = workload_put(to, record);
        record = own_record("Noise.End", done[i].end_ns);
        nl_record_add_int(record, "CPU", cpu);
        nl_record_add_int(record, "TOOK.NS", done[i].end_ns - done[i].begin_ns);
        nl_record_add_int(record, "NOISE.NS", done[i].end_ns - done[i].begin_ns - least_ns);
        good = good && workload_put(to, record);
    }
    free(done);
    return good;
}

/* ---- switch: two processes on one CPU that hand it to each other ---- */

static double yield_ns(int count)
{
    int64_t begin_ns = nl_monotonic_ns();
    for (int i = 0; i < count; i++)
        sched_yield();
    return (double)(nl_monotonic_ns() - begin_ns) / count;
}

/* A byte to and fro between two processes: each time the CPU is switched twice. */
static void answer(int in, int out)
{
    char byte;
    while (read(in, &byte, 1) == 1 && write(out, &byte, 1) == 1)
        ;
    _exit(0);
}

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
    enum { PASSES = 2000, ROUNDS = 30 };
    bool good = true;
    for (int i = 0; good && i < ROUNDS; i++) {
        double both = pass_ns(back[0], there[1], PASSES), alone = pass_ns(self[0], self[1], PASSES);
        nl_record *record = own_record("SwitchCost", nl_time_now_ns());
        /* To and fro are two switches, and twice the calls that a pipe of one's own takes. */
        nl_record_add_double(record, "NS", both / 2 - alone);
        nl_record_add_double(record, "PASS.NS", both / 2);
        nl_record_add_double(record, "CALLS.NS", alone);
        nl_record_add_double(record, "YIELD.NS", yield_ns(PASSES));
        good = workload_put(to, record);
    }
    return good;
}

static bool run_switch(nl_writer *to, int argc, char **argv)
{
    int there[2], back[2], self[2];
    (void)argc;
    (void)argv;
    stay_on_one();
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
    bool good = measure_switches(to, there, back, self);
    close(there[1]);
    return waitpid(other, NULL, 0) == other && good;
}

/* ---- syscalls: nothing but calls of getppid, for who measures what recording them costs ---- */

static int64_t own_time_ns(void)
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
    stay_on_one();
    call(count / 10);
    int64_t wall_ns = nl_monotonic_ns(), own_ns = own_time_ns();
    call(count);
    own_ns = own_time_ns() - own_ns;
    wall_ns = nl_monotonic_ns() - wall_ns;
    nl_record *record = own_record("Calls", nl_time_now_ns());
    nl_record_add_double(record, "OWN.NS", (double)own_ns / (double)count);
    nl_record_add_double(record, "WALL.NS", (double)wall_ns / (double)count);
    return workload_put(to, record);
}

/* ---- all of them ---- */

typedef struct workload {
    const char *name;
    bool (*run)(nl_writer *to, int argc, char **argv);
} workload;

/* NULL after having said which there are. */
static const workload *workload_find(const char *name)
{
    static const workload loads[] = {{"noise", run_noise}, {"switch", run_switch}, {"syscalls", run_syscalls}};
    enum { COUNT = sizeof loads / sizeof *loads };
    nl_buffer names = {0};
    for (size_t i = 0; i < COUNT; i++) {
        if (strcmp(loads[i].name, name) == 0) {
            nl_buffer_free(&names);
            return &loads[i];
        }
        const char *joint = i == 0 ? "" : i + 1 < COUNT ? ", " : " and ";
        nl_buffer_append(&names, joint, strlen(joint));
        nl_buffer_append(&names, loads[i].name, strlen(loads[i].name));
    }
    program_error("there is no workload \"%s\": %.*s are", name, (int)names.size, names.data);
    nl_buffer_free(&names);
    return NULL;
}

int workload_main(int argc, char **argv)
{
    if (argc < 2) {
        program_error("workload: a NAME and a FILE for its records are wanted");
        return PROGRAM_USAGE;
    }
    const workload *load = workload_find(argv[0]);
    if (load == NULL)
        return PROGRAM_PROBLEM;
    const nl_writer_options options = {.truncate = true, .format = NL_FORMAT_NLB};
    nl_writer *to = nl_writer_open(argv[1], &options);
    bool good = to != NULL && load->run(to, argc - 2, argv + 2);
    if (to != NULL)
        good = nl_writer_close(to) == NL_OK && good;
    if (!good)
        program_error("workload: %s", nl_error_message());
    return good ? PROGRAM_DONE : PROGRAM_PROBLEM;
}
