/*
 * The sensors of this agent: the included sensors, nlkernel's events, and the sensors of the configuration, which are
 * commands that print records. Only the main thread changes the list, and holds the lock meanwhile.
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
    char *arguments_help;       /* "" without arguments */
    const char *arguments;      /* names, each between blanks; NULL: any */
    const sensor_field *fields; /* NULL: unknown */
    char *command;              /* for sh; NULL: not from the configuration */
    char **program;             /* the command line of a collection, up to NULL; NULL: a sensor */
    bool kernel;
    bool beats; /* the sensor writes at least one byte per measurement; otherwise it hangs */
};

typedef struct definitions {
    definition *first;
    char *program;        /* the path of the program with the included sensors */
    char *nlkernel;       /* the path of nlkernel */
    definition *retired;  /* removed definitions, whose sensors may still be running */
    pthread_mutex_t lock; /* of the list, for the registrar's thread */
} definitions;

/*
 * Adds the included sensors. program: the path of the program that runs them; NULL: the program beside nlagentd, or the
 * installed program.
 */
void definitions_init(definitions *all, const char *program);
void definitions_free(definitions *all);

/* Returns whether text is a valid NAME=COMMAND. Sets the error otherwise. */
bool definition_check_own(const char *text);

/*
 * Replaces the sensors of the configuration by these NAME=COMMAND texts, up to NULL. They replace included sensors with
 * the same name. Running sensors continue until their last client leaves.
 */
void definitions_set_own(definitions *all, char *const *texts);

/* Returns the definition with a name, or NULL. */
const definition *definitions_find(const definitions *all, const char *name);

/* Returns the definition with a name and a command (NULL: an included sensor), even if it was removed, or NULL. */
const definition *definitions_find_command(const definitions *all, const char *name, const char *command);

/* Returns whether the definition accepts the arguments. Sets the error otherwise. */
bool definition_check(const definition *d, const sensor_spec *spec);

/* Executes the sensor in the calling process, a child for this purpose. Returns only on failure, with errno. */
void definition_execute(const definitions *all, const definition *d, const sensor_spec *spec, double interval_s);

#endif
