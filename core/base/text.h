/* Copies of strings on the heap, and plurals. */
#ifndef NETLOGGER_BASE_TEXT_H
#define NETLOGGER_BASE_TEXT_H

#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Returns a NUL-terminated copy; the caller frees its data, which is NULL if memory runs out. */
static inline nl_string nl_string_copy(nl_string text)
{
    char *copy = nl_memory_check(malloc(text.size + 1));
    if (copy == NULL)
        return (nl_string){NULL, 0};
    if (text.size > 0)
        memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    return (nl_string){copy, text.size};
}

/* Returns a copy that the caller frees; NULL if text is NULL or memory runs out. */
static inline char *nl_text_copy(const char *text)
{
    return text != NULL ? (char *)nl_string_copy((nl_string){text, strlen(text)}).data : NULL;
}

/* Returns the ending of a noun with a regular plural: "" if `count` is 1, otherwise "s". */
static inline const char *nl_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

#endif
