#include "config.h"

#include "control.h"

#include "base/monotonic.h"
#include "clocks.h"
#include "connection.h"
#include "gaps.h"
#include "nats_reader.h"
#include "subscription.h"
#include "turns.h"
#include "record/format.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { COMMAND_MAX = 1024, PROG_MAX = 256 };

/* The last record of an answer, so that one that was cut short is known for it. */
static void done(request *r)
{
    request_put(r, request_record(r, NL_USAGE, "Netlogd.Done"));
    request_end(r);
}

static void add_counts(nl_record *record, const server *srv)
{
    const server_counts *counts = &srv->counts;
    subscription_counts live = subscriptions_count(srv->subscriptions);
    nl_record_add_uint(record, "RECORDS", counts->records);
    nl_record_add_uint(record, "BYTES", counts->bytes);
    nl_record_add_uint(record, "RATE", (uint64_t)srv->rate);
    nl_record_add_uint(record, "MALFORMED", counts->malformed);
    nl_record_add_uint(record, "LOST", gaps_count_lost(srv->gaps));
    nl_record_add_uint(record, "CONNECTIONS", client_table_count(srv->clients));
    nl_record_add_uint(record, "CONNECTED", counts->connections);
    nl_record_add_uint(record, "REFUSED", counts->refused);
    nl_record_add_uint(record, "OVER.RATE", counts->over_rate);
    nl_record_add_uint(record, "WORK", counts->work);
    nl_record_add_uint(record, "WORK.TURN.MAX", turns_work_max(srv->turns));
    nl_record_add_uint(record, "HELD", connections_get_held(srv->connections));
    nl_record_add_uint(record, "CUT", counts->cut_off);
    nl_record_add_uint(record, "SUBSCRIBERS", live.subscribers);
    nl_record_add_uint(record, "SENT", live.records);
    nl_record_add_uint(record, "MISSED", live.missed);
    nl_record_add_uint(record, "QUEUED", live.queued);
    nl_record_add_bool(record, "BLOCKED", srv->paused);
    size_t clock_hosts, clocks_wrong;
    clocks_count(srv->clocks, &clock_hosts, &clocks_wrong);
    nl_record_add_uint(record, "CLOCKS", clock_hosts);
    nl_record_add_uint(record, "CLOCKS.WRONG", clocks_wrong);
    nats_counts nats = nats_readers_count(srv);
    if (nats.places == 0)
        return;
    nl_record_add_uint(record, "NATS.RECORDS", nats.records);
    nl_record_add_uint(record, "NATS.MESSAGES", nats.messages);
    nl_record_add_uint(record, "NATS.AGAIN", nats.again);
    nl_record_add_uint(record, "NATS.WAITING", nats.waiting);
    nl_record_add_uint(record, "NATS.AWAY", nats.away);
}

static void put_output(request *r, output *out)
{
    const output_options *options = output_get_options(out);
    const output_counts *counts = output_get_counts(out);
    delivery_state state;
    nl_record *record = request_record(r, NL_USAGE, "Netlogd.Output");
    request_add_text(record, "OUTPUT", options->target);
    request_add_text(record, "KIND", options->kind->name);
    request_add_text(record, "FORMAT", nl_format_name(options->format));
    request_add_text(record, "WHERE", nl_url_option_value(options->url, "where"));
    nl_record_add_uint(record, "RECORDS", counts->records);
    nl_record_add_uint(record, "BYTES", counts->bytes);
    nl_record_add_bool(record, "BLOCKED", output_is_blocked(out));
    if (output_delivers(out, &state)) {
        nl_record_add_uint(record, "SPOOLED", state.waiting);
        nl_record_add_uint(record, "DELIVERED", state.delivered);
        nl_record_add_uint(record, "FAILURES", state.failures);
        request_add_text(record, "AWAY", state.reason[0] != '\0' ? state.reason : NULL);
    }
    request_put(r, record);
}

