#include "config.h"

#include "diag/keyed_sort.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

enum {
    SMALL_MAX = 64,    /* up to SMALL_MAX items, insertion is faster */
    MEDIUM_MAX = 2048, /* up to MEDIUM_MAX items, small digits are faster */
    SMALL_BITS = 8,    /* size of a digit in bits */
    LARGE_BITS = 11,
    COUNTS_MAX = 6 << LARGE_BITS /* six large digits or eight small digits cover 64 bits */
};

/* Returns a digit of the difference between a key and the smallest key. */
static size_t digit_of(const keyed *item, int64_t smallest, int digit, int bits)
{
    return (size_t)(((uint64_t)item->key - (uint64_t)smallest) >> (digit * bits)) & (((size_t)1 << bits) - 1);
}

/* Inserts each item after the items with smaller or equal keys. */
static void insert_items(keyed *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const keyed item = items[i];
        size_t at = i;
        for (; at > 0 && items[at - 1].key > item.key; at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

/* Sorts the items with a radix sort from the lowest digit. `range` is the difference between the largest and the
 * smallest key. */
static void distribute_items(keyed *items, size_t count, int64_t smallest, uint64_t range)
{
    size_t counts[COUNTS_MAX];
    const int bits = count <= MEDIUM_MAX ? SMALL_BITS : LARGE_BITS, values = 1 << bits;
    keyed *from = items, *to = g_new(keyed, count), *other = to;
    int digits = 0;
    while (digits * bits < 64 && range >> (digits * bits) > 0)
        digits++;
    memset(counts, 0, (size_t)(digits << bits) * sizeof *counts);
    for (size_t i = 0; i < count; i++)
        for (int d = 0; d < digits; d++)
            counts[((size_t)d << bits) + digit_of(&items[i], smallest, d, bits)]++;
    for (int d = 0; d < digits; d++) {
        size_t at = 0, *next = counts + ((size_t)d << bits);
        for (int v = 0; v < values; v++) {
            size_t after = at + next[v];
            next[v] = at;
            at = after;
        }
        for (size_t i = 0; i < count; i++)
            to[next[digit_of(&from[i], smallest, d, bits)]++] = from[i];
        keyed *swap = from;
        from = to;
        to = swap;
    }
    if (from != items)
        memcpy(items, from, count * sizeof *items);
    g_free(other);
}

void keyed_sort(keyed *items, size_t count)
{
    bool is_sorted = true;
    int64_t smallest = INT64_MAX, largest = INT64_MIN;
    for (size_t i = 0; i < count; i++) {
        is_sorted = is_sorted && (i == 0 || items[i - 1].key <= items[i].key);
        smallest = MIN(smallest, items[i].key);
        largest = MAX(largest, items[i].key);
    }
    if (is_sorted)
        return;
    if (count <= SMALL_MAX)
        insert_items(items, count);
    else
        distribute_items(items, count, smallest, (uint64_t)largest - (uint64_t)smallest);
}

/*
 * The bits of positive doubles are in the same order as the doubles. The bits of negative doubles, except for the sign,
 * are in the reverse order.
 */
int64_t key_of_double(double value)
{
    const double without_negative_zero = value + 0.0;
    int64_t bits;
    memcpy(&bits, &without_negative_zero, sizeof bits);
    return bits >= 0 ? bits : bits ^ INT64_MAX;
}

static double double_of_key(int64_t key)
{
    const int64_t bits = key >= 0 ? key : key ^ INT64_MAX;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void sort_doubles(double *values, size_t count)
{
    keyed *items = g_new(keyed, count + 1);
    for (size_t i = 0; i < count; i++)
        items[i].key = key_of_double(values[i]);
    keyed_sort(items, count);
    for (size_t i = 0; i < count; i++)
        values[i] = double_of_key(items[i].key);
    g_free(items);
}

static double middle_of_three(double a, double b, double c)
{
    return a < b ? (b < c ? b : MAX(a, c)) : (a < c ? a : MAX(b, c));
}

/*
 * Moves the values so that values[k] is the value that sorting would move there, no earlier value is larger, and no
 * later value is smaller. The algorithm is Hoare's FIND (1961). When few values remain, or after ROUNDS_MAX rounds, the
 * function sorts the remaining values.
 */
static void select_value(double *values, size_t count, size_t k)
{
    enum { ROUNDS_MAX = 48, SORTED_MAX = 16 };
    size_t first = 0, last = count - 1;
    for (int round = 0; round < ROUNDS_MAX && last - first >= SORTED_MAX; round++) {
        const double pivot = middle_of_three(values[first], values[first + (last - first) / 2], values[last]);
        size_t i = first, j = last;
        for (;;) {
            while (values[i] < pivot)
                i++;
            while (values[j] > pivot)
                j--;
            if (i >= j)
                break;
            const double swap = values[i];
            values[i++] = values[j];
            values[j--] = swap;
        }
        /* values[first..i) are at most the pivot, and values(j..last] at least. If i is j, values[i] is the pivot. */
        if (k < i)
            last = i - 1;
        else if (k > j)
            first = j + 1;
        else
            return;
    }
    sort_doubles(values + first, last - first + 1);
}

double select_median(double *values, size_t count)
{
    if (count == 0)
        return 0;
    select_value(values, count, count / 2);
    double lower = values[count / 2];
    if (count % 2 == 0) {
        lower = values[0];
        for (size_t i = 1; i < count / 2; i++)
            lower = MAX(lower, values[i]);
    }
    return (lower + values[count / 2]) / 2;
}
