/* The data that the program in the kernel (sum.bpf.c) and nlkernel (kernel_sum.c) share. */
#ifndef NLKERNEL_BPF_SUM_H
#define NLKERNEL_BPF_SUM_H

#include <linux/types.h>

enum { SUM_FIELDS = 2, SUM_KEYS_MAX = 16384, SUM_STACK = 16, SUM_PROGRAM = 16 };

/* A field of an event; size 0: no field. */
struct sum_field {
    __u32 offset, size;
};

struct span_key {
    __u64 fields[SUM_FIELDS];
    __u64 thread;
};

struct sum_key {
    __u64 fields[SUM_FIELDS];
    char program[SUM_PROGRAM];
    __s64 stack; /* negative: unknown */
};

struct sum_value {
    __u64 count, total_ns, max_ns;
};

#endif
