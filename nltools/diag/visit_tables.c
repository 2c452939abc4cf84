#include "config.h"

#include "diag/keyed_sort.h"
#include "diag/visit_tables.h"

#include <string.h>

size_t visits_memory(const visits *v)
{
    size_t size = v->requests->len * sizeof(request) + v->all->len * (sizeof(visit) + 2 * sizeof(uint32_t));
    for (uint32_t i = 0; i < v->columns->count; i++)
        size +=
            (v->columns->all[i].of_requests->len + v->columns->all[i].of_visits->len + v->columns->all[i].since->len) *
            sizeof(float);
    return size + span_parts_memory(v->parts);
}

static void keep_values(GArray *values, uint32_t from, uint32_t to, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (to + i < values->len)
            g_array_index(values, float, to + i) = column_get(values, from + i);
}

void visits_halve(visits *v)
{
    uint32_t kept = 0, visits_kept = 0;
    uint32_t *moved = g_new(uint32_t, v->all->len + 1); /* the new index of each visit, or VISIT_NONE */
    memset(moved, 0xff, v->all->len * sizeof *moved);
    for (uint32_t i = 0; i < v->requests->len; i += 2) {
        request q = *request_at(v, i);
        for (uint32_t c = 0; c < v->columns->count; c++) {
            keep_values(v->columns->all[c].of_requests, i, kept, 1);
            keep_values(v->columns->all[c].since, i, kept, 1);
            keep_values(v->columns->all[c].of_visits, q.first, visits_kept, q.count);
        }
        for (uint32_t n = 0; n < q.count; n++) {
            visit x = *visit_at(v, q.first + n);
            moved[q.first + n] = visits_kept + n;
            x.request = kept;
            x.parent = x.parent == VISIT_NONE ? VISIT_NONE : x.parent - q.first + visits_kept;
            x.span = x.span == VISIT_NONE ? VISIT_NONE : x.span - q.first + visits_kept;
            *visit_at(v, visits_kept + n) = x;
        }
        q.first = visits_kept;
        visits_kept += q.count;
        *request_at(v, kept++) = q;
    }
    v->dropped += v->requests->len - kept;
    g_array_set_size(v->requests, kept);
    g_array_set_size(v->all, visits_kept);
    for (uint32_t c = 0; c < v->columns->count; c++) {
        column *of = &v->columns->all[c];
        of->at_begin /= 2;
        g_array_set_size(of->of_requests, MIN(of->of_requests->len, kept));
        g_array_set_size(of->since, MIN(of->since->len, kept));
        g_array_set_size(of->of_visits, MIN(of->of_visits->len, visits_kept));
    }
    span_parts_move(v->parts, moved);
    g_free(moved);
}

/* ---- the index ---- */

static bool is_sorted(const visits *v, const uint32_t *indices, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (visit_at(v, indices[i - 1])->from_ns > visit_at(v, indices[i])->from_ns)
            return false;
    return true;
}

/* Sorts indices of visits in order of the times at which the visits begin. */
static void sort_by_begin(const visits *v, uint32_t *indices, uint32_t count)
{
    keyed *items = g_new(keyed, count);
    for (uint32_t i = 0; i < count; i++)
        items[i] = (keyed){visit_at(v, indices[i])->from_ns, indices[i]};
    keyed_sort(items, count);
    for (uint32_t i = 0; i < count; i++)
        indices[i] = items[i].index;
    g_free(items);
}

