/* In place of ldap_directory.c where libldap is not. */
#include "config.h"

#include "agents/ldap_directory.h"

#include "base/error.h"

static bool ldap_absent_refuse(void)
{
    return nl_error_false(NL_ERROR_UNSUPPORTED, "this was built without LDAP");
}

bool ldap_register(const ldap_options *o, const char *host, const char *url, double ttl_s,
                   const directory_sensor *sensors, size_t count)
{
    (void)o, (void)host, (void)url, (void)ttl_s, (void)sensors, (void)count;
    return ldap_absent_refuse();
}

bool ldap_withdraw(const ldap_options *o, const char *url)
{
    (void)o, (void)url;
    return ldap_absent_refuse();
}

bool ldap_find(const ldap_options *o, const char *expression,
               void (*function)(void *user, const char *host, const char *url, const directory_sensor *sensors,
                                size_t count),
               void *user)
{
    (void)o, (void)expression, (void)function, (void)user;
    return ldap_absent_refuse();
}
