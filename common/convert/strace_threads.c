#include "config.h"

#include "convert/strace_threads.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 1000, NAME_SIZE_MAX = 255 };

void strace_threads_free(strace_threads *all)
{
    for (size_t i = 0; i < all->name_count; i++)
        free((char *)all->names[i].data);
    free(all->names);
    free(all->slots);
}

static strace_thread *strace_threads_find(const strace_threads *all, uint32_t tid)
{
    for (size_t at = tid * UINT32_C(0x9e3779b1);; at++) {
        strace_thread *t = &all->slots[at & (all->slot_count - 1)];
        if (!t->is_known || t->tid == tid)
            return t;
    }
}

static void strace_threads_grow(strace_threads *all)
{
    strace_threads old = *all;
    all->slot_count = old.slot_count == 0 ? 64 : 2 * old.slot_count;
    all->slots = nl_memory_check(calloc(all->slot_count, sizeof *all->slots));
    for (size_t i = 0; i < old.slot_count; i++)
        if (old.slots[i].is_known)
            *strace_threads_find(all, old.slots[i].tid) = old.slots[i];
    free(old.slots);
}

/*
 * Returns the only thread that has not ended, and caches its number in all->only. Call it only if there is exactly one.
 */
static strace_thread *only(strace_threads *all)
{
    for (size_t i = 0; i < all->slot_count && all->only == 0; i++) {
        const strace_thread *t = &all->slots[i];
        if (t->is_known && !t->has_ended)
            all->only = t->tid;
    }
    return strace_threads_find(all, all->only);
}

strace_thread *strace_threads_get(strace_threads *all, uint32_t tid)
{
    if (tid == 0 && all->alive == 1)
        return only(all);
    if (2 * all->count >= all->slot_count)
        strace_threads_grow(all);
    strace_thread *t = strace_threads_find(all, tid);
    if (t->is_known && !t->has_ended)
        return t;
    all->count += !t->is_known;
    all->alive += tid != 0;
    all->only = 0;
    *t = (strace_thread){.tid = tid, .is_known = true, .prog = all->parent_prog};
    return t;
}

bool strace_threads_adopt(strace_threads *all, strace_thread *t)
{
    strace_thread *nameless = strace_threads_find(all, 0);
    if (t == nameless || !nameless->is_known || nameless->call == 0)
        return false;
    t->call = nameless->call;
    t->start_ns = nameless->start_ns;
    t->prog = nameless->prog;
    t->next_prog = nameless->next_prog;
    nameless->call = 0;
    return true;
}

void strace_threads_end(strace_threads *all, strace_thread *t)
{
    t->has_ended = true;
    all->alive -= t->tid != 0;
    all->only = 0;
}

uint16_t strace_threads_name(strace_threads *all, nl_string name)
{
    if (name.size == 0 || name.size > NAME_SIZE_MAX)
        return 0;
    for (size_t i = all->name_count; i > 0; i--)
        if (all->names[i - 1].size == name.size && memcmp(all->names[i - 1].data, name.data, name.size) == 0)
            return (uint16_t)i;
    if (all->name_count == NAMES_MAX)
        return 0;
    if (all->names == NULL)
        all->names = nl_memory_check(calloc(NAMES_MAX, sizeof *all->names));
    char *copy = nl_memory_check(malloc(name.size));
    memcpy(copy, name.data, name.size);
    all->names[all->name_count++] = (nl_string){copy, name.size};
    return (uint16_t)all->name_count;
}

nl_string strace_threads_prog(const strace_threads *all, const strace_thread *t)
{
    return t->prog != 0 ? all->names[t->prog - 1] : (nl_string){NULL, 0};
}
