/* Comparisons, copies and additions of strings, and plurals. */
#ifndef NETLOGGER_BASE_TEXT_H
#define NETLOGGER_BASE_TEXT_H

#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline nl_string nl_string_of(const char *text)
{
    return (nl_string){text, strlen(text)};
}

/* Returns whether a string consists of the characters of `text`. */
static inline bool nl_string_is(nl_string string, const char *text)
{
    return string.size == strlen(text) && memcmp(string.data, text, string.size) == 0;
}

static inline bool nl_string_equals(nl_string a, nl_string b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static inline void nl_record_add_text(nl_record *record, const char *name, const char *value)
{
    nl_record_add_string(record, name, value, strlen(value));
}

static inline bool nl_buffer_append_text(nl_buffer *buffer, const char *text)
{
    return nl_buffer_append(buffer, text, strlen(text));
}

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
