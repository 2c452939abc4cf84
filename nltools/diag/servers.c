#include "config.h"

#include "diag/servers.h"

#include "requests/program_names.h"

#include <string.h>

/* Minimum part of a place's visits whose servers have names with the same pattern. */
#define SAME_PATTERN_MIN 0.95

enum {
    SERVERS_MIN = 2,
    SERVERS_MAX = 64,
    VISITS_PER_SERVER_MIN = 20 /* minimum mean number of visits for each server */
};

/* The servers that a column names in the records of a place. */
typedef struct server_names {
    const column *column;
    const char **hosts; /* for each text of the column, the host of the server; NULL: no server */
    uint32_t *counts;   /* for each text of the column, the number of visits */
    uint32_t named, servers;
    uint32_t of_log; /* number of visits that name servers which are hosts of the log */
} server_names;

static bool is_host_of_log(const visits *v, GHashTable *hosts, const char *name)
{
    return g_hash_table_contains(hosts, g_intern_string(name)) || series_of_host(v->series, name) != NULL;
}

/* Returns the host of a server: the server's name, without the port if the log has records of that host. */
static const char *host_of_server(const visits *v, GHashTable *hosts, const char *name)
{
    const char *port = strrchr(name, ':');
    if (port == NULL)
        return g_intern_string(name);
    char *stem = g_strndup(name, (gsize)(port - name));
    const char *host = g_intern_string(is_host_of_log(v, hosts, stem) ? stem : name);
    g_free(stem);
    return host;
}

/* Returns the pattern of a server's name, which is the same for all numeric addresses. Returns NULL if the name has no
 * number, or is a URL, which also names the requested work. */
static const char *pattern_of_server(const char *name)
{
    if (strchr(name, '/') != NULL)
        return NULL;
    return strspn(name, "0123456789.:") == strlen(name) ? "" : program_find_pattern(name, true);
}

/* Returns the set of all hosts of the log's sites, which are interned. */
static GHashTable *hosts_of_sites(const visits *v)
{
    GHashTable *hosts = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < v->sites->len; i++)
        g_hash_table_add(hosts, (gpointer)site_at(v, i)->host);
    return hosts;
}

/* Finds the hosts of a column's texts. Sets the number of servers, and the number of visits that name servers. Returns
 * whether the texts are names of servers. */
static bool find_servers(const visits *v, GHashTable *hosts, server_names *s)
{
    const column *c = s->column;
    GHashTable *patterns = g_hash_table_new(NULL, NULL); /* maps a pattern to its number of visits */
    uint32_t same = 0;
    s->named = s->servers = s->of_log = 0;
    for (guint t = 0; t < c->texts->len; t++) {
        const char *text = g_ptr_array_index(c->texts, t), *pattern = pattern_of_server(text);
        s->hosts[t] = NULL;
        if (s->counts[t] == 0)
            continue;
        s->hosts[t] = strcmp(text, "-") != 0 && *text != '\0' ? host_of_server(v, hosts, text) : NULL;
        if (s->hosts[t] == NULL)
            continue;
        s->named += s->counts[t];
        s->servers++;
        s->of_log += is_host_of_log(v, hosts, s->hosts[t]) ? s->counts[t] : 0;
        if (pattern == NULL)
            continue;
        guint sum = GPOINTER_TO_UINT(g_hash_table_lookup(patterns, pattern)) + s->counts[t];
        g_hash_table_insert(patterns, (gpointer)pattern, GUINT_TO_POINTER(sum));
        same = MAX(same, sum);
    }
    g_hash_table_destroy(patterns);
    return s->servers >= SERVERS_MIN && s->servers <= SERVERS_MAX && s->named >= VISITS_PER_SERVER_MIN * s->servers &&
           (s->of_log == s->named || (column_names_server(c) && same >= SAME_PATTERN_MIN * s->named));
}

/*
 * Counts the visits of a place for each text of a column. `indices` are the place's visits. Returns whether the texts
 * are other names of the hosts that log the visits: several hosts log the visits, and each text occurs on only one
 * host.
 */
