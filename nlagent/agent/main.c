/* nlagentd: runs sensors while clients read the measurements. This file handles options, start, reload and exit. */
#include "config.h"

#include "agent/access.h"
#include "agent/agent.h"
#include "agent/collections.h"
#include "agent/http_clients.h"
#include "agent/http_server.h"
#include "agent/reflector.h"
#include "agent/registrar.h"
#include "agent/settings.h"
#include "agent/starter.h"
#include "agents/directory.h"
#include "base/clock_quality.h"
#include "base/error.h"
#include "base/memory.h"
#include "program/message_output.h"
#include "program/own_log.h"
#include "program/program.h"
#include "service/confine.h"
#include "service/daemon.h"
#include "service/http_host.h"
#include "service/inherited.h"
#include "service/listener.h"

#include <libxml/parser.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SERVERS_MAX = SETTINGS_LISTEN_MAX * 4, CLOCK_CHECK_S = 60 };

/* The objects that live as long as the program. */
typedef struct serving {
    agent agent;
    int argc;
    char **argv;
    agent_settings *settings;         /* the current settings */
    const agent_settings *registered; /* the settings that the registrar uses, and which it must not outlive */
    listener *listeners;
    http_server *servers[SERVERS_MAX];
    size_t count;
    registrar *registrar; /* NULL: no registration */
    reflector *reflector; /* NULL: no reflection */
} serving;

static const options_usage usage = {
    .groups = (const options_group[]){{NULL, agent_settings_command_rows, 0},
                                      {"Settings, also valid in the configuration file", agent_settings_rows, 0},
                                      {0}},
    .file_rows = agent_settings_rows,
    .urls = (const options_group[]){{"Options of listeners with TLS", listening_tls_rows, 0},
                                    {"Options of all listeners", listening_names_rows, 0},
                                    {0}},
    .summary = "Run sensors of this host while clients read the measurements. Clients are nlagent, nlv, or any program "
               "that uses SOAP (nlagent.wsdl).",
    .notes = "On SIGHUP, nlagentd reads the configuration, the access file and the certificates again, and applies "
             "them if they are valid. On SIGTERM, nlagentd stops all sensors and exits."};

/* Returns the settings from the command line and the configuration file. On failure, reports the problem and returns
 * NULL. */
static agent_settings *read_settings(const serving *s, config_report report, void *report_user)
{
    agent_settings *settings = agent_settings_new();
    settings->config.report = report;
    settings->config.user = report_user;
    bool good =
        options_parse_again(&usage, s->argc, s->argv, settings, report, report_user) >= 0 && !settings->config.failed;
    if (good && agent_settings_finish(settings))
        return settings;
    if (report == NULL)
        options_fail("%s", nl_error_message());
    if (good)
        report(report_user, nl_error_message());
    agent_settings_free(settings);
    return NULL;
}

/* ---- events ---- */

static void on_stop(evutil_socket_t signal, short what, void *user)
{
    (void)signal, (void)what;
    event_base_loopbreak(user);
}

/* Once a minute, checks whether this host's clock is synchronized, and logs a change. */
static void check_clock(agent *a)
{
    bool synchronized;
    if (a->log == NULL || a->clock_checks++ % CLOCK_CHECK_S != 0)
        return;
    nl_record *record = agent_record(a, NL_USAGE, NL_CLOCK_KERNEL);
    if (nl_quality_add_kernel(record, &synchronized) && synchronized == a->clock_warned) {
        nl_record_set_level(record, synchronized ? NL_USAGE : NL_WARNING);
        nl_write_record(a->log, record);
        a->clock_warned = !synchronized;
    }
    nl_record_free(record);
}

static void on_clock(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    agent *a = user;
    process_reap();
    http_clients_sweep(a->clients);
    subscriptions_sweep(a);
    active_sweep(a);
    check_clock(a);
    for (char call[CONFINE_CALL_SIZE]; confine_report_refused(call);)
        nl_write(a->log, NL_WARNING, "Nlagentd.CallRefused", "CALL=%s", call);
    if (a->directory != NULL)
        directory_expire(a->directory);
}

/* ---- reload ---- */

static void report_refused(void *user, const char *message)
{
    const serving *s = user;
    program_error("%s", message);
    nl_write(s->agent.log, NL_ERROR, "Nlagentd.ReloadRefused", "REASON=%s", message);
}

