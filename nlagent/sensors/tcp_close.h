/* The layout of the events that tcp_close.bpf.c, which runs in the kernel, passes to socket_ends.c. The build compiles
 * both for the same machine, so the layout needs no version. */
#ifndef NLAGENT_TCP_CLOSE_H
#define NLAGENT_TCP_CLOSE_H

#define TCP_CLOSE_RING_SIZE (16 << 20)

/* A TCP connection that has ended. */
struct tcp_close {
    __u64 cookie;
    __u64 end_ns, begin_ns, established_ns; /* times of CLOCK_MONOTONIC; begin_ns and established_ns: 0 if unknown */
    __u64 bytes_sent, bytes_acked, bytes_received, bytes_retransmitted;
    __u32 retransmitted, segments_out, segments_in;
    __u32 rtt_us, rtt_min_us, mss, cwnd;
    __u32 uid;
    __u16 family, local_port, peer_port, last_state; /* ports in host order */
    __u8 local[16], peer[16];                        /* IPv4: the first 4 bytes */
};

#endif
