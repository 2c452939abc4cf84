/* Prints comparisons as text and as JSON. */
#include "config.h"

#include "compare/comparison.h"
#include "base/text.h"

#include "diag/findings.h"
#include "program/json_document.h"
#include "requests/printable.h"

#include <math.h>

enum { CHANGES_SHOWN = 10 };

static const char *const verdicts[] = {"no change found",     "slower",     "faster", "more failures",
                                       "only places changed", "cannot tell"};

/* Returns the lower bound of the relative change of a quantity that cannot be negative. */
static double lowest_change(const contrast *c, double half)
{
    return fmax((c->after - c->before - half) / c->before, -1);
}

/* Confidence of the intervals, as in nldiag(1). It is less than 1 - COMPARISON_RATE, because a report has intervals of
 * three families of tests. */
#define CONFIDENCE "99 % confidence"

/* Returns a change as text, such as "+12.3 % (99 % confidence: +10.1 to +14.5 %)". The caller frees it with g_free. */
static char *text_change(const contrast *c, double level)
{
    double difference = c->after - c->before, half = contrast_half_width(c, level), base = c->before / 100;
    if (c->before <= 0)
        return g_strdup("new");
    if (c->after <= 0)
        return g_strdup("gone");
    return g_strdup_printf("%+.1f %% (%s: %+.1f to %+.1f %%)", difference / base, CONFIDENCE,
                           100 * lowest_change(c, half), (difference + half) / base);
}

/* Returns the requests' time as text, such as "a request takes 12.0 ms (was 10.0 ms): +20.0 % (99 % confidence: +19.0
 * to +21.0 %)". The caller frees it with g_free. */
static char *text_total(const comparison *c)
{
    char *old = text_ns(c->total.before), *new = text_ns(c->total.after),
         *change = text_change(&c->total, COMPARISON_RATE);
    char *text = g_strdup_printf("%sa request takes %s (was %s): %s", c->mix != NULL ? "with an unchanged mix, " : "",
                                 new, old, change);
    g_free(old);
    g_free(new);
    g_free(change);
    return text;
}

/* Returns the time of all changes as text, such as "the changed places add 2.00 ms to a request (99 % confidence:
 * 1.00 ms to 3.00 ms)". The caller frees it with g_free. */
static char *text_changes(const comparison *c)
{
    bool less = c->changes_ns < 0;
    double added = fabs(c->changes_ns);
    char *mean = text_ns(added), *low = text_ns(added - c->changes_half_ns),
         *high = text_ns(added + c->changes_half_ns);
    char *text = g_strdup_printf("the changed places %s %s %s a request (%s: %s to %s)", less ? "save" : "add", mean,
                                 less ? "of" : "to", CONFIDENCE, low, high);
    g_free(mean);
    g_free(low);
    g_free(high);
    return text;
}

/* Returns the first line of the report. The caller frees it with g_free. */
static char *text_answer(const comparison *c)
{
    char *because = c->reason != NULL ? g_strdup(c->reason) : c->of_changes ? text_changes(c) : text_total(c);
    char *answer = g_strdup_printf("%s: %s", verdicts[c->verdict], because);
    g_free(because);
    return answer;
}

static char *text_logs(const comparison *c, int side)
{
    unsigned logs = c->profile->logs[side];
    return g_strdup_printf("%.0f request%s in %u log%s", c->requests[side], nl_plural((uint64_t)c->requests[side]),
                           logs, nl_plural(logs));
}

static void print_answer(const comparison *c)
{
    char *answer = text_answer(c), *total = c->has_data ? text_total(c) : NULL, *before = text_logs(c, SIDE_BEFORE),
         *after = text_logs(c, SIDE_AFTER);
    printable_print("%s\n", answer);
    if (total != NULL && (c->reason != NULL || c->of_changes))
        printable_print("%s\n", total);
    printable_print("%s before, %s after", before, after);
    if (c->has_data)
        printable_print("; a change of %.1f %% would be found with a probability of 95 %%",
                        100 * comparison_detectable(c));
    printable_print("\n");
    if (c->strata != NULL)
        printable_print("compared only requests with the same %s\n", c->strata->name);
    if (c->has_data && c->profile->logs[0] == 1 && c->profile->logs[1] == 1)
        printable_print("only one log before and one after the change: any difference between two runs looks like a "
                        "change; give several logs from before and several from after\n");
    if (c->profile->dropped[0] + c->profile->dropped[1] > 0)
        printable_print("incomplete: %" G_GUINT64_FORMAT " request%s left out; use a larger --memory\n",
                        c->profile->dropped[0] + c->profile->dropped[1],
                        nl_plural(c->profile->dropped[0] + c->profile->dropped[1]));
    if (c->profile->left_out)
        printable_print("incomplete: some places or fields were left out, because there are too many\n");
    g_free(answer);
    g_free(total);
    g_free(before);
    g_free(after);
}

