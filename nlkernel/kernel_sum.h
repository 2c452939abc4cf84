/*
 * Sums the durations of spans with eBPF in the kernel, without a record for each span. A [kernel NAME] section of a
 * rules file requests a set of sums:
 *
 *   [kernel KernelLocks]
 *   begin = lock:contention_begin key TID,LOCK.ADDR
 *   end = lock:contention_end key TID,LOCK.ADDR
 *   by = FLAGS, LOCK.ADDR, PROG, CALLER
 *
 * `key` may contain TID and at most two fields of the event. `by` may contain PROG, CALLER and at most two fields of
 * the begin event. Each sum becomes a record of the event NAME with the fields in `by`, COUNT, TOTAL.NS and MAX.NS. If
 * `by` contains CALLER, the record also has STACK. A section has at most SUM_KEYS_MAX sums. kernel_sums_read reports
 * the number of spans beyond this limit. Not thread-safe.
 */
#ifndef NLKERNEL_KERNEL_SUM_H
#define NLKERNEL_KERNEL_SUM_H

#include "rules_file.h"
#include "tracing.h"

typedef struct kernel_sums kernel_sums;

/* Returns whether a rules file has [kernel] sections. */
bool kernel_sums_needed(const rules_file *file);

/* Starts the sums of all [kernel] sections. Returns NULL and sets the error on failure, for example if the process
 * lacks a right. */
kernel_sums *kernel_sums_start(const rules_file *file, const char *tracefs);

void kernel_sums_stop(kernel_sums *k);

/* Passes each sum, as a record, to `take`. The record is valid only during the call. */
void kernel_sums_read(kernel_sums *k, void (*take)(void *user, const nl_record *record), void *user);
void kernel_sums_free(kernel_sums *k);

#endif
