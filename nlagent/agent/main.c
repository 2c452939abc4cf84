/* nlagentd: runs sensors when somebody looks. Options, and what is there as long as it runs. */
#include "config.h"

#include "agent/access.h"
#include "agent/agent.h"
#include "agent/collections.h"
#include "agent/directory.h"
#include "agent/http_clients.h"
#include "agent/http_server.h"
#include "agent/registrar.h"
#include "agent/settings.h"
#include "program/program.h"
#include "service/confine.h"
#include "service/http_host.h"
#include "service/inherited.h"
#include "service/listener.h"
#include "base/clock_quality.h"

#include <errno.h>
#include <libxml/parser.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPTION_FIRST = 0x1000,
    OPTION_CONFIG = 'c',
    SERVERS_MOST = SETTINGS_LISTEN_MOST * 4,
    CLOCK_S = 1,
    CLOCK_LOOKS = 60 /* of these a look at this host's clock */
};

/* The directives, each an option and a line of the configuration file. */
static const struct {
    const char *name, *argument, *doc;
    int group;
} directives[] = {
    {"listen", "URL",
     "Where to be asked, again and again: http://HOST[:PORT] (port 14831 unless said), "
     "https://HOST[:PORT]?cert=FILE&key=FILE (with &ca=FILE consumers must show certificates that those in it vouch "
     "for), inherited:NAME, a socket that systemd opened. Default http://127.0.0.1",
     1},
    {"allow", "NETWORK", "Who may connect from other machines, again and again: 10.0.0.0/8", 1},
    {"access", "FILE", "Who may do what. Default: everything from this machine, reading for others who may connect", 1},
    {"sensor", "NAME=COMMAND", "A sensor of one's own: what COMMAND prints, again and again", 2},
    {"sensor-program", "FILE", "What runs the sensors that are shipped", 2},
    {"directory", NULL, "Be a directory too, where agents register and are found", 3},
    {"register", "URL", "Register with that directory: http://HOST[:PORT], https://, or ldap://HOST", 3},
    {"register-token", "FILE", "The token to show there, the first line of FILE", 3},
    {"register-ca", "FILE", "Who vouches for that directory, of https", 3},
    {"register-cert", "FILE", "Certificate and key to show there, of https", 3},
    {"ldap-base", "DN", "Of LDAP: below which entry agents are", 3},
    {"ldap-bind", "DN", "Of LDAP: as whom", 3},
    {"ldap-password", "FILE", "Of LDAP: the password, the first line of FILE", 3},
    {"ttl", "SECONDS", "How long a registration holds without being renewed (default 60)", 3},
    {"url", "URL", "What it registers as: where others find this agent (default: the first --listen)", 3},
    {"host", "NAME", "What this host is called (default: $NETLOGGER_HOST, or its name)", 3},
    {"log", "URL", "Where its own events go (default file:///dev/stderr)", 4},
    {"max-sensors", "N", "So many sensors run at once, at most (default 100)", 5},
    {"max-subscriptions", "N", "So many subscriptions there are, at most (default 1000)", 5},
    {"max-per-consumer", "N", "And of one consumer (default 100)", 5},
    {"confine", "yes|no",
     "Give up system calls that neither the agent nor sensors need, and new privileges of sensors (set-user-ID "
     "programs), "
     "by seccomp (default yes)",
     5},
    {"max-connections", "N",
     "How many clients may be connected; one more takes the place of the one that has been silent for the longest, of "
     "the "
     "address that has most (default 2000)",
     5},
    {"max-per-address", "N", "And of one address, or IPv6 network of 64 bits (default 1000)", 5},
    {"queue", "N", "So many records wait for a slow consumer, at most (default 2000)", 5},
    {"least-interval", "SECONDS", "No sensor looks more often (default 0.01)", 5},
};

enum { DIRECTIVE_COUNT = sizeof directives / sizeof directives[0] };

typedef struct arguments {
    int argc;
    char **argv;
    agent_settings *settings;
    config_report report; /* while the agent runs; NULL at its start, when what is wrong ends it */
    void *report_user;
} arguments;

static void report_at_start(void *unused, const char *message)
{
    (void)unused;
    program_error("%s", message);
}

static const char *set_directive(void *settings, const char *name, const char *value)
{
    return agent_settings_set(settings, name, value);
}

