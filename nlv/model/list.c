#include "config.h"

#include "model/list.h"

#include <glib.h>
#include <math.h>
#include <string.h>

enum {
    SNAP = 8, /* list_find_extremes rounds the ends of a range to nodes (or blocks) only if the range has at least SNAP
                 nodes (or blocks) */
    OF_A_COLUMN = 4, /* list_grain rounds the ends of a column to nodes (or blocks) only if the column has at least
                        OF_A_COLUMN nodes (or blocks) */
    GROWTH = 8,      /* factor by which a list's first block grows, from LIST_NODE to LIST_BLOCK entries */
};

static void free_block(list_block *b)
{
    if (b->borrowed)
        return;
    g_free(b->records);
    g_free(b->values);
    g_free(b->nodes);
    *b = (list_block){0};
}

static size_t block_count(const list *l)
{
    return (l->count + LIST_BLOCK - 1) / LIST_BLOCK;
}

void list_free(list *l)
{
    for (size_t i = 0; i < block_count(l); i++)
        free_block(&l->blocks[i]);
    g_free(l->blocks);
    g_free(l->tops);
    g_free(l->first);
    *l = (list){.has_values = l->has_values};
}

static const list_node empty_node = {INFINITY, -INFINITY, 0, NAN, 0, 0, 0, LIST_COLOR_UNKNOWN, LIST_COLOR_UNKNOWN};

static void add_block(list *l, uint32_t first)
{
    size_t count = block_count(l);
    if (count == l->capacity) {
        l->capacity = MAX(2 * l->capacity, 4);
        l->blocks = g_renew(list_block, l->blocks, l->capacity);
        l->tops = g_renew(list_node, l->tops, l->capacity);
        l->first = g_renew(uint32_t, l->first, l->capacity);
    }
    l->blocks[count] = (list_block){0};
    l->tops[count] = empty_node;
    l->first[count] = first;
}

static void add_to_node(list_node *n, uint32_t record, float measure, uint16_t at)
{
    if (isnan(n->sample)) {
        n->sample = measure;
        n->first = record;
    }
    n->sum += measure;
    if (measure < n->min) {
        n->min = measure;
        n->min_at = at;
    }
    if (measure > n->max) {
        n->max = measure;
        n->max_at = at;
        n->max_color = LIST_COLOR_UNKNOWN;
    }
}

static void own_block(list_block *b);

/* Returns the capacity, in entries, of the block with the index `block` and `count` entries. */
static size_t capacity_for(size_t block, size_t count)
{
    size_t capacity = LIST_BLOCK;
    if (block == 0)
        for (capacity = LIST_NODE; capacity < count; capacity *= GROWTH)
            ;
    return capacity;
}

static void grow_block(const list *l, list_block *b, size_t block, size_t count)
{
    size_t capacity = capacity_for(block, count);
    b->records = g_renew(uint32_t, b->records, capacity);
    b->nodes = g_renew(list_node, b->nodes, capacity / LIST_NODE);
    if (l->has_values)
        b->values = g_renew(float, b->values, capacity);
}

size_t list_memory(const list *l)
{
    size_t sum = l->capacity * (sizeof *l->blocks + sizeof *l->tops + sizeof *l->first);
    for (size_t i = l->start / LIST_BLOCK; i < block_count(l); i++)
        if (!l->blocks[i].borrowed) {
            size_t capacity = capacity_for(i, MIN(l->count - i * LIST_BLOCK, LIST_BLOCK));
            sum += capacity * (l->has_values ? 8 : 4) + capacity / LIST_NODE * sizeof(list_node);
        }
    return sum;
}

void list_append(list *l, uint32_t record, float measure)
{
    size_t in_block = l->count % LIST_BLOCK, block = l->count / LIST_BLOCK;
    if (in_block == 0)
        add_block(l, record);
    list_block *b = &l->blocks[block];
    own_block(b);
    if (in_block % LIST_NODE == 0 && capacity_for(block, in_block) < capacity_for(block, in_block + 1))
        grow_block(l, b, block, in_block + 1);
    else if (in_block == 0)
        grow_block(l, b, block, 1);
    b->records[in_block] = record;
    if (b->values != NULL)
        b->values[in_block] = measure;
    if (in_block % LIST_NODE == 0)
        b->nodes[in_block / LIST_NODE] = empty_node;
    add_to_node(&b->nodes[in_block / LIST_NODE], record, measure, (uint16_t)in_block);
    add_to_node(&l->tops[l->count / LIST_BLOCK], record, measure, (uint16_t)in_block);
    l->max = l->count == 0 ? measure : MAX(l->max, measure);
    l->count++;
}

static float measure_at(const list *l, size_t i, list_measure *measure, const void *user)
{
    return l->has_values ? list_value(l, i) : measure(user, list_at(l, i));
}

static void join_node(list_node *to, const list_node *from)
{
    if (isnan(to->sample)) {
        to->sample = from->sample;
        to->first = from->first;
    }
    to->sum += from->sum;
    if (from->min < to->min) {
        to->min = from->min;
        to->min_at = from->min_at;
    }
    if (from->max > to->max) {
        to->max = from->max;
        to->max_at = from->max_at;
        to->max_color = from->max_color;
    }
}

