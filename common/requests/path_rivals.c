#include "config.h"

#include "requests/path_rivals.h"

#include <glib.h>

enum {
    MATTERS_PART = 10,    /* a rival matters if it changes at least this part of the request */
    EVENTS_SCAN_MAX = 32, /* maximum number of earlier events to examine for one step */
    STEPS_SCAN_MAX = 256, /* maximum number of earlier steps to examine for one rival */
};

typedef struct rival_search {
    const request_graph *g;
    const precedence *edges;
    const clock_shifts *shifts;
    bool *is_on_path; /* indexed by event; NULL until it is needed */
} rival_search;

static bool is_on_path(rival_search *s, uint32_t event)
{
    const request_graph *g = s->g;
    if (s->is_on_path == NULL) {
        s->is_on_path = g_new0(bool, g->event_count);
        for (size_t k = 0; k < g->path_count; k++) {
            if (g->path[k].from != REQUEST_NONE)
                s->is_on_path[g->path[k].from] = true;
            if (g->path[k].to != REQUEST_NONE)
                s->is_on_path[g->path[k].to] = true;
        }
    }
    return s->is_on_path[event];
}

/*
 * Returns whether the path is wrong for at least a tenth of the request before to_ns if the event `rival` is on it. The
 * path is wrong from the last of its events that comes before the rival and belongs to the same program and host, or
 * from the start of the request. Only the steps before the index `until` can contain this event.
 */
static bool matters(const request_graph *g, uint32_t rival, size_t until, int64_t to_ns)
{
    const int64_t part_ns = MAX((g->to_ns - g->from_ns) / MATTERS_PART, 1);
    size_t k = until;
    for (size_t left = STEPS_SCAN_MAX; k > 0 && left > 0; left--) {
        const request_step *step = &g->path[--k];
        if (to_ns - step->to_ns >= part_ns)
            return true;
        if (step->to != REQUEST_NONE && step->to < rival && g->events[step->to].place == g->events[rival].place)
            return false;
    }
    return k > 0 || to_ns - g->from_ns >= part_ns; /* after too many steps, the answer is unknown */
}

/*
 * Returns whether an event other than `latest` may be the latest cause of `effect`, or the last event of the request if
 * `effect` is REQUEST_NONE. The first `until` steps of the path lead to the effect.
 */
static bool has_rival(rival_search *s, uint32_t latest, uint32_t effect, size_t until)
{
    const request_graph *g = s->g;
    const request_event *last = &g->events[latest];
    for (uint32_t i = latest, left = EVENTS_SCAN_MAX; i > 0 && left > 0; left--) {
        const request_event *e = &g->events[--i];
        if (last->time_ns - e->time_ns > CLOCK_SHIFT_MAX_NS)
            break;
        /* If the clock of the later event's host is ahead, this event may have occurred first. */
        if (e->host == last->host || last->time_ns - e->time_ns >= clock_shifts_rest(s->shifts, last->host, e->host) ||
            is_on_path(s, i) || precedence_holds(s->edges, e, last) > 0 ||
            (effect != REQUEST_NONE && precedence_holds(s->edges, e, &g->events[effect]) <= 0))
            continue;
        if (matters(g, i, until, last->time_ns))
            return true;
    }
    return false;
}

uint32_t path_rivals_count(const request_graph *g, const precedence *edges, const clock_shifts *shifts)
{
    rival_search s = {g, edges, shifts, NULL};
    uint32_t count = has_rival(&s, (uint32_t)g->event_count - 1, REQUEST_NONE, g->path_count);
    for (size_t k = 0; k < g->path_count; k++) {
        const request_step *step = &g->path[k];
        if (step->inferred && step->from != REQUEST_NONE && step->to != REQUEST_NONE)
            count += has_rival(&s, step->from, step->to, k + 1);
    }
    g_free(s.is_on_path);
    return count;
}
