/*
 * Processes: how many there are and come, and, of those that are asked for, what each does. proc_stat(5),
 * proc_pid_stat(5). A process is told by its number and the time when it began, so that a number that is used again is
 * another process.
 */
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
    char match[128]; /* a glob of names; "": none are asked for */
    long pid;        /* or that one; 0: none */
    bool files;
} processes_state;

static bool processes_start(void *state, const sensor_spec *spec)
{
    processes_state *s = state;
    const char *match = spec_argument(spec, "match"), *files = spec_argument(spec, "files");
    if (!spec_number(spec, "pid", 1, 1 << 30, 0, &s->pid))
        return false;
    snprintf(s->match, sizeof s->match, "%s", match != NULL ? match : "");
    s->files = files != NULL && strcmp(files, "yes") == 0;
    return true;
}

static bool log_summary(sensor_look *look)
{
    static const char *const lines[] = {"processes ", "procs_running ", "procs_blocked "};
    processes_state *s = look->state;
    uint64_t now[3], tasks = 0;
    if (!proc_read("/proc/stat", &s->text))
        return false;
    if (proc_find_all(s->text.data, lines, 3, now) < 3)
        return nl_error_false(NL_ERROR_SYSTEM, "/proc/stat: it says nothing of processes");
    uint64_t forks = proc_rise(s->forks, now[0]);
    s->forks = now[0];
    if (proc_read("/proc/loadavg", &s->text) && strchr(s->text.data, '/') != NULL)
        tasks = strtoull(strchr(s->text.data, '/') + 1, NULL, 10);
    nl_record *record = look_begin(look, "ProcessSummary");
    nl_record_add_uint(record, "PROCS.TASKS", tasks);
    nl_record_add_uint(record, "PROCS.RUNNING", now[1]);
    nl_record_add_uint(record, "PROCS.BLOCKED", now[2]);
    if (look->seconds > 0)
        add_rate(record, "PROCS.FORKS", forks, look->seconds);
    look_end(look);
    return true;
}

/* What of a line of /proc/PID/stat is logged: the numbers behind the state, counted from the parent's. */
enum { PARENT, USER = 10, SYSTEM, THREADS = 16, BEGAN = 18, VIRTUAL, NUMBERS };

typedef struct process {
    const char *pid;
    char name[64];
    char state;
    uint64_t numbers[NUMBERS];
} process;

/* Names may hold blanks and parentheses; the last one ends them. Some numbers are negative; those are passed over. */
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

/* Of statm, for stat's count of it is only about right. */
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
    DIR *folder = opendir(path);
    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        closedir(folder);
    return count >= 2 ? count - 2 : 0; /* . and .. */
}

static void log_process(sensor_look *look, const process *p)
{
    processes_state *s = look->state;
    char key[COUNTERS_KEY], state[2] = {p->state, '\0'};
    const uint64_t now[2] = {p->numbers[USER], p->numbers[SYSTEM]};
    uint64_t rise[2];
    snprintf(key, sizeof key, "%s.%" PRIu64, p->pid, p->numbers[BEGAN]);
    if (!counters_rise(&s->counters, key, now, 2, rise))
        return;
    double percent = look->seconds > 0 ? 100.0 / (double)sysconf(_SC_CLK_TCK) / look->seconds : 0;
    nl_record *record = look_begin(look, "Process");
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
    look_end(look);
}

/* Whether it was shown. */
static bool look_at(sensor_look *look, const char *pid)
{
    processes_state *s = look->state;
    char path[64];
    process p = {.pid = pid};
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    if (!proc_read(path, &s->text) || !read_process(s->text.data, &p) ||
        (s->match[0] != '\0' && fnmatch(s->match, p.name, 0) != 0))
        return false; /* another, or one that has just ended */
    log_process(look, &p);
    return true;
}

static bool processes_look(sensor_look *look)
{
    processes_state *s = look->state;
    if (!log_summary(look))
        return false;
    counters_begin(&s->counters);
    if (s->pid != 0) {
        char pid[24];
        snprintf(pid, sizeof pid, "%ld", s->pid);
        look_at(look, pid);
    } else if (s->match[0] != '\0') {
        DIR *folder = opendir("/proc");
        int shown = 0;
        for (const struct dirent *entry; folder != NULL && shown < SHOWN_MAX && (entry = readdir(folder)) != NULL;)
            if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
                shown += look_at(look, entry->d_name);
        if (folder != NULL)
            closedir(folder);
    }
    return true;
}

static const sensor_field fields[] = {
    {"ProcessSummary", "PROCS.TASKS", "tasks", "threads that there are, now"},
    {"ProcessSummary", "PROCS.RUNNING", "tasks", "that run or could, now"},
    {"ProcessSummary", "PROCS.BLOCKED", "tasks", "that wait for I/O, now"},
    {"ProcessSummary", "PROCS.FORKS", "tasks/s", "begun"},
    {"Process", "PROC.ID", "", "number of the process"},
    {"Process", "PROC.NAME", "", "of its program, 15 bytes of it"},
    {"Process", "PROC.PARENT", "", "number of its parent"},
    {"Process", "PROC.STATE", "", "R runs, S sleeps, D waits for I/O, T stopped, Z ended"},
    {"Process", "PROC.USER", "%", "of a processor's time, in user code"},
    {"Process", "PROC.SYS", "%", "of a processor's time, in the kernel"},
    {"Process", "PROC.RESIDENT", "bytes", "of memory in use"},
    {"Process", "PROC.VIRTUAL", "bytes", "of addresses in use"},
    {"Process", "PROC.THREADS", "threads", "that it has"},
    {"Process", "PROC.FILES", "files", "that it has open; only with files=yes, and where this user may look"},
    {0},
};

const sensor_kind processes_sensor = {
    .name = "processes",
    .what = "processes: ProcessSummary of all, Process of each that is asked for",
    .arguments = " match pid files ",
    .arguments_help =
        "match=GLOB: those whose name matches, the first 256; pid=N: that one; files=yes: count open files",
    .is_default = true,
    .fields = fields,
    .open = processes_start,
    .look = processes_look,
    .state_size = sizeof(processes_state)};
