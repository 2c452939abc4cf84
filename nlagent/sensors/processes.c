/* Reports the number of processes, and the resource use of selected processes, from proc_stat(5) and proc_pid_stat(5).
 * The process ID together with the start time identifies a process, because the kernel reuses IDs. */
#include "config.h"

#include "sensors/sensor.h"

#include "base/error.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHOWN_MAX = 256 };

typedef struct processes_state {
    nl_buffer text;
    uint64_t forks;
    counters counters;
    char match[128]; /* glob for names; "": select no processes by name */
    long pid;        /* the ID of one process, or 0 */
    bool files;
} processes_state;

static bool processes_open(void *state, const sensor_spec *spec)
{
    processes_state *s = state;
    const char *match = spec_argument(spec, "match"), *files = spec_argument(spec, "files");
    if (!spec_number(spec, "pid", 1, 1 << 30, 0, &s->pid))
        return false;
    snprintf(s->match, sizeof s->match, "%s", match != NULL ? match : "");
    s->files = files != NULL && strcmp(files, "yes") == 0;
    return true;
}

static bool log_summary(measurement *m)
{
    processes_state *s = m->state;
    uint64_t all, running, blocked, tasks = 0;
    if (!proc_read("/proc/stat", &s->text))
        return false;
    if (!proc_find(s->text.data, "processes ", &all) || !proc_find(s->text.data, "procs_running ", &running) ||
        !proc_find(s->text.data, "procs_blocked ", &blocked))
        return nl_error_false(NL_ERROR_SYSTEM, "/proc/stat: no process counts");
    uint64_t forks = proc_rise(s->forks, all);
    s->forks = all;
    if (proc_read("/proc/loadavg", &s->text) && strchr(s->text.data, '/') != NULL)
        tasks = strtoull(strchr(s->text.data, '/') + 1, NULL, 10);
    nl_record *record = record_begin(m, "ProcessSummary");
    nl_record_add_uint(record, "PROCS.TASKS", tasks);
    nl_record_add_uint(record, "PROCS.RUNNING", running);
    nl_record_add_uint(record, "PROCS.BLOCKED", blocked);
    if (m->seconds > 0)
        add_rate(record, "PROCS.FORKS", forks, m->seconds);
    record_end(m);
    return true;
}

/* Positions of the numbers after the state in /proc/PID/stat. */
enum { PARENT, USER = 10, SYSTEM, THREADS = 16, BEGAN = 18, VIRTUAL, NUMBERS };

typedef struct process {
    const char *pid;
    char name[64];
    char state;
    uint64_t numbers[NUMBERS];
} process;

/* Parses the line of a process. The last parenthesis in the line ends the name. Returns false if the line is
 * invalid. */
static bool read_process(const char *text, process *p)
{
    const char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (open == NULL || close == NULL || close[1] != ' ' || close[2] == '\0')
        return false;
    snprintf(p->name, sizeof p->name, "%.*s", (int)(close - open - 1), open + 1);
    p->state = close[2];
    const char *at = close + 3;
    for (int i = 0; i < NUMBERS; i++) {
        char *end;
        p->numbers[i] = (uint64_t)strtoll(at, &end, 10);
        if (end == at)
            return false;
        at = end;
    }
    return true;
}

/* Returns the resident pages from /proc/PID/statm, because the number in /proc/PID/stat is inaccurate. */
static uint64_t resident_pages(processes_state *s, const char *pid)
{
    char path[64];
    uint64_t pages[2] = {0};
    snprintf(path, sizeof path, "/proc/%s/statm", pid);
    if (proc_read(path, &s->text)) {
        const char *at = s->text.data;
        proc_numbers(&at, pages, 2);
    }
    return pages[1];
}

static uint64_t count_files(const char *pid)
{
    char path[64];
    uint64_t count = 0;
    snprintf(path, sizeof path, "/proc/%s/fd", pid);
    DIR *directory = opendir(path);
    while (directory != NULL && readdir(directory) != NULL)
        count++;
    if (directory != NULL)
        closedir(directory);
    return count >= 2 ? count - 2 : 0; /* do not count . and .. */
}

