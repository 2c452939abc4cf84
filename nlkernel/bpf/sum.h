/* What the program in the kernel and nlkernel share: sum.bpf.c and kernel_sum.c. */
#ifndef NLKERNEL_BPF_SUM_H
#define NLKERNEL_BPF_SUM_H

#include <linux/types.h>

enum { SUM_FIELDS = 2, SUM_KEYS_MAX = 16384, SUM_STACK = 16, SUM_PROGRAM = 16 };

/* Where a field lies in an event; size 0: there is none. */
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
    __s64 stack; /* negative: not known */
};

struct sum_value {
    __u64 count, total_ns, most_ns;
};

#endif
