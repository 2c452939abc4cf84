#include "config.h"

#include "requests/json.h"

#include "program/encoding.h"

#include <string.h>

void json_append_string(GString *out, const char *text)
{
    nl_buffer quoted = {0};
    json_put_valid(&quoted, (nl_string){text, strlen(text)});
    g_string_append_len(out, quoted.data, (gssize)quoted.size);
    nl_buffer_free(&quoted);
}
