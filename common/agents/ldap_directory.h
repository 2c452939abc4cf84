/*
 * The directory in LDAP: an entry for each agent and each of its sensors, of the object classes of nlagent.schema.
 *
 *   nlURL=http://dpss1:14831,BASE                            nlAgent: nlHost, nlExpires
 *   nlSensor=tcp,nlURL=http://dpss1:14831,BASE               nlSensorEntry: nlHost, nlURL, nlEvents, nlWhat, nlExpires
 *
 * Entries are valid up to nlExpires; those beyond are passed over in looking up, and deleted by who registers next and
 * may.
 */
#ifndef NLAGENT_LDAP_DIRECTORY_H
#define NLAGENT_LDAP_DIRECTORY_H

#include "agents/directory.h"

typedef struct ldap_options {
    const char *url;           /* ldap://HOST[:PORT] */
    const char *base;          /* ou=netlogger,dc=example */
    const char *bind_dn;       /* NULL: anonymously */
    const char *password_file; /* its first line is the password */
} ldap_options;

bool ldap_register(const ldap_options *o, const char *host, const char *url, double ttl_s,
                   const directory_sensor *sensors, size_t count);
bool ldap_withdraw(const ldap_options *o, const char *url);

/* Calls function for each sensor that is meant: agents come again and again. filter as directory_filter's expression.
 */
bool ldap_find(const ldap_options *o, const char *expression,
               void (*function)(void *user, const char *host, const char *url, const directory_sensor *sensors,
                                size_t count),
               void *user);

#endif