void control_status(request *r, const nl_record *asked)
{
    (void)asked;
    server *srv = r->server;
    nl_record *record = request_record(r, NL_USAGE, "Netlogd.Status");
    request_add_text(record, "VERSION", PACKAGE_VERSION);
    nl_record_add_int(record, "PID", getpid());
    nl_record_add_double(record, "SECONDS", (double)((nl_monotonic_ns() - srv->started_ns) / 1000000) / 1e3);
    add_counts(record, srv);
    request_put(r, record);
    for (size_t i = 0; outputs_get(srv->outputs, i) != NULL; i++)
        put_output(r, outputs_get(srv->outputs, i));
    done(r);
}

static void put_client(connection *c, void *user)
{
    request *r = user;
    nl_record *record = request_record(r, NL_USAGE, "Netlogd.Client");
    connection_describe(c, record);
    request_put(r, record);
}

void control_clients(request *r, const nl_record *asked)
{
    (void)asked;
    connections_visit(r->server->connections, put_client, r);
    for (const nats_reader *n = r->server->nats_readers; n != NULL; n = nats_reader_next(n)) {
        nl_record *record = request_record(r, NL_USAGE, "Netlogd.Nats");
        nats_reader_describe(n, record);
        request_put(r, record);
    }
    done(r);
}

static void put_stream(void *user, const nl_stream_state *state)
{
    request *r = user;
    if (state->next == UINT64_MAX) /* an output's own, which is not to come in */
        return;
    nl_record *record = request_record(r, NL_USAGE, "Netlogd.Stream");
    char name[2 * sizeof state->stream + 1];
    for (size_t i = 0; i < sizeof state->stream; i++)
        snprintf(name + 2 * i, 3, "%02x", state->stream[i]);
    request_add_text(record, "STREAM", name);
    nl_record_add_uint(record, "NEXT", state->next);
    request_add_time(record, "LATEST", state->latest_ns);
    uint64_t missing = 0;
    for (size_t i = 0; i < state->gap_count; i++)
        missing += state->gaps[i].to - state->gaps[i].from;
    nl_record_add_uint(record, "MISSING", missing);
    request_put(r, record);
}

void control_streams(request *r, const nl_record *asked)
{
    (void)asked;
    nl_streams_list(r->server->streams, put_stream, r);
    done(r);
}

void control_subscribers(request *r, const nl_record *asked)
{
    (void)asked;
    for (const request *other = r->server->requests; other != NULL; other = other->next) {
        if (other->subscription == NULL)
            continue;
        nl_record *record = request_record(r, NL_USAGE, "Netlogd.Subscriber");
        subscription_describe(other->subscription, record);
        request_put(r, record);
    }
    done(r);
}

/* What all outputs have counted of one kind, which is a member of output_counts. */
static uint64_t count_of_outputs(const server *srv, size_t member)
{
    uint64_t count = 0;
    for (size_t i = 0; outputs_get(srv->outputs, i) != NULL; i++)
        count += *(const uint64_t *)((const char *)output_get_counts(outputs_get(srv->outputs, i)) + member);
    return count;
}

void control_clocks(request *r, const nl_record *asked)
{
    (void)asked;
    clocks_describe(r->server->clocks, r);
    done(r);
}

