/*
 * Assigns spans to the tracks of a drawing. A place is a program on a host. A lane is a track of a place; its spans
 * nest or follow each other, and never overlap partially. Only one thread at a time may use the places.
 */
#ifndef NETLOGGER_CONVERT_LANES_H
#define NETLOGGER_CONVERT_LANES_H

#include "convert/request_stream.h"

#include <glib.h>

typedef struct lane {
    uint64_t track;    /* number of the lane's track in the output; 0: not written yet */
    int64_t latest_ns; /* start of the span that was added last */
    GArray *ends;      /* int64_t: ends of the latest span and of the spans that enclose it */
} lane;

typedef struct place {
    char *host, *prog; /* "" if the records do not have this name */
    uint64_t process;  /* number of the host, from 1 */
    uint64_t track;    /* number of the place's track in the output; 0: not written yet */
    bool new_host;     /* the place is the first place of its host */
    GPtrArray *lanes;  /* lane */
} place;

typedef struct places places;

places *places_new(void);
void places_free(places *p);

/* Returns the place of a record. Adds a place if it is new. `p` owns the place. */
place *places_find(places *p, const nl_record *record);

/*
 * Puts a span on a lane on which the span fits, and returns the lane. Adds a lane if necessary. `p` owns the lane. Call
 * it for the spans of a request in the order of stream_request_order.
 */
lane *place_find_lane(place *p, int64_t begin_ns, int64_t end_ns);

/*
 * Returns the indexes of a request's spans in the order in which they begin. If two spans begin at the same time, the
 * longer span is first. The caller frees the array.
 */
size_t *stream_request_order(const stream_request *request);

#endif
