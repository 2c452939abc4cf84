/*
 * The sites of events. A site gets a number at its first event and is written to shared memory with its names and
 * types. Code that reads events, in this process or, after a crash, in another process, gets the site from shared
 * memory.
 */
#ifndef NETLOGGER_LOG_SITE_H
#define NETLOGGER_LOG_SITE_H

#include "log/shared.h"

/* A site that was read from shared memory. Its strings point to that memory. */
typedef struct nl_site {
    nl_string event;
    nl_level level;
    unsigned field_count;
    unsigned minimum_size; /* size in bytes of an event whose strings are empty, including its header */
    bool has_span_id;      /* the site has a SPAN.ID field */
    unsigned char types[NL_SITE_FIELDS_MAX];
    nl_string names[NL_SITE_FIELDS_MAX];
} nl_site;

/* The sites that one thread has read from shared memory. */
typedef struct nl_site_table {
    const nl_shared_sites *shared;
    size_t size;   /* size of the shared memory in bytes */
    uint64_t read; /* number of bytes after the header of the shared memory that have been read */
    nl_site *sites;
    size_t count, capacity;
} nl_site_table;

/*
 * Assigns a number to a site, writes the site to shared memory, and applies the rules of nl_sites_switch. Returns false
 * if memory runs out or the 64 MiB for sites are full. The registry is locked.
 */
bool nl_site_register(nl_event_site *site);

/*
 * Returns an array of the *count registered sites, in the order of their numbers; the caller frees it. Returns NULL if
 * memory runs out. The registry is locked.
 */
nl_event_site **nl_sites_registered(size_t *count);

enum { NL_SITE_PATTERN_SIZE = 128 }; /* maximum size of a rule's pattern with its NUL; longer patterns are truncated */

/*
 * Switches off or on all present and future sites whose event matches pattern (fnmatch), with a rule that replaces an
 * earlier rule with the same pattern. If there are 64 rules, forgets the oldest rule without undoing its effect on the
 * present sites.
 */
void nl_sites_switch(const char *pattern, bool off);

/* Removes the rule with this pattern. The other rules then determine whether the matching sites are off. */
void nl_sites_forget_rule(const char *pattern);

/* Returns whether rules switch off an event that has no site; false if memory runs out. nl_inside must not be set. */
bool nl_sites_is_off(nl_string event);

/* Returns the shared memory of this process's sites; NULL before the first site. */
const nl_shared_sites *nl_sites_shared(void);

/* Lock and unlock the rules before and after fork, so that no other thread holds the lock during fork. */
void nl_sites_lock(void);
void nl_sites_unlock(void);

/*
 * Forgets all sites, in the child after fork and after the last log is closed: removes their numbers and the shared
 * memory. The file remains if nl_session_keep was called.
 */
void nl_sites_forget(void);

/*
 * Removes the file when the process ends, unless nl_session_keep was called. The memory stays, because threads may
 * still log. The registry is locked.
 */
void nl_sites_leave(void);

/* Returns the base address of the program or shared library that contains an address; NULL if it is not found. */
const void *nl_module_of(const void *address);

/* Like nl_site_table_get, for a site that was not read before. */
const nl_site *nl_site_table_read(nl_site_table *table, uint32_t id);

/*
 * Returns the site with this number, reading more shared memory if necessary. Returns NULL if the site does not exist
 * or is damaged, or memory runs out.
 */
static inline const nl_site *nl_site_table_get(nl_site_table *table, uint32_t id)
{
    uint32_t place = id - NL_SITE_FIRST;
    return __builtin_expect(place < table->count, 1) ? &table->sites[place] : nl_site_table_read(table, id);
}
void nl_site_table_free(nl_site_table *table);

/* Returns the size in bytes of a value of a raw type in the ring; 0 for strings and invalid types. */
size_t nl_raw_size(unsigned raw_type);

#endif
