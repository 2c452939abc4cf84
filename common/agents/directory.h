/*
 * The directory that nlagentd itself is with --serve-directory: which agents there are, where, and with which sensors.
 * Agents register, and are forgotten when they do not do so again in time (by the monotonic clock: one that jumps
 * forgets nobody).
 */
#ifndef NLAGENT_DIRECTORY_H
#define NLAGENT_DIRECTORY_H

#include <netlogger.h>

enum { DIRECTORY_TTL_MAX_S = 86400, DIRECTORY_AGENTS_MAX = 20000, DIRECTORY_SENSORS_MAX = 512 };

typedef struct directory directory;

/* A sensor of an agent, as it is registered and found. */
typedef struct directory_sensor {
    const char *name, *what, *events;
} directory_sensor;

directory *directory_new(void);
void directory_free(directory *d); /* NULL is allowed */

/* Registers an agent, in place of what was registered with its URL, for ttl_s seconds. False when it is full. */
bool directory_register(directory *d, const char *host, const char *url, double ttl_s, const directory_sensor *sensors,
                        size_t count);

/* Takes an agent out. */
void directory_withdraw(directory *d, const char *url);

/* Forgets those whose time is over. */
void directory_expire(directory *d);

size_t directory_size(const directory *d);

/*
 * An expression of find as one of the usual language (filter.h), whose fields are host, url, sensor, what and events:
 * & and | may be single, and = is a pattern when its value holds * ? or [. NULL with the reason in nl_error_message().
 */
nl_filter *directory_filter(const char *expression);

/* Calls function for each agent with a sensor that is meant, with how many of these; filter NULL: all. */
void directory_find(directory *d, const nl_filter *filter,
                    void (*function)(void *user, const char *host, const char *url, const directory_sensor *sensors,
                                     size_t count),
                    void *user);

#endif
