#include "config.h"

#include "model/colors.h"

#include <string.h>

enum {
    NAMES_CAPACITY = NAMES_NONE + 1,
    OBJECTS_LOOKED_AT =
        2000000, /* maximum number of objects that nlv examines; with more objects, every name gets a color */
};

colors *colors_new(void)
{
    colors *c = g_new0(colors, 1);
    c->texts = g_ptr_array_new_with_free_func(g_free);
    for (int kind = 0; kind < 3; kind++)
        c->of[kind] = memset(g_new(uint16_t, NAMES_CAPACITY), 0xff, NAMES_CAPACITY * sizeof(uint16_t));
    return c;
}

void colors_free(colors *c)
{
    g_ptr_array_free(c->texts, TRUE);
    for (int kind = 0; kind < 3; kind++)
        g_free(c->of[kind]);
    g_free(c);
}

/* The names that still need a color. */
typedef struct name_set {
    const colors *colors;
    bool *seen[3];
    GArray *fresh; /* fresh_name */
} name_set;

typedef struct fresh_name {
    const char *text;
    uint16_t name;
    uint8_t kind;
} fresh_name;

static void add_name(name_set *w, const store *s, color_kind kind, uint16_t name)
{
    if (w->seen[kind][name] || w->colors->of[kind][name] != NAMES_NONE)
        return;
    w->seen[kind][name] = true;
    const names *texts = kind == COLOR_BY_HOST   ? s->names.hosts
                         : kind == COLOR_BY_PROG ? s->names.progs
                                                 : s->names.colors;
    fresh_name fresh = {names_text(texts, name), name, (uint8_t)kind};
    g_array_append_val(w->fresh, fresh);
}

static gint by_text(gconstpointer a, gconstpointer b)
{
    return strverscmp(((const fresh_name *)a)->text, ((const fresh_name *)b)->text);
}

/* Assigns the next numbers to new names. A name whose text already has a number gets that number. */
static void assign_numbers(colors *c, name_set *w)
{
    g_array_sort(w->fresh, by_text);
    for (guint i = 0; i < w->fresh->len; i++) {
        fresh_name f = g_array_index(w->fresh, fresh_name, i);
        guint number = 0;
        while (number < c->texts->len && strcmp(g_ptr_array_index(c->texts, number), f.text) != 0)
            number++;
        if (number == c->texts->len && number < NAMES_MAX)
            g_ptr_array_add(c->texts, g_strdup(f.text));
        c->of[f.kind][f.name] = (uint16_t)MIN(number, c->texts->len - 1);
    }
    g_array_set_size(w->fresh, 0);
}

/* Adds all names of a kind, without examining objects. Adds only hosts that objects visit. */
static void add_all_names(name_set *w, const store *s, color_kind kind)
{
    const names *texts = kind == COLOR_BY_HOST   ? s->names.hosts
                         : kind == COLOR_BY_PROG ? s->names.progs
                                                 : s->names.colors;
    for (size_t i = 0; i < names_count(texts); i++)
        if (kind != COLOR_BY_HOST || s->visits[i] > 0)
            add_name(w, s, kind, (uint16_t)i);
}

static void want_objects(name_set *w, const store *s, unsigned layer)
{
    color_kind kind = COLOR_BY_HOST;
    for (size_t i = s->spec->lifeline_count; i-- > 0;)
        if (s->spec->lifelines[i].layer == layer)
            kind = s->spec->lifelines[i].color;
    const objects *o = &s->objects[layer];
    if (o->count > OBJECTS_LOOKED_AT) {
        add_all_names(w, s, kind);
        return;
    }
    for (uint32_t i = 0; i < o->count; i++)
        if (store_last_step(s, i, layer) != STORE_NONE)
            add_name(w, s, kind, store_color(s, i, layer));
}

/* Adds the names of each object, because the lifelines of a layer may have different color fields. */
static void add_each_object(name_set *w, const store *s, unsigned layer)
{
    const objects *o = &s->objects[layer];
    for (uint32_t i = 0; i < o->count; i++) {
        uint32_t last = store_last_step(s, i, layer);
        if (last >= s->count)
            continue;
        spec_step what = spec_step_of(s->spec, store_event(s, last), layer);
        if (what.lifeline != SPEC_NONE)
            add_name(w, s, s->spec->lifelines[what.lifeline].color, store_color(s, i, layer));
    }
}

static bool is_mixed(const spec *s, unsigned layer)
{
    bool kinds[3] = {false};
    for (size_t i = 0; i < s->lifeline_count; i++)
        if (s->lifelines[i].layer == layer)
            kinds[s->lifelines[i].color] = true;
    return kinds[0] + kinds[1] + kinds[2] > 1;
}

/* Adds the hosts of loadlines and points. Strips need no colors, because they do not use the colors of their hosts. */
static void want_hosts(name_set *w, const store *s)
{
    for (size_t i = 0; i < s->spec->drawn_loadlines; i++)
        for (size_t j = 0; j < s->loadlines[i].count && !store_has_strips(s, i); j++)
            add_name(w, s, COLOR_BY_HOST, s->loadlines[i].hosts[j].host);
    for (size_t host = 0; host <= NAMES_NONE; host++)
        if (s->point_hosts[host])
            add_name(w, s, COLOR_BY_HOST, (uint16_t)host);
}

void colors_assign(colors *c, const store *s, colors_mode mode)
{
    name_set w = {.colors = c, .fresh = g_array_new(FALSE, FALSE, sizeof(fresh_name))};
    for (int kind = 0; kind < 3; kind++) {
        w.seen[kind] = g_new0(bool, NAMES_CAPACITY);
        if (mode != COLORS_MORE)
            memset(c->of[kind], 0xff, NAMES_CAPACITY * sizeof *c->of[kind]);
    }
    if (mode == COLORS_ANEW)
        g_ptr_array_set_size(c->texts, 0);
    for (unsigned layer = 0; layer < s->spec->layers; layer++)
        if (is_mixed(s->spec, layer))
            add_each_object(&w, s, layer);
        else
            want_objects(&w, s, layer);
    assign_numbers(c, &w);
    want_hosts(&w, s);
    assign_numbers(c, &w);
    for (int kind = 0; kind < 3; kind++)
        g_free(w.seen[kind]);
    g_array_free(w.fresh, TRUE);
}
