/* What a client may send: a second's worth of records at once, and so much more each second (max-rate). */
#ifndef NETLOGD_ALLOWANCE_H
#define NETLOGD_ALLOWANCE_H

#include <netlogger.h>

typedef struct allowance {
    double left; /* records; below 0: it has sent too much */
    int64_t at_ns;
} allowance;

/* One that was not used, at a rate of records a second. */
static inline allowance allowance_new(double rate, int64_t now_ns)
{
    return (allowance){rate, now_ns};
}

/* Takes records off, after what has been added since. No rate: nothing is owed. */
static inline void allowance_spend(allowance *a, double rate, int64_t now_ns, uint64_t records)
{
    a->left += (double)(now_ns - a->at_ns) * rate / NL_NS_PER_SECOND;
    a->left = (a->left < rate ? a->left : rate) - (double)records;
    if (rate <= 0)
        a->left = 0;
    a->at_ns = now_ns;
}

#endif
