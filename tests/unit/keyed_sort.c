/* Tests sorting and medians of nldiag. */
#include <netlogger.h>

#include "diag/keyed_sort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VALUES_MAX = 3000, KINDS = 5 };

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Few different values, random values, values in order, values in reverse order, and small values of both signs. */
static double value_of(int kind, size_t i)
{
    switch (kind) {
    case 0:
        return rand() % 3;
    case 1:
        return rand();
    case 2:
        return (double)i;
    case 3:
        return (double)VALUES_MAX / 2 - (double)i;
    default:
        return rand() % 1000 - 500.5;
    }
}

static void check_values(int kind, size_t count)
{
    static double values[VALUES_MAX], wanted[VALUES_MAX], sorted[VALUES_MAX];
    for (size_t i = 0; i < count; i++)
        values[i] = sorted[i] = wanted[i] = value_of(kind, i);
    qsort(wanted, count, sizeof *wanted, by_value);
    sort_doubles(sorted, count);
    assert_memory_equal(sorted, wanted, count * sizeof *wanted);
    const double median = count == 0 ? 0 : (wanted[(count - 1) / 2] + wanted[count / 2]) / 2;
    assert_true(select_median(values, count) == median);
    qsort(values, count, sizeof *values, by_value);
    assert_memory_equal(values, wanted, count * sizeof *wanted);
}

static void test_doubles(void **state)
{
    (void)state;
    srand(5);
    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t count = 0; count < 70; count++)
            check_values(kind, count);
        for (int round = 0; round < 20; round++)
            check_values(kind, (size_t)rand() % VALUES_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doubles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
