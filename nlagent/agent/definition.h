/*
 * Which sensors this agent has: those that are shipped, nlkernel's events, and those of the configuration, any program
 * that prints records.
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
    char *arguments_help;       /* "" for none */
    const char *arguments;      /* names, each between blanks; NULL: any */
    const sensor_field *fields; /* NULL: not known */
    char *command;              /* of sh; NULL: shipped, or the kernel's */
    char **program;             /* what is executed with these arguments, up to NULL; NULL: one of the above */
    bool kernel;
    bool beats; /* writes at least a byte at every look, so that it is known to hang when it does not */
};

typedef struct definitions {
    definition *first;
    char *program;        /* which runs shipped sensors */
    char *nlkernel;       /* which runs the kernel's */
    definition *retired;  /* that are no more, but may still be running */
    pthread_mutex_t lock; /* of the list, for whoever looks at it from another thread */
} definitions;

/* With all that are shipped; program may be NULL: where it is installed, or beside a build's. */
void definitions_init(definitions *all, const char *program);
void definitions_free(definitions *all);

/* Whether text is "NAME=COMMAND". */
bool definition_check_own(const char *text);

/* The configuration's are these from now on, up to NULL, each checked; they go before what is shipped. One that is the
 * same as before stays what it was, and what runs goes on until nobody looks. */
void definitions_set_own(definitions *all, char *const *texts);

/* NULL when nothing of that name exists. */
const definition *definitions_find(const definitions *all, const char *name);

/* The one that has this command, or with NULL is shipped; retired ones too. NULL when there is none. */
const definition *definitions_find_command(const definitions *all, const char *name, const char *command);

/* Whether a specification may be asked of it. False. */
bool definition_check(const definition *d, const sensor_spec *spec);

/* Starts it in the calling process, a child that has no other purpose: sets the environment and executes. Does not
 * return but with errno. */
void definition_execute(const definitions *all, const definition *d, const sensor_spec *spec, double interval_s);

#endif
