/* nlagentd: runs sensors when somebody looks. Options, and what is there as long as it runs. */
#include "config.h"

#include "agent/access.h"
#include "agent/agent.h"
#include "agent/collections.h"
#include "agents/directory.h"
#include "agent/http_clients.h"
#include "agent/http_server.h"
#include "agent/registrar.h"
#include "agent/settings.h"
#include "agent/starter.h"
#include "program/message_output.h"
#include "program/program.h"
#include "service/confine.h"
#include "service/daemon.h"
#include "service/http_host.h"
#include "service/inherited.h"
#include "service/listener.h"
#include "base/clock_quality.h"
#include "base/memory.h"

#include <errno.h>
#include <libxml/parser.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SERVERS_MAX = SETTINGS_LISTEN_MAX * 4,
    CLOCK_S = 1,
    CLOCK_LOOKS = 60 /* of these a look at this host's clock */
};

typedef struct arguments {
    int argc;
    char **argv;
    agent_settings *settings;
    definitions *sensors;
} arguments;

static const options_usage usage = {
    .groups = (const options_group[]){{NULL, agent_settings_command_rows, 0},
                                      {"Settings, which the configuration file may have too", agent_settings_rows, 0},
                                      {0}},
    .urls = (const options_group[]){{"Options of listeners with TLS", listening_tls_rows, 0},
                                    {"Options of all listeners", listening_names_rows, 0},
                                    {0}},
    .summary = "Run sensors of this host for as long as clients read their data. Clients are "
               "nlagent, or any program that speaks SOAP (nlagent.wsdl).",
    .notes = "On SIGHUP, nlagentd reads the configuration, the access file and certificates again; they take "
             "effect if they are valid. On SIGTERM, it ends all sensors and itself."};

/* Into a->settings. Returns false after reporting the problem. */
static bool main_read_arguments(arguments *a, config_report report, void *report_user)
{
    agent_settings *s = a->settings;
    s->config.report = report;
    s->config.user = report_user;
    bool good = options_parse_again(&usage, a->argc, a->argv, s, report, report_user) >= 0 && !s->config.failed;
    if (!good || agent_settings_finish(s))
        return good;
    if (report == NULL)
        options_fail("%s", nl_error_message());
    report(report_user, nl_error_message());
    return false;
}

/* ---- running ---- */

static void on_stop(evutil_socket_t signal, short what, void *user)
{
    (void)signal, (void)what;
    event_base_loopbreak(user);
}

/* Says in the log, a minute at the latest after it came about, that this host's clock is not synchronized, or is again.
 */
static void look_at_clock(agent *a)
{
    bool synchronized;
    if (a->log == NULL || a->clock_looks++ % CLOCK_LOOKS != 0)
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
    look_at_clock(a);
    for (char call[CONFINE_CALL_SIZE]; confine_report_refused(call);)
        nl_write(a->log, NL_WARNING, "Nlagentd.CallRefused", "CALL=%s", call);
    if (a->directory != NULL)
        directory_expire(a->directory);
}

/* A file that is shipped: of a build or installed. NULL when it is not there. */
static char *read_shipped(const char *name)
{
    char path[4096];
    const char *const folders[] = {PKGDATADIR, SOURCE_DOC};
    nl_buffer text = {0};
    FILE *file = NULL;
    for (size_t i = 0; i < 2 && file == NULL; i++) {
        snprintf(path, sizeof path, "%s/%s", folders[i], name);
        file = fopen(path, "re");
    }
    for (int c; file != NULL && (c = getc(file)) != EOF;)
        nl_buffer_append(&text, &(char){(char)c}, 1);
    if (file == NULL)
        return NULL;
    fclose(file);
    nl_buffer_append(&text, "", 1);
    return text.data;
}

