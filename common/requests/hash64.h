/*
 * A hash of 64-bit keys for GLib. g_int64_hash uses only the lower 32 bits, so keys that consist of two 32-bit numbers
 * collide.
 */
#ifndef NETLOGGER_ANALYSIS_HASH64_H
#define NETLOGGER_ANALYSIS_HASH64_H

#include <glib.h>

/*
 * Returns the hash of a guint64: its product with 2^64 over the golden ratio (Knuth, The Art of Computer Programming,
 * volume 3, section 6.4).
 */
static inline guint hash64(gconstpointer key)
{
    return (guint)((*(const guint64 *)key * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15)) >> 32);
}

#endif
