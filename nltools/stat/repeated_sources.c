#include "config.h"

#include "stat/repeated_sources.h"

#include "base/hash_bytes.h"
#include "program/program.h"
#include "requests/key_map.h"

#include <glib.h>
#include <string.h>

enum { HASHES_MAX = 1 << 18 };

/* One of the earlier sources, or the current source. */
typedef struct source {
    const char *name;
    uint64_t common; /* number of records that the current source and this source have in common */
} source;

struct repeated_sources {
    GArray *sources;  /* source */
    key_map first;    /* maps the hash of a record to the number (from 1) of the first source that has the record */
    uint64_t sampled; /* hashes with any of these bits are not in the sample */
    uint64_t count;   /* number of records of the current source in the sample */
    uint64_t seed;
};

repeated_sources *repeated_sources_new(void)
{
    repeated_sources *r = g_new0(repeated_sources, 1);
    r->sources = g_array_new(FALSE, FALSE, sizeof(source));
    r->seed = (uint64_t)g_random_int() << 32 | g_random_int();
    return r;
}

void repeated_sources_free(repeated_sources *r)
{
    if (r == NULL)
        return;
    g_array_free(r->sources, TRUE);
    key_map_free(&r->first);
    g_free(r);
}

void repeated_sources_begin(repeated_sources *r, const char *name)
{
    const source added = {name, 0};
    for (guint i = 0; i < r->sources->len; i++)
        g_array_index(r->sources, source, i).common = 0;
    g_array_append_val(r->sources, added);
    r->count = 0;
}

static uint64_t hash_string(uint64_t hash, nl_string text)
{
    return hash_bytes(hash + text.size, text.data != NULL ? text.data : "", text.size);
}

static uint64_t hash_record(uint64_t hash, const nl_record *record)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    hash = hash_string(hash_string(hash_string(hash, record->event), record->host), record->prog);
    for (size_t i = 0; i < record->field_count; i++)
        hash = hash_string(hash_string(hash, record->fields[i].name), nl_field_text(&record->fields[i], scratch));
    return hash;
}

/* Halves the sample. */
static void halve_sample(repeated_sources *r)
{
    key_map all = r->first;
    r->first = (key_map){0};
    r->sampled = r->sampled << 1 | 1;
    key_map_reset(&r->first, HASHES_MAX);
    for (size_t i = 0; i < (size_t)1 << (64 - all.shift); i++)
        if (all.slots[i].key != 0 && (all.slots[i].key >> 32 & r->sampled) == 0)
            *key_map_add(&r->first, all.slots[i].key) = all.slots[i].value;
    key_map_free(&all);
}

void repeated_sources_add(repeated_sources *r, const nl_record *record)
{
    /* the time decides whether the record is in the sample, so that the function hashes only the sample's records */
    const int64_t time_us = record->time_ns / 1000;
    const uint64_t time_hash = hash_bytes(r->seed, (const char *)&time_us, sizeof time_us);
    if ((time_hash & r->sampled) != 0)
        return;
    const uint64_t hash = hash_record(time_hash, record) >> 32;
    uint64_t *first = key_map_add(&r->first, time_hash << 32 | hash | 1);
    r->count++;
    if (*first == 0)
        *first = r->sources->len;
    else if (*first < r->sources->len)
        g_array_index(r->sources, source, *first - 1).common++;
    if (r->first.count >= HASHES_MAX)
        halve_sample(r);
}

char *repeated_sources_describe(const repeated_sources *r)
{
    const source *last = &g_array_index(r->sources, source, r->sources->len - 1);
    for (guint i = 0; i + 1 < r->sources->len; i++) {
        const source *earlier = &g_array_index(r->sources, source, i);
        if (2 * earlier->common > r->count)
            return program_format("%.0f %% of the records of %s are also in %s; omit one of these sources, because "
                                  "repeated records count twice",
                                  100 * (double)earlier->common / (double)r->count, last->name, earlier->name);
    }
    return NULL;
}
