/* nlagentd: runs sensors when somebody looks. Options, and what is there as long as it runs. */
#include "config.h"

#include "agent/access.h"
#include "agent/agent.h"
#include "agent/collections.h"
#include "agent/directory.h"
#include "agent/http_server.h"
#include "agent/registrar.h"
#include "program/program.h"
#include "service/inherited.h"
#include "service/listener.h"
#include "timekeeping/quality.h"

#include <errno.h>
#include <libxml/parser.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPTION_ALLOW = 0x1000,
    OPTION_ACCESS,
    OPTION_SENSOR,
    OPTION_SENSOR_PROGRAM,
    OPTION_DIRECTORY,
    OPTION_REGISTER,
    OPTION_REGISTER_TOKEN,
    OPTION_REGISTER_CA,
    OPTION_REGISTER_CERT,
    OPTION_LDAP_BASE,
    OPTION_LDAP_BIND,
    OPTION_LDAP_PASSWORD,
    OPTION_TTL,
    OPTION_URL,
    OPTION_HOST,
    OPTION_LOG,
    OPTION_MAX_SENSORS,
    OPTION_MAX_SUBSCRIPTIONS,
    OPTION_MAX_PER_CONSUMER,
    OPTION_QUEUE,
    OPTION_LEAST_INTERVAL,
    LISTEN_MOST = 16,
    ALLOW_MOST = 64,
    CLOCK_S = 1,
    CLOCK_LOOKS = 60 /* of these a look at this host's clock */
};

typedef struct arguments {
    const char *listen[LISTEN_MOST];
    listening asked[LISTEN_MOST];
    size_t listen_count;
    network allow[ALLOW_MOST];
    size_t allow_count;
    const char *access, *sensor_program, *log, *url, *host;
    const char *sensors[256];
    size_t sensor_count;
    bool is_directory;
    char token[300];
    registrar_options registrar;
    agent_limits limits;
} arguments;

static const struct argp_option options[] = {
    {"listen", 'l', "URL", 0,
     "Where to be asked, again and again: http://HOST[:PORT] (port 14831 unless said), "
     "https://HOST[:PORT]?cert=FILE&key=FILE (with &ca=FILE consumers must show certificates that those in it vouch "
     "for), inherited:NAME, a socket that systemd opened. Default http://127.0.0.1",
     1},
    {"allow", OPTION_ALLOW, "NETWORK", 0, "Who may connect from other machines, again and again: 10.0.0.0/8", 1},
    {"access", OPTION_ACCESS, "FILE", 0,
     "Who may do what. Default: everything from this machine, reading for others who may connect", 1},
    {"sensor", OPTION_SENSOR, "NAME=COMMAND", 0, "A sensor of one's own: what COMMAND prints, again and again", 2},
    {"sensor-program", OPTION_SENSOR_PROGRAM, "FILE", 0, "What runs the sensors that are shipped", 2},
    {"directory", OPTION_DIRECTORY, NULL, 0, "Be a directory too, where agents register and are found", 3},
    {"register", OPTION_REGISTER, "URL", 0,
     "Register with that directory: http://HOST[:PORT], https://, or ldap://HOST", 3},
    {"register-token", OPTION_REGISTER_TOKEN, "FILE", 0, "The token to show there, the first line of FILE", 3},
    {"register-ca", OPTION_REGISTER_CA, "FILE", 0, "Who vouches for that directory, of https", 3},
    {"register-cert", OPTION_REGISTER_CERT, "FILE", 0, "Certificate and key to show there, of https", 3},
    {"ldap-base", OPTION_LDAP_BASE, "DN", 0, "Of LDAP: below which entry agents are", 3},
    {"ldap-bind", OPTION_LDAP_BIND, "DN", 0, "Of LDAP: as whom", 3},
    {"ldap-password", OPTION_LDAP_PASSWORD, "FILE", 0, "Of LDAP: the password, the first line of FILE", 3},
    {"ttl", OPTION_TTL, "SECONDS", 0, "How long a registration holds without being renewed (default 60)", 3},
    {"url", OPTION_URL, "URL", 0, "What it registers as: where others find this agent (default: the first --listen)",
     3},
    {"host", OPTION_HOST, "NAME", 0, "What this host is called (default: its name)", 3},
    {"log", OPTION_LOG, "URL", 0, "Where its own events go (default file:///dev/stderr)", 4},
    {"max-sensors", OPTION_MAX_SENSORS, "N", 0, "So many sensors run at once, at most (default 100)", 5},
    {"max-subscriptions", OPTION_MAX_SUBSCRIPTIONS, "N", 0, "So many subscriptions there are, at most (default 1000)",
     5},
    {"max-per-consumer", OPTION_MAX_PER_CONSUMER, "N", 0, "And of one consumer (default 100)", 5},
    {"queue", OPTION_QUEUE, "N", 0, "So many records wait for a slow consumer, at most (default 2000)", 5},
    {"least-interval", OPTION_LEAST_INTERVAL, "SECONDS", 0, "No sensor looks more often (default 0.01)", 5},
    {0},
};

