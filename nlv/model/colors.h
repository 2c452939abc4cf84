/* Which number in the row of colours a host, a program, a field's value has. */
#ifndef NLV_COLORS_H
#define NLV_COLORS_H

#include "model/store.h"

typedef struct colors {
    GPtrArray *texts; /* of each colour */
    uint16_t *of[3];  /* by color_kind and name: its number; NAMES_NONE: none yet */
} colors;

colors *colors_new(void);
void colors_free(colors *c);

typedef enum colors_mode {
    COLORS_MORE,  /* what has none yet gets one */
    COLORS_AGAIN, /* likewise, but names may have other numbers now: they keep the colours of their texts */
    COLORS_ANEW,  /* as if none had any */
} colors_mode;

/* Gives numbers to what has none yet, all that are new by name. */
void colors_assign(colors *c, const store *s, colors_mode mode);

static inline unsigned colors_get(const colors *c, color_kind kind, uint16_t name)
{
    return c->of[kind][name] != NAMES_NONE ? c->of[kind][name] : 0;
}

#endif