static void log_process(measurement *m, const process *p)
{
    processes_state *s = m->state;
    char key[COUNTERS_KEY_SIZE], state[2] = {p->state, '\0'};
    const uint64_t now[2] = {p->numbers[USER], p->numbers[SYSTEM]};
    uint64_t rise[2];
    snprintf(key, sizeof key, "%s.%" PRIu64, p->pid, p->numbers[BEGAN]);
    if (!counters_rise(&s->counters, key, now, 2, rise))
        return;
    double percent = m->seconds > 0 ? 100.0 / (double)sysconf(_SC_CLK_TCK) / m->seconds : 0;
    nl_record *record = record_begin(m, "Process");
    nl_record_add_uint(record, "PROC.ID", strtoull(p->pid, NULL, 10));
    add_text(record, "PROC.NAME", p->name);
    nl_record_add_uint(record, "PROC.PARENT", p->numbers[PARENT]);
    add_text(record, "PROC.STATE", state);
    add_rounded(record, "PROC.USER", (double)rise[0] * percent, 2);
    add_rounded(record, "PROC.SYS", (double)rise[1] * percent, 2);
    nl_record_add_uint(record, "PROC.RESIDENT", resident_pages(s, p->pid) * (uint64_t)sysconf(_SC_PAGESIZE));
    nl_record_add_uint(record, "PROC.VIRTUAL", p->numbers[VIRTUAL]);
    nl_record_add_uint(record, "PROC.THREADS", p->numbers[THREADS]);
    if (s->files)
        nl_record_add_uint(record, "PROC.FILES", count_files(p->pid));
    record_end(m);
}

/* Logs a process. Returns false if the process does not match or has ended. */
static bool measure_process(measurement *m, const char *pid)
{
    processes_state *s = m->state;
    char path[64];
    process p = {.pid = pid};
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    if (!proc_read(path, &s->text) || !read_process(s->text.data, &p) ||
        (s->match[0] != '\0' && fnmatch(s->match, p.name, 0) != 0))
        return false; /* the entry is not a process, or the process does not match or has just ended */
    log_process(m, &p);
    return true;
}

static bool processes_measure(measurement *m)
{
    processes_state *s = m->state;
    if (!log_summary(m))
        return false;
    counters_begin(&s->counters);
    if (s->pid != 0) {
        char pid[24];
        snprintf(pid, sizeof pid, "%ld", s->pid);
        measure_process(m, pid);
    } else if (s->match[0] != '\0') {
        DIR *directory = opendir("/proc");
        int shown = 0;
        for (const struct dirent *entry;
             directory != NULL && shown < SHOWN_MAX && (entry = readdir(directory)) != NULL;)
            if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
                shown += measure_process(m, entry->d_name);
        if (directory != NULL)
            closedir(directory);
    }
    return true;
}

static const sensor_field fields[] = {
    {"ProcessSummary", "PROCS.TASKS", "tasks", "number of threads on this host"},
    {"ProcessSummary", "PROCS.RUNNING", "tasks", "tasks that are running or runnable now"},
    {"ProcessSummary", "PROCS.BLOCKED", "tasks", "tasks that are waiting for I/O now"},
    {"ProcessSummary", "PROCS.FORKS", "tasks/s", "tasks started"},
    {"Process", "PROC.ID", "", "process ID"},
    {"Process", "PROC.NAME", "", "program name, at most 15 bytes"},
    {"Process", "PROC.PARENT", "", "ID of the parent"},
    {"Process", "PROC.STATE", "", "R: running; S: sleeping; D: waiting for I/O; T: stopped; Z: ended"},
    {"Process", "PROC.USER", "%", "share of a processor's time in user code"},
    {"Process", "PROC.SYS", "%", "share of a processor's time in the kernel"},
    {"Process", "PROC.RESIDENT", "bytes", "resident memory"},
    {"Process", "PROC.VIRTUAL", "bytes", "virtual memory"},
    {"Process", "PROC.THREADS", "threads", "number of threads"},
    {"Process", "PROC.FILES", "files", "open files; requires files=yes and sufficient rights"},
    {0},
};

const sensor_kind processes_sensor = {
    .name = "processes",
    .what = "the state of processes: ProcessSummary for all processes together, and Process for each selected process",
    .arguments = " match pid files ",
    .arguments_help = "match=GLOB (select at most 256 processes with matching names), pid=N (select one process), "
                      "files=yes (count open files)",
    .is_default = true,
    .fields = fields,
    .open = processes_open,
    .measure = processes_measure,
    .state_size = sizeof(processes_state)};
