#include "config.h"

#include "diag/senders.h"

#include "base/hash_bytes.h"

#include <string.h>

/* A key for edges between hosts, within a request: the host and time of an edge's start, or the host and event of its
 * end. */
typedef struct crossing_key {
    const char *host, *to; /* `to` is NULL in a key for the start of an edge */
    int64_t from_ns;
} crossing_key;

typedef struct crossing {
    crossing_key key;
    uint32_t index;
    const char *from, *to; /* hosts of the edge's ends */
} crossing;

static guint crossing_hash(gconstpointer key)
{
    return (guint)hash_bytes(0, key, sizeof(crossing_key));
}

static gboolean crossing_equal(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, sizeof(crossing_key)) == 0;
}

bool visit_crosses(const visits *v, const visit *x)
{
    const site *at = site_at(v, x->site);
    return place_at(v, at->place)->kind == PLACE_EDGE && at->from_host != at->host;
}

/* Adds a request's edges between hosts to `map`, which maps each key to the first edge with this key. Returns the array
 * of the map's elements, which the caller frees with g_free. */
static crossing *index_crossings(const visits *v, const request *q, GHashTable *map)
{
    uint32_t count = 0;
    for (uint32_t i = q->first; i < q->first + q->count; i++)
        count += visit_crosses(v, visit_at(v, i));
    crossing *all = g_new(crossing, 2 * (size_t)count + 1), *next = all;
    for (uint32_t i = q->first; i < q->first + q->count; i++) {
        const visit *x = visit_at(v, i);
        const site *at = site_at(v, x->site);
        if (!visit_crosses(v, x))
            continue;
        *next++ = (crossing){{at->from_host, NULL, x->from_ns}, i, at->from_host, at->host};
        *next++ = (crossing){{at->host, place_at(v, at->place)->to, 0}, i, at->from_host, at->host};
    }
    for (crossing *c = all; c < next; c++)
        if (!g_hash_table_contains(map, &c->key))
            g_hash_table_insert(map, &c->key, c);
    return all;
}

/*
 * Returns the sender of a visit. The sender of an edge between hosts is the host at its start. A visit on one host has
 * a sender in two cases. (1) If an edge to another host begins when the visit ends, the visit's host is the sender,
 * because the program may send during the visit. (2) If a visit is the time between two events with the same name, and
 * an edge from another host ends with an event of this name, this other host is the sender. If both cases apply, the
 * earlier edge determines the sender.
 */
static sender sender_of(const visits *v, const visit *x, GHashTable *crossings)
{
    const site *at = site_at(v, x->site);
    const place *p = place_at(v, at->place);
    if (p->kind == PLACE_UNKNOWN || visit_crosses(v, x))
        return p->kind == PLACE_EDGE ? (sender){at->from_host, at->host, false} : (sender){NULL, NULL, false};
    const crossing_key begin = {at->host, NULL, x->to_ns}, end = {at->host, p->from, 0};
    const crossing *sent = g_hash_table_lookup(crossings, &begin),
                   *received = p->kind == PLACE_EDGE && p->from == p->to ? g_hash_table_lookup(crossings, &end) : NULL;
    if (sent != NULL && (received == NULL || sent->index <= received->index))
        return (sender){at->host, sent->to, true};
    return (sender){received != NULL ? received->from : NULL, at->host, false};
}

sender *senders_find(const visits *v)
{
    sender *senders = g_new0(sender, v->all->len + 1);
    GHashTable *map = g_hash_table_new(crossing_hash, crossing_equal);
    for (guint i = 0; i < v->requests->len; i++) {
        const request *q = request_at(v, i);
        crossing *crossings = index_crossings(v, q, map);
        for (uint32_t n = q->first; n < q->first + q->count; n++)
            senders[n] = sender_of(v, visit_at(v, n), map);
        g_hash_table_remove_all(map);
        g_free(crossings);
    }
    g_hash_table_destroy(map);
    return senders;
}
