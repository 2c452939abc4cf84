#include "config.h"

#include "diag/connection_joins.h"

#include "base/hash_bytes.h"

#include <math.h>
#include <string.h>

enum { COMMAND_SIZE = 15 /* the kernel cuts names of programs (TASK_COMM_LEN) */ };

/* The connections of a pair of ends in one slice of time. */
typedef struct pair_slice {
    int64_t index;
    double cause_ns[CAUSE_COUNT];
    double limited_ns;  /* sum of cause_ns without the time in which the sending program wrote nothing */
    double open_ns;     /* sum of cause_ns */
    double expected_ns; /* own times of the visits that are joined with the pair */
} pair_slice;

/* The hosts at the ends of connections, or a host and its program. The names are interned; NULL: unknown. */
typedef struct pair_key {
    const char *from, *to, *program;
} pair_key;

/* The connections with the same key. */
typedef struct pair {
    pair_key key;
    GPtrArray *results;                            /* const connection_result * */
    GArray *slices;                                /* pair_slice, in order of time */
    bool has_longest;                              /* `longest` is set */
    const connection_result *longest[CAUSE_COUNT]; /* for each cause, the connection that it limited longest, or NULL */
} pair;

struct connection_joins {
    const visits *v;
    const sender *senders;
    int64_t slice_ns;
    GHashTable *pairs;     /* pair_key -> pair */
    pair **of_visits;      /* NULL: not joined */
    const char **commands; /* for each place, the name of its program as the kernel cuts it */
};

static guint pair_key_hash(gconstpointer key)
{
    return (guint)hash_bytes(0, key, sizeof(pair_key));
}

static gboolean pair_key_equal(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, sizeof(pair_key)) == 0;
}

static void pair_free(gpointer data)
{
    pair *p = data;
    g_ptr_array_unref(p->results);
    g_array_unref(p->slices);
    g_free(p);
}

/* ---- names of ends ---- */

static bool is_idle(int cause)
{
    return cause == CAUSE_SENDER_IDLE || cause == CAUSE_SENDER_HOST || cause == CAUSE_UNKNOWN;
}

/* Returns the interned name of a host, or NULL if it is unknown. */
static const char *host_of(const char *host)
{
    return host[0] != '\0' ? g_intern_string(host) : NULL;
}

static const char *command_of(const char *program)
{
    char command[COMMAND_SIZE + 1];
    g_strlcpy(command, program, sizeof command);
    return g_intern_string(command);
}

/* ---- pairs ---- */

static int compare_slices(gconstpointer a, gconstpointer b)
{
    int64_t x = ((const pair_slice *)a)->index, y = ((const pair_slice *)b)->index;
    return (x > y) - (x < y);
}

static void add_to_pair(connection_joins *j, pair_key key, const connection_result *r)
{
    pair *p = g_hash_table_lookup(j->pairs, &key);
    if (p == NULL) {
        p = g_new0(pair, 1);
        p->key = key;
        p->results = g_ptr_array_new();
        p->slices = g_array_new(FALSE, TRUE, sizeof(pair_slice));
        g_hash_table_insert(j->pairs, &p->key, p);
    }
    g_ptr_array_add(p->results, (gpointer)r);
    for (guint i = 0; i < r->slices->len; i++) {
        const connection_slice *from = &g_array_index(r->slices, connection_slice, i);
        pair_slice to = {.index = from->index};
        for (int c = 0; c < CAUSE_COUNT; c++) {
            to.cause_ns[c] = from->cause_ns[c];
            to.open_ns += from->cause_ns[c];
            to.limited_ns += is_idle(c) ? 0 : from->cause_ns[c];
        }
        g_array_append_val(p->slices, to);
    }
}

/* Sorts the slices of a pair, and adds up those of the same time. */
static void settle_pair(pair *p)
{
    guint kept = 0;
    g_array_sort(p->slices, compare_slices);
    for (guint i = 0; i < p->slices->len; i++) {
        const pair_slice slice = g_array_index(p->slices, pair_slice, i);
        pair_slice *last = kept > 0 ? &g_array_index(p->slices, pair_slice, kept - 1) : NULL;
        if (last == NULL || last->index != slice.index) {
            g_array_index(p->slices, pair_slice, kept++) = slice;
            continue;
        }
        for (int c = 0; c < CAUSE_COUNT; c++)
            last->cause_ns[c] += slice.cause_ns[c];
        last->open_ns += slice.open_ns;
        last->limited_ns += slice.limited_ns;
    }
    g_array_set_size(p->slices, kept);
}

/* Adds a program's end of a connection, unless the other end is on a host with visits. */
static void add_program(connection_joins *j, GHashTable *sites, const char *host, const char *program,
                        const char *other, const connection_result *r)
{
    if (host != NULL && program[0] != '\0' && g_hash_table_contains(sites, host) &&
        (other == NULL || !g_hash_table_contains(sites, other)))
        add_to_pair(j, (pair_key){host, NULL, command_of(program)}, r);
}

static void add_pairs(connection_joins *j)
{
    const GPtrArray *results = j->v->connection_results;
    GHashTable *sites = g_hash_table_new(NULL, NULL); /* interned names */
    for (guint i = 0; i < j->v->sites->len; i++)
        g_hash_table_add(sites, (gpointer)site_at(j->v, i)->host);
    for (guint i = 0; i < results->len; i++) {
        const connection_result *r = g_ptr_array_index(results, i);
        const char *from = host_of(r->host), *to = host_of(r->peer_host);
        add_to_pair(j, (pair_key){from, to, NULL}, r);
        add_program(j, sites, from, r->program, to, r);
        add_program(j, sites, to, r->peer_program, from, r);
    }
    GHashTableIter i;
    gpointer p;
    g_hash_table_iter_init(&i, j->pairs);
    while (g_hash_table_iter_next(&i, NULL, &p))
        settle_pair(p);
    g_hash_table_destroy(sites);
}

