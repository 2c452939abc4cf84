/* The events that the program in the kernel (trace.bpf.c) passes to nlkernel (trace_probe.c). The build compiles both
 * for the same machine, so the layout needs no version. */
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
    TRACE_PROGRAMS_MAX = 1024,
    TRACE_HTTP2_MAX = 65536,   /* maximum number of HTTP/2 connections in whose data the program finds frames */
    TRACE_UNIX_MAX = 65536,    /* maximum number of ends of Unix sockets whose bytes the program counts */
    TRACE_HEADERS_MAX = 65536, /* maximum length of a frame with headers in bytes; a longer frame counts as a gap */
    TRACE_FRAME_HEAD_SIZE = 9
};

/* Types of HTTP/2 frames (RFC 9113). */
enum trace_frame_type {
    TRACE_FRAME_DATA,
    TRACE_FRAME_HEADERS,
    TRACE_FRAME_PRIORITY,
    TRACE_FRAME_RESET,
    TRACE_FRAME_SETTINGS,
    TRACE_FRAME_PUSH,
    TRACE_FRAME_PING,
    TRACE_FRAME_GOAWAY,
    TRACE_FRAME_WINDOW,
    TRACE_FRAME_CONTINUATION,
};

/* The data of a call on an HTTP/2 connection. */
enum trace_http2 {
    TRACE_NOT_HTTP2,
    TRACE_FRAMES,          /* the data continues the data of the previous event of this direction */
    TRACE_FRAMES_AFTER_GAP /* frames are missing before the data, which begins with a trace_frame or is empty */
};

/*
 * The beginning of an HTTP/2 frame in an event's data. The payload of a HEADERS, PUSH_PROMISE, CONTINUATION or
 * RST_STREAM frame follows, and may continue in the next event. The program does not capture the payloads of other
 * frames.
 */
struct trace_frame {
    __u32 sequence; /* TCP sequence number of the frame's first byte */
    __u8 head[TRACE_FRAME_HEAD_SIZE];
} __attribute__((packed));

#define TRACE_RING_SIZE (64 << 20)

enum trace_kind {
    TRACE_SEND,
    TRACE_RECEIVE, /* size 0: the peer has closed the connection */
    TRACE_CONNECT,
    TRACE_CLOSE,
    TRACE_PROCESS, /* sent before a process's first event, and before its first event after it executes a new program;
                      the data is a trace_process */
    TRACE_EXIT,    /* a process that TRACE_PROCESS has reported has ended */
    TRACE_WAKE,    /* the thread has woken thread `other` of its process; `other` has waited for `socket` */
    TRACE_WAIT,    /* the thread has waited in the kernel from begin_ns to end_ns; `other` is an enum trace_wait */
    TRACE_PLAIN,   /* plain data that the thread has encrypted or decrypted with a TLS library for `socket`; `other` is
                      TRACE_SEND or TRACE_RECEIVE; the addresses are not set */
    TRACE_SIGNAL,  /* the thread has written to a pipe, an eventfd or a Unix socket, which `socket` identifies */
};

/* The kind of a thread's wait. */
enum trace_wait {
    TRACE_WAIT_NONE, /* anything else, such as a message or a timer */
    TRACE_WAIT_PROCESSOR,
    TRACE_WAIT_DISK,
    TRACE_WAIT_FUTEX, /* a lock or another thread */
    TRACE_WAIT_LOCK,  /* a lock on a file, or a System V semaphore */
    TRACE_WAIT_COUNT,
};

/* Minimum length of a reported wait. The report of a wait takes about 1 % of this time. */
#define TRACE_WAIT_MIN_NS 100000

/* The role of the process's socket in a TCP connection. */
enum trace_role { TRACE_ROLE_UNKNOWN, TRACE_ROLE_CLIENT, TRACE_ROLE_SERVER };

struct trace_event {
    __u64 begin_ns, end_ns; /* start and end of the call on CLOCK_MONOTONIC; equal if the start is unknown */
    __u64 ready_ns; /* TRACE_RECEIVE: time at which data or the end of the connection woke the thread, if the thread
                       waited only for this socket; 0: unknown */
    /* The address of the socket or channel in the kernel. If the lowest bit is set, the address of a futex in the
     * process. */
    __u64 socket;
    __u32 pid, tid;
    __u32 sequence; /* TCP sequence number of the first byte */
    __u32 other; /* sequence number of the next byte (HTTP/2: of the first byte) in the other direction; TRACE_WAKE: ID
                    of the woken thread */
    __u32 size;  /* number of sent or received bytes */
    __u32 idles; /* number of waits for events with a timeout other than 0, by the thread so far */
    __u32 polls; /* number of queries for events with a timeout of 0, by the thread so far */
    __u32 loops; /* number of waits and queries for several descriptors, by the thread so far */
    __u16 local_port, peer_port;
    __u16 captured; /* number of bytes in data */
    __u8 kind, role, family;
    __u8 is_datagram;             /* a DNS message over UDP: sequence and other are 0, and the local address may be 0 */
    __u8 http2;                   /* an enum trace_http2; unless it is 0, a call may have several events */
    __u8 tail_size;               /* number of bytes in tail */
    __u8 is_in_tls;               /* a function of a TLS library has made the call */
    __u8 counts_waits;            /* idles, polls and loops count the waits and queries of the thread */
    __u8 local[16], peer[16];     /* addresses; an IPv4 address has only 4 bytes, and the cookie of a Unix socket 8 */
    __u8 tail[TRACE_TAIL_SIZE];   /* the last bytes of the call's data, if data does not contain them */
    __u8 data[TRACE_CAPTURE_MAX]; /* the first bytes of the call's data; the event in the ring ends after the last
                                     captured byte */
};

struct trace_process {
    char program[16];
    char host[65];
};

#endif
