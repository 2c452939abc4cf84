/* Names of fields: a letter or _, then letters, digits, _, . and -, of any length. */
#ifndef NETLOGGER_RECORD_FIELD_NAME_H
#define NETLOGGER_RECORD_FIELD_NAME_H

#include <netlogger.h>

#include <stdbool.h>
#include <stddef.h>

/* For each byte: 3 if a name may begin with it, 2 if it is valid only behind the first byte, 0 if it is invalid. */
extern const unsigned char nl_name_positions[256];

/* Returns whether c is valid at a position of a name. */
static inline bool nl_name_may_have(char c, size_t position)
{
    return (nl_name_positions[(unsigned char)c] & (position == 0 ? 1 : 2)) != 0;
}

/* Returns whether a string is a valid name. An invalid one, written as text, would forge fields and lines. */
static inline bool nl_is_name(nl_string name)
{
    unsigned valid = name.size > 0 ? nl_name_positions[(unsigned char)name.data[0]] << 1 : 0;
    for (size_t i = 1; i < name.size; i++)
        valid &= nl_name_positions[(unsigned char)name.data[i]];
    return (valid & 2) != 0;
}

/* Replaces each invalid byte by _. Returns whether there was one. */
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
