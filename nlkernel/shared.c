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

#define NOT_FREE                                                                                                       \
    "--functions=graph: this kernel has the function graph tracer only in the shared buffers, which are in use: "
#define USE_CALLS "; use --functions=calls"

/* Files, and the first line of their content while the shared buffers are idle. Older kernels lack some of the
 * files. */
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

static bool shared_is_idle(const instance *i, const char *file, const char *idle)
{
    char *text = instance_read(i, file);
    if (text == NULL)
        return true;
    text[strcspn(text, "\n")] = '\0';
    bool same = strcmp(text, idle) == 0;
    if (!same)
        nl_error_set(NL_ERROR_BUSY, NOT_FREE "%s/%s is %.60s" USE_CALLS, i->dir, file, text);
    free(text);
    return same;
}

/* Returns whether the buffers are empty. If the buffers contain events, sets the error, because recording would delete
 * these events. */
static bool shared_is_empty(const instance *i)
{
    char *path = program_format("%s/per_cpu", i->dir);
    DIR *directory = opendir(path);
    bool empty = true;
    for (struct dirent *entry; empty && directory != NULL && (entry = readdir(directory)) != NULL;) {
        char file[300];
        unsigned long entries = 0;
        snprintf(file, sizeof file, "per_cpu/%s/stats", entry->d_name);
        char *text = strncmp(entry->d_name, "cpu", 3) == 0 ? instance_read(i, file) : NULL;
        empty = text == NULL || sscanf(text, "entries: %lu", &entries) != 1 || entries == 0;
        if (!empty)
            nl_error_set(NL_ERROR_BUSY, NOT_FREE "%s/trace has unread events" USE_CALLS, i->dir);
        free(text);
    }
    if (directory != NULL)
        closedir(directory);
    free(path);
    return empty;
}

static long shared_read_number(const instance *i, const char *file, long otherwise)
{
    char *text = instance_read(i, file);
    /* before the first use, the text is, for example, "7 (expanded: 1408)" */
    const char *expanded = text != NULL ? strstr(text, "expanded: ") : NULL;
    long number = expanded != NULL ? strtol(expanded + strlen("expanded: "), NULL, 10)
                  : text != NULL   ? strtol(text, NULL, 10)
                                   : otherwise;
    free(text);
    return number;
}

/* Reads the name of the current clock, which is in brackets: "local [global] counter". The default is local. */
static void read_clock(const instance *i, char clock[24])
{
    char *text = instance_read(i, "trace_clock");
    const char *open = text != NULL ? strchr(text, '[') : NULL;
    memcpy(clock, "local", sizeof "local");
    if (open != NULL)
        sscanf(open, "[%23[a-z0-9_]", clock);
    free(text);
}

/* Locks the shared buffers against other recorders. Returns false and sets the error on failure. */
static bool lock_shared(instance *i)
{
    i->lock_fd = open(i->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = i->lock_fd >= 0 && flock(i->lock_fd, LOCK_EX | LOCK_NB) == 0;
    if (!ok && errno == EWOULDBLOCK)
        nl_error_set(NL_ERROR_BUSY, NOT_FREE "another nlkernel process is recording" USE_CALLS);
    else if (!ok)
        nl_error_set_errno("%s", i->dir);
    return ok;
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
    bool idle = lock_shared(out);
    for (size_t f = 0; idle && f < sizeof idle_files / sizeof *idle_files; f++)
        idle = shared_is_idle(out, idle_files[f].file, idle_files[f].idle);
    if (!idle || !shared_is_empty(out)) {
        shared_forget(out);
        return false;
    }
    char clock[24];
    read_clock(out, clock);
    snprintf(note->text, sizeof note->text, "%s-%ld-%ld-%ld", clock, shared_read_number(out, "buffer_size_kb", 1408),
             shared_read_number(out, "buffer_percent", 50), shared_read_number(out, "tracing_on", 1));
    return true;
}

bool shared_hold(instance *i)
{
    bool ok = instance_write(i, "tracing_on", "0");
    instance_write(i, "options/disable_on_free", "1");
    i->free_buffer_fd = instance_open(i, "free_buffer", O_WRONLY);
    return ok;
}

/* Empties a list of the kernel. Opening the file with O_TRUNC empties the list, whereas writes only append. */
static void empty_list(const instance *i, const char *file)
{
    int fd = instance_open(i, file, O_WRONLY | O_TRUNC);
    if (fd >= 0)
        close(fd);
}

static bool restore_settings(const instance *i, const char *note)
{
    static const char *const lists[] = {"set_ftrace_filter", "set_ftrace_notrace", "set_ftrace_pid",
                                        "set_ftrace_notrace_pid"};
    char clock[24];
    long buffer_kb, percent, on;
    if (sscanf(note, "%23[a-z0-9_]-%ld-%ld-%ld", clock, &buffer_kb, &percent, &on) != 4)
        return nl_error_false(NL_ERROR_INVALID, "invalid settings of the shared buffers: %s", note);
    instance_write(i, "tracing_on", "0");
    bool ok = instance_write(i, "current_tracer", "nop");
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
        empty_list(i, lists[l]);
    instance_write(i, "options/function-fork", "0");
    instance_write(i, "options/disable_on_free", "0");
    instance_write_number(i, "buffer_percent", percent);
    ok = instance_write_number(i, "buffer_size_kb", buffer_kb) && ok;
    ok = instance_write(i, "trace_clock", clock) && ok; /* a change of the clock also empties the buffers */
    return instance_write(i, "tracing_on", on != 0 ? "1" : "0") && ok;
}

bool shared_release(instance *i, const char *note)
{
    if (i->dir == NULL)
        return true;
    instance_write(i, "tracing_on", "0");
    if (i->free_buffer_fd >= 0)
        close(i->free_buffer_fd); /* this shrinks the buffers; restore_settings restores their size */
    bool ok = restore_settings(i, note);
    shared_forget(i);
    return ok;
}

void shared_restore(const tracing *t, const char *note)
{
    instance all = {.free_buffer_fd = -1, .dir = t->path};
    restore_settings(&all, note);
}
