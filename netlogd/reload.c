#include "config.h"

#include "reload.h"

#include "accepting.h"
#include "base/error.h"
#include "base/monotonic.h"
#include "confined.h"
#include "connection.h"
#include "connections.h"
#include "otlp_client.h"
#include "output/outputs.h"
#include "program/program.h"
#include "request.h"
#include "server.h"
#include "service/inherited.h"
#include "subscription.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints and logs a problem, and appends it to `user`, which is an nl_error. */
static void report_problem(void *user, const char *message)
{
    nl_error *problems = user;
    size_t length = strlen(problems->message);
    problems->code = NL_ERROR_INVALID;
    snprintf(problems->message + length, sizeof problems->message - length, "%s%s", length > 0 ? "; " : "", message);
    program_error("%s", message);
    nl_write(server_log(), NL_ERROR, "Netlogd.ReloadRefused", "REASON=%s", message);
}

static nl_status check_addresses(const settings *from, const settings *to)
{
    for (size_t i = 0; i < from->listen_count; i++)
        if (settings_find_listening(to, from->listen[i].url) == NULL)
            return nl_error_set(NL_ERROR_INVALID, "%.300s: a reload cannot change the addresses; restart netlogd",
                                from->listen[i].url);
    return NL_OK;
}

/* Checks the new settings, and then changes the outputs. */
static nl_status change_outputs(const settings *now)
{
    const settings *before = server_settings();
    const nl_option *fixed = nl_options_fixed_difference(settings_rows, before, now);
    if (fixed != NULL)
        return nl_error_set(NL_ERROR_INVALID, "%s: a reload cannot change this setting; restart netlogd", fixed->name);
    if (check_addresses(now, before) != NL_OK || check_addresses(before, now) != NL_OK ||
        accepting_check_settings(now) != NL_OK || confined_check(now) != NL_OK)
        return NL_FAILED;
    return outputs_change(now->outputs, now->output_count, server_log());
}

static void change_connection(connection *c, void *user)
{
    (void)user;
    connection_settings_changed(c);
}

static void put_in_force(settings *now)
{
    accepting_change_settings(now);
    server_replace_settings(now);
    subscriptions_outputs_changed();
    connections_visit(change_connection, NULL);
    otlp_clients_settings_changed();
    requests_settings_changed();
    nl_set_level(server_log(), now->level);
    nl_write(server_log(), NL_USAGE, "Netlogd.Reload", "LISTEN.COUNT=%zu", now->listen_count);
}

static nl_status read_settings(void)
{
    nl_error problems = {0};
    settings *now = server_read_again(report_problem, &problems);
    if (now != NULL && change_outputs(now) == NL_OK) {
        put_in_force(now);
        return NL_OK;
    }
    if (now != NULL)
        report_problem(&problems, nl_error_message());
    settings_delete(now);
    program_error("netlogd keeps the old configuration");
    return nl_error_restore(&problems);
}

nl_status reload(void)
{
    if (server_is_ending())
        return nl_error_set(NL_ERROR_BUSY, "netlogd is shutting down");
    char state[64];
    snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, nl_monotonic_ns() / 1000);
    inherited_notify(state);
    nl_status status = read_settings();
    inherited_notify("READY=1");
    nl_error problems;
    nl_error_save(&problems);
    if (outputs_reopen() != NL_OK) {
        program_error("%s; netlogd continues with the old file", nl_error_message());
        nl_error_save(&problems);
        status = NL_FAILED;
    }
    for (size_t i = 0; outputs_get(i) != NULL; i++)
        nl_write(server_log(), NL_USAGE, "Netlogd.Reopen", "FILE=%s", output_get_options(outputs_get(i))->target);
    return status == NL_OK ? NL_OK : nl_error_restore(&problems);
}
