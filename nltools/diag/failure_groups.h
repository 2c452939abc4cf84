/*
 * Groups of visits that fail more often than the other visits: the visits to one host or process, with one value of a
 * field, or in a part of the log. Such a group shows when or where visits fail. tail_groups.h finds groups of very slow
 * visits with this module: it passes very slow visits as failed. Not thread-safe.
 */
#ifndef NLDIAG_FAILURE_GROUPS_H
#define NLDIAG_FAILURE_GROUPS_H

#include "diag/visits.h"

enum { FAILURE_GROUP_MIN = 5 }; /* minimum number of failures of a group */

typedef struct failure_group {
    const char *host;            /* the host, or NULL */
    const char *process;         /* the process on this host, or NULL */
    const column *column;        /* the field, or NULL */
    float value;                 /* the value of the field */
    bool is_time;                /* the group is a part of the log, from from_ns to to_ns */
    int64_t from_ns, to_ns;      /* the time of the group, or of the log */
    double failed, count;        /* numbers of failed visits and of all visits in the group */
    double other_failed, others; /* numbers of failed visits and of all visits with which the group was compared */
} failure_group;

/*
 * Finds the group of a place's visits that correlates best with the failures. `failed` has an element for each visit of
 * the log. If no group fails more often than the others, the function finds a group with a probability of at most
 * `chance`. Also tries parts of the log as groups if `with_times` is true. Returns false if there is no group.
 */
bool failure_group_find(const visits *v, uint32_t place, const bool *failed, double chance, bool with_times,
                        failure_group *found);

#endif
