#include "config.h"

#include "sensors/socket_states.h"

#include <stddef.h>

#ifdef HAVE_TCP_CLOSE

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sensors/tcp_state.skel.h"

enum { READ_SIZE = 64 << 10 /* twice the size of the kernel's buffer */ };

struct socket_states {
    struct tcp_state_bpf *program;
    _Alignas(struct tcp_state) char bytes[READ_SIZE];
};

void socket_states_free(socket_states *s)
{
    if (s != NULL && s->program != NULL)
        tcp_state_bpf__destroy(s->program);
    free(s);
}

/* Returns a descriptor for one reading of the connections of this network namespace, or -1. */
static int begin_states(const socket_states *s)
{
    union bpf_attr attributes = {0};
    attributes.iter_create.link_fd = (uint32_t)s->program->links.read_states_fd;
    return (int)syscall(SYS_bpf, BPF_ITER_CREATE, &attributes, sizeof attributes);
}

socket_states *socket_states_new(uint16_t port, bool all)
{
    socket_states *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->program = tcp_state_bpf__open();
    if (s->program != NULL) {
        *(volatile uint16_t *)&s->program->rodata->only_port = port;
        *(volatile uint8_t *)&s->program->rodata->all_rows = all;
    }
    if (s->program != NULL && tcp_state_bpf__load(s->program) == 0 && tcp_state_bpf__attach(s->program) >= 0)
        return s;
    socket_states_free(s);
    return NULL;
}

bool socket_states_read(socket_states *s, socket_states_take *take, void *user, uint64_t *count)
{
    s->program->bss->connections = 0;
    int fd = begin_states(s);
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
    *count = s->program->bss->connections;
    return got == 0;
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

bool socket_states_read(socket_states *s, socket_states_take *take, void *user, uint64_t *count)
{
    (void)s, (void)take, (void)user, (void)count;
    return false;
}

#endif
