/*
 * The sites of nl_write. For each combination of event name, level and format, the module keeps the parsed format (a
 * plan) and, if possible, a site like that of an NL_EVENT. Events with such a site have the same form in the ring as
 * those of NL_EVENT.
 *
 * The process shares and keeps the first NL_FORMAT_SITES_MAX sites. A program that composes formats may exceed this
 * number. Each thread then caches its latest sites, and the events of these sites go into the ring as whole records.
 */
#ifndef NETLOGGER_LOG_FORMAT_SITE_H
#define NETLOGGER_LOG_FORMAT_SITE_H

#include "log/format_arguments.h"

#define NL_FORMAT_SITES_MAX 4096

typedef struct nl_format_site {
    nl_event_site site; /* the site has a number only if is_typed is true */
    bool is_typed;      /* the values of its events go into the ring with their types, not as whole records */
    bool is_shared;     /* shared by all threads */
    nl_level level;
    char *event, *format; /* copies; format may be NULL */
    size_t event_size;
    nl_plan plan;
    struct nl_format_site *next; /* the next site with the same hash */
} nl_format_site;

/* A thread's cache of sites. The keys are the pointers that the calls pass. Initialize the structure with zeros. */
enum { NL_FORMAT_CACHE_SIZE = 256 };
typedef struct nl_format_cache {
    struct {
        const char *event, *format;
        nl_level level;
        nl_format_site *site; /* NULL: free */
    } entries[NL_FORMAT_CACHE_SIZE];
} nl_format_cache;

/*
 * Returns the site. If the site does not exist, creates it first. The site is valid until the thread's next call.
 * Returns NULL with the reason if the format is invalid or memory runs out. Not reentrant. nl_inside must not be set.
 */
nl_format_site *nl_format_site_find(nl_format_cache *cache, nl_level level, const char *event, const char *format);

/* Returns the format site that contains this site, or NULL if the site is that of an NL_EVENT. */
const nl_format_site *nl_format_site_of(const nl_event_site *site);

void nl_format_cache_free(nl_format_cache *cache);

#endif
