/*
 * Which of a sensor's records a consumer wants: at a rate, by expression, when a field changes, when it crosses a
 * threshold (with hysteresis), when it changes by so many percent. All that is said must hold.
 *
 * Records come in looks: those that a sensor logs at one time. A rate takes looks, whole; what is about a field looks
 * at each thing (each disk, each connection) by itself. Things are told by the event and by the fields that name them:
 * NAME, ID, HOST, URL, LOCAL, PEER, MOUNT or RESOURCE at the end of a field's name.
 */
#ifndef NLAGENT_CONDITION_H
#define NLAGENT_CONDITION_H

#include <netlogger.h>

enum { CONDITION_KEY = 160 };

/* What is asked for, as it came. NULL or NAN: not said. */
typedef struct wish {
    double interval_s; /* 0: every look */
    const char *where;
    const char *field;   /* that the next three are about */
    bool on_change;      /* another value than before */
    double above, below; /* it rises above, or, having done so, falls below */
    double percent;      /* it differs by more than so much from what was sent last */
} wish;

typedef struct condition condition;

/* NULL when the wish is invalid. To be freed with condition_free (NULL is allowed). */
condition *condition_new(const wish *w);
void condition_free(condition *c);

/* Whether a record of the look of that number, which began at look_ns of the monotonic clock, is wanted. */
bool condition_wants(condition *c, const nl_record *record, uint64_t look, int64_t look_ns);

/* The name of the thing that a record is about. */
void condition_key(const nl_record *record, char key[CONDITION_KEY]);

#endif
