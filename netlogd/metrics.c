#include "config.h"

#include "metrics.h"

#include "base/monotonic.h"
#include "gaps.h"
#include "http.h"
#include "nats_reader.h"
#include "program/program.h"
#include "subscription.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

typedef struct metric {
    const char *name, *type, *help;
    uint64_t value;
} metric;

/* A label's value: the format's three escapes. */
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

enum { OUTPUT_METRICS = 6 };

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
}

static void print_outputs(const server *srv, struct evbuffer *out)
{
    static const metric metrics[OUTPUT_METRICS] = {
        {"netlogd_output_records_total", "counter", "Records put into each output.", 0},
        {"netlogd_output_bytes_total", "counter", "Bytes written to the files or spool of each output.", 0},
        {"netlogd_output_is_blocked", "gauge", "1 for each output that cannot be written.", 0},
        {"netlogd_output_spooled_bytes", "gauge", "Bytes in the spool of each output, not delivered yet.", 0},
        {"netlogd_output_delivered_bytes_total", "counter", "Bytes delivered from the spool of each output.", 0},
        {"netlogd_output_failures_total", "counter", "Times that delivering failed, for each output.", 0},
    };
    for (size_t m = 0; m < OUTPUT_METRICS; m++) {
        evbuffer_add_printf(out, "# HELP %s %s\n# TYPE %s %s\n", metrics[m].name, metrics[m].help, metrics[m].name,
                            metrics[m].type);
        for (size_t i = 0; outputs_get(srv->outputs, i) != NULL; i++) {
            uint64_t values[OUTPUT_METRICS];
            read_output(outputs_get(srv->outputs, i), values);
            evbuffer_add_printf(out, "%s{output=\"", metrics[m].name);
            print_label(out, output_get_options(outputs_get(srv->outputs, i))->target);
            evbuffer_add_printf(out, "\"} %" PRIu64 "\n", values[m]);
        }
    }
}

static void print_all(const server *srv, struct evbuffer *out)
{
    const server_counts *c = &srv->counts;
    subscription_counts live = subscriptions_count(srv->subscriptions);
    nats_counts nats = nats_readers_count(srv);
    const metric metrics[] = {
        {"netlogd_records_total", "counter", "Records taken from clients.", c->records},
        {"netlogd_received_bytes_total", "counter", "Bytes read from clients.", c->bytes},
        {"netlogd_malformed_total", "counter", "Pieces of input that could not be read.", c->malformed},
        {"netlogd_lost_records_total", "counter", "Records reported as missing from the streams of clients.",
         gaps_get_counts(srv->gaps)->lost},
        {"netlogd_found_records_total", "counter", "Records that came after they were reported as missing.",
         gaps_get_counts(srv->gaps)->found},
        {"netlogd_accepted_connections_total", "counter", "Connections so far.", c->connections},
        {"netlogd_refused_connections_total", "counter", "Connections turned away.", c->refused},
        {"netlogd_displaced_connections_total", "counter", "Silent connections closed for new ones.", c->displaced},
        {"netlogd_refused_blocks_total", "counter", "Blocks not taken because their streams have too many gaps.",
         c->gaps_refused},
        {"netlogd_expanding_waits_total", "counter", "Times clients waited because their records expand too much.",
         c->expanding},
        {"netlogd_foreign_connections_total", "counter", "Connections of other protocols, such as HTTP.", c->foreign},
        {"netlogd_over_rate_datagrams_total", "counter",
         "Datagrams dropped because of max-rate, or because they cause too much work.", c->over_rate},
        {"netlogd_work_units_total", "counter", "Work that clients caused, counted in units of about a nanosecond.",
         c->work},
        {"netlogd_cut_off_connections_total", "counter", "Connections closed for want of memory.", c->cut_off},
        {"netlogd_requests_total", "counter", "Requests, subscriptions among them.", c->requests},
        {"netlogd_failed_requests_total", "counter", "Requests that were refused.", c->requests_failed},
        {"netlogd_subscriber_records_total", "counter", "Records sent to subscribers, once for each.", live.records},
        {"netlogd_subscriber_missed_records_total", "counter", "Records subscribers were too slow for.", live.missed},
        {"netlogd_connections", "gauge", "Connections now.", client_table_count(srv->clients)},
        {"netlogd_held_bytes", "gauge", "Memory for what clients have sent in part.",
         connections_get_held(srv->connections)},
        {"netlogd_subscribers", "gauge", "Subscribers now.", live.subscribers},
        {"netlogd_subscriber_queue_bytes", "gauge", "Bytes that subscribers have not read yet.", live.queued},
        {"netlogd_output_blocked", "gauge", "1 while an output cannot be written and clients wait.", srv->paused},
        {"netlogd_nats_records_total", "counter", "Records taken from NATS.", nats.records},
        {"netlogd_nats_messages_total", "counter", "Messages taken from NATS.", nats.messages},
        {"netlogd_nats_messages_again_total", "counter", "Of these, given to somebody before.", nats.again},
        {"netlogd_nats_waiting_messages", "gauge", "Messages of NATS that are here, not acknowledged.", nats.waiting},
        {"netlogd_nats_away", "gauge", "Places of NATS from which nothing comes now.", nats.away},
        {"netlogd_uptime_seconds", "gauge", "How long netlogd runs.",
         (uint64_t)((nl_monotonic_ns() - srv->started_ns) / NL_NS_PER_SECOND)},
    };
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
        const metric *m = &metrics[i];
        evbuffer_add_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %" PRIu64 "\n", m->name, m->help, m->name, m->type,
                            m->name, m->value);
    }
    print_outputs(srv, out);
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
    /* Where a name has several addresses, one is enough. */
    int fd = dup(sockets[0].fd);
    listener_close_all(sockets, count);
    return fd;
}

struct http *metrics_start(server *srv, int fd)
{
    return http_new(srv, fd, "/metrics", "text/plain; version=0.0.4; charset=utf-8", print_all);
}
