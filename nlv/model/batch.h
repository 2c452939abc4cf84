/*
 * Records on their way from a log into the store: what the spec wants of them, in arrays beside each other. A batch
 * belongs to one thread at a time.
 */
#ifndef NLV_BATCH_H
#define NLV_BATCH_H

#include "model/spec.h"

#include "clocks/correction.h"

/* Where a record is: the number of its file, and its position in it (log_file.h). */
enum { PLACE_POSITION_BITS = 48, PLACE_FILES_MAX = 1 << 16 };

static inline uint64_t place_make(unsigned file, uint64_t position)
{
    return (uint64_t)file << PLACE_POSITION_BITS | position;
}

static inline unsigned place_file(uint64_t place)
{
    return (unsigned)(place >> PLACE_POSITION_BITS);
}

static inline uint64_t place_position(uint64_t place)
{
    return place & ((UINT64_C(1) << PLACE_POSITION_BITS) - 1);
}

typedef struct batch_row {
    int64_t time_ns;
    uint64_t place;
    uint16_t event, host, prog; /* names */
    uint16_t value_count;
    uint32_t first_value;
} batch_row;

/* What a row is in a layer. */
typedef struct batch_step {
    uint64_t key;     /* of its object, by the spec's seed; 0: it is of none */
    uint32_t object;  /* its number, once the store knows it */
    uint16_t color;   /* a value of the lifeline's field, when that is what colours are by; otherwise NAMES_NONE */
    uint16_t visitor; /* 1: the first of its object */
} batch_step;

typedef struct batch_value {
    uint16_t loadline;
    float value;
} batch_value;

typedef struct batch {
    unsigned layers;
    batch_row *rows;
    batch_step *steps; /* layers for each row */
    size_t count, capacity;
    batch_value *values;
    size_t value_count, value_room;
} batch;

void batch_clear(batch *b, unsigned layers);
void batch_free(batch *b); /* what it holds */

/* A new row at the end, its steps all of nothing; valid until the next one. */
batch_row *batch_add(batch *b);
void batch_add_value(batch *b, batch_row *row, uint16_t loadline, float value);

/* The names that a store's numbers stand for. */
typedef struct batch_names {
    names *events, *hosts, *progs, *colors;
} batch_names;

/* What a thread needs to take records apart. All zero at first. */
typedef struct extractor {
    const spec *spec;
    const nl_filter *filter;  /* others are passed over; NULL: none is */
    const correction *clocks; /* what sets times right; NULL: they are as they were logged */
    batch_names names;
    name_cache events, hosts, progs, colors;
} extractor;

/* Adds a record that is at place, when the filter matches it. */
void extract(extractor *x, const nl_record *record, uint64_t place, batch *b);

#endif