/* Returns the settings in `now` of a listener whose current settings are `before`. `now` must have the same listeners
 * as the current settings, in the same order. */
static const listening *find_listening(const serving *s, const agent_settings *now, const listening *before)
{
    return &now->listen[before - s->settings->listen];
}

/* Returns whether a reload may apply the settings. If not, sets the error. */
static bool may_change(const serving *s, const agent_settings *now)
{
    const char *fixed = agent_settings_fixed_difference(s->settings, now);
    if (fixed != NULL)
        return nl_error_false(NL_ERROR_INVALID, "%s: a reload cannot change this setting; restart nlagentd", fixed);
    if ((now->reflect.count > 0) != (s->reflector != NULL))
        return nl_error_false(NL_ERROR_INVALID, "reflect: a reload cannot begin or end reflection; restart nlagentd");
    for (size_t i = 0; i < s->count; i++)
        if (s->listeners[i].remote && now->allow.count == 0 &&
            !find_listening(s, now, s->listeners[i].asked)->authenticated)
            return listener_reject_open(find_listening(s, now, s->listeners[i].asked));
    return now->access == NULL || confine_keep_file(now->access, CONFINE_READ);
}

/* Applies the settings, and takes ownership of them. On failure, changes nothing, leaves the ownership with the caller,
 * sets the error and returns false. */
static bool apply_settings(serving *s, agent_settings *now)
{
    agent *a = &s->agent;
    access_list *access = may_change(s, now) ? access_read(now->access) : NULL;
    if (access == NULL)
        return false;
    access_free(a->access);
    a->access = access;
    a->limits = now->limits;
    a->settings = now;
    http_clients_limits_changed(a->clients);
    definitions_set_own(&a->definitions, now->sensors);
    starter_reread();
    for (size_t i = 0; i < s->count; i++) {
        s->listeners[i].asked = find_listening(s, now, s->listeners[i].asked);
        http_server_change(s->servers[i], &s->listeners[i], &now->allow);
    }
    http_clients_networks_changed(a->clients);
    reflector_change(s->reflector, &now->reflect);
    registrar_again(s->registrar);
    if (s->settings != s->registered)
        agent_settings_free(s->settings);
    s->settings = now;
    return true;
}

static void on_reload(evutil_socket_t signal, short what, void *user)
{
    (void)signal, (void)what;
    serving *s = user;
    inherited_notify("RELOADING=1");
    agent_settings *now = read_settings(s, report_refused, s);
    if (now != NULL && apply_settings(s, now)) {
        nl_write(s->agent.log, NL_USAGE, "Nlagentd.Reload", "SENSORS=%zu", now->sensor_count);
    } else if (now != NULL) {
        report_refused(s, nl_error_message());
        agent_settings_free(now);
    }
    inherited_notify("READY=1");
}

/* Does nothing, because the main nlagentd process reports the problems. */
static void ignore_report(void *user, const char *message)
{
    (void)user, (void)message;
}

/* Reads the configured sensors again, in the process that starts sensors. */
static void reread_sensors(void *user)
{
    serving *s = user;
    agent_settings *now = read_settings(s, ignore_report, NULL);
    if (now != NULL)
        definitions_set_own(&s->agent.definitions, now->sensors);
    agent_settings_free(now);
}

/* ---- start and end ---- */

/*
 * Returns the content of an installed file, or of the same file in the source tree, or "". The caller frees the
 * content.
 */
static char *read_installed(const char *name)
{
    static const char *const directories[] = {PKGDATADIR, SOURCE_DOC};
    char *text = NULL;
    size_t capacity = 0;
    FILE *file = NULL;
    for (size_t i = 0; i < 2 && file == NULL; i++) {
        char *path = program_format("%s/%s", directories[i], name);
        file = fopen(path, "re");
        free(path);
    }
    if (file == NULL || getdelim(&text, &capacity, '\0', file) < 0) {
        free(text);
        text = program_copy("");
    }
    if (file != NULL)
        fclose(file);
    return text;
}

/* Returns a listener's URL. If the listener listens on all addresses and `host` is not NULL, the URL contains `host`.
 * Returns NULL for a Unix socket. The caller frees the URL. */
