/* In place of ldap_directory.c where libldap is not. */
#include "config.h"

#include "client/ldap_directory.h"

#include <stdio.h>

static bool refuse(char words[LDAP_WORDS])
{
    snprintf(words, LDAP_WORDS, "this was built without LDAP");
    return false;
}

bool ldap_register(const ldap_options *o, const char *host, const char *url, double ttl_s,
                   const directory_sensor *sensors, size_t count, char words[LDAP_WORDS])
{
    (void)o, (void)host, (void)url, (void)ttl_s, (void)sensors, (void)count;
    return refuse(words);
}

bool ldap_withdraw(const ldap_options *o, const char *url, char words[LDAP_WORDS])
{
    (void)o, (void)url;
    return refuse(words);
}

bool ldap_find(const ldap_options *o, const char *expression,
               void (*function)(void *user, const char *host, const char *url, const directory_sensor *sensors,
                                size_t count),
               void *user, char words[LDAP_WORDS])
{
    (void)o, (void)expression, (void)function, (void)user;
    return refuse(words);
}
