#include "config.h"

#include "stat/connections.h"

#include "stat/connection_records.h"
#include "stat/connection_rows.h"
#include "connections/classic_transfers.h"
#include "base/error.h"
#include "program/json_document.h"
#include "program/units.h"
#include "base/text.h"
#include "base/time_internal.h"

#include <math.h>
#include <string.h>

/* The interval of derived records without the option --interval. */
#define DERIVED_NS (NL_NS_PER_SECOND / 10)

enum { ADVICE_MAX = 10, ROWS_MAX = 100, SHARES_SHOWN = 3, RATES_MAX = 10 };

/* The report omits causes with a smaller share of the time. */
#define SHARE_MIN 0.005

/* ---- output ---- */

static void print_shares(const double cause_ns[CAUSE_COUNT], double wall_ns)
{
    double left[CAUSE_COUNT];
    memcpy(left, cause_ns, sizeof left);
    for (int shown = 0; shown < SHARES_SHOWN; shown++) {
        int largest = 0;
        for (int c = 1; c < CAUSE_COUNT; c++)
            largest = left[c] > left[largest] ? c : largest;
        if (left[largest] <= SHARE_MIN * wall_ns)
            break;
        printf("%s%s %.0f %%", shown > 0 ? ", " : "  ", connection_cause_name((connection_cause)largest),
               100 * left[largest] / wall_ns);
        left[largest] = 0;
    }
    putchar('\n');
}

/* Prints the answer for the first connection or group. */
static void print_first(const GPtrArray *rows, const connections_options *options)
{
    static const char *const orders[] = {"sent the most bytes", "has the lowest rate", "lasted the longest",
                                         "has the longest round-trip time", "retransmitted the most segments"};
    const char *by = options->by;
    const connections_row *row = g_ptr_array_index(rows, 0);
    const connection_result *r = &row->sum;
    if (by == NULL)
        printf("Main limit of %s", row->name);
    else
        printf("Main limit of %s %s (%s)", by, row->name, connection_distance_name(r->distance));
    if (rows->len > 1)
        printf(", which %s of %u %s", orders[options->sort], rows->len, by == NULL ? "connections" : "groups");
    printf(": %s, %.0f %% of its time (confidence: %s)\n\n", connection_cause_name(r->first),
           100 * r->cause_ns[r->first] / r->wall_ns, connection_confidence(r, r->first));
}

static void print_table(const GPtrArray *rows, const char *by)
{
    char bytes[UNITS_SIZE], rate[UNITS_SIZE], rtt[UNITS_SIZE];
    printf("%-46s %*s %8s %9s %13s %9s  %s\n", by == NULL ? "connection" : by, by == NULL ? 0 : 11,
           by == NULL ? "" : "connections", "distance", "sent", "rate", "min. RTT", "limits (share of the time)");
    for (guint i = 0; i < MIN(rows->len, ROWS_MAX); i++) {
        const connections_row *row = g_ptr_array_index(rows, i);
        const connection_result *r = &row->sum;
        char *count = by == NULL ? g_strdup("") : g_strdup_printf("%" PRIu64, row->connections);
        printf("%-46s %*s %8s %9s %13s %9s", row->name, by == NULL ? 0 : 11, count,
               connection_distance_name(r->distance), units_amount(r->total, "B", bytes),
               units_amount(r->rate * 8, "bit/s", rate),
               r->rtt_min_ns > 0 ? units_time(r->rtt_min_ns, rtt) : "unknown");
        print_shares(r->cause_ns, r->wall_ns);
        g_free(count);
    }
    if (rows->len > ROWS_MAX)
        printf("(%u further row%s; --json prints all)\n", rows->len - ROWS_MAX, nl_plural(rows->len - ROWS_MAX));
}

static void print_advice(const GPtrArray *results)
{
    static const char *const ends[] = {"the sender", "the receiver", "both ends"};
    puts("\nEvidence for the main limit of each connection:");
    for (guint i = 0; i < MIN(results->len, ADVICE_MAX); i++) {
        const connection_result *r = g_ptr_array_index(results, i);
        char *advice = connection_advice(r);
        printf("  %s > %s: %s (confidence: %s, from %" PRIu64 " interval%s of %s)\n    %s\n", r->local, r->peer,
               connection_cause_name(r->first), connection_confidence(r, r->first), r->intervals,
               r->intervals == 1 ? "" : "s", ends[r->ends], advice);
        g_free(advice);
        char *path = connection_path_text(r);
        if (path != NULL)
            printf("    %s\n", path);
        g_free(path);
    }
}

