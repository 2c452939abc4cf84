/*
 * Collects the data of the two sides of a comparison: sums by place, by the value of a field, and by sensor.
 *
 * The first row contains the sums of whole requests. Each other row contains the sums of a place (diag/visits.h) over
 * all hosts. A bin is a value of a field: a text, or a range of numbers. The module omits port numbers from the names
 * of hosts and of sensors' connections, because the ports of clients are random. The memory that a profile uses does
 * not depend on the number of logs and records. Not thread-safe.
 */
#ifndef NLTOOLS_PROFILE_H
#define NLTOOLS_PROFILE_H

#include "requests/contrast.h"
#include "diag/place_names.h"

enum { SIDE_BEFORE, SIDE_AFTER, SIDES };
enum { PROFILE_FIELDS_MAX = COLUMNS_MAX + 2, PROFILE_BINS = 14, BIN_OTHERS = PROFILE_BINS - 2, BIN_ABSENT };

typedef struct profile_field {
    char *name;
    bool of_requests; /* the first events of nearly all requests have the field, so it is an input and not a result */
    double edges[BIN_OTHERS - 1]; /* for numbers: bin i begins at edge i - 1 */
    unsigned edge_count;
    GPtrArray *texts; /* NULL: the values are numbers */
} profile_field;

/* The sums of the visits of a row whose value is in one bin of a field. */
typedef struct profile_bin {
    unit_sums sides[SIDES];
} profile_bin;

typedef struct profile_row {
    uint32_t name; /* number in the names of places; PLACE_NAME_NONE: whole requests */
    bool is_span;
    unit_sums own[SIDES];                  /* number of visits, and their own time in nanoseconds */
    double path[SIDES][UNITS_MAX];         /* time on critical paths in nanoseconds */
    profile_bin *bins[PROFILE_FIELDS_MAX]; /* NULL: no bins */
} profile_row;

typedef struct profile_sensor {
    char *name;
    unit_sums sides[SIDES];
} profile_sensor;

typedef struct profile {
    unit_kind kinds[SIDES];
    unsigned logs[SIDES];
    place_names *names;
    GPtrArray *rows;                        /* elements are profile_row; the first is for requests */
    uint32_t kinds_of_requests[BIN_OTHERS]; /* numbers of the names in the bins of the field "kind" */
    unsigned kind_count;
    GPtrArray *fields;               /* elements are profile_field */
    GPtrArray *sensors;              /* elements are profile_sensor */
    double failed[SIDES][UNITS_MAX]; /* number of failed requests */
    uint64_t dropped[SIDES];         /* number of requests that the reader has dropped because of the memory limit */
    bool left_out;                   /* the profile omits rows or fields beyond the limits */
    size_t bins_used;
    GHashTable *row_index, *field_index, *sensor_index;
} profile;

/* Returns an empty profile. `log_counts` contains the number of logs of each side. */
profile *profile_new(const unsigned log_counts[SIDES]);
void profile_free(profile *p);

/* Adds the requests of a log to a side. The log must have at least one request. */
void profile_add(profile *p, int side, const visits *v);

/* Returns the name of a bin. The caller frees it with g_free. */
char *profile_bin_name(const profile_field *f, unsigned bin);

static inline profile_row *profile_row_at(const profile *p, size_t i)
{
    return g_ptr_array_index(p->rows, i);
}

/* Returns the name of a row for a place. The text is valid until the next call of profile_add. */
static inline const char *profile_row_name(const profile *p, const profile_row *row)
{
    return place_names_text(p->names, row->name);
}

static inline double profile_sum(const double *values, const unit_kind *kind)
{
    double sum = 0;
    for (unsigned u = 0; u < kind->units; u++)
        sum += values[u];
    return sum;
}

#endif
