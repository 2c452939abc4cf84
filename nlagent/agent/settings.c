#include "config.h"

#include "agent/settings.h"
#include "service/http_url.h"

#include "program/program.h"
#include "service/confine.h"
#include "service/inherited.h"
#include "base/error.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

agent_settings *agent_settings_new(void)
{
    agent_settings *s = nl_memory_check(calloc(1, sizeof *s));
    s->config.rows = agent_settings_rows;
    return s;
}

void agent_settings_free(agent_settings *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->listen_count; i++) {
        listening_free(&s->listen[i]);
    }
    for (size_t i = 0; i < s->sensor_count; i++)
        free(s->sensors[i]);
    network_list_free(&s->allow);
    network_list_free(&s->reflect);
    nl_options_free(agent_settings_rows, s);
    free(s->token);
    free(s);
}

/* ---- setters ---- */

static bool agent_add_listening(void *to, const nl_option *row, const char *value)
{
    agent_settings *s = to;
    char url[1024];
    bool secure = strncmp(value, "https://", 8) == 0, inherited = strncmp(value, "inherited:", 10) == 0;
    (void)row;
    if (s->listen_count == SETTINGS_LISTEN_MAX)
        return nl_error_false(NL_ERROR_LIMIT, "too many addresses; the maximum is %d", SETTINGS_LISTEN_MAX);
    if (inherited)
        snprintf(url, sizeof url, "%s", value);
    else if (!url_from_http(value, "14831", url, sizeof url))
        return nl_error_false(NL_ERROR_INVALID,
                              "unsupported URL; expected http://HOST, https://HOST or inherited:NAME");
    nl_url *parsed = nl_url_parse(url);
    if (parsed == NULL)
        return false;
    listening *l = &s->listen[s->listen_count];
    bool good = listening_read(parsed, listening_names_rows, secure, inherited, l);
    nl_url_free(parsed);
    if (!good) {
        listening_free(l);
        return false;
    }
    url[strcspn(url, "?")] = '\0';
    l->url = program_copy(url);
    l->http = true;
    l->text = program_copy(value);
    s->listen_count++;
    return true;
}

static const char *agent_get_listening(const void *from, size_t index, char scratch[NL_OPTION_TEXT_SIZE])
{
    const agent_settings *s = from;
    (void)scratch;
    return index < s->listen_count ? s->listen[index].text : NULL;
}

static const char *agent_get_allowed(const void *from, size_t index, char scratch[NL_OPTION_TEXT_SIZE])
{
    return network_list_get(&((const agent_settings *)from)->allow, index, scratch);
}

static const char *agent_get_reflected(const void *from, size_t index, char scratch[NL_OPTION_TEXT_SIZE])
{
    return network_list_get(&((const agent_settings *)from)->reflect, index, scratch);
}

static bool agent_add_sensor(void *to, const nl_option *row, const char *value)
{
    agent_settings *s = to;
    (void)row;
    if (!definition_check_own(value))
        return false;
    if (s->sensor_count == SETTINGS_SENSORS_MAX)
        return nl_error_false(NL_ERROR_LIMIT, "too many sensors; the maximum is %d", SETTINGS_SENSORS_MAX);
    s->sensors[s->sensor_count++] = program_copy(value);
    return true;
}

static const char *agent_get_sensor(const void *from, size_t index, char scratch[NL_OPTION_TEXT_SIZE])
{
    const agent_settings *s = from;
    (void)scratch;
    return index < s->sensor_count ? s->sensors[index] : NULL;
}

static bool agent_set_token(void *to, const nl_option *row, const char *value)
{
    agent_settings *s = to;
    char *token = confine_keep_file(value, CONFINE_READ) ? program_read_secret(value) : NULL;
    if (token == NULL)
        return false;
    free(s->token);
    s->token = token;
    return nl_option_set_by_type(row, s, value);
}

/* The option row of a limit from 1 to 1,000,000. */
#define LIMIT_ROW(option, initially, member, text)                                                                     \
    {                                                                                                                  \
        .name = (option), .type = NL_OPTION_COUNT, .initial = (initially), .minimum = 1, .maximum = 1000000,           \
        .on_reload = true, NL_OPTION_MEMBER(agent_settings, member), .help = (text)                                    \
    }

