/*
 * The internals of the classic interface (include/NetLogger.h): a log with tags and its own level.
 *
 * classic.c opens, closes and tags logs; classic_write.c converts calls to events. As in the old toolkit, tags,
 * const_fmt and variable_fmt together form the text of a line.
 */
#ifndef NETLOGGER_CLASSIC_CLASSIC_H
#define NETLOGGER_CLASSIC_CLASSIC_H

#include <netlogger.h>

#include <NetLogger.h>

struct NL_Handle {
    nl_log *log;
    int level; /* atomic */
    char *tag; /* NULL: no tag; protected by tags_lock */
};

/* Appends the handle's tag and the global tag to `out`, each with a space after it. Thread-safe. */
void nl_classic_append_tags(NL_Handle *handle, nl_buffer *out);

/* The functions of the interface with -DOLD_API, by their exported names. */
NETLOGGER_CLASSIC_API int NetLoggerOldWrite(NL_Handle *handle, const char *keyword, const char *fmt, ...);
NETLOGGER_CLASSIC_API int NetLoggerOldGTWrite(NL_Handle *handle, long sec, long usec, const char *keyword,
                                              const char *fmt, ...);
NETLOGGER_CLASSIC_API int NetLoggerOldWriteLvl(NL_Handle *handle, int lvl, const char *keyword, const char *fmt, ...);
NETLOGGER_CLASSIC_API int NetLoggerOldGTWriteLvl(NL_Handle *handle, long sec, long usec, int lvl, const char *keyword,
                                                 const char *fmt, ...);
NETLOGGER_CLASSIC_API int NetLoggerOldWriteString(NL_Handle *handle, const char *keyword, const char *data);
NETLOGGER_CLASSIC_API int NetLoggerOldWriteStringLvl(NL_Handle *handle, int lvl, const char *keyword, const char *data);
NETLOGGER_CLASSIC_API int NetLoggerOldGTWriteString(NL_Handle *handle, long sec, long usec, const char *keyword,
                                                    const char *data);
NETLOGGER_CLASSIC_API int NetLoggerOldGTWriteStringLvl(NL_Handle *handle, int lvl, long sec, long usec,
                                                       const char *keyword, const char *data);

#endif
