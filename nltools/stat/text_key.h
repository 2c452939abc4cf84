/* Uses nl_string as the key of a GHashTable, for texts that are not NUL-terminated. */
#ifndef NLSTAT_TEXT_KEY_H
#define NLSTAT_TEXT_KEY_H

#include "base/hash_bytes.h"

#include <glib.h>
#include <netlogger.h>

static inline guint text_key_hash(gconstpointer key)
{
    const nl_string *s = key;
    return (guint)hash_bytes(0, s->data, s->size);
}

static inline gboolean text_key_equal(gconstpointer a, gconstpointer b)
{
    const nl_string *first = a, *second = b;
    return first->size == second->size && memcmp(first->data, second->data, first->size) == 0;
}

/* Returns a key with a copy of the text. The caller frees it with g_free. */
static inline nl_string *text_key_new(nl_string text)
{
    nl_string *key = g_malloc(sizeof *key + text.size);
    *key = (nl_string){memcpy(key + 1, text.data, text.size), text.size};
    return key;
}

#endif
