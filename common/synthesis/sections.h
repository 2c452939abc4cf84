/*
 * Small files of sections, as the rules of synthesis and the schemas of nlkernel are written:
 *
 *   # a comment
 *   [span RunQueue]
 *   begin = sched.sched_wakeup key EV.PID
 *   end = sched.sched_switch \
 *         key NEXT.PID
 *
 * A line that ends in a backslash goes on in the next. ${NAME} stands for a parameter: a section [parameter NAME] with
 * its default, which whoever reads the file may override; what is overridden and is no parameter is an error. One
 * thread.
 */
#ifndef NETLOGGER_SYNTHESIS_SECTIONS_H
#define NETLOGGER_SYNTHESIS_SECTIONS_H

#include <netlogger.h>

typedef struct nl_setting {
    char *key, *value;
    unsigned line;
} nl_setting;

typedef struct nl_section {
    char *kind, *name; /* name is "" when there is none */
    unsigned line;
    nl_setting *settings; /* in the file's order; keys may repeat */
    size_t setting_count;
} nl_section;

typedef struct nl_sections {
    char *file; /* for messages */
    nl_section *list;
    size_t count;
} nl_sections;

/*
 * Reads text, or a file. parameters are "NAME=VALUE", NULL at the end; NULL: none. False with the reason, FILE:LINE
 * first, in nl_error_message(). What was read is freed by nl_sections_free in either case.
 */
bool nl_sections_parse(nl_sections *s, const char *text, const char *file, const char *const *parameters);
bool nl_sections_read(nl_sections *s, const char *path, const char *const *parameters);
void nl_sections_free(nl_sections *s);

/* The last value of a key, NULL when there is none. */
const char *nl_section_value(const nl_section *section, const char *key);

/* Sets the error message "FILE:LINE: ...". Always false. */
bool nl_sections_error(const nl_sections *s, unsigned line, const char *format, ...) NL_PRINTF(3, 4);

/*
 * The next word of *text, up to blanks or any of separators; *text moves on behind it and what separates. NULL at the
 * end. A word in ' ' may hold anything, and comes with its first quote.
 */
char *nl_word_next(const char **text, const char *separators);

#endif
