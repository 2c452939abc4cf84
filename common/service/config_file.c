#include "config.h"

#include "service/config_file.h"

#include "base/error.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Cuts comment and blanks off a line. Returns its first byte. */
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

/* Sets the option of that name. */
static bool set_directive(const nl_option *rows, void *settings, const char *name, const char *value)
{
    const nl_option *row = nl_option_find(rows, name, NL_OPTION_IN_FILE);
    if (row == NULL)
        return nl_error_false(NL_ERROR_INVALID, "unknown directive");
    return nl_option_set(row, settings, row->type == NL_OPTION_FLAG && *value == '\0' ? "yes" : value);
}

bool config_file_read(const char *path, const nl_option *rows, void *settings, config_report report, void *user)
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
