#include "config.h"

#include "service/config_file.h"

#include <ctype.h>
#include <errno.h>
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

/* Sets the option of that name. False with the problem in message. */
static bool set_directive(const nl_option *rows, void *settings, const char *name, const char *value, char *message)
{
    const nl_option *row = nl_option_find(rows, name, NL_OPTION_IN_FILE);
    if (row == NULL) {
        snprintf(message, NL_OPTION_MESSAGE_SIZE, "unknown directive");
        return false;
    }
    return nl_option_set(row, settings, row->type == NL_OPTION_FLAG && *value == '\0' ? "yes" : value, message);
}

bool config_file_read(const char *path, const nl_option *rows, void *settings, config_report report, void *user)
{
    char message[1024];
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        snprintf(message, sizeof message, "open %s: %s", path, strerror(errno));
        report(user, message);
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
        char problem[NL_OPTION_MESSAGE_SIZE];
        if (!set_directive(rows, settings, name, value, problem)) {
            snprintf(message, sizeof message, "%.300s:%u: %.100s: %s", path, number, name, problem);
            report(user, message);
            good = false;
        }
    }
    if (ferror(file)) {
        snprintf(message, sizeof message, "read %s: %s", path, strerror(errno));
        report(user, message);
        good = false;
    }
    free(line);
    fclose(file);
    return good;
}
