#include "config.h"

#include "diag/connection_joins.h"

#include "base/hash_bytes.h"

#include <math.h>
#include <string.h>

enum {
    RELAY_VISITS_MAX = 256, /* maximum number of a request's visits in which pair_over_relay searches */
    COMMAND_SIZE = 15,      /* the kernel cuts names of programs (TASK_COMM_LEN) */
    WINDOW_SLICES = 16, /* number of slices in a window of part_of_others; a window is longer than a second, the usual
                           time between two records */
};

/* Maximum part of a connection's limited time in which no visit waits. A connection that exceeds this part carries data
 * of other programs. */
#define OTHERS_MAX 0.8

/* The connections between a pair of ends in one slice of time. */
typedef struct pair_slice {
    int64_t index;
    double cause_ns[CAUSE_COUNT];
    double limited_ns;  /* sum of cause_ns without the time in which the sending program wrote nothing */
    double open_ns;     /* sum of cause_ns */
    double expected_ns; /* sum of the times in which visits of the pair may wait */
} pair_slice;

/* Identifies a pair: the hosts at both ends of the connections, or a host and its program. The names are interned;
 * NULL: unknown. */
typedef struct pair_key {
    const char *from, *to, *program;
} pair_key;

/* The connections with the same key. */
typedef struct pair {
    pair_key key;
    GPtrArray *results;                            /* const connection_result * */
    GHashTable *partners;                          /* interned names of the other hosts of the pair's visits */
    GArray *slices;                                /* pair_slice, in order of time */
    double rtt_ns;                                 /* the minimum round-trip time; 0: unknown */
    bool own;                                      /* the connections belong to programs with visits */
    bool ambiguous;                                /* the connections may lead to other hosts */
    bool exact;                                    /* the visits name the connection */
    struct pair *other_way;                        /* the exact pair with the same ends and another sender */
    bool waits;                                    /* expect_waits must still compute expected_ns of the slices */
    bool has_longest;                              /* `longest` is set */
    const connection_result *longest[CAUSE_COUNT]; /* for each cause, the connection that it limited longest, or NULL */
} pair;

/* The time in which a visit's part of a connection's data was on its way, cut to the time of the visit. */
typedef struct part_window {
    int64_t from_ns, to_ns;
} part_window;

struct connection_joins {
    const visits *v;
    const sender *senders;
    int64_t slice_ns;
    GHashTable *sites;     /* interned names of the hosts with visits */
    GHashTable *pairs;     /* pair_key -> pair */
    pair **exact;          /* for each number of visit_ends.h, the pairs of this connection, or NULL */
    pair **of_visits;      /* NULL: not joined */
    GHashTable *windows;   /* index of a visit -> part_window, for visits that name a part of the data */
    const char **commands; /* for each instance, the name of its program, cut to COMMAND_SIZE */
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
    g_hash_table_destroy(p->partners);
    g_free(p);
}

/* ---- names of ends ---- */

static bool is_idle(int cause)
{
    return cause == CAUSE_SENDER_IDLE || cause == CAUSE_SENDER_HOST || cause == CAUSE_UNKNOWN;
}

/* Returns the interned name of a host, or NULL if the name is empty. */
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

static pair *add_to_pair(connection_joins *j, pair_key key, const connection_result *r)
{
    pair *p = g_hash_table_lookup(j->pairs, &key);
    if (p == NULL) {
        p = g_new0(pair, 1);
        p->key = key;
        p->results = g_ptr_array_new();
        p->slices = g_array_new(FALSE, TRUE, sizeof(pair_slice));
        p->partners = g_hash_table_new(NULL, NULL);
        p->waits = true;
        g_hash_table_insert(j->pairs, &p->key, p);
    }
    g_ptr_array_add(p->results, (gpointer)r);
    return p;
}

static double limited_time(const connection_slice *slice)
{
    double sum_ns = 0;
    for (int c = 0; c < CAUSE_COUNT; c++)
        sum_ns += is_idle(c) ? 0 : slice->cause_ns[c];
    return sum_ns;
}

static void add_slices_to_pair(pair *p, const connection_result *r)
{
    for (guint i = 0; i < r->slices->len; i++) {
        const connection_slice *from = &g_array_index(r->slices, connection_slice, i);
        pair_slice to = {.index = from->index, .limited_ns = limited_time(from)};
        for (int c = 0; c < CAUSE_COUNT; c++) {
            to.cause_ns[c] = from->cause_ns[c];
            to.open_ns += from->cause_ns[c];
        }
        g_array_append_val(p->slices, to);
    }
}