/* Prints the rate and the causes in each slice of the first rows. */
static void print_rates(const GPtrArray *rows, int64_t interval_ns)
{
    char time[NL_TIME_TEXT_SIZE], rate[UNITS_SIZE];
    for (guint i = 0; i < MIN(rows->len, RATES_MAX); i++) {
        const connections_row *row = g_ptr_array_index(rows, i);
        const GArray *slices = row->sum.slices;
        if (slices == NULL || slices->len == 0)
            continue;
        printf("\nRate of %s over time:\n", row->name);
        for (guint k = 0; k < slices->len; k++) {
            const connection_slice *slice = &g_array_index(slices, connection_slice, k);
            double wall_ns = 0;
            for (int c = 0; c < CAUSE_COUNT; c++)
                wall_ns += slice->cause_ns[c];
            nl_time_format_iso(slice->index * interval_ns, time);
            printf("  %-28s %13s", time, units_amount(slice->bytes * 8e9 / (double)interval_ns, "bit/s", rate));
            print_shares(slice->cause_ns, wall_ns);
        }
    }
}

static json_object *slices_json(const GArray *slices, int64_t interval_ns)
{
    json_object *list = json_object_new_array();
    for (guint i = 0; slices != NULL && i < slices->len; i++) {
        const connection_slice *slice = &g_array_index(slices, connection_slice, i);
        json_object *object = json_object_new_object(), *causes = json_object_new_object();
        json_add_int(object, "time_ns", slice->index * interval_ns);
        json_add_double(object, "bytes", slice->bytes);
        for (int c = 0; c < CAUSE_COUNT; c++)
            if (slice->cause_ns[c] > 0)
                json_add_double(causes, connection_cause_name((connection_cause)c), slice->cause_ns[c]);
        json_object_object_add(object, "cause_ns", causes);
        json_object_array_add(list, object);
    }
    return list;
}

static void add_loss_json(json_object *object, const char *name, connection_loss loss)
{
    json_object *bounds = json_object_new_object();
    json_add_double(bounds, "share", loss.share);
    json_add_double(bounds, "minimum", loss.minimum);
    json_add_double(bounds, "maximum", loss.maximum);
    json_object_object_add(object, name, bounds);
}

static json_object *path_json(const connection_path *p)
{
    json_object *object = json_object_new_object();
    json_object_object_add(object, "during", json_object_new_boolean(p->during));
    json_add_double(object, "rtt_min_ns", p->rtt_min_ns);
    if (isfinite(p->delay_error_ns)) {
        json_add_double(object, "delay_out_ns", p->delay_out_ns);
        json_add_double(object, "delay_back_ns", p->delay_back_ns);
        json_add_double(object, "delay_error_ns", p->delay_error_ns);
    }
    json_add_double(object, "queue_out_ns", p->queue_out_ns);
    json_add_double(object, "queue_back_ns", p->queue_back_ns);
    if (p->probes_out > 0) {
        add_loss_json(object, "loss_out", connection_path_loss_out(p));
        add_loss_json(object, "loss_back", connection_path_loss_back(p));
    }
    json_add_double(object, "mtu", p->mtu);
    json_add_double(object, "bytes_per_second", p->rate);
    return object;
}

