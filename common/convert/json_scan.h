/*
 * JSON (RFC 8259) being read, value by value. What is wrong is said in error, with everything after it not read.
 *
 * Bytes beyond ASCII are taken as they are, UTF-8 or not. An escaped half of a surrogate pair that stands alone, as
 * some writers make of bytes that are no UTF-8, becomes the three bytes that it would be in UTF-8.
 */
#ifndef NETLOGGER_CONVERT_JSON_SCAN_H
#define NETLOGGER_CONVERT_JSON_SCAN_H

#include "program/encoding.h"

#include <netlogger.h>

typedef struct json_scan {
    const char *at, *end;
    const char *error; /* NULL: none */
    /* Gives so many bytes for a string that has escapes; NULL: there is no room. */
    char *(*allocate)(void *user, size_t size);
    void *user;
} json_scan;

enum { JSON_DEPTH = 64 }; /* arrays and objects within one another */

static inline void json_blank(json_scan *j)
{
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r'))
        j->at++;
}

/* Says what is wrong; false. */
bool json_fail(json_scan *j, const char *error);

/* Whether the next byte that is not blank is that one, which is then taken. */
static inline bool json_take(json_scan *j, char byte)
{
    json_blank(j);
    if (j->at == j->end || *j->at != byte)
        return false;
    j->at++;
    return true;
}

/* The next byte that is not blank; '\0' at the end. */
static inline char json_peek(json_scan *j)
{
    json_blank(j);
    return j->at < j->end ? *j->at : '\0';
}

/* Takes a string without its quotes and escapes: a view of the text, or of bytes that were allocated. */
bool json_string(json_scan *j, nl_string *string);

/* Takes a number, as it is written. */
bool json_number(json_scan *j, nl_string *text);

/* Takes a word, "true" and the like. */
bool json_word(json_scan *j, const char *word);

/* Takes any value, as it is written. */
bool json_any(json_scan *j, nl_string *text);

/*
 * Goes through an object or an array, whose { or [ was taken: json_next takes what stands before each member or value
 * but the first, and the end. True when there is one.
 */
bool json_next(json_scan *j, char close, bool *first);

/* Takes a member's name and the colon. */
bool json_key(json_scan *j, nl_string *key);

/* Digits as a number. False when text is something else, or does not fit. */
bool json_unsigned(nl_string text, uint64_t *value);

/*
 * A number into a typed value that is written as the same text again, or, when there is none, into text.
 */
void json_number_value(nl_string text, nl_field *field);

#endif
