/*
 * The sites of nl_write: for every event's name, level and format that it is called with a plan of the format, and,
 * where possible, a site as every NL_EVENT has one, so that its events go into the ring like NL_EVENT's.
 *
 * The first NL_FORMAT_SITES_MAX of them are the process's and stay. Should there be more, as in a program that makes
 * its formats as it goes, each thread keeps those that it used last, without a site: their events go into the ring as
 * whole records.
 */
#ifndef NETLOGGER_LOG_FORMAT_SITE_H
#define NETLOGGER_LOG_FORMAT_SITE_H

#include "log/format_arguments.h"

#define NL_FORMAT_SITES_MAX 4096

typedef struct nl_format_site {
    nl_event_site site; /* not numbered unless is_typed */
    bool is_typed;
    bool is_shared; /* with other threads: one of the process's */
    nl_level level;
    char *event, *format; /* copies; format may be NULL */
    size_t event_size;
    nl_plan plan;
    struct nl_format_site *next; /* with the same hash */
} nl_format_site;

/* What a thread has found lately, by the pointers that it was called with; nothing but zeroes at first. */
enum { NL_FORMAT_CACHE_SIZE = 256 };
typedef struct nl_format_cache {
    struct {
        const char *event, *format;
        nl_level level;
        nl_format_site *site; /* NULL: free */
    } entries[NL_FORMAT_CACHE_SIZE];
} nl_format_cache;

/*
 * The site of these, made when there is none. NULL with the reason when the format is bad. It lasts until the thread's
 * next call. Not reentered, and not with nl_inside set.
 */
nl_format_site *nl_format_site_find(nl_format_cache *cache, nl_level level, const char *event, const char *format);

/* What nl_write made of it: the whole of which this is the site; NULL when it is an NL_EVENT's. */
const nl_format_site *nl_format_site_of(const nl_event_site *site);

void nl_format_cache_free(nl_format_cache *cache);

#endif
