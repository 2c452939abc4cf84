/*
 * The schema: the events that a program logs, with the type, unit and meaning of each of their fields.
 *
 *   [schema]
 *   name=dpss
 *   description=what a distributed block server logs
 *
 *   [WriteData]
 *   level=Usage
 *   description=a block was written to the socket
 *   SEND.SZ=int64; bytes; how many bytes were sent
 *   FILE=string; ; the file's name
 *   optional=FILE
 *
 * It is a GLib key file, as nlv's files are: # begins a comment line; \n, \t, \r, \s and \\ stand in a value for a
 * newline, tab, return, space and backslash. Each section but [schema] is an event, each key of it a field but level
 * (Usage when it is not said), description and optional (a list with ; of the fields that need not be there). A name in
 * double quotes is always an event's or a field's: "level"=int32. A field's value is its type, its unit and its
 * description; the last two may be left out. Types: bool, int8 to int64, uint8 to uint64, float, double, string (text),
 * bytes (any) and enum(a|b|c). prefix= in [schema] is what names in C begin with, the schema's name when it is not
 * said.
 *
 * Everything here belongs to nlschema, uses GLib and is for one thread.
 */
#ifndef NLTOOLS_SCHEMA_H
#define NLTOOLS_SCHEMA_H

#include <netlogger.h>

#include <glib.h>
#include <json-c/json.h>

enum { SCHEMA_FIELDS_MAX = 16 }; /* what one NL_EVENT takes */

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
    unsigned line; /* where it is declared, from 1 */
    schema_type type;
    GPtrArray *values; /* char *, of an enum; otherwise empty */
    char *unit;        /* "" when none is said, as the description */
    char *description;
    bool optional;
    /* What the header calls it: */
    char *parameter;
    char *c_type;         /* an enum's own type for an enum */
    GPtrArray *constants; /* char *, one for each value */
} schema_field;

typedef struct schema_event {
    char *name;
    unsigned line;
    nl_level level;
    char *description;
    GPtrArray *fields; /* schema_field * */
    bool has_optional;
    char *function; /* what the header calls it */
} schema_event;

typedef struct schema {
    char *name;
    char *prefix;
    char *description;
    GPtrArray *events; /* schema_event * */
} schema;

/* One thing that is wrong in a schema file. */
typedef struct schema_mistake {
    unsigned line; /* from 1; 0 when it is about no line of it */
    char *text;
} schema_mistake;

/*
 * Reads a schema; "-" is standard input. NULL when anything is wrong with it: *mistakes (schema_mistake *, to be freed
 * with g_ptr_array_unref) then holds all that is, in the order of lines; otherwise it is NULL.
 */
schema *schema_read(const char *path, GPtrArray **mistakes);
void schema_free(schema *s);

/* Adds a mistake. */
void schema_mistake_add(GPtrArray *mistakes, unsigned line, const char *format, ...) NL_PRINTF(3, 4);

/*
 * Gives everything its name in C: function, parameter, c_type, constants. A name that is not to be had (two events of
 * one function, a keyword, a name of the library) is a mistake.
 */
void schema_name_all(schema *s, GPtrArray *mistakes);

/* A type's name as a schema spells it, without an enum's values; static storage. */
const char *schema_type_name(schema_type type);

/* A field's type as the schema spells it, an enum with its values; to be freed with g_free. */
char *schema_field_type(const schema_field *field);

/*
 * Text without anything that could be more than text where it is shown: control and formatting characters become
 * spaces, bytes that are no UTF-8 are replaced. To be freed with g_free.
 */
char *schema_plain(const char *text);

/* Adds text to out as a C string literal, quotes included, in ASCII and without trigraphs. */
void schema_append_literal(GString *out, const char *text);

/* What the commands make of a schema; each adds to out. */
typedef enum schema_doc_style { SCHEMA_MARKDOWN, SCHEMA_HTML, SCHEMA_TEXT } schema_doc_style;
void schema_header(const schema *s, GString *out);
void schema_doc(const schema *s, schema_doc_style style, GString *out);
json_object *schema_json(const schema *s);

#endif