static bool open_listeners(const agent_settings *a, listener **listeners, size_t *count)
{
    for (size_t i = 0; i < a->listen_count; i++)
        if (!listener_open(&a->listen[i], a->allow.count > 0, listeners, count)) {
            program_error("%s", nl_error_message());
            return false;
        }
    for (size_t i = 0; i < *count; i++) {
        const char *rest = strstr((*listeners)[i].name, "://");
        const char *scheme = (*listeners)[i].asked->tls != NULL ? "https" : "http";
        fprintf(stderr, "nlagentd: listening on %s%s\n", rest != NULL ? scheme : "",
                rest != NULL ? rest : (*listeners)[i].name);
    }
    return true;
}

/* Where others find an agent that listens there: by this host's name when that is on all addresses. NULL: a socket in
 * the file system, of which others know nothing. */
static char *url_of(const listener *l, const char *host)
{
    char text[600];
    const char *rest = strstr(l->name, "://"), *scheme = l->asked->tls != NULL ? "https" : "http";
    if (rest == NULL)
        return NULL;
    bool everywhere = strncmp(rest, "://0.0.0.0:", 11) == 0 || strncmp(rest, "://[::]:", 8) == 0;
    if (everywhere)
        snprintf(text, sizeof text, "%s://%s%s", scheme, host, strrchr(rest, ':'));
    else
        snprintf(text, sizeof text, "%s%s", scheme, rest);
    return strdup(text);
}

/* What was said, or of the first listener that has some; NULL: none has. To be freed. */
static char *own_url(const agent_settings *s, const char *host, const listener *listeners, size_t count)
{
    char *url = s->url != NULL ? strdup(s->url) : NULL;
    for (size_t i = 0; i < count && url == NULL; i++)
        url = url_of(&listeners[i], host);
    return url;
}

/* nlagentd itself reports what is wrong. */
static void ignore_report(void *user, const char *message)
{
    (void)user, (void)message;
}

/* In the process that starts sensors. */
static void reread_sensors(void *user)
{
    arguments again = *(const arguments *)user;
    again.settings = agent_settings_new();
    if (main_read_arguments(&again, ignore_report, NULL))
        definitions_set_own(again.sensors, again.settings->sensors);
    agent_settings_free(again.settings);
}

static bool prepare(agent *a, arguments *from)
{
    const agent_settings *given = from->settings;
    a->limits = given->limits;
    a->matching = condition_new_budget();
    if (given->host != NULL)
        snprintf(a->host, sizeof a->host, "%s", given->host);
    else
        program_host(a->host, sizeof a->host);
    setenv("NETLOGGER_HOST", a->host, 1);
    definitions_init(&a->definitions, given->sensor_program);
    definitions_set_own(&a->definitions, given->sensors);
    a->access = access_read(given->access);
    if (a->access == NULL) {
        program_error("%s", nl_error_message());
        return false;
    }
    char *client = collections_client_path();
    from->sensors = &a->definitions;
    const starter_options starting = {&a->definitions, reread_sensors, from, client, given->confine};
    bool started = starter_begin(&starting);
    free(client);
    if (!started)
        return false;
    a->base = nl_memory_check(event_base_new());
    if (given->is_directory)
        a->directory = directory_new();
    return true;
}

/* ---- SIGHUP ---- */

/* What serves as long as the agent runs. */
typedef struct serving {
    agent *agent;
    arguments *given;           /* its settings are those that hold */
    agent_settings *begun_with; /* to which the registrar's options point as long as it runs: they cannot change */
    const listener *listeners;
    http_server *servers[SERVERS_MAX];
    size_t count;
    registrar *registrar; /* NULL: it registers nowhere */
} serving;

static void report_refused(void *user, const char *message)
{
    const serving *s = user;
    program_error("%s", nl_error_message());
    nl_write(s->agent->log, NL_ERROR, "Nlagentd.ReloadRefused", "REASON=%s", message);
}

/* What asked becomes: both have the same listeners, in the same order. */
static const listening *main_find(const agent_settings *before, const agent_settings *now, const listening *asked)
{
    return &now->listen[asked - before->listen];
}

