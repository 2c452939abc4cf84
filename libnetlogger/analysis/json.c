#include "config.h"

#include "analysis/json.h"

void json_append_string(GString *out, const char *text)
{
    char *valid = g_utf8_make_valid(text, -1);
    g_string_append_c(out, '"');
    for (const char *at = valid; *at != '\0'; at++)
        if (*at == '"' || *at == '\\')
            g_string_append_printf(out, "\\%c", *at);
        else if ((unsigned char)*at < ' ')
            g_string_append_printf(out, "\\u%04x", (unsigned)*at);
        else
            g_string_append_c(out, *at);
    g_string_append_c(out, '"');
    g_free(valid);
}
