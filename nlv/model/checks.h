/*
 * Reports oddities of a log: a single record, impossible times, long gaps, wrong clocks, records that are not in order
 * of time. No state.
 */
#ifndef NLV_CHECKS_H
#define NLV_CHECKS_H

#include "model/store.h"

#include <glib.h>

/*
 * Adds sentences (char *, to be freed with g_free) to notices. in_order: the records came from one file, which should
 * be in order.
 */
void checks_add(const store *s, bool in_order, GPtrArray *notices);

/* Returns a duration such as "1.5 ms", to be freed with g_free. */
char *checks_time_text(double ns);

#endif
