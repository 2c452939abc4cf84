/*
 * An allowance that grows with time, such as the records a client may send (max-rate), or the work it may cause. At
 * most the growth of a second is saved.
 */
#ifndef NETLOGGER_SERVICE_ALLOWANCE_H
#define NETLOGGER_SERVICE_ALLOWANCE_H

#include <netlogger.h>

typedef struct allowance {
    double left; /* in the unit of the rate; below 0: it was exceeded */
    int64_t at_ns;
} allowance;

/* An unused allowance that grows by rate each second. */
static inline allowance allowance_new(double rate, int64_t now_ns)
{
    return (allowance){rate, now_ns};
}

/* Adds the growth since the last call, then subtracts count. With a rate of 0 the allowance stays 0. */
static inline void allowance_spend(allowance *a, double rate, int64_t now_ns, uint64_t count)
{
    a->left += (double)(now_ns - a->at_ns) * rate / NL_NS_PER_SECOND;
    a->left = (a->left < rate ? a->left : rate) - (double)count;
    if (rate <= 0)
        a->left = 0;
    a->at_ns = now_ns;
}

#endif
