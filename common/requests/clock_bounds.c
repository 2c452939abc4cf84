#include "config.h"

#include "base/text.h"
#include "requests/clock_bounds.h"

#include "base/clock_quality.h"
#include "base/hash_bytes.h"

#include <glib.h>
#include <math.h>
#include <string.h>

typedef struct clock_state {
    int64_t measured_ns, reported_ns; /* the largest measured error and the largest reported error; -1: unknown */
    uint64_t machine;                 /* hash of the machine's ID; 0: unknown */
} clock_state;

struct clock_bounds {
    GArray *clocks; /* clock_state, by host */
};

clock_bounds *clock_bounds_new(void)
{
    clock_bounds *b = g_new0(clock_bounds, 1);
    b->clocks = g_array_new(FALSE, FALSE, sizeof(clock_state));
    return b;
}

void clock_bounds_free(clock_bounds *b)
{
    if (b == NULL)
        return;
    g_array_free(b->clocks, TRUE);
    g_free(b);
}

static clock_state *clock_of(clock_bounds *b, uint32_t host)
{
    const clock_state unknown = {-1, -1, 0};
    if (host > CLOCK_BOUNDS_HOSTS_MAX)
        return NULL;
    while (b->clocks->len <= host)
        g_array_append_val(b->clocks, unknown);
    return &g_array_index(b->clocks, clock_state, host);
}

void clock_bounds_set(clock_bounds *b, uint32_t host, int64_t error_ns)
{
    clock_state *clock = clock_of(b, host);
    if (clock != NULL)
        clock->measured_ns = error_ns;
}

/*
 * Sets *ns to the absolute value of a field that contains microseconds. Returns false if the field is missing or
 * invalid.
 */
static bool find_ns(const nl_record *record, const char *name, int64_t *ns)
{
    nl_field field;
    double us;
    if (!nl_record_find(record, name, &field) || !nl_field_double(&field, &us) || !(fabs(us) < 1e15))
        return false;
    *ns = (int64_t)(fabs(us) * 1e3);
    return true;
}

void clock_bounds_learn(clock_bounds *b, const nl_record *record, uint32_t host)
{
    bool is_measured = nl_string_is(record->event, NL_CLOCK_OFFSET),
         is_kernel = nl_string_is(record->event, NL_CLOCK_KERNEL);
    if (!is_measured && !is_kernel && !nl_string_is(record->event, NL_CLOCK_TRACKING))
        return;
    clock_state *clock = clock_of(b, host);
    nl_field field;
    int64_t error_ns, offset_ns = 0;
    if (clock == NULL)
        return;
    if (is_kernel && nl_record_find(record, NL_CLOCK_MACHINE, &field) && field.type == NL_TYPE_STRING &&
        field.string.size > 0)
        clock->machine = hash_bytes(0, field.string.data, field.string.size) | 1;
    if (!find_ns(record, "CLOCK.ERROR", &error_ns))
        return;
    /*
     * If a correction has already changed the record's time, the logged offset no longer applies, and only the error
     * remains.
     */
    if (is_measured && !nl_record_find(record, "DATE.ORIGINAL", &field) && !find_ns(record, "CLOCK.OFFSET", &offset_ns))
        return;
    int64_t *known_ns = is_measured ? &clock->measured_ns : &clock->reported_ns;
    *known_ns = MAX(*known_ns, error_ns + offset_ns);
}

static const clock_state *known_clock(const clock_bounds *b, uint32_t host)
{
    return b != NULL && host < b->clocks->len ? &g_array_index(b->clocks, clock_state, host) : NULL;
}

/*
 * Returns the largest measured error of a clock, or otherwise the largest reported error, in nanoseconds. Returns -1 if
 * both are unknown.
 */
static int64_t error_of(const clock_state *clock)
{
    if (clock == NULL)
        return -1;
    return clock->measured_ns >= 0 ? clock->measured_ns : clock->reported_ns;
}

int64_t clock_bounds_between(const clock_bounds *b, uint32_t host, uint32_t other)
{
    if (host > CLOCK_BOUNDS_HOSTS_MAX || other > CLOCK_BOUNDS_HOSTS_MAX)
        return CLOCK_BOUND_UNKNOWN;
    if (host == other)
        return 0;
    const clock_state *x = known_clock(b, host), *y = known_clock(b, other);
    if (x != NULL && y != NULL && x->machine != 0 && x->machine == y->machine)
        return 0;
    int64_t x_ns = error_of(x), y_ns = error_of(y);
    return x_ns < 0 || y_ns < 0 ? CLOCK_BOUND_UNKNOWN : x_ns + y_ns;
}
