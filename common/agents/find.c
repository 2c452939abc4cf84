#include "config.h"

#include "agents/find.h"

#include "base/error.h"
#include "base/memory.h"
#include "program/program.h"

#include <libxml/parser.h>
#include <stdlib.h>
#include <string.h>

static bool agents_add_agent(void *settings, const nl_option *row, const char *value)
{
    agents_options *o = settings;
    (void)row;
    o->agents = nl_memory_check(realloc(o->agents, (o->agent_count + 1) * sizeof *o->agents));
    o->agents[o->agent_count++] = value;
    return true;
}

const nl_option agents_place_rows[] = {
    {.name = "agent",
     .letter = 'a',
     .value = "URL",
     .initial = "(http://127.0.0.1:14831)",
     .environment = "NLAGENT",
     .repeatable = true,
     .set = agents_add_agent,
     .help = "Agent to query: http://HOST[:PORT] or https://HOST[:PORT]; collect accepts several agents"},
    {.name = "directory",
     .value = "URL",
     .initial = "(the first --agent)",
     .environment = "NLAGENT_DIRECTORY",
     NL_OPTION_MEMBER(agents_options, directory),
     .help = "Directory of agents: an nlagentd that runs with --serve-directory, or ldap://HOST"},
    {0},
};

const nl_option agents_security_rows[] = {
    {.name = "ca",
     .value = "FILE",
     .environment = "NLAGENT_CA",
     NL_OPTION_MEMBER(agents_options, client.ca),
     .help = "CA certificate for verifying https agents"},
    {.name = "cert",
     .value = "FILE",
     .environment = "NLAGENT_CERT",
     NL_OPTION_MEMBER(agents_options, client.cert),
     .help = "Client certificate for https"},
    {.name = "cert-key",
     .value = "FILE",
     .initial = "(read from the --cert file)",
     .environment = "NLAGENT_KEY",
     NL_OPTION_MEMBER(agents_options, client.key),
     .help = "Private key of the client certificate"},
    {.name = "token-file",
     .value = "FILE",
     .environment = "NLAGENT_TOKEN_FILE",
     NL_OPTION_MEMBER(agents_options, token_file),
     .help = "Send the token in the first line of FILE to the agent"},
    {.name = "ldap-base",
     .value = "DN",
     .environment = "NLAGENT_LDAP_BASE",
     NL_OPTION_MEMBER(agents_options, ldap.base),
     .help = "LDAP entry below which agents are registered"},
    {.name = "ldap-bind",
     .value = "DN",
     .environment = "NLAGENT_LDAP_BIND",
     NL_OPTION_MEMBER(agents_options, ldap.bind_dn),
     .help = "LDAP name (DN) for authentication"},
    {.name = "ldap-password",
     .value = "FILE",
     .environment = "NLAGENT_LDAP_PASSWORD",
     NL_OPTION_MEMBER(agents_options, ldap.password_file),
     .help = "Read the LDAP password from the first line of FILE"},
    {0},
};

bool agents_options_finish(agents_options *o)
{
    char *token = NULL;
    xmlInitParser();
    if (o->token_file != NULL && (token = program_read_secret(o->token_file)) == NULL)
        return false;
    o->client.token = token;
    return true;
}

bool agents_options_from_environment(agents_options *o)
{
    *o = (agents_options){0};
    return nl_options_read_environment(agents_place_rows, o) == NULL &&
           nl_options_read_environment(agents_security_rows, o) == NULL && agents_options_finish(o);
}

const char *agents_first_url(const agents_options *o)
{
    return o->agent_count > 0 ? o->agents[0] : AGENTS_DEFAULT_URL;
}

const char *agents_directory_url(const agents_options *o)
{
    return o->directory != NULL ? o->directory : agents_first_url(o);
}

/* ---- finding ---- */

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
        return nl_error_false(NL_ERROR_INVALID,
                              "%s: LDAP requires --ldap-base or the environment variable NLAGENT_LDAP_BASE", url);
    return ldap_find(&ldap, expression, on_ldap, &f);
}
