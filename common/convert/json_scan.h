/*
 * Reads JSON (RFC 8259) value by value, without a tree: conversions are a hot path. Reading ends at the first error.
 *
 * Bytes beyond ASCII are accepted as they are, also invalid UTF-8. A single escaped half of a surrogate pair becomes
 * three bytes, because some writers write invalid UTF-8 in this form. One thread at a time.
 */
#ifndef NETLOGGER_CONVERT_JSON_SCAN_H
#define NETLOGGER_CONVERT_JSON_SCAN_H

#include "program/encoding.h"

#include <netlogger.h>

typedef struct json_scan {
    const char *at, *end;
    const char *error; /* NULL: none */
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

/* Skips blanks, and then byte. Returns false if the next byte is another. */
static inline bool json_take(json_scan *j, char byte)
{
    json_blank(j);
    if (j->at == j->end || *j->at != byte)
        return false;
    j->at++;
    return true;
}

/* Returns the next byte after blanks; '\0' at the end. */
static inline char json_peek(json_scan *j)
{
    json_blank(j);
    return j->at < j->end ? *j->at : '\0';
}

/* Reads a string: a view of the text, or of allocated bytes if it has escapes. */
bool json_string(json_scan *j, nl_string *string);

/* Reads a number as text. */
bool json_number(json_scan *j, nl_string *text);

/* Reads a word such as true. */
bool json_word(json_scan *j, const char *word);

/* Reads any value as text. */
bool json_any(json_scan *j, nl_string *text);

/*
 * Iterates over an object or array after its { or [. Reads the comma before each member or value except the first, or
 * the end. Returns false at the end. *first starts as true.
 */
bool json_next(json_scan *j, char close, bool *first);

/* Reads the name of a member and the colon. */
bool json_key(json_scan *j, nl_string *key);

/* Converts digits. Returns false for other text and for numbers that do not fit. */
bool json_unsigned(nl_string text, uint64_t *value);

/* Sets type and value of a field from a number. A number that no type would write as the same text becomes text. */
void json_number_value(nl_string text, nl_field *field);

#endif
