/*
 * Tracks are the parts of a view that the user can collapse, expand and pin: the lifelines, the points, a measurement,
 * a host and a thread. A key identifies a track. It is a hash of the track's kind and name, so that sessions and links
 * can contain it. This module has no state.
 */
#ifndef NLV_TRACKS_H
#define NLV_TRACKS_H

#include <stdbool.h>
#include <stdint.h>

enum { TRACK_SET_MAX = 64, TRACK_SET_TEXT_SIZE = TRACK_SET_MAX * 9 + 1 };

/* A set of keys. If it is full, a new key replaces the oldest key. */
typedef struct track_set {
    uint32_t keys[TRACK_SET_MAX];
    unsigned count;
} track_set;

/* Returns the key of a track. It is not 0. */
uint32_t track_key(const char *kind, const char *name);

bool track_set_has(const track_set *s, uint32_t key);

/* Adds a key, or removes it if `is_in` is false. */
void track_set_put(track_set *s, uint32_t key, bool is_in);

/* track_set_write writes a set as text: hexadecimal numbers with a point between them. track_set_read replaces a set by
 * the keys of a text, and ignores invalid parts. */
void track_set_write(const track_set *s, char text[TRACK_SET_TEXT_SIZE]);
void track_set_read(track_set *s, const char *text);

#endif
