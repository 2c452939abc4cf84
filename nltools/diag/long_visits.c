#include "config.h"

#include "diag/long_visits.h"

#include <math.h>

#include "diag/keyed_sort.h"

/* Minimum ratio of the time of a long visit to the usual time. */
#define LONG_RATIO_MIN 1.5

/* Minimum excess of a long visit, as a multiple of the times' resolution. */
enum { RESOLUTIONS = 3 };

/* Divides the groups of an edge's visits by their sites, because the paths between hosts and the clocks differ. */
static uint32_t divide_by_sites(const sample *x, uint32_t *groups, uint32_t count)
{
    const place *p = place_at(x->visits, x->place);
    const GArray *sites = p->sites;
    uint32_t *numbers = g_new0(uint32_t, x->visits->sites->len + 1);
    if (p->kind != PLACE_EDGE || sites->len == 1 || (uint64_t)sites->len * count * KIND_COUNT_MIN > x->count) {
        g_free(numbers);
        return count;
    }
    for (guint n = 0; n < sites->len; n++)
        numbers[g_array_index(sites, uint32_t, n)] = n;
    for (uint32_t i = 0; i < x->count; i++)
        if (groups[i] != UINT32_MAX)
            groups[i] = groups[i] * sites->len + numbers[visit_at(x->visits, x->index[i])->site];
    g_free(numbers);
    return count * sites->len;
}

/* Returns the standard deviation of the logarithms of times below the usual time. `ratios` contains the logarithms of
 * the ratios of times to usual times. */
static double spread_of(double *ratios, size_t count)
{
    sort_doubles(ratios, count);
    return count > 0 ? fmax(DELAY_ACCURACY, -ratios[count / 5] / NORMAL_FIFTH) : INFINITY;
}

/* Returns the long visits (elements are long_visit). `even` is the sample after all kinds and amounts were evened out.
 * Sets *spread to the spread of the logarithms of the usual times. */
static GArray *find_long(const sample *x, const sample *even, const uint32_t *groups, uint32_t count, double *spread)
{
    GArray *found = g_array_new(FALSE, FALSE, sizeof(long_visit));
    double *ratios = g_new(double, x->count + 1),
           resolution_ns = place_find_resolution(x->visits, place_at(x->visits, x->place));
    uint32_t all = 0;
    for (uint32_t i = 0; i < x->count; i++)
        if (groups[i] != UINT32_MAX)
            ratios[all++] = log(fmax(even->y[i], even->median / 100) / even->median);
    *spread = spread_of(ratios, all);
    for (uint32_t g = 0; g < count; g++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < x->count; i++)
            if (groups[i] == g)
                ratios[n++] = log(fmax(even->y[i], even->median / 100) / even->median);
        double own = n >= KIND_COUNT_MIN ? spread_of(ratios, n) : *spread,
               ratio = fmax(LONG_RATIO_MIN, exp(LONG_DEVIATIONS * own));
        for (uint32_t i = 0; i < x->count; i++) {
            double usual = even->median / even->factor[i];
            const long_visit y = {i, x->y[i] - usual, x->y[i], usual, usual * own, ratio * usual};
            if (groups[i] == g && x->y[i] > y.limit && y.value > RESOLUTIONS * resolution_ns)
                g_array_append_val(found, y);
        }
    }
    g_free(ratios);
    return found;
}

long_sample long_sample_of(const search *s, const sample *x)
{
    long_sample l = {.x = x};
    uint32_t *groups = g_new(uint32_t, x->count + 1),
             count = divide_by_sites(x, groups, sample_group_kinds(s, x, groups));
    l.kinds = sample_even_out(x, groups, count);
    l.amounts = sample_even_out_amounts(s, l.kinds);
    l.even = l.amounts != NULL ? l.amounts : l.kinds;
    l.found = l.even->median > 0 ? find_long(x, l.even, groups, count, &l.spread)
                                 : g_array_new(FALSE, FALSE, sizeof(long_visit));
    g_free(groups);
    return l;
}

void long_sample_clear(long_sample *l)
{
    g_array_free(l->found, TRUE);
    sample_free(l->kinds);
    if (l->amounts != NULL)
        sample_free(l->amounts);
}
