/* Why an output cannot be written, in words: each thread has its own. */
#ifndef NETLOGD_OUTPUT_FAILURE_H
#define NETLOGD_OUTPUT_FAILURE_H

#include <netlogger.h>

/* Sets the words; failure_errno adds ": " and those for errno. Both return NL_FAILED. */
nl_status failure(const char *format, ...) NL_PRINTF(1, 2);
nl_status failure_errno(const char *format, ...) NL_PRINTF(1, 2);

/* The words of the latest failure. */
const char *failure_text(void);

#endif
