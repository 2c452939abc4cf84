/* Shared by the readers and writers of OTLP. Any thread. */
#ifndef NETLOGGER_CONVERT_OTLP_H
#define NETLOGGER_CONVERT_OTLP_H

#include "convert/keys.h"
#include "convert/json_text.h"

/* Attributes of NetLogger: a time before 1970; a level that is empty or not UTF-8. */
#define OTLP_TIME_KEY "netlogger.ts"
#define OTLP_LEVEL_KEY "netlogger.level"
#define OTLP_SCOPE "netlogger"

/* Appends an AnyValue. typed: by the field's type; otherwise text that json_is_number accepts is a number. */
void otlp_put_value(nl_buffer *out, const nl_field *field, bool typed, sink *s);

/* Appends an AnyValue with text of any bytes. */
void otlp_put_text(nl_buffer *out, nl_string text);

/* Appends {"resource":{"attributes":[...]} without the last }. */
void otlp_put_resource(nl_buffer *out, nl_string host, nl_string prog);

#endif
