#include "config.h"

#include "agents/ldap_directory.h"

#include "agents/client.h"
#include "base/error.h"
#include "base/text.h"
#include "filter/filter_internal.h"
#include "program/program.h"

#include <ctype.h>
#include <ldap.h>
#include <netlogger.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TIMEOUT_S = 10, DN_SIZE = 2048, FILTER_SIZE = 1024, NAME_SIZE = 80 };

static bool ldap_directory_fail(const char *what, int error)
{
    return nl_error_false(NL_ERROR_SYSTEM, "LDAP: %s: %s%s", what, ldap_err2string(error),
                          error == LDAP_SERVER_DOWN ? "; is an LDAP server running there?" : "");
}

/* ---- connecting ---- */

/* The first call initializes libldap, which is not thread-safe (see ldap_initialize(3)). */
__attribute__((constructor)) static void initialize_library(void)
{
    int version;
    ldap_get_option(NULL, LDAP_OPT_PROTOCOL_VERSION, &version);
}

static LDAP *connect_and_bind(const ldap_options *o)
{
    LDAP *ldap = NULL;
    struct timeval time = {.tv_sec = TIMEOUT_S};
    char *password = o->password_file != NULL ? program_read_secret(o->password_file) : program_copy("");
    if (password == NULL)
        return NULL;
    int version = LDAP_VERSION3, error = ldap_initialize(&ldap, o->url);
    if (error == LDAP_SUCCESS) {
        ldap_set_option(ldap, LDAP_OPT_PROTOCOL_VERSION, &version);
        ldap_set_option(ldap, LDAP_OPT_NETWORK_TIMEOUT, &time);
        ldap_set_option(ldap, LDAP_OPT_TIMEOUT, &time);
        struct berval secret = {strlen(password), password};
        error = ldap_sasl_bind_s(ldap, o->bind_dn, LDAP_SASL_SIMPLE, &secret, NULL, NULL, NULL);
    }
    explicit_bzero(password, strlen(password));
    free(password);
    if (error == LDAP_SUCCESS)
        return ldap;
    ldap_directory_fail(o->url, error);
    if (ldap != NULL)
        ldap_unbind_ext_s(ldap, NULL, NULL);
    return NULL;
}

/* ---- names ---- */

/* Appends text with the special characters of LDAP names escaped. */
static void put_name(char *out, size_t size, const char *text)
{
    size_t used = strlen(out);
    for (; *text != '\0' && used + 4 < size; text++)
        used +=
            (size_t)sprintf(out + used, strchr(",+\"\\<>;=# ", *text) != NULL ? "\\%02x" : "%c", (unsigned char)*text);
}

static void agent_dn(const ldap_options *o, const char *url, char dn[DN_SIZE])
{
    snprintf(dn, DN_SIZE, "nlURL=");
    put_name(dn, DN_SIZE / 2, url);
    snprintf(dn + strlen(dn), DN_SIZE - strlen(dn), ",%s", o->base);
}

static void sensor_dn(const char *agent, const char *name, char dn[DN_SIZE])
{
    snprintf(dn, DN_SIZE, "nlSensor=");
    put_name(dn, 200, name);
    snprintf(dn + strlen(dn), DN_SIZE - strlen(dn), ",%.1700s", agent);
}

static void time_text(time_t at, char text[32])
{
    struct tm parts;
    gmtime_r(&at, &parts);
    strftime(text, 32, "%Y%m%d%H%M%SZ", &parts);
}

/* ---- registering ---- */

/*
 * Adds or replaces an entry. `pairs` lists names and values of attributes, and ends with NULL. Omits attributes with
 * empty values, because LDAP does not allow empty values.
 */
static int put_entry(LDAP *ldap, const char *dn, const char *const *pairs)
{
    LDAPMod mods[10], *list[11];
    char *values[10][2];
    size_t count = 0;
    for (; pairs[0] != NULL; pairs += 2) {
        if (*pairs[1] == '\0')
            continue;
        values[count][0] = (char *)pairs[1];
        values[count][1] = NULL;
        mods[count] = (LDAPMod){.mod_op = LDAP_MOD_ADD, .mod_type = (char *)pairs[0], .mod_values = values[count]};
        list[count] = &mods[count];
        count++;
    }
    list[count] = NULL;
    int error = ldap_add_ext_s(ldap, dn, list, NULL, NULL);
    if (error != LDAP_ALREADY_EXISTS)
        return error;
    for (size_t i = 1; i < count; i++)
        mods[i].mod_op = LDAP_MOD_REPLACE;
    /* Omit the first two modifications, because the object class and the naming attribute do not change. */
    return ldap_modify_ext_s(ldap, dn, list + 2, NULL, NULL);
}

