/*
 * The parameters of a request of the page. Each parameter is a table row with its limits (base/option.h). All values
 * come from the network and may be hostile. After query_finish has returned true, the view that the query describes is
 * safe to draw. This module has no state. Any thread may call these functions.
 */
#ifndef NLV_SERVE_QUERY_H
#define NLV_SERVE_QUERY_H

#include "model/request_list.h"
#include "scene/scene.h"

enum {
    QUERY_SIDE_MAX = 8192,      /* maximum width and height of a picture in units */
    QUERY_PIXELS_MAX = 9 << 20, /* maximum number of pixels of a picture, a little more than 3840x2160 */
    QUERY_ROWS_MAX = 500,
    QUERY_TEXT_SIZE = 1000,
    QUERY_COUNT_MAX = 32, /* maximum number of parameters */
};

/* The effect of a request for /track. */
typedef enum track_action {
    TRACK_FIND,
    TRACK_TOGGLE,
    TRACK_PIN,
    TRACK_NEXT,
    TRACK_PREVIOUS,
    TRACK_EXPAND
} track_action;

typedef struct query {
    int64_t from_ns, to_ns;
    int64_t shortest_ns, longest_ns;
    int64_t step_ns; /* time of a record of a request; `place` is the record's place (batch.h) */
    uint64_t place;
    unsigned lifeline;
    unsigned width, height, scale, top;
    unsigned x, y, end_x, end_y;
    unsigned rows;
    unsigned color; /* the color to frame in the legend, plus 1; 0: no color */
    int sort;       /* request_column */
    bool descending, is_dark, is_coarse, only_errors;
    bool has_from, has_to, has_step;
    bool shows_threads;
    int clock;       /* axis_clock */
    unsigned scroll; /* see scene_view */
    unsigned track;  /* the track of `action`; 0: no track */
    int action;      /* track_action */
    char collapsed[TRACK_SET_TEXT_SIZE], expanded[TRACK_SET_TEXT_SIZE],
        pinned[TRACK_SET_TEXT_SIZE]; /* track_set_read */
    char text[QUERY_TEXT_SIZE],
        other[QUERY_TEXT_SIZE]; /* an expression or a search text; the other side of a comparison */
} query;

/* Sets the defaults. */
void query_init(query *q);

/* Sets a parameter from text. Returns false and sets the error if the name is unknown or the value is invalid. */
bool query_set(query *q, const char *name, const char *value);

/* Checks the parameters together. Returns false and sets the error if the picture is too large or the time range is too
 * short. */
bool query_finish(const query *q);

#endif
