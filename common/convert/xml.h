/* What XML's reader and writer share. */
#ifndef NETLOGGER_CONVERT_XML_H
#define NETLOGGER_CONVERT_XML_H

#include "convert/builder.h"
#include "program/record_xml.h"

/* The type of that name. False when there is none. */
bool xml_type(nl_string name, nl_type *type);

/* Gives a field a type and the value that the text says. False when it is none of that type. */
bool xml_set_value(nl_field *field, nl_type type, nl_string text);

/*
 * Reads a record that stands there exactly as xml_write.c writes it, with the newline after it, and needs nothing that
 * XML has escapes for: three times as fast as libxml2 does. Where it ends, with the builder ready to be finished; NULL
 * when it is not like that, and is libxml2's to read.
 */
const char *xml_own_record(const char *at, const char *end, builder *b);

#endif
