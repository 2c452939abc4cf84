#include "config.h"

#include "analysis/printable.h"

#include <stdio.h>

static char *without_controls(const char *text, char kept)
{
    char *valid = g_utf8_make_valid(text, -1);
    for (char *at = valid; *at != '\0'; at++)
        if (((unsigned char)*at < ' ' || *at == 127) && *at != kept)
            *at = '?';
    return valid;
}

char *printable(const char *text)
{
    return without_controls(text, '\0');
}

void printable_print(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    char *shown = without_controls(text, '\n');
    fputs(shown, stdout);
    g_free(shown);
    g_free(text);
}