/* ---- visits ---- */

/* Returns the connections on which a visit may wait, or NULL. */
static pair *pair_of_visit(const connection_joins *j, uint32_t index)
{
    const sender *s = &j->senders[index];
    const site *at = site_at(j->v, visit_at(j->v, index)->site);
    if (s->host != NULL && s->to != NULL && s->host != s->to) {
        /* The records of one end do not name the other host. */
        const pair_key keys[] = {{s->host, s->to, NULL}, {s->host, NULL, NULL}, {NULL, s->to, NULL}};
        pair *p = NULL;
        for (size_t i = 0; i < G_N_ELEMENTS(keys) && p == NULL; i++)
            p = g_hash_table_lookup(j->pairs, &keys[i]);
        return p;
    }
    const pair_key key = {at->host, NULL, j->commands[at->place]};
    return place_at(j->v, at->place)->kind == PLACE_SPAN ? g_hash_table_lookup(j->pairs, &key) : NULL;
}

static guint first_slice(const pair *p, int64_t index)
{
    guint from = 0, to = p->slices->len;
    while (from < to) {
        guint middle = from + (to - from) / 2;
        if (g_array_index(p->slices, pair_slice, middle).index < index)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Returns the length of the part of a visit that is in a slice. */
static double overlap_ns(const connection_joins *j, const visit *x, int64_t index)
{
    int64_t begin_ns = index * j->slice_ns, end_ns = begin_ns + j->slice_ns;
    return (double)MAX(0, MIN(end_ns, x->to_ns) - MAX(begin_ns, x->from_ns));
}

/* Returns the part of a visit's duration that is its own time. */
static double own_part(const visit *x)
{
    return x->to_ns > x->from_ns ? CLAMP((double)x->own_ns / (double)(x->to_ns - x->from_ns), 0, 1) : 0;
}

static void add_expected(connection_joins *j, uint32_t index, double weight)
{
    const visit *x = visit_at(j->v, index);
    pair *p = j->of_visits[index];
    int64_t last = x->to_ns / j->slice_ns;
    for (guint i = first_slice(p, x->from_ns / j->slice_ns); i < p->slices->len; i++) {
        pair_slice *s = &g_array_index(p->slices, pair_slice, i);
        if (s->index > last)
            break;
        s->expected_ns += weight * own_part(x) * overlap_ns(j, x, s->index);
    }
}

connection_joins *connection_joins_new(const visits *v, const sender *senders)
{
    if (v->connection_results->len == 0)
        return NULL;
    connection_joins *j = g_new0(connection_joins, 1);
    j->v = v;
    j->senders = senders;
    j->slice_ns = connection_table_slice_ns(v->connections);
    j->pairs = g_hash_table_new_full(pair_key_hash, pair_key_equal, NULL, pair_free);
    j->of_visits = g_new0(pair *, v->all->len + 1);
    j->commands = g_new0(const char *, v->places->len + 1);
    for (guint i = 0; i < v->places->len; i++)
        j->commands[i] = command_of(place_at(v, i)->program);
    add_pairs(j);
    /* Dropped requests have waited as long as the others. */
    double weight = (double)(v->requests->len + v->dropped) / MAX(v->requests->len, 1);
    bool any = false;
    for (uint32_t i = 0; i < v->all->len; i++) {
        j->of_visits[i] = pair_of_visit(j, i);
        if (j->of_visits[i] == NULL)
            continue;
        any = true;
        add_expected(j, i, weight);
    }
    if (any)
        return j;
    connection_joins_free(j);
    return NULL;
}

void connection_joins_free(connection_joins *j)
{
    if (j == NULL)
        return;
    g_hash_table_destroy(j->pairs);
    g_free(j->of_visits);
    g_free(j->commands);
    g_free(j);
}

bool connection_joins_parts(const connection_joins *j, uint32_t index, double parts[CAUSE_COUNT])
{
    const visit *x = visit_at(j->v, index);
    const pair *p = j->of_visits[index];
    memset(parts, 0, CAUSE_COUNT * sizeof *parts);
    if (p == NULL || x->to_ns <= x->from_ns)
        return false;
    int64_t last = x->to_ns / j->slice_ns;
    for (guint i = first_slice(p, x->from_ns / j->slice_ns); i < p->slices->len; i++) {
        const pair_slice *s = &g_array_index(p->slices, pair_slice, i);
        if (s->index > last)
            break;
        /* Visits that wait for the same connection at a time wait for all of its time. */
        double divided_ns = fmax(fmin(s->expected_ns, s->open_ns), s->limited_ns);
        double part = overlap_ns(j, x, s->index) / (double)(x->to_ns - x->from_ns);
        for (int c = 0; c < CAUSE_COUNT && divided_ns > 0; c++)
            parts[c] += is_idle(c) ? 0 : part * s->cause_ns[c] / divided_ns;
    }
    return true;
}

static void pair_find_longest(pair *p)
{
    for (guint i = 0; i < p->results->len; i++) {
        const connection_result *r = g_ptr_array_index(p->results, i);
        for (int c = 0; c < CAUSE_COUNT; c++)
            if (r->cause_ns[c] > 0 && (p->longest[c] == NULL || r->cause_ns[c] > p->longest[c]->cause_ns[c]))
                p->longest[c] = r;
    }
    p->has_longest = true;
}

const connection_result *connection_joins_longest(const connection_joins *j, uint32_t index, connection_cause cause)
{
    pair *p = j->of_visits[index];
    if (p == NULL)
        return NULL;
    if (!p->has_longest) /* many visits have the same pair */
        pair_find_longest(p);
    return p->longest[cause];
}
