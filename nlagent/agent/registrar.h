/*
 * Repeatedly registers an agent with a directory. Runs in a separate thread, so that an unresponsive directory does not
 * delay other work. The directory is another agent (http://, https://) or an LDAP server (ldap://, ldaps://, ldapi://).
 * The log gets an event when registration fails, and another event when registration succeeds again.
 */
#ifndef NLAGENT_REGISTRAR_H
#define NLAGENT_REGISTRAR_H

#include "agent/agent.h"
#include "agents/client.h"
#include "agents/ldap_directory.h"

typedef struct registrar registrar;

typedef struct registrar_options {
    const char *directory;  /* URL of the directory */
    const char *host, *url; /* host and URL of this agent */
    double ttl_s;
    client_options client;
    ldap_options ldap;
} registrar_options;

/*
 * Starts the thread. The strings in the options, and the definitions, must remain valid until registrar_stop. Returns
 * NULL on failure.
 */
registrar *registrar_start(const registrar_options *o, definitions *all, nl_log *log);

/* Makes the thread register the current sensors now. `r` may be NULL. */
void registrar_again(registrar *r);

/*
 * Withdraws the registration and ends the thread. `r` may be NULL. Returns false if the directory does not reply in
 * time. In this case, the thread runs until the process exits, and continues to use all arguments of registrar_start
 * except the log.
 */
bool registrar_stop(registrar *r);

#endif
