#include "config.h"

#include "agent/settings.h"

#include "program/program.h"
#include "service/confine.h"
#include "service/inherited.h"
#include "base/error.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKEN_MAX = 300 };

agent_settings *agent_settings_new(void)
{
    return nl_memory_check(calloc(1, sizeof(agent_settings)));
}

void agent_settings_free(agent_settings *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->listen_count; i++) {
        free(s->listen[i]);
        free(s->asked[i].url);
        free(s->asked[i].names);
        nl_tls_free(s->asked[i].tls);
    }
    for (size_t i = 0; i < s->sensor_count; i++)
        free(s->sensors[i]);
    nl_options_free(agent_settings_rows, s);
    free(s->token);
    free(s);
}

/* ---- setting ---- */

/* Reads the options of a listen URL. */
static bool read_tls(const nl_url *url, bool secure, listening *l)
{
    char message[NL_CHANNEL_WORDS];
    nl_tls_options tls = {.ca = nl_url_option_value(url, "ca"),
                          .cert = nl_url_option_value(url, "cert"),
                          .key = nl_url_option_value(url, "key"),
                          .crl = nl_url_option_value(url, "crl"),
                          .peers = nl_url_option_value(url, "peers")};
    const char *names = nl_url_option_value(url, "names");
    l->names = names != NULL ? program_copy(names) : NULL;
    if (!secure && url->option_count == (names != NULL))
        return true;
    if (!confine_keep_files_of(url))
        return false;
    l->tls = nl_tls_new(true, &tls, message);
    l->vouched = tls.ca != NULL;
    return l->tls != NULL || nl_error_false(NL_ERROR_INVALID, "%s", message);
}

/* http://HOST[:PORT][?OPTIONS] as what a listener takes. False when it is something else. */
static bool to_listener_url(const char *text, char *url, size_t room)
{
    bool secure = strncmp(text, "https://", 8) == 0;
    if (!secure && strncmp(text, "http://", 7) != 0)
        return false;
    const char *rest = strstr(text, "://") + 3;
    size_t size = strcspn(rest, "/?");
    bool has_port = memchr(rest, ':', size) != NULL && rest[size - 1] != ']';
    snprintf(url, room, "x-netlog%s://%.*s%s%s", secure ? "s" : "", (int)size, rest, has_port ? "" : ":14831",
             rest + size + strspn(rest + size, "/"));
    return true;
}

static bool add_listening(agent_settings *s, const char *text)
{
    char url[1024];
    bool secure = strncmp(text, "https://", 8) == 0;
    if (s->listen_count == SETTINGS_LISTEN_MAX)
        return nl_error_false(NL_ERROR_LIMIT, "so many are too many");
    if (strncmp(text, "inherited:", 10) == 0)
        snprintf(url, sizeof url, "%s", text);
    else if (!to_listener_url(text, url, sizeof url))
        return nl_error_false(NL_ERROR_INVALID, "http://, https:// or inherited: is wanted");
    nl_url *parsed = nl_url_parse(url);
    if (parsed == NULL)
        return false;
    listening *l = &s->asked[s->listen_count];
    bool good = read_tls(parsed, secure, l);
    nl_url_free(parsed);
    if (!good)
        return false;
    url[strcspn(url, "?")] = '\0';
    l->url = program_copy(url);
    s->listen[s->listen_count++] = program_copy(text);
    return true;
}

static bool add_network(agent_settings *s, const char *value)
{
    if (s->allow_count == SETTINGS_ALLOW_MAX)
        return nl_error_false(NL_ERROR_LIMIT, "so many are too many");
    if (!network_parse(value, &s->allow[s->allow_count]))
        return nl_error_false(NL_ERROR_INVALID, "ADDRESS or ADDRESS/BITS is wanted");
    s->allow_count++;
    return true;
}

static bool add_own_sensor(agent_settings *s, const char *value)
{
    if (!definition_check_own(value))
        return false;
    if (s->sensor_count == SETTINGS_SENSORS_MAX)
        return nl_error_false(NL_ERROR_LIMIT, "so many are too many");
    s->sensors[s->sensor_count++] = program_copy(value);
    return true;
}

