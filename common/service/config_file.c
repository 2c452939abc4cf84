#include "config.h"

#include "service/config_file.h"

#include "base/error.h"
#include "program/program.h"
#include "service/confine.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Removes the comment and the blanks at both ends of a line. Returns the start of the rest. */
static char *trim(char *line)
{
    line[strcspn(line, "#\r\n")] = '\0';
    char *end = line + strlen(line);
    while (end > line && isspace((unsigned char)end[-1]))
        *--end = '\0';
    while (isspace((unsigned char)*line))
        line++;
    return line;
}

static bool set_directive(const nl_option *rows, void *settings, const char *name, const char *value)
{
    const nl_option *row = nl_option_find(rows, name);
    if (row != NULL)
        return nl_option_set(row, settings, row->type == NL_OPTION_FLAG && *value == '\0' ? "yes" : value);
    nl_option_nearest nearest = {0};
    nl_option_find_nearest(&nearest, rows, name);
    return nl_error_false(NL_ERROR_INVALID, "unknown directive%s%s%s", nearest.name != NULL ? "; did you mean " : "",
                          nearest.name != NULL ? nearest.name : "", nearest.name != NULL ? "?" : "");
}

/*
 * Sets the options in the file. Reports all problems with their line numbers, and returns false if there are any. In
 * this case, some settings may have changed.
 */
static bool config_file_read(const char *path, const nl_option *rows, void *settings, config_report report, void *user)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        nl_error_set_errno("open %s", path);
        report(user, nl_error_message());
        return false;
    }
    char *line = NULL;
    size_t capacity = 0;
    bool good = true;
    for (unsigned number = 1; getline(&line, &capacity, file) >= 0; number++) {
        char *name = trim(line);
        if (*name == '\0')
            continue;
        char *value = name + strcspn(name, " \t");
        if (*value != '\0')
            *value++ = '\0';
        value += strspn(value, " \t");
        if (!set_directive(rows, settings, name, value)) {
            nl_error_prepend("%s:%u: %s", path, number, name);
            report(user, nl_error_message());
            good = false;
        }
    }
    if (ferror(file)) {
        nl_error_set_errno("read %s", path);
        report(user, nl_error_message());
        good = false;
    }
    free(line);
    fclose(file);
    return good;
}

static void report_at_start(void *unused, const char *message)
{
    (void)unused;
    program_error("%s", message);
}

bool config_file_set(void *settings, const nl_option *row, const char *value)
{
    config_source *c = (config_source *)((char *)settings + row->offset);
    confine_keep_file(value, CONFINE_READ);
    if (config_file_read(value, c->rows, settings, c->report != NULL ? c->report : report_at_start, c->user))
        return true;
    if (c->report == NULL)
        exit(PROGRAM_USAGE);
    c->failed = true;
    return true;
}
