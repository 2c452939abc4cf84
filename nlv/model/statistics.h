/* Computes statistics of a time range: records per event, durations of requests and segments, and values of loadlines.
 */
#ifndef NLV_STATISTICS_H
#define NLV_STATISTICS_H

#include "model/model.h"

typedef struct segment_statistics {
    size_t lifeline;
    unsigned from, to; /* rows */
    size_t count;      /* number of segments that end in the range */
    bool is_span;      /* true: from the start of a span to its end, with any records between; false: an edge */
    double min_ns, p50_ns, p90_ns, p99_ns, max_ns;
    double sum_ns;       /* an estimate if `sampled` is true */
    uint32_t max_record; /* the record that ends the longest segment */
} segment_statistics;

/* The requests that end in the range. */
typedef struct request_statistics {
    size_t count, failed;
    double p50_ns, p90_ns, p99_ns, max_ns;
    uint32_t max_index; /* index of the longest request in the list of requests */
    bool is_partial;    /* nlv has not read all requests yet, or has kept only the slow requests */
} request_statistics;

typedef struct loadline_statistics {
    size_t loadline;
    uint16_t host;
    size_t count;
    double min, mean, max;
    uint32_t max_record;
} loadline_statistics;

typedef struct event_count {
    uint16_t event;
    size_t count;
} event_count;

typedef struct statistics {
    size_t records;
    request_statistics requests;
    GArray *segments;  /* segment_statistics, by lifeline and rows */
    GArray *loadlines; /* loadline_statistics */
    GArray *events;    /* event_count, the most frequent first */
    bool sampled;      /* percentiles and means come from a sample */
} statistics;

/* Returns the statistics of the records from from_ns to to_ns. The caller holds the model's lock, and frees the result
 * with statistics_free. */
statistics *statistics_new(const model *m, int64_t from_ns, int64_t to_ns);
void statistics_free(statistics *s);

#endif
