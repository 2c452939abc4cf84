/*
 * System calls and nothing else, for who measures what it costs to record them: getppid COUNT [CPU]
 *
 * Prints the nanoseconds that a call took, by the wall clock and of this process's time. A call is two events of
 * raw_syscalls. Before the COUNT that are measured a tenth as many are made.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int64_t read_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int main(int argc, char **argv)
{
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    if (argc > 2) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(atoi(argv[2]), &one);
        sched_setaffinity(0, sizeof one, &one);
    }
    for (uint64_t i = 0; i < count / 10; i++)
        syscall(SYS_getppid);
    int64_t wall_ns = read_ns(CLOCK_MONOTONIC), own_ns = read_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (uint64_t i = 0; i < count; i++)
        syscall(SYS_getppid);
    own_ns = read_ns(CLOCK_PROCESS_CPUTIME_ID) - own_ns;
    wall_ns = read_ns(CLOCK_MONOTONIC) - wall_ns;
    printf("%.3f %.3f\n", (double)wall_ns / (double)count, (double)own_ns / (double)count);
    return 0;
}
