/* Definitions that the OTLP readers and writers share. */
#ifndef NETLOGGER_CONVERT_OTLP_H
#define NETLOGGER_CONVERT_OTLP_H

/* NetLogger's own attributes: one for a time before 1970, and one for a level that OTLP cannot represent. */
#define OTLP_TIME_KEY "netlogger.ts"
#define OTLP_LEVEL_KEY "netlogger.level"
#define OTLP_SCOPE "netlogger"

/*
 * Fields of records from OTLP. The fields before OTLP_SCOPE_NAME are attributes of the resource. The fields that follow
 * it and begin with OTLP_SCOPE_PREFIX belong to the scope. OTLP_KINDS follows the fields of the resource, of the scope
 * or of the item, and names the fields that were arrays or maps, as in "PORTS=array LABELS=map".
 */
#define OTLP_SCOPE_PREFIX "otel.scope."
#define OTLP_SCOPE_NAME OTLP_SCOPE_PREFIX "name"
#define OTLP_SCOPE_VERSION OTLP_SCOPE_PREFIX "version"
#define OTLP_KINDS "otel.kinds"

enum {
    OTLP_KINDS_MAX = 4096, /* maximum size of the value of OTLP_KINDS in bytes */
    OTLP_NESTING_MAX = 32, /* maximum nesting of values in an attribute */
};

#endif
