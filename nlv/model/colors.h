/* The numbers of the colours of hosts, programs and field values. Caller: the model, under its lock. */
#ifndef NLV_COLORS_H
#define NLV_COLORS_H

#include "model/store.h"

typedef struct colors {
    GPtrArray *texts; /* the text of each colour */
    uint16_t *of[3];  /* the colour's number, by color_kind and name; NAMES_NONE: none yet */
} colors;

colors *colors_new(void);
void colors_free(colors *c);

typedef enum colors_mode {
    COLORS_MORE,  /* new names get colours */
    COLORS_AGAIN, /* the store is another one: names keep the colours of their texts */
    COLORS_ANEW,  /* all names get colours again */
} colors_mode;

/* Gives colours to new names, in alphabetical order. */
void colors_assign(colors *c, const store *s, colors_mode mode);

static inline unsigned colors_get(const colors *c, color_kind kind, uint16_t name)
{
    return c->of[kind][name] != NAMES_NONE ? c->of[kind][name] : 0;
}

#endif
