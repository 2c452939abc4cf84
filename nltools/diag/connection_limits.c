#include "config.h"

#include "diag/connection_limits.h"

#include <math.h>
#include <string.h>

/* A cause is evidence for a finding only if it limited the connections in at least this part of the finding's time. */
#define EVIDENCE_MIN 0.3

/* The path limits every transfer of many bytes. The path is therefore a cause only if it takes at least this share of
 * all time. */
#define PATH_MIN 0.3

/* A limit of connections, as a cause of findings. The members `cause` to `of_queues` have the same meaning as in
 * limit.h. */
typedef struct connection_fault {
    unsigned limits; /* bit set of connection_cause */
    const char *cause, *what, *advice;
    double alone_min;
    bool of_queues;
} connection_fault;

static const connection_fault faults[] = {
    {1U << CAUSE_RECEIVE_BUFFER, "window", "the receive window limits the connections from",
     "enlarge the receive buffer", FINDING_MIN, false},
    {1U << CAUSE_SEND_BUFFER, "window", "the send buffer limits the connections from", "enlarge the send buffer",
     FINDING_MIN, false},
    {1U << CAUSE_LOSS, "loss", "lost segments limit the connections from", "check the links of the path", FINDING_MIN,
     false},
    {1U << CAUSE_POLICED, "policed", "a policer limits the connections from", "shape the traffic to the permitted rate",
     FINDING_MIN, false},
    {1U << CAUSE_REVERSE, "reverse", "acknowledgements wait on the way back to",
     "check the rate and the load of the reverse path", FINDING_MIN, false},
    {1U << CAUSE_PATH | 1U << CAUSE_PATH_QUEUE, "path", "the rate of the path limits the connections from",
     "send less (compression, caches, fewer columns), or use a faster path", PATH_MIN, true},
};

/* ---- faults ---- */

/* For each visit, sets `felt` to the part of its time in which a fault limited its connections, and `weak` to whether
 * the join is weak. Adds the hosts that send on these connections to `hosts`. */
static void feel_fault(const findings *f, const connection_joins *j, const connection_fault *fault, float *felt,
                       bool *weak, GHashTable *hosts)
{
    double parts[CAUSE_COUNT];
    for (uint32_t i = 0; i < f->visits->all->len; i++) {
        weak[i] = connection_joins_is_weak(j, i);
        felt[i] = NAN;
        if (!connection_joins_parts(j, i, parts))
            continue;
        int largest = -1;
        felt[i] = 0;
        for (int c = 0; c < CAUSE_COUNT; c++) {
            if (!(fault->limits >> c & 1) || !(parts[c] > 0))
                continue;
            felt[i] += (float)parts[c];
            largest = largest < 0 || parts[c] > parts[largest] ? c : largest;
        }
        if (largest < 0)
            continue;
        const connection_result *r = connection_joins_longest(j, i, (connection_cause)largest);
        if (r != NULL) /* after a rounding error, a slice can contain a cause that the totals of the connections lack */
            g_hash_table_add(hosts, (gpointer)g_intern_string(r->host[0] != '\0' ? r->host : r->local));
    }
}

bool connection_limits_find(findings *f, const connection_joins *j)
{
    bool is_found = false;
    float *felt = g_new0(float, f->visits->all->len + 1);
    bool *weak = g_new0(bool, f->visits->all->len + 1);
    for (size_t i = 0; i < G_N_ELEMENTS(faults) && !is_found; i++) {
        const connection_fault *fault = &faults[i];
        limit l = {.cause = fault->cause,
                   .what = fault->what,
                   .advice = fault->advice,
                   .felt = FELT_FROM,
                   .alone = FELT_FROM,
                   .part = 1,
                   .hosts = g_hash_table_new(NULL, NULL),
                   .evidence = g_ptr_array_new(),
                   .parts = felt,
                   .weak = weak,
                   .alone_min = fault->alone_min,
                   .of_queues = fault->of_queues};
        feel_fault(f, j, fault, felt, weak, l.hosts);
        if (g_hash_table_size(l.hosts) > 0)
            is_found = limit_find(f, &l);
        g_hash_table_destroy(l.hosts);
        g_ptr_array_free(l.evidence, TRUE);
    }
    g_free(felt);
    g_free(weak);
    return is_found;
}

/* ---- evidence ---- */

/* Returns the fault from which the finding was created if `limit` is one of the fault's limits; otherwise, NULL. */
static const connection_fault *fault_of(const finding *x, connection_cause limit)
{
    for (size_t i = 0; i < G_N_ELEMENTS(faults); i++)
        if ((faults[i].limits >> limit & 1) && strcmp(faults[i].cause, x->cause) == 0)
            return &faults[i];
    return NULL;
}

/* Adds the cause that limited the connections in most of the time that a finding claims. */
static void add_evidence(const findings *f, const connection_joins *j, finding *x)
{
    const visits *v = f->visits;
    double sums[CAUSE_COUNT] = {0}, parts[CAUSE_COUNT], all = 0;
    int largest = 0;
    for (uint32_t i = 0; i < v->all->len; i++) {
        double claim = (double)x->cut[i] * path_weight(visit_at(v, i));
        all += claim;
        if (claim <= 0 || !connection_joins_parts(j, i, parts))
            continue;
        for (int c = 0; c < CAUSE_COUNT; c++)
            sums[c] += claim * parts[c];
    }
    for (int c = 1; c < CAUSE_COUNT; c++)
        largest = sums[c] > sums[largest] ? c : largest;
    if (all <= 0 || sums[largest] < EVIDENCE_MIN * all)
        return;
    const connection_result *longest = NULL;
    for (uint32_t i = 0; i < v->all->len; i++) {
        const connection_result *r = x->cut[i] > 0 ? connection_joins_longest(j, i, (connection_cause)largest) : NULL;
        if (r != NULL && (longest == NULL || r->cause_ns[largest] > longest->cause_ns[largest]))
            longest = r;
    }
    if (longest == NULL)
        return;
    connection_result limited = *longest;
    limited.first = (connection_cause)largest;
    char *advice = connection_advice(&limited), *part = text_share(MIN(1, sums[largest] / all));
    finding_evidence(x, "main limit of the connection %s > %s: %s, %s of this time (confidence: %s)", longest->local,
                     longest->peer, connection_cause_name(limited.first), part,
                     connection_confidence(longest, limited.first));
    const connection_fault *fault = fault_of(x, limited.first);
    if (fault != NULL && !fault->of_queues)
        x->advice = g_intern_string(advice);
    else
        finding_evidence(x, "%s", advice);
    char *path = connection_path_text(&limited);
    if (path != NULL)
        finding_evidence(x, "%s", path);
    g_free(path);
    g_free(advice);
    g_free(part);
}

void connection_limits_add_evidence(findings *f, const connection_joins *j)
{
    for (guint i = 0; i < f->list->len; i++) {
        finding *x = g_ptr_array_index(f->list, i);
        if (x->cut != NULL)
            add_evidence(f, j, x);
    }
}
