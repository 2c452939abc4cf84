#include "config.h"

#include "convert/lanes.h"

#include <string.h>

enum { LANES_EXAMINED_MAX = 256 };

struct places {
    GHashTable *by_name; /* the places; the keys are "HOST\nPROG" */
    GHashTable *hosts;   /* maps a host to its number */
    GString *key;
};

static void free_lane(gpointer user)
{
    lane *l = user;
    g_array_free(l->ends, TRUE);
    g_free(l);
}

static void free_place(gpointer user)
{
    place *p = user;
    g_ptr_array_free(p->lanes, TRUE);
    g_free(p->host);
    g_free(p->prog);
    g_free(p);
}

places *places_new(void)
{
    places *p = g_new0(places, 1);
    p->by_name = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_place);
    p->hosts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    p->key = g_string_new(NULL);
    return p;
}

void places_free(places *p)
{
    g_hash_table_destroy(p->by_name);
    g_hash_table_destroy(p->hosts);
    g_string_free(p->key, TRUE);
    g_free(p);
}

/* Appends text without NULs, which would end the key. */
static void append_text(GString *key, nl_string text)
{
    g_string_append_len(key, text.data != NULL ? text.data : "",
                        (gssize)(text.data != NULL ? strnlen(text.data, text.size) : 0));
}

place *places_find(places *p, const nl_record *record)
{
    g_string_truncate(p->key, 0);
    append_text(p->key, record->host);
    size_t host_size = p->key->len;
    g_string_append_c(p->key, '\n');
    append_text(p->key, record->prog);
    place *found = g_hash_table_lookup(p->by_name, p->key->str);
    if (found != NULL)
        return found;
    found = g_new0(place, 1);
    found->host = g_strndup(p->key->str, host_size);
    found->prog = g_strdup(p->key->str + host_size + 1);
    found->lanes = g_ptr_array_new_with_free_func(free_lane);
    found->process = GPOINTER_TO_SIZE(g_hash_table_lookup(p->hosts, found->host));
    if (found->process == 0) {
        found->new_host = true;
        found->process = g_hash_table_size(p->hosts) + 1;
        g_hash_table_insert(p->hosts, g_strdup(found->host), GSIZE_TO_POINTER(found->process));
    }
    g_hash_table_insert(p->by_name, g_strdup(p->key->str), found);
    return found;
}

static bool lane_has_space(lane *l, int64_t begin_ns, int64_t end_ns)
{
    if (begin_ns < l->latest_ns)
        return false;
    while (l->ends->len > 1 && g_array_index(l->ends, int64_t, l->ends->len - 1) <= begin_ns)
        g_array_set_size(l->ends, l->ends->len - 1);
    int64_t innermost_ns = g_array_index(l->ends, int64_t, l->ends->len - 1);
    return innermost_ns <= begin_ns || innermost_ns >= end_ns;
}

lane *place_find_lane(place *p, int64_t begin_ns, int64_t end_ns)
{
    lane *found = NULL;
    for (guint i = p->lanes->len, left = LANES_EXAMINED_MAX; i > 0 && left > 0 && found == NULL; i--, left--)
        if (lane_has_space(g_ptr_array_index(p->lanes, p->lanes->len - i), begin_ns, end_ns))
            found = g_ptr_array_index(p->lanes, p->lanes->len - i);
    if (found == NULL) {
        found = g_new0(lane, 1);
        found->ends = g_array_new(FALSE, FALSE, sizeof(int64_t));
        g_ptr_array_add(p->lanes, found);
    }
    if (found->ends->len == 1 && g_array_index(found->ends, int64_t, 0) <= begin_ns)
        g_array_set_size(found->ends, 0);
    g_array_append_val(found->ends, end_ns);
    found->latest_ns = begin_ns;
    return found;
}

static int compare_spans(const void *a, const void *b, void *user)
{
    const stream_request *r = user;
    size_t first = *(const size_t *)a, second = *(const size_t *)b;
    const stream_span *x = &r->spans[first], *y = &r->spans[second];
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    if (x->end_ns != y->end_ns)
        return x->end_ns > y->end_ns ? -1 : 1;
    return (first > second) - (first < second);
}

size_t *stream_request_order(const stream_request *request)
{
    size_t *order = g_new(size_t, request->span_count + 1);
    for (size_t i = 0; i < request->span_count; i++)
        order[i] = i;
    g_qsort_with_data(order, (gint)request->span_count, sizeof *order, compare_spans, (gpointer)(size_t)request);
    return order;
}
