/* The rules for sums, rates and histograms of events by key, over an interval or over all events. */
#include "config.h"

#include "synthesis/synthesis_internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct total {
    entry entry;
    event *first;   /* the key's first event, from which derived records get fields */
    uint64_t count; /* number of events in this interval */
    unsigned quiet; /* number of consecutive intervals without events */
    double sum, minimum, maximum;
    nl_distribution values;
} total;

/*
 * The module forgets a key after QUIET_MAX intervals without events. If time advances by more than GAP_MAX intervals at
 * once, the module derives records only for the first and the last of these intervals.
 */
enum { QUIET_MAX = 10, GAP_MAX = 1000 };

void sum_free(void *e)
{
    total *t = e;
    event_release(t->first);
    nl_distribution_clear(&t->values);
    free(t);
}

static int64_t interval_end(const rule *r, int64_t time_ns)
{
    return (time_ns / r->every_ns + 1) * r->every_ns;
}

void sum_take(nl_synthesis *s, const clause *c, event *e)
{
    rule *r = c->rule;
    key k;
    double number = 0;
    if (!event_key(e, c, &k))
        return;
    if (r->value_field != NO_FIELD && !value_number(event_value(e, r->value_field), &number))
        return;
    total *t = map_find_or_add(r->entries, &k, sizeof *t);
    if (t == NULL) {
        s->stats.dropped++;
        return;
    }
    if (t->first == NULL)
        t->first = event_hold(e);
    if (r->every_ns > 0 && r->next_ns == INT64_MIN)
        r->next_ns = interval_end(r, e->time_ns);
    t->minimum = t->count == 0 || number < t->minimum ? number : t->minimum;
    t->maximum = t->count == 0 || number > t->maximum ? number : t->maximum;
    t->count++;
    t->sum += number;
    if (r->value_field != NO_FIELD && number >= 0 && number < 9e18)
        nl_distribution_add(&t->values, (int64_t)number);
}

/* ---- derived records ---- */

/* The interval whose records are derived. */
typedef struct interval {
    nl_synthesis *s;
    rule *r;
    int64_t time_ns;
} interval;

static nl_record *begin_total_record(const interval *i, const total *t)
{
    static const char program[] = "synthesis";
    nl_record *record = make_record(i->r, NULL, i->time_ns, t->first);
    char scratch[NL_FIELD_TEXT_SIZE];
    if (t->first == NULL)
        nl_record_set_prog(record, program, sizeof program - 1);
    for (unsigned k = 0; k < t->entry.key.count; k++) {
        const char *name = i->s->names[i->r->clauses[0].keys[k]];
        nl_string text = value_text(t->entry.key.values[k], scratch);
        if (strcmp(name, "PROG") == 0)
            nl_record_set_prog(record, text.data, text.size);
        else if (strcmp(name, "HOST") != 0)
            value_add(record, name, t->entry.key.values[k]);
    }
    make_fields(i->s, record, i->r, t->first, t->first);
    return record;
}

static void derive_sum(const interval *i, total *t)
{
    const rule *r = i->r;
    nl_record *record = begin_total_record(i, t);
    nl_record_add_uint(record, "COUNT", t->count);
    if (r->kind == RULE_RATE)
        nl_record_add_double(record, "RATE", (double)t->count * 1e9 / (double)r->every_ns);
    if (r->value_field != NO_FIELD && t->count > 0) {
        if (r->kind == RULE_RATE)
            nl_record_add_double(record, "SUM.RATE", t->sum * 1e9 / (double)r->every_ns);
        nl_record_add_double(record, "SUM", t->sum);
        nl_record_add_double(record, "MEAN", t->sum / (double)t->count);
        nl_record_add_double(record, "MIN", t->minimum);
        nl_record_add_double(record, "MAX", t->maximum);
        nl_record_add_int(record, "P50", nl_distribution_quantile(&t->values, 0.5));
        nl_record_add_int(record, "P90", nl_distribution_quantile(&t->values, 0.9));
        nl_record_add_int(record, "P99", nl_distribution_quantile(&t->values, 0.99));
    }
    make_put(i->s, r, record);
}

/*
 * Derives a record for each power of two, if there are values from the previous power (inclusive) to this power
 * (exclusive).
 */
static void derive_histogram(const interval *i, total *t)
{
    for (int power = 0; power < 63; power++) {
        int64_t from = power == 0 ? -1 : (INT64_C(1) << (power - 1)) - 1, to = (INT64_C(1) << power) - 1;
        uint64_t count = nl_distribution_between(&t->values, from, to);
        if (count == 0)
            continue;
        nl_record *record = begin_total_record(i, t);
        nl_record_add_int(record, "BUCKET.FROM", from + 1);
        nl_record_add_int(record, "BUCKET.TO", to);
        nl_record_add_uint(record, "COUNT", count);
        make_put(i->s, i->r, record);
    }
}

/*
 * Derives the records of a key, and resets its sums. Returns whether to forget the key. A rate without a key field
 * keeps its only key, with the value 0.
 */
static gboolean end_interval(gpointer k, gpointer e, gpointer user)
{
    const interval *i = user;
    total *t = e;
    (void)k;
    if (i->r->kind == RULE_HISTOGRAM)
        derive_histogram(i, t);
    else if (t->count > 0 || i->r->kind == RULE_RATE)
        derive_sum(i, t);
    t->quiet = t->count == 0 ? t->quiet + 1 : 0;
    t->count = 0;
    t->sum = t->minimum = t->maximum = 0;
    nl_distribution_clear(&t->values);
    return t->quiet >= QUIET_MAX && (t->entry.key.count > 0 || i->r->kind != RULE_RATE);
}

static void end_intervals(nl_synthesis *s, rule *r, int64_t time_ns)
{
    g_hash_table_foreach_remove(r->entries, end_interval, &(interval){s, r, time_ns});
}

void sum_advance(nl_synthesis *s, rule *r, int64_t now_ns)
{
    if (r->next_ns == INT64_MIN) {
        /* A rate without a key field derives records, with the value 0, even before its first event. */
        if (r->kind == RULE_RATE && r->clauses[0].key_count == 0 &&
            map_find_or_add(r->entries, &(key){0}, sizeof(total)) != NULL)
            r->next_ns = interval_end(r, now_ns);
        return;
    }
    if ((now_ns - r->next_ns) / r->every_ns > GAP_MAX) {
        end_intervals(s, r, r->next_ns);
        r->next_ns = now_ns / r->every_ns * r->every_ns;
    }
    for (; r->next_ns <= now_ns; r->next_ns += r->every_ns)
        end_intervals(s, r, r->next_ns);
}

/*
 * Derives the records of the last interval. Derives no records for a rate, because the rate of an incomplete interval
 * would be wrong.
 */
void sum_finish(nl_synthesis *s, rule *r)
{
    if (r->kind != RULE_RATE && s->now_ns != INT64_MIN)
        end_intervals(s, r, s->now_ns);
}
