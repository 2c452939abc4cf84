#include "config.h"

#include "agent/summary.h"

#include "agent/condition.h"
#include "base/memory.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERIES_MAX = 1000, SAMPLE_SIZE = 256, MINUTE_S = 60, LENGTH_COUNT = 3 };

/* For each kind of window, its length and the number of closed windows to keep. */
static const struct {
    unsigned minutes, kept;
} lengths[LENGTH_COUNT] = {{1, 24 * 60}, {10, 24 * 6}, {60, 24}};

typedef struct closed_window {
    uint32_t minute; /* start of the window, in minutes since 1970 */
    uint32_t count;
    float min, mean, max, p50, p90, p99;
} closed_window;

typedef struct window {
    /* The open window. While `count` is 0, its other members are undefined. */
    int64_t begin_ns;
    uint64_t count;
    double sum, min, max;
    float sample[SAMPLE_SIZE];
    /* a ring buffer of closed windows */
    closed_window *closed;
    size_t closed_count, closed_first;
} window;

/* The values of one field of one object. */
typedef struct series {
    struct series *next;
    char key[CONDITION_KEY_SIZE];
    char field[64];
    nl_record *object; /* the event and fields that identify the object */
    window windows[LENGTH_COUNT];
} series;

struct summaries {
    series *first;
    series *expected; /* the next series in the usual order */
    size_t count;
    uint64_t left_out, seed;
    void (*on_closed)(void *user, const nl_record *record, unsigned minutes);
    void *user;
};

summaries *summaries_new(void)
{
    summaries *s = nl_memory_check(calloc(1, sizeof *s));
    s->seed = 88172645463325252u;
    return s;
}

void summaries_free(summaries *s)
{
    if (s == NULL)
        return;
    for (series *one = s->first, *next; one != NULL; one = next) {
        next = one->next;
        for (int i = 0; i < LENGTH_COUNT; i++)
            free(one->windows[i].closed);
        nl_record_free(one->object);
        free(one);
    }
    free(s);
}

void summaries_on_closed(summaries *s, void (*on_closed)(void *user, const nl_record *record, unsigned minutes),
                         void *user)
{
    s->on_closed = on_closed;
    s->user = user;
}

uint64_t summaries_left_out(const summaries *s)
{
    return s->left_out;
}

/* ---- windows ---- */

static int summary_compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/*
 * Appends the open window to the ring of closed windows, which holds at most `kept` windows. Returns the closed window.
 */
static const closed_window *window_close(window *w, size_t kept)
{
    size_t n = w->count < SAMPLE_SIZE ? (size_t)w->count : SAMPLE_SIZE;
    qsort(w->sample, n, sizeof w->sample[0], summary_compare);
    if (w->closed_count < kept && (w->closed_count & (w->closed_count - 1)) == 0) {
        size_t capacity = w->closed_count == 0 ? 1 : 2 * w->closed_count;
        w->closed = nl_memory_check(realloc(w->closed, (capacity < kept ? capacity : kept) * sizeof *w->closed));
    }
    size_t place = w->closed_count;
    if (w->closed_count < kept) {
        w->closed_count++;
    } else {
        place = w->closed_first;
        w->closed_first = (place + 1) % kept;
    }
    /* the p-th percentile is the lowest value such that at least p percent of the sample are not higher */
    w->closed[place] = (closed_window){.minute = (uint32_t)(w->begin_ns / NL_NS_PER_SECOND / MINUTE_S),
                                       .count = (uint32_t)w->count,
                                       .min = (float)w->min,
                                       .mean = (float)(w->sum / (double)w->count),
                                       .max = (float)w->max,
                                       .p50 = w->sample[(50 * n + 99) / 100 - 1],
                                       .p90 = w->sample[(90 * n + 99) / 100 - 1],
                                       .p99 = w->sample[(99 * n + 99) / 100 - 1]};
    return &w->closed[place];
}

static void summary_add_float(nl_record *record, const char *name, float value)
{
    char text[32];
    snprintf(text, sizeof text, "%.7g", (double)value); /* the precision of a float */
    nl_record_add_double(record, name, strtod(text, NULL));
}

/* Adds a copy of a field's text. */
static void summary_add_field(nl_record *record, const nl_field *f)
{
    char name[64], scratch[NL_FIELD_TEXT_SIZE];
    snprintf(name, sizeof name, "%.*s", (int)f->name.size, f->name.data);
    nl_string text = nl_field_text(f, scratch);
    nl_record_add_string(record, name, text.data, text.size);
}

static nl_record *summary_record(const series *one, unsigned minutes, const closed_window *w)
{
    nl_record *record = nl_record_new();
    nl_record_set_time(record, (int64_t)w->minute * MINUTE_S * NL_NS_PER_SECOND);
    nl_record_set_level(record, NL_SYSTEM);
    nl_record_set_host(record, one->object->host.data, one->object->host.size);
    nl_record_set_prog(record, one->object->prog.data, one->object->prog.size);
    nl_record_set_event(record, "Summary", 7);
    nl_record_add_uint(record, "MINUTES", minutes);
    nl_record_add_string(record, "OF", one->object->event.data, one->object->event.size);
    nl_record_add_text(record, "FIELD", one->field);
    for (size_t i = 0; i < one->object->field_count; i++)
        summary_add_field(record, &one->object->fields[i]);
    nl_record_add_uint(record, "COUNT", w->count);
    summary_add_float(record, "MIN", w->min);
    summary_add_float(record, "MEAN", w->mean);
    summary_add_float(record, "MAX", w->max);
    summary_add_float(record, "P50", w->p50);
    summary_add_float(record, "P90", w->p90);
    summary_add_float(record, "P99", w->p99);
    return record;
}

