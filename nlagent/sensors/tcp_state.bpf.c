/*
 * Reads the state of each TCP connection of a network namespace, and passes the connections that have changed to the
 * reader of the iterator. An unchanged connection causes no system call and no copy.
 *
 * If MARKS is defined (tcp_used.bpf.c), hooks also mark the connections in use, and a second iterator reads only these.
 * A connection changes when its program sends, when a segment arrives, when its state changes, or when a timer of the
 * kernel expires. A hook marks the connection in the first three cases. Timers change only a connection with data
 * in a queue or in a state other than established or close-wait; such a connection remains marked. A keepalive probe
 * without an answer is the exception.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "tcp_kernel.h"
#include "tcp_state.h"

enum { ECN_OK = 1 };
enum { CHRONO_BUSY = 1, CHRONO_RECEIVER = 2, CHRONO_BUFFER = 3 };

/* With a complete reading every 2 s, the kernel passes each connection at least every 10 s. */
#define PASSED_AGAIN_NS 8000000000ull
/* A connection remains marked for this time, because delayed acknowledgements and the next request follow soon. */
#define MARKED_NS 1000000000ull

struct seq_file;
struct bpf_iter_meta {
    struct seq_file *seq;
} KERNEL;
struct bpf_iter__tcp {
    struct bpf_iter_meta *meta;
    struct sock_common *sk_common;
} KERNEL;

/* Settings: a local or remote port (0: any port), and whether to pass unchanged connections. */
const volatile __u16 only_port;
const volatile __u8 all_rows;

/* The number of connections with this port that the current reading has examined. The reader resets it. */
__u64 examined;

struct seen {
    __u64 digest, passed_ns; /* 0: no reading has passed the connection */
    __u64 counted;           /* whether the number of connections includes the connection */
};

struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct seen);
} seen_rows SEC(".maps");

static __always_inline __u64 mix(__u64 digest, __u64 value)
{
    return ((digest << 7 | digest >> 57) ^ value) * 0x9e3779b97f4a7c15ull;
}

static __always_inline __u32 since(__u32 first, __u32 last)
{
    return (__s32)(last - first) > 0 ? last - first : 0;
}

/* Returns the time in jiffies that the timer `kind` of the sender has counted (tcp_get_info_chrono_stats in the
 * kernel). */
static __always_inline __u64 chrono(const struct tcp_sock *tp, int kind, __u32 running, __u32 now)
{
    return (__u64)tp->chrono_stat[kind - 1] + (running == (__u32)kind ? now - tp->chrono_start : 0);
}

/* Returns the arrival time, in jiffies, of the last segment with new data or with an acknowledgement. */
static __always_inline __u64 received_at(const struct tcp_sock *tp, const struct inet_connection_sock *c, __u64 now)
{
    __u32 data = (__u32)now - c->icsk_ack.lrcvtime, acknowledgement = (__u32)now - tp->rcv_tstamp;
    return now - (data < acknowledgement ? data : acknowledgement);
}

/* Returns whether each segment contains the peer's clock in milliseconds (RFC 7323). */
static __always_inline bool has_timestamps(const struct tcp_sock *tp)
{
    const struct tcp_options_received *options = &tp->rx_opt;
    bool in_us = bpf_core_field_exists(tp->tcp_usec_ts) && BPF_CORE_READ_BITFIELD_PROBED(tp, tcp_usec_ts);
    return BPF_CORE_READ_BITFIELD_PROBED(options, tstamp_ok) && options->rcv_tsval != 0 && !in_us;
}

/* Returns a hash of the values that change when a program uses the connection. */
static __always_inline __u64 digest_of(const struct tcp_sock *tp, const struct sock_common *sk, __u32 running,
                                       __u32 now)
{
    __u64 digest =
        mix(sk->skc_state, (__u64)since(tp->copied_seq, tp->rcv_nxt) << 32 | since(tp->snd_una, tp->write_seq));
    digest = mix(digest, tp->bytes_sent);
    digest = mix(digest, tp->bytes_acked);
    digest = mix(digest, tp->bytes_received);
    digest = mix(digest, running != 0 ? now : 0);
    return mix(digest, (__u64)tp->segs_in << 32 | tp->segs_out);
}

