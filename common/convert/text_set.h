/* A set of texts, numbered from 0 in the order of their addition. One thread at a time. */
#ifndef NETLOGGER_CONVERT_TEXT_SET_H
#define NETLOGGER_CONVERT_TEXT_SET_H

#include <netlogger.h>

/* Starts as zeros. */
typedef struct text_set {
    nl_string *texts;
    size_t count, capacity;
    uint32_t *slots; /* number + 1; 0: free */
    size_t slot_count;
} text_set;

/* Returns the number of a text, or SIZE_MAX. */
size_t text_set_find(const text_set *set, nl_string text);

/* Returns the number of a text; adds a copy if the set does not have it. */
size_t text_set_add(text_set *set, nl_string text, bool *added);

void text_set_clear(text_set *set);
void text_set_free(text_set *set);

#endif
