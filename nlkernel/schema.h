/*
 * A schema: which of the kernel's events tell about something, what they mean together, and what is reported of that.
 *
 * It is a file of sections (synthesis/sections.h): [schema] its title, [event SYSTEM:EVENT] what is recorded, the rules
 * of synthesis (doc/synthesis.md), [report NAME] what is said. One thread.
 */
#ifndef NLKERNEL_SCHEMA_H
#define NLKERNEL_SCHEMA_H

#include "options.h"
#include "synthesis/sections.h"

typedef struct schema {
    char *name, *path;
    const char *title;
    nl_sections sections;
    char **patterns; /* of events; those with "?" in front need not be there */
    size_t pattern_count;
    char *filter; /* what of them is recorded; NULL: all */
} schema;

/*
 * Reads a schema: name is a path when there is a / in it, or else it is looked for in the folders of $NETLOGGER_SCHEMAS
 * and in those that came with the program. False with the reason in nl_error_message().
 */
bool schema_read(schema *s, const char *name, const char *const *parameters);
void schema_free(schema *s);

/* Adds its events and filter to what is recorded; they are used as long as o is. False with the reason. */
bool schema_choose(const schema *s, recording_options *o);

/* The path of a schema, to be freed; NULL with the reason. */
char *schema_find(const char *name);

/* Calls visit with the path of each schema that there is, in order of their names. */
void schema_each(void (*visit)(const char *path, void *user), void *user);

/* The name that a path's schema goes by, to be freed. */
char *schema_name_of(const char *path);

#endif
