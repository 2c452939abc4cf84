#include "config.h"

#include "tasks.h"

#include "base/memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Maximum numbers of threads and names. When it reaches a maximum, the module drops all entries and looks up the
 * threads again. */
enum { TASKS_MAX = 1 << 16, NAMES_MAX = 1 << 12 };

#define SAVED_EVERY_NS (NL_NS_PER_SECOND / 5)

static void task_name_free(void *user)
{
    task_name *name = user;
    free(name->shapes);
    free(name);
}

void tasks_start(tasks *t, int cpu, size_t event_count, const char *saved_path)
{
    *t = (tasks){.by_tid = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, free),
                 .names = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, task_name_free),
                 .cpu = cpu,
                 .event_count = event_count,
                 .saved_path = saved_path,
                 .saved_read_ns = INT64_MIN / 2};
}

void tasks_free(tasks *t)
{
    g_clear_pointer(&t->by_tid, g_hash_table_destroy);
    g_clear_pointer(&t->names, g_hash_table_destroy);
}

static task_name *find_or_add_name(tasks *t, const char *text)
{
    task_name *name = g_hash_table_lookup(t->names, text);
    if (name != NULL)
        return name;
    name = nl_memory_check(calloc(1, sizeof *name));
    name->shapes = nl_memory_check(calloc(t->event_count + 1, sizeof *name->shapes));
    name->size = (size_t)snprintf(name->text, sizeof name->text, "%s", text);
    g_hash_table_insert(t->names, name->text, name);
    return name;
}

/* Sets the name of a thread. `size` is at most TASK_NAME_SIZE. */
static void set_name(tasks *t, task *task, const char *data, size_t size, int64_t now_ns)
{
    char text[TASK_NAME_SIZE + 1];
    snprintf(text, sizeof text, "%.*s", (int)size, data);
    if (task->name == NULL || strcmp(task->name->text, text) != 0)
        task->name = find_or_add_name(t, text);
    task->looked_ns = now_ns;
}

static task *find_or_add(tasks *t, int tid)
{
    if (g_hash_table_size(t->by_tid) >= TASKS_MAX || g_hash_table_size(t->names) >= NAMES_MAX) {
        g_hash_table_remove_all(t->by_tid);
        g_hash_table_remove_all(t->names);
        t->last = NULL;
    }
    task *found = g_hash_table_lookup(t->by_tid, GINT_TO_POINTER(tid));
    if (found == NULL) {
        found = nl_memory_check(calloc(1, sizeof *found));
        found->tid = tid;
        g_hash_table_insert(t->by_tid, GINT_TO_POINTER(tid), found);
    }
    return found;
}

void tasks_learn(tasks *t, int tid, const char *name, size_t size, int64_t now_ns)
{
    if (tid == 0)
        return; /* ignore thread ID 0, which the idle threads of all CPUs share */
    size = strnlen(name, size < TASK_NAME_SIZE ? size : TASK_NAME_SIZE);
    if (size > 0)
        set_name(t, find_or_add(t, tid), name, size, now_ns);
}

/* ---- lookup ---- */

static ssize_t read_proc(int tid, const char *file, char *text, size_t capacity)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", tid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, text, capacity - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (size >= 0)
        text[size] = '\0';
    return size;
}

static bool look_up_in_proc(tasks *t, task *task, int64_t now_ns)
{
    char text[512];
    ssize_t size = read_proc(task->tid, "comm", text, sizeof text);
    if (size < 2)
        return false;
    size--; /* drop the newline */
    set_name(t, task, text, (size_t)size < TASK_NAME_SIZE ? (size_t)size : TASK_NAME_SIZE, now_ns);
    /* look up the process as often as the name, because the kernel reuses thread IDs */
    const char *line = read_proc(task->tid, "status", text, sizeof text) > 0 ? strstr(text, "\nTgid:") : NULL;
    if (line != NULL)
        sscanf(line, " Tgid: %d", &task->pid);
    return true;
}

/* Reads the names of ended threads from the kernel. Does nothing if the last reading is less than SAVED_EVERY_NS old,
 * because reading is slow. */
static void look_up_saved(tasks *t, int64_t now_ns)
{
    if (now_ns - t->saved_read_ns < SAVED_EVERY_NS)
        return;
    t->saved_read_ns = now_ns;
    FILE *file = fopen(t->saved_path, "re");
    char line[128];
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        int tid, at = 0;
        if (sscanf(line, "%d %n", &tid, &at) < 1 || at == 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        task *known = find_or_add(t, tid);
        if (known->name == NULL)
            tasks_learn(t, tid, line + at, sizeof line - (size_t)at, now_ns);
    }
    if (file != NULL)
        fclose(file);
}

task *tasks_look(tasks *t, int tid, int64_t now_ns)
{
    task *found = find_or_add(t, tid);
    if (tid == 0 && found->name == NULL) {
        char idle[TASK_NAME_SIZE];
        int size = snprintf(idle, sizeof idle, "swapper/%d", t->cpu);
        set_name(t, found, idle, (size_t)size, now_ns);
    } else if (tid != 0 && (found->name == NULL || found->pid == 0 || now_ns - found->looked_ns >= NL_NS_PER_SECOND)) {
        bool there = look_up_in_proc(t, found, now_ns);
        if (!there && found->name == NULL) {
            look_up_saved(t, now_ns);
            found = find_or_add(t, tid);
        }
        if (found->name == NULL)
            found->name = find_or_add_name(t, "unknown");
        if (found->pid == 0)
            found->pid = tid; /* for an ended thread, assume that its process had only one thread */
        found->looked_ns = now_ns;
    }
    t->last = found;
    return found;
}
