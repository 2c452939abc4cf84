#include "config.h"

#include "control.h"

#include "accepting.h"
#include "activation.h"
#include "base/error.h"
#include "base/monotonic.h"
#include "clocks.h"
#include "connection.h"
#include "connections.h"
#include "counts.h"
#include "flush.h"
#include "gaps.h"
#include "file_inputs.h"
#include "nats_reader.h"
#include "otlp_client.h"
#include "output/outputs.h"
#include "record/format.h"
#include "reload.h"
#include "server.h"
#include "subscription.h"
#include "turns.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { COMMAND_MAX = 1024, PROG_MAX = 256 };

/* Appends the last record of a reply. A client that does not receive this record knows that the reply is incomplete. */
static nl_status done(request *r)
{
    request_put(r, request_record(r, NL_USAGE, "Netlogd.Done"));
    request_end(r);
    return NL_OK;
}

static void add_counts(nl_record *record)
{
    subscription_counts live = subscriptions_count();
    nats_counts nats = nats_readers_count();
    size_t clock_hosts, clocks_wrong;
    clocks_count(&clock_hosts, &clocks_wrong);
    nl_record_add_uint(record, "RECORDS", counts_get(COUNT_RECORDS));
    nl_record_add_uint(record, "BYTES", counts_get(COUNT_BYTES));
    nl_record_add_uint(record, "RATE", (uint64_t)counts_get_rate());
    nl_record_add_uint(record, "MALFORMED", counts_get(COUNT_MALFORMED));
    nl_record_add_uint(record, "LOST", gaps_count_lost());
    nl_record_add_uint(record, "CONNECTIONS", client_table_count(accepting_get_clients()));
    nl_record_add_uint(record, "CONNECTED", counts_get(COUNT_CONNECTIONS));
    nl_record_add_uint(record, "REFUSED", counts_get(COUNT_REFUSED));
    nl_record_add_uint(record, "OVER.RATE", counts_get(COUNT_OVER_RATE));
    nl_record_add_uint(record, "WORK", counts_get(COUNT_WORK));
    nl_record_add_uint(record, "WORK.TURN.MAX", turns_work_max());
    nl_record_add_uint(record, "HELD", connections_get_held());
    nl_record_add_uint(record, "CUT", counts_get(COUNT_CUT_OFF));
    nl_record_add_uint(record, "SUBSCRIBERS", live.subscribers);
    nl_record_add_uint(record, "SENT", live.records);
    nl_record_add_uint(record, "MISSED", live.missed);
    nl_record_add_uint(record, "QUEUED", live.queued);
    nl_record_add_bool(record, "BLOCKED", flush_is_paused());
    nl_record_add_uint(record, "CLOCKS", clock_hosts);
    nl_record_add_uint(record, "CLOCKS.WRONG", clocks_wrong);
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
    if (options->keep_where != NULL)
        nl_record_add_uint(record, "KEPT", counts->kept_requests);
    if (output_delivers(out, &state)) {
        nl_record_add_uint(record, "SPOOLED", state.waiting);
        nl_record_add_uint(record, "DELIVERED", state.delivered);
        nl_record_add_uint(record, "FAILURES", state.failures);
        nl_record_add_uint(record, "REJECTED", state.rejected);
        nl_record_add_uint(record, "MISSING", state.missing);
        request_add_text(record, "AWAY", state.problem.code != NL_ERROR_NONE ? state.problem.message : NULL);
    }
    request_put(r, record);
}

nl_status control_status(request *r, const nl_record *asked)
{
    (void)asked;
    nl_record *record = request_record(r, NL_USAGE, "Netlogd.Status");
    request_add_text(record, "VERSION", PACKAGE_VERSION);
    nl_record_add_int(record, "PID", getpid());
    nl_record_add_double(record, "SECONDS", (double)((nl_monotonic_ns() - server_start_ns()) / 1000000) / 1e3);
    add_counts(record);
    request_put(r, record);
    for (size_t i = 0; outputs_get(i) != NULL; i++)
        put_output(r, outputs_get(i));
    return done(r);
}

static void put_client(connection *c, void *user)
{
    request *r = user;
    nl_record *record = request_record(r, NL_USAGE, "Netlogd.Client");
    connection_describe(c, record);
    request_put(r, record);
}

nl_status control_clients(request *r, const nl_record *asked)
{
    (void)asked;
    connections_visit(put_client, r);
    otlp_clients_describe(r);
    nats_readers_describe(r);
    file_inputs_describe(r);
    return done(r);
}

