/*
 * Reports the socket calls of the chosen processes on TCP connections and, since Linux 6.3, on Unix sockets. Also
 * reports their DNS messages over UDP. An event contains the time, the thread, the connection, the position in the
 * stream of bytes, and the first bytes of the data. For HTTP/2, the events instead contain the heads of all frames and
 * the whole frames with headers, because headers refer to earlier headers of the connection.
 *
 * There are three groups of programs. nlkernel loads the third group and one of the first two.
 * - Since Linux 6.3, tracepoints report the calls on sockets (on_send, on_receive), without cost for other calls.
 * - Before Linux 6.3, the programs use the tracepoints of system calls (on_enter, on_exit), which run at every system
 *   call of the machine. These programs therefore first check the number of the call, and then the process.
 * - If a process both receives requests and sends calls, the waits and the signals of its threads decide which request
 *   causes a call (on_waking, on_wait). nlkernel attaches these programs only while they are necessary, because on_wait
 *   makes every system call of the machine slower.
 *
 * Since Linux 6.2, a program can declare the type of a pointer to the verifier (bpf_rdonly_cast). The program then
 * reads memory directly, instead of calling a function for each member. The shared functions have a parameter `cast`, a
 * constant in each program. If `cast` is true, GET reads memory directly; otherwise, GET calls BPF_CORE_READ.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <asm/unistd.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "trace.h"

enum {
    IPV4 = 2,
    IPV6 = 10,
    UNIX = 1,
    TCP = 6,
    UDP = 17,
    IN_PROGRESS = 115,
    PEEK = 2,
    FILE_KIND = 0170000,
    PIPE_KIND = 0010000,
    SOCKET_KIND = 0140000,
    ESTABLISHED = 1,
    SYN_SENT = 2,
    TIME_WAIT = 6,
    CLOSED = 7,
    CLOSE_WAIT = 8,
    LAST_ACK = 9,
    CLOSING = 11,
    SIGNAL_SIZE_MAX = 64, /* maximum number of bytes in a signal between threads; a longer write is data */
};

/* The kernel's structures, with the members that this program uses. libbpf inserts the offsets of the running
 * kernel. */
#define KERNEL __attribute__((preserve_access_index))
struct pt_regs {
    unsigned long di, si, dx, cx, r10, r8, ax, orig_ax;
} KERNEL;
struct in6_addr {
    __u8 bytes[16];
};
struct sock_common {
    __u32 skc_daddr, skc_rcv_saddr;
    __u16 skc_dport, skc_num, skc_family;
    __u8 skc_state;
    struct {
        __s64 counter;
    } skc_cookie;
    struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
} KERNEL;
struct sock {
    struct sock_common __sk_common;
    struct {
        __u32 qlen;
    } sk_receive_queue;
    __u16 sk_protocol, sk_type;
} KERNEL;
struct unix_sock {
    void *addr; /* NULL: the socket has no name */
    struct sock *peer;
} KERNEL;
struct tcp_sock {
    __u32 copied_seq, rcv_nxt, write_seq, snd_nxt, snd_una;
    __u64 bytes_acked, bytes_received, bytes_sent, bytes_retrans;
} KERNEL;
struct socket {
    struct sock *sk;
} KERNEL;
struct inode {
    __u16 i_mode;
} KERNEL;
struct file {
    void *private_data;
    struct inode *f_inode;
} KERNEL;
struct fdtable {
    struct file **fd;
} KERNEL;
struct files_struct {
    struct fdtable *fdt;
} KERNEL;
struct new_utsname {
    char nodename[65];
} KERNEL;
struct uts_namespace {
    struct new_utsname name;
} KERNEL;
struct nsproxy {
    struct uts_namespace *uts_ns;
} KERNEL;
struct signal_struct {
    struct {
        int counter;
    } live;
} KERNEL;
struct sched_info {
    unsigned long long last_arrival, last_queued;
} KERNEL;
struct task_struct {
    struct sched_info sched_info;
    unsigned in_iowait : 1;
    int pid, tgid;
    char comm[16];
    struct task_struct *group_leader;
    struct signal_struct *signal;
    struct files_struct *files;
    struct nsproxy *nsproxy;
    void *mm;
} KERNEL;

void *bpf_rdonly_cast(const void *pointer, __u32 type) __ksym __weak;

/* Returns a pointer to a structure of the kernel. If `cast` is true, GET may read directly through the pointer. */
#define KERNEL_POINTER(cast, type, address)                                                                            \
    ((cast) ? (struct type *)bpf_rdonly_cast((const void *)(address), bpf_core_type_id_kernel(struct type))            \
            : (struct type *)(address))
#define GET(cast, pointer, member) ((cast) ? (pointer)->member : BPF_CORE_READ(pointer, member))

/* nlkernel sets these variables before it loads the program. */
const volatile __u32 own_pid;  /* ID of nlkernel's process, which the programs never trace */
const volatile _Bool by_ports; /* trace every process, but only connections with one of the ports */

_Bool counts_waits; /* on_wait and on_waking, or on_exit, are attached */

/* missed: number of events for which the ring had no space; unix_calls: number of calls on Unix sockets that the
 * programs do not trace */
__u64 missed, unix_calls;

/* a process receives DNS messages whose sender is known only at the end of the system call, so on_wait is necessary */
_Bool has_late_senders;

/* Element i is not 0 if the ID of a traced process may be i modulo TRACE_FILTER_SIZE. The programs read this array at
 * every call of the machine, which is much faster than a search in the map of processes. */
__u8 may_be_traced[TRACE_FILTER_SIZE];

struct process {
    __u32 announced; /* the program has sent a TRACE_PROCESS event */
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, TRACE_PROCESSES_MAX);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, __u32);
    __type(value, struct process);
} processes SEC(".maps");

/* The names of programs to trace when they start. */
struct program {
    char name[16];
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, TRACE_PROGRAMS_MAX);
    __type(key, struct program);
    __type(value, __u8);
} programs SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, TRACE_PORTS_MAX);
    __type(key, __u16);
    __type(value, __u8);
} ports SEC(".maps");

struct thread {
    __u64 send_ns;       /* on_enter: time at which the current call began, in nanoseconds, if the call sends */
    __u64 messages;      /* on_send: address of the messages of the latest sendmmsg */
    __u32 message;       /* on_send: number of sent messages of this sendmmsg */
    __u64 ready_ns;      /* trace_event.ready_ns of the next call */
    __u64 on_ns, off_ns; /* times at which the thread last started and stopped running; 0: unknown */
    __u64 tls_data;      /* data of the function of a TLS library that the thread has called */
    __u64 tls_count;     /* address of the size_t in which this function stores the number of bytes, or 0 */
    __u64 tls_socket;    /* the socket that this function has used, or 0 */
    _Bool is_in_tls;     /* the thread is in a function of a TLS library */
    __u64 datagram;      /* on_receive: address of the socket whose datagram on_wait reports, or 0 */
    __u8 wait;           /* enum trace_wait: what the thread has waited for since off_ns */
    _Bool is_traced;     /* the process is traced */
    _Bool announced;     /* the program has reported the process since the process started its program */
    __u32 idles, polls, loops;
    __u32 events; /* number of reported calls of the thread */
    __u32 woken;  /* the latest thread that this thread has woken, or the lower half of the latest channel that this
                     thread has signaled */
    __u32 events_at_wakeup; /* `events` at the latest wake-up */
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct thread);
} threads SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct trace_event);
} scratch SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, TRACE_RING_SIZE);
} ring SEC(".maps");

/* One direction of an HTTP/2 connection. */
struct http2_direction {
    __u32 next;      /* TCP sequence number of the next byte */
    __u32 left;      /* number of remaining bytes of the frame's payload */
    __u32 head_size; /* number of bytes in `head` */
    __u8 head[24];   /* the first bytes of the next frame's head; the verifier needs space after the head */
    _Bool is_known;  /* the other members are known */
    _Bool has_gap;   /* frames are missing before the next event */
    _Bool captures;  /* the program captures the payload */
};

