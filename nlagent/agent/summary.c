#include "config.h"

#include "agent/summary.h"

#include "agent/condition.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERIES_MAX = 1000, SAMPLE = 256, MINUTE_S = 60 };

const unsigned summary_minutes[SUMMARY_LENGTHS] = {1, 10, 60};
static const size_t kept[SUMMARY_LENGTHS] = {24 * 60, 24 * 6, 24};

/* Of a day there are many. */
typedef struct closed_window {
    uint32_t minute; /* since 1970, when it began */
    uint32_t count;
    float least, mean, most, p50, p90, p99;
} closed_window;

typedef struct open_window {
    int64_t begin_ns; /* meaningless without a count */
    uint64_t count;
    double sum, least, most;
    float sample[SAMPLE];
} open_window;

typedef struct series {
    struct series *next;
    char key[CONDITION_KEY];
    char field[64];
    nl_record *names; /* event and what names the thing */
    open_window open[SUMMARY_LENGTHS];
    closed_window *closed[SUMMARY_LENGTHS]; /* rings of at most kept */
    size_t closed_count[SUMMARY_LENGTHS], closed_first[SUMMARY_LENGTHS];
} series;

struct summaries {
    series *first;
    series *at; /* where the next is expected: they mostly come in the same order */
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
        for (int i = 0; i < SUMMARY_LENGTHS; i++)
            free(one->closed[i]);
        nl_record_free(one->names);
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

static closed_window make_closed(open_window *w)
{
    size_t n = w->count < SAMPLE ? (size_t)w->count : SAMPLE;
    qsort(w->sample, n, sizeof w->sample[0], summary_compare);
    /* The value that at least so many of a hundred do not exceed. */
    size_t at50 = (50 * n + 99) / 100 - 1, at90 = (90 * n + 99) / 100 - 1, at99 = (99 * n + 99) / 100 - 1;
    return (closed_window){.minute = (uint32_t)(w->begin_ns / NL_NS_PER_SECOND / MINUTE_S),
                           .count = (uint32_t)w->count,
                           .least = (float)w->least,
                           .mean = (float)(w->sum / (double)w->count),
                           .most = (float)w->most,
                           .p50 = w->sample[at50],
                           .p90 = w->sample[at90],
                           .p99 = w->sample[at99]};
}

static void summary_keep(series *one, int length, const closed_window *w)
{
    size_t most = kept[length], *count = &one->closed_count[length], *first = &one->closed_first[length];
    if (*count < most && (*count & (*count - 1)) == 0) {
        size_t capacity = *count == 0 ? 1 : 2 * *count;
        one->closed[length] =
            nl_memory_check(realloc(one->closed[length], (capacity < most ? capacity : most) * sizeof *w));
    }
    if (*count < most) {
        one->closed[length][(*count)++] = *w;
    } else {
        one->closed[length][*first] = *w;
        *first = (*first + 1) % most;
    }
}

static void add_number(nl_record *record, const char *name, float value)
{
    char text[32];
    snprintf(text, sizeof text, "%.7g", (double)value); /* what a float has */
    nl_record_add_double(record, name, strtod(text, NULL));
}

static void describe(const series *one, unsigned minutes, const closed_window *w, nl_record *record)
{
    nl_record_clear(record);
    nl_record_set_time(record, (int64_t)w->minute * MINUTE_S * NL_NS_PER_SECOND);
    nl_record_set_level(record, NL_SYSTEM);
    nl_record_set_host(record, one->names->host.data, one->names->host.size);
    nl_record_set_prog(record, one->names->prog.data, one->names->prog.size);
    nl_record_set_event(record, "Summary", 7);
    nl_record_add_uint(record, "MINUTES", minutes);
    nl_record_add_string(record, "OF", one->names->event.data, one->names->event.size);
    nl_record_add_string(record, "FIELD", one->field, strlen(one->field));
    for (size_t i = 0; i < one->names->field_count; i++) {
        char name[64], scratch[NL_FIELD_TEXT_SIZE];
        const nl_field *f = &one->names->fields[i];
        snprintf(name, sizeof name, "%.*s", (int)f->name.size, f->name.data);
        nl_string text = nl_field_text(f, scratch);
        nl_record_add_string(record, name, text.data, text.size);
    }
    nl_record_add_uint(record, "COUNT", w->count);
    add_number(record, "MIN", w->least);
    add_number(record, "MEAN", w->mean);
    add_number(record, "MAX", w->most);
    add_number(record, "P50", w->p50);
    add_number(record, "P90", w->p90);
    add_number(record, "P99", w->p99);
}

/* Closes a window when it is over. */
static void turn(summaries *s, series *one, int length, int64_t now_ns)
{
    open_window *w = &one->open[length];
    int64_t span_ns = (int64_t)summary_minutes[length] * MINUTE_S * NL_NS_PER_SECOND;
    if (w->count > 0 && now_ns >= w->begin_ns && now_ns < w->begin_ns + span_ns)
        return;
    if (w->count > 0) {
        closed_window closed = make_closed(w);
        summary_keep(one, length, &closed);
        if (s->on_closed != NULL) {
            nl_record *record = nl_record_new();
            describe(one, summary_minutes[length], &closed, record);
            s->on_closed(s->user, record, summary_minutes[length]);
            nl_record_free(record);
        }
    }
    w->count = 0;
    w->sum = 0;
    w->begin_ns = now_ns - now_ns % span_ns;
}

static void put_number(summaries *s, open_window *w, double value)
{
    w->least = w->count == 0 || value < w->least ? value : w->least;
    w->most = w->count == 0 || value > w->most ? value : w->most;
    w->sum += value;
    s->seed ^= s->seed << 13; /* xorshift */
    s->seed ^= s->seed >> 7;
    s->seed ^= s->seed << 17;
    uint64_t place = w->count < SAMPLE ? w->count : s->seed % (w->count + 1);
    if (place < SAMPLE)
        w->sample[place] = (float)value;
    w->count++;
}

/* ---- series ---- */

static bool summary_is(const series *one, const char *key, nl_string field)
{
    return strlen(one->field) == field.size && memcmp(one->field, field.data, field.size) == 0 &&
           strcmp(one->key, key) == 0;
}

static series *add_series(summaries *s, const char *key, nl_string field, const nl_record *record)
{
    char name[64];
    if (s->count >= SERIES_MAX || field.size >= sizeof name) {
        s->left_out++;
        return NULL;
    }
    series *one = nl_memory_check(calloc(1, sizeof *one));
    snprintf(one->key, sizeof one->key, "%s", key);
    memcpy(one->field, field.data, field.size);
    one->names = nl_record_new();
    nl_record_set_host(one->names, record->host.data, record->host.size);
    nl_record_set_prog(one->names, record->prog.data, record->prog.size);
    nl_record_set_event(one->names, record->event.data, record->event.size);
    for (size_t i = 0; i < record->field_count; i++) {
        const nl_field *f = &record->fields[i];
        char mark[CONDITION_KEY], scratch[NL_FIELD_TEXT_SIZE];
        snprintf(mark, sizeof mark, " %.*s=", (int)f->name.size, f->name.data);
        if (strstr(key, mark) == NULL)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)f->name.size, f->name.data);
        nl_string text = nl_field_text(f, scratch);
        nl_record_add_string(one->names, name, text.data, text.size);
    }
    series **link = &s->first;
    while (*link != NULL)
        link = &(*link)->next;
    *link = one;
    s->count++;
    return one;
}

