#include "config.h"

#include "metrics.h"

#include "accepting.h"
#include "base/monotonic.h"
#include "certificate_watch.h"
#include "connections.h"
#include "counts.h"
#include "file_inputs.h"
#include "flush.h"
#include "gaps.h"
#include "http.h"
#include "journal_input.h"
#include "nats_reader.h"
#include "otlp_client.h"
#include "output/outputs.h"
#include "program/program.h"
#include "server.h"
#include "subscription.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

typedef struct metric {
    const char *name, *type, *help;
    uint64_t value;
} metric;

/* Prints the value of a label with the escapes of the format. */
static void print_label(struct evbuffer *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            evbuffer_add(out, "\\", 1);
        if (*text == '\n')
            evbuffer_add(out, "\\n", 2);
        else
            evbuffer_add(out, text, 1);
    }
}

enum { OUTPUT_METRICS = 13 };

static void read_output(output *out, uint64_t values[OUTPUT_METRICS])
{
    const output_counts *counts = output_get_counts(out);
    delivery_state state = {0};
    output_delivers(out, &state);
    values[0] = counts->records;
    values[1] = counts->bytes;
    values[2] = output_is_blocked(out);
    values[3] = state.waiting;
    values[4] = state.delivered;
    values[5] = state.failures;
    values[6] = state.rejected;
    values[7] = counts->deleted;
    values[8] = counts->deleted_bytes;
    values[9] = state.missing;
    values[10] = counts->kept_requests;
    values[11] = counts->kept_records;
    values[12] = counts->unsearched;
}

static void print_outputs(struct evbuffer *out)
{
    static const metric metrics[OUTPUT_METRICS] = {
        {"netlogd_output_records_total", "counter", "Records that each output received.", 0},
        {"netlogd_output_bytes_total", "counter", "Bytes written to the files or spool of each output.", 0},
        {"netlogd_output_is_blocked", "gauge", "1 if netlogd cannot write to the output, otherwise 0.", 0},
        {"netlogd_output_spooled_bytes", "gauge", "Bytes in each output's spool that are not delivered yet.", 0},
        {"netlogd_output_delivered_bytes_total", "counter", "Bytes delivered from each output's spool.", 0},
        {"netlogd_output_failures_total", "counter", "Failed deliveries of each output.", 0},
        {"netlogd_output_rejected_total", "counter", "Records that the output's destination rejected.", 0},
        {"netlogd_output_deleted_files_total", "counter", "Old files that each output deleted.", 0},
        {"netlogd_output_deleted_bytes_total", "counter", "Size of the old files that each output deleted.", 0},
        {"netlogd_output_missing_files_total", "counter", "Files removed from each output's spool before delivery.", 0},
        {"netlogd_output_kept_requests_total", "counter", "Requests that keep_where= of each output has kept.", 0},
        {"netlogd_output_kept_records_total", "counter",
         "Records of the requests that keep_where= of each output has kept.", 0},
        {"netlogd_output_unsearched_files_total", "counter",
         "Old files that each output deleted although keep_where= had not kept their requests.", 0},
    };
    for (size_t m = 0; m < OUTPUT_METRICS; m++) {
        evbuffer_add_printf(out, "# HELP %s %s\n# TYPE %s %s\n", metrics[m].name, metrics[m].help, metrics[m].name,
                            metrics[m].type);
        for (size_t i = 0; outputs_get(i) != NULL; i++) {
            uint64_t values[OUTPUT_METRICS];
            read_output(outputs_get(i), values);
            evbuffer_add_printf(out, "%s{output=\"", metrics[m].name);
            print_label(out, output_get_options(outputs_get(i))->target);
            evbuffer_add_printf(out, "\"} %" PRIu64 "\n", values[m]);
        }
    }
}

