/*
 * A set of texts, which are numbered from 0 in the order in which they are added. Only one thread at a time may use a
 * set.
 */
#ifndef NETLOGGER_CONVERT_TEXT_SET_H
#define NETLOGGER_CONVERT_TEXT_SET_H

#include <netlogger.h>

/* Initialize the structure with zeros. */
typedef struct text_set {
    nl_string *texts;
    size_t count, capacity;
    uint32_t *slots; /* number + 1; 0 in free slots */
    size_t slot_count;
    uint64_t seed; /* seed of the hashes */
} text_set;

/* Returns the number of a text, or SIZE_MAX if the set does not have it. */
size_t text_set_find(const text_set *set, nl_string text);

/*
 * Returns the number of a text. If the set does not have the text, adds a copy and sets *added to true. Otherwise, sets
 * *added to false.
 */
size_t text_set_add(text_set *set, nl_string text, bool *added);

void text_set_clear(text_set *set);
void text_set_free(text_set *set);

#endif