/* If a block is in a mapped index, replaces the block with a copy, which the module can change. */
static void own_block(list_block *b)
{
    if (!b->borrowed)
        return;
    uint32_t *records = g_new(uint32_t, LIST_BLOCK);
    memcpy(records, b->records, LIST_BLOCK * sizeof *records);
    list_node *nodes = g_new(list_node, LIST_NODES);
    memcpy(nodes, b->nodes, LIST_NODES * sizeof *nodes);
    float *values = NULL;
    if (b->values != NULL) {
        values = g_new(float, LIST_BLOCK);
        memcpy(values, b->values, LIST_BLOCK * sizeof *values);
    }
    *b = (list_block){.records = records, .nodes = nodes, .values = values};
}

void list_truncate(list *l, size_t count, list_measure *measure, const void *user)
{
    if (count >= l->count)
        return;
    size_t blocks = block_count(l), kept = (count + LIST_BLOCK - 1) / LIST_BLOCK;
    for (size_t i = kept; i < blocks; i++)
        free_block(&l->blocks[i]);
    l->count = count;
    l->colored = MIN(l->colored, count - count % LIST_NODE);
    size_t in_block = count % LIST_BLOCK;
    if (in_block == 0)
        return;
    list_block *b = &l->blocks[kept - 1];
    own_block(b);
    size_t node = in_block / LIST_NODE;
    b->nodes[node] = empty_node;
    size_t begin = (kept - 1) * LIST_BLOCK, first = node * LIST_NODE;
    if (begin + first < l->start) /* skip dropped entries, which the store cannot measure */
        first = MIN(l->start - begin, in_block);
    for (size_t i = first; i < in_block; i++)
        add_to_node(&b->nodes[node], b->records[i], measure_at(l, begin + i, measure, user), (uint16_t)i);
    l->tops[kept - 1] = empty_node;
    for (size_t i = 0; i * LIST_NODE < in_block; i++)
        join_node(&l->tops[kept - 1], &b->nodes[i]);
}

void list_drop(list *l, uint32_t record)
{
    size_t block = l->start / LIST_BLOCK;
    /* free each block whose successor begins at or before record */
    for (; (block + 1) * LIST_BLOCK < l->count && l->first[block + 1] <= record; block++)
        free_block(&l->blocks[block]);
    l->start = list_find(l, record, MAX(l->start, block * LIST_BLOCK));
}

/*
 * Returns the first index in [low, high) whose element is at least `value`, or `high` if all elements are smaller. The
 * array is ascending.
 */
