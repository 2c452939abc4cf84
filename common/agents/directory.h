/*
 * The directory of nlagentd --serve-directory, which contains agents with their URLs and sensors. An agent registers
 * repeatedly. The directory removes an agent when the agent's registration expires. The directory measures the lifetime
 * of a registration with the monotonic clock. Only one thread may use a directory.
 */
#ifndef NLAGENT_DIRECTORY_H
#define NLAGENT_DIRECTORY_H

#include <netlogger.h>

enum { DIRECTORY_TTL_MAX_S = 86400, DIRECTORY_AGENTS_MAX = 20000, DIRECTORY_SENSORS_MAX = 512 };

typedef struct directory directory;

typedef struct directory_sensor {
    const char *name, *what, *events;
} directory_sensor;

directory *directory_new(void);
void directory_free(directory *d); /* NULL is allowed */

/*
 * Registers an agent for ttl_s seconds. First removes an agent that has the same URL. Returns false if the directory is
 * full, or the agent has more than DIRECTORY_SENSORS_MAX sensors.
 */
bool directory_register(directory *d, const char *host, const char *url, double ttl_s, const directory_sensor *sensors,
                        size_t count);

/* Removes an agent. */
void directory_withdraw(directory *d, const char *url);

/* Removes the agents whose registrations have expired. */
void directory_expire(directory *d);

size_t directory_size(const directory *d);

/*
 * Parses the expression of a Find request. The expression may test the fields host, url, sensor, what and events. In
 * addition to the usual language (filter.h), & means &&, | means ||, and = matches a pattern if the value contains * ?
 * or [. Returns NULL and sets the error on failure.
 */
nl_filter *directory_filter(const char *expression);

/* Calls function for each agent that has matching sensors, with these sensors. If filter is NULL, all sensors match. */
void directory_find(directory *d, const nl_filter *filter,
                    void (*function)(void *user, const char *host, const char *url, const directory_sensor *sensors,
                                     size_t count),
                    void *user);

#endif
