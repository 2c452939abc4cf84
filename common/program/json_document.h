/*
 * JSON documents (RFC 8259) that a program prints, built with json-c.
 *
 * json-c writes the bytes of a string as they are. The texts of logs may hold any bytes, and so these functions make
 * valid UTF-8 of them first. Conversions of records (common/convert) do not use this module, because building a tree
 * for each record costs more than the conversion. Any thread.
 */
#ifndef NETLOGGER_PROGRAM_JSON_DOCUMENT_H
#define NETLOGGER_PROGRAM_JSON_DOCUMENT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>

/* Returns text as a JSON string; each byte that is not part of valid UTF-8 becomes U+FFFD. The caller owns the result.
 * NULL text gives NULL, which json-c writes as null. */
json_object *json_text(const char *text);

/* Writes document to file, indented, with a newline at the end, and frees document. Returns false if writing failed. */
bool json_document_write(json_object *document, FILE *file);

#endif
