/*
 * Has an agent registered with directories, again and again, from a thread of its own: a directory that is dead or slow
 * holds up nothing. Directories are agents with --directory (http://, https://) and LDAP servers (ldap://, ldaps://,
 * ldapi://). What goes wrong is said once, and when it goes well again.
 */
#ifndef NLAGENT_REGISTRAR_H
#define NLAGENT_REGISTRAR_H

#include "agent/agent.h"
#include "agents/client.h"
#include "agents/ldap_directory.h"

typedef struct registrar registrar;

typedef struct registrar_options {
    const char *directory;  /* a URL */
    const char *host, *url; /* of this agent */
    double ttl_s;
    client_options client;
    ldap_options ldap;
} registrar_options;

/* Starts the thread; what the options point to, and the definitions, must last. NULL on failure. */
registrar *registrar_start(const registrar_options *o, definitions *all, nl_log *log);

/* Tells the directory what sensors there are now. NULL is allowed. */
void registrar_again(registrar *r);

/*
 * Withdraws the registration and ends the thread. NULL is allowed. False when that takes more than two seconds, for the
 * directory is slow: the thread is then left to the process's end, and what it was given must last until then, except
 * for the log.
 */
bool registrar_stop(registrar *r);

#endif
