#include "config.h"

#include "archive/loader.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 100000 };

bool loader_fail(loader *l)
{
    program_print_error();
    l->failed = true;
    return false;
}

/* ---- errors of sources ---- */

static trouble *find_trouble(loader *l, const char *source)
{
    for (size_t i = 0; i < l->trouble_count; i++)
        if (strcmp(l->troubles[i].source, source) == 0)
            return &l->troubles[i];
    return NULL;
}

void loader_trouble(loader *l, const char *source)
{
    trouble *before = find_trouble(l, source);
    l->reading->failed = true;
    if (before != NULL && before->code == nl_error_get_code())
        return;
    program_print_error();
    loader_is_well(l, source);
    l->troubles = nl_memory_check(reallocarray(l->troubles, l->trouble_count + 1, sizeof *l->troubles));
    l->troubles[l->trouble_count++] = (trouble){nl_memory_check(strdup(source)), nl_error_get_code()};
}

void loader_is_well(loader *l, const char *source)
{
    trouble *t = find_trouble(l, source);
    if (t == NULL)
        return;
    free(t->source);
    *t = l->troubles[--l->trouble_count];
}

loader *loader_new(store *s, program_reading *reading, const nl_filter *where, objects *lines)
{
    loader *l = nl_memory_check(calloc(1, sizeof *l));
    *l = (loader){.store = s, .reading = reading, .where = where, .streams = nl_streams_new(), .objects = lines};
    if (store_read_places(s, &l->places, &l->place_count) == NL_OK && store_read_streams(s, l->streams) == NL_OK)
        return l;
    loader_fail(l);
    loader_free(l);
    return NULL;
}

void loader_free(loader *l)
{
    if (l->open != NULL)
        l->store->kind->undo(l->store);
    for (size_t i = 0; i < l->place_count; i++)
        free(l->places[i].name);
    free(l->places);
    free(l->touched);
    for (size_t i = 0; i < l->trouble_count; i++)
        free(l->troubles[i].source);
    free(l->troubles);
    nl_streams_free(l->streams);
    row_maker_free(&l->maker);
    free(l);
}

store_place *loader_add_place(loader *l, const char *name)
{
    l->places = nl_memory_check(realloc(l->places, (l->place_count + 1) * sizeof *l->places));
    char *copied = nl_memory_check(strdup(name));
    l->places[l->place_count] = (store_place){.name = copied};
    return &l->places[l->place_count++];
}

/* Adds the stream of a block to `touched`. Checks only the latest element, because the blocks of a stream are usually
 * consecutive. */
static void loader_on_block(void *user, const nl_block_view *block)
{
    static const unsigned char none[16];
    loader *l = user;
    if (memcmp(block->stream, none, sizeof none) == 0 ||
        (l->touched_count > 0 && memcmp(l->touched[l->touched_count - 1], block->stream, sizeof none) == 0))
        return;
    NL_ARRAY_GROW(l->touched, l->touched_count, l->touched_capacity);
    memcpy(l->touched[l->touched_count++], block->stream, sizeof none);
}

static void loader_on_malformed(void *user, const nl_malformed *what)
{
    program_malformed(((loader *)user)->reading, what);
}

static void on_lost(void *user, const nl_lost *what)
{
    program_lost(((loader *)user)->reading, what);
}

nl_decoder *loader_decoder(loader *l, const char *name)
{
    nl_decoder_options options = {.source = name,
                                  .fraction = l->reading->fraction,
                                  .max_record_size = 16 << 20,
                                  .on_malformed = loader_on_malformed,
                                  .on_lost = on_lost,
                                  .user = l,
                                  .streams = l->streams,
                                  .sequences = program_reading_numbers(l->reading)};
    nl_decoder *decoder = nl_decoder_new(&options);
    nl_decoder_on_block(decoder, false, loader_on_block, l);
    return decoder;
}

static bool loader_begin(loader *l, store_place *place)
{
    if (l->open != NULL)
        return true;
    if (store_begin(l->store, place) != NL_OK)
        return loader_fail(l);
    l->open = place;
    return true;
}

bool loader_put(loader *l, store_place *place, const nl_record *record)
{
    row r;
    program_count_records(l->reading, 1);
    if (place->latest_ns < record->time_ns)
        place->latest_ns = record->time_ns;
    if (!nl_filter_matches(l->where, record))
        return true;
    if (!loader_begin(l, place))
        return false;
    if (!row_make(&l->maker, record, &r)) {
        program_error("%s: skipped a record that is too large for the database", place->name);
        l->reading->malformed++;
        return true;
    }
    objects_see(l->objects, record);
    if (l->store->kind->put(l->store, &r, place->id) != NL_OK)
        return loader_fail(l);
    l->in_batch++;
    return true;
}

bool loader_is_full(const loader *l)
{
    return l->in_batch >= BATCH;
}

bool loader_commit(loader *l, store_place *place)
{
    if (l->failed || !loader_begin(l, place))
        return false;
    l->open = NULL;
    nl_status status =
        store_commit(l->store, place, l->streams, (const unsigned char(*)[16])l->touched, l->touched_count);
    l->touched_count = 0;
    if (status != NL_OK)
        return loader_fail(l);
    l->records += l->in_batch;
    l->in_batch = 0;
    program_progress("loading", 0, 0, l->records);
    return true;
}