/* Deletes an agent's entry and the entries below it. */
static int delete_tree(LDAP *ldap, const char *dn)
{
    LDAPMessage *found = NULL;
    char *nothing[] = {LDAP_NO_ATTRS, NULL};
    ldap_search_ext_s(ldap, dn, LDAP_SCOPE_ONELEVEL, "(objectClass=*)", nothing, 0, NULL, NULL, NULL, 0, &found);
    for (LDAPMessage *e = ldap_first_entry(ldap, found); e != NULL; e = ldap_next_entry(ldap, e)) {
        char *name = ldap_get_dn(ldap, e);
        ldap_delete_ext_s(ldap, name, NULL, NULL);
        ldap_memfree(name);
    }
    ldap_msgfree(found);
    return ldap_delete_ext_s(ldap, dn, NULL, NULL);
}

/* Deletes agents that expired at least a minute ago, if this agent has permission. */
static void delete_expired(LDAP *ldap, const ldap_options *o)
{
    char filter[100], limit[32], *nothing[] = {LDAP_NO_ATTRS, NULL};
    LDAPMessage *found = NULL;
    time_text(time(NULL) - 60, limit);
    snprintf(filter, sizeof filter, "(&(objectClass=nlAgent)(nlExpires<=%s))", limit);
    ldap_search_ext_s(ldap, o->base, LDAP_SCOPE_ONELEVEL, filter, nothing, 0, NULL, NULL, NULL, 0, &found);
    for (LDAPMessage *e = ldap_first_entry(ldap, found); e != NULL; e = ldap_next_entry(ldap, e)) {
        char *name = ldap_get_dn(ldap, e);
        delete_tree(ldap, name);
        ldap_memfree(name);
    }
    ldap_msgfree(found);
}

bool ldap_register(const ldap_options *o, const char *host, const char *url, double ttl_s,
                   const directory_sensor *sensors, size_t count)
{
    char agent[DN_SIZE], dn[DN_SIZE], until[32];
    LDAP *ldap = connect_and_bind(o);
    if (ldap == NULL)
        return false;
    time_text(time(NULL) + (time_t)ttl_s + 1, until);
    agent_dn(o, url, agent);
    const char *const entry[] = {"objectClass", "nlAgent", "nlURL", url, "nlHost", host, "nlExpires", until, NULL};
    int error = put_entry(ldap, agent, entry);
    for (size_t i = 0; i < count && error == LDAP_SUCCESS; i++) {
        const char *const one[] = {"objectClass", "nlSensorEntry",   "nlSensor", sensors[i].name, "nlURL",
                                   url,           "nlHost",          host,       "nlExpires",     until,
                                   "nlEvents",    sensors[i].events, "nlWhat",   sensors[i].what, NULL};
        sensor_dn(agent, sensors[i].name, dn);
        error = put_entry(ldap, dn, one);
    }
    if (error == LDAP_SUCCESS)
        delete_expired(ldap, o);
    else
        ldap_directory_fail(agent, error);
    ldap_unbind_ext_s(ldap, NULL, NULL);
    return error == LDAP_SUCCESS;
}

bool ldap_withdraw(const ldap_options *o, const char *url)
{
    char agent[DN_SIZE];
    LDAP *ldap = connect_and_bind(o);
    if (ldap == NULL)
        return false;
    agent_dn(o, url, agent);
    int error = delete_tree(ldap, agent);
    ldap_unbind_ext_s(ldap, NULL, NULL);
    return error == LDAP_SUCCESS || ldap_directory_fail(agent, error);
}

/* ---- finding ---- */

/* Returns an attribute's value, or "". The caller frees it. */
static char *value_of(LDAP *ldap, LDAPMessage *entry, const char *name)
{
    struct berval **values = ldap_get_values_len(ldap, entry, name);
    char *text = values != NULL && values[0] != NULL ? strndup(values[0]->bv_val, values[0]->bv_len) : strdup("");
    ldap_value_free_len(values);
    return text;
}

