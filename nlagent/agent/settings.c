#include "config.h"

#include "agent/settings.h"

#include "program/program.h"
#include "service/inherited.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKEN_MOST = 300 };

agent_settings *agent_settings_new(void)
{
    agent_settings *s = calloc(1, sizeof *s);
    if (s == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    s->limits = (agent_limits){100, 1000, 100, 2000, 0.01, 2000, 1000};
    s->ttl_s = 60;
    s->confine = true;
    s->log = program_copy("file:///dev/stderr");
    return s;
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
    char *const texts[] = {s->access,    s->sensor_program, s->log,          s->url, s->host,
                           s->directory, s->token,          s->token_file,   s->ca,  s->cert,
                           s->ldap_base, s->ldap_bind,      s->ldap_password};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free(texts[i]);
    free(s);
}

/* ---- setting ---- */

/* Reads the options of a listen URL. */
static const char *read_tls(const nl_url *url, bool secure, listening *l)
{
    static char words[NL_CHANNEL_WORDS];
    nl_tls_options tls = {.ca = nl_url_option_value(url, "ca"),
                          .cert = nl_url_option_value(url, "cert"),
                          .key = nl_url_option_value(url, "key"),
                          .crl = nl_url_option_value(url, "crl"),
                          .peers = nl_url_option_value(url, "peers")};
    const char *names = nl_url_option_value(url, "names");
    l->names = names != NULL ? program_copy(names) : NULL;
    if (!secure && url->option_count == (names != NULL))
        return NULL;
    l->tls = nl_tls_new(true, &tls, words);
    l->vouched = tls.ca != NULL;
    return l->tls != NULL ? NULL : words;
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

static const char *add_listen(agent_settings *s, const char *text)
{
    char url[1024];
    bool secure = strncmp(text, "https://", 8) == 0;
    if (s->listen_count == SETTINGS_LISTEN_MOST)
        return "so many are too many";
    if (strncmp(text, "inherited:", 10) == 0)
        snprintf(url, sizeof url, "%s", text);
    else if (!to_listener_url(text, url, sizeof url))
        return "http://, https:// or inherited: is wanted";
    nl_url *parsed = nl_url_parse(url);
    if (parsed == NULL)
        return nl_error_message();
    listening *l = &s->asked[s->listen_count];
    const char *why = read_tls(parsed, secure, l);
    nl_url_free(parsed);
    if (why != NULL)
        return why;
    url[strcspn(url, "?")] = '\0';
    l->url = program_copy(url);
    s->listen[s->listen_count++] = program_copy(text);
    return NULL;
}

static const char *add_allow(agent_settings *s, const char *value)
{
    if (s->allow_count == SETTINGS_ALLOW_MOST)
        return "so many are too many";
    if (!network_parse(value, &s->allow[s->allow_count]))
        return "ADDRESS or ADDRESS/BITS is wanted";
    s->allow_count++;
    return NULL;
}

static const char *add_sensor(agent_settings *s, const char *value)
{
    const char *why = definition_check_own(value);
    if (why != NULL)
        return why;
    if (s->sensor_count == SETTINGS_SENSORS_MOST)
        return "so many are too many";
    s->sensors[s->sensor_count++] = program_copy(value);
    return NULL;
}

static const char *set_text(char **place, const char *value)
{
    free(*place);
    *place = program_copy(value);
    return NULL;
}

static const char *set_number(size_t *place, const char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || value == 0 || value > 1000000)
        return "a whole number from 1 to 1000000 is wanted";
    *place = value;
    return NULL;
}

static const char *set_seconds(double *place, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 0.001 && value <= 86400))
        return "0.001 to 86400 seconds are wanted";
    *place = value;
    return NULL;
}

/* As directories take it. */
static const char *set_ttl(double *place, const char *text)
{
    double value;
    if (set_seconds(&value, text) != NULL || value < 1)
        return "1 to 86400 seconds are wanted";
    *place = value;
    return NULL;
}

/* The first line of a file. */
static const char *set_token(agent_settings *s, const char *path)
{
    char token[TOKEN_MOST];
    FILE *file = fopen(path, "re");
    bool good = file != NULL && fgets(token, sizeof token, file) != NULL;
    if (file != NULL)
        fclose(file);
    if (!good)
        return "it cannot be read";
    token[strcspn(token, "\r\n")] = '\0';
    set_text(&s->token, token);
    return set_text(&s->token_file, path);
}

static const char *set_flag(bool *place, const char *value)
{
    *place = strcmp(value, "no") != 0;
    return *value == '\0' || !*place || strcmp(value, "yes") == 0 ? NULL : "it is neither yes nor no";
}

