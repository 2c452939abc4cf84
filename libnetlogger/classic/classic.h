/*
 * The classic interface (include/NetLogger.h) from inside: a log with tags and a level of its own.
 *
 * classic.c opens, closes and tags; classic_write.c makes events of what the calls bring. As the toolkit had it, tags,
 * const_fmt and variable_fmt are texts that together are the rest of a line.
 */
#ifndef NETLOGGER_CLASSIC_CLASSIC_H
#define NETLOGGER_CLASSIC_CLASSIC_H

#include <netlogger.h>

#include <NetLogger.h>

struct NL_Handle {
    nl_log *log;
    int level; /* atomic */
    char *tag; /* NULL for none; with the tags locked */
};

/* Appends the handle's tag and the global one to out, each with a blank behind it. Thread-safe. */
void nl_classic_append_tags(NL_Handle *handle, nl_buffer *out);

/* The calls of the interface with -DOLD_API, by the names that the library exports them under. */
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
