/*
 * What is odd about a log as a whole, so that who looks at it need not wonder: a single record, times that cannot be,
 * a long stretch of nothing, clocks that are wrong or that nothing keeps right, records out of order.
 */
#ifndef NLV_CHECKS_H
#define NLV_CHECKS_H

#include "model/store.h"

#include <glib.h>

/* Adds sentences (char *, to be freed with g_free) to notices. in_order: the records came from one file, which ought to
 * be in order. */
void checks_add(const store *s, bool in_order, GPtrArray *notices);

/* "1.5 ms": to be freed with g_free. */
char *checks_time_text(double ns);

#endif
