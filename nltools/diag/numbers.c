#include "config.h"

#include "diag/numbers.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int compare_ns(const void *a, const void *b)
{
    int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
    return (first > second) - (first < second);
}

int compare_doubles(const void *a, const void *b)
{
    double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return count % 2 != 0 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double spread_around(double *values, size_t count, double middle)
{
    for (size_t i = 0; i < count; i++)
        values[i] = fabs(values[i] - middle);
    qsort(values, count, sizeof *values, compare_doubles);
    return 1.4826 * values[count / 2]; /* what makes a standard deviation of it where they are normally distributed */
}
