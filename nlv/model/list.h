/*
 * A list contains records of one kind in order of time: the ends of segments of one kind, the values of one loadline on
 * one host, or points of one kind. A list has levels of detail: one node for every 64 entries, and another node for
 * every 4,096 entries. A node contains the minimum and maximum measure (a duration or a value), the places of both, and
 * the prevailing color. To draw a pixel that represents a million entries, nlv reads a few nodes and no entries.
 *
 * An entry takes 4 bytes, or 8 bytes if the list keeps values. The levels add half a byte per entry. The list has no
 * locks; the owner of the store locks it.
 */
#ifndef NLV_LIST_H
#define NLV_LIST_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LIST_NODE = 64, LIST_BLOCK = 4096, LIST_NODES = LIST_BLOCK / LIST_NODE };

/* Special colors of nodes. The other colors are numbers of names (names.h). */
enum { LIST_COLOR_MIXED = 0xfffc /* no color prevails */, LIST_COLOR_UNKNOWN = 0xfffd /* not computed yet */ };

/* A summary of several entries. Places are relative to the start of the block. */
typedef struct list_node {
    float min, max, sum;
    float sample;   /* the measure of the first entry */
    uint32_t first; /* the record of the first entry */
    uint16_t min_at, max_at;
    uint16_t color, max_color; /* the prevailing color, and the color of the entry with the maximum */
} list_node;

typedef struct list_block {
    uint32_t *records; /* in ascending order */
    float *values;     /* NULL if the list does not keep values */
    list_node *nodes;
    bool borrowed; /* the block is in a mapped index: it is full and must not be freed */
} list_block;

typedef struct list {
    list_block *blocks;
    list_node *tops; /* one node per block */
    uint32_t *first; /* the first record of each block, adjacent for searching */
    size_t count;    /* number of entries, including the dropped entries */
    size_t start;    /* index of the first entry that list_drop has not dropped */
    size_t capacity; /* capacity of blocks */
    size_t colored;  /* number of entries, from the first, whose nodes have colors */
    bool has_values; /* the list keeps the measures */
    float max;       /* maximum measure (list_max) */
} list;

/* Computes the measure of an entry from the store, for lists without values. */
typedef float list_measure(const void *user, uint32_t record);

void list_free(list *l); /* frees the members, not the list */

/* Returns the memory of a list in bytes, without the mapped parts. */
size_t list_memory(const list *l);

/* Appends an entry. The record must not come before the last entry's record. */
void list_append(list *l, uint32_t record, float measure);

/* Removes all entries except the first `count` entries. Lists that keep no values need `measure`. */
void list_truncate(list *l, size_t count, list_measure *measure, const void *user);

/* Drops the entries before a record. The other entries keep their indices. */
void list_drop(list *l, uint32_t record);

static inline uint32_t list_at(const list *l, size_t i)
{
    return l->blocks[i / LIST_BLOCK].records[i % LIST_BLOCK];
}

static inline float list_value(const list *l, size_t i)
{
    return l->blocks[i / LIST_BLOCK].values[i % LIST_BLOCK];
}

/*
 * Returns the index of the first entry at or after `record`, or l->count if all entries are earlier. The search begins
 * at the index `from`, which must be at least l->start.
 */
size_t list_find(const list *l, uint32_t record, size_t from);

/* Returns the precision, in entries, with which to find the bounds of a picture's columns. The precision is LIST_BLOCK
 * or LIST_NODE if a column has at least four times as many entries, otherwise 1. */
size_t list_grain(size_t entries, size_t columns);

/* Like list_find, but the returned index may be up to `grain` entries too small. */
size_t list_find_near(const list *l, uint32_t record, size_t from, size_t grain);

/*
 * Returns the node that summarizes the entry's block if grain is LIST_BLOCK, otherwise the node of 64 entries that
 * contains the entry.
 */
static inline const list_node *list_node_of(const list *l, size_t i, size_t grain)
{
    return grain == LIST_BLOCK ? &l->tops[i / LIST_BLOCK]
                               : &l->blocks[i / LIST_BLOCK].nodes[i % LIST_BLOCK / LIST_NODE];
}

/* Returns the color of an entry as the number of a name. */
typedef uint16_t list_color(const void *user, uint32_t record);

/* Sets the colors of all nodes if `all` is true, otherwise only of nodes with new entries. */
void list_color_nodes(list *l, bool all, list_color *color, const void *user);

/* The extremes of a non-empty range of entries. */
typedef struct list_extremes {
    size_t min_at, max_at;
    float min, max;
    double sum; /* sum and number of all measures */
    size_t count;
    uint16_t max_color; /* color of the entry with the maximum, or LIST_COLOR_UNKNOWN */
} list_extremes;

/* Finds the extremes of the entries [from, to). Rounds both ends of a wide range down to the start of a node or block.
 * Lists without values need `measure`. */
list_extremes list_find_extremes(const list *l, size_t from, size_t to, list_measure *measure, const void *user);

/* Returns the maximum measure of all entries, including dropped and removed entries; -INFINITY for an empty list. */
static inline float list_max(const list *l)
{
    return l->count > 0 ? l->max : -INFINITY;
}

#endif