static json_object *row_json(const connections_row *row, const connections_options *options)
{
    const char *by = options->by;
    const connection_result *r = &row->sum;
    json_object *object = json_object_new_object(), *causes = json_object_new_array();
    json_add_text(object, by == NULL ? "connection" : by, row->name);
    json_add_int(object, "connections", (int64_t)row->connections);
    json_add_text(object, "distance", connection_distance_name(r->distance));
    json_add_int(object, "bytes", (int64_t)MIN(r->total, 9e18));
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
    if (options->interval_ns > 0)
        json_object_object_add(object, "rate", slices_json(r->slices, options->interval_ns));
    if (by == NULL) {
        char *advice = connection_advice(r);
        double gain_minimum, gain_maximum;
        json_add_text(object, "records", connection_ends_name(r->ends));
        json_add_text(object, "host", r->host);
        json_add_text(object, "program", r->program);
        json_add_text(object, "peer_host", r->peer_host);
        json_add_text(object, "peer_program", r->peer_program);
        json_add_int(object, "returned_bytes", (int64_t)MIN(r->returned, 9e18));
        json_add_double(object, "rtt_ns", r->rtt_ns);
        json_add_double(object, "window", r->window);
        json_add_double(object, "send_buffer", r->send_buffer);
        json_add_double(object, "peer_receive_buffer", r->peer_buffer);
        json_add_double(object, "highest_bytes_per_second", r->path_rate);
        json_add_int(object, "sharing", (int64_t)r->sharing);
        json_add_double(object, "shared_bytes_per_second", r->shared_rate);
        json_add_int(object, "elsewhere", (int64_t)r->elsewhere);
        json_add_double(object, "elsewhere_bytes_per_second", r->elsewhere_rate);
        json_add_double(object, "gain_of_doubling", connection_gain_of_doubling(r));
        json_add_double(object, "gain_of_path", connection_gain_of_path(r));
        if (connection_gain_of_reuse(r, &gain_minimum, &gain_maximum)) {
            json_add_double(object, "gain_of_reuse", gain_minimum);
            json_add_double(object, "gain_of_reuse_max", gain_maximum);
        }
        json_add_text(object, "advice", advice);
        if (r->path.measured)
            json_object_object_add(object, "path", path_json(&r->path));
        g_free(advice);
    }
    return object;
}

static void print_rows(const connections_options *options, const GPtrArray *results)
{
    GPtrArray *rows = connection_rows_new(results, options->by, options->sort);
    if (options->json) {
        json_object *document = json_object_new_array();
        for (guint i = 0; i < rows->len; i++)
            json_object_array_add(document, row_json(g_ptr_array_index(rows, i), options));
        json_document_write(document, stdout);
    } else {
        print_first(rows, options);
        print_table(rows, options->by);
        print_advice(results);
        if (options->interval_ns > 0)
            print_rates(rows, options->interval_ns);
    }
    g_ptr_array_unref(rows);
}

typedef struct connections_input {
    connection_table *table;
    classic_transfers *transfers;
} connections_input;

static void take_record(void *user, const nl_record *record)
{
    const connections_input *input = user;
    connection_table_add(input->table, record);
    classic_transfers_add(input->transfers, record);
}

int connections_report(const connections_options *options, subject_options *subject, char **files, int count)
{
    static char *standard_input[] = {"-"};
    int64_t slice_ns = options->interval_ns > 0 || options->derived == NULL ? options->interval_ns : DERIVED_NS;
    connection_table *table = connection_table_new(slice_ns, 0);
    connections_input input = {table, classic_transfers_new()};
    bool ok = true;
    uint64_t records = 0;
    for (int i = 0; i < MAX(count, 1); i++)
        ok = subject_read_records(subject, count > 0 ? files[i] : standard_input[0], take_record, &input, &records) &&
             ok;
    ok = program_has_records(&subject->reading, records, "") && ok;
    GPtrArray *results = connection_table_finish(table);
    if (connection_table_count(table) == 0)
        classic_transfers_finish(input.transfers, results);
    connection_results_sort(results, options->sort);
    if (connection_table_ignored(table) > 0)
        program_error("more than %d connections: %" PRIu64
                      " record%s of further connections ignored; select records with --where",
                      CONNECTIONS_MAX, connection_table_ignored(table), nl_plural(connection_table_ignored(table)));
    if (results->len > 0) {
        print_rows(options, results);
    } else if (records > 0) {
        program_error(connection_table_count(table) > 0 ? "no connection carried data between two of its records"
                                                        : "no TcpConnection records with addresses, and no transfers; "
                                                          "log connections with nlsensor connections");
        ok = false;
    }
    if (results->len > 0 && options->derived != NULL &&
        !connection_records_write(results, slice_ns, options->derived)) {
        program_error("%s: %s", options->derived, nl_error_message());
        ok = false;
    }
    g_ptr_array_unref(results);
    classic_transfers_free(input.transfers);
    connection_table_free(table);
    return ok ? PROGRAM_DONE : PROGRAM_PROBLEM;
}
