#include "config.h"

#include "sensors/socket_states.h"

#include <stddef.h>

#ifdef HAVE_TCP_CLOSE

#include "base/monotonic.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sensors/tcp_state.skel.h"
#include "sensors/tcp_used.skel.h"

enum { READ_SIZE = 64 << 10 /* twice the size of the kernel's buffer */ };

#define COMPLETE_NS (2 * NL_NS_PER_SECOND)

struct socket_states {
    struct tcp_state_bpf *plain;
    struct tcp_used_bpf *marked;     /* instead of `plain`, if the kernel has the hooks */
    int all_link, marked_link;       /* the iterators */
    volatile __u64 *examined;        /* in the memory of the BPF program */
    const volatile __s64 *opened;    /* in the memory of the BPF program; only with marks */
    int64_t complete_ns;             /* time of the last complete reading; 0 before it */
    int64_t counted, counted_opened; /* `examined` in this reading, and `opened` then */
    _Alignas(struct tcp_state) char bytes[READ_SIZE];
};

void socket_states_free(socket_states *s)
{
    if (s != NULL && s->plain != NULL)
        tcp_state_bpf__destroy(s->plain);
    if (s != NULL && s->marked != NULL)
        tcp_used_bpf__destroy(s->marked);
    free(s);
}

static int call_bpf(int command, union bpf_attr *attributes)
{
    return (int)syscall(SYS_bpf, command, attributes, sizeof *attributes);
}

/* Attaches the iterator over the marks, which needs the map's descriptor. */
static int attach_read_marked(const struct tcp_used_bpf *program)
{
    union bpf_iter_link_info map = {.map.map_fd = (uint32_t)program->maps.marks.map_fd};
    union bpf_attr attributes = {0};
    attributes.link_create.prog_fd = (uint32_t)program->progs.read_marked.prog_fd;
    attributes.link_create.attach_type = BPF_TRACE_ITER;
    attributes.link_create.iter_info = (uintptr_t)&map;
    attributes.link_create.iter_info_len = sizeof map;
    return call_bpf(BPF_LINK_CREATE, &attributes);
}

/* Attaches the hooks before the iterators, so that no change is missed between a reading and the first hook. */
static bool open_marked(socket_states *s, uint16_t port)
{
    struct stat space;
    struct tcp_used_bpf *p = stat("/proc/self/ns/net", &space) == 0 ? tcp_used_bpf__open() : NULL;
    if (p == NULL)
        return false;
    s->marked = p;
    *(volatile uint16_t *)&p->rodata->only_port = port;
    *(volatile uint32_t *)&p->rodata->namespace_inode = (uint32_t)space.st_ino;
    if (tcp_used_bpf__load(p) == 0 && tcp_used_bpf__on_send__attach(p) > 0 && tcp_used_bpf__on_segment__attach(p) > 0 &&
        tcp_used_bpf__on_state__attach(p) > 0 && tcp_used_bpf__read_all__attach(p) > 0 &&
        (p->links.read_marked_fd = attach_read_marked(p)) > 0) {
        s->all_link = p->links.read_all_fd;
        s->marked_link = p->links.read_marked_fd;
        s->examined = &p->bss->examined;
        s->opened = &p->bss->opened;
        return true;
    }
    tcp_used_bpf__destroy(p);
    s->marked = NULL;
    return false;
}

static bool open_plain(socket_states *s, uint16_t port, bool all)
{
    struct tcp_state_bpf *p = s->plain = tcp_state_bpf__open();
    if (p == NULL)
        return false;
    *(volatile uint16_t *)&p->rodata->only_port = port;
    *(volatile uint8_t *)&p->rodata->all_rows = all;
    if (tcp_state_bpf__load(p) != 0 || tcp_state_bpf__read_all__attach(p) <= 0)
        return false;
    s->all_link = p->links.read_all_fd;
    s->examined = &p->bss->examined;
    return true;
}

socket_states *socket_states_new(uint16_t port, bool all)
{
    socket_states *s = calloc(1, sizeof *s);
    if (s != NULL && ((!all && open_marked(s, port)) || open_plain(s, port, all)))
        return s;
    socket_states_free(s);
    return NULL;
}

/* Reads the rows of one iterator. */
static bool read_rows(socket_states *s, int link, socket_states_take *take, void *user)
{
    union bpf_attr attributes = {0};
    attributes.iter_create.link_fd = (uint32_t)link;
    int fd = call_bpf(BPF_ITER_CREATE, &attributes);
    if (fd < 0)
        return false;
    size_t held = 0; /* bytes of an incomplete row */
    ssize_t got;
    while ((got = read(fd, s->bytes + held, sizeof s->bytes - held)) > 0 ||
           (got < 0 && (errno == EINTR || errno == EAGAIN))) {
        size_t size = held + (size_t)(got > 0 ? got : 0), at = 0;
        for (; size - at >= sizeof(struct tcp_state); at += sizeof(struct tcp_state))
            take(user, (const struct tcp_state *)(const void *)(s->bytes + at));
        held = size - at;
        memmove(s->bytes, s->bytes + at, held);
    }
    close(fd);
    return got == 0;
}

bool socket_states_read(socket_states *s, socket_states_take *take, void *user, uint64_t *count, uint64_t *examined)
{
    int64_t now_ns = nl_monotonic_ns(), opened = s->marked != NULL ? *s->opened : 0;
    bool complete = s->marked == NULL || s->complete_ns == 0 || now_ns - s->complete_ns >= COMPLETE_NS;
    *s->examined = 0;
    if (!read_rows(s, complete ? s->all_link : s->marked_link, take, user))
        return false;
    *examined = *s->examined;
    if (complete) {
        s->complete_ns = now_ns;
        s->counted = (int64_t)*examined;
        s->counted_opened = opened;
    }
    int64_t now_open = s->counted + opened - s->counted_opened;
    *count = now_open > 0 ? (uint64_t)now_open : 0;
    return true;
}

#else

socket_states *socket_states_new(uint16_t port, bool all)
{
    (void)port, (void)all;
    return NULL;
}

void socket_states_free(socket_states *s)
{
    (void)s;
}

bool socket_states_read(socket_states *s, socket_states_take *take, void *user, uint64_t *count, uint64_t *examined)
{
    (void)s, (void)take, (void)user, (void)count, (void)examined;
    return false;
}

#endif