static void print_mix(const comparison *c)
{
    if (c->mix == NULL)
        return;
    char *name = profile_bin_name(c->mix, c->mix_bin), *by = text_ns(c->mix_effect.after - c->mix_effect.before);
    printable_print("\nThe mix of requests changed: %s: %.0f %% of the requests (was %.0f %%)\n"
                    "   this change of the mix alone changes the mean time of a request by %s (%+.1f %%)\n",
                    name, 100 * c->mix_shares[1], 100 * c->mix_shares[0], by,
                    100 * (c->mix_effect.after - c->mix_effect.before) / c->mix_effect.before);
    g_free(name);
    g_free(by);
}

static void print_place(const comparison *c, guint number, const place_change *x)
{
    double added = x->own_ns[1] - x->own_ns[0];
    char *by = text_ns(added), *old = text_ns(x->own.before), *new = text_ns(x->own.after),
         *own = text_change(&x->own, c->level), *calls = text_change(&x->calls, c->level);
    printable_print("%u. %s: %s%s a request\n", number, profile_row_name(c->profile, x->row), added > 0 ? "+" : "", by);
    if (x->own_changed)
        printable_print("   time of a visit: %s (was %s): %s\n", new, old, own);
    if (x->calls_changed)
        printable_print("      visits per request: %.4g (was %.4g): %s\n", x->calls.after, x->calls.before, calls);
    if (x->own_changed != x->calls_changed && x->calls.before > 0 && x->calls.after > 0)
        printable_print("   no change found in the %s\n", x->own_changed ? "number of visits" : "time of a visit");
    if (x->goes_with != NULL)
        printable_print("   related to %s\n", x->goes_with);
    g_free(by);
    g_free(old);
    g_free(new);
    g_free(own);
    g_free(calls);
}

void comparison_print(const comparison *c)
{
    print_answer(c);
    print_mix(c);
    if (c->changes->len > 0 || c->failed_changed)
        printable_print("\nWhat changed, the largest change first:\n");
    if (c->failed_changed)
        printable_print("   failed requests: %.2f %% (was %.2f %%)\n", 100 * c->failed.after, 100 * c->failed.before);
    for (guint i = 0; i < c->changes->len && i < CHANGES_SHOWN; i++)
        print_place(c, i + 1, &g_array_index(c->changes, place_change, i));
    if (c->changes->len > CHANGES_SHOWN)
        printable_print("%u smaller change%s; see --json\n", c->changes->len - CHANGES_SHOWN,
                        nl_plural(c->changes->len - CHANGES_SHOWN));
    if (c->sensors->len > 0)
        printable_print("\nOutside of the requests:\n");
    for (guint i = 0; i < c->sensors->len; i++) {
        const sensor_change *s = &g_array_index(c->sensors, sensor_change, i);
        printable_print("   %s: %.4g (was %.4g)\n", s->sensor->name, s->value.after, s->value.before);
    }
}

/* Returns the means, the relative change and its confidence interval as JSON. `is_signed` is true if the quantity may
 * be negative. */
static json_object *contrast_object(const contrast *c, double level, bool is_signed)
{
    json_object *object = json_object_new_object();
    double half = contrast_half_width(c, level);
    json_add_double(object, "before", c->before);
    json_add_double(object, "after", c->after);
    json_add_double(object, "change", c->before != 0 ? (c->after - c->before) / c->before : NAN);
    if (c->tested) {
        json_add_double(object, "low",
                        c->before == 0 ? NAN
                        : is_signed    ? (c->after - c->before - half) / c->before
                                       : lowest_change(c, half));
        json_add_double(object, "high", c->before != 0 ? (c->after - c->before + half) / c->before : NAN);
        json_add_double(object, "p", c->p);
    }
    return object;
}

