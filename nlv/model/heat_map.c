#include "config.h"

#include "model/heat_map.h"

#include <glib.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#define WIDTH_MAX_NS (INT64_MAX / 4 / HEAT_COLUMNS)

void heat_map_init(heat_map *h)
{
    static atomic_uint count;
    *h = (heat_map){.number = ++count, .columns = g_malloc0(HEAT_COLUMNS * sizeof *h->columns)};
}

void heat_map_clear(heat_map *h)
{
    g_free(h->columns);
}

unsigned heat_row(int64_t duration_ns)
{
    if (duration_ns < 4)
        return duration_ns < 0 ? 0 : (unsigned)duration_ns;
    const unsigned power = 63 - (unsigned)__builtin_clzll((uint64_t)duration_ns);
    return 4 * (power - 1) + (unsigned)(duration_ns >> (power - 2) & 3);
}

double heat_row_ns(unsigned row)
{
    return row < 4 ? row : ldexp(4 + row % 4, (int)row / 4 - 1);
}

double heat_map_column(const heat_map *h, int64_t time_ns)
{
    return ((double)time_ns - (double)h->from_ns) / (double)h->width_ns;
}

static void add_cells(heat_cell *to, const heat_cell *from)
{
    for (unsigned row = 0; row < HEAT_ROWS; row++) {
        to[row].count += from[row].count;
        to[row].failed += from[row].failed;
    }
}

/* Doubles the width of the columns. If `earlier` is true, the new columns come before the existing columns. */
static void widen(heat_map *h, bool earlier)
{
    for (unsigned i = 0; i < HEAT_COLUMNS; i++) {
        /* this order moves each column before it receives the cells of other columns */
        const unsigned column = earlier ? HEAT_COLUMNS - 1 - i : i, to = (earlier ? HEAT_COLUMNS / 2 : 0) + column / 2;
        if (to == column || !h->is_used[column])
            continue;
        add_cells(h->columns[to], h->columns[column]);
        memset(h->columns[column], 0, sizeof h->columns[column]);
        h->is_used[to] = true;
        h->is_used[column] = false;
    }
    if (earlier)
        h->from_ns -= h->width_ns * HEAT_COLUMNS;
    h->width_ns *= 2;
}

void heat_map_add(heat_map *h, int64_t start_ns, int64_t duration_ns, bool is_failed)
{
    if (h->width_ns == 0) {
        h->width_ns = 1000;
        h->from_ns = start_ns - h->width_ns * HEAT_COLUMNS / 2;
    }
    double column;
    while (((column = floor(heat_map_column(h, start_ns))) < 0 || column >= HEAT_COLUMNS) && h->width_ns < WIDTH_MAX_NS)
        widen(h, column < 0);
    const unsigned row = heat_row(duration_ns);
    const unsigned at = (unsigned)CLAMP(column, 0, HEAT_COLUMNS - 1);
    heat_cell *cell = &h->columns[at][row];
    h->is_used[at] = true;
    cell->count++;
    cell->failed += is_failed;
    h->totals[row]++;
    h->failures[row] += is_failed;
    h->count++;
    h->failed += is_failed;
    h->max_ns = MAX(h->max_ns, duration_ns);
}

double heat_quantile(const uint64_t counts[HEAT_ROWS], double share)
{
    uint64_t all = 0;
    for (unsigned row = 0; row < HEAT_ROWS; row++)
        all += counts[row];
    double left = share * (double)all;
    for (unsigned row = 0; row < HEAT_ROWS && all > 0; row++) {
        if (counts[row] > 0 && left <= (double)counts[row]) {
            const double low = heat_row_ns(row), high = heat_row_ns(row + 1);
            return low + (high - low) * left / (double)counts[row];
        }
        left -= (double)counts[row];
    }
    return 0;
}

double heat_map_slow_ns(const heat_map *h)
{
    const double first = fmax(heat_quantile(h->totals, 0.25), 1), third = heat_quantile(h->totals, 0.75);
    return fmax(heat_quantile(h->totals, 0.99), third * fmax(pow(third / first, 3), 2));
}
