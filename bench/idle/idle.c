/*
 * Opens a log, and prints the microseconds that nl_open took and the program's resident memory in KiB: idle [URL].
 * Without a URL, opens no log. With -DWITHOUT, the program does not contain NetLogger.
 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#ifndef WITHOUT
#include <netlogger.h>
#endif

enum { SETTLE_US = 200000 };

static long resident_kb(void)
{
    FILE *statm = fopen("/proc/self/statm", "re");
    long size = 0, pages = 0;
    if (statm == NULL || fscanf(statm, "%ld %ld", &size, &pages) != 2)
        return -1;
    fclose(statm);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

int main(int argc, char **argv)
{
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
#ifndef WITHOUT
    nl_log *log = argc > 1 ? nl_open("idle", argv[1]) : NULL;
    if (argc > 1 && log == NULL)
        return 1;
#else
    (void)argc;
    (void)argv;
#endif
    clock_gettime(CLOCK_MONOTONIC, &end);
    usleep(SETTLE_US);
    printf("%.1f %ld\n", (double)(end.tv_sec - start.tv_sec) * 1e6 + (double)(end.tv_nsec - start.tv_nsec) / 1e3,
           resident_kb());
#ifndef WITHOUT
    if (log != NULL)
        nl_close(log);
#endif
    return 0;
}
