/* A set of texts, numbered from 0 as they come. */
#ifndef NETLOGGER_CONVERT_TEXT_SET_H
#define NETLOGGER_CONVERT_TEXT_SET_H

#include <netlogger.h>

/* Zeroes at first. */
typedef struct text_set {
    nl_string *texts;
    size_t count, capacity;
    uint32_t *slots; /* number + 1; 0: free */
    size_t slot_count;
} text_set;

/* The number of a text; SIZE_MAX when it is not there. */
size_t text_set_find(const text_set *set, nl_string text);

/* The number of a text, which is added, copied, when it is not there. */
size_t text_set_add(text_set *set, nl_string text, bool *added);

void text_set_clear(text_set *set);
void text_set_free(text_set *set);

#endif
