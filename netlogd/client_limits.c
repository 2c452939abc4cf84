#include "config.h"

#include "client_limits.h"

#include "peer_address.h"
#include "reader/admission.h"

enum { TEXT_BUCKETS = 4096 };

/*
 * A leaky bucket. Its content is the amount that was added so far, minus the amount that has drained at the allowed
 * rate.
 */
typedef struct bucket {
    double used; /* content, in streams or bytes */
    int64_t at_ns;
} bucket;

static bucket all_streams, streams[NL_STREAM_OWNERS_MAX], texts[TEXT_BUCKETS];

/* Subtracts from a bucket the amount that has drained since the last call, at `rate` per second. Then adds `use`. */
static void bucket_add(bucket *b, double use, double rate, int64_t now_ns)
{
    b->used += use - (double)(now_ns - b->at_ns) * rate / (double)NL_NS_PER_SECOND;
    b->used = b->used > 0 ? b->used : 0;
    b->at_ns = now_ns;
}

unsigned stream_limit_owner(const char *name)
{
    return 1 + (unsigned)peer_address_bucket(name, NL_STREAM_OWNERS_MAX);
}

bool stream_limit_admit(unsigned owner, int64_t now_ns)
{
    bucket *own = &streams[owner - 1];
    bucket_add(own, 0, STREAMS_RATE, now_ns);
    bucket_add(&all_streams, 0, STREAMS_RATE, now_ns);
    if (own->used >= STREAMS_BURST || (all_streams.used >= ALL_STREAMS_BURST && own->used >= STREAMS_FREE))
        return false;
    own->used++;
    all_streams.used++;
    return true;
}

int64_t text_limit_excess(uint64_t text, uint64_t received)
{
    return (int64_t)text - (int64_t)received * TEXT_RATIO;
}

void text_limit_add(const char *peer, int64_t excess, int64_t now_ns)
{
    bucket_add(&texts[peer_address_bucket(peer, TEXT_BUCKETS)], (double)excess, TEXT_RATE, now_ns);
}

double text_limit_wait_s(const char *peer, int64_t now_ns)
{
    bucket *b = &texts[peer_address_bucket(peer, TEXT_BUCKETS)];
    bucket_add(b, 0, TEXT_RATE, now_ns);
    return b->used > TEXT_BURST ? (b->used - TEXT_BURST) / TEXT_RATE : 0;
}
