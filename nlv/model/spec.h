/*
 * A spec is a drawing compiled to numbers. A spec specifies the data to extract from records. A spec is constant, and
 * any thread may read it.
 *
 * The names of the drawing's events are the first names in the store, so that an event's number is its index in
 * `events`.
 */
#ifndef NLV_SPEC_H
#define NLV_SPEC_H

#include "requests/drawing.h"
#include "model/names.h"

enum {
    SPEC_LAYERS = 4, /* maximum number of lifelines that share an event; each has a different layer */
    SPEC_IDS = 8,
    SPEC_CHOICES = 4, /* maximum number of alternative names of an ID field */
    SPEC_ROWS = 1024,
    SPEC_LOADLINES = 32, /* maximum number of loadlines of an event */
    SPEC_NONE = 0xffff,
};

typedef enum color_kind { COLOR_BY_HOST, COLOR_BY_PROG, COLOR_BY_FIELD } color_kind;

typedef struct spec_field {
    char *name;
    size_t size;
} spec_field;

/* The known order of a lifeline's rows (event_order.h). Sets of rows have a bit for each row. */
typedef struct spec_order {
    uint64_t after[DRAWING_ORDERED_MAX]; /* for each row, the rows that come before it */
    uint64_t
        children[DRAWING_ORDERED_MAX]; /* the rows that this row certainly causes, because they name it as parent */
    uint64_t received[DRAWING_ORDERED_MAX]; /* the rows on another host that receive the message of this row */
    int begin_of[DRAWING_ORDERED_MAX]; /* the row that begins the span that this row ends; -1: this row ends no span */
    uint64_t begins;                   /* rows that begin a span */
    uint64_t first, last; /* first: rows that only precede other rows; last: rows that only follow other rows */
} spec_order;

typedef struct spec_lifeline {
    unsigned rows, layer;
    unsigned id_count;
    spec_field ids[SPEC_IDS][SPEC_CHOICES]; /* alternative ID fields; nlv uses the first field that a record has;
                                               NULL-terminated */
    bool again;                             /* every occurrence of the first event begins a new object */
    spec_order *order;                      /* NULL: each event comes after all events listed before it */
    color_kind color;
    spec_field color_field;
    bool by_log; /* the color is the name of the log, and equal IDs in different logs are different objects */
} spec_lifeline;

/*
 * Loadlines that nlv does not draw: the durations of records, and the errors of hosts' clocks. Each kind of clock
 * record has two loadlines: the nanoseconds to add to the host's times, and the uncertainty of this number. The kinds
 * are the collector's measurements, values from nlkernel, and values from chronyd or the kernel, which the clock sensor
 * and the library log.
 */
enum {
    SPEC_MEASURED,
    SPEC_CLOCKS = 4,
    SPEC_MACHINE = 2 * SPEC_CLOCKS, /* a hash of the machine that has the clock */
    SPEC_DURATION, /* durations in nanoseconds, indexed by event instead of host; negative if the span begins at the
                      record's time */
    SPEC_HIDDEN_LOADLINES,
};
typedef struct spec_clock {
    const char *event;
    const char *offset_field; /* NULL: the offset is 0 */
    const char *error_field;
    double unit_ns;
} spec_clock;
extern const spec_clock spec_clocks[SPEC_CLOCKS];

/* The step of an event in a layer. */
typedef struct spec_step {
    uint16_t lifeline; /* SPEC_NONE: the event has no step in this layer */
    uint16_t row;
} spec_step;

typedef struct spec_event {
    spec_step steps[SPEC_LAYERS];
    unsigned loadline_count;
    uint16_t loadlines[SPEC_LOADLINES];
    uint16_t point; /* SPEC_NONE: the event is not a point */
} spec_event;

typedef struct spec {
    unsigned layers;
    spec_lifeline *lifelines;
    size_t lifeline_count;
    spec_field *loadlines; /* the field of each loadline */
    size_t loadline_count; /* the drawn loadlines come first, then the loadlines that nlv does not draw */
    size_t drawn_loadlines;
    size_t point_count;
    spec_event *events;
    size_t event_count;
    uint64_t seed;
    bool splits_unnamed; /* see drawing_splits_unnamed */
} spec;

/* Compiles a drawing. Adds the drawing's events to `events`, which must be empty. `seed` is the seed of the keys of
 * objects. */
spec *spec_new(const drawing *d, names *events, uint64_t seed);
void spec_free(spec *s);

/* Returns the step of an event in a layer. The step's lifeline is SPEC_NONE if the event is in no lifeline. */
static inline spec_step spec_step_of(const spec *s, uint16_t event, unsigned layer)
{
    return event < s->event_count ? s->events[event].steps[layer] : (spec_step){SPEC_NONE, 0};
}

#endif
