#include "config.h"

#include "reload.h"

#include "accepting.h"
#include "confined.h"
#include "connection.h"
#include "base/error.h"
#include "program/program.h"
#include "request.h"
#include "subscription.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first reasons are kept for who asked. */
static void reload_keep(server *srv, const char *message)
{
    size_t had = strlen(srv->reload_failure);
    snprintf(srv->reload_failure + had, sizeof srv->reload_failure - had, "%s%s", had > 0 ? "; " : "", message);
}

static void reload_report(void *user, const char *message)
{
    server *srv = user;
    reload_keep(srv, message);
    program_error("%s", message);
    nl_write(srv->log, NL_ERROR, "Netlogd.ReloadRefused", "REASON=%s", message);
}

static bool reload_refuse(server *srv, const char *what, const char *reason)
{
    char message[512];
    snprintf(message, sizeof message, "%.300s: %s", what, reason);
    reload_report(srv, message);
    return false;
}

/* What asked becomes; NULL when nobody is to connect there any more. */
static const listening *reload_find(const settings *s, const listening *asked)
{
    for (size_t i = 0; i < s->listen_count; i++)
        if (strcmp(s->listen[i].url, asked->url) == 0)
            return &s->listen[i];
    return NULL;
}

/* Whether now listens where the running process does, which it was given the right to at its start. */
static bool listens_alike(server *srv, const settings *now)
{
    static const char reason[] = "the addresses change only when netlogd restarts";
    for (size_t i = 0; i < now->listen_count; i++)
        if (reload_find(srv->settings, &now->listen[i]) == NULL)
            return reload_refuse(srv, now->listen[i].url, reason);
    for (size_t i = 0; i < srv->settings->listen_count; i++)
        if (reload_find(now, &srv->settings->listen[i]) == NULL)
            return reload_refuse(srv, srv->settings->listen[i].url, reason);
    return true;
}

/* Somebody whom neither a network nor a certificate lets in must not get in by a change. */
static bool is_guarded(server *srv, const settings *now)
{
    for (size_t i = 0; i < srv->listener_count; i++)
        if (srv->sockets[i].remote && now->allow.count == 0 && !reload_find(now, srv->sockets[i].asked)->authenticated)
            return reload_refuse(srv, srv->sockets[i].asked->url,
                                 "that is open to other machines, and no network is allowed");
    return true;
}

static bool take_over(server *srv, const settings *now)
{
    const nl_option *fixed = nl_options_fixed_difference(settings_rows, srv->settings, now);
    if (fixed != NULL)
        return reload_refuse(srv, fixed->name, "it changes only when netlogd restarts");
    if (!listens_alike(srv, now) || !is_guarded(srv, now))
        return false;
    const char *elsewhere = confined_forbids(now);
    if (elsewhere != NULL)
        return reload_refuse(srv, elsewhere, nl_error_message());
    /* The last of all: it is what changes something. */
    if (outputs_change(srv->outputs, now->outputs, now->output_count, srv->log) == NL_OK)
        return true;
    reload_report(srv, nl_error_message());
    return false;
}

static void change_settings(connection *c, void *user)
{
    (void)user;
    connection_settings_changed(c);
}

bool reload(server *srv)
{
    srv->reload_failure[0] = '\0';
    settings *now = srv->read_settings(srv->read_user, reload_report, srv);
    if (now == NULL || !take_over(srv, now)) {
        settings_delete(now);
        program_error("the configuration is not changed");
        return false;
    }
    for (size_t i = 0; i < srv->listener_count; i++)
        srv->sockets[i].asked = reload_find(now, srv->sockets[i].asked);
    settings_delete(srv->reloaded);
    srv->settings = srv->reloaded = now;
    accepting_settings_changed(srv);
    subscriptions_outputs_changed(srv->subscriptions);
    connections_visit(srv->connections, change_settings, NULL);
    for (request *r = srv->requests, *next; r != NULL; r = next) {
        next = r->next;
        request_settings_changed(r);
    }
    nl_set_level(srv->log, now->level);
    nl_write(srv->log, NL_USAGE, "Netlogd.Reload", "LISTEN.COUNT=%zu", now->listen_count);
    return true;
}
