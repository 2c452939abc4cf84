#include "config.h"

#include "requests/path_rivals.h"

enum {
    MATTERS_PART = 10, /* a rival matters if it changes at least this part of the request */
    SCAN_MAX = 32,     /* maximum number of earlier events to examine for one step */
};

/*
 * Returns the time from which the path is wrong if the event `rival` is on it: the time of the last event of the path
 * that comes before the rival and belongs to the same program and host, or the start of the request.
 */
static int64_t fork_of(const request_graph *g, uint32_t rival)
{
    for (size_t k = g->path_count; k-- > 0;) {
        const request_step *step = &g->path[k];
        if (step->to != REQUEST_NONE && step->to < rival && g->events[step->to].place == g->events[rival].place)
            return step->to_ns;
    }
    return g->from_ns;
}

static bool is_on_path(const request_graph *g, uint32_t event)
{
    for (size_t k = 0; k < g->path_count; k++)
        if (g->path[k].from == event || g->path[k].to == event)
            return true;
    return false;
}

/*
 * Returns whether an event other than `latest` may be the latest cause of `effect`, or the last event of the request if
 * `effect` is REQUEST_NONE.
 */
static bool has_rival(const request_graph *g, const precedence *edges, const clock_shifts *shifts, uint32_t latest,
                      uint32_t effect)
{
    const request_event *last = &g->events[latest];
    for (uint32_t i = latest, left = SCAN_MAX; i > 0 && left > 0; left--) {
        const request_event *e = &g->events[--i];
        if (last->time_ns - e->time_ns > CLOCK_SHIFT_MAX_NS)
            break;
        /* The clock of the later event may be ahead, so that the event was earlier. */
        if (e->host == last->host || last->time_ns - e->time_ns >= clock_shifts_rest(shifts, last->host, e->host) ||
            is_on_path(g, i) || precedence_holds(edges, e, last) > 0 ||
            (effect != REQUEST_NONE && precedence_holds(edges, e, &g->events[effect]) <= 0))
            continue;
        if ((last->time_ns - fork_of(g, i)) >= (g->to_ns - g->from_ns) / MATTERS_PART)
            return true;
    }
    return false;
}

uint32_t path_rivals_count(const request_graph *g, const precedence *edges, const clock_shifts *shifts)
{
    uint32_t count = has_rival(g, edges, shifts, (uint32_t)g->event_count - 1, REQUEST_NONE);
    for (size_t k = 0; k < g->path_count; k++) {
        const request_step *step = &g->path[k];
        if (step->inferred && step->from != REQUEST_NONE && step->to != REQUEST_NONE)
            count += has_rival(g, edges, shifts, step->from, step->to);
    }
    return count;
}