static bool may_change(serving *s, const agent_settings *now)
{
    char message[300];
    const char *fixed = agent_settings_fixed_difference(s->given->settings, now);
    if (fixed != NULL) {
        snprintf(message, sizeof message, "%s: it changes when nlagentd is started anew only", fixed);
        report_refused(s, message);
        return false;
    }
    /* Somebody whom neither a network nor a certificate lets in must not get in by a change. */
    for (size_t i = 0; i < s->count; i++)
        if (s->listeners[i].remote && now->allow.count == 0 &&
            !main_find(s->given->settings, now, s->listeners[i].asked)->authenticated) {
            report_refused(s, "listen: that is open to other machines, and no network is allowed");
            return false;
        }
    return true;
}

static bool take_over(serving *s, agent_settings *now)
{
    if (!may_change(s, now))
        return false;
    if (now->access != NULL && !confine_keep_file(now->access, CONFINE_READ)) {
        report_refused(s, nl_error_message());
        return false;
    }
    access_list *access = access_read(now->access);
    if (access == NULL) {
        report_refused(s, nl_error_message());
        return false;
    }
    agent *a = s->agent;
    access_free(a->access);
    a->access = access;
    a->limits = now->limits;
    http_clients_limits_changed(a->clients);
    definitions_set_own(&a->definitions, now->sensors);
    starter_reread();
    for (size_t i = 0; i < s->count; i++) {
        listener *l = (listener *)&s->listeners[i];
        l->asked = main_find(s->given->settings, now, l->asked);
        http_server_change(s->servers[i], l, &now->allow);
    }
    http_clients_networks_changed(a->clients);
    registrar_again(s->registrar);
    return true;
}

static void on_reload(evutil_socket_t signal, short what, void *user)
{
    (void)signal, (void)what;
    serving *s = user;
    arguments again = *s->given;
    again.settings = agent_settings_new();
    inherited_notify("RELOADING=1");
    bool good = main_read_arguments(&again, report_refused, s) && take_over(s, again.settings);
    agent_settings *over = good ? s->given->settings : again.settings;
    if (good) {
        s->given->settings = again.settings;
        nl_write(s->agent->log, NL_USAGE, "Nlagentd.Reload", "SENSORS=%zu", again.settings->sensor_count);
    } else {
        program_error("the configuration is not changed");
    }
    if (over != s->begun_with)
        agent_settings_free(over);
    inherited_notify("READY=1");
}

/* What comes before all is there waits until it is. */
static void hold_signals(int how)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(how, &set, NULL);
}

/* Registers as url where that was asked for. Returns false after reporting the problem. */
static bool begin_registering(serving *s, const char *url)
{
    const agent_settings *said = s->given->settings;
    if (said->directory == NULL)
        return true;
    if (url == NULL) {
        program_error("--register: --url is wanted, for this agent listens on no address where others find it");
        return false;
    }
    registrar_options registering = agent_settings_registrar(said);
    registering.host = s->agent->host;
    registering.url = url;
    s->registrar = registrar_start(&registering, &s->agent->definitions, s->agent->log);
    if (s->registrar == NULL)
        program_error("--register: %s", nl_error_message());
    return s->registrar != NULL;
}

/* NULL: it has none. Standard error is redirected in the background, and the log must not hold it. */
static nl_log *main_open_log(const agent_settings *s)
{
    if (daemon_has_no_streams() && strcmp(s->log, "file:///dev/stderr") == 0)
        return NULL;
    nl_log *log = nl_open("nlagentd", s->log);
    if (log == NULL)
        program_error("cannot open the log of nlagentd's own events: %s", nl_error_message());
    return log;
}

