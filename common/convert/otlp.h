/* Definitions that the OTLP readers and writers share. */
#ifndef NETLOGGER_CONVERT_OTLP_H
#define NETLOGGER_CONVERT_OTLP_H

/* NetLogger's own attributes, for a time before 1970, and for a level that is empty or not UTF-8. */
#define OTLP_TIME_KEY "netlogger.ts"
#define OTLP_LEVEL_KEY "netlogger.level"
#define OTLP_SCOPE "netlogger"

#endif
