/*
 * Reads schemas. A schema declares the events that a program logs, with the type, unit and meaning of each field.
 *
 *   [schema]
 *   name=dpss
 *   description=events of a block server
 *
 *   [WriteData]
 *   level=Usage
 *   description=a block was written to the socket
 *   SEND.SZ=int64; bytes; number of bytes sent
 *   FILE=string; ; name of the file
 *   optional=FILE
 *
 * The syntax is that of GLib key files: # begins a comment line; in a value, \n, \t, \r, \s and \\ stand for a newline,
 * tab, carriage return, space and backslash. Each section except [schema] declares an event. The keys of an event are
 * fields, except level (default Usage), description and optional (fields that may be absent, separated by ;). A name in
 * double quotes is always the name of an event or field: "level"=int32. The value of a field is its type, unit and
 * description; unit and description may be absent. The types are bool, int8 to int64, uint8 to uint64, float, double,
 * string (text), bytes (arbitrary bytes) and enum(a|b|c). C names begin with the prefix= of [schema], whose default is
 * the schema's name.
 *
 * Only nlschema uses this module, in one thread.
 */
#ifndef NLTOOLS_SCHEMA_H
#define NLTOOLS_SCHEMA_H

#include <netlogger.h>

#include <glib.h>
#include <json-c/json.h>

enum { SCHEMA_FIELDS_MAX = 16 }; /* the maximum number of fields of NL_EVENT */

typedef enum schema_type {
    SCHEMA_BOOL,
    SCHEMA_INT8,
    SCHEMA_INT16,
    SCHEMA_INT32,
    SCHEMA_INT64,
    SCHEMA_UINT8,
    SCHEMA_UINT16,
    SCHEMA_UINT32,
    SCHEMA_UINT64,
    SCHEMA_FLOAT,
    SCHEMA_DOUBLE,
    SCHEMA_STRING,
    SCHEMA_BYTES,
    SCHEMA_ENUM,
} schema_type;

typedef struct schema_field {
    char *name;
    unsigned line; /* line of the declaration, from 1 */
    schema_type type;
    GPtrArray *values; /* char *, the values of an enum; otherwise empty */
    char *unit;        /* "" if the field has no unit */
    char *description; /* "" if the field has no description */
    bool optional;
    char *parameter;      /* C name */
    char *c_type;         /* C type; each enum has a separate type */
    GPtrArray *constants; /* char *, the C names of the values */
} schema_field;

typedef struct schema_event {
    char *name;
    unsigned line;
    nl_level level;
    char *description;
    GPtrArray *fields; /* schema_field * */
    bool has_optional;
    char *function; /* C name */
} schema_event;

typedef struct schema {
    char *name;
    char *prefix;
    char *description;
    GPtrArray *events; /* schema_event * */
} schema;

typedef struct schema_mistake {
    unsigned line; /* line number from 1; 0: no line */
    char *text;
} schema_mistake;

/* Reads a schema from a file; "-" is standard input. If the schema has mistakes, returns NULL and sets *mistakes to all
 * mistakes (schema_mistake *), in the order of lines. The caller frees *mistakes with g_ptr_array_unref. */
schema *schema_read(const char *path, GPtrArray **mistakes);
void schema_free(schema *s);

/* Adds a mistake. Control characters in the text become spaces. */
void schema_mistake_add(GPtrArray *mistakes, unsigned line, const char *format, ...) NL_PRINTF(3, 4);

/* Sets the C names of the schema's declarations: function, parameter, c_type and constants. Adds a mistake for each
 * name that is reserved or not unique. */
void schema_name_all(schema *s, GPtrArray *mistakes);

/* Returns a type's name in schemas, without the values of an enum. The name has static storage. */
const char *schema_type_name(schema_type type);

/* Returns a field's type as written in the schema, with the values of an enum. The caller frees it with g_free. */
char *schema_field_type(const schema_field *field);

/* Returns a copy of a text as valid UTF-8, with spaces for control and formatting characters. The caller frees it with
 * g_free. */
char *schema_plain(const char *text);

/*
 * Produce the output of the commands. schema_json returns a document, which the caller frees with json_object_put. The
 * other functions append to `out`.
 */
typedef enum schema_doc_style { SCHEMA_MARKDOWN, SCHEMA_HTML, SCHEMA_TEXT } schema_doc_style;
void schema_header(const schema *s, GString *out);
void schema_doc(const schema *s, schema_doc_style style, GString *out);
json_object *schema_json(const schema *s);

#endif
