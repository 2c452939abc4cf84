/*
 * The interface of the NetLogger toolkit of 1998 to 2004, over this library: programs written for it are compiled
 * unchanged and linked with -lnetlogger.
 *
 *   NLhandle *log = NetLoggerOpen("testProg", NULL, NL_ENV);
 *   NetLoggerWrite(log, "WriteData", "", "SEND.SZ=%ld", size);
 *   NetLoggerClose(log);
 *
 * New programs include <netlogger.h>. What it says of logs (log.h) holds here too: events go into a ring of the calling
 * thread's and are sent by a thread of the log, also to a collector that was away and is back; records may be of any
 * size; the program's signals and the texts it passes are left alone; nothing is printed. Any number of threads may use
 * a handle, and a child goes on with it after fork().
 *
 * Events. keyword is the event's name (NL.EVNT). const_fmt is text that is taken as it is, in spite of its name, a row
 * of NAME=value; NULL or "" for none. variable_fmt is printf(3)'s, for another row; the arguments follow. When the
 * format itself is such a row ("A=%d B=%s"), then what is put in stays within its field, whatever bytes it has. Any
 * other format ("%s") is printed first, and fields are found in what comes out, up to the next NAME=. Words that belong
 * to no field become a field MSG. Fields called LVL, HOST and PROG are the record's; without an LVL it is Usage.
 *
 * In a signal handler these calls are not safe, as they may allocate memory, at a thread's first call in particular:
 * for handlers there is NL_EVENT (event.h). One that comes in the middle of another of the same thread is refused, and
 * counted as lost.
 *
 * Compiled with -DOLD_API the calls have no const_fmt (or const_data): the interface before 2000.
 *
 * Calls that write return 1: written; 0: off, or filtered by level; -1: lost or wrong (keyword is NULL, a time before
 * 1970): what <netlogger.h> calls nl_error_message() says why. NULL as a handle is a log that is off. They are no
 * format functions to the compiler: "" and variables as formats are common in programs of that time.
 *
 * Both headers may be included. Their NL_OK is the same; NL_OFF is then netlogger.h's.
 */
#ifndef NETLOGGER_CLASSIC_H
#define NETLOGGER_CLASSIC_H

#include <stdio.h> /* programs of that time count on it */