/* http://HOST becomes what a listener takes. */
static void add_listen(arguments *a, const char *text, struct argp_state *state)
{
    char words[NL_CHANNEL_WORDS], url[1024];
    bool secure = strncmp(text, "https://", 8) == 0;
    const char *rest = text + (secure ? 8 : 7);
    size_t size = strcspn(rest, "/?");
    bool has_port = memchr(rest, ':', size) != NULL && rest[size - 1] != ']';
    if (a->listen_count == LISTEN_MOST)
        argp_error(state, "so many --listen are too many");
    if (strncmp(text, "inherited:", 10) == 0)
        snprintf(url, sizeof url, "%s", text);
    else if (secure || strncmp(text, "http://", 7) == 0)
        snprintf(url, sizeof url, "x-netlog%s://%.*s%s%s", secure ? "s" : "", (int)size, rest, has_port ? "" : ":14831",
                 rest + size + strspn(rest + size, "/"));
    else
        argp_error(state, "--listen %s: http://, https:// or inherited: is wanted", text);
    nl_url *parsed = nl_url_parse(url);
    if (parsed == NULL)
        argp_error(state, "--listen %s: %s", text, nl_error_message());
    listening *l = &a->asked[a->listen_count];
    if (parsed->option_count > 0 || secure) {
        nl_tls_options tls = {.ca = nl_url_option_value(parsed, "ca"),
                              .cert = nl_url_option_value(parsed, "cert"),
                              .key = nl_url_option_value(parsed, "key")};
        l->tls = nl_tls_new(true, &tls, words);
        l->vouched = tls.ca != NULL;
        if (l->tls == NULL)
            argp_error(state, "--listen %s: %s", text, words);
    }
    nl_url_free(parsed);
    url[strcspn(url, "?")] = '\0';
    l->url = strdup(url);
    a->listen[a->listen_count++] = text;
}

static size_t read_number(struct argp_state *state, const char *name, const char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || value == 0 || value > 1000000)
        argp_error(state, "--%s %s: a whole number from 1 to 1000000 is wanted", name, text);
    return value;
}

static double read_seconds(struct argp_state *state, const char *name, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 0.001 && value <= 86400))
        argp_error(state, "--%s %s: 0.001 to 86400 seconds are wanted", name, text);
    return value;
}

static void read_token(arguments *a, const char *path, struct argp_state *state)
{
    FILE *file = fopen(path, "re");
    if (file == NULL || fgets(a->token, sizeof a->token, file) == NULL)
        argp_error(state, "--register-token %s: it cannot be read", path);
    fclose(file);
    a->token[strcspn(a->token, "\r\n")] = '\0';
    a->registrar.client.token = a->token;
}

