/*
 * A rules file: which of the kernel's events tell about something, what they mean together, and what is reported of
 * that.
 *
 * It is a file of sections (synthesis/sections.h): [rules] its title, [event SYSTEM:EVENT] what is recorded, the rules
 * of synthesis (doc/synthesis.md), [report NAME] what is said. One thread.
 */
#ifndef NLKERNEL_RULES_FILE_H
#define NLKERNEL_RULES_FILE_H

#include "options.h"
#include "synthesis/sections.h"

typedef struct rules_file {
    char *name, *path;
    const char *title;
    nl_sections sections;
    char **patterns; /* of events; those with "?" in front need not be there */
    size_t pattern_count;
    char *filter; /* what of them is recorded; NULL: all */
} rules_file;

/*
 * Reads a rules file: name is a path when there is a / in it, or else it is looked for in the folders of
 * $NETLOGGER_RULES and in those that came with the program. False with the reason in nl_error_message().
 */
bool rules_file_read(rules_file *s, const char *name, const char *const *parameters);
void rules_file_free(rules_file *s);

/* Adds its events and filter to what is recorded; they are used as long as o is. False with the reason. */
bool rules_file_choose(const rules_file *s, recording_options *o);

/* The path of a rules file, to be freed; NULL with the reason. */
char *rules_file_find(const char *name);

/* Calls visit with the path of each rules file that there is, in order of their names. */
void rules_file_each(void (*visit)(const char *path, void *user), void *user);

/* The name that a path's rules file goes by, to be freed. */
char *rules_file_name(const char *path);

#endif
