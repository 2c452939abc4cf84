#include "config.h"

#include "requests/printable.h"

#include "record/terminal.h"

#include <stdio.h>
#include <string.h>

static char *without_controls(const char *text, char kept)
{
    char *valid = g_utf8_make_valid(text, -1);
    const char *end = valid + strlen(valid);
    GString *out = g_string_new(NULL);
    for (const char *at = valid; *at != '\0'; at = g_utf8_next_char(at)) {
        bool controls;
        size_t size = nl_terminal_character(at, end, &controls);
        if (controls && *at != kept)
            g_string_append_c(out, '?');
        else
            g_string_append_len(out, at, (gssize)size);
    }
    g_free(valid);
    return g_string_free(out, FALSE);
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
