/*
 * The tracks of a drawing of spans. A place is a program on a host; its lanes hold spans that nest or follow each
 * other. One thread at a time.
 */
#ifndef NETLOGGER_CONVERT_LANES_H
#define NETLOGGER_CONVERT_LANES_H

#include "convert/request_stream.h"

#include <glib.h>

typedef struct lane {
    uint64_t track;    /* number in the output; 0: not written yet */
    int64_t latest_ns; /* the latest begin of a span */
    GArray *ends;      /* int64_t: of the spans that enclose the latest one, and of it */
} lane;

typedef struct place {
    char *host, *prog; /* "": the records name none */
    uint64_t process;  /* number of the host, from 1 */
    uint64_t track;    /* number in the output; 0: not written yet */
    bool new_host;     /* this is the first place of its host */
    GPtrArray *lanes;  /* lane */
} place;

typedef struct places places;

places *places_new(void);
void places_free(places *p);

/* Returns the place of a record; it belongs to p. */
place *places_find(places *p, const nl_record *record);

/* Returns a lane for a span; it belongs to p. Call it in the order of stream_request_order for the spans of a request.
 */
lane *place_find_lane(place *p, int64_t begin_ns, int64_t end_ns);

/* Returns the indices of a request's spans: by begin, and the longer one of two first. The caller frees them. */
size_t *stream_request_order(const stream_request *request);

#endif
