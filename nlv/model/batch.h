/* A batch contains decoded records between a log and the store. It contains only the data that the spec needs. A batch
 * belongs to one thread at a time. */
#ifndef NLV_BATCH_H
#define NLV_BATCH_H

#include "model/spec.h"
#include "model/time_zones.h"

#include "clocks/correction.h"

#include <stdatomic.h>

/* A record's place consists of the number of the record's file and its position in that file (log_file.h). */
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
    uint16_t event, host, prog; /* numbers that represent names (names.h) */
    uint16_t value_count;
    uint32_t first_value;
} batch_row;

/* The step in a layer to which a row belongs. */
typedef struct batch_step {
    uint64_t key;    /* key of the object, computed with the spec's seed; 0: the row belongs to no object */
    uint32_t object; /* the object's number in the store */
    uint16_t color;  /* number of the color field's value; NAMES_NONE: the lifeline has no such field */
} batch_step;

typedef struct batch_value {
    uint16_t loadline;
    float value;
} batch_value;

typedef struct batch {
    unsigned layers;
    batch_row *rows;
    batch_step *steps; /* `layers` steps per row */
    size_t count, capacity;
    batch_value *values;
    size_t value_count, value_capacity;
} batch;

void batch_clear(batch *b, unsigned layers);
void batch_free(batch *b); /* frees the members, not the batch */

/* Appends a row whose steps belong to no object. The returned row is valid until the next call. */
batch_row *batch_add(batch *b);
void batch_add_value(batch *b, batch_row *row, uint16_t loadline, float value);

/* The names of events, hosts, programs and color values, to which the numbers in the store refer. */
typedef struct batch_names {
    names *events, *hosts, *progs, *colors;
} batch_names;

/* The data that a thread needs to extract rows from records. Initially all zero. */
typedef struct extractor {
    const spec *spec;
    bool keeps_none;          /* extract no records */
    const nl_filter *filter;  /* NULL: extract all records */
    const correction *clocks; /* NULL: do not correct the times */
    const time_zones *zones;  /* NULL: no record is in another time zone */
    nl_fraction fraction;
    atomic_bool *has_nanoseconds; /* see request_duration; all extractors of the logs share it; NULL: unknown */
    const char *log;              /* name of the records' log (log_file.log), or NULL */
    batch_names names;
    name_cache events, hosts, progs, colors;
} extractor;

/* Adds a row to `b` for the record at `place`, unless the filter rejects the record or keeps_none is true. */
void extract(extractor *x, const nl_record *record, uint64_t place, batch *b);

#endif
