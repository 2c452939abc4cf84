/*
 * Which of the kernel's functions an address lies in, as /proc/kallsyms has it.
 *
 * Made once, and not changed any more: any thread may look things up.
 */
#ifndef NLKERNEL_KALLSYMS_H
#define NLKERNEL_KALLSYMS_H

#include <netlogger.h>

typedef struct kallsyms kallsyms;

/* Of a text such as that of /proc/kallsyms; lines that are none, and what is no code, are passed over. To be freed. */
kallsyms *kallsyms_parse(const char *text, size_t size);

/*
 * Of the running kernel. NULL with the reason in nl_error_message(): it shows its addresses to nobody, or not to us,
 * and then which right is missing and how to grant it.
 */
kallsyms *kallsyms_read(void);

void kallsyms_free(kallsyms *k);

/* The function's name, which lasts as long as k; data is NULL when the address lies in none. */
nl_string kallsyms_find(const kallsyms *k, uint64_t address);

#endif
