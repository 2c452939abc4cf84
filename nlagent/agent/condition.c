#include "config.h"

#include "agent/condition.h"

#include "base/error.h"
#include "base/hash_bytes.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "filter/filter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOT_COUNT = 1024,
    VALUE_SIZE = 64,
    BUDGET_RATE = 200000000, /* steps per second for all expressions, which is about 20 % of one processor */
    BUDGET_MAX = 20000000,   /* maximum number of steps without a pause, which is about 20 ms */
    CHEAP_STEPS = 1000,      /* nlagentd performs an evaluation of at most this number of steps even without a budget */
};

/* The last value of an object. If the names of two objects hash to the same slot, each object replaces the other
 * object, and nlagentd sends their values more often than necessary. */
typedef struct slot {
    char key[CONDITION_KEY_SIZE];
    char text[VALUE_SIZE]; /* the last value sent, as text */
    double value;
    bool high;
} slot;

struct condition {
    double interval_s;
    nl_filter *filter;
    char *field;
    bool on_change;
    double above, below, percent;
    uint64_t measurement; /* number of the latest measurement */
    bool is_selected;     /* the condition's interval selects the latest measurement */
    int64_t next_ns;      /* time at which the interval selects the next measurement */
    slot *slots;
};

static condition *reject(condition *c, const char *problem)
{
    nl_error_set(NL_ERROR_INVALID, "%s", problem);
    condition_free(c);
    return NULL;
}

condition *condition_new(const condition_options *o)
{
    condition *c = nl_memory_check(calloc(1, sizeof *c));
    c->interval_s = o->interval_s;
    c->on_change = o->on_change;
    c->above = o->above;
    c->below = isnan(o->below) ? o->above : o->below;
    c->percent = o->percent;
    bool examines_field = o->on_change || !isnan(o->above) || !isnan(o->percent);
    if (!(o->interval_s >= 0 && o->interval_s <= 86400))
        return reject(c, "the interval is out of range; use 0 to 86400 seconds");
    if (examines_field != (o->field != NULL))
        return reject(c, "a condition requires a field, and change, above or percent");
    if (!isnan(o->below) && !(o->below <= o->above))
        return reject(c, "below is greater than above");
    if (!isnan(o->percent) && !(o->percent >= 0))
        return reject(c, "the percentage is negative");
    if (o->where != NULL && (c->filter = nl_filter_parse(o->where)) == NULL)
        return reject(c, nl_error_message());
    if (examines_field) {
        c->field = nl_memory_check(strdup(o->field));
        c->slots = nl_memory_check(calloc(SLOT_COUNT, sizeof *c->slots));
    }
    return c;
}

void condition_free(condition *c)
{
    if (c == NULL)
        return;
    nl_filter_free(c->filter);
    free(c->field);
    free(c->slots);
    free(c);
}

bool condition_is_key(nl_string name)
{
    static const char *const ends[] = {".NAME", ".ID", ".HOST", ".URL", ".LOCAL", ".PEER", ".MOUNT", ".RESOURCE"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t size = strlen(ends[i]);
        if (name.size > size && memcmp(name.data + name.size - size, ends[i], size) == 0)
            return true;
    }
    return false;
}

void condition_key(const nl_record *record, char key[CONDITION_KEY_SIZE])
{
    char scratch[NL_FIELD_TEXT_SIZE];
    int used = snprintf(key, CONDITION_KEY_SIZE, "%.*s", (int)record->event.size, record->event.data);
    for (size_t i = 0; i < record->field_count && used < CONDITION_KEY_SIZE; i++) {
        const nl_field *f = &record->fields[i];
        if (!condition_is_key(f->name))
            continue;
        nl_string text = nl_field_text(f, scratch);
        used += snprintf(key + used, (size_t)(CONDITION_KEY_SIZE - used), " %.*s=%.*s", (int)f->name.size, f->name.data,
                         (int)text.size, text.data);
    }
}

