/*
 * Sums the durations of spans in the kernel. A span begins with an event of one kind, and ends with the next event of
 * another kind that has the same key. The program groups the sums by fields of the begin event and, on request, by the
 * thread's name (PROG) and by the kernel's stack at the begin event (CALLER). At the end, nlkernel reads the sums once.
 *
 * nlkernel sets the const volatile variables before it loads the program. The kernel's verifier treats these variables
 * as constants.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

#include "sum.h"

const volatile struct sum_field begin_keys[SUM_FIELDS];
const volatile struct sum_field end_keys[SUM_FIELDS];
const volatile struct sum_field groups[SUM_FIELDS];
const volatile _Bool by_program, by_caller, by_thread;

struct open_span {
    __u64 begin_ns;
    struct sum_key group;
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __type(key, struct span_key);
    __type(value, struct open_span);
} open SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
    __uint(max_entries, SUM_KEYS_MAX);
    __type(key, struct sum_key);
    __type(value, struct sum_value);
} sums SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_STACK_TRACE);
    __uint(max_entries, SUM_KEYS_MAX);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, SUM_STACK * sizeof(__u64));
} stacks SEC(".maps");

/* The number of spans that had no space in `open`, and the number of spans whose sum had no space in `sums`. */
__u64 missed_open, missed_sums;

static __always_inline __u64 read_field(const volatile struct sum_field *field, const void *event)
{
    __u64 value = 0;
    __u32 offset = field->offset;
    if (field->size == 8) {
        bpf_probe_read_kernel(&value, 8, event + offset);
    } else if (field->size == 4) {
        __u32 word = 0;
        bpf_probe_read_kernel(&word, 4, event + offset);
        value = word;
    } else if (field->size == 2) {
        __u16 word = 0;
        bpf_probe_read_kernel(&word, 2, event + offset);
        value = word;
    } else if (field->size == 1) {
        __u8 word = 0;
        bpf_probe_read_kernel(&word, 1, event + offset);
        value = word;
    }
    return value;
}

static __always_inline void read_key(struct span_key *key, const volatile struct sum_field *fields, const void *event)
{
    key->thread = by_thread ? (__u32)bpf_get_current_pid_tgid() : 0;
    for (int i = 0; i < SUM_FIELDS; i++)
        key->fields[i] = read_field(&fields[i], event);
}

SEC("tracepoint")
int span_begin(void *event)
{
    struct span_key key = {0};
    struct open_span span = {0};
    read_key(&key, begin_keys, event);
    for (int i = 0; i < SUM_FIELDS; i++)
        span.group.fields[i] = read_field(&groups[i], event);
    if (by_program)
        bpf_get_current_comm(span.group.program, sizeof span.group.program);
    span.group.stack = by_caller ? bpf_get_stackid(event, &stacks, BPF_F_FAST_STACK_CMP) : -1;
    span.begin_ns = bpf_ktime_get_ns();
    /* if the span is already open, keep its start, because spinning for a lock and then sleeping for it is one wait */
    long failed = bpf_map_update_elem(&open, &key, &span, BPF_NOEXIST);
    if (failed == -7 /* E2BIG */)
        __sync_fetch_and_add(&missed_open, 1);
    return 0;
}

SEC("tracepoint")
int span_end(void *event)
{
    struct span_key key = {0};
    read_key(&key, end_keys, event);
    struct open_span *span = bpf_map_lookup_elem(&open, &key);
    if (!span)
        return 0;
    __u64 took_ns = bpf_ktime_get_ns() - span->begin_ns;
    struct sum_key group = span->group;
    bpf_map_delete_elem(&open, &key);
    struct sum_value *sum = bpf_map_lookup_elem(&sums, &group);
    if (!sum) {
        struct sum_value first = {0};
        bpf_map_update_elem(&sums, &group, &first, BPF_NOEXIST);
        sum = bpf_map_lookup_elem(&sums, &group);
    }
    if (!sum) {
        __sync_fetch_and_add(&missed_sums, 1);
        return 0;
    }
    sum->count++;
    sum->total_ns += took_ns;
    if (took_ns > sum->max_ns)
        sum->max_ns = took_ns;
    return 0;
}

char LICENSE[] SEC("license") = "GPL";
