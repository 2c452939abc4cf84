/*
 * Reports each TCP connection that ends, with its totals. inet_sock_set_state is the only tracepoint that every TCP
 * socket passes at its end. The kernel still has the socket's counters at this point.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "tcp_close.h"
#include "tcp_kernel.h"

/* The inode of the network namespace whose connections this program reports, set by nlsensor. */
const volatile __u32 namespace_inode;

/* The number of ends for which the ring had no space. */
__u64 missed;

struct times {
    __u64 begin_ns, established_ns;
};

struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct times);
} starts SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, TCP_CLOSE_RING_SIZE);
} ring SEC(".maps");

static __always_inline void report(struct sock *sk, int last_state)
{
    struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
    if (!tp)
        return;
    struct tcp_close *e = bpf_ringbuf_reserve(&ring, sizeof *e, 0);
    if (!e) {
        __sync_fetch_and_add(&missed, 1);
        return;
    }
    struct times *start = bpf_sk_storage_get(&starts, sk, 0, 0);
    e->cookie = bpf_get_socket_cookie(sk);
    e->end_ns = bpf_ktime_get_ns();
    e->begin_ns = start ? start->begin_ns : 0;
    e->established_ns = start ? start->established_ns : 0;
    e->bytes_sent = tp->bytes_sent;
    e->bytes_acked = tp->bytes_acked;
    e->bytes_received = tp->bytes_received;
    e->bytes_retransmitted = tp->bytes_retrans;
    e->retransmitted = tp->total_retrans;
    e->segments_out = tp->segs_out;
    e->segments_in = tp->segs_in;
    e->rtt_us = tp->srtt_us >> 3;
    e->rtt_min_us = BPF_CORE_READ(tp, rtt_min.s[0].v);
    e->mss = tp->mss_cache;
    e->cwnd = tp->snd_cwnd;
    e->uid = sk->sk_uid.val;
    e->family = sk->__sk_common.skc_family;
    e->local_port = __builtin_bswap16(BPF_CORE_READ((struct inet_sock *)sk, inet_sport)); /* skc_num is already 0 */
    e->peer_port = __builtin_bswap16(sk->__sk_common.skc_dport);
    e->last_state = last_state;
    if (e->family == IPV4) {
        __builtin_memset(e->local, 0, sizeof e->local);
        __builtin_memset(e->peer, 0, sizeof e->peer);
        *(__u32 *)e->local = sk->__sk_common.skc_rcv_saddr;
        *(__u32 *)e->peer = sk->__sk_common.skc_daddr;
    } else {
        BPF_CORE_READ_INTO(&e->local, sk, __sk_common.skc_v6_rcv_saddr);
        BPF_CORE_READ_INTO(&e->peer, sk, __sk_common.skc_v6_daddr);
    }
    bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_state, struct sock *sk, int before, int now)
{
    if (sk->sk_protocol != TCP || BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum) != namespace_inode)
        return 0;
    if (now == SYN_SENT || now == SYN_RECEIVED || now == ESTABLISHED) {
        struct times *start = bpf_sk_storage_get(&starts, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
        if (start && now == ESTABLISHED)
            start->established_ns = bpf_ktime_get_ns();
        else if (start)
            start->begin_ns = bpf_ktime_get_ns();
    } else if (now == CLOSED && before != LISTENING && before != CLOSED) {
        report(sk, before);
    }
    return 0;
}

char _license[] SEC("license") = "GPL";