/* Call it before there are threads, which inherit it: the log has one. */
static void confine_and_open_log(agent *a, const agent_settings *said)
{
    char not_confined[200] = "";
    agent_settings_keep(said);
    if (said->confine && !confine()) {
        snprintf(not_confined, sizeof not_confined, "%s", nl_error_message());
        program_error("%s", not_confined);
    }
    a->log = main_open_log(said);
    nl_set_policy(a->log, NL_POLICY_NEWEST, 0, NL_LEVEL_NONE); /* its reader must not hold up the clients */
    nl_set_idle(a->log, NL_NS_PER_SECOND);
    if (not_confined[0] != '\0')
        nl_write(a->log, NL_WARNING, "Nlagentd.NotConfined", "REASON=%s", not_confined);
}

/* The loop, and what comes to its end with it. */
static int serve(agent *a, arguments *given, listener *listeners, size_t count)
{
    char *wsdl = read_shipped("nlagent.wsdl"), *schema = read_shipped("netlogger.xsd");
    agent_settings *said = given->settings;
    char *url = own_url(said, a->host, listeners, count);
    confine_and_open_log(a, said);
    serving s = {.agent = a,
                 .given = given,
                 .begun_with = said,
                 .listeners = listeners,
                 .count = count < SERVERS_MAX ? count : SERVERS_MAX};
    struct event *signals[] = {evsignal_new(a->base, SIGTERM, on_stop, a->base),
                               evsignal_new(a->base, SIGINT, on_stop, a->base),
                               evsignal_new(a->base, SIGHUP, on_reload, &s)};
    a->clients = http_clients_new(a);
    http_host_look_up();
    a->collections = collections_new(a);
    collections_set_directory(a->collections, said->is_directory ? url : said->directory);
    for (size_t i = 0; i < s.count; i++)
        s.servers[i] =
            http_server_new(a, &listeners[i], wsdl != NULL ? wsdl : "", schema != NULL ? schema : "", &said->allow);
    a->clock = event_new(a->base, -1, EV_PERSIST, on_clock, a);
    event_add(a->clock, &(struct timeval){.tv_sec = CLOCK_S});
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        event_add(signals[i], NULL);
    hold_signals(SIG_UNBLOCK);
    bool good = begin_registering(&s, url);
    inherited_notify("READY=1");
    if (good) {
        daemon_ready();
        event_base_dispatch(a->base);
    }
    inherited_notify("STOPPING=1");
    bool left = !registrar_stop(s.registrar);
    for (size_t i = 0; i < s.count; i++)
        http_server_free(s.servers[i]);
    http_clients_free(a->clients);
    while (a->subscriptions != NULL)
        subscription_free(a->subscriptions);
    collections_free(a->collections);
    active_free_all(a);
    process_reap_all();
    if (left) { /* a thread uses what would be freed from here on */
        nl_close(a->log);
        _exit(program_finish(PROGRAM_DONE));
    }
    event_free(a->clock);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        event_free(signals[i]);
    if (given->settings != said)
        agent_settings_free(said);
    free(url);
    free(wsdl);
    free(schema);
    return good ? PROGRAM_DONE : PROGRAM_USAGE;
}

int main(int argc, char **argv)
{
    program_start("nlagentd");
    inherited_find();
    arguments given = {.argc = argc, .argv = argv, .settings = agent_settings_new()};
    static agent a;
    main_read_arguments(&given, NULL, NULL);
    if (!given.settings->foreground)
        daemon_detach(false);
    hold_signals(SIG_BLOCK);
    signal(SIGPIPE, SIG_IGN);
    xmlInitParser();
    listener *listeners = NULL;
    size_t count = 0;
    int result = PROGRAM_USAGE;
    if (prepare(&a, &given)) {
        result = PROGRAM_PROBLEM;
        if (open_listeners(given.settings, &listeners, &count)) {
            message_output_never_wait();
            result = serve(&a, &given, listeners, count);
            message_output_report_dropped(program_get_name());
            nl_close(a.log);
        }
        for (size_t i = 0; i < count; i++)
            free(listeners[i].name);
        free(listeners);
        event_base_free(a.base);
    }
    directory_free(a.directory);
    access_free(a.access);
    definitions_free(&a.definitions);
    agent_settings_free(given.settings);
    xmlCleanupParser();
    return program_finish(result);
}
