#include "config.h"

#include "model/spec.h"

#include "base/clock_quality.h"
#include "clocks/messages.h"
#include "model/event_order.h"

#include <string.h>

const spec_clock spec_clocks[SPEC_CLOCKS] = {
    [SPEC_MEASURED] = {"ClockOffset", "CLOCK.OFFSET", "CLOCK.ERROR", 1000},
    {"NetLogger.Clock", NULL, "ERROR.NS", 1},
    {"ClockTracking", NULL, "CLOCK.ERROR", 1000},
    {"ClockKernel", NULL, "CLOCK.ERROR", 1000},
};

static spec_field field_of(const char *name)
{
    return (spec_field){g_strdup(name), strlen(name)};
}

static spec_event *event_of(spec *s, names *events, const char *name)
{
    uint16_t number = names_put(events, (nl_string){name, strlen(name)});
    if (number >= NAMES_MAX)
        return NULL;
    while (s->event_count <= number) {
        s->events = g_renew(spec_event, s->events, s->event_count + 1);
        spec_event fresh = {.point = SPEC_NONE};
        for (unsigned layer = 0; layer < SPEC_LAYERS; layer++)
            fresh.steps[layer].lifeline = SPEC_NONE;
        s->events[s->event_count++] = fresh;
    }
    return &s->events[number];
}

/*
 * Returns the first layer in which no event of the lifeline has a step yet, or SPEC_LAYERS if there is no such layer.
 */
static unsigned free_layer(spec *s, names *events, const drawing_lifeline *l)
{
    unsigned layer = 0;
    for (char **event = l->events; *event != NULL && layer < SPEC_LAYERS; event++) {
        const spec_event *e = event_of(s, events, *event);
        if (e != NULL && e->steps[layer].lifeline != SPEC_NONE) {
            layer++;
            event = l->events - 1;
        }
    }
    return layer;
}

static void add_choices(spec_field choices[SPEC_CHOICES], const char *id)
{
    char **names = g_strsplit(id, "|", -1);
    for (guint i = 0, count = 0; names[i] != NULL && count < SPEC_CHOICES; i++)
        if (*names[i] != '\0')
            choices[count++] = field_of(names[i]);
    g_strfreev(names);
}

static spec_order *order_of(const drawing_lifeline *l, unsigned rows)
{
    if (rows > DRAWING_ORDERED_MAX || rows < g_strv_length(l->events))
        return NULL;
    spec_order *o = g_new0(spec_order, 1);
    int end_of[DRAWING_ORDERED_MAX];
    uint64_t all = rows == DRAWING_ORDERED_MAX ? UINT64_MAX : (UINT64_C(1) << rows) - 1;
    event_order_pairs(l->events, rows, o->begin_of, end_of);
    o->last = all;
    for (unsigned row = 0; row < rows; row++) {
        o->after[row] = l->after != NULL ? l->after[row] : (UINT64_C(1) << row) - 1;
        o->first |= (uint64_t)(o->after[row] == 0) << row;
        o->last &= ~o->after[row];
        o->begins |= (uint64_t)(end_of[row] != EVENT_ORDER_NONE) << row;
        for (unsigned cause = 0; cause < rows; cause++) {
            o->children[cause] |= (uint64_t)(l->surely != NULL && (l->surely[row] >> cause & 1)) << row;
            o->received[cause] |= (uint64_t)messages_is_pair(l->events[cause], l->events[row]) << row;
        }
    }
    uint64_t alone = o->first & o->last;
    o->first &= ~alone;
    o->last &= ~alone;
    return o;
}

static void add_lifeline(spec *s, names *events, const drawing_lifeline *l, uint16_t number)
{
    spec_lifeline *own = &s->lifelines[number];
    own->rows = MIN(g_strv_length(l->events), SPEC_ROWS);
    own->layer = free_layer(s, events, l);
    if (own->layer == SPEC_LAYERS)
        own->layer = 0; /* no layer is free: draw this lifeline without the events that belong to other lifelines */
    s->layers = MAX(s->layers, own->layer + 1);
    for (; own->id_count < SPEC_IDS && l->ids[own->id_count] != NULL; own->id_count++)
        add_choices(own->ids[own->id_count], l->ids[own->id_count]);
    own->again = l->again;
    own->order = order_of(l, own->rows);
    own->color = g_ascii_strcasecmp(l->color, "HOST") == 0   ? COLOR_BY_HOST
                 : g_ascii_strcasecmp(l->color, "PROG") == 0 ? COLOR_BY_PROG
                                                             : COLOR_BY_FIELD;
    own->color_field = field_of(l->color);
    own->by_log = strcmp(l->color, DRAWING_COLOR_LOG) == 0;
    for (unsigned row = 0; row < own->rows; row++) {
        spec_event *e = event_of(s, events, l->events[row]);
        if (e != NULL && e->steps[own->layer].lifeline == SPEC_NONE)
            e->steps[own->layer] = (spec_step){number, (uint16_t)row};
    }
}

spec *spec_new(const drawing *d, names *events, uint64_t seed)
{
    spec *s = g_new0(spec, 1);
    s->layers = 1;
    s->seed = seed;
    s->splits_unnamed = drawing_splits_unnamed(d);
    s->lifeline_count = d->lifelines->len;
    s->lifelines = g_new0(spec_lifeline, s->lifeline_count + 1);
    for (guint i = 0; i < d->lifelines->len; i++)
        add_lifeline(s, events, g_ptr_array_index(d->lifelines, i), (uint16_t)i);
    s->drawn_loadlines = d->loadlines->len;
    s->loadline_count = s->drawn_loadlines + SPEC_HIDDEN_LOADLINES;
    s->loadlines = g_new0(spec_field, s->loadline_count + 1);
    for (unsigned i = 0; i < SPEC_HIDDEN_LOADLINES; i++)
        s->loadlines[s->drawn_loadlines + i] = field_of(i < SPEC_MACHINE    ? spec_clocks[i / 2].error_field
                                                        : i == SPEC_MACHINE ? NL_CLOCK_MACHINE
                                                                            : "dur");
    for (guint i = 0; i < d->loadlines->len; i++) {
        const drawing_loadline *l = g_ptr_array_index(d->loadlines, i);
        spec_event *e = event_of(s, events, l->event);
        s->loadlines[i] = field_of(l->field);
        if (e != NULL && e->loadline_count < SPEC_LOADLINES)
            e->loadlines[e->loadline_count++] = (uint16_t)i;
    }
    s->point_count = d->points->len;
    for (guint i = 0; i < d->points->len; i++) {
        spec_event *e = event_of(s, events, ((drawing_point *)g_ptr_array_index(d->points, i))->event);
        if (e != NULL)
            e->point = (uint16_t)i;
    }
    for (guint i = 0; i < d->quiet->len; i++)
        event_of(s, events, g_ptr_array_index(d->quiet, i));
    return s;
}

void spec_free(spec *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->lifeline_count; i++) {
        for (unsigned id = 0; id < s->lifelines[i].id_count; id++)
            for (unsigned choice = 0; choice < SPEC_CHOICES; choice++)
                g_free(s->lifelines[i].ids[id][choice].name);
        g_free(s->lifelines[i].color_field.name);
        g_free(s->lifelines[i].order);
    }
    for (size_t i = 0; i < s->loadline_count; i++)
        g_free(s->loadlines[i].name);
    g_free(s->lifelines);
    g_free(s->loadlines);
    g_free(s->events);
    g_free(s);
}
