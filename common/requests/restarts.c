#include "config.h"

#include "requests/restarts.h"

#include "requests/key_map.h"
#include "base/compare.h"

#include <glib.h>
#include <stdlib.h>

enum {
    LAST_KINDS_MAX = 16, /* maximum number of kinds of last events to distinguish for each kind of first event */
    SAMPLES_MAX = 1024,
    RULE_MIN = 10,    /* minimum number of rounds from which the module derives a rule */
    ROUNDS_MANY = 3,  /* minimum mean number of rounds of an ID, to conclude that IDs are reused */
    ROUNDS_ALONE = 8, /* the same minimum, if no ID has ended */
    USUAL_SHARE = 4,  /* a last event is usual if at least 1/USUAL_SHARE of all IDs end with it */
    RULE_PERCENT = 90,
};

/* An event with which rounds end. */
typedef struct last_event {
    uint64_t kind;
    uint32_t restarts; /* number of rounds that end with this event and precede another round */
    uint32_t ends;     /* number of IDs that end with this event */
    bool is_usual;
} last_event;

/* A round that precedes another round of its ID. */
typedef struct round_sample {
    int64_t pause_ns; /* time until the next round */
    uint32_t last;    /* index in first_event.lasts */
} round_sample;

/* Statistics of the IDs whose first event is of a given kind. */
typedef struct first_event {
    uint64_t ids, ends, restarts;
    last_event lasts[LAST_KINDS_MAX + 1]; /* the last element counts all other kinds */
    uint32_t last_count;
    round_sample samples[SAMPLES_MAX];
    int64_t durations_ns[SAMPLES_MAX]; /* durations of rounds */
    uint32_t sample_count, duration_count;
    int64_t usual_ns;   /* the median of durations_ns */
    bool has_many;      /* on average, IDs have many rounds */
    bool always_splits; /* every round is a request */
} first_event;

struct restarts {
    key_map indices; /* maps the number of a kind, plus 1, to an index in `firsts`, plus 1 */
    first_event *firsts[RESTARTS_KINDS_MAX];
};

restarts *restarts_new(void)
{
    return g_new0(restarts, 1);
}

void restarts_free(restarts *r)
{
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->indices.count; i++)
        g_free(r->firsts[i]);
    key_map_free(&r->indices);
    g_free(r);
}

/* ---- learning ---- */

/* Returns the statistics of the kind of a first event, or NULL. */
static first_event *find_first(const restarts *r, const request_event *event)
{
    const uint64_t *index = key_map_find(&r->indices, request_event_kind(event) + 1);
    return index != NULL ? r->firsts[*index - 1] : NULL;
}

/* Like find_first, but adds a new kind. Returns NULL if there is no space. */
static first_event *add_first(restarts *r, const request_event *event)
{
    first_event *f = find_first(r, event);
    if (f != NULL || r->indices.count == RESTARTS_KINDS_MAX)
        return f;
    f = r->firsts[r->indices.count] = g_new0(first_event, 1);
    uint64_t *index = key_map_add(&r->indices, request_event_kind(event) + 1);
    *index = r->indices.count;
    return f;
}

/*
 * Returns the index in f->lasts of the kind of a last event. Adds a new kind if `add` is true and there is space.
 * Otherwise, returns the index for all other kinds.
 */
static uint32_t last_index(first_event *f, const request_event *event, bool add)
{
    uint64_t kind = request_event_kind(event);
    uint32_t i = 0;
    while (i < f->last_count && f->lasts[i].kind != kind)
        i++;
    if (i < f->last_count)
        return i;
    if (!add || f->last_count == LAST_KINDS_MAX)
        return LAST_KINDS_MAX;
    f->lasts[f->last_count].kind = kind;
    return f->last_count++;
}

static void learn_duration(first_event *f, const request_event *first, const request_event *last)
{
    if (f->duration_count < SAMPLES_MAX)
        f->durations_ns[f->duration_count++] = last->time_ns - first->time_ns;
}

static void learn_restart(first_event *f, const request_event *last, const request_event *event)
{
    uint32_t index = last_index(f, last, true);
    f->restarts++;
    f->lasts[index].restarts++;
    if (f->sample_count < SAMPLES_MAX)
        f->samples[f->sample_count++] = (round_sample){event->time_ns - last->time_ns, index};
}

void restarts_learn(restarts *r, const request_event *events, size_t count, bool over)
{
    first_event *f = count > 0 ? add_first(r, &events[0]) : NULL;
    if (f == NULL)
        return;
    size_t from = 0;
    f->ids++;
    for (size_t i = 1; i < count; i++) {
        if (!restarts_repeats(&events[0], &events[i - 1], &events[i]))
            continue;
        learn_duration(f, &events[from], &events[i - 1]);
        learn_restart(f, &events[i - 1], &events[i]);
        from = i;
    }
    if (!over || (from > 0 && from == count - 1)) /* a round that has only begun shows no usual last event */
        return;
    learn_duration(f, &events[from], &events[count - 1]);
    f->ends++;
    f->lasts[last_index(f, &events[count - 1], true)].ends++;
}

/* ---- the rule ---- */

static bool has_ended(const first_event *f, uint32_t last, int64_t pause_ns)
{
    return f->lasts[last].is_usual && (f->has_many || pause_ns > f->usual_ns);
}

static void settle_first(first_event *f)
{
    uint64_t usual = 0, ended = 0;
    for (uint32_t i = 0; i < f->last_count; i++) {
        last_event *last = &f->lasts[i];
        bool alone = f->ends == 0 && last->restarts >= ROUNDS_ALONE * f->ids && 2 * last->restarts > f->restarts;
        last->is_usual = alone || (last->ends > 0 && USUAL_SHARE * last->ends >= f->ends);
        usual += last->is_usual ? last->restarts : 0;
    }
    qsort(f->durations_ns, f->duration_count, sizeof *f->durations_ns, nl_compare_int64);
    f->usual_ns = f->duration_count > 0 ? f->durations_ns[f->duration_count / 2] : 0;
    f->has_many = usual >= (ROUNDS_MANY - 1) * f->ids;
    for (uint32_t i = 0; i < f->sample_count; i++)
        ended += has_ended(f, f->samples[i].last, f->samples[i].pause_ns);
    f->always_splits = ended >= RULE_MIN && 100 * ended >= RULE_PERCENT * (uint64_t)f->sample_count;
}

void restarts_settle(restarts *r)
{
    for (size_t i = 0; i < r->indices.count; i++)
        settle_first(r->firsts[i]);
}

bool restarts_repeats(const request_event *first, const request_event *last, const request_event *event)
{
    uint64_t kind = request_event_kind(event);
    return request_event_kind(first) == kind && request_event_kind(last) != kind && last->time_ns <= event->time_ns;
}

bool restarts_splits(const restarts *r, const request_event *first, const request_event *last,
                     const request_event *event, bool unknown)
{
    if (!restarts_repeats(first, last, event))
        return false;
    first_event *f = find_first(r, first);
    if (f == NULL)
        return unknown;
    return f->always_splits || has_ended(f, last_index(f, last, false), event->time_ns - last->time_ns);
}
