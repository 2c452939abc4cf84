/*
 * Measures the cost of reading the cycle counter in the same loop, without a log. This is the minimum cost of an event
 * with a timestamp.
 *
 * With -DSIDE_BYTES, the measurement includes the cost of storing an event's bytes in memory as large as a log's ring,
 * used repeatedly. The first call in each page (one call in 89) waits for an address translation. This delay is visible
 * from p99 to p99.9, mainly in virtual machines.
 */
#include "measure.h"

#ifdef SIDE_BYTES
#include <sys/mman.h>

enum {
    RING = 1024 * 1024, /* the default size of a log's ring */
    EVENT = 46,         /* size in the ring of an event of the other sides */
};

static char *ring;
static size_t head;
static const char bytes[EVENT - sizeof(uint64_t)] = "whatever is in an event";
#else
static volatile uint64_t last;
#endif

void side_open(const char *path)
{
    (void)path;
#ifdef SIDE_BYTES
    ring = (char *)mmap(NULL, RING + EVENT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ring == MAP_FAILED)
        abort();
    memset(ring, 0, RING + EVENT);
#endif
}

inline void side_write(uint64_t i)
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

uint64_t side_close(void)
{
    return 0;
}

int main(int argc, char **argv)
{
    return measure_main(argc, argv);
}
