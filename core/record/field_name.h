/* Field names. A name is a letter or _, followed by any number of letters, digits, _, . and -. */
#ifndef NETLOGGER_RECORD_FIELD_NAME_H
#define NETLOGGER_RECORD_FIELD_NAME_H

#include <netlogger.h>

#include "record/bytes.h"

/* Returns whether c is valid at a position of a name. */
static inline bool nl_name_may_have(char c, size_t position)
{
    return nl_byte_is(c, position == 0 ? NL_BYTE_NAME_FIRST : NL_BYTE_NAME);
}

/*
 * Returns whether a string is a valid name. If an invalid name were written as text, it could forge fields and
 * lines.
 */
static inline bool nl_is_name(nl_string name)
{
    unsigned classes = name.size > 0 && nl_byte_is(name.data[0], NL_BYTE_NAME_FIRST) ? NL_BYTE_NAME : 0;
    for (size_t i = 1; i < name.size; i++)
        classes &= nl_byte_class[(unsigned char)name.data[i]];
    return classes != 0;
}

/* Replaces each invalid byte with _. Returns whether the name had an invalid byte. */
static inline bool nl_name_make_valid(char *name, size_t size)
{
    if (size == 0 || nl_is_name((nl_string){name, size}))
        return false;
    for (size_t i = 0; i < size; i++)
        if (!nl_name_may_have(name[i], i))
            name[i] = '_';
    return true;
}

#endif
