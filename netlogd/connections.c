#include "config.h"

#include "connections.h"

static connections_entry *first;
static connections_entry *first_waiting;
static size_t all_held;

void connections_add(connections_entry *entry)
{
    entry->next = first;
    entry->link = &first;
    if (entry->next != NULL)
        entry->next->link = &entry->next;
    first = entry;
}

static void stop_waiting(connections_entry *entry)
{
    if (!entry->waits)
        return;
    connections_entry **at = &first_waiting;
    while (*at != entry)
        at = &(*at)->next_waiting;
    *at = entry->next_waiting;
    entry->waits = false;
}

void connections_remove(connections_entry *entry)
{
    stop_waiting(entry);
    connections_set_held(entry, 0);
    *entry->link = entry->next;
    if (entry->next != NULL)
        entry->next->link = entry->link;
}

void connections_visit(void (*visit)(connection *c, void *user), void *user)
{
    for (connections_entry *entry = first, *next; entry != NULL; entry = next) {
        next = entry->next;
        visit(entry->owner, user);
    }
}

void connections_set_held(connections_entry *entry, size_t held)
{
    all_held += held - entry->held;
    entry->held = held;
}

size_t connections_get_held(void)
{
    return all_held;
}

connection *connections_find_worst(int64_t (*time_ns)(const connection *c))
{
    size_t holders = 0;
    int64_t earliest_ns = 0;
    connection *found = NULL;
    for (const connections_entry *entry = first; entry != NULL; entry = entry->next)
        holders += entry->held > 0;
    for (const connections_entry *entry = first; entry != NULL; entry = entry->next) {
        if (entry->held == 0 || entry->held < all_held / holders)
            continue;
        int64_t entry_ns = time_ns(entry->owner);
        if (found != NULL && (entry_ns == 0 || (earliest_ns != 0 && entry_ns >= earliest_ns)))
            continue;
        found = entry->owner;
        earliest_ns = entry_ns;
    }
    return found;
}

void connections_await_acknowledgement(connections_entry *entry)
{
    if (entry->waits)
        return;
    entry->waits = true;
    entry->next_waiting = first_waiting;
    first_waiting = entry;
}

connection *connections_next_to_acknowledge(void)
{
    connections_entry *waiting = first_waiting;
    if (waiting == NULL)
        return NULL;
    stop_waiting(waiting);
    return waiting->owner;
}
