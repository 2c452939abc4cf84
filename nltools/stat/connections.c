#include "config.h"

#include "stat/connections.h"

#include "connections/connection_causes.h"
#include "program/json_document.h"
#include "program/units.h"

#include <string.h>

enum { ADVICE_MAX = 10, ROWS_MAX = 100, SHARES_SHOWN = 3 };

/* Minimum share of the time for which a cause is shown. */
#define SHARE_MIN 0.005

/* A row of the report: a connection, or the sum of connections of the same distance. */
typedef struct connections_row {
    const char *name;
    uint64_t connections;
    connection_result sum;
} connections_row;

static const char *const groups[] = {"hosts", "program", "port"};

bool connections_can_group(const char *by)
{
    for (size_t i = 0; i < G_N_ELEMENTS(groups); i++)
        if (strcmp(by, groups[i]) == 0)
            return true;
    return false;
}

/* Returns the address of ADDRESS:PORT, which the caller frees. */
static char *address_of(const char *end)
{
    const char *colon = strrchr(end, ':');
    return g_strndup(end, colon != NULL ? (size_t)(colon - end) : strlen(end));
}

static int port_of(const char *end)
{
    const char *colon = strrchr(end, ':');
    return colon != NULL ? atoi(colon + 1) : 0;
}

/* Returns the name of a connection's row, which the caller frees. */
static char *row_name(const connection_result *r, const char *by)
{
    if (by == NULL)
        return g_strdup_printf("%s > %s", r->local, r->peer);
    if (strcmp(by, "program") == 0)
        return g_strdup(r->program[0] != '\0' ? r->program : "(unknown)");
    if (strcmp(by, "port") == 0) /* the service has the smaller port */
        return g_strdup_printf("%d", MIN(port_of(r->local), port_of(r->peer)));
    char *from = address_of(r->local), *to = address_of(r->peer), *name = g_strdup_printf("%s > %s", from, to);
    g_free(from);
    g_free(to);
    return name;
}

static void row_add(connections_row *row, const connection_result *r)
{
    connection_result *sum = &row->sum;
    if (row->connections++ == 0) {
        *sum = *r;
        return;
    }
    sum->wall_ns += r->wall_ns;
    sum->bytes += r->bytes;
    sum->intervals += r->intervals;
    sum->rtt_min_ns = MIN(sum->rtt_min_ns, r->rtt_min_ns); /* 0 only if it is 0 for all of the same distance */
    sum->segments += r->segments;
    sum->retransmitted += r->retransmitted;
    for (int c = 0; c < CAUSE_COUNT; c++) {
        sum->cause_ns[c] += r->cause_ns[c];
        sum->estimated_ns[c] += r->estimated_ns[c];
        sum->first = sum->cause_ns[c] > sum->cause_ns[sum->first] ? (connection_cause)c : sum->first;
    }
    sum->rate = sum->wall_ns > 0 ? sum->bytes / sum->wall_ns * 1e9 : 0;
}

static int compare_rows(gconstpointer a, gconstpointer b)
{
    const connections_row *x = *(connections_row *const *)a, *y = *(connections_row *const *)b;
    return x->sum.bytes < y->sum.bytes ? 1 : x->sum.bytes > y->sum.bytes ? -1 : 0;
}

static void row_free(gpointer data)
{
    connections_row *row = data;
    g_free((char *)row->name);
    g_free(row);
}

/* Returns connections_row *, sorted by bytes, the largest first. */
static GPtrArray *make_rows(const GPtrArray *results, const char *by)
{
    GPtrArray *rows = g_ptr_array_new_with_free_func(row_free);
    GHashTable *known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < results->len; i++) {
        const connection_result *r = g_ptr_array_index(results, i);
        char *name = row_name(r, by), *key = g_strdup_printf("%d %s", (int)r->distance, name);
        connections_row *row = by != NULL ? g_hash_table_lookup(known, key) : NULL;
        if (row == NULL) {
            row = g_new0(connections_row, 1);
            row->name = g_strdup(name);
            g_hash_table_replace(known, g_strdup(key), row);
            g_ptr_array_add(rows, row);
        }
        row_add(row, r);
        g_free(key);
        g_free(name);
    }
    g_hash_table_destroy(known);
    g_ptr_array_sort(rows, compare_rows);
    return rows;
}

/* ---- output ---- */

/* Prints the largest shares, the largest first. */
static void print_shares(const connection_result *r)
{
    double left[CAUSE_COUNT];
    memcpy(left, r->cause_ns, sizeof left);
    for (int shown = 0; shown < SHARES_SHOWN; shown++) {
        int largest = 0;
        for (int c = 1; c < CAUSE_COUNT; c++)
            largest = left[c] > left[largest] ? c : largest;
        if (left[largest] < SHARE_MIN * r->wall_ns)
            break;
        printf("%s%s %.0f %%", shown > 0 ? ", " : "  ", connection_cause_name((connection_cause)largest),
               100 * left[largest] / r->wall_ns);
        left[largest] = 0;
    }
    putchar('\n');
}

/* Prints the answer for the connection or group that sent the most bytes. */
static void print_first(const GPtrArray *rows, const char *by)
{
    const connections_row *row = g_ptr_array_index(rows, 0);
    const connection_result *r = &row->sum;
    if (by == NULL)
        printf("First cause of %s", row->name);
    else
        printf("First cause of %s %s (%s)", by, row->name, connection_distance_name(r->distance));
    if (rows->len > 1)
        printf(", which sent the most bytes of %u %s", rows->len, by == NULL ? "connections" : "groups");
    printf(": %s, %.0f %% of its time (confidence: %s)\n\n", connection_cause_name(r->first),
           100 * r->cause_ns[r->first] / r->wall_ns, connection_confidence(r, r->first));
}

