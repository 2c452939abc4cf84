#include "config.h"

#include "tasks.h"

#include "base/memory.h"
#include "base/hash_bytes.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Maximum numbers of threads and names. Beyond them, all are forgotten and looked up again. */
enum { TASKS_MAX = 1 << 16, NAMES_MAX = 1 << 12, FIRST_SLOTS = 256 };

#define SAVED_EVERY_NS (NL_NS_PER_SECOND / 5)

void tasks_start(tasks *t, int cpu, size_t event_count, const char *saved_path)
{
    *t = (tasks){.cpu = cpu, .event_count = event_count, .saved_path = saved_path, .saved_read_ns = INT64_MIN / 2};
}

void tasks_free(tasks *t)
{
    for (size_t i = 0; i < t->name_capacity; i++)
        if (t->names[i] != NULL) {
            free(t->names[i]->shapes);
            free(t->names[i]);
        }
    free(t->names); /* NOLINT(clang-analyzer-unix.Malloc): tasks_start forgets them, below */
    free(t->slots);
    tasks_start(t, t->cpu, t->event_count, t->saved_path);
}

/* ---- names ---- */

static void grow_names(tasks *t)
{
    size_t before = t->name_capacity;
    task_name **old = t->names;
    t->name_capacity = before == 0 ? FIRST_SLOTS : before * 2;
    t->names = nl_memory_check(calloc(t->name_capacity, sizeof(task_name *)));
    for (size_t i = 0; i < before; i++) {
        if (old[i] == NULL) /* NOLINT(clang-analyzer-unix.Malloc): tasks_free leaves none, and 0 of them */
            continue;
        size_t at = (size_t)hash_bytes(0, old[i]->text, old[i]->size) & (t->name_capacity - 1);
        while (t->names[at] != NULL)
            at = (at + 1) & (t->name_capacity - 1);
        t->names[at] = old[i];
    }
    free(old); /* NOLINT(clang-analyzer-unix.Malloc): as above */
}

static task_name *tasks_name_of(tasks *t, const char *text, size_t size)
{
    if (t->name_count >= t->name_capacity / 2)
        grow_names(t);
    size_t at = (size_t)hash_bytes(0, text, size) & (t->name_capacity - 1);
    for (; t->names[at] != NULL; at = (at + 1) & (t->name_capacity - 1))
        if (t->names[at]->size == size && memcmp(t->names[at]->text, text, size) == 0)
            return t->names[at];
    task_name *name = nl_memory_check(calloc(1, sizeof *name));
    name->shapes = nl_memory_check(calloc(t->event_count + 1, sizeof *name->shapes));
    memcpy(name->text, text, size);
    name->size = size;
    t->names[at] = name;
    t->name_count++;
    return name;
}

/* Sets the name of a thread. size is at most TASK_NAME_SIZE. */
static void set_name(tasks *t, task *task, const char *text, size_t size, int64_t now_ns)
{
    if (task->name == NULL || task->name->size != size || memcmp(task->name->text, text, size) != 0)
        task->name = tasks_name_of(t, text, size);
    task->looked_ns = now_ns;
}

/* ---- threads ---- */

static size_t slot_of(const tasks *t, int tid)
{
    size_t at = (size_t)((unsigned)tid * 2654435761u) & (t->capacity - 1);
    while (t->slots[at].used && t->slots[at].tid != tid)
        at = (at + 1) & (t->capacity - 1);
    return at;
}

static void grow_tasks(tasks *t)
{
    size_t before = t->capacity;
    task *old = t->slots;
    t->capacity = before == 0 ? FIRST_SLOTS : before * 2;
    t->slots = nl_memory_check(calloc(t->capacity, sizeof *t->slots));
    for (size_t i = 0; i < before; i++)
        if (old[i].used)
            t->slots[slot_of(t, old[i].tid)] = old[i];
    free(old);
    t->last = NULL;
}

static task *find_or_add(tasks *t, int tid)
{
    if (t->count >= TASKS_MAX || t->name_count >= NAMES_MAX)
        tasks_free(t);
    if (t->count >= t->capacity / 2)
        grow_tasks(t);
    size_t at = slot_of(t, tid);
    if (!t->slots[at].used) {
        t->slots[at] = (task){.tid = tid, .used = true};
        t->count++;
    }
    return &t->slots[at];
}

void tasks_learn(tasks *t, int tid, const char *name, size_t size, int64_t now_ns)
{
    if (tid == 0)
        return; /* the idle threads of all CPUs have this ID */
    size = strnlen(name, size < TASK_NAME_SIZE ? size : TASK_NAME_SIZE);
    if (size > 0)
        set_name(t, find_or_add(t, tid), name, size, now_ns);
}

/* ---- looking up ---- */

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
    size--; /* the newline */
    set_name(t, task, text, (size_t)size < TASK_NAME_SIZE ? (size_t)size : TASK_NAME_SIZE, now_ns);
    /* IDs are reused: the process is looked up as often as the name. */
    const char *line = read_proc(task->tid, "status", text, sizeof text) > 0 ? strstr(text, "\nTgid:") : NULL;
    if (line != NULL)
        sscanf(line, " Tgid: %d", &task->pid);
    return true;
}

/* Learns the names of ended threads that the kernel has kept; at most every SAVED_EVERY_NS, because this is slow. */
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
        char idle[TASK_NAME_SIZE + 8];
        int size = snprintf(idle, sizeof idle, "swapper/%d", t->cpu);
        set_name(t, found, idle, (size_t)size, now_ns);
    } else if (tid != 0 && (found->name == NULL || found->pid == 0 || now_ns - found->looked_ns >= NL_NS_PER_SECOND)) {
        bool there = look_up_in_proc(t, found, now_ns);
        if (!there && found->name == NULL) {
            look_up_saved(t, now_ns);
            found = find_or_add(t, tid);
        }
        if (found->name == NULL)
            found->name = tasks_name_of(t, "unknown", strlen("unknown"));
        if (found->pid == 0)
            found->pid = tid; /* the thread has ended; most processes have one thread */
    }
    found->looked_ns = now_ns;
    t->last = found;
    return found;
}
