/*
 * The events that the program in the kernel (trace.bpf.c) passes to nlkernel (trace_probe.c). Both are compiled on the
 * same machine, so the layout needs no version.
 */
#ifndef NLKERNEL_BPF_TRACE_H
#define NLKERNEL_BPF_TRACE_H

#include <linux/types.h>

enum {
    TRACE_CAPTURE_MAX = 1024,
    TRACE_TAIL_SIZE = 8,
    TRACE_JOIN_SIZE = 64, /* in bytes; if the first vector is smaller, the program also captures the second vector */
    TRACE_PROCESSES_MAX = 65536,
    TRACE_FILTER_SIZE = 65536, /* a power of 2 */
    TRACE_PORTS_MAX = 1024,
    TRACE_PROGRAMS_MAX = 1024
};

#define TRACE_RING_SIZE (64 << 20)

enum trace_kind {
    TRACE_SEND,
    TRACE_RECEIVE, /* size 0: the peer has closed the connection */
    TRACE_CONNECT,
    TRACE_CLOSE,
    TRACE_PROCESS, /* before a process's first event, and before the first event of a new program in it; the data is a
                      trace_process */
    TRACE_EXIT,    /* a process that was reported with TRACE_PROCESS has ended */
    TRACE_WAKE,    /* the thread has woken thread `other` of its process; `other` has waited for `socket` */
    TRACE_SIGNAL,  /* the thread has written to a pipe, an eventfd or a Unix socket, which `socket` identifies */
};

/* The role of the process's socket in a TCP connection. */
enum trace_role { TRACE_ROLE_UNKNOWN, TRACE_ROLE_CLIENT, TRACE_ROLE_SERVER };

struct trace_event {
    __u64 begin_ns, end_ns; /* start and end of the call on CLOCK_MONOTONIC; equal unless the kind is TRACE_SEND */
    __u64 socket; /* address of the socket or channel in the kernel; if the lowest bit is set, of a futex in the process
                   */
    __u32 pid, tid;
    __u32 sequence; /* TCP sequence number of the first byte */
    __u32 other;    /* sequence number of the next byte in the other direction; TRACE_WAKE: ID of the woken thread */
    __u32 size;     /* bytes that were sent or received */
    __u32 idles;    /* number of waits for events with a timeout other than 0, by the thread so far */
    __u32 polls;    /* number of queries for events with a timeout of 0, by the thread so far */
    __u32 loops;    /* number of waits and queries for several descriptors, by the thread so far */
    __u16 local_port, peer_port;
    __u16 captured; /* number of bytes in data */
    __u8 kind, role, family;
    __u8 is_datagram;             /* a DNS message over UDP: sequence and other are 0, and the local address may be 0 */
    __u8 tail_size;               /* number of bytes in tail */
    __u8 local[16], peer[16];     /* addresses; an IPv4 address has only 4 bytes */
    __u8 tail[TRACE_TAIL_SIZE];   /* the last bytes of the call's data, if data does not contain them */
    __u8 data[TRACE_CAPTURE_MAX]; /* the first bytes of the call's data; the event in the ring ends after the last
                                     captured byte */
};

struct trace_process {
    char program[16];
    char host[65];
};

#endif