static __always_inline bool is_connection(const struct sock_common *sk)
{
    return sk->skc_state != LISTENING && sk->skc_state != TIME_WAIT && sk->skc_state != CLOSED &&
           sk->skc_state != NEW_SYN_RECEIVED;
}

static __always_inline bool has_port(__u16 local_port, __u16 peer_port)
{
    return only_port == 0 || local_port == only_port || peer_port == only_port;
}

enum { UNCHANGED, NEW, CHANGED, BUFFER_FULL };

/* Passes the connection if it has changed, or if it was last passed long ago. A complete reading counts connections. */
static __always_inline int pass_state(struct seq_file *seq, const struct sock_common *sk, struct tcp_sock *tp,
                                      bool counts)
{
    __u16 local_port = sk->skc_num, peer_port = __builtin_bswap16(sk->skc_dport);
    __u64 now_jiffies = bpf_jiffies64();
    __u32 now = (__u32)now_jiffies, running = BPF_CORE_READ_BITFIELD_PROBED(tp, chrono_type);
    __u64 digest = digest_of(tp, sk, running, now), now_ns = bpf_ktime_get_ns();
    struct seen *seen = bpf_sk_storage_get(&seen_rows, (struct sock *)tp, 0, BPF_SK_STORAGE_GET_F_CREATE);
    bool changed = !seen || seen->digest != digest, is_new = !seen || seen->passed_ns == 0;
    if (!all_rows && !changed && seen->passed_ns + PASSED_AGAIN_NS > now_ns) {
        examined++;
        seen->counted |= counts;
        return UNCHANGED;
    }
    struct sock *s = (struct sock *)tp;
    struct inet_connection_sock *c = (struct inet_connection_sock *)tp;
    const struct tcp_options_received *options = &tp->rx_opt;
    struct tcp_state row = {
        .cookie = bpf_get_socket_cookie(s),
        .bytes_sent = tp->bytes_sent,
        .bytes_acked = tp->bytes_acked,
        .bytes_received = tp->bytes_received,
        .bytes_retransmitted = tp->bytes_retrans,
        .pacing = s->sk_pacing_rate,
        .receiver_limited = chrono(tp, CHRONO_RECEIVER, running, now),
        .buffer_limited = chrono(tp, CHRONO_BUFFER, running, now),
        .cwnd = tp->snd_cwnd,
        .ssthresh = tp->snd_ssthresh,
        .mss = tp->mss_cache,
        .window = tp->snd_wnd,
        .window_receive = (__u32)tp->rcvq_space.space,
        .rtt_us = tp->srtt_us >> 3,
        .rtt_var_us = tp->mdev_us >> 2,
        .rtt_min_us = BPF_CORE_READ(tp, rtt_min.s[0].v),
        .rtt_receive_us = tp->rcv_rtt_est.rtt_us >> 3,
        .rto = c->icsk_rto,
        .idle_out = now - tp->lsndtime,
        .unacked = tp->packets_out,
        .lost = tp->lost_out,
        .retransmitted = tp->total_retrans,
        .segments_out = tp->segs_out,
        .segments_in = tp->segs_in,
        .unsent = since(tp->snd_nxt, tp->write_seq),
        .queue_in = since(tp->copied_seq, tp->rcv_nxt),
        .queue_out = since(tp->snd_una, tp->write_seq),
        .buffer_in = (__u32)s->sk_rcvbuf,
        .buffer_out = (__u32)s->sk_sndbuf,
        .memory_out = (__u32)s->sk_wmem_queued,
        .rate_delivered = tp->rate_delivered,
        .rate_interval_us = tp->rate_interval_us,
        .reordering = tp->reordering,
        .reordered = tp->reord_seen,
        .dsacks = tp->dsack_dups,
        .ecn_marked = tp->delivered_ce,
        .sequence_out = tp->snd_una - (__u32)tp->bytes_acked,
        .sequence_in = tp->rcv_nxt - (__u32)tp->bytes_received,
        .received_at = received_at(tp, c, now_jiffies),
        .timestamp_in = options->rcv_tsval,
        .has_timestamps = has_timestamps(tp),
        .uid = s->sk_uid.val,
        .family = sk->skc_family,
        .local_port = local_port,
        .peer_port = peer_port,
        .state = sk->skc_state,
        .recovery = BPF_CORE_READ_BITFIELD_PROBED(c, icsk_ca_state),
        .ecn = (tp->ecn_flags & ECN_OK) != 0,
        .rate_app_limited = BPF_CORE_READ_BITFIELD_PROBED(tp, rate_app_limited),
        .scale_out = BPF_CORE_READ_BITFIELD_PROBED(options, snd_wscale),
        .scale_in = BPF_CORE_READ_BITFIELD_PROBED(options, rcv_wscale),
    };
    /* add the times limited by the receiver or the send buffer, which are also busy time, but which the kernel counts
     * separately */
    row.busy = chrono(tp, CHRONO_BUSY, running, now) + row.receiver_limited + row.buffer_limited;
    struct socket_alloc *socket = (struct socket_alloc *)s->sk_socket;
    if (socket)
        row.inode = BPF_CORE_READ(socket, vfs_inode.i_ino);
    if (row.family == IPV4) {
        *(__u32 *)row.local = sk->skc_rcv_saddr;
        *(__u32 *)row.peer = sk->skc_daddr;
    } else {
        BPF_CORE_READ_INTO(&row.local, sk, skc_v6_rcv_saddr);
        BPF_CORE_READ_INTO(&row.peer, sk, skc_v6_daddr);
    }
    const struct tcp_congestion_ops *algorithm = c->icsk_ca_ops;
    if (algorithm)
        BPF_CORE_READ_INTO(&row.algorithm, algorithm, name);
    /* If the kernel's buffer is full, the kernel calls this program for the connection again after the next read. */
    if (bpf_seq_write(seq, &row, sizeof row) != 0)
        return BUFFER_FULL;
    examined++;
    if (seen) { /* if memory for `seen` is missing, the program passes the connection in every measurement */
        seen->digest = digest;
        seen->passed_ns = now_ns;
        seen->counted |= counts;
    }
    return is_new ? NEW : changed ? CHANGED : UNCHANGED;
}

