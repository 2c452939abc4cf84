/*
 * Reads files that consist of sections, such as rules files:
 *
 *   # a comment
 *   [span RunQueue]
 *   begin = sched.sched_wakeup key EV.PID
 *   end = sched.sched_switch \
 *         key NEXT.PID
 *
 * A line that ends with a backslash continues in the next line. The module replaces ${NAME} with the value of a
 * parameter. The section [parameter NAME] has the default value, which the caller may override. Only one thread may use
 * the result.
 */
#ifndef NETLOGGER_SYNTHESIS_SECTIONS_H
#define NETLOGGER_SYNTHESIS_SECTIONS_H

#include <netlogger.h>

typedef struct nl_setting {
    char *key, *value;
    unsigned line;
} nl_setting;

typedef struct nl_section {
    char *kind, *name; /* name is "" if the section has no name */
    unsigned line;
    nl_setting *settings; /* in the order of the file; keys may repeat */
    size_t setting_count;
} nl_section;

typedef struct nl_sections {
    char *file; /* for messages */
    nl_section *list;
    size_t count;
} nl_sections;

/*
 * Read a text or a file. `parameters` is an array of "NAME=VALUE" texts that ends with NULL, or is NULL. Return false
 * and set the error on failure. The error begins with FILE:LINE if the text is invalid. nl_sections_free frees *s in
 * either case.
 */
bool nl_sections_parse(nl_sections *s, const char *text, const char *file, const char *const *parameters);
bool nl_sections_read(nl_sections *s, const char *path, const char *const *parameters);
void nl_sections_free(nl_sections *s);

/* Returns the last value of a key, or NULL. */
const char *nl_section_value(const nl_section *section, const char *key);

/* Sets the error "FILE:LINE: ..." and returns false. */
bool nl_sections_error(const nl_sections *s, unsigned line, const char *format, ...) NL_PRINTF(3, 4);

/*
 * Returns the next word of *text, up to whitespace or any of the separators, and advances *text. The caller frees the
 * word. Returns NULL at the end. A word in single quotes may contain any character, and is returned with its first
 * quote.
 */
char *nl_word_next(const char **text, const char *separators);

#endif