static void set_text(char **place, const char *value)
{
    free(*place);
    *place = program_copy(value);
}

/* The first line of a file. */
static bool read_token(agent_settings *s, const char *path)
{
    char token[TOKEN_MAX];
    if (!confine_keep_file(path, CONFINE_READ))
        return false;
    FILE *file = fopen(path, "re");
    bool good = file != NULL && fgets(token, sizeof token, file) != NULL;
    if (file != NULL)
        fclose(file);
    if (!good)
        return nl_error_false(NL_ERROR_INVALID, "it cannot be read");
    token[strcspn(token, "\r\n")] = '\0';
    set_text(&s->token, token);
    set_text(&s->token_file, path);
    return true;
}

/* The setters of rows. */
#define SETTER(name, function)                                                                                         \
    static bool name(void *s, const nl_option *row, const char *value)                                                 \
    {                                                                                                                  \
        (void)row;                                                                                                     \
        return function(s, value);                                                                                     \
    }

SETTER(set_listen, add_listening)
SETTER(set_allow, add_network)
SETTER(set_sensor, add_own_sensor)
SETTER(set_token, read_token)

const nl_option agent_settings_rows[] = {
    {.name = "listen",
     .value = "URL",
     .repeatable = true,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     .set = set_listen,
     .initial = "(inherited:* where systemd opened sockets, else http://127.0.0.1)",
     .help = "Where clients connect: http://HOST[:PORT] (port 14831 unless given), "
             "https://HOST[:PORT]?cert=FILE&key=FILE (&ca=FILE requires client certificates that it verifies, "
             "&crl=FILE rejects revoked ones, &peers=NAME,... admits only these names), inherited:NAME, a socket that "
             "systemd opened; ?names=NAME,... lets requests name this host by these names too"},
    {.name = "allow",
     .value = "NETWORK",
     .repeatable = true,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     .set = set_allow,
     .help = "A network whose clients may connect: 10.0.0.0/8"},
    {.name = "access",
     .type = NL_OPTION_COPY,
     .value = "FILE",
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     NL_OPTION_MEMBER(agent_settings, access),
     .help = "Who may do what",
     .initial = "(everything from this host, reading for others that may connect)"},
    {.name = "sensor",
     .value = "NAME=COMMAND",
     .repeatable = true,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     .set = set_sensor,
     .help = "An additional sensor: what COMMAND prints"},
    {.name = "sensor-program",
     .type = NL_OPTION_COPY,
     .value = "FILE",
     .places = NL_OPTION_IN_DAEMON,
     NL_OPTION_MEMBER(agent_settings, sensor_program),
     .help = "The program that runs the shipped sensors"},
    {.name = "directory",
     .type = NL_OPTION_FLAG,
     .places = NL_OPTION_IN_DAEMON,
     NL_OPTION_MEMBER(agent_settings, is_directory),
     .help = "Be a directory too, where agents register and are found"},
    {.name = "register",
     .type = NL_OPTION_COPY,
     .value = "URL",
     .places = NL_OPTION_IN_DAEMON,
     NL_OPTION_MEMBER(agent_settings, directory),
     .help = "Register with this directory: http://HOST[:PORT], https://, or ldap://HOST"},
    {.name = "register-token",
     .type = NL_OPTION_COPY,
     .value = "FILE",
     .places = NL_OPTION_IN_DAEMON,
     .set = set_token,
     NL_OPTION_MEMBER(agent_settings, token_file),
     .help = "The file with the token to present there, in its first line"},
    {.name = "register-ca",
     .type = NL_OPTION_COPY,
     .value = "FILE",
     .places = NL_OPTION_IN_DAEMON,
     NL_OPTION_MEMBER(agent_settings, ca),
     .help = "CA certificate for verifying an https directory"},
    {.name = "register-cert",
     .type = NL_OPTION_COPY,
     .value = "FILE",
     .places = NL_OPTION_IN_DAEMON,
     NL_OPTION_MEMBER(agent_settings, cert),
     .help = "Client certificate and key for an https directory"},
    {.name = "ldap-base",
     .type = NL_OPTION_COPY,
     .value = "DN",
     .places = NL_OPTION_IN_DAEMON,
     NL_OPTION_MEMBER(agent_settings, ldap_base),
     .help = "The LDAP entry below which agents are"},
    {.name = "ldap-bind",
     .type = NL_OPTION_COPY,
     .value = "DN",
     .places = NL_OPTION_IN_DAEMON,
     NL_OPTION_MEMBER(agent_settings, ldap_bind),
     .help = "The LDAP name to bind as"},
    {.name = "ldap-password",
     .type = NL_OPTION_COPY,
     .value = "FILE",
     .places = NL_OPTION_IN_DAEMON,
     NL_OPTION_MEMBER(agent_settings, ldap_password),
     .help = "The file with the LDAP password, in its first line"},
    {.name = "ttl",
     .type = NL_OPTION_DURATION,
     .initial = "60s",
     .minimum = NL_NS_PER_SECOND,
     .maximum = 86400 * NL_NS_PER_SECOND,
     .places = NL_OPTION_IN_DAEMON,
     NL_OPTION_MEMBER(agent_settings, ttl_ns),
     .help = "How long a registration lasts without being renewed"},
    {.name = "url",
     .type = NL_OPTION_COPY,
     .value = "URL",
     .places = NL_OPTION_IN_DAEMON,
     NL_OPTION_MEMBER(agent_settings, url),
     .help = "The URL to register, where others find this agent",
     .initial = "(the first --listen)"},
    {.name = "host",
     .type = NL_OPTION_COPY,
     .value = "NAME",
     .places = NL_OPTION_IN_DAEMON,
     NL_OPTION_MEMBER(agent_settings, host),
     .help = "The name of this host",
     .initial = "($NETLOGGER_HOST, or the host's name)"},
    {.name = "log",
     .type = NL_OPTION_COPY,
     .value = "URL",
     .places = NL_OPTION_IN_DAEMON,
     NL_OPTION_MEMBER(agent_settings, log),
     .help = "Where nlagentd's own events go",
     .initial = "file:///dev/stderr"},
    {.name = "confine",
     .type = NL_OPTION_CHOICE,
     .places = NL_OPTION_IN_DAEMON,
     .initial = "yes",
     .choices = "no|yes",
     NL_OPTION_MEMBER(agent_settings, confine),
     .help = "Give up the system calls, and the rights to read and write files and to connect to ports, that this "
             "configuration does not need, by seccomp and Landlock; sensors lose few of them, and gain no privileges "
             "from set-user-ID programs"},
    {.name = "max-sensors",
     .type = NL_OPTION_COUNT,
     .initial = "100",
     .minimum = 1,
     .maximum = 1000000,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     NL_OPTION_MEMBER(agent_settings, limits.sensors),
     .help = "The maximum number of running sensors"},
    {.name = "max-subscriptions",
     .type = NL_OPTION_COUNT,
     .initial = "1000",
     .minimum = 1,
     .maximum = 1000000,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     NL_OPTION_MEMBER(agent_settings, limits.subscriptions),
     .help = "The maximum number of subscriptions"},
    {.name = "max-per-consumer",
     .type = NL_OPTION_COUNT,
     .initial = "100",
     .minimum = 1,
     .maximum = 1000000,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     NL_OPTION_MEMBER(agent_settings, limits.per_consumer),
     .help = "The maximum number of subscriptions per client"},
    {.name = "max-connections",
     .type = NL_OPTION_COUNT,
     .initial = "2000",
     .minimum = 1,
     .maximum = 1000000,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     NL_OPTION_MEMBER(agent_settings, limits.connections),
     .help = "The maximum number of clients; one more replaces the client that has been silent longest, of the address "
             "that has most"},
    {.name = "max-per-address",
     .type = NL_OPTION_COUNT,
     .initial = "1000",
     .minimum = 1,
     .maximum = 1000000,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     NL_OPTION_MEMBER(agent_settings, limits.per_address),
     .help = "The maximum number of clients from one address, or IPv6 network of 64 bits"},
    {.name = "queue",
     .type = NL_OPTION_COUNT,
     .initial = "2000",
     .minimum = 1,
     .maximum = 1000000,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     NL_OPTION_MEMBER(agent_settings, limits.queue),
     .help = "The maximum number of records that wait for a slow client"},
    {.name = "min-interval",
     .type = NL_OPTION_DURATION,
     .initial = "10ms",
     .minimum = 1000000,
     .maximum = 86400 * NL_NS_PER_SECOND,
     .places = NL_OPTION_IN_DAEMON | NL_OPTION_ON_RELOAD,
     NL_OPTION_MEMBER(agent_settings, min_interval_ns),
     .help = "The minimum interval of a sensor"},
    {0},
};

