/* What OTLP's readers and writers share. */
#ifndef NETLOGGER_CONVERT_OTLP_H
#define NETLOGGER_CONVERT_OTLP_H

#include "convert/keys.h"
#include "convert/json_text.h"

/* Attributes of our own: a time before 1970, a level that is empty or no UTF-8. */
#define OTLP_TIME_KEY "netlogger.ts"
#define OTLP_LEVEL_KEY "netlogger.level"
#define OTLP_SCOPE "netlogger"

/* Appends an AnyValue. typed: as the field's type says; otherwise text that is a number, and comes back as it is, is
 * one. */
void otlp_put_value(nl_buffer *out, const nl_field *field, bool typed, sink *s);

/* Appends an AnyValue of text, whatever its bytes. */
void otlp_put_text(nl_buffer *out, nl_string text);

/* Appends {"resource":{"attributes":[...]}, without the } at the end. */
void otlp_put_resource(nl_buffer *out, nl_string host, nl_string prog);

#endif
