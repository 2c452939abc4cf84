/*
 * Records of one kind (the ends of one segment of lifelines, the values of one loadline on one host, one sort of
 * point) in order of time, with levels of detail: of every 64 and of every 4096 it is known where the least and the
 * most measure is (a latency, a value), so that what a pixel shows of a million is found by looking at a few.
 *
 * Four bytes a record, eight with values. No locks: who writes keeps readers away.
 */
#ifndef NLV_LIST_H
#define NLV_LIST_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LIST_NODE = 64, LIST_BLOCK = 4096, LIST_NODES = LIST_BLOCK / LIST_NODE };

/* What is known of a row of entries: the extremes and where, from the start of their block. */
typedef struct list_node {
    float least, most, sum;
    uint16_t least_at, most_at;
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
    size_t room;     /* of blocks */
    bool has_values; /* the measure is kept */
    float most;      /* see list_most */
} list;

/* The measure of an entry, for who has it only from the store. */
typedef float list_measure(const void *user, uint32_t record);

void list_free(list *l); /* what it holds */

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

/* The least and the most measure of about [from, to), which is not empty, with their places, and the sum of all. */
typedef struct list_extremes {
    size_t least_at, most_at;
    float least, most;
    double sum; /* of all, and how many they are */
    size_t count;
} list_extremes;

/* For wide ranges its ends are moved to those of nodes nearby. measure as above. */
list_extremes list_find_extremes(const list *l, size_t from, size_t to, list_measure *measure, const void *user);

/* About the most measure of all entries, those that were taken out again too; -INFINITY of none. */
static inline float list_most(const list *l)
{
    return l->count > 0 ? l->most : -INFINITY;
}

#endif