void visits_index_places(visits *v)
{
    g_free(v->by_place);
    g_free(v->by_work);
    v->by_place = g_new(uint32_t, v->all->len + 1);
    v->by_work = g_new(uint32_t, v->all->len + 1);
    for (guint i = 0; i < v->sites->len; i++) {
        site_at(v, i)->count = 0;
        site_at(v, i)->path_ns = 0;
    }
    for (guint i = 0; i < v->places->len; i++) {
        place_at(v, i)->count = 0;
        place_at(v, i)->path_ns = 0;
    }
    for (guint i = 0; i < v->all->len; i++) {
        const visit *x = visit_at(v, i);
        site *s = site_at(v, x->site);
        s->count++;
        s->path_ns += x->path_ns;
        place_at(v, s->place)->count++;
        place_at(v, s->place)->path_ns += x->path_ns;
    }
    uint32_t next = 0;
    for (guint i = 0; i < v->places->len; i++) {
        place_at(v, i)->first = next;
        next += place_at(v, i)->count;
        place_at(v, i)->count = 0;
    }
    for (guint i = 0; i < v->all->len; i++) {
        place *p = place_at(v, site_at(v, visit_at(v, i)->site)->place);
        v->by_place[p->first + p->count++] = i;
    }
    for (guint i = 0; i < v->places->len; i++) {
        place *p = place_at(v, i);
        if (!is_sorted(v, v->by_place + p->first, p->count))
            sort_by_begin(v, v->by_place + p->first, p->count);
        p->work_count = 0;
        for (uint32_t n = p->first; n < p->first + p->count; n++)
            if (!p->has_children || p->kind != PLACE_SPAN || visit_at(v, v->by_place[n])->own_ns > 0)
                v->by_work[p->first + p->work_count++] = v->by_place[n];
    }
}

/* Returns the host of the program that logged the visits of a site. */
static const char *host_of_program(const visits *v, const site *s)
{
    return place_at(v, s->place)->server_field != NULL && *s->from_host != '\0' ? s->from_host : s->host;
}

/* Adds a column for each program that runs on several hosts. A request's value is the host of the program that it has
 * visited. */
static void add_host_columns(visits *v)
{
    GHashTable *hosts = g_hash_table_new(NULL, NULL);   /* maps a program to its first host */
    GHashTable *columns = g_hash_table_new(NULL, NULL); /* maps a program to its column */
    for (guint i = 0; i < v->sites->len; i++) {
        const site *s = site_at(v, i);
        const char *program = place_at(v, s->place)->program, *known = g_hash_table_lookup(hosts, program),
                   *host = host_of_program(v, s);
        if (known == NULL)
            g_hash_table_insert(hosts, (gpointer)program, (gpointer)host);
        if (known == NULL || known == host || g_hash_table_contains(columns, program))
            continue;
        char *name = g_strdup_printf("@%s", program);
        column *c = columns_add(v->columns, name);
        g_free(name);
        if (c != NULL) {
            c->has_text = true;
            g_hash_table_insert(columns, (gpointer)program, c);
        }
    }
    for (guint i = 0; i < v->all->len; i++) {
        const visit *x = visit_at(v, i);
        const site *s = site_at(v, x->site);
        column *c = g_hash_table_lookup(columns, place_at(v, s->place)->program);
        if (c == NULL || c->closed)
            continue;
        const char *host = host_of_program(v, s);
        float number = column_number(c, (nl_string){host, strlen(host)}),
              known = column_get(c->of_requests, x->request);
        column_set(c->of_requests, x->request, number);
        if (!isnan(known) && known != number)
            g_array_index(c->of_requests, float, x->request) = INFINITY; /* the request has visited several hosts */
    }
    g_hash_table_destroy(columns);
    g_hash_table_destroy(hosts);
}

void visits_index(visits *v)
{
    visits_index_places(v);
    add_host_columns(v);
}

void visits_free(visits *v)
{
    for (guint i = 0; i < v->places->len; i++)
        g_array_free(place_at(v, i)->sites, TRUE);
    g_array_free(v->requests, TRUE);
    g_array_free(v->all, TRUE);
    g_array_free(v->sites, TRUE);
    g_array_free(v->places, TRUE);
    g_array_free(v->instances, TRUE);
    g_array_free(v->repeats, TRUE);
    for (guint i = 0; i < v->bounds->len; i++) {
        g_free(g_array_index(v->bounds, clock_bound, i).begins_ns);
        g_free(g_array_index(v->bounds, clock_bound, i).ends_ns);
    }
    g_array_free(v->bounds, TRUE);
    host_orders_free(v->orders);
    g_array_free(v->corrections, TRUE);
    g_array_free(v->clock_doubts, TRUE);
    g_ptr_array_free(v->ids, TRUE);
    g_free(v->by_place);
    g_free(v->by_work);
    columns_free(v->columns);
    visit_ends_free(v->ends);
    span_parts_free(v->parts);
    time_units_free(v->units);
    series_free(v->series);
    g_ptr_array_unref(v->connection_results);
    connection_table_free(v->connections);
    g_free(v);
}
