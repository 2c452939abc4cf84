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
    unsigned char types[NL_FIELDS_MAX];
    nl_string names[NL_FIELDS_MAX];
} nl_site;

/* The sites read so far from shared memory; one thread's. */
typedef struct nl_site_table {
    const nl_shared_sites *shared;
    uint64_t read; /* bytes */
    nl_site *sites;
    size_t count, capacity;
} nl_site_table;

/*
 * Numbers a site and writes it down; sites that rules of nl_sites_switch name are switched off or on. False when there
 * is no memory for it. The caller is the only one at it.
 */
bool nl_site_register(nl_event_site *site);

enum { NL_SITE_PATTERN_SIZE = 128 }; /* of a rule; what is longer is cut */

/* Switches the sites whose event matches pattern (fnmatch) off or on: those there are, and those to come. */
void nl_sites_switch(const char *pattern, bool off);

/* Forgets what was last said of that very pattern: the rules that are left say what is off. */
void nl_sites_forget_rule(const char *pattern);

/* The shared memory of this process's sites, NULL before the first. */
const nl_shared_sites *nl_sites_shared(void);

/* In the child after fork: every site is numbered anew. And at the end of the process. */
void nl_sites_forget(void);

/* The site of that number, reading on in the shared memory if need be; NULL when there is none. */
const nl_site *nl_site_table_get(nl_site_table *table, uint32_t id);
void nl_site_table_free(nl_site_table *table);

/* The bytes that a value of a raw type takes in the ring, 0 for a string. */
size_t nl_raw_size(unsigned raw_type);

#endif
