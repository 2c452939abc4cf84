/* The names that fields can have: a letter or _, and then letters, digits, _, . and - too; of any length. */
#ifndef NETLOGGER_FORMAT_FIELD_NAME_H
#define NETLOGGER_FORMAT_FIELD_NAME_H

#include <netlogger.h>

#include <stdbool.h>
#include <stddef.h>

/* Whether a name may have c, there. */
static inline bool nl_name_may_have(char c, size_t at)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (at > 0 && ((c >= '0' && c <= '9') || c == '.' || c == '-'));
}

/* Whether it may be a field's name: one with other bytes would forge fields and lines when written as text. */
static inline bool nl_is_name(nl_string name)
{
    for (size_t i = 0; i < name.size; i++)
        if (!nl_name_may_have(name.data[i], i))
            return false;
    return name.size > 0;
}

/* Puts _ for what it can't have. Whether there was any such. An empty one stays so. */
static inline bool nl_name_mend(char *name, size_t size)
{
    bool mended = false;
    for (size_t i = 0; i < size; i++) {
        if (nl_name_may_have(name[i], i))
            continue;
        name[i] = '_';
        mended = true;
    }
    return mended;
}

#endif