struct http2_socket {
    struct http2_direction directions[2]; /* by trace_kind: TRACE_SEND, TRACE_RECEIVE */
    __u8 role;                            /* enum trace_role */
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, TRACE_HTTP2_MAX);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, __u64); /* address of the socket */
    __type(value, struct http2_socket);
} http2_sockets SEC(".maps");

_Bool has_http2; /* http2_sockets may have elements */

/*
 * One end of a connection with Unix sockets. The kernel does not count the bytes of these connections, so the programs
 * count them. The position of the server (`received`) and the position of the client (`sent`) in the requests' bytes
 * must agree. They agree if the programs have seen the connection begin. Otherwise, agree_with_client finds the
 * difference later. Until then, both ends have random positions.
 */
struct unix_end {
    __u64 peer;                          /* cookie of the peer; 0: unknown */
    __u64 cookie;                        /* identifies the socket; 0: the socket is new */
    __u32 sent, received;                /* positions of the next bytes */
    __u32 sends, receives;               /* numbers of the process's calls */
    __u32 sender;                        /* the thread that has sent the latest bytes */
    __u32 at_sends, at_receives;         /* client: `sends` and `receives` after `sender` has last received data */
    __u32 client_sends, client_receives; /* server: those of the client when the server had received all its bytes */
    __u32 missing;                       /* server: the difference between the positions at that time */
    _Bool is_set;                        /* server: the last three members are set */
    _Bool is_server;
};

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, TRACE_UNIX_MAX);
    __type(key, __u64); /* address of the socket */
    __type(value, struct unix_end);
} unix_ends SEC(".maps");

static __always_inline struct process *find_process(__u32 pid)
{
    struct process *found = bpf_map_lookup_elem(&processes, &pid), first = {0};
    if (found || !by_ports || pid == own_pid)
        return found;
    bpf_map_update_elem(&processes, &pid, &first, BPF_NOEXIST);
    return bpf_map_lookup_elem(&processes, &pid);
}

/* Returns the current thread if its process is traced, and NULL otherwise. */
static __always_inline struct thread *find_thread(void)
{
    struct task_struct *task = bpf_get_current_task_btf();
    __u32 pid = task->tgid;
    if (by_ports ? !task->mm : !may_be_traced[pid % TRACE_FILTER_SIZE]) /* a thread of the kernel has no mm */
        return 0;
    struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);
    if (thread && thread->is_traced)
        return thread;
    if (!find_process(pid))
        return 0;
    thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (thread)
        thread->is_traced = 1;
    return thread;
}

/* Writes an event to the ring. Returns false if the ring has no space. */
static __always_inline _Bool put(struct trace_event *e, __u32 data_size)
{
    __u64 size = __builtin_offsetof(struct trace_event, data) + data_size;
    asm volatile("" : "+r"(size)); /* so that the verifier sees the check of the limit */
    if (size <= sizeof *e && bpf_ringbuf_output(&ring, e, size, BPF_RB_NO_WAKEUP) == 0)
        return 1;
    __sync_fetch_and_add(&missed, 1);
    return 0;
}

/* Begins an event without data. Returns NULL if the ring has no space. Otherwise, the caller sets the other members,
 * and submits the event. */
static __always_inline struct trace_event *reserve(__u8 kind)
{
    struct trace_event *e = bpf_ringbuf_reserve(&ring, __builtin_offsetof(struct trace_event, data), 0);
    if (!e) {
        __sync_fetch_and_add(&missed, 1);
        return 0;
    }
    __builtin_memset(e, 0, __builtin_offsetof(struct trace_event, data));
    e->kind = kind;
    e->begin_ns = e->end_ns = bpf_ktime_get_ns();
    return e;
}

/* ---- sockets ---- */

/* Returns the socket of a file descriptor, or NULL for other files. */
static __always_inline struct sock *find_socket(_Bool cast, __u32 fd)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct file **files = task->files->fdt->fd, *found = 0;
    if (bpf_probe_read_kernel(&found, sizeof found, files + fd) != 0 || !found)
        return 0;
    struct file *file = KERNEL_POINTER(cast, file, found);
    struct inode *inode = GET(cast, file, f_inode);
    if ((GET(cast, inode, i_mode) & FILE_KIND) != SOCKET_KIND)
        return 0;
    struct socket *end = KERNEL_POINTER(cast, socket, GET(cast, file, private_data));
    return GET(cast, end, sk);
}

/* Returns whether a socket uses TCP or UDP. Counts calls on Unix sockets. */
static __always_inline _Bool is_traced_socket(_Bool cast, const struct sock *sk)
{
    __u16 family = GET(cast, sk, __sk_common.skc_family);
    if (family == UNIX)
        __sync_fetch_and_add(&unix_calls, 1);
    __u16 protocol = family == IPV4 || family == IPV6 ? GET(cast, sk, sk_protocol) : 0;
    return protocol == TCP || protocol == UDP;
}

/*
 * Determines which peer opened the connection. The SYN takes one sequence number. Therefore, bytes_acked is larger by 1
 * at the peer that opened the connection, but not at the other peer.
 */
static __always_inline __u8 find_role(_Bool cast, const struct tcp_sock *tp)
{
    __u32 numbers = GET(cast, tp, snd_nxt) - GET(cast, tp, snd_una) + (__u32)GET(cast, tp, bytes_acked);
    __u32 bytes = (__u32)GET(cast, tp, bytes_sent) - (__u32)GET(cast, tp, bytes_retrans);
    return numbers == bytes + 1 ? TRACE_ROLE_CLIENT : numbers == bytes ? TRACE_ROLE_SERVER : TRACE_ROLE_UNKNOWN;
}

/*
 * Returns the position after the last byte that the process has received. When the process has received all bytes
 * before a FIN, copied_seq also counts the sequence number of the FIN.
 */
static __always_inline __u32 find_received(_Bool cast, const struct sock *sk, const struct tcp_sock *tp)
{
    __u8 state = GET(cast, sk, __sk_common.skc_state);
    __u32 received = GET(cast, tp, copied_seq);
    _Bool has_fin = state == CLOSE_WAIT || state == LAST_ACK || state == CLOSING || state == TIME_WAIT;
    return has_fin && received == GET(cast, tp, rcv_nxt) ? received - 1 : received;
}

/* Returns the position of the connection's first byte in the direction opposite to `kind`. */
static __always_inline __u32 find_begin(_Bool cast, const struct tcp_sock *tp, __u8 kind)
{
    return kind == TRACE_SEND ? GET(cast, tp, rcv_nxt) - (__u32)GET(cast, tp, bytes_received)
                              : GET(cast, tp, snd_una) - (__u32)GET(cast, tp, bytes_acked);
}

static __always_inline _Bool is_wanted(const struct trace_event *e)
{
    return !by_ports || bpf_map_lookup_elem(&ports, &e->local_port) || bpf_map_lookup_elem(&ports, &e->peer_port);
}

static __always_inline void read_socket(_Bool cast, struct trace_event *e, const struct sock *sk)
{
    e->socket = (__u64)sk;
    e->local_port = GET(cast, sk, __sk_common.skc_num);
    e->peer_port = __builtin_bswap16(GET(cast, sk, __sk_common.skc_dport));
    e->family = GET(cast, sk, __sk_common.skc_family);
    if (e->family == IPV4) {
        *(__u32 *)e->local = GET(cast, sk, __sk_common.skc_rcv_saddr);
        *(__u32 *)e->peer = GET(cast, sk, __sk_common.skc_daddr);
    } else {
        BPF_CORE_READ_INTO(&e->local, sk, __sk_common.skc_v6_rcv_saddr);
        BPF_CORE_READ_INTO(&e->peer, sk, __sk_common.skc_v6_daddr);
    }
}

/* ---- wake-ups ---- */

/* Returns a number that identifies a pipe, a Unix socket, or a file whose inode has the type 0, such as an eventfd.
 * Returns 0 for any other file, because threads pass work to each other only through these files. */