static slot *find_slot(condition *c, const char *key, bool *is_new)
{
    slot *s = &c->slots[hash_bytes(0, key, strlen(key)) % SLOT_COUNT];
    *is_new = strcmp(s->key, key) != 0;
    if (*is_new) {
        *s = (slot){0};
        snprintf(s->key, sizeof s->key, "%s", key);
    }
    return s;
}

static bool differs(const condition *c, const slot *s, double value)
{
    return fabs(value - s->value) > fabs(s->value) * c->percent / 100;
}

/*
 * Returns whether a value crosses a threshold. The state of an object becomes high when its value rises above c->above,
 * and low when its value falls below c->below. The first value of an object crosses a threshold only if it is above
 * c->above.
 */
static bool crosses(const condition *c, slot *s, bool is_new, double value)
{
    bool high = value > c->above || (s->high && value >= c->below);
    bool crossed = high != s->high && (!is_new || high);
    s->high = high;
    return crossed;
}

static bool judge_field(condition *c, const nl_record *record)
{
    char key[CONDITION_KEY_SIZE], scratch[NL_FIELD_TEXT_SIZE], text[VALUE_SIZE];
    nl_field field;
    double value = NAN;
    bool is_new;
    if (!nl_record_find(record, c->field, &field))
        return false;
    bool is_number = nl_field_double(&field, &value);
    nl_string shown = nl_field_text(&field, scratch);
    snprintf(text, sizeof text, "%.*s", (int)shown.size, shown.data);
    condition_key(record, key);
    slot *s = find_slot(c, key, &is_new);
    bool wanted = true;
    if (c->on_change)
        wanted = wanted && (is_new || strcmp(text, s->text) != 0);
    if (!isnan(c->above))
        wanted = is_number && crosses(c, s, is_new, value) && wanted;
    if (!isnan(c->percent))
        wanted = wanted && is_number && (is_new || differs(c, s, value));
    if (wanted || is_new) {
        s->value = value;
        snprintf(s->text, sizeof s->text, "%s", text);
    }
    return wanted;
}

allowance condition_new_budget(void)
{
    return allowance_new(BUDGET_MAX, nl_monotonic_ns());
}

nl_status condition_match(allowance *budget, const nl_filter *filter, const nl_record *record, bool *matches)
{
    allowance_spend(budget, BUDGET_RATE, nl_monotonic_ns(), 0);
    budget->left = budget->left < BUDGET_MAX ? budget->left : BUDGET_MAX;
    uint64_t steps = budget->left > CHEAP_STEPS ? (uint64_t)budget->left : CHEAP_STEPS;
    steps = steps < NL_FILTER_STEPS_MAX ? steps : NL_FILTER_STEPS_MAX;
    uint64_t before = steps;
    nl_status status = nl_filter_match(filter, record, &steps, matches);
    budget->left -= (double)(before - steps);
    return status;
}

bool condition_selects(condition *c, uint64_t measurement, int64_t start_ns)
{
    if (measurement == c->measurement)
        return c->is_selected;
    /* select a measurement that is up to a tenth of the interval early, because measurements are not perfectly
     * regular */
    int64_t interval_ns = (int64_t)(c->interval_s * 1e9);
    c->measurement = measurement;
    c->is_selected = start_ns >= c->next_ns - interval_ns / 10;
    if (c->is_selected)
        c->next_ns = c->next_ns + interval_ns > start_ns ? c->next_ns + interval_ns : start_ns + interval_ns;
    return c->is_selected;
}

bool condition_needs_fields(const condition *c)
{
    return c->filter != NULL || c->field != NULL;
}

nl_status condition_judge(condition *c, allowance *budget, const nl_record *record, bool *wanted)
{
    *wanted = true;
    if (c->filter != NULL && condition_match(budget, c->filter, record, wanted) != NL_OK)
        return NL_FAILED;
    *wanted = *wanted && (c->field == NULL || judge_field(c, record));
    return NL_OK;
}
