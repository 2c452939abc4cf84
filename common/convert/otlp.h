/* Definitions that the OTLP readers and writers share. */
#ifndef NETLOGGER_CONVERT_OTLP_H
#define NETLOGGER_CONVERT_OTLP_H

/* NetLogger's own attributes: one for a time before 1970, and one for a level that OTLP cannot represent. */
#define OTLP_TIME_KEY "netlogger.ts"
#define OTLP_LEVEL_KEY "netlogger.level"
#define OTLP_SCOPE "netlogger"

#endif
