/* Strings of JSON (RFC 8259) for texts that GLib makes. Any thread. */
#ifndef NETLOGGER_ANALYSIS_JSON_H
#define NETLOGGER_ANALYSIS_JSON_H

#include <glib.h>

/* Adds text to out as a JSON string, quotes included; bytes that are no UTF-8 are replaced. */
void json_append_string(GString *out, const char *text);

#endif