static __always_inline __u64 find_channel(__u32 fd)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct file **files = task->files->fdt->fd, *file = 0;
    if (bpf_probe_read_kernel(&file, sizeof file, files + fd) != 0 || !file)
        return 0;
    void *channel = BPF_CORE_READ(file, private_data);
    __u16 kind = BPF_CORE_READ(file, f_inode, i_mode) & FILE_KIND;
    if (kind == SOCKET_KIND && BPF_CORE_READ((const struct socket *)channel, sk, __sk_common.skc_family) != UNIX)
        return 0;
    return kind == SOCKET_KIND || kind == PIPE_KIND || kind == 0 ? (__u64)channel : 0;
}

static __always_inline void report_wakeup(__u8 kind, __u32 wakee, __u64 channel)
{
    struct thread *thread = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
    __u32 key = wakee != 0 ? wakee : (__u32)channel;
    if (!counts_waits || !thread || (thread->woken == key && thread->events_at_wakeup == thread->events))
        return; /* the thread has no reported calls since it reported the same wake-up */
    struct trace_event *e = reserve(kind);
    if (!e)
        return;
    __u64 ids = bpf_get_current_pid_tgid();
    thread->woken = key;
    thread->events_at_wakeup = thread->events;
    e->socket = channel;
    e->pid = ids >> 32;
    e->tid = (__u32)ids;
    e->other = wakee;
    e->idles = thread->idles;
    e->polls = thread->polls;
    e->loops = thread->loops;
    bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

static __always_inline _Bool sends(long call)
{
    return call == __NR_write || call == __NR_writev || call == __NR_sendto || call == __NR_sendmsg;
}

/* Reports that a thread intentionally wakes another thread of its process: with a futex, or by writing to a pipe, an
 * eventfd or a Unix socket. */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *wakee)
{
    struct task_struct *waker = bpf_get_current_task_btf();
    __u32 pid = waker->tgid;
    if (wakee->tgid != pid || wakee->pid == waker->pid || (!by_ports && !may_be_traced[pid % TRACE_FILTER_SIZE]) ||
        !bpf_map_lookup_elem(&processes, &pid))
        return 0;
    /* check that the two calls match, because an interrupt may wake a thread during any call */
    struct pt_regs *by = (struct pt_regs *)bpf_task_pt_regs(waker), *of = (struct pt_regs *)bpf_task_pt_regs(wakee);
    long call = by->orig_ax, waits = of->orig_ax;
    __u64 channel = 0;
    if (call == __NR_futex && waits == __NR_futex && by->di == of->di)
        channel = by->di | 1;
    else if (sends(call) && waits != __NR_futex)
        channel = find_channel(by->di);
    if (channel != 0)
        report_wakeup(TRACE_WAKE, wakee->pid, channel);
    return 0;
}

/* ---- waits ---- */

/* CLOCK_MONOTONIC minus the scheduler's clock, in nanoseconds; 0: unknown. */
__s64 clock_offset;

/* Returns the kind of wait of a thread that stops running in `state`. */
static __always_inline __u8 find_wait(struct task_struct *task, __u32 state)
{
    enum { RUNNABLE = 0, UNINTERRUPTIBLE = 2 };
    const struct pt_regs *regs = (const struct pt_regs *)bpf_task_pt_regs(task);
    if (state == RUNNABLE)
        return TRACE_WAIT_PROCESSOR;
    if (BPF_CORE_READ_BITFIELD(task, in_iowait))
        return TRACE_WAIT_DISK;
    switch (regs->orig_ax) {
    case __NR_futex:
        return TRACE_WAIT_FUTEX;
    case __NR_flock:
    case __NR_fcntl:
    case __NR_semop:
    case __NR_semtimedop:
        return TRACE_WAIT_LOCK;
    case __NR_fsync:
    case __NR_fdatasync:
    case __NR_sync_file_range:
    case __NR_msync:
    case __NR_read:
    case __NR_readv:
    case __NR_pread64:
    case __NR_preadv:
    case __NR_write:
    case __NR_writev:
    case __NR_pwrite64:
    case __NR_pwritev:
    case __NR_openat:
    case __NR_unlinkat:
    case __NR_ftruncate:
    case __NR_fallocate:
        return (state & UNINTERRUPTIBLE) != 0 ? TRACE_WAIT_DISK : TRACE_WAIT_NONE;
    default:
        return TRACE_WAIT_NONE;
    }
}

static __always_inline void report_wait(const struct task_struct *task, __u8 wait, __u64 begin_ns, __u64 end_ns)
{
    struct trace_event *e = wait != TRACE_WAIT_NONE && end_ns - begin_ns >= TRACE_WAIT_MIN_NS ? reserve(TRACE_WAIT) : 0;
    if (!e)
        return;
    e->pid = task->tgid;
    e->tid = task->pid;
    e->other = wait;
    e->begin_ns = begin_ns;
    e->end_ns = end_ns;
    bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

/* Returns whether the current call of a thread waits for only one descriptor. */
static __always_inline _Bool waits_for_one(struct task_struct *task)
{
    const struct pt_regs *regs = (const struct pt_regs *)bpf_task_pt_regs(task);
    long call = regs->orig_ax;
#ifdef __NR_poll
    if (call == __NR_poll)
        return regs->si == 1;
#endif
    return call == __NR_read || call == __NR_readv || call == __NR_recvfrom || call == __NR_recvmsg ||
           (call == __NR_ppoll && regs->si == 1);
}

static __always_inline struct thread *find_thread_of(struct task_struct *task)
{
    if (!by_ports && !may_be_traced[(__u32)task->tgid % TRACE_FILTER_SIZE])
        return 0;
    return bpf_task_storage_get(&threads, task, 0, 0);
}

/*
 * Reports the waits of threads that have sent or received data. The scheduler stores the times at which a thread
 * becomes runnable and begins to run, on a different clock. on_switch runs when a thread begins to run, and therefore
 * can compute the offset between the clocks.
 */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, _Bool preempts, struct task_struct *before, struct task_struct *next, __u32 state)
{
    if (!bpf_core_field_exists(before->sched_info.last_queued)) /* a kernel without CONFIG_SCHED_INFO */
        return 0;
    struct thread *thread = find_thread_of(before);
    if (thread) {
        __u64 arrival = before->sched_info.last_arrival;
        if (thread->on_ns != 0 && arrival != 0)
            clock_offset = thread->on_ns - arrival;
        thread->off_ns = bpf_ktime_get_ns();
        thread->wait = preempts ? TRACE_WAIT_PROCESSOR : find_wait(before, state);
    }
    thread = find_thread_of(next);
    if (!thread)
        return 0;
    __u64 now = bpf_ktime_get_ns(), queued = next->sched_info.last_queued, off_ns = thread->off_ns;
    queued = queued != 0 && clock_offset != 0 ? queued + clock_offset : now;
    queued = queued > now ? now : queued < off_ns || thread->wait == TRACE_WAIT_PROCESSOR ? off_ns : queued;
    thread->on_ns = now;
    thread->ready_ns = 0;
    if (off_ns == 0)
        return 0;
    if (thread->wait != TRACE_WAIT_PROCESSOR) {
        report_wait(next, thread->wait, off_ns, queued);
        thread->ready_ns = waits_for_one(next) ? queued : 0;
    }
    report_wait(next, TRACE_WAIT_PROCESSOR, queued, now);
    return 0;
}

/* ---- events ---- */

/* Reports the name of the process and of its host. Each thread reports the name before its first event, because the
 * events of different threads have no order. */
static __noinline int announce(struct thread *thread)
{
    struct task_struct *task = bpf_get_current_task_btf();
    __u32 zero = 0;
    struct trace_event *e = bpf_map_lookup_elem(&scratch, &zero);
    if (!e || !thread)
        return 0;
    struct trace_process *about = (struct trace_process *)e->data;
    e->kind = TRACE_PROCESS;
    e->pid = e->tid = bpf_get_current_pid_tgid() >> 32;
    e->captured = sizeof *about;
    BPF_CORE_READ_INTO(&about->program, task, group_leader, comm);
    BPF_CORE_READ_INTO(&about->host, task, nsproxy, uts_ns, name.nodename);
    __u32 pid = e->pid;
    struct process *process = bpf_map_lookup_elem(&processes, &pid);
    if (put(e, sizeof *about) && process)
        process->announced = thread->announced = 1;
    return 0;
}

