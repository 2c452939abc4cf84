/*
 * The classic interface: the interface of the NetLogger toolkit (1998 to 2004), implemented with this library. Programs
 * written for that toolkit compile unchanged; link these programs with -lnetlogger.
 *
 *   NLhandle *log = NetLoggerOpen("testProg", NULL, NL_ENV);
 *   NetLoggerWrite(log, "WriteData", "", "SEND.SZ=%ld", size);
 *   NetLoggerClose(log);
 *
 * New programs use <netlogger.h>. The description of logs in log.h also applies here: the log's writer thread sends the
 * events, and reconnects to the collector after a failure. A record may be longer than NL_MAX_MESSAGE; a value is
 * truncated after 131072 bytes. The functions do not change the program's signal handling, and do not modify their
 * arguments. The functions print only what nl_set_message_handler (log.h) describes. Any number of threads may use a
 * handle, and a child of fork() may continue to use the handle.
 *
 * Events. keyword is the name of the event (NL.EVNT). Fields may follow the name ("DPSS_START A=1"). const_fmt, despite
 * its name, is text of the form NAME=value ..., which the library uses unchanged. NULL or "" adds nothing. variable_fmt
 * is a printf(3) format for more fields; its arguments follow. If variable_fmt has the form "A=%d B=%s", each argument
 * stays within its field, even if the argument contains spaces or '='. The library searches the result of any other
 * format, such as "%s", for fields: a value ends at the next NAME=. Words outside fields become the field MSG. Fields
 * named LVL, HOST and PROG set the level, host and program of the record. The default level is Usage.
 *
 * Do not call these functions in signal handlers, because they may allocate memory. NL_EVENT (event.h) is safe there. A
 * call that interrupts another call of the same thread is rejected and counted as lost.
 *
 * If OLD_API is defined, the functions have no const_fmt (or const_data), as in the toolkit before 2000.
 *
 * Functions that write return 1 if the event is written, and 0 if logging is off or the level filters the event. They
 * return -1 if the event is lost, keyword is NULL, sec is 0 or negative, or the time is not between 1970 and 2262.
 * nl_error_message() (<netlogger.h>) then returns the reason. A NULL handle means that logging is off. The functions
 * have no format attribute, because old programs pass "" and variables as formats.
 *
 * A program may include both this header and <netlogger.h>. NL_OFF then has the value from <netlogger.h>; NL_OK has the
 * same value in both headers.
 */
#ifndef NETLOGGER_CLASSIC_H
#define NETLOGGER_CLASSIC_H

#include <stdio.h> /* old programs rely on this include */

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
    NL_ENV = 1,    /* $NETLOGGER_DEST, if set, replaces url */
    NL_MEM = 8,    /* no effect: events are always buffered in memory */
    NL_APPEND = 16 /* append to an existing file instead of truncating it */
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

/* Methods of NetLoggerOpen in <netlogger/classic/logging.h>. */
#define NL_FILE 0
#define NL_SYSLOG 1
#define NL_HOST 2
#define NL_FILE_MEM 3
#define NL_SYSLOG_MEM 4
#define NL_HOST_MEM 5
#define NL_ENV_METHOD (-1)

/* Sizes for the buffers of old programs. This library does not have these limits. */
#define NL_MAX_MESSAGE 1024
#define NL_MAX_BUFFER (10 * 1024 * 1024)
#define DATE_LEN 22

/*
 * Opens a log. program_name is the value of PROG; NULL means the process ID. url is x-netlog://HOST[:PORT], file://PATH
 * (absolute or relative), x-syslog:// (facility local0), or any URL that nl_open accepts. Returns a handle, which the
 * caller closes with NetLoggerClose. Returns NULL if there is no URL, the log cannot be opened, memory runs out, or
 * NETLOGGER_ON switches logging off.
 */
NETLOGGER_CLASSIC_API NL_Handle *NetLoggerOpen(const char *program_name, const char *url, int flags);