/* Adds up the slices of a pair's connections, in order of time. */
static void settle_pair(pair *p)
{
    guint kept = 0;
    g_array_set_size(p->slices, 0);
    p->rtt_ns = 0;
    for (guint i = 0; i < p->results->len; i++) {
        const connection_result *r = g_ptr_array_index(p->results, i);
        add_slices_to_pair(p, r);
        if (r->rtt_min_ns > 0 && (p->rtt_ns <= 0 || r->rtt_min_ns < p->rtt_ns))
            p->rtt_ns = r->rtt_min_ns;
    }
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

/* Adds a connection to the pair of a host and its program, unless the other end is on a host with visits. */
static void add_program(connection_joins *j, const char *host, const char *program, const char *other,
                        const connection_result *r)
{
    if (host != NULL && program[0] != '\0' && g_hash_table_contains(j->sites, host) &&
        (other == NULL || !g_hash_table_contains(j->sites, other)))
        add_to_pair(j, (pair_key){host, NULL, command_of(program)}, r);
}

/* Returns the interned name of a program on a host. */
static const char *name_on_host(const char *host, const char *program)
{
    char *text = g_strconcat(host, "\n", command_of(program), NULL);
    const char *name = g_intern_string(text);
    g_free(text);
    return name;
}

/* Returns the names of all programs with visits. */
static GHashTable *programs_with_visits(const visits *v)
{
    GHashTable *programs = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < v->sites->len; i++) {
        const instance *ends[] = {instance_at(v, site_at(v, i)->instance),
                                  instance_at(v, site_at(v, i)->from_instance)};
        for (size_t k = 0; k < G_N_ELEMENTS(ends); k++)
            g_hash_table_add(programs, (gpointer)name_on_host(ends[k]->host, ends[k]->program));
    }
    return programs;
}

static bool is_of_program(GHashTable *programs, const char *host, const char *program)
{
    return host[0] != '\0' && program[0] != '\0' && g_hash_table_contains(programs, name_on_host(host, program));
}

/*
 * If the pair has connections of programs with visits, removes the connections of other programs. Keeps connections
 * whose records do not name the program.
 */
static void keep_own_programs(pair *p, GHashTable *programs)
{
    GPtrArray *kept = g_ptr_array_new();
    for (guint i = 0; i < p->results->len; i++) {
        const connection_result *r = g_ptr_array_index(p->results, i);
        bool is_own =
            is_of_program(programs, r->host, r->program) || is_of_program(programs, r->peer_host, r->peer_program);
        p->own = p->own || is_own;
        if (is_own || (r->program[0] == '\0' && r->peer_program[0] == '\0'))
            g_ptr_array_add(kept, (gpointer)r);
    }
    if (p->own) {
        g_ptr_array_unref(p->results);
        p->results = kept;
    } else {
        g_ptr_array_unref(kept);
    }
}

static void add_pairs(connection_joins *j)
{
    const GPtrArray *results = j->v->connection_results;
    for (guint i = 0; i < results->len; i++) {
        const connection_result *r = g_ptr_array_index(results, i);
        const char *from = host_of(r->host), *to = host_of(r->peer_host);
        add_to_pair(j, (pair_key){from, to, NULL}, r);
        add_program(j, from, r->program, to, r);
        add_program(j, to, r->peer_program, from, r);
    }
    GHashTable *programs = programs_with_visits(j->v);
    GHashTableIter i;
    gpointer p;
    g_hash_table_iter_init(&i, j->pairs);
    while (g_hash_table_iter_next(&i, NULL, &p)) {
        keep_own_programs(p, programs);
        settle_pair(p);
    }
    g_hash_table_destroy(programs);
}

/* ---- visits ---- */

static bool has_pair(const connection_joins *j, const char *a, const char *b)
{
    const pair_key forth = {a, b, NULL}, back = {b, a, NULL};
    return g_hash_table_contains(j->pairs, &forth) || g_hash_table_contains(j->pairs, &back);
}

/*
 * Handles an edge between two hosts that have no connection to each other, because their messages pass through a
 * program on a third host. Returns the connections from the sender to this third host. Returns NULL if there is no such
 * host in the request, or more than one.
 */
