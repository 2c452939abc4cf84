/*
 * Selects the records that a subscription gets: by an interval, by an expression, or by a field. The field must change,
 * cross a threshold (with hysteresis) or change by a percentage. A record must meet all conditions of the subscription.
 *
 * A measurement is the group of records that a sensor logs at the same time. The module selects measurements by the
 * interval without reading their records. Conditions on a field apply separately to each object, such as a disk or a
 * connection. The event and the fields whose names end in .NAME, .ID, .HOST, .URL, .LOCAL, .PEER, .MOUNT or .RESOURCE
 * identify the object.
 *
 * A condition owns the last value of each object. Not thread-safe.
 */
#ifndef NLAGENT_CONDITION_H
#define NLAGENT_CONDITION_H

#include "service/allowance.h"

#include <netlogger.h>

enum { CONDITION_KEY_SIZE = 160 };

/* A client's conditions. NULL or NAN: the client has not set the condition. */
typedef struct condition_options {
    double interval_s; /* 0: every measurement */
    const char *where;
    const char *field;   /* the field that the next four members examine */
    bool on_change;      /* the value differs from the previous value */
    double above, below; /* the value rises above `above`, or later falls below `below` */
    double percent;      /* the value differs from the last value sent by more than this percentage */
} condition_options;

typedef struct condition condition;

/* Returns a condition, which the caller frees. Returns NULL and sets the error if the options are invalid. */
condition *condition_new(const condition_options *o);
void condition_free(condition *c); /* c may be NULL */

/* Returns a full budget, which the expressions of all clients share. */
allowance condition_new_budget(void);

/*
 * Sets *matches to whether the record matches the expression, and subtracts the cost from the budget. Evaluates a cheap
 * expression even if the budget is used up. Otherwise, returns NL_FAILED if the budget is too small, or if the
 * evaluation takes too many steps (NL_FILTER_STEPS_MAX).
 */
nl_status condition_match(allowance *budget, const nl_filter *filter, const nl_record *record, bool *matches);

/* Returns whether the interval selects a measurement that began at start_ns, on the monotonic clock. */
bool condition_selects(condition *c, uint64_t measurement, int64_t start_ns);

/* Returns whether the result of condition_judge depends on the fields of a record. */
bool condition_needs_fields(const condition *c);

/* Sets *wanted to whether a record meets all conditions except the interval. Fails if condition_match fails. */
nl_status condition_judge(condition *c, allowance *budget, const nl_record *record, bool *wanted);

/* Writes the name of the object that a record describes. */
void condition_key(const nl_record *record, char key[CONDITION_KEY_SIZE]);

/* Returns whether a field is part of the name of the object. */
bool condition_is_key(nl_string field_name);

#endif
