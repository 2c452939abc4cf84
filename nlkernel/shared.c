#include "config.h"

#include "shared.h"

#include "base/error.h"
#include "base/memory.h"
#include "program/program.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* All refusals begin so. */
#define NOT_FREE                                                                                                       \
    "--functions=graph: this kernel has the function graph tracer only in the buffers that everybody shares, and "     \
    "these are in use (--functions=calls wants none of them): "

/* What is in these files as long as nobody uses it; a kernel without one of them has nothing to be used. */
static const struct {
    const char *file, *idle;
} idle_files[] = {
    {"current_tracer", "nop"},
    {"set_event", ""},
    {"set_ftrace_filter", "#### all functions enabled ####"},
    {"set_ftrace_notrace", "#### no functions disabled ####"},
    {"set_graph_function", "#### all functions enabled ####"},
    {"set_graph_notrace", "#### no functions disabled ####"},
    {"set_ftrace_pid", "no pid"},
    {"set_ftrace_notrace_pid", "no pid"},
    {"max_graph_depth", "0"},
    {"options/function-fork", "0"},
    {"options/disable_on_free", "0"},
    {"options/overwrite", "1"},
};

static bool is_idle(const instance *i, const char *file, const char *idle)
{
    char *text = instance_read(i, file);
    if (text == NULL)
        return true;
    text[strcspn(text, "\n")] = '\0';
    bool same = strcmp(text, idle) == 0;
    if (!same)
        nl_error_set(NL_ERROR_BUSY, NOT_FREE "%s/%s is %.60s", i->dir, file, text);
    free(text);
    return same;
}

/* Whether what somebody recorded waits in a buffer: it would be lost. */
static bool is_empty(const instance *i)
{
    char *path = program_format("%s/per_cpu", i->dir);
    DIR *folder = opendir(path);
    bool empty = true;
    for (struct dirent *entry; empty && folder != NULL && (entry = readdir(folder)) != NULL;) {
        char file[300];
        unsigned long entries = 0;
        snprintf(file, sizeof file, "per_cpu/%s/stats", entry->d_name);
        char *text = strncmp(entry->d_name, "cpu", 3) == 0 ? instance_read(i, file) : NULL;
        empty = text == NULL || sscanf(text, "entries: %lu", &entries) != 1 || entries == 0;
        if (!empty)
            nl_error_set(NL_ERROR_BUSY, NOT_FREE "events wait to be read in %s/trace", i->dir);
        free(text);
    }
    if (folder != NULL)
        closedir(folder);
    free(path);
    return empty;
}

static long shared_number_of(const instance *i, const char *file, long otherwise)
{
    char *text = instance_read(i, file);
    const char *expanded = text != NULL ? strstr(text, "expanded: ") : NULL; /* "7 (expanded: 1408)" before its use */
    long number = expanded != NULL ? strtol(expanded + strlen("expanded: "), NULL, 10)
                  : text != NULL   ? strtol(text, NULL, 10)
                                   : otherwise;
    free(text);
    return number;
}

/* "local [global] counter": the one in brackets. */
static void read_clock(const instance *i, char clock[24])
{
    char *text = instance_read(i, "trace_clock");
    const char *open = text != NULL ? strchr(text, '[') : NULL;
    memcpy(clock, "local", sizeof "local");
    if (open != NULL)
        sscanf(open, "[%23[a-z0-9_]", clock);
    free(text);
}

/* One recorder at a time. */
static bool lock(instance *i)
{
    i->lock_fd = open(i->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = i->lock_fd >= 0 && flock(i->lock_fd, LOCK_EX | LOCK_NB) == 0;
    if (!good && errno == EWOULDBLOCK)
        nl_error_set(NL_ERROR_BUSY, NOT_FREE "by another nlkernel");
    else if (!good)
        nl_error_set_errno("%s", i->dir);
    return good;
}

static void shared_forget(instance *i)
{
    if (i->lock_fd >= 0)
        close(i->lock_fd);
    free(i->dir);
    *i = (instance){.free_buffer_fd = -1, .lock_fd = -1};
}

bool shared_find(instance *out, shared_note *note, const tracing *t)
{
    *out = (instance){.free_buffer_fd = -1, .lock_fd = -1, .dir = nl_memory_check(strdup(t->path))};
    bool idle = lock(out);
    for (size_t f = 0; idle && f < sizeof idle_files / sizeof *idle_files; f++)
        idle = is_idle(out, idle_files[f].file, idle_files[f].idle);
    if (!idle || !is_empty(out)) {
        shared_forget(out);
        return false;
    }
    char clock[24];
    read_clock(out, clock);
    snprintf(note->text, sizeof note->text, "%s-%ld-%ld-%ld", clock, shared_number_of(out, "buffer_size_kb", 1408),
             shared_number_of(out, "buffer_percent", 50), shared_number_of(out, "tracing_on", 1));
    return true;
}

bool shared_hold(instance *i)
{
    bool good = instance_write(i, "tracing_on", "0");
    instance_write_if_there(i, "options/disable_on_free", "1");
    i->free_buffer_fd = instance_open(i, "free_buffer", O_WRONLY);
    return good;
}

/* Nothing, where lines are added else. */
static void empty_list(const instance *i, const char *file)
{
    int fd = instance_open(i, file, O_WRONLY | O_TRUNC);
    if (fd >= 0)
        close(fd);
}

static bool set_back(const instance *i, const char *note)
{
    static const char *const lists[] = {"set_ftrace_filter", "set_ftrace_notrace", "set_ftrace_pid",
                                        "set_ftrace_notrace_pid"};
    char clock[24], number[24];
    long buffer_kb, percent, on;
    if (sscanf(note, "%23[a-z0-9_]-%ld-%ld-%ld", clock, &buffer_kb, &percent, &on) != 4)
        return nl_error_set(NL_ERROR_INVALID, "%s: not understood", note) == NL_OK;
    instance_write(i, "tracing_on", "0");
    bool good = instance_write(i, "current_tracer", "nop");
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
        empty_list(i, lists[l]);
    instance_write_if_there(i, "options/function-fork", "0");
    instance_write_if_there(i, "options/disable_on_free", "0");
    snprintf(number, sizeof number, "%ld", percent);
    instance_write_if_there(i, "buffer_percent", number);
    snprintf(number, sizeof number, "%ld", buffer_kb);
    good = instance_write(i, "buffer_size_kb", number) && good;
    good = instance_write(i, "trace_clock", clock) && good; /* which empties the buffers, too */
    return instance_write(i, "tracing_on", on != 0 ? "1" : "0") && good;
}

bool shared_release(instance *i, const char *note)
{
    if (i->dir == NULL)
        return true;
    instance_write(i, "tracing_on", "0");
    if (i->free_buffer_fd >= 0)
        close(i->free_buffer_fd); /* which leaves them without room */
    bool good = set_back(i, note);
    shared_forget(i);
    return good;
}

void shared_restore(const tracing *t, const char *note)
{
    instance all = {.free_buffer_fd = -1, .dir = t->path};
    set_back(&all, note);
}