static error_t parse_directory(arguments *a, int key, char *argument, struct argp_state *state)
{
    switch (key) {
    case OPTION_DIRECTORY:
        a->is_directory = true;
        return 0;
    case OPTION_REGISTER:
        a->registrar.directory = a->registrar.ldap.url = argument;
        return 0;
    case OPTION_REGISTER_TOKEN:
        read_token(a, argument, state);
        return 0;
    case OPTION_REGISTER_CA:
        a->registrar.client.ca = argument;
        return 0;
    case OPTION_REGISTER_CERT:
        a->registrar.client.cert = argument;
        return 0;
    case OPTION_LDAP_BASE:
        a->registrar.ldap.base = argument;
        return 0;
    case OPTION_LDAP_BIND:
        a->registrar.ldap.bind_dn = argument;
        return 0;
    case OPTION_LDAP_PASSWORD:
        a->registrar.ldap.password_file = argument;
        return 0;
    case OPTION_TTL:
        a->registrar.ttl_s = read_seconds(state, "ttl", argument);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_limit(arguments *a, int key, const char *argument, struct argp_state *state)
{
    switch (key) {
    case OPTION_MAX_SENSORS:
        a->limits.sensors = read_number(state, "max-sensors", argument);
        return 0;
    case OPTION_MAX_SUBSCRIPTIONS:
        a->limits.subscriptions = read_number(state, "max-subscriptions", argument);
        return 0;
    case OPTION_MAX_PER_CONSUMER:
        a->limits.per_consumer = read_number(state, "max-per-consumer", argument);
        return 0;
    case OPTION_QUEUE:
        a->limits.queue = read_number(state, "queue", argument);
        return 0;
    case OPTION_LEAST_INTERVAL:
        a->limits.least_interval_s = read_seconds(state, "least-interval", argument);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    switch (key) {
    case 'l':
        add_listen(a, argument, state);
        return 0;
    case OPTION_ALLOW:
        if (a->allow_count == ALLOW_MOST || !network_parse(argument, &a->allow[a->allow_count]))
            argp_error(state, "--allow %s: ADDRESS or ADDRESS/BITS is wanted", argument);
        a->allow_count++;
        return 0;
    case OPTION_ACCESS:
        a->access = argument;
        return 0;
    case OPTION_SENSOR:
        if (a->sensor_count == sizeof a->sensors / sizeof a->sensors[0])
            argp_error(state, "so many --sensor are too many");
        a->sensors[a->sensor_count++] = argument;
        return 0;
    case OPTION_SENSOR_PROGRAM:
        a->sensor_program = argument;
        return 0;
    case OPTION_URL:
        a->url = argument;
        return 0;
    case OPTION_HOST:
        a->host = argument;
        return 0;
    case OPTION_LOG:
        a->log = argument;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "what is \"%s\"? Only options are known", argument);
        return EINVAL;
    case ARGP_KEY_END:
        if (a->listen_count == 0)
            add_listen(a, inherited_count() > 0 ? "inherited:*" : "http://127.0.0.1", state);
        if (a->registrar.directory != NULL && strncmp(a->registrar.directory, "ldap", 4) == 0 &&
            a->registrar.ldap.base == NULL)
            argp_error(state, "with --register ldap://, --ldap-base is wanted");
        return 0;
    default:
        return parse_directory(a, key, argument, state) == 0 ? 0 : parse_limit(a, key, argument, state);
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc = "Run sensors of this host when somebody asks for what they say, and stop them when nobody does any more. "
           "Asked by nlagent, or by anything that speaks SOAP (nlagent.wsdl)."};

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

static bool open_listeners(arguments *a, listener **listeners, size_t *count)
{
    char message[256];
    for (size_t i = 0; i < a->listen_count; i++)
        if (!listener_open(&a->asked[i], a->allow_count > 0, listeners, count, message)) {
            program_error("%s", message);
            return false;
        }
    for (size_t i = 0; i < *count; i++) {
        const char *rest = strstr((*listeners)[i].name, "://");
        fprintf(stderr, "nlagentd: listening on http%s%s\n", (*listeners)[i].asked->tls != NULL ? "s" : "",
                rest != NULL ? rest : (*listeners)[i].name);
    }
    return true;
}

/* Where others find this agent, unless it was said: the first listener, by this host's name when it is on all
 * addresses. */
static char *own_url(const arguments *a, const agent *agent, const listener *first)
{
    char text[600];
    const char *rest = strstr(first->name, "://"), *port = strrchr(first->name, ':');
    const char *scheme = first->asked->tls != NULL ? "https" : "http";
    bool everywhere = strncmp(rest, "://0.0.0.0:", 11) == 0 || strncmp(rest, "://[::]:", 8) == 0;
    if (a->url != NULL)
        return strdup(a->url);
    if (everywhere)
        snprintf(text, sizeof text, "%s://%s%s", scheme, agent->host, port);
    else
        snprintf(text, sizeof text, "%s%s", scheme, rest);
    return strdup(text);
}

static bool prepare(agent *a, const arguments *given)
{
    char words[300];
    a->limits = given->limits;
    if (given->host != NULL)
        snprintf(a->host, sizeof a->host, "%s", given->host);
    else if (gethostname(a->host, sizeof a->host - 1) != 0)
        strcpy(a->host, "localhost");
    setenv("NETLOGGER_HOST", a->host, 1);
    definitions_init(&a->definitions, given->sensor_program);
    for (size_t i = 0; i < given->sensor_count; i++) {
        const char *why = definitions_add(&a->definitions, given->sensors[i]);
        if (why != NULL) {
            program_error("--sensor %s: %s", given->sensors[i], why);
            return false;
        }
    }
    a->access = access_read(given->access, words);
    if (a->access == NULL) {
        program_error("%s", words);
        return false;
    }
    a->base = event_base_new();
    if (a->base == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    a->collections = collections_new(a);
    if (given->is_directory)
        a->directory = directory_new();
    return true;
}

/* The loop, and what comes to its end with it. */
static int serve(agent *a, arguments *given, listener *listeners, size_t count)
{
    char words[CLIENT_WORDS], *wsdl = read_shipped("nlagent.wsdl"), *schema = read_shipped("netlogger.xsd");
    struct event *signals[2] = {evsignal_new(a->base, SIGTERM, on_stop, a->base),
                                evsignal_new(a->base, SIGINT, on_stop, a->base)};
    http_server *servers[LISTEN_MOST * 4];
    registrar *registered = NULL;
    int result = PROGRAM_DONE;
    for (size_t i = 0; i < count && i < LISTEN_MOST * 4; i++)
        servers[i] = http_server_new(a, &listeners[i], wsdl != NULL ? wsdl : "", schema != NULL ? schema : "",
                                     given->allow, given->allow_count);
    a->clock = event_new(a->base, -1, EV_PERSIST, on_clock, a);
    event_add(a->clock, &(struct timeval){.tv_sec = CLOCK_S});
    event_add(signals[0], NULL);
    event_add(signals[1], NULL);
    char *url = own_url(given, a, &listeners[0]);
    if (given->registrar.directory != NULL) {
        given->registrar.host = a->host;
        given->registrar.url = url;
        registered = registrar_start(&given->registrar, &a->definitions, a->log, words);
        if (registered == NULL) {
            program_error("--register: %s", words);
            result = PROGRAM_USAGE;
        }
    }
    collections_set_directory(a->collections, given->is_directory                  ? url
                                              : given->registrar.directory != NULL ? given->registrar.directory
                                                                                   : NULL);
    inherited_notify("READY=1");
    if (result == PROGRAM_DONE)
        event_base_dispatch(a->base);
    inherited_notify("STOPPING=1");
    registrar_stop(registered);
    for (size_t i = 0; i < count && i < LISTEN_MOST * 4; i++)
        http_server_free(servers[i]);
    while (a->subscriptions != NULL)
        subscription_free(a->subscriptions);
    collections_free(a->collections);
    active_free_all(a);
    process_reap_all();
    event_free(a->clock);
    event_free(signals[0]);
    event_free(signals[1]);
    free(url);
    free(wsdl);
    free(schema);
    return result;
}

int main(int argc, char **argv)
{
    program_start("nlagentd", argv);
    inherited_find();
    static arguments given = {
        .limits = {100, 1000, 100, 2000, 0.01}, .registrar = {.ttl_s = 60}, .log = "file:///dev/stderr"};
    static agent a;
    argp_parse(&argp, argc, argv, 0, NULL, &given);
    signal(SIGPIPE, SIG_IGN);
    xmlInitParser();
    listener *listeners = NULL;
    size_t count = 0;
    int result = PROGRAM_USAGE;
    if (prepare(&a, &given)) {
        result = PROGRAM_PROBLEM;
        if (open_listeners(&given, &listeners, &count)) {
            a.log = nl_open("nlagentd", given.log);
            if (a.log == NULL)
                program_error("its own events go nowhere: %s", nl_error_message());
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
    for (size_t i = 0; i < given.listen_count; i++) {
        nl_tls_free(given.asked[i].tls);
        free(given.asked[i].url);
    }
    xmlCleanupParser();
    return program_finish(result);
}
