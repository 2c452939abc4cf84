/* The kernel's structures and constants that the programs in the kernel (*.bpf.c) share. */
#ifndef NLAGENT_SENSORS_TCP_KERNEL_H
#define NLAGENT_SENSORS_TCP_KERNEL_H

#include <linux/types.h>

enum { ESTABLISHED = 1, SYN_SENT = 2, SYN_RECEIVED = 3, TIME_WAIT = 6, CLOSED = 7, CLOSE_WAIT = 8, LISTENING = 10 };
enum { NEW_SYN_RECEIVED = 12, IPV4 = 2, TCP = 6 };

/* The kernel's structures, with the members that the programs use. libbpf inserts the offsets of the running
 * kernel. */
#define KERNEL __attribute__((preserve_access_index))
struct in6_addr {
    __u8 bytes[16];
};
struct ns_common {
    unsigned int inum;
} KERNEL;
struct net {
    struct ns_common ns;
} KERNEL;
typedef struct {
    struct net *net;
} possible_net_t;
struct sock_common {
    __u32 skc_daddr, skc_rcv_saddr;
    __u16 skc_dport, skc_num, skc_family;
    volatile unsigned char skc_state;
    possible_net_t skc_net;
    struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
} KERNEL;
struct inode {
    unsigned long i_ino;
} KERNEL;
struct socket;
struct socket_alloc {
    struct inode vfs_inode;
} KERNEL;
typedef struct {
    __u32 val;
} kuid_t;
struct sock {
    struct sock_common __sk_common;
    __u16 sk_protocol;
    kuid_t sk_uid;
    int sk_rcvbuf, sk_sndbuf, sk_wmem_queued;
    struct socket *sk_socket;
    unsigned long sk_pacing_rate;
} KERNEL;
struct inet_sock {
    struct sock sk;
    __u16 inet_sport;
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

#endif