static void report_at_start(void *unused, const char *message)
{
    (void)unused;
    program_error("%s", message);
}

static bool read_config(void *to, const nl_option *row, const char *value)
{
    agent_settings *s = to;
    (void)row;
    confine_keep_file(value, CONFINE_READ);
    if (!config_file_read(value, agent_settings_rows, s, s->report != NULL ? s->report : report_at_start,
                          s->report_user)) {
        if (s->report == NULL)
            exit(PROGRAM_USAGE);
        s->config_failed = true;
    }
    return true;
}

const nl_option agent_settings_command_rows[] = {
    {.name = "config",
     .letter = 'c',
     .value = "FILE",
     .set = read_config,
     .help = "Read settings from FILE: lines such as \"listen URL\""},
    {0},
};

bool agent_settings_finish(agent_settings *s)
{
    s->limits.least_interval_s = (double)s->min_interval_ns / 1e9;
    if (s->directory != NULL && strncmp(s->directory, "ldap", 4) == 0 && s->ldap_base == NULL)
        return nl_error_false(NL_ERROR_INVALID, "--register: ldap:// needs --ldap-base");
    return s->listen_count > 0 || add_listening(s, inherited_count() > 0 ? "inherited:*" : "http://127.0.0.1");
}

static void keep_file(const char *path, confine_right right)
{
    if (path != NULL)
        confine_keep_file(path, right);
}