/* A contiguous part of a message in the process's memory. */
struct piece {
    const char *data;
    __u64 size;
};

static __always_inline struct piece read_vector(const struct piece *vectors, __u64 count, __u32 index)
{
    struct piece p = {0};
    if (index < count)
        bpf_probe_read_user(&p, sizeof p, vectors + index);
    return p;
}

/* The members of struct msghdr that this program uses. */
struct message {
    const void *name;
    __u64 name_size;
    const struct piece *vectors;
    __u64 count;
};

static __always_inline struct message read_message(const void *address)
{
    struct message m = {0};
    bpf_probe_read_user(&m, sizeof m, address);
    return m;
}

/* Returns whether the data of a call is in one contiguous part of the process's memory. */
static __always_inline _Bool has_one_piece(long call)
{
    return call == __NR_read || call == __NR_write || call == __NR_recvfrom || call == __NR_sendto;
}

/* Returns the first (index 0) or the second part (index 1) of a message. If there is no such part, its size is 0. */
static __always_inline struct piece find_piece(long call, const struct pt_regs *regs, __u32 index)
{
    struct piece p = {0};
    if (call == __NR_readv || call == __NR_writev)
        return read_vector((const struct piece *)regs->si, regs->dx, index);
    if (call == __NR_sendmsg || call == __NR_recvmsg) {
        struct message m = read_message((const void *)regs->si);
        return read_vector(m.vectors, m.count, index);
    }
    if (has_one_piece(call) && index == 0)
        p = (struct piece){(const char *)regs->si, ~0ULL};
    return p;
}

static __always_inline __u32 capture(struct trace_event *e, struct piece p, struct piece next)
{
    __u64 size = p.size < e->size ? p.size : e->size, more = e->size - size < next.size ? e->size - size : next.size;
    const char *end = p.data + size;
    if (size > TRACE_CAPTURE_MAX)
        size = TRACE_CAPTURE_MAX;
    e->captured = e->tail_size = 0;
    asm volatile("" : "+r"(size)); /* so that the verifier sees the check of the limit */
    if (size > TRACE_CAPTURE_MAX || size == 0 || bpf_probe_read_user(e->data, size, p.data) != 0)
        return 0;
    e->captured = size;
    if (size == TRACE_CAPTURE_MAX && p.size >= e->size &&
        bpf_probe_read_user(e->tail, TRACE_TAIL_SIZE, end - TRACE_TAIL_SIZE) == 0)
        e->tail_size = TRACE_TAIL_SIZE;
    if (size >= TRACE_JOIN_SIZE || more == 0)
        return size;
    if (more > TRACE_CAPTURE_MAX - TRACE_JOIN_SIZE)
        more = TRACE_CAPTURE_MAX - TRACE_JOIN_SIZE;
    asm volatile("" : "+r"(more), "+r"(size));
    if (more > TRACE_CAPTURE_MAX - TRACE_JOIN_SIZE || size >= TRACE_JOIN_SIZE ||
        bpf_probe_read_user(e->data + size, more, next.data) != 0)
        return e->captured;
    e->captured = size + more;
    return e->captured;
}

static __always_inline void begin_event(struct trace_event *e, __u8 kind, struct thread *thread)
{
    __u64 ids = bpf_get_current_pid_tgid();
    e->end_ns = bpf_ktime_get_ns();
    e->begin_ns = kind == TRACE_SEND && thread->send_ns != 0 ? thread->send_ns : e->end_ns;
    e->ready_ns = kind == TRACE_RECEIVE ? thread->ready_ns : 0;
    if (kind != TRACE_PLAIN)
        thread->ready_ns = 0;
    e->pid = ids >> 32;
    e->tid = (__u32)ids;
    e->idles = thread->idles;
    e->polls = thread->polls;
    e->loops = thread->loops;
    e->kind = kind;
    e->captured = e->tail_size = e->http2 = 0;
    e->counts_waits = counts_waits;
    e->is_in_tls = thread->is_in_tls;
    if (thread->is_in_tls)
        thread->tls_socket = e->socket;
    thread->events++;
}

/* ---- datagrams ---- */

/* Reads the address of a datagram's peer from a struct sockaddr in the process's memory. */
static __always_inline void read_peer(struct trace_event *e, const char *name)
{
    __u16 head[2] = {0}; /* family, port */
    if (name == 0 || bpf_probe_read_user(head, sizeof head, name) != 0 || head[0] != e->family)
        return;
    e->peer_port = __builtin_bswap16(head[1]);
    if (head[0] == IPV4)
        bpf_probe_read_user(e->peer, 4, name + 4);
    else
        bpf_probe_read_user(e->peer, sizeof e->peer, name + 8);
}

/* Returns whether the captured bytes may be a DNS query or reply with one question. */
static __always_inline _Bool is_dns(const struct trace_event *e)
{
    const __u8 *d = e->data;
    return e->captured >= 17 && (d[2] & 0x78) == 0 && d[4] == 0 && d[5] == 1 &&
           ((d[2] & 0x80) != 0 || (d[6] | d[7] | d[8] | d[9]) == 0);
}

static __always_inline void report_datagram(_Bool cast, const struct sock *sk, struct thread *thread, __u8 kind,
                                            __u32 size, struct piece piece, const void *name, _Bool is_early)
{
    struct piece nothing = {0};
    __u32 zero = 0;
    struct trace_event *e = bpf_map_lookup_elem(&scratch, &zero);
    if (!e)
        return;
    read_socket(cast, e, sk);
    if (e->peer_port == 0 && !is_early)
        read_peer(e, name);
    e->size = size;
    _Bool is_late = is_early && e->peer_port == 0; /* the kernel stores the sender's address after on_receive */
    if ((!is_late && !is_wanted(e)) || capture(e, piece, nothing) == 0 || !is_dns(e))
        return;
    if (is_late) {
        has_late_senders = 1;
        thread->datagram = (__u64)sk;
        return;
    }
    __u32 captured = e->captured;
    begin_event(e, kind, thread);
    e->captured = captured;
    e->is_datagram = 1;
    e->role = TRACE_ROLE_UNKNOWN;
    e->sequence = e->other = 0;
    put(e, captured);
}

/* A message of sendmmsg. The C library sends two queries with one call of sendmmsg. */
struct sent_message {
    struct message message;
    __u64 control[3];
    __u32 size, padding;
};

static __always_inline struct sent_message read_sent_message(const struct pt_regs *regs, __u32 index)
{
    struct sent_message m = {0};
    bpf_probe_read_user(&m, sizeof m, (const struct sent_message *)regs->si + index);
    return m;
}

static __always_inline void report_datagrams(_Bool cast, long call, const struct pt_regs *regs, __u8 kind, __u32 result,
                                             const struct sock *sk, struct thread *thread, _Bool is_early)
{
    enum { MESSAGES_MAX = 2 };
    if (call == __NR_sendmmsg && thread->messages != 0) { /* on_send reports each message */
        struct message m = read_sent_message(regs, thread->message - 1).message;
        report_datagram(cast, sk, thread, kind, result, read_vector(m.vectors, m.count, 0), m.name, 0);
        return;
    }
    if (call != __NR_sendmmsg) {
        const void *name = 0;
        if (call == __NR_sendto || call == __NR_recvfrom)
            name = (const void *)regs->r8;
        else if (call == __NR_sendmsg || call == __NR_recvmsg)
            name = read_message((const void *)regs->si).name;
        report_datagram(cast, sk, thread, kind, result, find_piece(call, regs, 0), name, is_early);
        return;
    }
    for (__u32 i = 0; i < MESSAGES_MAX && i < result; i++) {
        struct sent_message m = read_sent_message(regs, i);
        report_datagram(cast, sk, thread, kind, m.size, read_vector(m.message.vectors, m.message.count, 0),
                        m.message.name, 0);
    }
}

