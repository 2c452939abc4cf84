#include "config.h"

#include "json.h"

#include "program/encoding.h"

#include <string.h>

void json_write_string(FILE *to, const char *text)
{
    nl_buffer quoted = {0};
    json_put_valid(&quoted, (nl_string){text, strlen(text)});
    fwrite(quoted.data, 1, quoted.size, to);
    nl_buffer_free(&quoted);
}

void json_print_string(const char *text)
{
    json_write_string(stdout, text);
}
