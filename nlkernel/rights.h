/*
 * What this process may do, in words: which right is missing, and how to grant it.
 */
#ifndef NLKERNEL_RIGHTS_H
#define NLKERNEL_RIGHTS_H

#include <stdbool.h>

/* Whether this process has a capability now (CAP_... of <linux/capability.h>). */
bool rights_has_capability(int capability);

/* Where this program lies, for words about how to grant it something. */
const char *rights_our_path(void);

/* Sets the error message for path, which tracefs did not let us open or change (errno says why). */
void rights_explain_denied(const char *path);

/* The same for tracefs itself, which is not mounted and could not be. */
void rights_explain_no_mount(void);

/*
 * nlkernel may have been given capabilities that its user has not (setcap). It works without them from its first line
 * on, so that all files that a user names are opened in his own name, and raises them only for what it asks of the
 * kernel: tracefs, perf, BPF, symbols. Of this thread, and of those that it starts; they don't nest.
 */
void rights_lower(void);
void rights_raise(void);

#endif