static bool count_texts(const visits *v, const column *c, const GArray *indices, uint32_t *counts)
{
    const char **hosts = g_new0(const char *, c->texts->len + 1), *first = NULL;
    bool has_several = false, has_mixed = false;
    for (guint i = 0; i < indices->len; i++) {
        uint32_t index = g_array_index(indices, uint32_t, i);
        float value = column_get(c->of_visits, index);
        if (!isfinite(value))
            continue;
        const char *host = site_at(v, visit_at(v, index)->site)->host, **known = &hosts[(int)value];
        first = first != NULL ? first : host;
        has_several = has_several || host != first;
        has_mixed = has_mixed || (*known != NULL && *known != host);
        *known = host;
        counts[(int)value]++;
    }
    g_free(hosts);
    return has_several && !has_mixed;
}

/* Finds the column that names the servers of most visits of a place. Returns whether there is such a column. */
static bool choose_column(const visits *v, GHashTable *hosts, const GArray *indices, server_names *best)
{
    best->named = 0;
    for (uint32_t i = 0; i < v->columns->count; i++) {
        server_names s = {.column = &v->columns->all[i]};
        if (s.column->closed || !s.column->has_text || !(column_names_server(s.column) || column_names_host(s.column)))
            continue;
        s.hosts = g_new0(const char *, s.column->texts->len + 1);
        s.counts = g_new0(uint32_t, s.column->texts->len + 1);
        bool is_own_name = count_texts(v, s.column, indices, s.counts),
             is_better = !is_own_name && find_servers(v, hosts, &s) && s.named > best->named;
        server_names worse = is_better ? *best : s;
        if (is_better)
            *best = s;
        g_free(worse.hosts);
        g_free(worse.counts);
    }
    return best->named > 0;
}

/* Returns the site of server `host` for visits that were at the site `old`. `sites` maps each pair of server and old
 * site to the new site. */
static uint32_t site_of_server(visits *v, GHashTable *sites, uint32_t old, const char *host, uint32_t place_number)
{
    char *key = g_strdup_printf("%u\n%s", old, host);
    guint known = GPOINTER_TO_UINT(g_hash_table_lookup(sites, key));
    if (known > 0) {
        g_free(key);
        return known - 1;
    }
    site s = *site_at(v, old);
    s.from_host = s.host;
    s.host = host;
    s.place = place_number;
    g_array_append_val(v->sites, s);
    g_hash_table_insert(sites, key, GUINT_TO_POINTER(v->sites->len));
    uint32_t number = v->sites->len - 1;
    g_array_append_val(place_at(v, place_number)->sites, number);
    return number;
}

/* Moves the visits that name a server to a new place, or to new sites of the same place if all visits name a server. */
static void move_visits(visits *v, uint32_t number, const GArray *indices, const server_names *names)
{
    GHashTable *sites = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL); /* text -> number + 1 */
    uint32_t target = number;
    if (names->named < indices->len) {
        place p = *place_at(v, number);
        p.has_only_served = true;
        g_array_append_val(v->places, p);
        target = v->places->len - 1;
    } else {
        g_array_free(place_at(v, number)->sites, TRUE);
    }
    place_at(v, target)->sites = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    place_at(v, target)->server_field = g_intern_string(names->column->name);
    place_at(v, target)->has_value_hosts = names->of_log == 0;
    for (guint i = 0; i < indices->len; i++) {
        uint32_t index = g_array_index(indices, uint32_t, i);
        float value = column_get(names->column->of_visits, index);
        visit *x = visit_at(v, index);
        if (isfinite(value) && names->hosts[(int)value] != NULL)
            x->site = site_of_server(v, sites, x->site, names->hosts[(int)value], target);
    }
    g_hash_table_destroy(sites);
}

void visits_move_to_servers(visits *v)
{
    guint count = v->places->len;
    GArray **of_places = g_new0(GArray *, count + 1);
    GHashTable *hosts = hosts_of_sites(v);
    for (guint i = 0; i < count; i++)
        if (place_at(v, i)->kind == PLACE_SPAN && !place_at(v, i)->has_children)
            of_places[i] = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (guint i = 0; i < v->all->len; i++) {
        GArray *indices = of_places[place_of_visit(v, visit_at(v, i))];
        if (indices != NULL)
            g_array_append_val(indices, i);
    }
    for (guint i = 0; i < count; i++) {
        server_names names = {0};
        if (of_places[i] == NULL)
            continue;
        if (choose_column(v, hosts, of_places[i], &names))
            move_visits(v, i, of_places[i], &names);
        g_free(names.hosts);
        g_free(names.counts);
        g_array_free(of_places[i], TRUE);
    }
    g_hash_table_destroy(hosts);
    g_free(of_places);
}
