/* Detects zstd frames and skippable frames (RFC 8878, sections 3.1.1 and 3.1.2). */
#ifndef NETLOGGER_RECORD_ZSTD_MAGIC_H
#define NETLOGGER_RECORD_ZSTD_MAGIC_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { NL_ZSTD_MAGIC_SIZE = 4 };

/* Returns whether a frame may begin with these bytes. `size` may be less than NL_ZSTD_MAGIC_SIZE. */
static inline bool nl_zstd_may_begin(const char *bytes, size_t size)
{
    static const char frame[] = "\x28\xb5\x2f\xfd", skippable[] = "\x50\x2a\x4d\x18";
    size_t known = size < NL_ZSTD_MAGIC_SIZE ? size : NL_ZSTD_MAGIC_SIZE;
    return known == 0 || memcmp(bytes, frame, known) == 0 ||
           ((bytes[0] & 0xf0) == skippable[0] && memcmp(bytes + 1, skippable + 1, known - 1) == 0);
}

/* Returns whether a frame begins here. */
static inline bool nl_zstd_begins(const char *bytes, size_t size)
{
    return size >= NL_ZSTD_MAGIC_SIZE && nl_zstd_may_begin(bytes, size);
}

#endif
