#include "config.h"

#include "agents/find.h"

#include "base/error.h"

#include <libxml/parser.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool agents_read_token(const char *path, char token[AGENTS_TOKEN_SIZE])
{
    FILE *file = fopen(path, "re");
    bool good = file != NULL && fgets(token, AGENTS_TOKEN_SIZE, file) != NULL;
    if (file != NULL)
        fclose(file);
    token[good ? strcspn(token, "\r\n") : 0] = '\0';
    return good || nl_error_false(NL_ERROR_INVALID, "cannot read the token file %s", path);
}

bool agents_options_from_environment(agents_options *o, char token[AGENTS_TOKEN_SIZE])
{
    const char *token_file = getenv("NLAGENT_TOKEN_FILE");
    xmlInitParser();
    *o = (agents_options){
        .client = {.ca = getenv("NLAGENT_CA"), .cert = getenv("NLAGENT_CERT"), .key = getenv("NLAGENT_KEY")},
        .ldap = {.base = getenv("NLAGENT_LDAP_BASE"),
                 .bind_dn = getenv("NLAGENT_LDAP_BIND"),
                 .password_file = getenv("NLAGENT_LDAP_PASSWORD")}};
    if (token_file == NULL)
        return true;
    o->client.token = token;
    return agents_read_token(token_file, token);
}

/* ---- looking up ---- */

static bool find_at_agent(const agents_options *o, const char *url, const char *expression,
                          agents_found_function *function, void *user)
{
    nl_buffer message = {0};
    soap_call answer = {0};
    client *c = client_new(url, &o->client);
    if (c == NULL)
        return false;
    soap_begin(&message, "Find");
    soap_put(&message, "expression", expression);
    soap_end(&message, "Find");
    bool good = client_call(c, &message, &answer);
    const char *host = "", *agent = "", *sensor = "";
    for (size_t i = 0; i < answer.count && good; i++) {
        const char *name = answer.arguments[i].name, *value = answer.text.data + answer.arguments[i].value;
        if (strcmp(name, "agent.host") == 0)
            host = value;
        else if (strcmp(name, "agent.url") == 0)
            agent = value;
        else if (strcmp(name, "agent.sensor.name") == 0)
            sensor = value;
        else if (strcmp(name, "agent.sensor.events") == 0)
            function(user, host, agent, sensor, value);
    }
    soap_call_free(&answer);
    nl_buffer_free(&message);
    client_free(c);
    return good;
}

typedef struct found {
    agents_found_function *function;
    void *user;
} found;

static void on_ldap(void *user, const char *host, const char *url, const directory_sensor *sensors, size_t count)
{
    const found *f = user;
    for (size_t i = 0; i < count; i++)
        f->function(f->user, host, url, sensors[i].name, sensors[i].events);
}

bool agents_find_sensors(const agents_options *o, const char *url, const char *expression,
                         agents_found_function *function, void *user)
{
    ldap_options ldap = o->ldap;
    found f = {function, user};
    if (strncmp(url, "ldap", 4) != 0)
        return find_at_agent(o, url, expression, function, user);
    ldap.url = url;
    if (ldap.base == NULL)
        return nl_error_false(NL_ERROR_INVALID, "%s: LDAP needs a base; see --ldap-base of nlagent", url);
    return ldap_find(&ldap, expression, on_ldap, &f);
}
