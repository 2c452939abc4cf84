/*
 * The parts of spans. Events inside a span divide the span's own time into parts, each from one event to the next. A
 * finding about a span can then name the part that contains the time. The module stores only parts that begin or end at
 * an event other than the start or end of a span. Not thread-safe.
 */
#ifndef NLDIAG_SPAN_PARTS_H
#define NLDIAG_SPAN_PARTS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct visits;

typedef struct span_parts span_parts;

span_parts *span_parts_new(void);
void span_parts_free(span_parts *p);

/* Returns the number of bytes that the module uses. */
size_t span_parts_memory(const span_parts *p);

/* Adds a part, of `ns` nanoseconds, to the visit of a span. The part begins `since_ns` nanoseconds after the visit.
 * `from` and `to` are interned names of events. Call the function in the order of the requests. */
void span_parts_add(span_parts *p, uint32_t visit, const char *from, const char *to, float since_ns, float ns);

/* A part of a visit. */
typedef struct span_part {
    uint32_t visit;        /* index of the visit */
    const char *from, *to; /* interned names of events */
    int64_t from_ns, to_ns;
} span_part;

/* Returns the parts of the visits to a place (elements are span_part), sorted by visit and then by time. The caller
 * frees the array. */
GArray *span_parts_list(const struct visits *v, uint32_t place);

/* Replaces the index i of each visit with moved[i], and removes the parts of a visit if moved[i] is VISIT_NONE. */
void span_parts_move(span_parts *p, const uint32_t *moved);

/*
 * Finds the part of a span whose time grows with the values in `cut`, which has a value in nanoseconds for each visit.
 * `place` is the number of the span's place. A part qualifies if it grows by at least 70 % (PART_MIN) of the growth of
 * `cut`. Returns whether a part qualifies, and sets *from and *to to the names of the events before and after the part.
 */
bool span_parts_find(const struct visits *v, uint32_t place, const float *cut, const char **from, const char **to);

#endif