static error_t read_config(arguments *a, const char *path)
{
    if (config_file_read(path, set_directive, a->settings, a->report != NULL ? a->report : report_at_start,
                         a->report_user))
        return 0;
    if (a->report == NULL)
        exit(PROGRAM_USAGE);
    return EINVAL;
}

static error_t refuse_option(arguments *a, const char *message, struct argp_state *state)
{
    if (a->report == NULL)
        argp_error(state, "%s", message);
    else
        a->report(a->report_user, message);
    return EINVAL;
}

static error_t set(arguments *a, const char *name, const char *value, struct argp_state *state)
{
    char message[1024];
    const char *why = agent_settings_set(a->settings, name, value != NULL ? value : "");
    if (why == NULL)
        return 0;
    snprintf(message, sizeof message, "--%s %s: %s", name, value != NULL ? value : "", why);
    return refuse_option(a, message, state);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    if (key == OPTION_CONFIG)
        return read_config(a, argument);
    if (key == 'l')
        return set(a, "listen", argument, state);
    if (key >= OPTION_FIRST && key < OPTION_FIRST + DIRECTIVE_COUNT)
        return set(a, directives[key - OPTION_FIRST].name, argument, state);
    if (key == ARGP_KEY_ARG)
        argp_error(state, "what is \"%s\"? Only options are known", argument);
    const char *why = key == ARGP_KEY_END ? agent_settings_finish(a->settings) : NULL;
    if (why != NULL)
        return refuse_option(a, why, state);
    return key == ARGP_KEY_END ? 0 : ARGP_ERR_UNKNOWN;
}

