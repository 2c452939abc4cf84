/* Assigns color numbers to hosts, programs and field values. Caller: the model, with its lock held. */
#ifndef NLV_COLORS_H
#define NLV_COLORS_H

#include "model/store.h"

typedef struct colors {
    GPtrArray *texts; /* the text that each color represents */
    uint16_t *of[3];  /* color numbers, indexed by color_kind and name; NAMES_NONE: no color yet */
} colors;

colors *colors_new(void);
void colors_free(colors *c);

typedef enum colors_mode {
    COLORS_MORE,  /* assign colors to new names only */
    COLORS_AGAIN, /* assign colors after the store was replaced; names with the same text keep their colors */
    COLORS_ANEW,  /* assign new colors to all names */
} colors_mode;

/* Assigns colors to names, in alphabetical order. */
void colors_assign(colors *c, const store *s, colors_mode mode);

static inline unsigned colors_get(const colors *c, color_kind kind, uint16_t name)
{
    return c->of[kind][name] != NAMES_NONE ? c->of[kind][name] : 0;
}

#endif
