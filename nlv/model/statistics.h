/* What a stretch of time holds: how many records of each event, how long each segment of lifelines took, loadlines. */
#ifndef NLV_STATISTICS_H
#define NLV_STATISTICS_H

#include "model/model.h"

typedef struct segment_statistics {
    size_t lifeline;
    unsigned from, to; /* rows */
    size_t count;      /* of those that end in the stretch */
    double least_ns, p50_ns, p90_ns, p99_ns, most_ns;
} segment_statistics;

typedef struct loadline_statistics {
    size_t loadline;
    uint16_t host;
    size_t count;
    double least, mean, most;
} loadline_statistics;

typedef struct event_count {
    uint16_t event;
    size_t count;
} event_count;

typedef struct statistics {
    size_t records;
    GArray *segments;  /* segment_statistics, by lifeline and rows */
    GArray *loadlines; /* loadline_statistics */
    GArray *events;    /* event_count, the most frequent first */
    bool sampled;      /* there are so many that percentiles and means are those of a part, evenly chosen */
} statistics;

/* Of the records from from_ns to to_ns. The model is locked. */
statistics *statistics_new(const model *m, int64_t from_ns, int64_t to_ns);
void statistics_free(statistics *s);

#endif