static void put_stream(void *user, const nl_stream_state *state)
{
    request *r = user;
    if (state->next == UINT64_MAX) /* skip an output's own stream, which clients do not send */
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

nl_status control_streams(request *r, const nl_record *asked)
{
    (void)asked;
    nl_streams_list(outputs_streams(), put_stream, r);
    return done(r);
}

static void put_subscriber(request *other, void *user)
{
    request *r = user;
    if (other->subscription == NULL)
        return;
    nl_record *record = request_record(r, NL_USAGE, "Netlogd.Subscriber");
    subscription_describe(other->subscription, record);
    request_put(r, record);
}

nl_status control_subscribers(request *r, const nl_record *asked)
{
    (void)asked;
    requests_visit(put_subscriber, r);
    return done(r);
}

nl_status control_clocks(request *r, const nl_record *asked)
{
    (void)asked;
    clocks_describe(r);
    return done(r);
}

static void put_drop(request *r, const char *what, uint64_t count, const char *meaning)
{
    nl_record *record = request_record(r, NL_USAGE, "Netlogd.Drop");
    request_add_text(record, "WHAT", what);
    nl_record_add_uint(record, "COUNT", count);
    request_add_text(record, "MEANING", meaning);
    request_put(r, record);
}

nl_status control_drops(request *r, const nl_record *asked)
{
    (void)asked;
    const subscription_counts live = subscriptions_count();
    uint64_t unwritten = 0, undecided = 0, unsearched = 0;
    for (size_t i = 0; outputs_get(i) != NULL; i++) {
        unwritten += output_get_counts(outputs_get(i))->unwritten;
        undecided += output_get_counts(outputs_get(i))->undecided;
        unsearched += output_get_counts(outputs_get(i))->unsearched;
    }
    put_drop(r, "malformed", counts_get(COUNT_MALFORMED), "pieces of malformed input");
    put_drop(r, "lost", gaps_count_lost(),
             "records missing from clients' numbered streams: dropped by the client, or not received within 5 s");
    put_drop(r, "refused", counts_get(COUNT_REFUSED),
             "connections rejected because of their network, a limit or TLS, and datagrams from networks that are not "
             "allowed");
    put_drop(r, "displaced", counts_get(COUNT_DISPLACED), "silent connections closed to admit new clients");
    put_drop(r, "streams", counts_get(COUNT_STREAMS_REFUSED), "blocks rejected because clients began too many streams");
    put_drop(r, "gaps", counts_get(COUNT_GAPS_REFUSED),
             "blocks rejected because their streams have too many gaps; the clients keep these blocks");
    put_drop(r, "foreign", counts_get(COUNT_FOREIGN), "connections of other protocols, such as HTTP");
    put_drop(r, "over-rate", counts_get(COUNT_OVER_RATE),
             "datagrams dropped because they exceed max-rate or cause too much work");
    put_drop(r, "unread", counts_get(COUNT_UNREAD), "datagrams that the kernel dropped because netlogd was too slow");
    put_drop(r, "cut", counts_get(COUNT_CUT_OFF), "connections closed because clients used too much memory");
    put_drop(r, "unwritten", unwritten, "records too large for an output's format");
    put_drop(r, "undecided", undecided,
             "records that an output stored without evaluating its where= expression, which costs too much");
    put_drop(r, "unsearched", unsearched,
             "old files deleted although keep_where= had not kept their requests, because netlogd was too slow");
    put_drop(r, "costly", live.costly, "subscribers disconnected because their WHERE expression costs too much");
    put_drop(r, "failed", counts_get(COUNT_REQUESTS_FAILED), "rejected requests");
    put_drop(r, "missed", live.missed, "records that subscribers missed because they were too slow");
    return done(r);
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

nl_status control_settings(request *r, const nl_record *asked)
{
    (void)asked;
    char scratch[NL_OPTION_TEXT_SIZE];
    const char *value;
    for (const nl_option *row = settings_rows; row->name != NULL; row++) {
        if (strcmp(row->name, "output") == 0) /* the URLs of outputs may contain passwords; the targets below do not */
            continue;
        for (size_t i = 0; (value = nl_option_get_at(row, server_settings(), i, scratch)) != NULL; i++)
            put_setting(r, row->name, NULL, NULL, value);
    }
    for (size_t i = 0; outputs_get(i) != NULL; i++) {
        const output_options *options = output_get_options(outputs_get(i));
        put_setting(r, "output", NULL, NULL, options->target);
        put_url_settings(r, options, output_rows);
        put_url_settings(r, options, options->kind->deliver != NULL ? output_spool_rows : output_file_rows);
    }
    return done(r);
}

nl_status control_reload(request *r, const nl_record *asked)
{
    (void)asked;
    return reload() == NL_OK ? done(r) : NL_FAILED;
}

static void tell_client(connection *c, void *user)
{
    *(size_t *)user += connection_send_activation(c);
}

nl_status control_tell(request *r, const nl_record *asked)
{
    char command[COMMAND_MAX], prog[PROG_MAX] = "*";
    nl_field field;
    size_t told = 0;
    if (!nl_record_find(asked, "COMMAND", &field))
        return nl_error_set(NL_ERROR_INVALID, "tell requires COMMAND=");
    if (request_get_value(asked, "COMMAND", command, sizeof command) != NL_OK ||
        request_get_value(asked, "PROG", prog, sizeof prog) != NL_OK || activation_tell(prog, command) != NL_OK)
        return NL_FAILED;
    connections_visit(tell_client, &told);
    nl_write(server_log(), NL_USAGE, "Netlogd.Tell", "PROG=%s COMMAND=%s CLIENTS=%zu", prog, command, told);
    nl_record *record = request_record(r, NL_USAGE, "Netlogd.Told");
    nl_record_add_uint(record, "CLIENTS", told);
    request_put(r, record);
    return done(r);
}
