/* Events counted and summed by key: sums, rates and histograms, over all or by the interval. */
#include "config.h"

#include "synthesis/synthesis_internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct total {
    entry entry;
    event *first;          /* of all, for what is made of it */
    uint64_t count, quiet; /* quiet: intervals without any, lately */
    double sum, least, most;
    nl_distribution values;
} total;

/* What is said of a key once it has been quiet so long is nothing. */
enum { QUIET_MAX = 10, GAP_MAX = 1000 };

static total *total_of(nl_synthesis *s, rule *r, const key *k)
{
    bool added;
    total *t = (total *)map_put(&r->entries, k, sizeof *t, &added);
    if (t == NULL)
        s->stats.dropped++;
    return t;
}

static int64_t interval_end(const rule *r, int64_t time_ns)
{
    return (time_ns / r->every_ns + 1) * r->every_ns;
}

void sum_take(nl_synthesis *s, rule *r, const clause *c, event *e)
{
    key k;
    double number = 0;
    if (!event_key(e, c, &k))
        return;
    if (r->value_field != NO_FIELD && !value_number(event_value(e, r->value_field), &number))
        return;
    total *t = total_of(s, r, &k);
    if (t == NULL)
        return;
    if (t->first == NULL)
        t->first = event_hold(e);
    if (r->every_ns > 0 && r->next_ns == INT64_MIN)
        r->next_ns = interval_end(r, e->time_ns);
    t->least = t->count == 0 || number < t->least ? number : t->least;
    t->most = t->count == 0 || number > t->most ? number : t->most;
    t->count++;
    t->sum += number;
    if (r->value_field != NO_FIELD && number >= 0 && number < 9e18)
        nl_distribution_add(&t->values, (int64_t)number);
}

/* ---- saying it ---- */

typedef struct saying {
    nl_synthesis *s;
    rule *r;
    int64_t time_ns;
} saying;

static nl_record *begin_saying(const saying *now, const total *t)
{
    static const char counted[] = "synthesis";
    nl_record *record = make_record(now->s, now->r, NULL, now->time_ns, t->first);
    if (t->first == NULL)
        nl_record_set_prog(record, counted, sizeof counted - 1);
    char scratch[NL_FIELD_TEXT_SIZE];
    for (unsigned i = 0; i < t->entry.key.count; i++) {
        const char *name = now->s->names[now->r->key_names[i]];
        nl_string text = value_text(t->entry.key.values[i], scratch);
        if (strcmp(name, "PROG") == 0)
            nl_record_set_prog(record, text.data, text.size);
        else if (strcmp(name, "HOST") != 0)
            value_add(record, name, t->entry.key.values[i]);
    }
    make_fields(now->s, record, now->r, t->first, t->first);
    return record;
}

static void say_sum(const saying *now, total *t)
{
    nl_record *record = begin_saying(now, t);
    nl_record_add_uint(record, "COUNT", t->count);
    if (now->r->kind == RULE_RATE)
        nl_record_add_double(record, "RATE", (double)t->count * 1e9 / (double)now->r->every_ns);
    if (now->r->value_field != NO_FIELD && t->count > 0) {
        if (now->r->kind == RULE_RATE)
            nl_record_add_double(record, "SUM.RATE", t->sum * 1e9 / (double)now->r->every_ns);
        nl_record_add_double(record, "SUM", t->sum);
        nl_record_add_double(record, "MEAN", t->sum / (double)t->count);
        nl_record_add_double(record, "MIN", t->least);
        nl_record_add_double(record, "MAX", t->most);
        nl_record_add_int(record, "P50", nl_distribution_quantile(&t->values, 0.5));
        nl_record_add_int(record, "P90", nl_distribution_quantile(&t->values, 0.9));
        nl_record_add_int(record, "P99", nl_distribution_quantile(&t->values, 0.99));
    }
    make_put(now->s, now->r, record);
}

/* A record for each power of two that there is anything below of, and not below the one before. */
static void say_histogram(const saying *now, total *t)
{
    for (int power = 0; power < 63; power++) {
        int64_t from = power == 0 ? -1 : (INT64_C(1) << (power - 1)) - 1, to = (INT64_C(1) << power) - 1;
        uint64_t count = nl_distribution_between(&t->values, from, to);
        if (count == 0)
            continue;
        nl_record *record = begin_saying(now, t);
        nl_record_add_int(record, "BUCKET.FROM", from + 1);
        nl_record_add_int(record, "BUCKET.TO", to);
        nl_record_add_uint(record, "COUNT", count);
        make_put(now->s, now->r, record);
    }
}

static void free_total(total *t)
{
    event_release(t->first);
    nl_distribution_clear(&t->values);
    free(t);
}

static void reset(total *t)
{
    t->quiet = t->count == 0 ? t->quiet + 1 : 0;
    t->count = 0;
    t->sum = t->least = t->most = 0;
    nl_distribution_clear(&t->values);
}

/* A rate of nothing is said too, for a while; without a key for ever. True: it is forgotten. */
static bool sum_say(entry *e, void *user)
{
    const saying *now = user;
    total *t = (total *)e;
    bool is_histogram = now->r->kind == RULE_HISTOGRAM;
    if (is_histogram)
        say_histogram(now, t);
    else if (t->count > 0 || now->r->kind == RULE_RATE)
        say_sum(now, t);
    reset(t);
    if (t->quiet < QUIET_MAX || (t->entry.key.count == 0 && now->r->kind == RULE_RATE))
        return false;
    free_total(t);
    return true;
}

void sum_advance(nl_synthesis *s, rule *r, int64_t now_ns)
{
    if (r->next_ns == INT64_MIN) {
        /* A rate without a key is known before there was anything to count. */
        if (r->kind == RULE_RATE && r->clauses[0].key_count == 0 && total_of(s, r, &(key){0}) != NULL)
            r->next_ns = interval_end(r, now_ns);
        return;
    }
    if ((now_ns - r->next_ns) / r->every_ns > GAP_MAX) {
        map_visit(&r->entries, sum_say, &(saying){s, r, r->next_ns});
        r->next_ns = now_ns / r->every_ns * r->every_ns;
    }
    for (; r->next_ns <= now_ns; r->next_ns += r->every_ns)
        map_visit(&r->entries, sum_say, &(saying){s, r, r->next_ns});
}

/* The last interval is not whole: a rate of it would be wrong. */
void sum_finish(nl_synthesis *s, rule *r)
{
    if (r->kind != RULE_RATE && s->now_ns != INT64_MIN)
        map_visit(&r->entries, sum_say, &(saying){s, r, s->now_ns});
}

static bool free_entry(entry *e, void *user)
{
    (void)user;
    free_total((total *)e);
    return true;
}

void sum_free(rule *r)
{
    if (r->kind == RULE_SUM || r->kind == RULE_RATE || r->kind == RULE_HISTOGRAM)
        map_visit(&r->entries, free_entry, NULL);
}