static char *listener_url(const listener *l, const char *host)
{
    const char *rest = strstr(l->name, "://"), *scheme = l->asked->tls != NULL ? "https" : "http";
    if (rest == NULL)
        return NULL;
    bool everywhere = strncmp(rest, "://0.0.0.0:", 11) == 0 || strncmp(rest, "://[::]:", 8) == 0;
    if (everywhere && host != NULL)
        return program_format("%s://%s%s", scheme, host, strrchr(rest, ':'));
    return program_format("%s%s", scheme, rest);
}

/* Opens the reflector if it is configured. On failure, reports the problem and returns false. */
static bool open_reflector(serving *s)
{
    if (s->settings->reflect.count == 0)
        return true;
    s->reflector = reflector_open((uint16_t)s->settings->reflect_port);
    if (s->reflector == NULL)
        program_error("--reflect: %s", nl_error_message());
    return s->reflector != NULL;
}

static bool open_listeners(serving *s)
{
    for (size_t i = 0; i < s->settings->listen_count; i++)
        if (!listener_open(&s->settings->listen[i], s->settings->allow.count > 0, &s->listeners, &s->count)) {
            program_print_error();
            return false;
        }
    for (size_t i = 0; i < s->count; i++) {
        char *url = listener_url(&s->listeners[i], NULL);
        fprintf(stderr, "nlagentd: listening on %s\n", url != NULL ? url : s->listeners[i].name);
        free(url);
    }
    if (s->reflector != NULL)
        fprintf(stderr, "nlagentd: reflecting probes on port %d\n", (int)s->settings->reflect_port);
    s->count = s->count < SERVERS_MAX ? s->count : SERVERS_MAX;
    return true;
}

/* Returns the URL that other hosts should use for this agent: the configured URL or, without a configured URL, the URL
 * of the first listener that is not a Unix socket. Returns NULL if there is no such URL. The caller frees the URL. */
static char *find_own_url(const serving *s)
{
    char *url = s->settings->url != NULL ? program_copy(s->settings->url) : NULL;
    for (size_t i = 0; i < s->count && url == NULL; i++)
        url = listener_url(&s->listeners[i], s->agent.host);
    return url;
}

/* Prepares the agent and forks the process that starts sensors. On failure, reports the problem and returns false. */
static bool prepare(serving *s)
{
    agent *a = &s->agent;
    const agent_settings *settings = s->settings;
    a->settings = settings;
    a->limits = settings->limits;
    a->matching = condition_new_budget();
    if (settings->host != NULL)
        snprintf(a->host, sizeof a->host, "%s", settings->host);
    else
        program_host(a->host, sizeof a->host);
    setenv("NETLOGGER_HOST", a->host, 1);
    definitions_init(&a->definitions, settings->sensor_program);
    definitions_set_own(&a->definitions, settings->sensors);
    a->access = access_read(settings->access);
    if (a->access == NULL) {
        program_print_error();
        return false;
    }
    char *client = collections_client_path();
    bool started = starter_begin(&(starter_options){&a->definitions, reread_sensors, s, client, settings->confine});
    free(client);
    a->base = started ? nl_memory_check(event_base_new()) : NULL;
    a->directory = settings->is_directory ? directory_new() : NULL;
    return started;
}

static void mask_signals(int how)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(how, &set, NULL);
}

/* If a directory is configured, begins to register with it. On failure, reports the problem and returns false. */
static bool begin_registering(serving *s, const char *url)
{
    const agent_settings *settings = s->settings;
    if (settings->directory == NULL)
        return true;
    if (url == NULL) {
        program_error("--register: other hosts cannot reach the listening addresses; add --url URL");
        return false;
    }
    registrar_options o = agent_settings_registrar(settings);
    o.host = s->agent.host;
    o.url = url;
    s->registrar = registrar_start(&o, &s->agent.definitions, s->agent.log);
    if (s->registrar == NULL)
        program_error("--register: %s", nl_error_message());
    return s->registrar != NULL;
}

/* Opens nlagentd's own log. Does not open standard error in a background process, which has closed standard error. */
static void open_log(serving *s)
{
    agent *a = &s->agent;
    if (daemon_has_no_streams() && strcmp(s->settings->log, "file:///dev/stderr") == 0)
        return;
    a->log = program_open_log("nlagentd", s->settings->log, true);
    if (a->log == NULL)
        program_error("cannot open nlagentd's own log: %s", nl_error_message());
    nl_set_policy(a->log, NL_POLICY_NEWEST, 0, NL_LEVEL_NONE); /* a slow reader of the log must not delay clients */
    nl_set_idle(a->log, NL_NS_PER_SECOND);
}

