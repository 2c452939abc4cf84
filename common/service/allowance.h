/*
 * An allowance that grows with time, such as the number of records that a client may send (max-rate), or the work that
 * a client may cause. An allowance accumulates at most the growth of one second. Only one thread at a time may use an
 * allowance.
 */
#ifndef NETLOGGER_SERVICE_ALLOWANCE_H
#define NETLOGGER_SERVICE_ALLOWANCE_H

#include <netlogger.h>

typedef struct allowance {
    double left; /* the remaining allowance, in records or units of work; negative if it is exceeded */
    int64_t at_ns;
} allowance;

/* Returns an unused allowance that grows by rate per second. */
static inline allowance allowance_new(double rate, int64_t now_ns)
{
    return (allowance){rate, now_ns};
}

/* Adds the growth since the last call, then subtracts `count`. If the rate is 0, the allowance stays 0. */
static inline void allowance_spend(allowance *a, double rate, int64_t now_ns, uint64_t count)
{
    a->left += (double)(now_ns - a->at_ns) * rate / NL_NS_PER_SECOND;
    a->left = (a->left < rate ? a->left : rate) - (double)count;
    if (rate <= 0)
        a->left = 0;
    a->at_ns = now_ns;
}

#endif