const nl_option agent_settings_rows[] = {
    {.name = "listen",
     .value = "URL",
     .repeatable = true,
     .on_reload = true,
     .set = agent_add_listening,
     .get = agent_get_listening,
     .initial = "(inherited:* if systemd opened sockets, otherwise http://127.0.0.1)",
     .help = "Address on which to listen: http://HOST[:PORT] (default port 14831), https://HOST[:PORT] with TLS "
             "options, or inherited:NAME (a socket that systemd opened). inherited:* selects all these sockets"},
    {.name = "allow",
     .value = "NETWORK",
     .repeatable = true,
     .on_reload = true,
     .set = network_list_set,
     .get = agent_get_allowed,
     NL_OPTION_MEMBER(agent_settings, allow),
     .help = "Comma-separated networks and addresses from which clients may connect, such as 10.0.0.0/8,fd00::/8"},
    {.name = "access",
     .type = NL_OPTION_COPY,
     .value = "FILE",
     .on_reload = true,
     NL_OPTION_MEMBER(agent_settings, access),
     .help = "Read the access rights of tokens, certificates and networks from FILE",
     .initial = "(this host has all rights, and other hosts may only read)"},
    {.name = "sensor",
     .value = "NAME=COMMAND",
     .repeatable = true,
     .on_reload = true,
     .set = agent_add_sensor,
     .get = agent_get_sensor,
     .help = "Add a sensor called NAME; COMMAND prints the sensor's records"},
    {.name = "sensor-program",
     .type = NL_OPTION_COPY,
     .value = "FILE",
     NL_OPTION_MEMBER(agent_settings, sensor_program),
     .help = "Program that runs the built-in sensors"},
    {.name = "reflect",
     .value = "NETWORK",
     .repeatable = true,
     .on_reload = true,
     .set = network_list_set,
     .get = agent_get_reflected,
     NL_OPTION_MEMBER(agent_settings, reflect),
     .initial = "(no reflection)",
     .help = "Comma-separated networks whose path sensors may measure the path to this host"},
    {.name = "reflect-port",
     .type = NL_OPTION_COUNT,
     .value = "PORT",
     .initial = "14834",
     .minimum = 1,
     .maximum = 65535,
     NL_OPTION_MEMBER(agent_settings, reflect_port),
     .help = "UDP and TCP port for --reflect"},
    {.name = "serve-directory",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(agent_settings, is_directory),
     .help = "Serve as a directory, in which agents register and clients find agents"},
    {.name = "register",
     .type = NL_OPTION_COPY,
     .value = "URL",
     NL_OPTION_MEMBER(agent_settings, directory),
     .help = "Register with this directory: http://HOST[:PORT], https://HOST[:PORT] or ldap://HOST"},
    {.name = "register-token",
     .type = NL_OPTION_COPY,
     .value = "FILE",
     .set = agent_set_token,
     NL_OPTION_MEMBER(agent_settings, token_file),
     .help = "Send the token in the first line of FILE to the directory"},
    {.name = "register-ca",
     .type = NL_OPTION_COPY,
     .value = "FILE",
     NL_OPTION_MEMBER(agent_settings, ca),
     .help = "CA certificate for verifying an https directory"},
    {.name = "register-cert",
     .type = NL_OPTION_COPY,
     .value = "FILE",
     NL_OPTION_MEMBER(agent_settings, cert),
     .help = "File with the client certificate and key for an https directory"},
    {.name = "ldap-base",
     .type = NL_OPTION_COPY,
     .value = "DN",
     NL_OPTION_MEMBER(agent_settings, ldap_base),
     .help = "LDAP entry below which agents are registered"},
    {.name = "ldap-bind",
     .type = NL_OPTION_COPY,
     .value = "DN",
     NL_OPTION_MEMBER(agent_settings, ldap_bind),
     .help = "LDAP name (DN) for authentication"},
    {.name = "ldap-password",
     .type = NL_OPTION_COPY,
     .value = "FILE",
     NL_OPTION_MEMBER(agent_settings, ldap_password),
     .help = "Read the LDAP password from the first line of FILE"},
    {.name = "ttl",
     .type = NL_OPTION_DURATION,
     .initial = "60s",
     .minimum = NL_NS_PER_SECOND,
     .maximum = 86400 * NL_NS_PER_SECOND,
     NL_OPTION_MEMBER(agent_settings, ttl_ns),
     .help = "Time after which a registration expires unless nlagentd renews it"},
    {.name = "url",
     .type = NL_OPTION_COPY,
     .value = "URL",
     NL_OPTION_MEMBER(agent_settings, url),
     .help = "URL that the directory gives to clients of this agent",
     .initial = "(the first --listen)"},
    {.name = "host",
     .type = NL_OPTION_COPY,
     .value = "NAME",
     NL_OPTION_MEMBER(agent_settings, host),
     .help = "Name of this host",
     .initial = "($NETLOGGER_HOST, or the host's name)"},
    {.name = "log",
     .type = NL_OPTION_COPY,
     .value = "URL",
     NL_OPTION_MEMBER(agent_settings, log),
     .help = "Destination of nlagentd's own events",
     .initial = "file:///dev/stderr"},
    {.name = "confine",
     .type = NL_OPTION_CHOICE,
     .initial = "yes",
     .choices = "no|yes",
     NL_OPTION_MEMBER(agent_settings, confine),
     .help =
         "Use seccomp and Landlock to give up the system calls, file access and network ports that this configuration "
         "does not need. Sensors keep most of these rights, and gain no privileges from set-user-ID programs"},
    LIMIT_ROW("max-sensors", "100", limits.sensors, "Maximum number of running sensors"),
    LIMIT_ROW("max-subscriptions", "1000", limits.subscriptions, "Maximum number of subscriptions"),
    LIMIT_ROW("max-per-consumer", "100", limits.per_consumer, "Maximum number of subscriptions per client"),
    LIMIT_ROW(
        "max-connections", "2000", limits.connections,
        "Maximum number of clients. To accept a new client at this limit, nlagentd disconnects a silent client of "
        "the address that has the most clients, or rejects the new client if none is silent"),
    LIMIT_ROW("max-per-address", "1000", limits.per_address,
              "Maximum number of clients from one IPv4 address or one IPv6 /64 network"),
    LIMIT_ROW(
        "queue", "2000", limits.queue,
        "Maximum number of unread records per subscription; beyond this number, the client misses the oldest records"),
    {.name = "min-interval",
     .type = NL_OPTION_DURATION,
     .initial = "10ms",
     .minimum = 1000000,
     .maximum = 86400 * NL_NS_PER_SECOND,
     .on_reload = true,
     NL_OPTION_MEMBER(agent_settings, min_interval_ns),
     .help = "Minimum interval between a sensor's measurements"},
    {0},
};

