/* Definitions that the OTLP readers and writers share. Any thread may call the functions. */
#ifndef NETLOGGER_CONVERT_OTLP_H
#define NETLOGGER_CONVERT_OTLP_H

#include "convert/keys.h"
#include "convert/json_text.h"

/* NetLogger's own attributes, for a time before 1970, and for a level that is empty or not UTF-8. */
#define OTLP_TIME_KEY "netlogger.ts"
#define OTLP_LEVEL_KEY "netlogger.level"
#define OTLP_SCOPE "netlogger"

/*
 * Appends an AnyValue. If typed is true, its type is the field's type. Otherwise, text that json_is_number accepts
 * becomes a number.
 */
void otlp_put_value(nl_buffer *out, const nl_field *field, bool typed, sink *s);

/* Appends {"resource":{"attributes":[...]} without the last }. */
void otlp_put_resource(nl_buffer *out, nl_string host, nl_string prog);

#endif