/*
 * Opens a log to a file descriptor. The caller owns the descriptor; NetLoggerClose does not close the descriptor.
 * Returns the same values as NetLoggerOpen.
 */
NETLOGGER_CLASSIC_API NL_Handle *NetLoggerOpenFd(const char *program_name, int fd, int flags);

/*
 * Connects to a collector at a TCP port, which must not be 0. Returns a socket, to which the caller may write lines of
 * text, and which the caller closes. Returns -1 on failure. Resolves the host name, and then waits at most 10 seconds
 * for the connection.
 */
NETLOGGER_CLASSIC_API int NetLogOpen(const char *hostname, int port);

/*
 * Writes an event to a log that nl_open opened. data is the text of the event's fields, such as "SEND.SZ=49332 FILE=a",
 * or NULL. Returns the same values as NetLoggerWrite. Thread-safe.
 */
NETLOGGER_CLASSIC_API int NetLoggerWriteText(struct nl_log *log, const char *keyword, const char *data);

#ifndef OLD_API

/*
 * Write an event with the current time. The GT functions take the time as an argument: sec seconds and usec
 * microseconds after 1970-01-01 UTC.
 */
NETLOGGER_CLASSIC_API int NetLoggerWrite(NL_Handle *handle, const char *keyword, const char *const_fmt,
                                         const char *variable_fmt, ...);
NETLOGGER_CLASSIC_API int NetLoggerGTWrite(NL_Handle *handle, long sec, long usec, const char *keyword,
                                           const char *const_fmt, const char *variable_fmt, ...);

/* Write an event, like the functions above, if lvl is at most the level of the handle (NetLoggerSetLevel). */
NETLOGGER_CLASSIC_API int NetLoggerWriteLvl(NL_Handle *handle, int lvl, const char *keyword, const char *const_fmt,
                                            const char *variable_fmt, ...);
NETLOGGER_CLASSIC_API int NetLoggerGTWriteLvl(NL_Handle *handle, long sec, long usec, int lvl, const char *keyword,
                                              const char *const_fmt, const char *variable_fmt, ...);

/*
 * Write an event, like the functions above, with text instead of a format. The library searches the text for fields, as
 * it does with the result of a format.
 */
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

/* Writes an event, like NetLoggerWrite with OLD_API. NetLoggerFastWrite is available with and without OLD_API. */
NETLOGGER_CLASSIC_API int NetLoggerFastWrite(NL_Handle *handle, const char *keyword, const char *fmt,
                                             ...) __asm__("NetLoggerOldWrite");

/*
 * Sets the level of the handle. The functions with a parameter lvl write only if lvl is at most log_level. These
 * functions write nothing while log_level is 0 or less; log_level is 0 at first. The functions without lvl ignore the
 * handle's level.
 */
NETLOGGER_CLASSIC_API void NetLoggerSetLevel(NL_Handle *handle, int log_level);

/*
 * Set the fields (NAME=value ...) that precede the fields of each event of the handle, or of all handles. The text is
 * copied and replaces the previous text; "" removes the previous text. NetLoggerSetTag returns 1, or 0 if handle is
 * NULL. NetLoggerSetGlobalTag returns 0. If memory runs out, both functions return -1 and keep the previous text. As in
 * the original toolkit, NULL removes the tag of a handle and does not change the global tag.
 */
NETLOGGER_CLASSIC_API int NetLoggerSetTag(NL_Handle *handle, const char *tag);
NETLOGGER_CLASSIC_API int NetLoggerSetGlobalTag(const char *tag);

/*
 * Sends all buffered events and waits until they are sent. Returns 1, or 0 if handle is NULL. Returns -1 if some events
 * could not be sent; the log keeps these events and tries again.
 */
NETLOGGER_CLASSIC_API int NetLoggerFlush(NL_Handle *handle);

/* Flushes and closes the log, and always frees the handle. Returns the same values as NetLoggerFlush. */
NETLOGGER_CLASSIC_API int NetLoggerClose(NL_Handle *handle);

#ifdef __cplusplus
}
#endif

#endif
