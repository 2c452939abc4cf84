/*
 * The classic interface in the form of January 2001, for programs that include "logging.h", such as the Network Weather
 * Service. Compile these programs with -I$(includedir)/netlogger/classic.
 *
 *   NLhandle *log = NetLoggerOpen(NL_HOST, "testProg", NULL, "dpss1.lbl.gov", DPSS_NETLOGGER_PORT);
 *   NetLoggerWrite(log, "WriteData", "SEND.SZ=%ld", size);
 *   NetLoggerClose(log);
 *
 * The functions that write have no const_fmt (see OLD_API in NetLogger.h).
 */
#ifndef NETLOGGER_CLASSIC_LOGGING_H
#define NETLOGGER_CLASSIC_LOGGING_H

#ifndef OLD_API
#define OLD_API
#endif
#include <NetLogger.h>

/*
 * Opens a log. method is NL_FILE (appends to filename), NL_SYSLOG, NL_HOST (sends to the collector at hostname and
 * port; 0 means port 14830) or NL_ENV_METHOD (the destination is $NETLOGGER_DEST). A method whose name ends in _MEM has
 * the same effect as the method without _MEM. The function ignores arguments that the method does not need. Returns a
 * handle, which the caller closes with NetLoggerClose. Returns NULL if the method is unknown or lacks its argument, or
 * for the reasons that NetLoggerOpen has.
 */
static __inline__ NL_Handle *NetLoggerOpenMethod(int method, const char *program_name, const char *filename,
                                                 const char *hostname, int port)
{
    char url[1100];
    int size;

    switch (method) {
    case NL_FILE:
    case NL_FILE_MEM:
        return NetLoggerOpen(program_name, filename, NL_APPEND);
    case NL_SYSLOG:
    case NL_SYSLOG_MEM:
        return NetLoggerOpen(program_name, "x-syslog://", 0);
    case NL_HOST:
    case NL_HOST_MEM:
        if (hostname == NULL || *hostname == '\0')
            return NetLoggerOpen(program_name, NULL, 0);
        size = snprintf(url, sizeof url, "x-netlog://%s:%d", hostname, port != 0 ? port : DPSS_NETLOGGER_PORT);
        return size > 0 && size < (int)sizeof url ? NetLoggerOpen(program_name, url, 0) : NULL;
    case NL_ENV_METHOD:
        return NetLoggerOpen(program_name, NULL, NL_ENV | NL_APPEND);
    default:
        return NULL;
    }
}
#define NetLoggerOpen NetLoggerOpenMethod

#endif
