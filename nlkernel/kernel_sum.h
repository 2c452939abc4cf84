/*
 * Spans that the kernel itself sums, by eBPF, while something else is recorded or nothing is: each [kernel NAME] of a
 * rules file.
 *
 *   [kernel KernelLocks]
 *   begin = lock:contention_begin key TID,LOCK.ADDR
 *   end = lock:contention_end key TID,LOCK.ADDR
 *   by = FLAGS, LOCK.ADDR, PROG, CALLER
 *
 * key: at most two fields of the event, and TID; by: at most two of the first event's, PROG and CALLER. At the end each
 * sum is a record NAME with these fields, COUNT, TOTAL.NS and MAX.NS, and with CALLER a STACK. One thread.
 */
#ifndef NLKERNEL_KERNEL_SUM_H
#define NLKERNEL_KERNEL_SUM_H

#include "rules_file.h"
#include "tracing.h"

typedef struct kernel_sums kernel_sums;

/* Whether a rules file has any. */
bool kernel_sums_wanted(const rules_file *s);

/*
 * Starts those of a rules file. NULL with the reason in nl_error_message(): this nlkernel or this kernel has no eBPF,
 * or which right is missing and how to grant it.
 */
kernel_sums *kernel_sums_start(const rules_file *s, const char *tracefs);

/* From here on nothing is summed any more. */
void kernel_sums_stop(kernel_sums *k);

/* Hands each sum to put, as a record. */
void kernel_sums_read(kernel_sums *k, void (*put)(void *user, const nl_record *record), void *user);
void kernel_sums_free(kernel_sums *k);

#endif
