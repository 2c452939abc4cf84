/*
 * Records of one kind (the ends of one segment of lifelines, the values of one loadline on one host, one sort of
 * point) in order of time, with levels of detail: of every 64 and of every 4096 it is known where the least and the
 * most measure is (a latency, a value) and of which colour they are, so that what a pixel shows of a million is found
 * by looking at a few, and at nothing of what lies between: neither in memory nor, in a mapped index, on the disk.
 *
 * Four bytes a record, eight with values, and half a byte for the levels. No locks: who writes keeps readers away.
 */
#ifndef NLV_LIST_H
#define NLV_LIST_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LIST_NODE = 64, LIST_BLOCK = 4096, LIST_NODES = LIST_BLOCK / LIST_NODE };

/* Names that stand for colours in nodes, besides those of names.h. */
enum { LIST_COLOR_MIXED = 0xfffc /* no colour prevails */, LIST_COLOR_UNKNOWN = 0xfffd /* nobody looked */ };

/* What is known of a row of entries: the extremes and where, from the start of their block. */
typedef struct list_node {
    float least, most, sum;
    float sample;   /* the measure of the first entry */
    uint32_t first; /* its record */
    uint16_t least_at, most_at;
    uint16_t color, most_color; /* the name of the colour that prevails, and that of the entry with the most */
} list_node;

typedef struct list_block {
    uint32_t *records; /* rising */
    float *values;     /* NULL when the measure is not kept */
    list_node *nodes;
    bool borrowed; /* of a mapped index: not to be freed, and full */
} list_block;

typedef struct list {
    list_block *blocks;
    list_node *tops; /* of each block */
    uint32_t *first; /* record of each block, beside each other */
    size_t count;    /* of entries, those that were dropped too */
    size_t start;    /* the first that was not dropped */
    size_t capacity; /* of blocks */
    size_t colored;  /* entries up to there have nodes whose colours are known */
    bool has_values; /* the measure is kept */
    float most;      /* see list_most */
} list;

/* The measure of an entry, for who has it only from the store. */
typedef float list_measure(const void *user, uint32_t record);

void list_free(list *l); /* what it holds */

/* The bytes of memory of a list, without what is mapped. */
size_t list_memory(const list *l);

/* record is not before the last one. */
void list_append(list *l, uint32_t record, float measure);

/* Leaves the first count entries. measure is asked of those whose node is cut, unless values are kept. */
void list_truncate(list *l, size_t count, list_measure *measure, const void *user);

/* Forgets entries whose record is before that one. Those that stay keep their places. */
void list_drop(list *l, uint32_t record);

static inline uint32_t list_at(const list *l, size_t i)
{
    return l->blocks[i / LIST_BLOCK].records[i % LIST_BLOCK];
}

static inline float list_value(const list *l, size_t i)
{
    return l->blocks[i / LIST_BLOCK].values[i % LIST_BLOCK];
}

/* The place of the first entry from from on, which is not before start, that is not before record; count when there is
 * none. */
size_t list_find(const list *l, uint32_t record, size_t from);

/*
 * How exactly places are to be known where so many entries fall on so many columns: 1, LIST_NODE or LIST_BLOCK, at most
 * a quarter of a column.
 */
size_t list_grain(size_t entries, size_t columns);

/* As list_find, but up to a node or block earlier, by grain, and looking at these alone, where so many lie between. */
size_t list_find_near(const list *l, uint32_t record, size_t from, size_t grain);

/* The node or block, by grain, that has an entry. */
static inline const list_node *list_node_of(const list *l, size_t i, size_t grain)
{
    return grain == LIST_BLOCK ? &l->tops[i / LIST_BLOCK]
                               : &l->blocks[i / LIST_BLOCK].nodes[i % LIST_BLOCK / LIST_NODE];
}

/* The name of an entry's colour. */
typedef uint16_t list_color(const void *user, uint32_t record);

/* Lets nodes know their colours, of all entries or of those that came since. */
void list_color_nodes(list *l, bool anew, list_color *color, const void *user);

/* The least and the most measure of about [from, to), which is not empty, with their places, and the sum of all. */
typedef struct list_extremes {
    size_t least_at, most_at;
    float least, most;
    double sum; /* of all, and how many they are */
    size_t count;
    uint16_t most_color; /* of the one with the most, or LIST_COLOR_UNKNOWN */
} list_extremes;

/* For wide ranges its ends are moved to those of nodes nearby. measure as above. */
list_extremes list_find_extremes(const list *l, size_t from, size_t to, list_measure *measure, const void *user);

/* About the most measure of all entries, those that were taken out again too; -INFINITY of none. */
static inline float list_most(const list *l)
{
    return l->count > 0 ? l->most : -INFINITY;
}

#endif
