#include "config.h"

#include "requests/printable.h"

#include <stdio.h>

/* Those of ASCII and U+0080 to U+009F too, with which sequences begin on some terminals. */
static char *without_controls(const char *text, char kept)
{
    char *valid = g_utf8_make_valid(text, -1);
    GString *out = g_string_new(NULL);
    for (const char *at = valid; *at != '\0'; at = g_utf8_next_char(at)) {
        gunichar c = g_utf8_get_char(at);
        g_string_append_unichar(out, g_unichar_iscntrl(c) && *at != kept ? '?' : c);
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