#ifdef MARKS

/* The network namespace whose connections this program marks; nlsensor sets it. */
const volatile __u32 namespace_inode;

/* The number of connections with the port that have opened, minus those that have closed (seen.counted). */
__s64 opened;

struct mark {
    __u64 used_ns; /* when a reading last found the connection in use */
    __u64 touched; /* whether a hook has run since then */
};

struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct mark);
} marks SEC(".maps");

struct bpf_map;
struct bpf_iter__bpf_sk_storage_map {
    struct bpf_iter_meta *meta;
    struct bpf_map *map;
    struct sock *sk;
    void *value;
} KERNEL;

/* Returns whether a timer of the kernel can change the connection without a hook. */
static __always_inline bool has_timer(const struct sock_common *sk, const struct tcp_sock *tp)
{
    return (sk->skc_state != ESTABLISHED && sk->skc_state != CLOSE_WAIT) || tp->write_seq != tp->snd_una ||
           tp->rcv_nxt != tp->copied_seq;
}

static __always_inline void touch(struct mark *mark)
{
    if (mark && !mark->touched)
        mark->touched = 1;
}

static __always_inline void mark_connection(struct sock *sk)
{
    touch(bpf_sk_storage_get(&marks, sk, 0, BPF_SK_STORAGE_GET_F_CREATE));
}

static __always_inline bool is_here(const struct sock *sk)
{
    return BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum) == namespace_inode;
}