const nl_option agent_settings_command_rows[] = {
    CONFIG_FILE_ROW(agent_settings, config),
    {.name = "foreground",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(agent_settings, foreground),
     .help = "Stay in the foreground"},
    {0},
};

bool agent_settings_finish(agent_settings *s)
{
    s->limits.min_interval_s = (double)s->min_interval_ns / 1e9;
    if (s->directory != NULL && strncmp(s->directory, "ldap", 4) == 0 && s->ldap_base == NULL)
        return nl_error_false(NL_ERROR_INVALID, "--register: ldap:// needs --ldap-base");
    const char *listen = inherited_count() > 0 ? "inherited:*" : "http://127.0.0.1";
    return s->listen_count > 0 || agent_add_listening(s, NULL, listen);
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
    confine_keep_resolver(); /* keep the resolver, to check the Host header of a request, which may contain this host's
                                name */
    if (s->directory != NULL && url_from_http(s->directory, "14831", url, sizeof url))
        keep_url(url);
    else if (s->directory != NULL) /* any port, because an LDAP server may refer to other servers */
        confine_keep_any_port();
}

/* ---- use ---- */

const char *agent_settings_fixed_difference(const agent_settings *a, const agent_settings *b)
{
    bool listens_alike = a->listen_count == b->listen_count;
    for (size_t i = 0; i < a->listen_count && listens_alike; i++)
        listens_alike =
            strcmp(a->listen[i].url, b->listen[i].url) == 0 && (a->listen[i].tls == NULL) == (b->listen[i].tls == NULL);
    if (!listens_alike)
        return "listen";
    const nl_option *row = nl_options_fixed_difference(agent_settings_rows, a, b);
    if (row != NULL)
        return row->name;
    bool tokens_alike = a->token == NULL || b->token == NULL ? a->token == b->token : strcmp(a->token, b->token) == 0;
    return tokens_alike ? NULL : "register-token"; /* the content of the file has changed */
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