/* Into a->settings. False after having reported why not. */
static bool read_arguments(arguments *a)
{
    struct argp_option options[DIRECTIVE_COUNT + 2] = {
        {"config", OPTION_CONFIG, "FILE", 0, "Read directives from FILE: lines \"listen URL\", as the options below",
         0}};
    for (int i = 0; i < DIRECTIVE_COUNT; i++)
        options[i + 1] = (struct argp_option){.name = directives[i].name,
                                              .key = i == 0 ? 'l' : OPTION_FIRST + i,
                                              .arg = directives[i].argument,
                                              .doc = directives[i].doc,
                                              .group = directives[i].group};
    const struct argp argp = {
        .options = options,
        .parser = parse,
        .doc =
            "Run sensors of this host when somebody asks for what they say, and stop them when nobody does any "
            "more. Asked by nlagent, or by anything that speaks SOAP (nlagent.wsdl)."
            "\vSIGHUP reads the configuration, the access file and certificates anew, which hold from then on if they "
            "can be used; SIGTERM ends all sensors, and the agent."};
    return argp_parse(&argp, a->argc, a->argv, 0, NULL, a) == 0;
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
    char message[256];
    for (size_t i = 0; i < a->listen_count; i++)
        if (!listener_open(&a->asked[i], a->allow_count > 0, listeners, count, message)) {
            program_error("%s", message);
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

static bool prepare(agent *a, const agent_settings *given)
{
    char words[300];
    a->limits = given->limits;
    if (given->host != NULL)
        snprintf(a->host, sizeof a->host, "%s", given->host);
    else
        program_host(a->host, sizeof a->host);
    setenv("NETLOGGER_HOST", a->host, 1);
    definitions_init(&a->definitions, given->sensor_program);
    definitions_set_own(&a->definitions, given->sensors);
    a->access = access_read(given->access, words);
    if (a->access == NULL) {
        program_error("%s", words);
        return false;
    }
    a->base = event_base_new();
    if (a->base == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
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
    http_server *servers[SERVERS_MOST];
    size_t count;
    registrar *registrar; /* NULL: it registers nowhere */
} serving;

static void report_refused(void *user, const char *message)
{
    const serving *s = user;
    program_error("%s", message);
    nl_write(s->agent->log, NL_ERROR, "Nlagentd.ReloadRefused", "REASON=%s", message);
}

/* What asked becomes: both have the same listeners, in the same order. */
static const listening *find(const agent_settings *before, const agent_settings *now, const listening *asked)
{
    return &now->asked[asked - before->asked];
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
        if (s->listeners[i].remote && now->allow_count == 0 &&
            !find(s->given->settings, now, s->listeners[i].asked)->vouched) {
            report_refused(s, "listen: that is open to other machines, and no network is allowed");
            return false;
        }
    return true;
}

static bool take_over(serving *s, agent_settings *now)
{
    char words[300];
    if (!may_change(s, now))
        return false;
    access_list *access = access_read(now->access, words);
    if (access == NULL) {
        report_refused(s, words);
        return false;
    }
    agent *a = s->agent;
    access_free(a->access);
    a->access = access;
    a->limits = now->limits;
    http_clients_limits_changed(a->clients);
    definitions_set_own(&a->definitions, now->sensors);
    for (size_t i = 0; i < s->count; i++) {
        listener *l = (listener *)&s->listeners[i];
        l->asked = find(s->given->settings, now, l->asked);
        http_server_change(s->servers[i], l, now->allow, now->allow_count);
    }
    registrar_again(s->registrar);
    return true;
}

static void on_reload(evutil_socket_t signal, short what, void *user)
{
    (void)signal, (void)what;
    serving *s = user;
    arguments again = *s->given;
    again.settings = agent_settings_new();
    again.report = report_refused;
    again.report_user = s;
    inherited_notify("RELOADING=1");
    bool good = read_arguments(&again) && take_over(s, again.settings);
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

/* Registers as url where that was asked for. False after having said why not. */
static bool begin_registering(serving *s, const char *url)
{
    char words[CLIENT_WORDS];
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
    s->registrar = registrar_start(&registering, &s->agent->definitions, s->agent->log, words);
    if (s->registrar == NULL)
        program_error("--register: %s", words);
    return s->registrar != NULL;
}

/* Sensors are other programs, which write and trace what they like: files are not limited. */
static void confine_agent(const agent *a, const agent_settings *said)
{
    char message[CONFINE_MESSAGE];
    const confine_options options = {.executes = true};
    if (!said->confine || confine(&options, message))
        return;
    program_error("%s", message);
    nl_write(a->log, NL_WARNING, "Nlagentd.NotConfined", "REASON=%s", message);
}

/* The loop, and what comes to its end with it. */
static int serve(agent *a, arguments *given, listener *listeners, size_t count)
{
    char *wsdl = read_shipped("nlagent.wsdl"), *schema = read_shipped("netlogger.xsd");
    agent_settings *said = given->settings;
    char *url = own_url(said, a->host, listeners, count);
    serving s = {.agent = a,
                 .given = given,
                 .begun_with = said,
                 .listeners = listeners,
                 .count = count < SERVERS_MOST ? count : SERVERS_MOST};
    struct event *signals[] = {evsignal_new(a->base, SIGTERM, on_stop, a->base),
                               evsignal_new(a->base, SIGINT, on_stop, a->base),
                               evsignal_new(a->base, SIGHUP, on_reload, &s)};
    a->clients = http_clients_new(a);
    http_host_look_up();
    a->collections = collections_new(a);
    collections_set_directory(a->collections, said->is_directory ? url : said->directory);
    for (size_t i = 0; i < s.count; i++)
        s.servers[i] = http_server_new(a, &listeners[i], wsdl != NULL ? wsdl : "", schema != NULL ? schema : "",
                                       said->allow, said->allow_count);
    a->clock = event_new(a->base, -1, EV_PERSIST, on_clock, a);
    event_add(a->clock, &(struct timeval){.tv_sec = CLOCK_S});
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        event_add(signals[i], NULL);
    confine_agent(a, said);
    hold_signals(SIG_UNBLOCK);
    bool good = begin_registering(&s, url);
    inherited_notify("READY=1");
    if (good)
        event_base_dispatch(a->base);
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
    program_start("nlagentd", argv);
    inherited_find();
    arguments given = {.argc = argc, .argv = argv, .settings = agent_settings_new()};
    static agent a;
    hold_signals(SIG_BLOCK);
    read_arguments(&given);
    signal(SIGPIPE, SIG_IGN);
    xmlInitParser();
    listener *listeners = NULL;
    size_t count = 0;
    int result = PROGRAM_USAGE;
    if (prepare(&a, given.settings)) {
        result = PROGRAM_PROBLEM;
        if (open_listeners(given.settings, &listeners, &count)) {
            a.log = nl_open("nlagentd", given.settings->log);
            if (a.log == NULL)
                program_error("its own events go nowhere: %s", nl_error_message());
            nl_set_idle(a.log, NL_NS_PER_SECOND);
            result = serve(&a, &given, listeners, count);
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