/* ---- HTTP/2 ---- */

enum { PREFACE_SIZE = 24 }; /* size of the bytes with which a client begins a connection */

/* The state of a loop over the bytes of a call. */
struct walk {
    struct http2_direction direction;
    const struct piece *vectors;
    __u64 count;
    struct piece piece; /* the rest of the current part of the message */
    __u32 index;        /* index of the next part */
    __u32 left;         /* number of bytes of the call after the position of the loop */
    _Bool failed;
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct walk);
} walks SEC(".maps");

static __always_inline __u32 read_length(const __u8 *head)
{
    return head[0] << 16 | head[1] << 8 | head[2];
}

/* Returns whether the bytes may be the head of a frame of a type that RFC 9113 defines. */
static __always_inline _Bool is_frame_head(const __u8 *head)
{
    enum {
        LENGTH_MAX = 1 << 20,
        HAS_STREAM = 0x22f,
        HAS_NO_STREAM = 0x0d0
    }; /* one bit per type; WINDOW_UPDATE may occur with and without a stream */
    __u32 length = read_length(head), type = head[3], stream = head[5] << 24 | head[6] << 16 | head[7] << 8 | head[8];
    if (type > TRACE_FRAME_CONTINUATION || length > LENGTH_MAX || stream >> 31 != 0)
        return 0;
    if ((stream == 0 && (HAS_STREAM >> type & 1) != 0) || (stream != 0 && (HAS_NO_STREAM >> type & 1) != 0))
        return 0;
    switch (type) {
    case TRACE_FRAME_PRIORITY:
        return length == 5;
    case TRACE_FRAME_RESET:
    case TRACE_FRAME_WINDOW:
        return length == 4;
    case TRACE_FRAME_SETTINGS:
        return length % 6 == 0;
    case TRACE_FRAME_PING:
        return length == 8;
    default:
        return 1;
    }
}

static __always_inline _Bool has_preface(const struct trace_event *e)
{
    const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    _Bool found = e->captured >= PREFACE_SIZE;
#pragma unroll
    for (int i = 0; i < PREFACE_SIZE; i++)
        found = found && e->data[i] == preface[i];
    return found;
}

/*
 * Returns whether the data of a call on a connection that began before the trace is HTTP/2. The data must begin with a
 * whole HEADERS frame with the flag END_HEADERS, of a stream that a client has begun. After this frame, the data must
 * end, or another frame must follow.
 */
static __always_inline _Bool begins_with_headers(const struct trace_event *e)
{
    enum { END_HEADERS = 4, FLAGS = 0x2d };
    const __u8 *d = e->data;
    if (d[0] != 0 || d[3] != TRACE_FRAME_HEADERS || e->captured <= TRACE_FRAME_HEAD_SIZE || !is_frame_head(d) ||
        (d[4] & END_HEADERS) == 0 || (d[4] & ~FLAGS) != 0 || (d[8] & 1) == 0)
        return 0;
    __u64 next = read_length(d) + TRACE_FRAME_HEAD_SIZE;
    if (next == e->size)
        return 1;
    asm volatile("" : "+r"(next)); /* so that the verifier sees the check of the limit */
    return next + TRACE_FRAME_HEAD_SIZE <= e->captured && next < TRACE_CAPTURE_MAX - TRACE_FRAME_HEAD_SIZE &&
           is_frame_head(d + next);
}

/* Skips n bytes of the call. */
static __always_inline void pass(struct walk *w, __u32 n)
{
    w->piece.data += n;
    w->piece.size -= n;
    w->left -= n;
    w->direction.next += n;
}

/* Makes space in the event for half of the maximum data. If there is less space, writes the event to the ring and
 * empties the event. Returns false if the ring has no space. */
static __always_inline _Bool make_space(struct trace_event *e)
{
    if (e->captured <= TRACE_CAPTURE_MAX / 2)
        return 1;
    _Bool done = put(e, e->captured);
    e->captured = 0;
    e->http2 = TRACE_FRAMES;
    return done;
}

static __always_inline _Bool begin_frame(struct walk *w, struct trace_event *e)
{
    struct http2_direction *d = &w->direction;
    __u8 type = d->head[3];
    d->head_size = 0;
    d->left = read_length(d->head);
    d->captures = type == TRACE_FRAME_HEADERS || type == TRACE_FRAME_PUSH || type == TRACE_FRAME_CONTINUATION ||
                  type == TRACE_FRAME_RESET;
    /* accept types above CONTINUATION, which extensions define, except after a gap, where they do not prove a frame */
    _Bool valid = is_frame_head(d->head) || (d->is_known && type > TRACE_FRAME_CONTINUATION);
    if (!valid || (d->captures && d->left > TRACE_HEADERS_MAX) || !make_space(e))
        return 0;
    d->is_known = 1;
    __u64 captured = e->captured;
    asm volatile("" : "+r"(captured));
    if (captured > TRACE_CAPTURE_MAX / 2)
        return 0;
    struct trace_frame *frame = (struct trace_frame *)(e->data + captured);
    __builtin_memcpy(frame->head, d->head, sizeof frame->head);
    frame->sequence = d->next - TRACE_FRAME_HEAD_SIZE;
    e->captured = captured + sizeof *frame;
    return 1;
}

static __always_inline _Bool walk_head(struct walk *w, struct trace_event *e, __u32 available)
{
    struct http2_direction *d = &w->direction;
    __u64 size = d->head_size, n = TRACE_FRAME_HEAD_SIZE - size;
    if (n > available)
        n = available;
    asm volatile("" : "+r"(size), "+r"(n));
    if (size >= TRACE_FRAME_HEAD_SIZE || n > TRACE_FRAME_HEAD_SIZE ||
        bpf_probe_read_user(d->head + size, n, w->piece.data) != 0)
        return 0;
    d->head_size = size + n;
    pass(w, n);
    return d->head_size < TRACE_FRAME_HEAD_SIZE || begin_frame(w, e);
}

static __always_inline _Bool walk_payload(struct walk *w, struct trace_event *e, __u32 available)
{
    struct http2_direction *d = &w->direction;
    __u64 n = d->left < available ? d->left : available;
    if (d->captures) {
        if (!make_space(e))
            return 0;
        __u64 captured = e->captured;
        if (n > TRACE_CAPTURE_MAX / 2)
            n = TRACE_CAPTURE_MAX / 2;
        asm volatile("" : "+r"(captured), "+r"(n));
        if (captured > TRACE_CAPTURE_MAX / 2 || n > TRACE_CAPTURE_MAX / 2 ||
            bpf_probe_read_user(e->data + captured, n, w->piece.data) != 0)
            return 0;
        e->captured = captured + n;
    }
    d->left -= n;
    pass(w, n);
    return 1;
}

/* Processes the next bytes of a call. Returns 1 to end the loop. */
static long walk_step(__u32 step, void *user)
{
    __u32 zero = 0;
    struct walk *w = bpf_map_lookup_elem(&walks, &zero);
    struct trace_event *e = bpf_map_lookup_elem(&scratch, &zero);
    (void)step, (void)user;
    if (!w || !e || w->left == 0)
        return 1;
    if (w->piece.size == 0) {
        if (w->index >= w->count)
            return 1;
        w->piece = read_vector(w->vectors, w->count, w->index++);
        return 0;
    }
    __u32 available = w->piece.size < w->left ? w->piece.size : w->left;
    _Bool done = w->direction.left == 0 ? walk_head(w, e, available) : walk_payload(w, e, available);
    w->failed = !done;
    return !done;
}

static __always_inline void find_pieces(struct walk *w, long call, const struct pt_regs *regs)
{
    w->piece = (struct piece){0};
    w->vectors = 0;
    w->count = w->index = 0;
    if (call == __NR_readv || call == __NR_writev) {
        w->vectors = (const struct piece *)regs->si;
        w->count = regs->dx;
    } else if (call == __NR_sendmsg || call == __NR_recvmsg) {
        struct message m = read_message((const void *)regs->si);
        w->vectors = m.vectors;
        w->count = m.count;
    } else if (has_one_piece(call)) {
        w->piece = (struct piece){(const char *)regs->si, ~0ULL};
    }
}

