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

#include "service/allowance.h"

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

/* A budget for the expressions of all consumers together. */
allowance condition_new_budget(void);

/*
 * Sets *matches to whether the record matches the expression, and subtracts the cost from the budget. A cheap
 * expression is evaluated even if the budget is used up. Returns NL_FAILED if the budget does not suffice.
 */
nl_status condition_match(allowance *budget, const nl_filter *filter, const nl_record *record, bool *matches);

/*
 * Sets *wanted to whether a record of the look of that number, which began at look_ns of the monotonic clock, is
 * wanted. Returns NL_FAILED as condition_match does.
 */
nl_status condition_judge(condition *c, allowance *budget, const nl_record *record, uint64_t look, int64_t look_ns,
                          bool *wanted);

/* The name of the thing that a record is about. */
void condition_key(const nl_record *record, char key[CONDITION_KEY]);

#endif