static json_object *change_object(const comparison *c, const place_change *x)
{
    json_object *object = json_object_new_object(), *own = contrast_object(&x->own, c->level, false),
                *calls = contrast_object(&x->calls, c->level, false);
    json_add_text(object, "place", profile_row_name(c->profile, x->row));
    json_add_bool(own, "changed", x->own_changed);
    json_add_bool(calls, "changed", x->calls_changed);
    json_object_object_add(object, "visit_ns", own);
    json_object_object_add(object, "visits", calls);
    json_add_double(object, "own_before_ns", x->own_ns[0]);
    json_add_double(object, "own_after_ns", x->own_ns[1]);
    json_add_double(object, "path_before_ns", x->path_ns[0]);
    json_add_double(object, "path_after_ns", x->path_ns[1]);
    json_add_text(object, "goes_with", x->goes_with);
    return object;
}

static json_object *mix_object(const comparison *c)
{
    if (c->mix == NULL)
        return NULL;
    json_object *mix = contrast_object(&c->mix_effect, COMPARISON_RATE, false);
    char *value = profile_bin_name(c->mix, c->mix_bin);
    json_add_text(mix, "field", c->mix->name);
    json_add_text(mix, "value", value);
    json_add_double(mix, "share_before", c->mix_shares[0]);
    json_add_double(mix, "share_after", c->mix_shares[1]);
    g_free(value);
    return mix;
}

static json_object *changes_ns_object(const comparison *c)
{
    if (c->changes->len == 0)
        return NULL;
    json_object *object = json_object_new_object();
    json_add_double(object, "change", c->changes_ns);
    json_add_double(object, "low", c->changes_ns - c->changes_half_ns);
    json_add_double(object, "high", c->changes_ns + c->changes_half_ns);
    return object;
}

static void add_results(json_object *document, const comparison *c)
{
    json_object *changes = json_object_new_array(), *sensors = json_object_new_array(),
                *request = contrast_object(&c->total, COMPARISON_RATE, false);
    json_add_double(request, "detectable", comparison_detectable(c));
    json_add_bool(request, "changed", c->total_changed);
    json_object_object_add(document, "request_ns", request);
    json_object_object_add(document, "request_ns_with_mix", contrast_object(&c->unadjusted, COMPARISON_RATE, false));
    json_add_text(document, "compared_by", c->strata != NULL ? c->strata->name : NULL);
    json_object_object_add(document, "mix", mix_object(c));
    json_object_object_add(document, "failed", contrast_object(&c->failed, c->level, false));
    for (guint i = 0; i < c->changes->len; i++)
        json_object_array_add(changes, change_object(c, &g_array_index(c->changes, place_change, i)));
    json_object_object_add(document, "changes", changes);
    json_object_object_add(document, "changes_ns", changes_ns_object(c));
    for (guint i = 0; i < c->sensors->len; i++) {
        const sensor_change *s = &g_array_index(c->sensors, sensor_change, i);
        json_object *object = contrast_object(&s->value, COMPARISON_RATE, true);
        json_add_text(object, "sensor", s->sensor->name);
        json_object_array_add(sensors, object);
    }
    json_object_object_add(document, "sensors", sensors);
}

void comparison_print_json(const comparison *c)
{
    static const char *const sides[] = {"before", "after"};
    json_object *document = json_object_new_object();
    char *answer = text_answer(c);
    json_add_text(document, "verdict", verdicts[c->verdict]);
    json_add_text(document, "answer", answer);
    g_free(answer);
    for (int side = 0; side < SIDES; side++) {
        json_object *object = json_object_new_object();
        json_add_int(object, "logs", c->profile->logs[side]);
        json_add_double(object, "requests", c->requests[side]);
        json_add_int(object, "left_out", (int64_t)c->profile->dropped[side]);
        json_object_object_add(document, sides[side], object);
    }
    if (c->has_data)
        add_results(document, c);
    json_add_bool(document, "incomplete", c->profile->left_out);
    json_document_write(document, stdout);
}