/*
 * Reports the frames of a call. The position of the frames becomes unknown if bytes are missing, for example because
 * another process has sent them or because the ring has no space. The position becomes known again if a later call
 * begins with a frame.
 */
static __noinline int report_frames(struct trace_event *e, const struct pt_regs *regs)
{
    enum { STEPS_MAX = 65536 };
    __u32 zero = 0, direction = e->kind == TRACE_SEND ? TRACE_SEND : TRACE_RECEIVE;
    __u64 key = e->socket;
    struct http2_socket *socket = bpf_map_lookup_elem(&http2_sockets, &key);
    struct walk *w = bpf_map_lookup_elem(&walks, &zero);
    if (!socket || !w)
        return 0;
    struct http2_direction *d = &w->direction;
    *d = socket->directions[direction];
    find_pieces(w, regs->orig_ax, regs);
    w->left = e->size;
    w->failed = 0;
    if (!d->is_known || d->next != e->sequence) {
        d->is_known = 0;
        d->has_gap = 1;
        d->next = e->sequence;
        d->left = d->head_size = 0;
    }
    e->role = socket->role != TRACE_ROLE_UNKNOWN ? socket->role : e->role;
    e->http2 = d->has_gap ? TRACE_FRAMES_AFTER_GAP : TRACE_FRAMES;
    e->captured = 0;
    if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop))
        bpf_loop(STEPS_MAX, walk_step, 0, 0);
    /* the program cannot read the bytes that sendfile sends, but may skip them within a payload */
    if (w->left > 0 && !w->failed && d->left >= w->left && !d->captures) {
        d->left -= w->left;
        d->next += w->left;
        w->left = 0;
    }
    if (w->failed || w->left > 0)
        d->is_known = 0;
    /* report the gap with the first frame after the gap; otherwise, an earlier frame would seem to follow the gap */
    d->has_gap = !put(e, e->captured) || !d->is_known;
    if (d->has_gap)
        d->is_known = 0;
    socket->directions[direction] = *d;
    return 1;
}

/* Recognizes HTTP/2 in an event with data. Returns whether the event's connection uses HTTP/2. */
static __noinline int recognize_http2(struct trace_event *e)
{
    _Bool preface = has_preface(e);
    if (!preface && !begins_with_headers(e))
        return 0;
    struct http2_socket socket = {0};
    __u64 key = e->socket;
    __u32 direction = e->kind == TRACE_SEND ? TRACE_SEND : TRACE_RECEIVE;
    if (preface) { /* at the start of a connection, both positions are known */
        socket.role = e->kind == TRACE_SEND ? TRACE_ROLE_CLIENT : TRACE_ROLE_SERVER;
        socket.directions[0].is_known = socket.directions[1].is_known = 1;
        socket.directions[direction].next = e->sequence;
        socket.directions[direction].left = PREFACE_SIZE;
        socket.directions[!direction].next = e->other;
    }
    has_http2 = 1;
    return bpf_map_update_elem(&http2_sockets, &key, &socket, BPF_ANY) == 0;
}

/* ---- calls ---- */

/* Adds the data of a call to an event, and writes the event to the ring. `begin` is the position of the first byte of
 * an HTTP/2 connection in the other direction. */
static __always_inline void put_data(struct trace_event *e, long call, const struct pt_regs *regs, __u32 begin)
{
    __u64 key = e->socket;
    __u32 captured = 0;
    _Bool http2 = has_http2 && bpf_map_lookup_elem(&http2_sockets, &key);
    if (!http2) {
        struct piece p = find_piece(call, regs, 0), next = {0};
        if (p.size < TRACE_JOIN_SIZE)
            next = find_piece(call, regs, 1);
        captured = capture(e, p, next);
        http2 = recognize_http2(e);
    }
    if (http2) {
        e->other = begin;
        report_frames(e, regs);
    } else {
        put(e, captured);
    }
}

/* Reports a call. `is_early` is true in on_receive, before the kernel stores the sender's address in the process's
 * memory. */
static __always_inline void report(_Bool cast, long call, const struct pt_regs *regs, __u8 kind, __u32 size,
                                   const struct sock *sk, struct thread *thread, _Bool is_early)
{
    __u32 zero = 0;
    struct trace_event *e = bpf_map_lookup_elem(&scratch, &zero);
    if (!e)
        return;
    if (!thread->announced)
        announce(thread);
    if (GET(cast, sk, sk_protocol) == UDP) {
        if (kind != TRACE_CONNECT)
            report_datagrams(cast, call, regs, kind, size, sk, thread, is_early);
        return;
    }
    read_socket(cast, e, sk);
    if (!is_wanted(e))
        return;
    const struct tcp_sock *tp = KERNEL_POINTER(cast, tcp_sock, sk);
    begin_event(e, kind, thread);
    e->is_datagram = 0;
    e->size = size;
    e->role = kind == TRACE_CONNECT ? TRACE_ROLE_CLIENT : find_role(cast, tp);
    __u32 sent = GET(cast, tp, write_seq), received = find_received(cast, sk, tp);
    e->sequence = (kind == TRACE_SEND ? sent : received) - size;
    e->other = kind == TRACE_SEND ? received : sent;
    if (kind != TRACE_CONNECT && size != 0)
        put_data(e, call, regs, find_begin(cast, tp, kind));
    else
        put(e, 0);
}

/* ---- Unix sockets ---- */

static __always_inline void begin_unix_end(__u64 address, const struct unix_end *first)
{
    if (has_http2)
        bpf_map_delete_elem(&http2_sockets, &address); /* of a closed socket with this address */
    bpf_map_update_elem(&unix_ends, &address, first, BPF_ANY);
}

/* Returns the state of a socket. The kernel may have used the address of a closed socket again. */
static __always_inline struct unix_end *find_unix_end(__u64 address, __u64 cookie)
{
    struct unix_end first = {.cookie = cookie}, *end = bpf_map_lookup_elem(&unix_ends, &address);
    if (end && end->cookie == 0)
        end->cookie = cookie;
    if (end && end->cookie == cookie)
        return end;
    first.sent = bpf_get_prandom_u32();
    first.received = bpf_get_prandom_u32();
    begin_unix_end(address, &first);
    return bpf_map_lookup_elem(&unix_ends, &address);
}

/*
 * Corrects the server's position before the server receives a request. If the server has emptied its queue, it has
 * received all bytes that the client has sent. The client's call that has sent these bytes may still be running, and
 * not be counted. It was not running if the next call of the client's thread has received data. Therefore, the server
 * stores the difference of the positions after it has emptied its queue, and applies it after such a call.
 */
static __always_inline void agree_with_client(struct unix_end *server, const struct unix_end *client)
{
    if (server->is_set && server->client_sends != 0 && client->at_sends == server->client_sends &&
        (__s32)(client->at_receives - server->client_receives) > 0)
        server->received += server->missing;
    server->is_set = 0;
}

static __always_inline void compare_with_client(struct unix_end *server, const struct unix_end *client,
                                                const struct sock *sk)
{
    server->missing = client->sent - server->received;
    server->client_sends = client->sends;
    server->client_receives = client->receives;
    asm volatile("" : : : "memory"); /* read the queue last, because the client may send more bytes now */
    server->is_set = sk->sk_receive_queue.qlen == 0;
}

/* Returns the state of a socket, and sets `peer` and `is_server` in the state. Returns NULL if the programs do not
 * trace the socket. The server's socket has the name of the listening socket, and the client's socket usually has no
 * name. Two sockets without names are a channel within a program (socketpair). */
