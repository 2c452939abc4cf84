#include "config.h"

#include "connections.h"

#include "program/program.h"

#include <stdlib.h>

struct connections {
    connections_entry *first;
    connections_entry *first_waiting;
    size_t held;
};

connections *connections_new(void)
{
    connections *all = calloc(1, sizeof *all);
    if (all == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    return all;
}

void connections_free(connections *all)
{
    free(all);
}

void connections_add(connections *all, connections_entry *entry)
{
    entry->next = all->first;
    entry->link = &all->first;
    if (entry->next != NULL)
        entry->next->link = &entry->next;
    all->first = entry;
}

static void stop_waiting(connections *all, connections_entry *entry)
{
    if (!entry->waits)
        return;
    connections_entry **at = &all->first_waiting;
    while (*at != entry)
        at = &(*at)->next_waiting;
    *at = entry->next_waiting;
    entry->waits = false;
}

void connections_remove(connections *all, connections_entry *entry)
{
    stop_waiting(all, entry);
    connections_set_held(all, entry, 0);
    *entry->link = entry->next;
    if (entry->next != NULL)
        entry->next->link = entry->link;
}

void connections_visit(connections *all, void (*visit)(connection *c, void *user), void *user)
{
    for (connections_entry *entry = all->first, *next; entry != NULL; entry = next) {
        next = entry->next;
        visit(entry->owner, user);
    }
}

void connections_set_held(connections *all, connections_entry *entry, size_t held)
{
    all->held += held - entry->held;
    entry->held = held;
}

size_t connections_get_held(const connections *all)
{
    return all->held;
}

connection *connections_find_worst(const connections *all, int64_t (*time_ns)(const connection *c))
{
    size_t holders = 0;
    int64_t earliest_ns = 0;
    connection *found = NULL;
    for (const connections_entry *entry = all->first; entry != NULL; entry = entry->next)
        holders += entry->held > 0;
    for (const connections_entry *entry = all->first; entry != NULL; entry = entry->next) {
        if (entry->held == 0 || entry->held < all->held / holders)
            continue;
        int64_t entry_ns = time_ns(entry->owner);
        if (found != NULL && (entry_ns == 0 || (earliest_ns != 0 && entry_ns >= earliest_ns)))
            continue;
        found = entry->owner;
        earliest_ns = entry_ns;
    }
    return found;
}

void connections_await_acknowledgement(connections *all, connections_entry *entry)
{
    if (entry->waits)
        return;
    entry->waits = true;
    entry->next_waiting = all->first_waiting;
    all->first_waiting = entry;
}

connection *connections_next_to_acknowledge(connections *all)
{
    connections_entry *first = all->first_waiting;
    if (first == NULL)
        return NULL;
    stop_waiting(all, first);
    return first->owner;
}
