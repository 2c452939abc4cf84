/*
 * JSON documents (RFC 8259) that a program prints, built with json-c.
 *
 * json-c writes the bytes of a string as they are. The texts of logs may contain any bytes, so these functions first
 * convert them to valid UTF-8. Conversions of records (common/convert) do not use this module, because building a tree
 * for each record costs more than the conversion. Any thread may call these functions.
 */
#ifndef NETLOGGER_PROGRAM_JSON_DOCUMENT_H
#define NETLOGGER_PROGRAM_JSON_DOCUMENT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * Returns text as a JSON string, in which U+FFFD replaces each byte that is not part of valid UTF-8. The caller owns
 * the result. If text is NULL, returns NULL, which json-c writes as null.
 */
json_object *json_text(const char *text);

/* Set a member of object. Numbers that are not finite, and NULL text, become null. */
void json_add_text(json_object *object, const char *name, const char *text);
void json_add_int(json_object *object, const char *name, int64_t value);
void json_add_double(json_object *object, const char *name, double value);
void json_add_bool(json_object *object, const char *name, bool value);

/*
 * Returns document, which must be an object or an array, as text without a newline at the end. The text has indented
 * lines, or only one line. Escapes characters that must not reach a terminal (record/terminal.h). `document` owns the
 * text.
 */
const char *json_document_text(json_object *document, bool indented);

/* Writes document to file, indented, with a newline at the end, and frees document. Returns false if writing failed. */
bool json_document_write(json_object *document, FILE *file);

#endif