static void print_table(const GPtrArray *rows, const char *by)
{
    char bytes[UNITS_SIZE], rate[UNITS_SIZE], rtt[UNITS_SIZE];
    printf("%-46s %*s %8s %9s %13s %9s  %s\n", by == NULL ? "connection" : by, by == NULL ? 0 : 11,
           by == NULL ? "" : "connections", "distance", "sent", "rate", "min. RTT", "limits, in shares of the time");
    for (guint i = 0; i < MIN(rows->len, ROWS_MAX); i++) {
        const connections_row *row = g_ptr_array_index(rows, i);
        const connection_result *r = &row->sum;
        char *count = by == NULL ? g_strdup("") : g_strdup_printf("%" PRIu64, row->connections);
        printf("%-46s %*s %8s %9s %13s %9s", row->name, by == NULL ? 0 : 11, count,
               connection_distance_name(r->distance), units_amount(r->bytes, "B", bytes),
               units_amount(r->rate * 8, "bit/s", rate),
               r->rtt_min_ns > 0 ? units_time(r->rtt_min_ns, rtt) : "unknown");
        print_shares(r);
        g_free(count);
    }
    if (rows->len > ROWS_MAX)
        printf("(%u further rows; --json prints all)\n", rows->len - ROWS_MAX);
}

static void print_advice(const GPtrArray *results)
{
    puts("\nEvidence for the first cause of the connections with the most bytes:");
    for (guint i = 0; i < MIN(results->len, ADVICE_MAX); i++) {
        const connection_result *r = g_ptr_array_index(results, i);
        char *advice = connection_advice(r);
        printf("  %s > %s: %s (confidence: %s, from %" PRIu64 " interval%s)\n    %s\n", r->local, r->peer,
               connection_cause_name(r->first), connection_confidence(r, r->first), r->intervals,
               r->intervals == 1 ? "" : "s", advice);
        g_free(advice);
    }
}

static json_object *row_json(const connections_row *row, const char *by)
{
    const connection_result *r = &row->sum;
    json_object *object = json_object_new_object(), *causes = json_object_new_array();
    json_add_text(object, by == NULL ? "connection" : by, row->name);
    json_add_int(object, "connections", (int64_t)row->connections);
    json_add_text(object, "distance", connection_distance_name(r->distance));
    json_add_int(object, "bytes", (int64_t)MIN(r->bytes, 9e18));
    json_add_double(object, "seconds", r->wall_ns / 1e9);
    json_add_double(object, "bytes_per_second", r->rate);
    json_add_double(object, "rtt_min_ns", r->rtt_min_ns);
    json_add_double(object, "segments", r->segments);
    json_add_double(object, "retransmitted", r->retransmitted);
    json_add_int(object, "intervals", (int64_t)r->intervals);
    for (int c = 0; c < CAUSE_COUNT; c++) {
        json_object *cause = json_object_new_object();
        json_add_text(cause, "cause", connection_cause_name((connection_cause)c));
        json_add_double(cause, "share", r->wall_ns > 0 ? r->cause_ns[c] / r->wall_ns : 0);
        json_add_text(cause, "confidence", connection_confidence(r, (connection_cause)c));
        json_object_array_add(causes, cause);
    }
    json_object_object_add(object, "causes", causes);
    json_add_text(object, "first", connection_cause_name(r->first));
    if (by == NULL) {
        char *advice = connection_advice(r);
        json_add_text(object, "host", r->host);
        json_add_text(object, "program", r->program);
        json_add_double(object, "rtt_ns", r->rtt_ns);
        json_add_double(object, "window", r->window);
        json_add_double(object, "send_buffer", r->send_buffer);
        json_add_double(object, "peer_receive_buffer", r->peer_buffer);
        json_add_double(object, "highest_bytes_per_second", r->path_rate);
        json_add_double(object, "gain_of_doubling", connection_gain_of_doubling(r));
        json_add_double(object, "gain_of_path", connection_gain_of_path(r));
        json_add_text(object, "advice", advice);
        g_free(advice);
    }
    return object;
}

static void print_rows(const connections_options *options, const GPtrArray *results)
{
    GPtrArray *rows = make_rows(results, options->by);
    if (options->json) {
        json_object *document = json_object_new_array();
        for (guint i = 0; i < rows->len; i++)
            json_object_array_add(document, row_json(g_ptr_array_index(rows, i), options->by));
        json_document_write(document, stdout);
    } else {
        print_first(rows, options->by);
        print_table(rows, options->by);
        print_advice(results);
    }
    g_ptr_array_unref(rows);
}

static void take_record(void *user, const nl_record *record)
{
    connection_table_add(user, record);
}

int connections_report(const connections_options *options, subject_options *subject, char **files, int count)
{
    static char *standard_input[] = {"-"};
    connection_table *table = connection_table_new();
    bool ok = true;
    uint64_t records = 0;
    for (int i = 0; i < MAX(count, 1); i++)
        ok =
            subject_read_records(subject, count > 0 ? files[i] : standard_input[0], take_record, table, &records) && ok;
    ok = program_has_records(&subject->reading, records, "") && ok;
    GPtrArray *results = connection_table_finish(table);
    if (connection_table_ignored(table) > 0)
        program_error("more than %d connections: %" PRIu64 " records of further connections were ignored",
                      CONNECTIONS_MAX, connection_table_ignored(table));
    if (results->len > 0) {
        print_rows(options, results);
    } else if (records > 0) {
        program_error(connection_table_count(table) > 0
                          ? "no connection has two records between which it sent data"
                          : "no TcpConnection records with addresses; log them with nlsensor connections");
        ok = false;
    }
    g_ptr_array_unref(results);
    connection_table_free(table);
    return ok ? PROGRAM_DONE : PROGRAM_PROBLEM;
}