/* Opens the window that contains now_ns. If the open window covers another time and has values, first closes this
 * window. */
static void summary_turn(summaries *s, series *one, int length, int64_t now_ns)
{
    window *w = &one->windows[length];
    unsigned minutes = lengths[length].minutes;
    int64_t span_ns = (int64_t)minutes * MINUTE_S * NL_NS_PER_SECOND;
    if (w->count > 0 && now_ns >= w->begin_ns && now_ns < w->begin_ns + span_ns)
        return;
    if (w->count > 0) {
        const closed_window *closed = window_close(w, lengths[length].kept);
        if (s->on_closed != NULL) {
            nl_record *record = summary_record(one, minutes, closed);
            s->on_closed(s->user, record, minutes);
            nl_record_free(record);
        }
    }
    w->count = 0;
    w->sum = 0;
    w->begin_ns = now_ns - now_ns % span_ns;
}

static void window_put(summaries *s, window *w, double value)
{
    w->min = w->count == 0 || value < w->min ? value : w->min;
    w->max = w->count == 0 || value > w->max ? value : w->max;
    w->sum += value;
    s->seed ^= s->seed << 13; /* xorshift */
    s->seed ^= s->seed >> 7;
    s->seed ^= s->seed << 17;
    uint64_t place = w->count < SAMPLE_SIZE ? w->count : s->seed % (w->count + 1);
    if (place < SAMPLE_SIZE)
        w->sample[place] = (float)value;
    w->count++;
}

/* ---- series ---- */

static bool series_is(const series *one, const char *key, nl_string field)
{
    return strlen(one->field) == field.size && memcmp(one->field, field.data, field.size) == 0 &&
           strcmp(one->key, key) == 0;
}

static series *series_add(summaries *s, const char *key, nl_string field, const nl_record *record)
{
    if (s->count >= SERIES_MAX || field.size >= sizeof((series *)NULL)->field) {
        s->left_out++;
        return NULL;
    }
    series *one = nl_memory_check(calloc(1, sizeof *one));
    snprintf(one->key, sizeof one->key, "%s", key);
    memcpy(one->field, field.data, field.size);
    one->object = nl_record_new();
    nl_record_set_host(one->object, record->host.data, record->host.size);
    nl_record_set_prog(one->object, record->prog.data, record->prog.size);
    nl_record_set_event(one->object, record->event.data, record->event.size);
    for (size_t i = 0; i < record->field_count; i++)
        if (condition_is_key(record->fields[i].name))
            summary_add_field(one->object, &record->fields[i]);
    series **link = &s->first;
    while (*link != NULL)
        link = &(*link)->next;
    *link = one;
    s->count++;
    return one;
}

/* Returns the series of a field. Tries the expected series first, because records usually have the same fields. */
static series *series_get(summaries *s, const char *key, nl_string field, const nl_record *record)
{
    for (series *one = s->expected; one != NULL; one = one->next)
        if (series_is(one, key, field))
            return one;
    for (series *one = s->first; one != s->expected; one = one->next)
        if (series_is(one, key, field))
            return one;
    return series_add(s, key, field, record);
}

void summaries_put(summaries *s, const nl_record *record, int64_t now_ns)
{
    char key[CONDITION_KEY_SIZE];
    condition_key(record, key);
    for (size_t i = 0; i < record->field_count; i++) {
        const nl_field *f = &record->fields[i];
        double value;
        if (!nl_field_double(f, &value) || !isfinite(value) || condition_is_key(f->name))
            continue;
        series *one = series_get(s, key, f->name, record);
        if (one == NULL)
            continue;
        s->expected = one->next;
        for (int length = 0; length < LENGTH_COUNT; length++) {
            summary_turn(s, one, length, now_ns);
            window_put(s, &one->windows[length], value);
        }
    }
}

void summaries_tick(summaries *s, int64_t now_ns)
{
    for (series *one = s->first; one != NULL; one = one->next)
        for (int length = 0; length < LENGTH_COUNT; length++)
            if (one->windows[length].count > 0)
                summary_turn(s, one, length, now_ns);
}

size_t summaries_list(const summaries *s, unsigned minutes, int64_t since_ns,
                      void (*function)(void *user, const nl_record *record), void *user)
{
    size_t found = 0, length = 0;
    while (length < LENGTH_COUNT && lengths[length].minutes != minutes)
        length++;
    for (const series *one = s->first; one != NULL && length < LENGTH_COUNT; one = one->next) {
        const window *w = &one->windows[length];
        for (size_t i = 0; i < w->closed_count; i++) {
            const closed_window *closed = &w->closed[(w->closed_first + i) % w->closed_count];
            if ((int64_t)closed->minute * MINUTE_S * NL_NS_PER_SECOND < since_ns)
                continue;
            nl_record *record = summary_record(one, minutes, closed);
            function(user, record);
            nl_record_free(record);
            found++;
        }
    }
    return found;
}
