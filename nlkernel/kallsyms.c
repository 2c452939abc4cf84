#include "config.h"

#include "kallsyms.h"

#include "base/error.h"
#include "base/memory.h"
#include "rights.h"
#include "tracing.h"

#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Most symbols are close together. For these symbols, a lookup in a table with a bucket for every 128 bytes is faster
 * than a binary search. */
enum { BUCKET_SHIFT = 7, BUCKETS_MAX = 1 << 20 };

/* A function ends at the start of the next function. This constant limits the size of a function before a gap. */
enum { FUNCTION_SIZE_MAX = 1 << 20 };

typedef struct symbol {
    uint64_t address;
    uint32_t name, size; /* offset and size of the name in names */
} symbol;

struct kallsyms {
    symbol *symbols; /* sorted, with one symbol per address */
    size_t count, capacity;
    nl_buffer names;
    uint32_t *buckets; /* for each bucket, the index of the first symbol after the bucket's first byte */
    size_t bucket_count;
};

/* ---- reading ---- */

static void kallsyms_add(kallsyms *k, uint64_t address, const char *name, size_t size)
{
    NL_ARRAY_GROW(k->symbols, k->count, k->capacity);
    k->symbols[k->count++] = (symbol){address, (uint32_t)k->names.size, (uint32_t)size};
    nl_buffer_append(&k->names, name, size);
}

/* Adds the function in a line such as "ffffffff81000000 T name	[module]". */
static void kallsyms_take_line(kallsyms *k, const char *line, const char *end)
{
    uint64_t address = 0;
    const char *at = line;
    for (; at < end && at - line < 16; at++) {
        int digit = *at >= '0' && *at <= '9' ? *at - '0' : *at >= 'a' && *at <= 'f' ? *at - 'a' + 10 : -1;
        if (digit < 0)
            break;
        address = address << 4 | (uint64_t)digit;
    }
    if (at == line || end - at < 4 || at[0] != ' ' || strchr("tTwW", at[1]) == NULL || at[2] != ' ' || address == 0)
        return;
    const char *name = at + 3, *stop = name;
    while (stop < end && *stop != '\t' && *stop != ' ')
        stop++;
    if (stop > name && k->names.size < UINT32_MAX / 2)
        kallsyms_add(k, address, name, (size_t)(stop - name));
}

/* Orders symbols by address. Several names of one address keep their order, because the table keeps only the first
 * name. */
static int order_symbols(const void *a, const void *b)
{
    const symbol *x = a, *y = b;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name;
}

static void sort_symbols(kallsyms *k)
{
    size_t kept = 0;
    if (k->count > 0)
        qsort(k->symbols, k->count, sizeof *k->symbols, order_symbols);
    for (size_t i = 0; i < k->count; i++)
        if (kept == 0 || k->symbols[kept - 1].address != k->symbols[i].address)
            k->symbols[kept++] = k->symbols[i];
    k->count = kept;
}

static void make_buckets(kallsyms *k)
{
    if (k->count == 0)
        return;
    uint64_t first = k->symbols[0].address, span = k->symbols[k->count - 1].address - first;
    uint64_t count = (span >> BUCKET_SHIFT) + 1;
    k->bucket_count = count < BUCKETS_MAX ? (size_t)count : BUCKETS_MAX;
    k->buckets = nl_memory_check(calloc(k->bucket_count, sizeof *k->buckets));
    size_t at = 0;
    for (size_t i = 0; i < k->bucket_count; i++) {
        while (at < k->count && k->symbols[at].address <= first + ((uint64_t)i << BUCKET_SHIFT))
            at++;
        k->buckets[i] = (uint32_t)at;
    }
}

kallsyms *kallsyms_parse(const char *text, size_t size)
{
    kallsyms *k = nl_memory_check(calloc(1, sizeof *k));
    for (const char *at = text, *end = text + size; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline != NULL ? newline : end;
        kallsyms_take_line(k, at, stop);
        at = stop + 1;
    }
    sort_symbols(k);
    make_buckets(k);
    return k;
}

static void set_hidden_error(const char *path)
{
    char *restrict_text = tracing_read("/proc/sys/kernel/kptr_restrict", NULL);
    int restricted = restrict_text != NULL ? atoi(restrict_text) : 0;
    free(restrict_text);
    if (restricted > 1)
        nl_error_set(NL_ERROR_PERMISSION, "%s hides all addresses; run sudo sysctl kernel.kptr_restrict=1", path);
    else if (!rights_has_capability(CAP_SYSLOG))
        nl_error_set(NL_ERROR_PERMISSION,
                     "%s hides the addresses from user %u, who lacks CAP_SYSLOG; run nlkernel as root, or grant the "
                     "capabilities: sudo setcap cap_syslog,cap_dac_override+ep %s",
                     path, (unsigned)geteuid(), rights_program_path());
    else
        nl_error_set(NL_ERROR_UNSUPPORTED,
                     "%s shows no addresses: this kernel was built without CONFIG_KALLSYMS, or hides them", path);
}

kallsyms *kallsyms_read(void)
{
    static const char path[] = "/proc/kallsyms";
    size_t size;
    char *text = tracing_read(path, &size);
    if (text == NULL)
        return NULL;
    kallsyms *k = kallsyms_parse(text, size);
    free(text);
    if (k->count > 0)
        return k;
    kallsyms_free(k);
    set_hidden_error(path);
    return NULL;
}

void kallsyms_free(kallsyms *k)
{
    if (k == NULL)
        return;
    free(k->symbols);
    free(k->buckets);
    nl_buffer_free(&k->names);
    free(k);
}

/* ---- search ---- */

/* Returns the number of symbols whose address is at most `address`. */
static size_t count_up_to(const kallsyms *k, uint64_t address)
{
    size_t low = 0, high = k->count;
    if (k->count == 0 || address < k->symbols[0].address)
        return 0;
    uint64_t bucket = (address - k->symbols[0].address) >> BUCKET_SHIFT;
    if (bucket < k->bucket_count) {
        for (low = k->buckets[bucket]; low < k->count && k->symbols[low].address <= address;)
            low++;
        return low;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (k->symbols[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

nl_string kallsyms_find(const kallsyms *k, uint64_t address)
{
    size_t count = count_up_to(k, address);
    if (count == 0 || address - k->symbols[count - 1].address >= FUNCTION_SIZE_MAX)
        return (nl_string){NULL, 0};
    const symbol *found = &k->symbols[count - 1];
    return (nl_string){k->names.data + found->name, found->size};
}
