/*
 * No log: what reading the counter costs in the same loop, below which no event with a time of its own can come.
 *
 * With -DSIDE_BYTES also what an event's bytes cost, when all there is to do is to store them: in memory as large as a
 * log's ring, gone through again and again. Each page of it that the processor does not know the place of any more
 * makes the call wait that meets it first, one in 89: that is in p99 to p99.9, on virtual machines above all.
 */
#include "measure.h"

#ifdef SIDE_BYTES
#include <sys/mman.h>

enum {
    RING = 1024 * 1024, /* a log's, unless told otherwise */
    EVENT = 46,         /* what NL_EVENT puts into it for the event of the other sides */
};

static char *ring;
static size_t head;
static const char bytes[EVENT - sizeof(uint64_t)] = "whatever is in an event";
#else
static volatile uint64_t last;
#endif

static void side_open(const char *path)
{
    (void)path;
#ifdef SIDE_BYTES
    ring = (char *)mmap(NULL, RING + EVENT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ring == MAP_FAILED)
        abort();
    memset(ring, 0, RING + EVENT);
#endif
}

static inline void one(uint64_t i)
{
    (void)i;
#ifdef SIDE_BYTES
    uint64_t ticks = __rdtsc();
    char *at = ring + head % RING;
    memcpy(at, &ticks, sizeof ticks);
    memcpy(at + sizeof ticks, bytes, sizeof bytes);
    head += EVENT;
#else
    last = __rdtsc();
#endif
}

static uint64_t side_close(void)
{
    return 0;
}

int main(int argc, char **argv)
{
    return measure_main(argc, argv);
}
