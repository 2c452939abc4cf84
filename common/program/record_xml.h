/*
 * Writes a record as an XML element of the schema doc/netlogger.xsd:
 *
 *   <record time="2000-03-30T11:23:20.957943Z" event="WriteData" level="Info" host="h" prog="p"><f n="SEND.SZ"
 *     t="int">49332</f></record>
 *
 * Values that XML cannot represent (invalid UTF-8, control characters) are in base64. An f element with such a value
 * has e="base64". A record element lists its attributes in base64, as in base64="host prog". Any thread may call these
 * functions.
 */
#ifndef NETLOGGER_PROGRAM_RECORD_XML_H
#define NETLOGGER_PROGRAM_RECORD_XML_H

#include <netlogger.h>

#include "base/time_internal.h"

#define XML_NAMESPACE "urn:netlogger:log:1"

/* Returns the value of the t attribute for a type, or NULL for text, which needs no t. */
static inline const char *xml_type_name(nl_type type)
{
    static const char *const names[] = {[NL_TYPE_STRING] = NULL,
                                        [NL_TYPE_INT] = "int",
                                        [NL_TYPE_UINT] = "uint",
                                        [NL_TYPE_DOUBLE] = "double",
                                        [NL_TYPE_BOOL] = "bool"};
    return names[type];
}

/*
 * Appends a record. `time` is the record's time, from nl_time_format_iso. `space` is the namespace to declare, or NULL.
 */
void record_xml_put(const nl_record *record, nl_string time, const char *space, nl_buffer *out);

/* Appends text with XML's special characters escaped. Returns false, and appends nothing, if XML does not allow the
 * text. */
bool xml_put_text(nl_buffer *out, nl_string text);

#endif