static void keep_url(const char *text)
{
    nl_url *url = text != NULL ? nl_url_parse(text) : NULL;
    if (url != NULL)
        confine_keep_url(url);
    nl_url_free(url);
}

void agent_settings_keep(const agent_settings *s)
{
    char url[1024];
    const char *const read[] = {s->access, s->token_file, s->ca, s->cert, s->ldap_password};
    for (size_t i = 0; i < sizeof read / sizeof read[0]; i++)
        keep_file(read[i], CONFINE_READ);
    keep_url(s->log);
    confine_keep_resolver(); /* requests may name this host by its name */
    if (s->directory != NULL && to_listener_url(s->directory, url, sizeof url))
        keep_url(url);
    else if (s->directory != NULL) /* a server of LDAP may name others, with their ports */
        confine_keep_any_port();
}

/* ---- comparing, and what others want ---- */

const char *agent_settings_fixed_difference(const agent_settings *a, const agent_settings *b)
{
    bool listens_alike = a->listen_count == b->listen_count;
    for (size_t i = 0; i < a->listen_count && listens_alike; i++)
        listens_alike =
            strcmp(a->asked[i].url, b->asked[i].url) == 0 && (a->asked[i].tls == NULL) == (b->asked[i].tls == NULL);
    if (!listens_alike)
        return "listen";
    const nl_option *row = nl_options_fixed_difference(agent_settings_rows, a, b);
    if (row != NULL)
        return row->name;
    bool tokens_alike = a->token == NULL || b->token == NULL ? a->token == b->token : strcmp(a->token, b->token) == 0;
    return tokens_alike ? NULL : "register-token"; /* another one in the same file */
}

registrar_options agent_settings_registrar(const agent_settings *s)
{
    return (registrar_options){
        .directory = s->directory,
        .ttl_s = (double)s->ttl_ns / 1e9,
        .client = {.ca = s->ca, .cert = s->cert, .token = s->token},
        .ldap = {
            .url = s->directory, .base = s->ldap_base, .bind_dn = s->ldap_bind, .password_file = s->ldap_password}};
}
