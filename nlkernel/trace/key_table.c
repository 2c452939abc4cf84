#include "config.h"

#include "trace/key_table.h"

#include <glib.h>

enum { SIZE_MIN = 64 };

typedef struct entry {
    uint64_t key;
    span *span; /* NULL: the entry is empty */
} entry;

/* Open addressing with linear probing. At least half of the entries are empty. */
struct key_table {
    entry *entries;
    size_t size; /* a power of 2 */
    size_t count;
};

key_table *key_table_new(void)
{
    key_table *table = g_new0(key_table, 1);
    table->size = SIZE_MIN;
    table->entries = g_new0(entry, table->size);
    return table;
}

void key_table_free(key_table *table)
{
    g_free(table->entries);
    g_free(table);
}

/* Returns the index of the key's entry, or of the empty entry for the key. */
static size_t find_index(const key_table *table, uint64_t key)
{
    size_t i = key & (table->size - 1);
    while (table->entries[i].span != NULL && table->entries[i].key != key)
        i = (i + 1) & (table->size - 1);
    return i;
}

span *key_table_find(const key_table *table, uint64_t key)
{
    return table->entries[find_index(table, key)].span;
}

static void resize(key_table *table, size_t size)
{
    entry *old = table->entries;
    size_t old_size = table->size;
    table->entries = g_new0(entry, size);
    table->size = size;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].span != NULL)
            table->entries[find_index(table, old[i].key)] = old[i];
    g_free(old);
}

void key_table_put(key_table *table, uint64_t key, span *s)
{
    entry *at = &table->entries[find_index(table, key)];
    table->count += at->span == NULL;
    *at = (entry){key, s};
    if (table->count * 2 > table->size)
        resize(table, table->size * 2);
}

void key_table_remove(key_table *table, uint64_t key, const span *s)
{
    size_t mask = table->size - 1, hole = find_index(table, key);
    if (s == NULL || table->entries[hole].span != s)
        return;
    table->count--;
    /* move later entries into the hole, so that searches still find these entries (Knuth, The Art of Computer
     * Programming, volume 3, section 6.4, algorithm R) */
    for (size_t i = (hole + 1) & mask; table->entries[i].span != NULL; i = (i + 1) & mask) {
        size_t first = table->entries[i].key & mask;
        if (((i - first) & mask) >= ((i - hole) & mask)) {
            table->entries[hole] = table->entries[i];
            hole = i;
        }
    }
    table->entries[hole].span = NULL;
    if (table->size > SIZE_MIN && table->count * 16 < table->size)
        resize(table, table->size / 4);
}
