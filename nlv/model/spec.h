/*
 * What is to be taken out of records: a drawing, as numbers. Made once, then only read, by any thread.
 *
 * The events of the drawing are the first names of its store, so that an event's number below event_count is the place
 * of what is to be done with it.
 */
#ifndef NLV_SPEC_H
#define NLV_SPEC_H

#include "requests/drawing.h"
#include "model/names.h"

enum {
    SPEC_LAYERS = 4, /* lifelines that share an event lie in different layers; beyond these one is left out */
    SPEC_IDS = 8,
    SPEC_CHOICES = 4, /* of one id */
    SPEC_ROWS = 1024,
    SPEC_LOADLINES = 8, /* of one event */
    SPEC_NONE = 0xffff,
};

typedef enum color_kind { COLOR_BY_HOST, COLOR_BY_PROG, COLOR_BY_FIELD } color_kind;

typedef struct spec_field {
    char *name;
    size_t size;
} spec_field;

typedef struct spec_lifeline {
    unsigned rows, layer;
    unsigned id_count;
    spec_field ids[SPEC_IDS][SPEC_CHOICES]; /* the first that a record has counts; name NULL behind the last */
    bool again;                             /* an object begins with every first event */
    color_kind color;
    spec_field color_field;
} spec_lifeline;

/*
 * How wrong a host's clock may be, which is kept as loadlines that are not drawn, two of each kind: what is to be added
 * to the host's times, and what that may be wrong by, in nanoseconds. It was measured against the collector's clock;
 * or nlkernel says it, or the sensor of clocks and the library have it from chronyd, or from the kernel.
 */
enum { SPEC_MEASURED, SPEC_CLOCKS = 4, SPEC_CLOCK_LOADLINES = 2 * SPEC_CLOCKS };
typedef struct spec_clock {
    const char *event;
    const char *offset_field; /* NULL: 0, the host takes its clock for right */
    const char *error_field;
    double unit_ns;
} spec_clock;
extern const spec_clock spec_clocks[SPEC_CLOCKS];

/* What an event is in a layer. */
typedef struct spec_step {
    uint16_t lifeline; /* SPEC_NONE: nothing */
    uint16_t row;
} spec_step;

typedef struct spec_event {
    spec_step steps[SPEC_LAYERS];
    unsigned loadline_count;
    uint16_t loadlines[SPEC_LOADLINES];
    uint16_t point; /* SPEC_NONE: none */
} spec_event;

typedef struct spec {
    unsigned layers;
    spec_lifeline *lifelines;
    size_t lifeline_count;
    spec_field *loadlines; /* the field of each */
    size_t loadline_count; /* those that are drawn, then those of clocks */
    size_t drawn_loadlines;
    size_t point_count;
    spec_event *events;
    size_t event_count;
    uint64_t seed;
} spec;

/* Puts the drawing's events first into names, which must be empty. seed is that of keys of objects. */
spec *spec_new(const drawing *d, names *events, uint64_t seed);
void spec_free(spec *s);

/* What an event is in a layer: its lifeline is SPEC_NONE when it is nothing. */
static inline spec_step spec_step_of(const spec *s, uint16_t event, unsigned layer)
{
    return event < s->event_count ? s->events[event].steps[layer] : (spec_step){SPEC_NONE, 0};
}

#endif
