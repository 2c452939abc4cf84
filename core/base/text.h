/* Copies of texts, from the heap. Where there is no memory for one the program is ended, in words. */
#ifndef NETLOGGER_BASE_TEXT_H
#define NETLOGGER_BASE_TEXT_H

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* NUL-terminated, whatever bytes text has; to be freed (data). */
static inline nl_string nl_string_copy(nl_string text)
{
    char *copy = malloc(text.size + 1);
    NL_REQUIRE(copy != NULL, "out of memory");
    if (text.size > 0)
        memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    return (nl_string){copy, text.size};
}

/* NULL of NULL. */
static inline char *nl_text_copy(const char *text)
{
    return text != NULL ? (char *)nl_string_copy((nl_string){text, strlen(text)}).data : NULL;
}

#endif
