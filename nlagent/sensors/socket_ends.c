#include "config.h"

#include "sensors/socket_ends.h"

#include <stddef.h>

#ifdef HAVE_TCP_CLOSE

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sensors/tcp_close.skel.h"

struct socket_ends {
    struct tcp_close_bpf *program;
    uint64_t *consumer;       /* page to which this process writes */
    const uint64_t *producer; /* page to which the kernel writes */
    const char *ring; /* the ring after this page, which the kernel maps twice, so that each entry is contiguous */
};

static size_t producer_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE) + 2 * (size_t)TCP_CLOSE_RING_SIZE;
}

static void socket_ends_free(socket_ends *e)
{
    if (e->consumer != NULL) {
        munmap(e->consumer, (size_t)sysconf(_SC_PAGESIZE));
        munmap((void *)(uintptr_t)e->producer, producer_size());
    }
    if (e->program != NULL)
        tcp_close_bpf__destroy(e->program);
    free(e);
}

static bool map_ring(socket_ends *e)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int fd = e->program->maps.ring.map_fd;
    void *consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (consumer == MAP_FAILED)
        return false;
    void *producer = mmap(NULL, producer_size(), PROT_READ, MAP_SHARED, fd, (off_t)page);
    if (producer == MAP_FAILED) {
        munmap(consumer, page);
        return false;
    }
    e->consumer = consumer;
    e->producer = producer;
    e->ring = (const char *)producer + page;
    return true;
}

socket_ends *socket_ends_new(void)
{
    struct stat space;
    socket_ends *e = calloc(1, sizeof *e);
    if (e == NULL || stat("/proc/self/ns/net", &space) != 0) {
        free(e);
        return NULL;
    }
    e->program = tcp_close_bpf__open();
    if (e->program != NULL)
        *(volatile uint32_t *)&e->program->rodata->namespace_inode = (uint32_t)space.st_ino;
    if (e->program != NULL && tcp_close_bpf__load(e->program) == 0 && map_ring(e) &&
        tcp_close_bpf__attach(e->program) >= 0)
        return e;
    socket_ends_free(e);
    return NULL;
}

/* Each entry has a header of 8 bytes with its size and two flags ("BPF ring buffer" in the kernel's documentation). */
bool socket_ends_next(socket_ends *e, struct tcp_close *end)
{
    uint64_t at = *e->consumer;
    bool found = false;
    while (!found && at < __atomic_load_n(e->producer, __ATOMIC_ACQUIRE)) {
        const char *entry = e->ring + (at & (TCP_CLOSE_RING_SIZE - 1));
        uint32_t head = __atomic_load_n((const uint32_t *)(const void *)entry, __ATOMIC_ACQUIRE);
        if ((head & BPF_RINGBUF_BUSY_BIT) != 0)
            break;
        uint32_t size = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
        found = (head & BPF_RINGBUF_DISCARD_BIT) == 0 && size >= sizeof *end;
        if (found)
            memcpy(end, entry + BPF_RINGBUF_HDR_SZ, sizeof *end);
        at += (size + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
        __atomic_store_n(e->consumer, at, __ATOMIC_RELEASE);
    }
    return found;
}

uint64_t socket_ends_missed(const socket_ends *e)
{
    return e->program->bss->missed;
}

#else

socket_ends *socket_ends_new(void)
{
    return NULL;
}

bool socket_ends_next(socket_ends *e, struct tcp_close *end)
{
    (void)e, (void)end;
    return false;
}

uint64_t socket_ends_missed(const socket_ends *e)
{
    (void)e;
    return 0;
}

#endif
