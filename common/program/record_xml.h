/*
 * Records as XML, an element each, as doc/netlogger.xsd says:
 *
 *   <record time="2000-03-30T11:23:20.957943Z" event="WriteData" level="Info" host="h" prog="p"><f n="SEND.SZ"
 *     t="int">49332</f></record>
 *
 * A value that XML can't hold (bytes that are no UTF-8, control characters) is in base64: an f says so with e="base64",
 * a record by naming its attributes that are, as in base64="host prog".
 */
#ifndef NETLOGGER_PROGRAM_RECORD_XML_H
#define NETLOGGER_PROGRAM_RECORD_XML_H

#include <netlogger.h>

#include "base/time_internal.h"

#define XML_NAMESPACE "urn:netlogger:log:1"

/* A type as an f's t says it; NULL: it says nothing of text. */
static inline const char *xml_type_name(nl_type type)
{
    static const char *const names[] = {[NL_TYPE_STRING] = NULL,
                                        [NL_TYPE_INT] = "int",
                                        [NL_TYPE_UINT] = "uint",
                                        [NL_TYPE_DOUBLE] = "double",
                                        [NL_TYPE_BOOL] = "bool"};
    return names[type];
}

/* Appends a record. time is its time as nl_time_format_iso has it; space the namespace to be said in it, NULL where it
 * is said already. */
void record_xml_put(const nl_record *record, nl_string time, const char *space, nl_buffer *out);

/* Appends text with what needs it replaced. False, with nothing appended, when XML can't hold it. */
bool xml_put_text(nl_buffer *out, nl_string text, bool attribute);

#endif
