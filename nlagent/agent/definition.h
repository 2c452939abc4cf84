/*
 * The sensors of this agent: the built-in sensors, nlkernel's events, and the configured sensors, which are commands
 * that print records. Only the main thread changes the list, and it holds the lock while it does so.
 */
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
    char *arguments_help;       /* "" if it has no arguments */
    const char *arguments;      /* argument names, each with a blank on both sides; NULL: any name */
    const sensor_field *fields; /* NULL: unknown */
    char *command;              /* shell command; NULL: not a configured sensor */
    char **program;             /* command line of a collection, ending with NULL; NULL for a sensor */
    bool kernel;
    bool beats; /* the sensor writes at least one byte per measurement; if it does not, it counts as hung */
};

typedef struct definitions {
    definition *first;
    char *program;        /* path of the program with the built-in sensors */
    char *nlkernel;       /* the path of nlkernel */
    definition *retired;  /* removed definitions, whose sensors may still be running */
    pthread_mutex_t lock; /* protects the list from the registrar's thread */
} definitions;

/*
 * Adds the built-in sensors. program: the path of the program that runs them; NULL: the program beside nlagentd, or the
 * installed program.
 */
void definitions_init(definitions *all, const char *program);
void definitions_free(definitions *all);

/* Returns whether text is a valid NAME=COMMAND definition. Sets the error otherwise. */
bool definition_check_own(const char *text);

/*
 * Replaces the configured sensors by these NAME=COMMAND texts, which end with NULL. A configured sensor replaces a
 * built-in sensor of the same name. Running sensors continue until their last client leaves.
 */
void definitions_set_own(definitions *all, char *const *texts);

/* Returns the definition with a name, or NULL. */
const definition *definitions_find(const definitions *all, const char *name);

/*
 * Returns the definition with a name and a command, even if it was removed, or NULL. A command of NULL selects a
 * built-in sensor.
 */
const definition *definitions_find_command(const definitions *all, const char *name, const char *command);

/* Returns whether the definition accepts the arguments. Sets the error otherwise. */
bool definition_check(const definition *d, const sensor_spec *spec);

/*
 * Replaces the calling process, a child made for this purpose, by the sensor's program. Returns only on failure, with
 * errno set.
 */
void definition_execute(const definitions *all, const definition *d, const sensor_spec *spec, double interval_s);

#endif