#ifdef __cplusplus
extern "C" {
#endif

#define NETLOGGER_CLASSIC_API __attribute__((visibility("default")))
#ifdef OLD_API
#define NETLOGGER_CLASSIC_OLD(name) __asm__(name)
#endif

typedef struct NL_Handle NL_Handle;
struct nl_log;
#define NLhandle NL_Handle

/* Flags of NetLoggerOpen and NetLoggerOpenFd. */
typedef enum {
    NL_ENV = 1,    /* $NETLOGGER_DEST, when it is set, goes before the url */
    NL_MEM = 8,    /* taken, and without effect: events wait in memory in any case, and nobody waits for the disk */
    NL_APPEND = 16 /* a file that is there is added to, instead of begun anew */
} NL_openflag_t;

#define NL_ERR (-1)
#ifndef NETLOGGER_H
#define NL_OK 0
#define NL_OFF 0
#endif
#define NL_ON 1
#define NL_NOTSET 2

#define NL_ON_ENV "NETLOGGER_ON"
#define NL_DEST_ENV "NETLOGGER_DEST"
#define DPSS_NETLOGGER_PORT 14830

/* Sizes that programs made their own buffers by. They bound nothing here. */
#define NL_MAX_MESSAGE 1024
#define NL_MAX_BUFFER (10 * 1024 * 1024)

/*
 * Opens a log. program_name is PROG; NULL: the process's number. url is x-netlog://HOST[:PORT], file://PATH (relative
 * too), x-syslog:// (facility local0), or anything that nl_open takes, with its options. NULL when it can't be opened,
 * or when NETLOGGER_ON switches logging off. To be closed with NetLoggerClose.
 */
NETLOGGER_CLASSIC_API NL_Handle *NetLoggerOpen(const char *program_name, const char *url, int flags);

/* The same into an open descriptor. It stays the caller's: NetLoggerClose leaves it open. */
NETLOGGER_CLASSIC_API NL_Handle *NetLoggerOpenFd(const char *program_name, int fd, int flags);

/*
 * Writes an event into a log that nl_open opened. data holds its fields as text, "SEND.SZ=49332 FILE=a"; NULL: none. 0,
 * or NL_ERR. Any thread.
 */
NETLOGGER_CLASSIC_API int NetLoggerWriteText(struct nl_log *log, const char *keyword, const char *data);

#ifndef OLD_API

/* Writes an event that is now, or (GT) was at sec seconds and usec microseconds since 1970 UTC. */
NETLOGGER_CLASSIC_API int NetLoggerWrite(NL_Handle *handle, const char *keyword, const char *const_fmt,
                                         const char *variable_fmt, ...);
NETLOGGER_CLASSIC_API int NetLoggerGTWrite(NL_Handle *handle, long sec, long usec, const char *keyword,
                                           const char *const_fmt, const char *variable_fmt, ...);

/* The same if lvl is at most the handle's level (NetLoggerSetLevel). */
NETLOGGER_CLASSIC_API int NetLoggerWriteLvl(NL_Handle *handle, int lvl, const char *keyword, const char *const_fmt,
                                            const char *variable_fmt, ...);
NETLOGGER_CLASSIC_API int NetLoggerGTWriteLvl(NL_Handle *handle, long sec, long usec, int lvl, const char *keyword,
                                              const char *const_fmt, const char *variable_fmt, ...);

/* The same with text instead of a format: fields are found in it as in what was printed. */
NETLOGGER_CLASSIC_API int NetLoggerWriteString(NL_Handle *handle, const char *keyword, const char *const_data,
                                               const char *variable_data);
NETLOGGER_CLASSIC_API int NetLoggerWriteStringLvl(NL_Handle *handle, int lvl, const char *keyword,
                                                  const char *const_data, const char *variable_data);
NETLOGGER_CLASSIC_API int NetLoggerGTWriteString(NL_Handle *handle, long sec, long usec, const char *keyword,
                                                 const char *const_data, const char *variable_data);
NETLOGGER_CLASSIC_API int NetLoggerGTWriteStringLvl(NL_Handle *handle, int lvl, long sec, long usec,
                                                    const char *keyword, const char *const_data,
                                                    const char *variable_data);

#else

NETLOGGER_CLASSIC_API int NetLoggerWrite(NL_Handle *handle, const char *keyword, const char *fmt, ...)
    NETLOGGER_CLASSIC_OLD("NetLoggerOldWrite");
NETLOGGER_CLASSIC_API int NetLoggerGTWrite(NL_Handle *handle, long sec, long usec, const char *keyword, const char *fmt,
                                           ...) NETLOGGER_CLASSIC_OLD("NetLoggerOldGTWrite");
NETLOGGER_CLASSIC_API int NetLoggerWriteLvl(NL_Handle *handle, int lvl, const char *keyword, const char *fmt, ...)
    NETLOGGER_CLASSIC_OLD("NetLoggerOldWriteLvl");
NETLOGGER_CLASSIC_API int NetLoggerGTWriteLvl(NL_Handle *handle, long sec, long usec, int lvl, const char *keyword,
                                              const char *fmt, ...) NETLOGGER_CLASSIC_OLD("NetLoggerOldGTWriteLvl");
NETLOGGER_CLASSIC_API int NetLoggerWriteString(NL_Handle *handle, const char *keyword, const char *data)
    NETLOGGER_CLASSIC_OLD("NetLoggerOldWriteString");
NETLOGGER_CLASSIC_API int NetLoggerWriteStringLvl(NL_Handle *handle, int lvl, const char *keyword, const char *data)
    NETLOGGER_CLASSIC_OLD("NetLoggerOldWriteStringLvl");
NETLOGGER_CLASSIC_API int NetLoggerGTWriteString(NL_Handle *handle, long sec, long usec, const char *keyword,
                                                 const char *data) NETLOGGER_CLASSIC_OLD("NetLoggerOldGTWriteString");
NETLOGGER_CLASSIC_API int NetLoggerGTWriteStringLvl(NL_Handle *handle, int lvl, long sec, long usec,
                                                    const char *keyword, const char *data)
    NETLOGGER_CLASSIC_OLD("NetLoggerOldGTWriteStringLvl");

#endif

/* As NetLoggerWrite with -DOLD_API, in either interface. */
NETLOGGER_CLASSIC_API int NetLoggerFastWrite(NL_Handle *handle, const char *keyword, const char *fmt,
                                             ...) __asm__("NetLoggerOldWrite");

/*
 * The level of the calls that have one: they write when theirs is at most this. 0, as it is at first: they write
 * nothing. The calls without a level take no notice.
 */
NETLOGGER_CLASSIC_API void NetLoggerSetLevel(NL_Handle *handle, int log_level);

/*
 * Text, a row of NAME=value, that goes before the fields of every event of the handle, or of all handles. It replaces
 * the one before; "" takes it away. Copied. NetLoggerSetTag returns 1, or 0 when handle is NULL; NetLoggerSetGlobalTag
 * 0. NULL as the handle's tag takes it away too, as the global tag it changes nothing: so it was.
 */
NETLOGGER_CLASSIC_API int NetLoggerSetTag(NL_Handle *handle, const char *tag);
NETLOGGER_CLASSIC_API int NetLoggerSetGlobalTag(const char *tag);

/*
 * Sends what was written so far, and waits for that. 1; 0 when handle is NULL; -1 when not all of it could be sent:
 * what could not be is kept and tried again.
 */
NETLOGGER_CLASSIC_API int NetLoggerFlush(NL_Handle *handle);

/* Flushes, and frees the handle, whatever is returned: as NetLoggerFlush. */
NETLOGGER_CLASSIC_API int NetLoggerClose(NL_Handle *handle);

#ifdef __cplusplus
}
#endif

#endif