/* Confines the process and opens the log. Call this function before starting any thread, because threads inherit the
 * confinement. The function opens the log after the confinement, because the log starts a thread. */
static void confine_and_open_log(serving *s)
{
    agent_settings_keep(s->settings);
    char *problem = s->settings->confine && !confine() ? program_copy(nl_error_message()) : NULL;
    if (problem != NULL)
        program_error("%s", problem);
    open_log(s);
    if (problem != NULL)
        nl_write(s->agent.log, NL_WARNING, "Nlagentd.NotConfined", "REASON=%s", problem);
    free(problem);
}

static int serve(serving *s)
{
    agent *a = &s->agent;
    char *wsdl = read_installed("nlagent.wsdl"), *schema = read_installed("netlogger.xsd"), *url = find_own_url(s);
    confine_and_open_log(s);
    struct event *events[] = {
        evsignal_new(a->base, SIGTERM, on_stop, a->base), evsignal_new(a->base, SIGINT, on_stop, a->base),
        evsignal_new(a->base, SIGHUP, on_reload, s), event_new(a->base, -1, EV_PERSIST, on_clock, a)};
    enum { EVENT_COUNT = sizeof events / sizeof events[0], CLOCK = EVENT_COUNT - 1 };
    a->clients = http_clients_new(a);
    http_host_look_up();
    a->collections = collections_new(a, s->settings->is_directory ? url : s->settings->directory);
    for (size_t i = 0; i < s->count; i++)
        s->servers[i] = http_server_new(a, &s->listeners[i], wsdl, schema, &s->settings->allow);
    if (s->reflector != NULL)
        reflector_serve(s->reflector, a->base, &s->settings->reflect);
    const struct timeval second = {.tv_sec = 1};
    for (size_t i = 0; i < EVENT_COUNT; i++)
        event_add(events[i], i == CLOCK ? &second : NULL);
    mask_signals(SIG_UNBLOCK);
    bool good = begin_registering(s, url);
    inherited_notify("READY=1");
    if (good) {
        daemon_ready();
        event_base_dispatch(a->base);
    }
    inherited_notify("STOPPING=1");
    bool ended = registrar_stop(s->registrar);
    for (size_t i = 0; i < s->count; i++)
        http_server_free(s->servers[i]);
    reflector_free(s->reflector);
    http_clients_free(a->clients);
    while (a->subscriptions != NULL)
        subscription_free(a->subscriptions);
    collections_free(a->collections);
    active_free_all(a);
    process_reap_all();
    nl_close(a->log);
    if (!ended) /* exit here, because the registrar's thread still uses the objects that are freed below */
        _exit(program_finish(PROGRAM_DONE));
    for (size_t i = 0; i < EVENT_COUNT; i++)
        event_free(events[i]);
    free(url);
    free(wsdl);
    free(schema);
    return good ? PROGRAM_DONE : PROGRAM_USAGE;
}

int main(int argc, char **argv)
{
    program_start("nlagentd");
    inherited_find();
    static serving s;
    s.argc = argc;
    s.argv = argv;
    s.settings = read_settings(&s, NULL, NULL);
    agent_settings *first = s.settings;
    s.registered = first;
    if (!first->foreground)
        daemon_detach(false);
    mask_signals(SIG_BLOCK);
    signal(SIGPIPE, SIG_IGN);
    xmlInitParser();
    int result = PROGRAM_USAGE;
    if (prepare(&s)) {
        result = PROGRAM_PROBLEM;
        if (open_reflector(&s) && open_listeners(&s)) {
            message_output_never_wait();
            result = serve(&s);
            message_output_report_dropped(program_get_name());
        }
        for (size_t i = 0; i < s.count; i++)
            free(s.listeners[i].name);
        free(s.listeners);
        event_base_free(s.agent.base);
    }
    directory_free(s.agent.directory);
    access_free(s.agent.access);
    definitions_free(&s.agent.definitions);
    if (s.settings != first)
        agent_settings_free(s.settings);
    agent_settings_free(first);
    xmlCleanupParser();
    return program_finish(result);
}
