/*
 * What a service manager hands over and wants to be told, by systemd's protocols: sockets that it opened (LISTEN_PID,
 * LISTEN_FDS, LISTEN_FDNAMES; sd_listen_fds(3)), and where the service stands (NOTIFY_SOCKET; sd_notify(3)).
 */
#ifndef NETLOGGER_SERVICE_INHERITED_H
#define NETLOGGER_SERVICE_INHERITED_H

#include <stddef.h>

/* Takes the variables out of the environment. Call once, first of all. */
void inherited_find(void);

/* How many sockets there are. */
size_t inherited_count(void);

/* The first socket above after (0 to begin with) of this name, or of any when name is "*"; -1 when there is none. */
int inherited_next(const char *name, int after);

/* Its name. */
const char *inherited_name(int fd);

/* Tells the service manager: "READY=1". Nothing happens without one. */
void inherited_notify(const char *state);

#endif