static pair *pair_over_relay(const connection_joins *j, const sender *s, const request *q)
{
    pair *found = NULL;
    for (uint32_t i = q->first; i < q->first + MIN(q->count, RELAY_VISITS_MAX); i++) {
        const pair_key key = {s->host, site_at(j->v, visit_at(j->v, i)->site)->host, NULL};
        pair *p = key.to != s->host && key.to != s->to ? g_hash_table_lookup(j->pairs, &key) : NULL;
        if (p == NULL || p == found || !has_pair(j, key.to, s->to))
            continue;
        if (found != NULL)
            return NULL;
        found = p;
    }
    return found;
}

/* Returns the number of the connection that a visit names, or 0. */
static uint32_t connection_of(const connection_joins *j, const visit *x)
{
    return x->ends != 0 ? visit_ends_part(j->v->ends, x->ends).connection : 0;
}

/*
 * Returns the connection that a visit names, if it carries the data for which the visit waits: its sender is the
 * visit's sender. A visit without a sender in the log waits for the connection if the other end has no visits. Returns
 * NULL otherwise.
 */
static pair *exact_pair(const connection_joins *j, const visit *x, const sender *s)
{
    const char *host = site_at(j->v, x->site)->host;
    for (pair *p = j->exact[connection_of(j, x)]; p != NULL; p = p->other_way) {
        const char *other = p->key.from == host ? p->key.to : p->key.from;
        bool sends = p->key.from == NULL || p->key.from == s->host;
        if (s->host != NULL ? sends : other == NULL || !g_hash_table_contains(j->sites, other))
            return p;
    }
    return NULL;
}

/* Returns the connections on which a visit may wait, or NULL. */
static pair *pair_of_visit(const connection_joins *j, uint32_t index)
{
    const sender *s = &j->senders[index];
    const visit *x = visit_at(j->v, index);
    const site *at = site_at(j->v, x->site);
    if (j->exact[connection_of(j, x)] != NULL)
        return exact_pair(j, x, s);
    if (s->host != NULL && s->to != NULL && s->host != s->to) {
        /* If only one end has records, these records do not name the other host. */
        const pair_key keys[] = {{s->host, s->to, NULL}, {s->host, NULL, NULL}, {NULL, s->to, NULL}};
        pair *p = NULL;
        for (size_t i = 0; i < G_N_ELEMENTS(keys) && p == NULL; i++)
            p = g_hash_table_lookup(j->pairs, &keys[i]);
        if (p == NULL)
            return pair_over_relay(j, s, request_at(j->v, x->request));
        g_hash_table_add(p->partners, (gpointer)(p->key.from != NULL ? s->to : s->host));
        return p;
    }
    const pair_key key = {at->host, NULL, j->commands[at->instance]};
    return place_at(j->v, at->place)->kind == PLACE_SPAN ? g_hash_table_lookup(j->pairs, &key) : NULL;
}

