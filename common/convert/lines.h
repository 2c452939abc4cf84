/* Reads a piece of text line by line, and lines word by word. Only one thread at a time may use a text_lines. */
#ifndef NETLOGGER_CONVERT_LINES_H
#define NETLOGGER_CONVERT_LINES_H

#include "base/error.h"
#include "base/text.h"
#include "convert/builder.h"

#include <string.h>

typedef struct text_lines {
    const char *start, *end; /* start and end of the piece */
    const char *next;
    uint64_t number; /* number of the latest line; the first line is 1 */
    uint64_t offset; /* offset of the latest line in the piece, in bytes */
    nl_string line;  /* the latest line without CR and LF */
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

/* Reports the latest line as malformed. */
static inline void lines_malformed(const text_lines *l, const char *reason, sink *s)
{
    sink_malformed(s, l->number, l->offset, reason, l->line.data, l->line.size);
}

/* Passes the record of the latest line to the sink, or reports the line as malformed if the record has no time. */
static inline void lines_put(const text_lines *l, builder *b, sink *s)
{
    if (!builder_finish(b, false, s))
        lines_malformed(l, nl_error_message(), s);
}

/*
 * These functions remove a part from the beginning of a text. text_take and text_digits return false if the text does
 * not begin with that part.
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

/* Removes `word` from the end of the text. Returns false if the text does not end with it. */
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

/* Returns the position of the first occurrence of `word`, or NULL. */
static inline const char *text_find(nl_string text, const char *word)
{
    return text.size > 0 ? memmem(text.data, text.size, word, strlen(word)) : NULL;
}

#endif
