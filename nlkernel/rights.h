/*
 * The rights of this process, and messages that name a missing right and explain how to grant it.
 *
 * nlkernel may have capabilities that its user lacks (setcap). At the start, main drops these capabilities. nlkernel
 * raises them only for requests to the kernel: tracefs, perf, BPF and symbols. nlkernel therefore opens the files that
 * the user names only with the user's rights.
 */
#ifndef NLKERNEL_RIGHTS_H
#define NLKERNEL_RIGHTS_H

#include <stdbool.h>

/* Returns whether this process currently has a capability (CAP_... of <linux/capability.h>). */
bool rights_has_capability(int capability);

/* Returns the path of this program for messages about setcap, or "nlkernel" if the path is unknown. */
const char *rights_program_path(void);

/* Sets the error after opening a file of tracefs has failed, according to errno. */
void rights_set_open_error(const char *path);

/* Sets the error after mounting tracefs has failed, according to errno. */
void rights_set_mount_error(void);

/* Sets the error after loading or attaching a BPF program has failed. `error` is the errno value of the failure.
 * Returns false. */
bool rights_fail_bpf(int error);

/* Returns whether nlkernel is in the machine's initial PID namespace; true if the namespace is unknown. In another
 * namespace, nlkernel does not see all processes, and the process IDs in the kernel's events differ. */
bool rights_see_all_processes(void);

/* Drop and raise the capabilities of this thread, and of threads that it starts later. The calls do not nest, and do
 * nothing for root. */
void rights_lower(void);
void rights_raise(void);

#endif
