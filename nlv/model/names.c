#include "config.h"

#include "model/names.h"

#include "base/hash_bytes.h"
#include "base/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    char *text;
    uint32_t size;
    uint64_t hash;
} entry;

struct names {
    pthread_mutex_t lock; /* protects slots and additions */
    entry *entries;       /* has space for NAMES_MAX entries; the kernel allocates a page at its first use */
    atomic_size_t count;
    size_t bytes;    /* total size of the texts */
    uint32_t *slots; /* hash table (open addressing); an element is 1 plus the number of a name; 0: empty */
    size_t slot_count;
};

static void *allocate(size_t count, size_t size)
{
    return nl_memory_check(calloc(count, size));
}

names *names_new(void)
{
    names *n = allocate(1, sizeof *n);
    pthread_mutex_init(&n->lock, NULL);
    n->entries = allocate(NAMES_MAX, sizeof *n->entries);
    n->slot_count = 256;
    n->slots = allocate(n->slot_count, sizeof *n->slots);
    return n;
}

void names_free(names *n)
{
    if (n == NULL)
        return;
    for (size_t i = 0; i < n->count; i++)
        free(n->entries[i].text);
    free(n->entries);
    free(n->slots);
    pthread_mutex_destroy(&n->lock);
    free(n);
}

static void grow_slots(names *n)
{
    free(n->slots);
    n->slot_count *= 2;
    n->slots = allocate(n->slot_count, sizeof *n->slots);
    for (size_t i = 0; i < n->count; i++) {
        size_t at = n->entries[i].hash & (n->slot_count - 1);
        while (n->slots[at] != 0)
            at = (at + 1) & (n->slot_count - 1);
        n->slots[at] = (uint32_t)i + 1;
    }
}

/* Returns the slot of a text, or the empty slot in which to store the text. */
static size_t find_slot(const names *n, uint64_t hash, nl_string text)
{
    size_t at = hash & (n->slot_count - 1);
    for (; n->slots[at] != 0; at = (at + 1) & (n->slot_count - 1)) {
        const entry *e = &n->entries[n->slots[at] - 1];
        if (e->hash == hash && e->size == text.size && memcmp(e->text, text.data, text.size) == 0)
            break;
    }
    return at;
}

static char *terminated(nl_string text)
{
    char *copy = allocate(text.size + 1, 1);
    for (size_t i = 0; i < text.size; i++)
        copy[i] = text.data[i] == '\0' ? ' ' : text.data[i];
    return copy;
}

/* Returns the number of a text without NUL bytes, and adds the text if it is new. */
static uint16_t model_names_put(names *n, nl_string text)
{
    uint64_t hash = hash_bytes(0, text.data, text.size);
    pthread_mutex_lock(&n->lock);
    size_t slot = find_slot(n, hash, text), number = NAMES_OTHERS;
    if (n->slots[slot] != 0) {
        number = n->slots[slot] - 1;
    } else if (n->count < NAMES_MAX && text.size <= NAMES_BYTES_MAX - n->bytes) {
        number = n->count;
        n->bytes += text.size;
        n->entries[number] = (entry){terminated(text), (uint32_t)text.size, hash};
        n->slots[slot] = (uint32_t)number + 1;
        n->count = number + 1;
        if (2 * n->count > n->slot_count)
            grow_slots(n);
    }
    pthread_mutex_unlock(&n->lock);
    return (uint16_t)number;
}

uint16_t names_put(names *n, nl_string text)
{
    if (text.data == NULL)
        return NAMES_NONE;
    if (memchr(text.data, '\0', text.size) == NULL)
        return model_names_put(n, text);
    char *copy = terminated(text);
    uint16_t number = model_names_put(n, (nl_string){copy, text.size});
    free(copy);
    return number;
}

uint16_t names_find(names *n, const char *text)
{
    nl_string string = {text, strlen(text)};
    pthread_mutex_lock(&n->lock);
    uint32_t slot = n->slots[find_slot(n, hash_bytes(0, string.data, string.size), string)];
    pthread_mutex_unlock(&n->lock);
    return slot == 0 ? NAMES_NONE : (uint16_t)(slot - 1);
}

const char *names_text(const names *n, uint16_t number)
{
    return number < n->count ? n->entries[number].text : number == NAMES_NONE ? "" : "(others)";
}

size_t names_count(const names *n)
{
    return n->count;
}

static inline uint64_t word_at(const char *text, size_t offset)
{
    uint64_t word;
    memcpy(&word, text + offset, sizeof word);
    return word;
}

/*
 * Returns the slot of a text in a cache. Reads only the start, the middle and the end of the text. Texts that are equal
 * in these parts share a slot.
 */
static inline size_t cache_slot(nl_string text)
{
    uint64_t word = text.size;
    if (text.size >= sizeof word)
        word = hash_mix(word_at(text.data, 0) ^ word, word_at(text.data, text.size - sizeof word)) ^
               word_at(text.data, (text.size - sizeof word) / 2);
    else
        for (size_t i = 0; i < text.size; i++)
            word = word << 8 | (unsigned char)text.data[i];
    return hash_mix(word, UINT64_C(0x9e3779b97f4a7c15)) & (NAME_CACHE_SLOTS - 1);
}

/* Returns whether `size` bytes are equal. Avoids the call of memcmp for most names. */
static inline bool is_same_text(const char *a, const char *b, size_t size)
{
    if (size < sizeof(uint64_t) || size > 4 * sizeof(uint64_t))
        return memcmp(a, b, size) == 0;
    uint64_t difference = word_at(a, size - sizeof(uint64_t)) ^ word_at(b, size - sizeof(uint64_t));
    for (size_t i = 0; i + sizeof(uint64_t) <= size; i += sizeof(uint64_t))
        difference |= word_at(a, i) ^ word_at(b, i);
    return difference == 0;
}

uint16_t names_put_cached(names *n, name_cache *cache, nl_string text)
{
    if (text.data == NULL)
        return NAMES_NONE;
    size_t at = cache_slot(text);
    if (cache->slots[at].text != NULL && cache->slots[at].size == text.size &&
        is_same_text(cache->slots[at].text, text.data, text.size))
        return cache->slots[at].number;
    uint16_t number = names_put(n, text);
    /* do not cache texts with NUL bytes, because their stored texts differ */
    if (number < NAMES_MAX && memchr(text.data, '\0', text.size) == NULL) {
        cache->slots[at].text = names_text(n, number);
        cache->slots[at].size = (uint32_t)text.size;
        cache->slots[at].number = number;
    }
    return number;
}