static __always_inline void on_use(struct sock *sk)
{
    struct mark *mark = bpf_sk_storage_get(&marks, sk, 0, 0);
    if (mark)
        touch(mark);
    else if (has_port(sk->__sk_common.skc_num, __builtin_bswap16(sk->__sk_common.skc_dport)) && is_here(sk))
        mark_connection(sk);
}

/* The kernel calls this tracepoint at the end of each call that sends, with a socket of any protocol. */
SEC("tp_btf/sock_send_length")
int BPF_PROG(on_send, struct sock *sk)
{
    if (sk->sk_protocol == TCP)
        on_use(sk);
    return 0;
}

/* The kernel calls this tracepoint for each segment that arrives in the state established. */
SEC("tp_btf/tcp_probe")
int BPF_PROG(on_segment, struct sock *sk)
{
    on_use(sk);
    return 0;
}

/* Counts a connection when it has the port. In a connection's first state, the kernel may not have set the local port
 * or the peer's port yet. */
static __always_inline void count(struct sock *sk)
{
    __u16 local_port = __builtin_bswap16(BPF_CORE_READ((struct inet_sock *)sk, inet_sport));
    if (!has_port(local_port, __builtin_bswap16(sk->__sk_common.skc_dport)))
        return;
    struct seen *seen = bpf_sk_storage_get(&seen_rows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
    if (seen && !seen->counted) {
        seen->counted = 1;
        __sync_fetch_and_add(&opened, 1);
    }
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_state, struct sock *sk, int before, int now)
{
    if (sk->sk_protocol != TCP || now == LISTENING || !is_here(sk))
        return 0;
    if (now != CLOSED) {
        mark_connection(sk);
        count(sk);
        return 0;
    }
    struct seen *seen = bpf_sk_storage_get(&seen_rows, sk, 0, 0);
    if (seen && seen->counted) {
        seen->counted = 0; /* a program can connect the socket again */
        __sync_fetch_and_add(&opened, -1);
    }
    return 0;
}

/*
 * Reads a marked connection. Removes the mark if the connection is no longer in use. A hook that runs at the same
 * moment can touch the mark that this program removes, so the program then marks the connection again. If both still
 * overlap, the next complete reading finds the change.
 */
SEC("iter/bpf_sk_storage_map")
int read_marked(struct bpf_iter__bpf_sk_storage_map *ctx)
{
    struct sock *sk = ctx->sk;
    struct mark *mark = ctx->value;
    if (!sk || !mark)
        return 0;
    struct tcp_sock *tp = is_connection(&sk->__sk_common) ? bpf_skc_to_tcp_sock(sk) : NULL;
    if (!tp) {
        bpf_sk_storage_delete(&marks, sk);
        return 0;
    }
    if (!has_port(sk->__sk_common.skc_num, __builtin_bswap16(sk->__sk_common.skc_dport))) {
        bpf_sk_storage_delete(&marks, sk); /* otherwise, each reading would visit it again */
        return 0;
    }
    __u64 now_ns = bpf_ktime_get_ns();
    bool used = mark->touched;
    mark->touched = 0;
    if (pass_state(ctx->meta->seq, &sk->__sk_common, tp, false) != UNCHANGED || used)
        mark->used_ns = now_ns;
    if (has_timer(&sk->__sk_common, tp) || mark->used_ns + MARKED_NS > now_ns)
        return 0;
    bpf_sk_storage_delete(&marks, sk);
    if (mark->touched)
        mark_connection(sk);
    return 0;
}

#endif

SEC("iter/tcp")
int read_all(struct bpf_iter__tcp *ctx)
{
    struct sock_common *sk = ctx->sk_common;
    if (!sk || !is_connection(sk) || !has_port(sk->skc_num, __builtin_bswap16(sk->skc_dport)))
        return 0;
    struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
    if (!tp)
        return 0;
#ifdef MARKS
    if (pass_state(ctx->meta->seq, sk, tp, true) == CHANGED || has_timer(sk, tp))
        mark_connection((struct sock *)tp);
#else
    pass_state(ctx->meta->seq, sk, tp, true);
#endif
    return 0;
}

char _license[] SEC("license") = "GPL";