/* Adds a pair for each connection that visits name by the addresses of its ends, and for each of its senders. */
static void add_exact_pairs(connection_joins *j)
{
    const GPtrArray *results = j->v->connection_results;
    for (guint i = 0; i < results->len; i++) {
        const connection_result *r = g_ptr_array_index(results, i);
        uint32_t number = visit_ends_find(j->v->ends, r->host[0] != '\0' ? r->host : r->peer_host, r->local, r->peer);
        if (number == 0)
            continue;
        char *name = g_strdup_printf("connection\n%" G_GUINT32_FORMAT, number);
        pair *p = add_to_pair(j, (pair_key){host_of(r->host), host_of(r->peer_host), g_intern_string(name)}, r);
        g_free(name);
        if (p->exact)
            continue;
        p->own = p->exact = true;
        p->other_way = j->exact[number];
        j->exact[number] = p;
    }
    for (uint32_t n = 0; n <= visit_ends_count(j->v->ends); n++)
        for (pair *p = j->exact[n]; p != NULL; p = p->other_way)
            settle_pair(p);
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

/* The join of a visit is weak if the visit's sender can send until the visit ends, and the records do not show that the
 * connections belong to programs with visits. */
bool connection_joins_is_weak(const connection_joins *j, uint32_t index)
{
    return j->senders[index].sends && j->of_visits[index] != NULL && !j->of_visits[index]->own;
}

/* Finds the windows of the visits that name a part of their connection's data. If the records do not show the times of
 * a part, the visit is joined with the connection in its whole time. */
static void find_windows(connection_joins *j)
{
    for (uint32_t n = 0; n < j->v->all->len; n++) {
        const visit *x = visit_at(j->v, n);
        const pair *p = j->of_visits[n];
        visit_part part = x->ends != 0 ? visit_ends_part(j->v->ends, x->ends) : (visit_part){0};
        int64_t begin_ns, end_ns;
        for (guint i = 0; part.size > 0 && p != NULL && p->exact && i < p->results->len; i++) {
            if (!connection_find_time(g_ptr_array_index(p->results, i), part.offset, part.size, &begin_ns, &end_ns))
                continue;
            part_window *w = g_new(part_window, 1);
            *w = (part_window){MAX(x->from_ns, begin_ns), MIN(x->to_ns, end_ns)};
            g_hash_table_insert(j->windows, GUINT_TO_POINTER(n), w);
            break;
        }
    }
}

/* Returns the time in which a visit may wait for its connections. */
static part_window window_of(const connection_joins *j, uint32_t index)
{
    const part_window *w = g_hash_table_lookup(j->windows, GUINT_TO_POINTER(index));
    const visit *x = visit_at(j->v, index);
    return w != NULL ? *w : (part_window){x->from_ns, x->to_ns};
}

/* Returns the length of the part of a window that is in a slice, in nanoseconds. */
static double overlap_ns(const connection_joins *j, part_window w, int64_t index)
{
    int64_t begin_ns = index * j->slice_ns, end_ns = begin_ns + j->slice_ns;
    return (double)MAX(0, MIN(end_ns, w.to_ns) - MAX(begin_ns, w.from_ns));
}

/* Returns the part of a visit's duration, 0 to 1, in which the visit may wait for a limited connection. Every message
 * needs a round trip, so the function subtracts a round trip from the own time. */
static double waiting_part(const pair *p, const visit *x)
{
    double waits_ns = (double)x->own_ns - p->rtt_ns;
    return x->to_ns > x->from_ns ? CLAMP(waits_ns / (double)(x->to_ns - x->from_ns), 0, 1) : 0;
}

static void add_expected(connection_joins *j, uint32_t index, double weight)
{
    const visit *x = visit_at(j->v, index);
    pair *p = j->of_visits[index];
    part_window w = window_of(j, index);
    int64_t last = w.to_ns / j->slice_ns;
    for (guint i = first_slice(p, w.from_ns / j->slice_ns); i < p->slices->len; i++) {
        pair_slice *s = &g_array_index(p->slices, pair_slice, i);
        if (s->index > last)
            break;
        s->expected_ns += weight * waiting_part(p, x) * overlap_ns(j, w, s->index);
    }
}

/* Only one end of each connection of a pair has records. Returns the number of different addresses of the other
 * ends. */
static guint count_addresses(const pair *p)
{
    GHashTable *addresses = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < p->results->len; i++) {
        const connection_result *r = g_ptr_array_index(p->results, i);
        const char *end = p->key.from != NULL ? r->peer : r->local, *port = strrchr(end, ':');
        char *address = g_strndup(end, port != NULL ? (gsize)(port - end) : strlen(end));
        g_hash_table_add(addresses, (gpointer)g_intern_string(address));
        g_free(address);
    }
    guint count = g_hash_table_size(addresses);
    g_hash_table_destroy(addresses);
    return count;
}

/*
 * Returns whether the connections may lead to other hosts than the visits do. If only one end has records, the names of
 * the hosts at the other end are unknown, so the function compares the number of addresses with the number of hosts of
 * the visits.
 */
static bool is_ambiguous(const pair *p)
{
    bool one_end = p->key.program == NULL && (p->key.from == NULL || p->key.to == NULL);
    return one_end && count_addresses(p) > g_hash_table_size(p->partners);
}

/* Returns the part of a connection's limited time, 0 to 1, that exceeds the waits of visits in the same windows. */
static double part_of_others(const pair *p, const connection_result *r)
{
    double limited_ns = 0, expected_ns = 0, sum_ns = 0, others_ns = 0;
    int64_t window = 0;
    guint next = 0;
    for (guint i = 0; i <= r->slices->len; i++) {
        const connection_slice *s = i < r->slices->len ? &g_array_index(r->slices, connection_slice, i) : NULL;
        if (s == NULL || (i > 0 && s->index / WINDOW_SLICES != window)) {
            for (; next < p->slices->len && g_array_index(p->slices, pair_slice, next).index / WINDOW_SLICES <= window;
                 next++) {
                const pair_slice *of = &g_array_index(p->slices, pair_slice, next);
                expected_ns += of->index / WINDOW_SLICES == window ? of->expected_ns : 0;
            }
            others_ns += fmax(0, limited_ns - expected_ns);
            sum_ns += limited_ns;
            limited_ns = expected_ns = 0;
        }
        if (s == NULL)
            break;
        window = s->index / WINDOW_SLICES;
        limited_ns += limited_time(s);
    }
    return sum_ns > 0 ? others_ns / sum_ns : 0;
}

