#include "config.h"

#include "clocks/name_table.h"

#include "base/hash_bytes.h"
#include "base/memory.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* Truncates a name at a NUL, which only a forged log contains. Returns the result. */
static nl_string up_to_nul(nl_string name)
{
    if (name.size > 0)
        name.size = strnlen(name.data, name.size);
    return name;
}

/* Returns the slot of a name without NUL, or the free slot for it. */
static size_t name_table_place_of(const name_table *n, nl_string name)
{
    size_t at = hash_bytes(n->seed, name.data, name.size) & (n->slot_count - 1);
    for (; n->slots[at] != 0; at = (at + 1) & (n->slot_count - 1)) {
        const char *text = n->texts[n->slots[at] - 1];
        if (strncmp(text, name.data, name.size) == 0 && text[name.size] == '\0')
            break;
    }
    return at;
}

size_t name_table_find(const name_table *n, nl_string name)
{
    if (n->slot_count == 0 || name.size == 0)
        return NAME_NONE;
    uint32_t number = n->slots[name_table_place_of(n, up_to_nul(name))];
    return number != 0 ? number - 1 : NAME_NONE;
}

static void name_table_grow(name_table *n)
{
    size_t count = n->slot_count == 0 ? 16 : 2 * n->slot_count;
    if (n->slot_count == 0)
        n->seed = hash_seed();
    free(n->slots);
    n->slots = nl_memory_check(calloc(count, sizeof *n->slots));
    n->slot_count = count;
    for (size_t i = 0; i < n->count; i++)
        n->slots[name_table_place_of(n, nl_string_of(n->texts[i]))] = (uint32_t)i + 1;
    n->texts = nl_memory_check(reallocarray(n->texts, count, sizeof *n->texts));
}

size_t name_table_add(name_table *n, nl_string name)
{
    size_t known = name_table_find(n, name);
    if (known != NAME_NONE)
        return known;
    if (2 * (n->count + 1) > n->slot_count)
        name_table_grow(n);
    n->slots[name_table_place_of(n, up_to_nul(name))] = (uint32_t)n->count + 1;
    n->texts[n->count] = nl_memory_check(strndup(name.data, name.size));
    return n->count++;
}

void name_table_free(name_table *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->texts[i]);
    free(n->texts);
    free(n->slots);
    *n = (name_table){0};
}
