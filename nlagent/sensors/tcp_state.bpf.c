/* Reads the state of each TCP connection of a network namespace, and passes the connections that have changed to the
 * reader of the iterator. An unchanged connection causes no system call and no copy. */
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "tcp_state.h"

enum { TIME_WAIT = 6, CLOSED = 7, LISTENING = 10, NEW_SYN_RECEIVED = 12, IPV4 = 2, ECN_OK = 1 };
enum { CHRONO_BUSY = 1, CHRONO_RECEIVER = 2, CHRONO_BUFFER = 3 };

#define LOGGED_AGAIN_NS 10000000000ull

/* The kernel's structures, with the members that this program uses. libbpf inserts the offsets of the running
 * kernel. */
#define KERNEL __attribute__((preserve_access_index))
struct in6_addr {
    __u8 bytes[16];
};
struct sock_common {
    __u32 skc_daddr, skc_rcv_saddr;
    __u16 skc_dport, skc_num, skc_family;
    volatile unsigned char skc_state;
    struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
} KERNEL;
struct inode {
    unsigned long i_ino;
} KERNEL;
struct socket;
struct socket_alloc {
    struct inode vfs_inode;
} KERNEL;
struct sock {
    struct sock_common __sk_common;
    int sk_rcvbuf, sk_sndbuf, sk_wmem_queued;
    struct socket *sk_socket;
    unsigned long sk_pacing_rate;
} KERNEL;
struct inet_sock {
    struct sock sk;
} KERNEL;
struct tcp_congestion_ops {
    char name[16];
} KERNEL;
struct inet_connection_sock {
    __u32 icsk_rto;
    const struct tcp_congestion_ops *icsk_ca_ops;
    __u8 icsk_ca_state : 5;
    struct {
        __u32 lrcvtime;
    } icsk_ack;
} KERNEL;
struct minmax_sample {
    __u32 t, v;
};
struct minmax {
    struct minmax_sample s[3];
} KERNEL;
struct tcp_options_received {
    __u32 rcv_tsval;
    __u16 saw_tstamp : 1, tstamp_ok : 1, snd_wscale : 4, rcv_wscale : 4;
} KERNEL;
struct tcp_sock {
    struct inet_connection_sock inet_conn;
    __u64 bytes_sent, bytes_acked, bytes_received, bytes_retrans;
    __u32 total_retrans, segs_out, segs_in, srtt_us, mdev_us, mss_cache, snd_cwnd, snd_ssthresh, snd_wnd;
    __u32 packets_out, lost_out, write_seq, snd_nxt, snd_una, rcv_nxt, copied_seq, lsndtime, rcv_tstamp;
    __u32 chrono_start, chrono_stat[3], rate_delivered, rate_interval_us, reordering, reord_seen, dsack_dups,
        delivered_ce;
    __u8 chrono_type : 2, rate_app_limited : 1, tcp_usec_ts : 1, ecn_flags;
    struct minmax rtt_min;
    struct tcp_options_received rx_opt;
    struct {
        __u32 rtt_us;
    } rcv_rtt_est;
    struct {
        int space;
    } rcvq_space;
} KERNEL;
struct seq_file;
struct bpf_iter_meta {
    struct seq_file *seq;
} KERNEL;
struct bpf_iter__tcp {
    struct bpf_iter_meta *meta;
    struct sock_common *sk_common;
    __u32 uid;
} KERNEL;

/* Settings: a local or remote port (0: any port), and whether to pass unchanged connections. */
const volatile __u16 only_port;
const volatile __u8 all_rows;

/* The number of connections with this port in the current reading, including unchanged connections. The reader resets
 * the number. */
__u64 connections;

struct seen {
    __u64 digest, passed_ns;
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

SEC("iter/tcp")
int read_states(struct bpf_iter__tcp *ctx)
{
    struct sock_common *sk = ctx->sk_common;
    if (!sk || sk->skc_state == LISTENING || sk->skc_state == TIME_WAIT || sk->skc_state == CLOSED ||
        sk->skc_state == NEW_SYN_RECEIVED)
        return 0;
    struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
    if (!tp)
        return 0;
    __u16 local_port = sk->skc_num, peer_port = __builtin_bswap16(sk->skc_dport);
    if (only_port != 0 && local_port != only_port && peer_port != only_port)
        return 0;
    __u64 now_jiffies = bpf_jiffies64();
    __u32 now = (__u32)now_jiffies, running = BPF_CORE_READ_BITFIELD_PROBED(tp, chrono_type);
    __u64 digest = digest_of(tp, sk, running, now), now_ns = bpf_ktime_get_ns();
    struct seen *seen = bpf_sk_storage_get(&seen_rows, (struct sock *)tp, 0, BPF_SK_STORAGE_GET_F_CREATE);
    if (!all_rows && seen && seen->digest == digest && seen->passed_ns + LOGGED_AGAIN_NS > now_ns) {
        connections++;
        return 0;
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
        .uid = ctx->uid,
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
    /* if the kernel's buffer is full, the kernel calls this program for the connection again after the next read */
    if (bpf_seq_write(ctx->meta->seq, &row, sizeof row) != 0)
        return 0;
    connections++;
    if (seen) { /* if memory for `seen` is missing, the program passes the connection in every measurement */
        seen->digest = digest;
        seen->passed_ns = now_ns;
    }
    return 0;
}

char _license[] SEC("license") = "GPL";