/* Sets a directive that is a text; false when it is none. */
static bool set_if_text(agent_settings *s, const char *name, const char *value)
{
    const struct {
        const char *name;
        char **place;
    } known[] = {{"access", &s->access},
                 {"sensor-program", &s->sensor_program},
                 {"log", &s->log},
                 {"url", &s->url},
                 {"host", &s->host},
                 {"register", &s->directory},
                 {"register-ca", &s->ca},
                 {"register-cert", &s->cert},
                 {"ldap-base", &s->ldap_base},
                 {"ldap-bind", &s->ldap_bind},
                 {"ldap-password", &s->ldap_password}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, name) == 0) {
            set_text(known[i].place, value);
            return true;
        }
    return false;
}

const char *agent_settings_set(agent_settings *s, const char *name, const char *value)
{
    if (strcmp(name, "directory") == 0)
        return set_flag(&s->is_directory, value);
    if (*value == '\0')
        return "it has no value";
    if (set_if_text(s, name, value))
        return NULL;
    if (strcmp(name, "listen") == 0)
        return add_listen(s, value);
    if (strcmp(name, "allow") == 0)
        return add_allow(s, value);
    if (strcmp(name, "sensor") == 0)
        return add_sensor(s, value);
    if (strcmp(name, "confine") == 0)
        return set_flag(&s->confine, value);
    if (strcmp(name, "register-token") == 0)
        return set_token(s, value);
    if (strcmp(name, "ttl") == 0)
        return set_ttl(&s->ttl_s, value);
    if (strcmp(name, "max-sensors") == 0)
        return set_number(&s->limits.sensors, value);
    if (strcmp(name, "max-subscriptions") == 0)
        return set_number(&s->limits.subscriptions, value);
    if (strcmp(name, "max-per-consumer") == 0)
        return set_number(&s->limits.per_consumer, value);
    if (strcmp(name, "max-connections") == 0)
        return set_number(&s->limits.connections, value);
    if (strcmp(name, "max-per-address") == 0)
        return set_number(&s->limits.per_address, value);
    if (strcmp(name, "queue") == 0)
        return set_number(&s->limits.queue, value);
    if (strcmp(name, "least-interval") == 0)
        return set_seconds(&s->limits.least_interval_s, value);
    return "there is no such directive";
}

const char *agent_settings_finish(agent_settings *s)
{
    if (s->directory != NULL && strncmp(s->directory, "ldap", 4) == 0 && s->ldap_base == NULL)
        return "with --register ldap://, --ldap-base is wanted";
    return s->listen_count == 0 ? add_listen(s, inherited_count() > 0 ? "inherited:*" : "http://127.0.0.1") : NULL;
}

/* ---- comparing, and what others want ---- */

static bool differ(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a != b : strcmp(a, b) != 0;
}

const char *agent_settings_fixed_difference(const agent_settings *a, const agent_settings *b)
{
    bool listens_alike = a->listen_count == b->listen_count;
    for (size_t i = 0; i < a->listen_count && listens_alike; i++)
        listens_alike =
            strcmp(a->asked[i].url, b->asked[i].url) == 0 && (a->asked[i].tls == NULL) == (b->asked[i].tls == NULL);
    return !listens_alike                                 ? "listen"
           : differ(a->sensor_program, b->sensor_program) ? "sensor-program"
           : differ(a->log, b->log)                       ? "log"
           : differ(a->url, b->url)                       ? "url"
           : differ(a->host, b->host)                     ? "host"
           : a->is_directory != b->is_directory           ? "directory"
           : a->confine != b->confine                     ? "confine"
           : differ(a->directory, b->directory)           ? "register"
           : differ(a->token, b->token)                   ? "register-token"
           : differ(a->ca, b->ca)                         ? "register-ca"
           : differ(a->cert, b->cert)                     ? "register-cert"
           : differ(a->ldap_base, b->ldap_base)           ? "ldap-base"
           : differ(a->ldap_bind, b->ldap_bind)           ? "ldap-bind"
           : differ(a->ldap_password, b->ldap_password)   ? "ldap-password"
           : a->ttl_s != b->ttl_s                         ? "ttl"
                                                          : NULL;
}

registrar_options agent_settings_registrar(const agent_settings *s)
{
    return (registrar_options){
        .directory = s->directory,
        .ttl_s = s->ttl_s,
        .client = {.ca = s->ca, .cert = s->cert, .token = s->token},
        .ldap = {
            .url = s->directory, .base = s->ldap_base, .bind_dn = s->ldap_bind, .password_file = s->ldap_password}};
}
