#include "config.h"

#include "stream_limit.h"

#include "base/time_internal.h"
#include "peer_address.h"
#include "program/program.h"
#include "reader/admission.h"

#include <stdlib.h>

/* How many streams were begun beyond those that the rate has made up for. */
typedef struct bucket {
    double used;
    int64_t at_ns;
} bucket;

struct stream_limit {
    bucket all, buckets[NL_STREAM_OWNERS_MAX];
};

stream_limit *stream_limit_new(void)
{
    stream_limit *l = calloc(1, sizeof *l);
    if (l == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    return l;
}

void stream_limit_free(stream_limit *l)
{
    free(l);
}

static void bucket_refill(bucket *b, int64_t now_ns)
{
    b->used -= (double)(now_ns - b->at_ns) * STREAMS_RATE / (double)NL_NS_PER_SECOND;
    b->used = b->used > 0 ? b->used : 0;
    b->at_ns = now_ns;
}

unsigned stream_limit_owner(const char *peer)
{
    return 1 + (unsigned)peer_address_bucket(peer, NL_STREAM_OWNERS_MAX);
}

bool stream_limit_admit(stream_limit *l, unsigned owner, int64_t now_ns)
{
    bucket *own = &l->buckets[owner - 1];
    bucket_refill(own, now_ns);
    bucket_refill(&l->all, now_ns);
    if (own->used >= STREAMS_BURST || (l->all.used >= ALL_STREAMS_BURST && own->used >= STREAMS_FREE))
        return false;
    own->used++;
    l->all.used++;
    return true;
}