/* Removes from a pair the connections that mostly carry data of other programs. If there are such connections, computes
 * the pair's slices again, without expected_ns. */
static void remove_others(pair *p)
{
    if (p->exact)
        return;
    GPtrArray *own = g_ptr_array_new();
    for (guint i = 0; i < p->results->len; i++)
        if (part_of_others(p, g_ptr_array_index(p->results, i)) <= OTHERS_MAX)
            g_ptr_array_add(own, g_ptr_array_index(p->results, i));
    if (own->len < p->results->len) {
        g_ptr_array_unref(p->results);
        p->results = own;
        p->waits = true;
        settle_pair(p);
    } else {
        g_ptr_array_unref(own);
    }
}

/* Computes expected_ns in the slices of each pair whose `waits` is true. Each visit counts `weight` times. */
static void expect_waits(connection_joins *j, double weight)
{
    GHashTableIter i;
    gpointer p;
    for (uint32_t n = 0; n < j->v->all->len; n++)
        if (j->of_visits[n] != NULL && j->of_visits[n]->waits)
            add_expected(j, n, weight);
    g_hash_table_iter_init(&i, j->pairs);
    while (g_hash_table_iter_next(&i, NULL, &p))
        ((pair *)p)->waits = false;
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
    j->commands = g_new0(const char *, v->instances->len + 1);
    for (guint i = 0; i < v->instances->len; i++)
        j->commands[i] = command_of(instance_at(v, i)->program);
    j->exact = g_new0(pair *, visit_ends_count(v->ends) + 1);
    j->sites = g_hash_table_new(NULL, NULL);
    j->windows = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    for (guint i = 0; i < v->sites->len; i++)
        g_hash_table_add(j->sites, (gpointer)site_at(v, i)->host);
    add_pairs(j);
    add_exact_pairs(j);
    /* Assume that a dropped request has waited as long as the other requests on average. */
    double weight = (double)(v->requests->len + v->dropped) / MAX(v->requests->len, 1);
    bool any = false;
    for (uint32_t i = 0; i < v->all->len; i++)
        j->of_visits[i] = pair_of_visit(j, i);
    GHashTableIter i;
    gpointer p;
    g_hash_table_iter_init(&i, j->pairs);
    while (g_hash_table_iter_next(&i, NULL, &p))
        ((pair *)p)->ambiguous = is_ambiguous(p);
    for (uint32_t n = 0; n < v->all->len; n++) {
        any = any || (j->of_visits[n] != NULL && !j->of_visits[n]->ambiguous);
        if (j->of_visits[n] != NULL && j->of_visits[n]->ambiguous)
            j->of_visits[n] = NULL;
    }
    find_windows(j);
    expect_waits(j, weight);
    g_hash_table_iter_init(&i, j->pairs);
    while (g_hash_table_iter_next(&i, NULL, &p))
        remove_others(p);
    expect_waits(j, weight);
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
    g_hash_table_destroy(j->sites);
    g_hash_table_destroy(j->windows);
    g_free(j->of_visits);
    g_free(j->exact);
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
    part_window w = window_of(j, index);
    int64_t last = w.to_ns / j->slice_ns;
    bool is_alone = g_hash_table_contains(j->windows, GUINT_TO_POINTER(index));
    double waits = x->own_ns > 0 ? waiting_part(p, x) * (double)(x->to_ns - x->from_ns) / (double)x->own_ns : 0;
    if (is_alone) /* the data in the window belongs to this visit, and the window may be longer than its own time */
        waits = (double)(x->to_ns - x->from_ns) / fmax(1, fmax((double)x->own_ns, (double)(w.to_ns - w.from_ns)));
    for (guint i = first_slice(p, w.from_ns / j->slice_ns); i < p->slices->len; i++) {
        const pair_slice *s = &g_array_index(p->slices, pair_slice, i);
        if (s->index > last)
            break;
        /* If several visits wait for a connection at the same time, each visit waits for the whole time of the
         * connection. Therefore, expected_ns counts only up to open_ns. */
        double divided_ns = is_alone ? s->open_ns : fmax(fmin(s->expected_ns, s->open_ns), s->limited_ns);
        double part = overlap_ns(j, w, s->index) / (double)(x->to_ns - x->from_ns);
        for (int c = 0; c < CAUSE_COUNT && divided_ns > 0; c++)
            parts[c] += is_idle(c) ? 0 : waits * part * s->cause_ns[c] / divided_ns;
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
