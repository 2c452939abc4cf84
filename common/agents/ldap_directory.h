/*
 * A directory of agents in LDAP. Each agent and each of its sensors has an entry, with the object classes of
 * nlagent.schema.
 *
 *   nlURL=http://dpss1:14831,BASE                            nlAgent: nlHost, nlExpires
 *   nlSensor=tcp,nlURL=http://dpss1:14831,BASE               nlSensorEntry: nlHost, nlURL, nlEvents, nlWhat, nlExpires
 *
 * An entry is valid until nlExpires. Searches ignore expired entries, and the next agent that registers deletes expired
 * entries if it has permission. The functions block. Any thread may call these functions.
 */
#ifndef NLAGENT_LDAP_DIRECTORY_H
#define NLAGENT_LDAP_DIRECTORY_H

#include "agents/directory.h"

typedef struct ldap_options {
    const char *url;           /* ldap://HOST[:PORT] */
    const char *base;          /* ou=netlogger,dc=example */
    const char *bind_dn;       /* NULL means that the connection is anonymous */
    const char *password_file; /* the first line of this file is the password */
} ldap_options;

/* Registers or withdraws an agent. Return false and set the error on failure. */
bool ldap_register(const ldap_options *o, const char *host, const char *url, double ttl_s,
                   const directory_sensor *sensors, size_t count);
bool ldap_withdraw(const ldap_options *o, const char *url);

/*
 * Calls `function` for each sensor that matches `expression` (see directory_filter). Returns false and sets the error
 * on failure.
 */
bool ldap_find(const ldap_options *o, const char *expression,
               void (*function)(void *user, const char *host, const char *url, const directory_sensor *sensors,
                                size_t count),
               void *user);

#endif