static __always_inline struct unix_end *open_unix(struct sock *sk)
{
    enum { STREAM = 1 };
    struct unix_sock *own = sk->sk_type == STREAM ? bpf_skc_to_unix_sock(sk) : 0;
    struct sock *peer = own ? own->peer : 0;
    struct unix_sock *other = peer ? bpf_skc_to_unix_sock(peer) : 0;
    _Bool is_server = own && own->addr != 0, is_client = other && other->addr != 0;
    if (!other || is_server == is_client) {
        if (!own || is_server)
            __sync_fetch_and_add(&unix_calls, 1);
        return 0;
    }
    __u64 cookies[2] = {bpf_get_socket_cookie(sk), bpf_get_socket_cookie(peer)};
    struct unix_end *end = find_unix_end((__u64)sk, cookies[0]);
    if (!end || !find_unix_end((__u64)peer, cookies[1]))
        return 0;
    end->peer = cookies[1];
    end->is_server = is_server;
    return end;
}

/* Reports a call on a Unix socket. */
static __always_inline void report_unix(const struct pt_regs *regs, __u8 kind, __u32 size, struct sock *sk,
                                        struct thread *thread)
{
    __u32 zero = 0;
    __u64 key = (__u64)sk;
    struct trace_event *e = bpf_map_lookup_elem(&scratch, &zero);
    struct unix_end *end = bpf_map_lookup_elem(&unix_ends, &key), *client = 0;
    if (!e || by_ports)
        return;
    if (!end || end->peer == 0 || end->cookie != (__u64)sk->__sk_common.skc_cookie.counter)
        end = open_unix(sk);
    if (!end)
        return;
    if (!thread->announced)
        announce(thread);
    if (end->is_server && kind == TRACE_RECEIVE) {
        __u64 peer = (__u64)KERNEL_POINTER(1, unix_sock, sk)->peer;
        client = bpf_map_lookup_elem(&unix_ends, &peer);
    }
    begin_event(e, kind, thread);
    e->socket = (__u64)sk;
    e->family = UNIX;
    e->local_port = e->peer_port = 0;
    __builtin_memset(e->local, 0, sizeof e->local);
    __builtin_memset(e->peer, 0, sizeof e->peer);
    __builtin_memcpy(e->local, &end->cookie, sizeof end->cookie);
    __builtin_memcpy(e->peer, &end->peer, sizeof end->peer);
    e->is_datagram = 0;
    e->size = size;
    e->role = end->is_server ? TRACE_ROLE_SERVER : TRACE_ROLE_CLIENT;
    if (kind == TRACE_SEND) {
        e->sequence = end->sent;
        e->other = end->received;
        end->sent += size;
        end->sends++;
        end->sender = e->tid;
    } else {
        if (client)
            agree_with_client(end, client);
        e->sequence = end->received;
        e->other = end->sent;
        end->received += size;
        end->receives++;
        if (end->sender == e->tid) {
            end->at_sends = end->sends;
            end->at_receives = end->receives;
        }
        if (client)
            compare_with_client(end, client, sk);
    }
    if (size != 0)
        put_data(e, regs->orig_ax, regs, 0);
    else
        put(e, 0);
}

/* Prepares the two ends of a new connection, on which the client has not sent any bytes. The server may have sent
 * bytes. */
static __always_inline void begin_unix(const struct sock *sk)
{
    if (sk->__sk_common.skc_family != UNIX)
        return;
    const struct sock *peer = KERNEL_POINTER(1, sock, KERNEL_POINTER(1, unix_sock, sk)->peer);
    struct unix_end client = {.sent = bpf_get_prandom_u32(), .received = bpf_get_prandom_u32()},
                    server = {.sent = client.received, .received = client.sent};
    __u64 own = (__u64)sk, other = (__u64)peer;
    if (other == 0)
        return;
    struct unix_end *known = bpf_map_lookup_elem(&unix_ends, &other);
    if (known && known->cookie != 0 && known->cookie == (__u64)peer->__sk_common.skc_cookie.counter)
        known->received = client.sent;
    else
        begin_unix_end(other, &server);
    begin_unix_end(own, &client);
}

