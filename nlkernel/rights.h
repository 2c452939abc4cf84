/*
 * The rights of this process, and messages that name a missing right and explain how to grant it.
 *
 * nlkernel may have capabilities that its user lacks (setcap). nlkernel drops these capabilities at the start of main
 * and raises them only for requests to the kernel: tracefs, perf, BPF and symbols. nlkernel therefore opens the files
 * that the user names with the user's rights only.
 */
#ifndef NLKERNEL_RIGHTS_H
#define NLKERNEL_RIGHTS_H

#include <stdbool.h>

/* Returns whether this process currently has a capability (CAP_... of <linux/capability.h>). */
bool rights_has_capability(int capability);

/* Returns the path of this program for messages about setcap, or "nlkernel" if the path is unknown. */
const char *rights_program_path(void);

/* Sets the error for a file of tracefs that could not be opened, according to errno. */
void rights_set_open_error(const char *path);

/* Sets the error for a failure to mount tracefs, according to errno. */
void rights_set_mount_error(void);

/* Sets the error for a BPF program that the kernel did not load or attach. `error` is the errno value of the failure.
 * Returns false. */
bool rights_fail_bpf(int error);

/*
 * Returns whether nlkernel is in the machine's initial PID namespace; true if the namespace is unknown. In another
 * namespace, nlkernel does not see all processes, and the kernel's events have other process IDs.
 */
bool rights_see_all_processes(void);

/* Drop and raise the capabilities of this thread and of threads that it starts later. The calls do not nest, and do
 * nothing for root. */
void rights_lower(void);
void rights_raise(void);

#endif
