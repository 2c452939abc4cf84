#include "config.h"

#include "diag/keyed_sort.h"

#include <glib.h>
#include <string.h>

enum { DIGIT_BITS = 8, DIGITS = 64 / DIGIT_BITS, VALUES = 1 << DIGIT_BITS };

/* Returns a digit of a key. Inverts the sign bit, so that negative keys come first. */
static unsigned digit_of(const keyed *item, int digit)
{
    uint64_t key = (uint64_t)item->key ^ (UINT64_C(1) << 63);
    return (unsigned)(key >> (digit * DIGIT_BITS)) % VALUES;
}

void keyed_sort(keyed *items, size_t count)
{
    size_t counts[DIGITS][VALUES] = {{0}};
    keyed *from = items, *to = g_new(keyed, count + 1), *other = to;
    for (size_t i = 0; i < count; i++)
        for (int d = 0; d < DIGITS; d++)
            counts[d][digit_of(&items[i], d)]++;
    for (int d = 0; d < DIGITS; d++) {
        size_t at = 0;
        if (count == 0 || counts[d][digit_of(&items[0], d)] == count)
            continue; /* all keys have the same digit */
        for (int v = 0; v < VALUES; v++) {
            size_t next = at + counts[d][v];
            counts[d][v] = at;
            at = next;
        }
        for (size_t i = 0; i < count; i++)
            to[counts[d][digit_of(&from[i], d)]++] = from[i];
        keyed *swap = from;
        from = to;
        to = swap;
    }
    if (from != items)
        memcpy(items, from, count * sizeof *items);
    g_free(other);
}
