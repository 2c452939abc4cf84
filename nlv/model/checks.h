/*
 * Reports anomalies of a log, such as long gaps, wrong clocks, other time zones, or records out of order. Also reports
 * events that an inferred drawing does not show. This module has no state.
 */
#ifndef NLV_CHECKS_H
#define NLV_CHECKS_H

#include "model/store.h"

#include <glib.h>

/*
 * Appends a sentence to `notices` for each anomaly. `d` is the drawing of the store's spec. The caller frees the
 * sentences with g_free. If `in_order` is true, the records came from one file, which should be in order of time.
 */
void checks_add(const store *s, const drawing *d, bool in_order, GPtrArray *notices);

/* A gap without records between two times. */
typedef struct checks_gap {
    int64_t from_ns, to_ns; /* times of the last record before the gap and of the first record after it */
    bool is_end_busier;     /* the records after the gap cover their time more evenly than the records before the gap */
} checks_gap;

/* Finds a gap without records that covers at least a minute and 90 % of the log's time. Returns false if the log has no
 * such gap or fewer than 10 records. */
bool checks_find_gap(const store *s, checks_gap *gap);

/* Returns a duration as text, such as "1.5 ms". The caller frees it with g_free. */
char *checks_time_text(double ns);

#endif
