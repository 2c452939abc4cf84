/*
 * The C interface of NetLogger 3 and 4 (2003 to 2012), implemented with this library. Programs that include "nl.h",
 * "nl_log.h", "nltransfer.h" or "nlsumm.h" compile unchanged with -I$(includedir)/netlogger/classic. Link these
 * programs with -lnetlogger-classic -lnetlogger.
 *
 *   NL_log_T log = NL_open(NULL);
 *   NL_write(log, NL_LVL_INFO, "write.data", "size=l file=s", 49332LL, "a.dat");
 *   NL_close(log);
 *
 * Formats. A format names fields and their types: "size=l file=s", "size:lfile:s". The types are i (int), l (long
 * long), d (double), s (string; NULL means "") and t (double, seconds after 1970-01-01 UTC). NULL or "" adds no fields.
 * The fields HOST and PROG set the host and program of the record.
 *
 * Any number of threads may use these functions. A function that a signal handler calls while its thread is inside
 * another function for the same log returns NL_ERROR.
 */
#ifndef NETLOGGER_CLASSIC_NL_H
#define NETLOGGER_CLASSIC_NL_H

#include <stdint.h>
#include <stdio.h> /* old programs rely on this include */
#include <sys/time.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int NL_result_t;
#ifndef NETLOGGER_H /* netlogger.h uses these names for other constants */
#ifndef NL_OK
#define NL_OK 0
#endif
#define NL_ERROR (-1)
#endif

/* A log writes the events whose level is at most its own level. */
typedef enum {
    NL_LVL_NOLOG = 0,
    NL_LVL_FATAL,
    NL_LVL_ERROR,
    NL_LVL_WARN,
    NL_LVL_INFO,
    NL_LVL_DEBUG,
    NL_LVL_DEBUG1,
    NL_LVL_DEBUG2,
    NL_LVL_DEBUG3,
    NL_LVL_USER
} NL_level_t;

typedef struct NL_log_T *NL_log_T;

/*
 * Opens a log with the level NL_LVL_INFO. $NL_DEST or $NETLOGGER_DEST, if set, replaces url. url is any URL that
 * nl_open (<netlogger.h>) accepts, "-" (standard output) or "&" (standard error). NULL means "-". If the URL has no
 * options, the log appends to files in the format BP. Returns NULL if memory runs out. If the destination cannot be
 * opened, NL_is_active returns 0, and writing fails.
 */
NL_log_T NL_open(const char *url);

/*
 * Opens the destination of an inactive log; see NL_open for url. Returns 0, or -1 if log is NULL or active, or the
 * destination cannot be opened.
 */
int NL_reopen(NL_log_T log, const char *url);

/* Returns 1 if log has a destination, and 0 otherwise. */
int NL_is_active(NL_log_T log);

/* Set and return the level of a log. NL_get_level returns NL_LVL_NOLOG if log is NULL. */
void NL_set_level(NL_log_T log, NL_level_t level);
NL_level_t NL_get_level(NL_log_T log);

/*
 * Sets the fields that precede the fields of each event, and replaces the previous fields. If format is NULL, the next
 * argument is the format. Returns NL_OK, or NL_ERROR if log is inactive or the format is invalid.
 */
NL_result_t NL_set_const(NL_log_T log, const char *format, ...);

/*
 * Write an event, with the current time or with *time. Return NL_OK even if the level of the log filters the event.
 * Return NL_ERROR if log is inactive, event is NULL, the event is lost, or the format is invalid.
 */
NL_result_t NL_write(NL_log_T log, NL_level_t level, const char *event, const char *format, ...);
NL_result_t NL_write_ts(NL_log_T log, struct timeval *time, NL_level_t level, const char *event, const char *format,
                        ...);

/* Sends all events and waits until they are sent. */
void NL_flush(NL_log_T log);

/* Flushes, then frees log. NULL is allowed. */
void NL_close(NL_log_T log);

/* Returns the name of a level, such as "INFO", in static storage; "" if the level is invalid. */
const char *NL_get_level_name(NL_level_t level);

/*
 * Returns an IPv4 address of this host as text, such as "192.0.2.1". If the host has no other address, this is
 * "127.0.0.1". Returns NULL on failure. The caller frees the text with free(3).
 */
char *NL_get_ipaddr(void);

/*
 * Set *id to a new random UUID, which the caller frees with free(3). Return the UUID's length in bytes, or -1 on
 * failure.
 */
int NL_get_guid(char **id);
int NL_get_someid(char **id);

/* Returns the message of the last error of the calling thread, or "". */
const char *NL_err_str(void);

#ifdef __cplusplus
}
#endif

#endif