void control_drops(request *r, const nl_record *asked)
{
    (void)asked;
    const server *srv = r->server;
    const subscription_counts live = subscriptions_count(srv->subscriptions);
    const struct {
        const char *what, *meaning;
        uint64_t count;
    } drops[] = {
        {"malformed", "pieces of input that could not be read", srv->counts.malformed},
        {"lost", "records missing from the streams of clients that number them, for longer than 5 s",
         gaps_count_lost(srv->gaps)},
        {"refused", "connections: not from an allowed network, or too many", srv->counts.refused},
        {"displaced", "silent connections closed because new clients came and there were too many",
         srv->counts.displaced},
        {"streams", "blocks refused because too many streams began", srv->counts.streams_refused},
        {"gaps", "blocks not taken, whose senders keep them: their streams have too many gaps",
         srv->counts.gaps_refused},
        {"foreign", "connections of other protocols, such as HTTP", srv->counts.foreign},
        {"over-rate", "datagrams beyond max-rate, or that cause too much work", srv->counts.over_rate},
        {"cut", "connections closed because clients took too much memory", srv->counts.cut_off},
        {"unwritten", "records too large for the format of an output",
         count_of_outputs(srv, offsetof(output_counts, unwritten))},
        {"undecided", "records that an output kept because its where= cost too much; none is lost",
         count_of_outputs(srv, offsetof(output_counts, undecided))},
        {"costly", "subscribers whose WHERE cost too much, and who were disconnected", live.costly},
        {"failed", "requests that were refused", srv->counts.requests_failed},
        {"missed", "records that subscribers were too slow for", live.missed},
    };
    for (size_t i = 0; i < sizeof drops / sizeof drops[0]; i++) {
        nl_record *record = request_record(r, NL_USAGE, "Netlogd.Drop");
        request_add_text(record, "WHAT", drops[i].what);
        nl_record_add_uint(record, "COUNT", drops[i].count);
        request_add_text(record, "MEANING", drops[i].meaning);
        request_put(r, record);
    }
    done(r);
}

static void put_setting(request *r, const char *option, const char *output, const char *of_url, const char *value)
{
    nl_record *record = request_record(r, NL_USAGE, "Netlogd.Setting");
    request_add_text(record, "OPTION", option);
    request_add_text(record, "OUTPUT", output);
    request_add_text(record, "URL.OPTION", of_url);
    request_add_text(record, "VALUE", value);
    request_put(r, record);
}

static void put_url_settings(request *r, const output_options *options, const nl_option *rows)
{
    char scratch[NL_OPTION_TEXT_SIZE];
    for (; rows->name != NULL; rows++) {
        const char *value = nl_option_get(rows, options, scratch);
        if (value != NULL)
            put_setting(r, "output", options->target, rows->name, value);
    }
}

void control_settings(request *r, const nl_record *asked)
{
    (void)asked;
    const server *srv = r->server;
    char scratch[NL_OPTION_TEXT_SIZE];
    const char *value;
    for (const nl_option *row = settings_rows; row->name != NULL; row++)
        /* The URLs of outputs may have passwords: their targets stand for them. */
        for (size_t i = 0;
             strcmp(row->name, "output") != 0 && (value = nl_option_get_at(row, srv->settings, i, scratch)) != NULL;
             i++)
            put_setting(r, row->name, NULL, NULL, value);
    for (size_t i = 0; outputs_get(srv->outputs, i) != NULL; i++) {
        const output_options *options = output_get_options(outputs_get(srv->outputs, i));
        put_setting(r, "output", NULL, NULL, options->target);
        put_url_settings(r, options, output_rows);
        put_url_settings(r, options, options->kind->deliver != NULL ? output_spool_rows : output_file_rows);
    }
    done(r);
}

void control_reload(request *r, const nl_record *asked)
{
    (void)asked;
    const char *reason = server_reload(r->server);
    if (reason == NULL)
        done(r);
    else
        request_fail(r, reason);
}

static void tell_client(connection *c, void *user)
{
    *(size_t *)user += connection_send_activation(c);
}

void control_tell(request *r, const nl_record *asked)
{
    char command[COMMAND_MAX], prog[PROG_MAX] = "*";
    if (!request_value(r, asked, "COMMAND", command, sizeof command)) {
        if (!r->ending)
            request_fail(r, "tell wants COMMAND");
        return;
    }
    request_value(r, asked, "PROG", prog, sizeof prog);
    if (r->ending)
        return;
    const char *reason = activation_tell(r->server->activation, prog, command);
    if (reason != NULL) {
        request_fail(r, reason);
        return;
    }
    size_t told = 0;
    connections_visit(r->server->connections, tell_client, &told);
    nl_write(r->server->log, NL_USAGE, "Netlogd.Tell", "PROG=%s COMMAND=%s CLIENTS=%zu", prog, command, told);
    nl_record *record = request_record(r, NL_USAGE, "Netlogd.Told");
    nl_record_add_uint(record, "CLIENTS", told);
    request_put(r, record);
    done(r);
}
