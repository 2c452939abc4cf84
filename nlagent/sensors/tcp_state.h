/* The layout of the rows that tcp_state.bpf.c, which runs in the kernel, passes to socket_states.c. The build compiles
 * both for the same machine, so the layout needs no version. */
#ifndef NLAGENT_TCP_STATE_H
#define NLAGENT_TCP_STATE_H

#include <linux/types.h>

/* The state of a TCP connection. Times without a unit are in jiffies. */
struct tcp_state {
    __u64 cookie, inode;
    __u64 bytes_sent, bytes_acked, bytes_received, bytes_retransmitted;
    __u64 pacing; /* bytes/s */
    __u64 busy, receiver_limited, buffer_limited;
    __u64 received_at; /* arrival time of the last segment */
    __u32 cwnd, ssthresh, mss, window, window_receive;
    __u32 rtt_us, rtt_var_us, rtt_min_us, rtt_receive_us;
    __u32 rto, idle_out;
    __u32 unacked, lost, retransmitted, segments_out, segments_in;
    __u32 unsent, queue_in, queue_out;       /* bytes */
    __u32 buffer_in, buffer_out, memory_out; /* memory_out: the used part of buffer_out */
    __u32 rate_delivered, rate_interval_us;  /* segments delivered in an interval, and its length */
    __u32 reordering, reordered, dsacks, ecn_marked;
    __u32 sequence_out, sequence_in; /* sequence numbers of the first sent byte (or of the SYN, if this end opened the
                                        connection), and of the first received byte */
    __u32 timestamp_in;              /* the peer's clock in the last segment, in ms */
    __u32 uid;
    __u16 family, local_port, peer_port; /* ports in host order */
    __u8 state, recovery, ecn, rate_app_limited, scale_out, scale_in, has_timestamps;
    __u8 local[16], peer[16]; /* IPv4: the first 4 bytes */
    char algorithm[16];
};

#endif
