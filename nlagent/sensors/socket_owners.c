#include "config.h"

#include "sensors/socket_owners.h"

#include "base/monotonic.h"
#include "sensors/sensor.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COST_FACTOR = 100, OWNERS_MAX = 1 << 16, SOCKETS_MAX = 1 << 22 };

typedef struct owned_socket {
    uint64_t inode;
    uint32_t owner; /* index in owners */
} owned_socket;

struct socket_owners {
    owned_socket *sockets; /* sorted by inode, then by owner */
    size_t count, capacity;
    socket_owner *owners;
    size_t owner_count, owner_capacity;
    int64_t next_ns; /* earliest time of the next search */
    nl_buffer text;
};

socket_owners *socket_owners_new(void)
{
    return calloc(1, sizeof(socket_owners));
}

/* Makes space for one more element of an array. Returns false if the array has `max` elements or memory is
 * insufficient. */
static bool owners_grow(void **array, size_t count, size_t *capacity, size_t size, size_t max)
{
    if (count < *capacity)
        return true;
    size_t larger = *capacity > 0 ? *capacity * 2 : 64;
    void *grown = larger <= max ? realloc(*array, larger * size) : NULL;
    if (grown == NULL)
        return false;
    *array = grown;
    *capacity = larger;
    return true;
}

static void owners_describe(socket_owners *o, socket_owner *owner)
{
    char path[64];
    *owner = (socket_owner){.pid = owner->pid};
    snprintf(path, sizeof path, "/proc/%d/comm", owner->pid);
    if (proc_read(path, &o->text))
        snprintf(owner->program, sizeof owner->program, "%.*s", (int)strcspn(o->text.data, "\n"), o->text.data);
    snprintf(path, sizeof path, "/proc/%d/cgroup", owner->pid);
    for (const char *at = proc_read(path, &o->text) ? o->text.data : NULL; at != NULL; at = proc_next_line(at))
        if (strncmp(at, "0::", 3) == 0)
            snprintf(owner->cgroup, sizeof owner->cgroup, "%.*s", (int)strcspn(at + 3, "\n"), at + 3);
}

static void owners_add_process(socket_owners *o, int pid)
{
    char path[64], target[64];
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *directory = opendir(path);
    bool has_sockets = false;
    for (struct dirent *d; directory != NULL && (d = readdir(directory)) != NULL;) {
        ssize_t size = readlinkat(dirfd(directory), d->d_name, target, sizeof target - 1);
        target[size > 0 ? size : 0] = '\0';
        uint64_t inode = strncmp(target, "socket:[", 8) == 0 ? strtoull(target + 8, NULL, 10) : 0;
        if (inode == 0 || !owners_grow((void **)&o->sockets, o->count, &o->capacity, sizeof *o->sockets, SOCKETS_MAX))
            continue;
        if (!has_sockets) {
            if (!owners_grow((void **)&o->owners, o->owner_count, &o->owner_capacity, sizeof *o->owners, OWNERS_MAX))
                break;
            /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): owners_grow has allocated the element */
            o->owners[o->owner_count].pid = pid;
            owners_describe(o, &o->owners[o->owner_count++]);
            has_sockets = true;
        }
        o->sockets[o->count++] = (owned_socket){inode, (uint32_t)o->owner_count - 1};
    }
    if (directory != NULL)
        closedir(directory);
}

static int compare_sockets(const void *a, const void *b)
{
    const owned_socket *x = a, *y = b;
    if (x->inode != y->inode)
        return x->inode < y->inode ? -1 : 1;
    return x->owner < y->owner ? -1 : x->owner > y->owner;
}

static void owners_search(socket_owners *o)
{
    int64_t begin_ns = nl_thread_cpu_ns();
    o->count = o->owner_count = 0;
    DIR *processes = opendir("/proc");
    for (struct dirent *d; processes != NULL && (d = readdir(processes)) != NULL;)
        if (d->d_name[0] >= '1' && d->d_name[0] <= '9')
            owners_add_process(o, atoi(d->d_name));
    if (processes != NULL)
        closedir(processes);
    if (o->count > 0)
        qsort(o->sockets, o->count, sizeof *o->sockets, compare_sockets);
    o->next_ns = nl_monotonic_ns() + COST_FACTOR * (nl_thread_cpu_ns() - begin_ns);
}

static const socket_owner *owners_look_up(const socket_owners *o, uint64_t inode)
{
    size_t from = 0, to = o->count;
    while (from < to) {
        size_t middle = (from + to) / 2;
        if (o->sockets[middle].inode < inode)
            from = middle + 1;
        else
            to = middle;
    }
    return from < o->count && o->sockets[from].inode == inode ? &o->owners[o->sockets[from].owner] : NULL;
}

const socket_owner *socket_owners_find(socket_owners *o, uint64_t inode)
{
    const socket_owner *found = inode != 0 ? owners_look_up(o, inode) : NULL;
    if (found == NULL && inode != 0 && nl_monotonic_ns() >= o->next_ns) {
        owners_search(o);
        found = owners_look_up(o, inode);
    }
    return found;
}

void socket_owners_read_times(socket_owners *o, const socket_owner *owner, int64_t now_ns)
{
    char path[64];
    unsigned long long run_ns, wait_ns;
    socket_owner *own = &o->owners[owner - o->owners];
    if (own->read_ns == now_ns)
        return;
    own->read_ns = now_ns;
    snprintf(path, sizeof path, "/proc/%d/schedstat", own->pid);
    if (proc_read(path, &o->text) && sscanf(o->text.data, "%llu %llu", &run_ns, &wait_ns) == 2)
        own->wait_us = wait_ns / 1000;
    snprintf(path, sizeof path, "/proc/%d/stat", own->pid);
    const char *end = proc_read(path, &o->text) ? strrchr(o->text.data, ')') : NULL;
    own->state = (char)(end != NULL && end[1] == ' ' ? end[2] : '\0');
}
