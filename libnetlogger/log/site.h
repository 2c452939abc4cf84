/*
 * The sites of events: numbered at their first event, written into shared memory with their names and types, and read
 * back from there by whoever makes records of events, in this process or, after a crash, in another.
 */
#ifndef NETLOGGER_LOG_SITE_H
#define NETLOGGER_LOG_SITE_H

#include "log/shared.h"

/* A site as it is read back. The texts lie in the shared memory. */
typedef struct nl_site {
    nl_string event;
    nl_level level;
    unsigned field_count;
    unsigned least_size; /* of its events in a ring: all but the strings' bytes */
    unsigned char types[NL_FIELDS_MAX];
    nl_string names[NL_FIELDS_MAX];
} nl_site;

/* The sites read so far from shared memory; one thread's. */
typedef struct nl_site_table {
    const nl_shared_sites *shared;
    size_t size;   /* of the memory there */
    uint64_t read; /* bytes behind its header */
    nl_site *sites;
    size_t count, capacity;
} nl_site_table;

/*
 * Numbers a site and writes it down; sites that rules of nl_sites_switch name are switched off or on. False when there
 * is no memory for it. The caller is the only one at it.
 */
bool nl_site_register(nl_event_site *site);

/* The sites that are numbered, first things first: an array, freed by the caller, of *count. With the registry locked.
 */
nl_event_site **nl_sites_registered(size_t *count);

enum { NL_SITE_PATTERN_SIZE = 128 }; /* of a rule; what is longer is cut */

/* Switches the sites whose event matches pattern (fnmatch) off or on: those there are, and those to come. */
void nl_sites_switch(const char *pattern, bool off);

/* Forgets what was last said of that very pattern: the rules that are left say what is off. */
void nl_sites_forget_rule(const char *pattern);

/* Whether rules switch events of that name off, which have no site. Not with nl_inside set. */
bool nl_sites_is_off(nl_string event);

/* The shared memory of this process's sites, NULL before the first. */
const nl_shared_sites *nl_sites_shared(void);

/* While the process forks nobody is in the middle of switching sites. */
void nl_sites_lock(void);
void nl_sites_unlock(void);

/* In the child after fork: every site is numbered anew. And at the end of the process. */
void nl_sites_forget(void);

/* Removes the file, as the process ends; the memory stays, as threads may still log. With the registry locked. */
void nl_sites_leave(void);

/* nl_site_table_get for one that was not read yet. */
const nl_site *nl_site_table_read(nl_site_table *table, uint32_t id);

/* The site of that number, reading on in the shared memory if need be; NULL when there is none. */
static inline const nl_site *nl_site_table_get(nl_site_table *table, uint32_t id)
{
    uint32_t place = id - NL_SITE_FIRST;
    return __builtin_expect(place < table->count, 1) ? &table->sites[place] : nl_site_table_read(table, id);
}
void nl_site_table_free(nl_site_table *table);

/* The bytes that a value of a raw type takes in the ring, 0 for a string. */
size_t nl_raw_size(unsigned raw_type);

#endif
