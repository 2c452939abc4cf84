/*
 * Reads JSON (RFC 8259) value by value. Builds no tree, because conversions must be fast. Reading ends at the first
 * error.
 *
 * Bytes outside ASCII may be invalid UTF-8. An escaped surrogate that is not part of a pair becomes three bytes,
 * because some writers write invalid UTF-8 in this form. Only one thread at a time may use a scan.
 */
#ifndef NETLOGGER_CONVERT_JSON_SCAN_H
#define NETLOGGER_CONVERT_JSON_SCAN_H

#include "program/encoding.h"

#include <netlogger.h>

typedef struct json_scan {
    const char *at, *end;
    const char *error; /* the first error, or NULL */
    /* Allocates bytes for a string with escapes; may return NULL. */
    char *(*allocate)(void *user, size_t size);
    void *user;
} json_scan;

enum { JSON_DEPTH = 64 }; /* maximum nesting of arrays and objects */

static inline void json_blank(json_scan *j)
{
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r'))
        j->at++;
}

/* Sets the error unless one is set. Returns false. */
bool json_fail(json_scan *j, const char *error);

/* Skips blanks. If the next byte equals `byte`, skips it and returns true. Otherwise, returns false. */
static inline bool json_take(json_scan *j, char byte)
{
    json_blank(j);
    if (j->at == j->end || *j->at != byte)
        return false;
    j->at++;
    return true;
}

/* Skips blanks and returns the next byte, or '\0' at the end. */
static inline char json_peek(json_scan *j)
{
    json_blank(j);
    return j->at < j->end ? *j->at : '\0';
}

/*
 * Reads a string. The result points into the text or, if the string has escapes, to allocated bytes. Returns false on
 * an error.
 */
bool json_string(json_scan *j, nl_string *string);

/* Reads a number as text. Returns false on failure. */
bool json_number(json_scan *j, nl_string *text);

/* Reads a word such as true. Returns false on failure. */
bool json_word(json_scan *j, const char *word);

/* Skips a value and sets *text to its JSON text. Returns false on failure. */
bool json_any(json_scan *j, nl_string *text);

/*
 * Iterates over an object or array after its { or [. Reads the comma before each member or value except the first, or
 * the closing bracket. Returns false at the end and on failure. *first must be true before the first call.
 */
bool json_next(json_scan *j, char close, bool *first);

/* Reads the name of a member and the colon. Returns false on failure. */
bool json_key(json_scan *j, nl_string *key);

/* Converts a text of decimal digits to a number. Returns false for any other text, and if the number does not fit. */
bool json_unsigned(nl_string text, uint64_t *value);

/*
 * Sets the type and value of a field from the text of a number. If a writer would not produce the same text from any
 * numeric type, the field becomes text.
 */
void json_number_value(nl_string text, nl_field *field);

#endif