static __always_inline int end_send(struct sock *sk, int result)
{
    struct thread *thread = find_thread();
    if (!thread)
        return 0;
    const struct pt_regs *regs = (const struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
    if (regs->orig_ax == __NR_sendmmsg) {
        _Bool first = thread->messages != regs->si || thread->message >= regs->dx || result <= 0;
        thread->messages = result > 0 ? regs->si : 0;
        thread->message = first ? 1 : thread->message + 1;
    }
    if (result > 0 && sk->__sk_common.skc_family == UNIX)
        report_unix(regs, TRACE_SEND, result, sk, thread);
    else if (result > 0 && is_traced_socket(1, sk))
        report(1, regs->orig_ax, regs, TRACE_SEND, result, sk, thread, 0);
    return 0;
}

/* Handles the sending of bytes with a socket. Runs several times for a call that sends several messages or a file. */
SEC("tp_btf/sock_send_length")
int BPF_PROG(on_send, struct sock *sk, int result)
{
    return end_send(sk, result);
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_receive, struct sock *sk, int result, int flags)
{
    struct thread *thread = result >= 0 ? find_thread() : 0;
    if (!thread)
        return 0;
    thread->datagram = 0; /* forget an earlier call, if on_wait was not attached at its end */
    if ((flags & PEEK) != 0)
        return 0;
    const struct pt_regs *regs = (const struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
    if (sk->__sk_common.skc_family == UNIX)
        report_unix(regs, TRACE_RECEIVE, result, sk, thread);
    else if (is_traced_socket(1, sk))
        report(1, regs->orig_ax, regs, TRACE_RECEIVE, result, sk, thread, 1);
    return 0;
}

static __always_inline _Bool is_zero_time(unsigned long address)
{
    __u64 time[2] = {1, 1};
    return address != 0 && bpf_probe_read_user(time, sizeof time, (const void *)address) == 0 && time[0] + time[1] == 0;
}

static __always_inline void count_wait(_Bool polls, _Bool several)
{
    struct thread *thread = find_thread();
    if (!thread)
        return;
    if (polls)
        thread->polls++;
    else
        thread->idles++;
    thread->loops += several;
}

/* Handles the end of a call that waits for events. Returns false for other calls. */
static __always_inline _Bool end_wait(long call, const struct pt_regs *regs)
{
    switch (call) {
#ifdef __NR_epoll_wait /* newer architectures do not have these three calls */
    case __NR_epoll_wait:
        count_wait((int)regs->r10 == 0, 1);
        return 1;
    case __NR_poll:
        count_wait((int)regs->dx == 0, regs->si > 1);
        return 1;
    case __NR_select:
        count_wait(is_zero_time(regs->r8), 1);
        return 1;
#endif
    case __NR_epoll_pwait:
        count_wait((int)regs->r10 == 0, 1);
        return 1;
    case __NR_epoll_pwait2:
        count_wait(is_zero_time(regs->r10), 1);
        return 1;
    case __NR_ppoll:
        count_wait(is_zero_time(regs->dx), regs->si > 1);
        return 1;
    case __NR_pselect6:
        count_wait(is_zero_time(regs->r8), 1);
        return 1;
    default:
        return 0;
    }
}

/* Handles the end of a call that has sent data with a descriptor. The data may be a signal to another thread. */
static __always_inline void end_signal(__u32 fd, long size)
{
    __u64 channel = size > 0 && size <= SIGNAL_SIZE_MAX ? find_channel(fd) : 0;
    if (channel != 0)
        report_wakeup(TRACE_SIGNAL, 0, channel);
}

/* Reports a datagram whose sender was unknown to on_receive. */
static __always_inline void end_datagram(long call, const struct pt_regs *regs, long result)
{
    struct thread *thread = find_thread();
    if (!thread || thread->datagram == 0)
        return;
    const struct sock *sk = KERNEL_POINTER(1, sock, thread->datagram);
    thread->datagram = 0;
    if (result > 0)
        report_datagrams(1, call, regs, TRACE_RECEIVE, result, sk, thread, 0);
}

/* Handles the end of each call while on_send and on_receive report the data. */
SEC("tp_btf/sys_exit")
int BPF_PROG(on_wait, struct pt_regs *regs, long result)
{
    long call = regs->orig_ax;
    if (end_wait(call, regs))
        return 0;
    if (sends(call) && find_thread())
        end_signal(regs->di, result);
    if (call == __NR_recvfrom || call == __NR_recvmsg)
        end_datagram(call, regs, result);
    if (call == __NR_connect && result == 0 && find_thread()) {
        const struct sock *sk = find_socket(1, regs->di);
        if (sk)
            begin_unix(sk);
    }
    return 0;
}

/* ---- calls before Linux 6.3 ---- */

SEC("tp_btf/sys_enter")
int BPF_PROG(on_enter, struct pt_regs *regs, long call)
{
    if (!sends(call) && call != __NR_sendmmsg && call != __NR_sendfile)
        return 0;
    struct thread *thread = find_thread();
    if (thread)
        thread->send_ns = bpf_ktime_get_ns();
    return 0;
}

static __always_inline int end_call(_Bool cast, const struct pt_regs *regs, long result)
{
    long call = regs->orig_ax;
    __u8 kind = TRACE_RECEIVE;
    switch (call) {
    case __NR_write:
    case __NR_writev:
    case __NR_sendto:
    case __NR_sendmsg:
    case __NR_sendmmsg:
    case __NR_sendfile:
        if (result == 0)
            return 0;
        kind = TRACE_SEND;
        break;
    case __NR_recvfrom:
        if (regs->r10 & PEEK)
            return 0;
        break;
    case __NR_recvmsg:
        if (regs->dx & PEEK)
            return 0;
        break;
    case __NR_read:
    case __NR_readv:
        break;
    default:
        end_wait(call, regs);
        return 0;
    }
    struct thread *thread = result >= 0 ? find_thread() : 0;
    if (!thread)
        return 0;
    const struct sock *sk = find_socket(cast, regs->di);
    if (kind == TRACE_SEND)
        end_signal(regs->di, result);
    if (sk && is_traced_socket(cast, sk) && (call != __NR_sendmmsg || GET(cast, sk, sk_protocol) == UDP))
        report(cast, call, regs, kind, result, sk, thread, 0);
    return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_exit, struct pt_regs *regs, long result)
{
    return end_call(1, regs, result);
}

/* Handles the end of each call before Linux 6.2. */
SEC("tp_btf/sys_exit")
int BPF_PROG(on_exit_without_cast, struct pt_regs *regs, long result)
{
    return end_call(0, regs, result);
}

/* ---- TLS libraries ---- */

/* Begins a call of a TLS library. A program can write and read the connection itself, and pass only memory to the TLS
 * library. The plain data of such a program has no socket, so nlkernel does not report the data. */
static __always_inline int begin_tls(const void *data, __u64 count)
{
    struct thread *thread = find_thread();
    if (!thread)
        return 0;
    thread->tls_data = (__u64)data;
    thread->tls_count = count;
    thread->tls_socket = 0;
    thread->is_in_tls = 1;
    return 0;
}

/* Reports the data that a function has transferred. `size` is the number of bytes, or 1 if the function has stored the
 * number of bytes in memory. */
static __always_inline int end_tls(enum trace_kind direction, long size)
{
    struct thread *thread = find_thread();
    if (!thread || !thread->is_in_tls)
        return 0;
    thread->is_in_tls = 0;
    if (size <= 0 || thread->tls_socket == 0)
        return 0;
    __u64 count = size;
    if (thread->tls_count != 0 && bpf_probe_read_user(&count, sizeof count, (const void *)thread->tls_count) != 0)
        return 0;
    /* do not use `scratch`, because the kernel may switch to another thread in a uprobe */
    struct trace_event *e = bpf_ringbuf_reserve(&ring, sizeof *e, 0);
    if (!e) {
        __sync_fetch_and_add(&missed, 1);
        return 0;
    }
    struct piece data = {(const char *)thread->tls_data, count}, nothing = {0};
    __builtin_memset(e, 0, __builtin_offsetof(struct trace_event, data));
    begin_event(e, TRACE_PLAIN, thread);
    e->socket = thread->tls_socket;
    e->other = direction;
    e->size = count;
    capture(e, data, nothing);
    bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
    return 0;
}

/* SSL_read, SSL_write, gnutls_record_recv and gnutls_record_send have the same arguments. */
SEC("uprobe")
int on_tls(struct pt_regs *regs)
{
    return begin_tls((const void *)regs->si, 0);
}

/* SSL_read_ex and SSL_write_ex return 1, and store the number of bytes. */
SEC("uprobe")
int on_tls_ex(struct pt_regs *regs)
{
    return begin_tls((const void *)regs->si, regs->cx);
}

SEC("uretprobe")
int on_tls_sent(struct pt_regs *regs)
{
    return end_tls(TRACE_SEND, (int)regs->ax);
}

SEC("uretprobe")
int on_tls_received(struct pt_regs *regs)
{
    return end_tls(TRACE_RECEIVE, (int)regs->ax);
}

/* ---- connections and processes ---- */

/* Reports that a thread begins to connect. The local port is still unknown. */
static __always_inline void report_connect(struct sock *sk)
{
    struct thread *thread = find_thread();
    __u32 zero = 0;
    struct trace_event *e = thread ? bpf_map_lookup_elem(&scratch, &zero) : 0;
    if (!e)
        return;
    if (!thread->announced)
        announce(thread);
    read_socket(0, e, sk);
    if (!is_wanted(e))
        return;
    begin_event(e, TRACE_CONNECT, thread);
    e->is_datagram = 0;
    e->size = e->sequence = e->other = 0;
    e->role = TRACE_ROLE_CLIENT;
    put(e, 0);
}

/* Reports that a thread begins to connect. Also reports the end of a connection: this host closes the connection, a
 * peer resets the connection, or connecting fails. */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_state, struct sock *sk, int before, int now)
{
    if (sk->sk_protocol != TCP)
        return 0;
    if (now == SYN_SENT) {
        report_connect(sk);
        return 0;
    }
    _Bool fails = before == SYN_SENT && now == CLOSED;
    if (((before != ESTABLISHED && before != CLOSE_WAIT) || now == CLOSE_WAIT) && !fails)
        return 0;
    __u64 key = (__u64)sk;
    if (has_http2)
        bpf_map_delete_elem(&http2_sockets, &key);
    struct trace_event *e = reserve(TRACE_CLOSE);
    if (!e)
        return 0;
    e->socket = key;
    e->local_port = sk->__sk_common.skc_num;
    e->peer_port = __builtin_bswap16(sk->__sk_common.skc_dport);
    bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
    return 0;
}

/* Traces the processes that a traced process starts. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
    __u32 from = parent->tgid, to = child->tgid;
    struct process first = {0};
    if (from != to && !by_ports && bpf_map_lookup_elem(&processes, &from)) {
        may_be_traced[to % TRACE_FILTER_SIZE] = 1;
        bpf_map_update_elem(&processes, &to, &first, BPF_NOEXIST);
    }
    return 0;
}

/* Traces the processes that start a program with a chosen name. Reports the new name of a traced process. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
    __u32 pid = task->tgid;
    struct process first = {0};
    struct program program = {0};
    bpf_get_current_comm(program.name, sizeof program.name);
    struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);
    if (thread)
        thread->announced = 0;
    if (bpf_map_lookup_elem(&processes, &pid) || bpf_map_lookup_elem(&programs, &program)) {
        may_be_traced[pid % TRACE_FILTER_SIZE] = 1;
        bpf_map_update_elem(&processes, &pid, &first, BPF_ANY);
    }
    return 0;
}

/* Handles the end of a process's last thread, which is not always the main thread. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_thread_exit, struct task_struct *task)
{
    __u32 pid = task->tgid;
    struct process *process = task->signal->live.counter == 0 ? bpf_map_lookup_elem(&processes, &pid) : 0;
    if (!process)
        return 0;
    struct trace_event *e = process->announced ? reserve(TRACE_EXIT) : 0;
    if (e) {
        e->pid = e->tid = pid;
        bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
    }
    bpf_map_delete_elem(&processes, &pid);
    return 0;
}

char LICENSE[] SEC("license") = "GPL";
