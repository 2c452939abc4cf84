/* A chunk of text, line by line. */
#ifndef NETLOGGER_CONVERT_LINES_H
#define NETLOGGER_CONVERT_LINES_H

#include "convert/convert.h"

#include <string.h>

typedef struct text_lines {
    const char *start, *end; /* of the chunk */
    const char *next;
    uint64_t number; /* of the line that was read last, from 1 */
    uint64_t offset; /* of it, in the chunk */
    nl_string line;  /* without its newline, and without the CR before that */
} text_lines;

static inline text_lines lines_of(const char *data, size_t size)
{
    return (text_lines){.start = data, .end = data + size, .next = data};
}

static inline bool lines_next(text_lines *l)
{
    if (l->next == l->end)
        return false;
    const char *at = l->next, *newline = memchr(at, '\n', (size_t)(l->end - at)),
               *stop = newline != NULL ? newline : l->end;
    l->number++;
    l->offset = (uint64_t)(at - l->start);
    l->next = newline != NULL ? newline + 1 : l->end;
    l->line = (nl_string){at, (size_t)(stop - at)};
    if (l->line.size > 0 && stop[-1] == '\r')
        l->line.size--;
    return true;
}

/* Notes that the line that was read last can't be. */
static inline void lines_malformed(const text_lines *l, const char *reason, sink *s)
{
    sink_malformed(s, l->number, l->offset, reason, l->line.data, l->line.size);
}

/*
 * Text being taken to pieces from its beginning. Each function takes what it says from text when that begins with it,
 * and is false, with nothing taken, when it does not.
 */
static inline bool text_take(nl_string *text, const char *word)
{
    size_t size = strlen(word);
    if (text->size < size || memcmp(text->data, word, size) != 0)
        return false;
    *text = (nl_string){text->data + size, text->size - size};
    return true;
}

static inline void text_skip(nl_string *text, size_t size)
{
    *text = (nl_string){text->data + size, text->size - size};
}

static inline void text_blanks(nl_string *text)
{
    size_t size = 0;
    while (size < text->size && (text->data[size] == ' ' || text->data[size] == '\t'))
        size++;
    text_skip(text, size);
}

static inline bool text_digits(nl_string *text, nl_string *digits)
{
    size_t size = 0;
    while (size < text->size && text->data[size] >= '0' && text->data[size] <= '9')
        size++;
    *digits = (nl_string){text->data, size};
    text_skip(text, size);
    return size > 0;
}

/* Drops word from the end. */
static inline bool text_drop(nl_string *text, const char *word)
{
    size_t size = strlen(word);
    if (text->size < size || memcmp(text->data + text->size - size, word, size) != 0)
        return false;
    text->size -= size;
    return true;
}

static inline void text_drop_blanks(nl_string *text)
{
    while (text->size > 0 && (text->data[text->size - 1] == ' ' || text->data[text->size - 1] == '\t'))
        text->size--;
}

static inline bool text_is(nl_string text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

/* Where word is in text; NULL when it is not. */
static inline const char *text_find(nl_string text, const char *word)
{
    return text.size > 0 ? memmem(text.data, text.size, word, strlen(word)) : NULL;
}

#endif