static series *find_series(summaries *s, const char *key, nl_string field, const nl_record *record)
{
    series *start = s->at != NULL ? s->at : s->first;
    for (series *one = start; one != NULL; one = one->next)
        if (summary_is(one, key, field))
            return one;
    for (series *one = s->first; one != start; one = one->next)
        if (summary_is(one, key, field))
            return one;
    return add_series(s, key, field, record);
}

void summaries_put(summaries *s, const nl_record *record, int64_t now_ns)
{
    char key[CONDITION_KEY];
    condition_key(record, key);
    for (size_t i = 0; i < record->field_count; i++) {
        const nl_field *f = &record->fields[i];
        char mark[CONDITION_KEY];
        double value;
        snprintf(mark, sizeof mark, " %.*s=", (int)f->name.size, f->name.data);
        if (!nl_field_double(f, &value) || !isfinite(value) || strstr(key, mark) != NULL)
            continue;
        series *one = find_series(s, key, f->name, record);
        if (one == NULL)
            continue;
        s->at = one->next;
        for (int length = 0; length < SUMMARY_LENGTHS; length++) {
            turn(s, one, length, now_ns);
            put_number(s, &one->open[length], value);
        }
    }
}

void summaries_tick(summaries *s, int64_t now_ns)
{
    for (series *one = s->first; one != NULL; one = one->next)
        for (int length = 0; length < SUMMARY_LENGTHS; length++)
            if (one->open[length].count > 0)
                turn(s, one, length, now_ns);
}

size_t summaries_list(const summaries *s, unsigned minutes, int64_t since_ns,
                      void (*function)(void *user, const nl_record *record), void *user)
{
    size_t found = 0;
    nl_record *record = nl_record_new();
    for (int length = 0; length < SUMMARY_LENGTHS; length++)
        for (const series *one = s->first; one != NULL && summary_minutes[length] == minutes; one = one->next)
            for (size_t i = 0; i < one->closed_count[length]; i++) {
                size_t place = (one->closed_first[length] + i) % one->closed_count[length];
                const closed_window *w = &one->closed[length][place];
                if ((int64_t)w->minute * MINUTE_S * NL_NS_PER_SECOND < since_ns)
                    continue;
                describe(one, minutes, w, record);
                function(user, record);
                found++;
            }
    nl_record_free(record);
    return found;
}
