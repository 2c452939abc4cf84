/* Lists the sensors of this agent: the built-in sensors, nlkernel's events, and the configured sensors, which are
 * commands that print records. Only the main thread changes the list, while it holds the lock. */
#ifndef NLAGENT_DEFINITION_H
#define NLAGENT_DEFINITION_H

#include "sensors/sensor.h"
#include "sensors/spec.h"

#include <pthread.h>

typedef struct definition definition;
struct definition {
    definition *next;
    char *name;
    char *what;
    char *arguments_help;       /* "" if the sensor has no arguments */
    const char *arguments;      /* argument names, each with a blank on both sides; NULL: any name */
    const char *required;       /* the required argument, such as "host=NAME"; NULL: all arguments are optional */
    const sensor_field *fields; /* NULL: unknown */
    char *command;              /* shell command; NULL: not a configured sensor */
    char **program;             /* command line of a collection, NULL-terminated; NULL for a sensor */
    bool kernel;
    bool beats; /* the sensor writes at least one byte per measurement, so nlagentd can detect that the sensor hangs */
};

typedef struct definitions {
    definition *first;
    char *program;        /* path of the program with the built-in sensors */
    char *nlkernel;       /* path of nlkernel */
    char *tracefs;        /* mount point of tracefs for nlkernel; NULL: nlkernel finds it */
    definition *retired;  /* removed definitions, whose sensors may still be running */
    pthread_mutex_t lock; /* protects the list, because the registrar's thread reads it */
} definitions;

/*
 * Adds the built-in sensors. `program` is the path of the program that runs the built-in sensors. If `program` is NULL,
 * uses the program beside nlagentd, or the installed program.
 */
void definitions_init(definitions *all, const char *program);
void definitions_free(definitions *all);

/* If tracefs is not mounted, mounts it for nlkernel until the calling process ends. The process that starts sensors
 * calls this function before it confines itself, because a confined process cannot mount file systems. */
void definitions_mount_tracefs(definitions *all);

/* Returns whether `text` is a valid NAME=COMMAND definition. If not, sets the error. */
bool definition_check_own(const char *text);

/*
 * Replaces the configured sensors with these NAME=COMMAND texts, which are NULL-terminated. A configured sensor
 * replaces a built-in sensor with the same name. Running sensors continue until their last client leaves.
 */
void definitions_set_own(definitions *all, char *const *texts);

/* Returns the definition with this name, or NULL. */
const definition *definitions_find(const definitions *all, const char *name);

/* Returns the definition with this name and shell command, even after its removal, or NULL. If `command` is NULL,
 * returns a built-in sensor. */
const definition *definitions_find_command(const definitions *all, const char *name, const char *command);

/* Returns whether the definition accepts the arguments. If not, sets the error. */
bool definition_check(const definition *d, const sensor_spec *spec);

/* Replaces the calling child process with the sensor's program. Returns only on failure, with errno set. */
void definition_execute(const definitions *all, const definition *d, const sensor_spec *spec, double interval_s);

#endif