static void show(LDAP *ldap, LDAPMessage *entry, const nl_filter *filter, nl_record *row,
                 void (*function)(void *user, const char *host, const char *url, const directory_sensor *sensors,
                                  size_t count),
                 void *user)
{
    static const char *const attributes[] = {"nlHost", "nlURL", "nlSensor", "nlEvents", "nlWhat"};
    static const char *const names[] = {"host", "url", "sensor", "events", "what"};
    char *values[5];
    nl_record_clear(row);
    for (int i = 0; i < 5; i++) {
        values[i] = value_of(ldap, entry, attributes[i]);
        if (i == 0)
            nl_record_set_host(row, values[i], strlen(values[i]));
        else
            nl_record_add_text(row, names[i], values[i]);
    }
    const directory_sensor sensor = {values[2], values[4], values[3]};
    if (nl_filter_matches(filter, row))
        function(user, values[0], values[1], &sensor, 1);
    for (int i = 0; i < 5; i++)
        free(values[i]);
}

/* Returns whether a test is "sensor == NAME", and copies NAME to `name`. */
static bool is_name_test(const nl_filter *filter, const nl_filter_test *test, char name[NAME_SIZE])
{
    static const char others[] = {'_', '.', '-'};
    if (test->operator!= NL_OPERATOR_EQUAL || test->numeric || test->name.size != strlen("sensor") ||
        memcmp(test->name.data, "sensor", test->name.size) != 0)
        return false;
    const nl_string value = filter->operands[test->first_operand].text;
    bool is_name = value.size > 0 && value.size < NAME_SIZE;
    for (size_t i = 0; is_name && i < value.size; i++)
        is_name = isalnum((unsigned char)value.data[i]) || memchr(others, value.data[i], sizeof others) != NULL;
    if (is_name)
        snprintf(name, NAME_SIZE, "%.*s", (int)value.size, value.data);
    return is_name;
}

/*
 * Sets text to the filter for the server. The filter contains the test "sensor == NAME" if the expression requires it.
 * The caller evaluates the whole expression for each entry that the server returns.
 */
static void server_filter(const nl_filter *filter, char text[FILTER_SIZE])
{
    char now[32], name[NAME_SIZE];
    size_t number = filter != NULL ? 0 : NL_FILTER_YES;
    time_text(time(NULL), now);
    /* Follow the tests that must be true. */
    while (number < NL_FILTER_NO && filter->tests[number].next[0] == NL_FILTER_NO) {
        if (is_name_test(filter, &filter->tests[number], name)) {
            snprintf(text, FILTER_SIZE, "(&(objectClass=nlSensorEntry)(nlSensor=%s)(nlExpires>=%s))", name, now);
            return;
        }
        number = filter->tests[number].next[1];
    }
    snprintf(text, FILTER_SIZE, "(&(objectClass=nlSensorEntry)(nlExpires>=%s))", now);
}

bool ldap_find(const ldap_options *o, const char *expression,
               void (*function)(void *user, const char *host, const char *url, const directory_sensor *sensors,
                                size_t count),
               void *user)
{
    char asked[FILTER_SIZE];
    nl_filter *filter = NULL;
    LDAPMessage *found = NULL;
    if (*expression != '\0' && (filter = directory_filter(expression)) == NULL)
        return false;
    LDAP *ldap = connect_and_bind(o);
    if (ldap == NULL) {
        nl_filter_free(filter);
        return false;
    }
    server_filter(filter, asked);
    int error = ldap_search_ext_s(ldap, o->base, LDAP_SCOPE_SUBTREE, asked, NULL, 0, NULL, NULL, NULL, 0, &found);
    nl_record *row = nl_record_new();
    for (LDAPMessage *e = ldap_first_entry(ldap, found); e != NULL; e = ldap_next_entry(ldap, e))
        show(ldap, e, filter, row, function, user);
    nl_record_free(row);
    nl_filter_free(filter);
    ldap_msgfree(found);
    ldap_unbind_ext_s(ldap, NULL, NULL);
    return error == LDAP_SUCCESS || ldap_directory_fail(o->base, error);
}