static size_t lower_bound(const uint32_t *array, size_t low, size_t high, uint32_t value)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (array[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t nodes_of(size_t entries)
{
    return (entries + LIST_NODE - 1) / LIST_NODE;
}

/* Like lower_bound, but searches a block's nodes by their first records. */
static size_t lower_node(const list_block *b, size_t low, size_t high, uint32_t record)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (b->nodes[middle].first < record)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t list_find(const list *l, uint32_t record, size_t from)
{
    size_t blocks = block_count(l), block = from / LIST_BLOCK;
    if (from >= l->count)
        return l->count;
    /* the entry is usually near `from`, so search with doubling steps, and then bisect */
    size_t step = 1, high = block + 1;
    while (high < blocks && l->first[high] < record) {
        block = high;
        high += step;
        step *= 2;
    }
    high = MIN(high, blocks);
    block = lower_bound(l->first, block + 1, high, record) - 1;
    size_t size = MIN(l->count - block * LIST_BLOCK, LIST_BLOCK);
    size_t low = block == from / LIST_BLOCK ? from % LIST_BLOCK : 0;
    const uint32_t *records = l->blocks[block].records;
    /* the last node that begins before `record` */
    size_t node = lower_node(&l->blocks[block], low / LIST_NODE + 1, nodes_of(size), record) - 1;
    low = MAX(low, node * LIST_NODE);
    return block * LIST_BLOCK + lower_bound(records, low, MIN(size, (node + 1) * LIST_NODE), record);
}

size_t list_grain(size_t entries, size_t columns)
{
    size_t each = entries / MAX(columns, 1);
    return each >= OF_A_COLUMN * LIST_BLOCK ? LIST_BLOCK : each >= OF_A_COLUMN * LIST_NODE ? LIST_NODE : 1;
}

size_t list_find_near(const list *l, uint32_t record, size_t from, size_t grain)
{
    size_t blocks = block_count(l), block = from / LIST_BLOCK;
    if (grain == 1)
        return list_find(l, record, from);
    if (from >= l->count)
        return l->count;
    size_t next =
        lower_bound(l->first, block, blocks, record); /* all blocks before block `next` begin before this record */
    size_t found = next > block ? (next - 1) * LIST_BLOCK : 0;
    if (grain == LIST_NODE && next > block) {
        size_t last = next - 1, size = MIN(l->count - last * LIST_BLOCK, LIST_BLOCK);
        size_t low = last == block ? from % LIST_BLOCK / LIST_NODE : 0;
        low = lower_node(&l->blocks[last], low, nodes_of(size), record);
        found = last * LIST_BLOCK + (low > 0 ? low - 1 : 0) * LIST_NODE;
    }
    /* in a short range, do not round, because rounding would change the place too much */
    return found >= from + grain ? found : list_find(l, record, from);
}

/* Returns the color of more than half of the entries, or LIST_COLOR_MIXED. */
static uint16_t prevailing(const uint16_t *colors, size_t count)
{
    uint16_t own = LIST_COLOR_MIXED;
    size_t lead = 0, same = 0;
    for (size_t i = 0; i < count; i++)
        if (lead == 0) {
            own = colors[i];
            lead = 1;
        } else {
            lead += own == colors[i] ? 1 : (size_t)-1;
        }
    for (size_t i = 0; i < count; i++)
        same += colors[i] == own;
    return 2 * same > count ? own : LIST_COLOR_MIXED;
}

static void color_node(list_block *b, size_t node, size_t end, list_color *color, const void *user)
{
    enum { ASKED = 8 };
    uint16_t colors[ASKED] = {0};
    size_t from = node * LIST_NODE, count = end - from, asked = MIN(count, ASKED);
    list_node *n = &b->nodes[node];
    for (size_t i = 0; i < asked; i++)
        colors[i] = color(user, b->records[from + i * count / asked]);
    n->color = prevailing(colors, asked);
    n->max_color = color(user, b->records[n->max_at]);
}

void list_color_nodes(list *l, bool all, list_color *color, const void *user)
{
    size_t from = MAX(all ? 0 : l->colored, l->start);
    for (size_t block = from / LIST_BLOCK; block < block_count(l); block++) {
        list_block *b = &l->blocks[block];
        list_node *top = &l->tops[block];
        size_t end = MIN(l->count - block * LIST_BLOCK, LIST_BLOCK);
        size_t node = block == from / LIST_BLOCK ? from % LIST_BLOCK / LIST_NODE : 0;
        uint16_t colors[LIST_NODES] = {0};
        for (size_t i = 0; i * LIST_NODE < end; i++) {
            if (i >= node)
                color_node(b, i, MIN(end, (i + 1) * LIST_NODE), color, user);
            colors[i] = b->nodes[i].color;
        }
        top->color = prevailing(colors, nodes_of(end));
        top->max_color = b->nodes[top->max_at / LIST_NODE].max_color;
    }
    l->colored = l->count - l->count % LIST_NODE;
}

static void join_extremes(list_extremes *e, const list_node *n, size_t block)
{
    e->sum += n->sum;
    if (n->min < e->min) {
        e->min = n->min;
        e->min_at = block * LIST_BLOCK + n->min_at;
    }
    if (n->max > e->max) {
        e->max = n->max;
        e->max_at = block * LIST_BLOCK + n->max_at;
        e->max_color = n->max_color;
    }
}

static void join_entries(const list *l, list_extremes *e, size_t from, size_t to, list_measure *measure,
                         const void *user)
{
    for (size_t i = from; i < to; i++) {
        float m = measure_at(l, i, measure, user);
        e->sum += m;
        if (m < e->min) {
            e->min = m;
            e->min_at = i;
        }
        if (m > e->max) {
            e->max = m;
            e->max_at = i;
            e->max_color = LIST_COLOR_UNKNOWN;
        }
    }
}

list_extremes list_find_extremes(const list *l, size_t from, size_t to, list_measure *measure, const void *user)
{
    list_extremes e = {from, from, INFINITY, -INFINITY, 0, 0, LIST_COLOR_UNKNOWN};
    size_t first = from;
    if (to - from >= SNAP * LIST_BLOCK) {
        from = from / LIST_BLOCK * LIST_BLOCK;
        to = to / LIST_BLOCK * LIST_BLOCK;
    } else if (to - from >= SNAP * LIST_NODE) {
        from = from / LIST_NODE * LIST_NODE;
        to = to / LIST_NODE * LIST_NODE;
    }
    e.count = to - from;
    while (from < to) {
        if (from % LIST_BLOCK == 0 && to - from >= LIST_BLOCK) {
            join_extremes(&e, &l->tops[from / LIST_BLOCK], from / LIST_BLOCK);
            from += LIST_BLOCK;
        } else if (from % LIST_NODE == 0 && to - from >= LIST_NODE) {
            join_extremes(&e, &l->blocks[from / LIST_BLOCK].nodes[from % LIST_BLOCK / LIST_NODE], from / LIST_BLOCK);
            from += LIST_NODE;
        } else {
            size_t end = MIN(to, (from / LIST_NODE + 1) * LIST_NODE);
            join_entries(l, &e, from, end, measure, user);
            from = end;
        }
    }
    /* the nodes still include dropped entries */
    e.min_at = e.min_at < l->start ? first : e.min_at;
    if (e.max_at < l->start) {
        e.max_at = first;
        e.max_color = LIST_COLOR_UNKNOWN;
    }
    return e;
}
