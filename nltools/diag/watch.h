/*
 * Alerts: finds the places that have become slower.
 *
 * The module examines the log in panes. A pane consists of the requests of a few seconds. For each place, the module
 * keeps the mean and variance of the place's own time per request. The mean and variance are exponentially weighted
 * moving averages over the healthy panes, with the weight 1/WATCH_MEMORY for a new pane (control chart, Roberts,
 * Technometrics 1959). A pane is bad for a place if the place's time in the pane is WATCH_DEVIATIONS standard errors
 * above the mean, and the excess is at least WATCH_EXCESS of the requests' time. Two bad panes in a row begin an alert.
 * WATCH_GOOD panes in a row that are not bad end the alert. Bad panes do not change the mean. An alert includes all
 * places that become bad in its first pane or at most TOGETHER_PANES panes later. An alert has the name of the place
 * with the largest excess when the alert begins. Memory is bounded by the number of places. Only one thread at a time
 * may use a watch.
 */
#ifndef NLDIAG_WATCH_H
#define NLDIAG_WATCH_H

#include "diag/visits.h"

enum { WATCH_MEMORY = 100, WATCH_WARM_UP = 8, WATCH_GOOD = 3, WATCH_PLACES_MAX = 4096 };

#define WATCH_DEVIATIONS 6
#define WATCH_EXCESS 0.1

/* The name of the place that stands for failed requests. */
#define WATCH_FAILURES "failed requests"

typedef struct watch_alert {
    unsigned number;
    bool ends;                /* true: the alert ends; false: the alert begins */
    const char *place;        /* name of the place */
    uint32_t number_of_place; /* index of the place in the pane; VISIT_NONE for failed requests, and at the end of an
                                 alert */
    int64_t from_ns, to_ns;
    double usual_ns, now_ns; /* the place's usual and current own time per request, in nanoseconds */
    double share;            /* the excess as a share of the requests' time */
} watch_alert;

typedef struct watch watch;

/* Receives an alert, which is valid only during the call. `v` contains the pane's requests, or is NULL at the end of an
 * alert. */
typedef void watch_take(void *user, const watch_alert *alert, const visits *v);

watch *watch_new(watch_take *take, void *user);
void watch_free(watch *w);

/* Adds a pane: the requests of `v` that ended after from_ns and at or before to_ns. Returns the number of these
 * requests. Failed requests count as a separate place, whose own time is their duration. */
uint32_t watch_add(watch *w, const visits *v, int64_t from_ns, int64_t to_ns);

/* Returns whether the usual times are known, no alert is active, and no place was slow in the latest pane. */
bool watch_is_calm(const watch *w);

#endif
