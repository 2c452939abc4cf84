#include "config.h"

#include "text_limit.h"

#include "base/time_internal.h"
#include "peer_address.h"
#include "program/program.h"

#include <stdlib.h>

enum { TEXT_BUCKETS = 4096 };

typedef struct text_bucket {
    double used; /* bytes */
    int64_t at_ns;
} text_bucket;

struct text_limit {
    text_bucket buckets[TEXT_BUCKETS];
};

text_limit *text_limit_new(void)
{
    text_limit *l = calloc(1, sizeof *l);
    if (l == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    return l;
}

void text_limit_free(text_limit *l)
{
    free(l);
}

int64_t text_limit_excess(uint64_t text, uint64_t received)
{
    return (int64_t)text - (int64_t)received * TEXT_RATIO;
}

static void drain_bucket(text_bucket *b, double excess, int64_t now_ns)
{
    b->used += excess - (double)(now_ns - b->at_ns) * TEXT_RATE / (double)NL_NS_PER_SECOND;
    b->used = b->used > 0 ? b->used : 0;
    b->at_ns = now_ns;
}

void text_limit_add(text_limit *l, const char *peer, int64_t excess, int64_t now_ns)
{
    drain_bucket(&l->buckets[peer_address_bucket(peer, TEXT_BUCKETS)], (double)excess, now_ns);
}

double text_limit_wait_s(text_limit *l, const char *peer, int64_t now_ns)
{
    text_bucket *b = &l->buckets[peer_address_bucket(peer, TEXT_BUCKETS)];
    drain_bucket(b, 0, now_ns);
    return b->used > TEXT_BURST ? (b->used - TEXT_BURST) / TEXT_RATE : 0;
}