static void print_all(struct evbuffer *out)
{
    subscription_counts live = subscriptions_count();
    nats_counts nats = nats_readers_count();
    file_inputs_counts files = file_inputs_count();
    const metric metrics[] = {
        {"netlogd_records_total", "counter", "Records received from clients.", counts_get(COUNT_RECORDS)},
        {"netlogd_received_bytes_total", "counter", "Bytes read from clients.", counts_get(COUNT_BYTES)},
        {"netlogd_malformed_total", "counter", "Pieces of malformed input.", counts_get(COUNT_MALFORMED)},
        {"netlogd_lost_records_total", "counter",
         "Records reported as missing from clients' streams, even if they arrived later.", gaps_get_counts()->lost},
        {"netlogd_found_records_total", "counter", "Records received after they were reported as missing.",
         gaps_get_counts()->found},
        {"netlogd_accepted_connections_total", "counter", "Connections accepted since netlogd started.",
         counts_get(COUNT_CONNECTIONS)},
        {"netlogd_refused_connections_total", "counter",
         "Connections rejected because of their network, a limit or TLS, and datagrams from networks that are not "
         "allowed.",
         counts_get(COUNT_REFUSED)},
        {"netlogd_displaced_connections_total", "counter", "Silent connections closed to admit new clients.",
         counts_get(COUNT_DISPLACED)},
        {"netlogd_refused_blocks_total", "counter", "Blocks rejected because their streams have too many gaps.",
         counts_get(COUNT_GAPS_REFUSED)},
        {"netlogd_expanding_waits_total", "counter",
         "Number of times that netlogd delayed a client because its records take too much space as text.",
         counts_get(COUNT_EXPANDING)},
        {"netlogd_foreign_connections_total", "counter", "Connections of other protocols, such as HTTP.",
         counts_get(COUNT_FOREIGN)},
        {"netlogd_over_rate_datagrams_total", "counter",
         "Datagrams dropped because of max-rate, or because they cause too much work.", counts_get(COUNT_OVER_RATE)},
        {"netlogd_unread_datagrams_total", "counter",
         "Datagrams that the kernel dropped because netlogd did not read them in time.", counts_get(COUNT_UNREAD)},
        {"netlogd_work_units_total", "counter", "Work that clients caused, in units of about one nanosecond.",
         counts_get(COUNT_WORK)},
        {"netlogd_cut_off_connections_total", "counter", "Connections closed because clients used too much memory.",
         counts_get(COUNT_CUT_OFF)},
        {"netlogd_requests_total", "counter", "Requests, including subscriptions.", counts_get(COUNT_REQUESTS)},
        {"netlogd_failed_requests_total", "counter", "Requests rejected.", counts_get(COUNT_REQUESTS_FAILED)},
        {"netlogd_subscriber_records_total", "counter", "Records sent to subscribers, counted once per subscriber.",
         live.records},
        {"netlogd_subscriber_missed_records_total", "counter",
         "Records that subscribers missed because they were too slow.", live.missed},
        {"netlogd_connections", "gauge", "Connections open now.", client_table_count(accepting_get_clients())},
        {"netlogd_held_bytes", "gauge", "Memory for incomplete input of clients.",
         connections_get_held() + otlp_clients_held()},
        {"netlogd_subscribers", "gauge", "Subscribers now.", live.subscribers},
        {"netlogd_subscriber_queue_bytes", "gauge", "Bytes that subscribers have not read yet.", live.queued},
        {"netlogd_output_blocked", "gauge", "1 while netlogd cannot write to an output and clients wait.",
         flush_is_paused()},
        {"netlogd_nats_records_total", "counter", "Records received from NATS.", nats.records},
        {"netlogd_nats_messages_total", "counter", "Messages received from NATS.", nats.messages},
        {"netlogd_nats_messages_again_total", "counter", "Messages that NATS delivered again.", nats.again},
        {"netlogd_nats_waiting_messages", "gauge", "Messages received from NATS and not acknowledged yet.",
         nats.waiting},
        {"netlogd_nats_away", "gauge", "NATS inputs that netlogd currently cannot read.", nats.away},
        {"netlogd_file_records_total", "counter", "Records read from followed files.", files.records},
        {"netlogd_files", "gauge", "Files that netlogd follows now.", files.files},
        {"netlogd_journal_records_total", "counter", "Records read from the journal.", journal_input_count()},
        {"netlogd_certificate_expiry_timestamp_seconds", "gauge",
         "Earliest expiry time of the certificates of listeners and outputs, in seconds since 1970; 0 if there are no "
         "certificates.",
         certificate_watch_get_first()},
        {"netlogd_uptime_seconds", "gauge", "Time since netlogd started.",
         (uint64_t)((nl_monotonic_ns() - server_start_ns()) / NL_NS_PER_SECOND)},
    };
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
        const metric *m = &metrics[i];
        evbuffer_add_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %" PRIu64 "\n", m->name, m->help, m->name, m->type,
                            m->name, m->value);
    }
    print_outputs(out);
    evbuffer_add_printf(out,
                        "# HELP netlogd_build_info The version.\n# TYPE netlogd_build_info gauge\n"
                        "netlogd_build_info{version=\"%s\"} 1\n",
                        PACKAGE_VERSION);
}

int metrics_bind(const settings *s)
{
    listener *sockets = NULL;
    size_t count = 0;
    if (!listener_open(&s->metrics_place, s->allow.count > 0, &sockets, &count)) {
        program_error("metrics: %s", nl_error_message());
        listener_close_all(sockets, count);
        return -1;
    }
    fprintf(stderr, "netlogd: metrics on http%s/metrics\n", strchr(sockets[0].name, ':'));
    int fd = dup(sockets[0].fd); /* one socket is enough, even if the name resolves to several addresses */
    listener_close_all(sockets, count);
    return fd;
}

void metrics_start(int fd)
{
    http_start(fd, print_all);
}

void metrics_free(void)
{
    http_free();
}
