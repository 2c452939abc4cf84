#include "config.h"

#include "json.h"

void json_write_string(FILE *to, const char *text)
{
    putc('"', to);
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\')
            fprintf(to, "\\%c", byte);
        else if (byte < 0x20 || byte >= 0x7f)
            fprintf(to, "\\u%04x", byte);
        else
            putc(byte, to);
    }
    putc('"', to);
}

void json_print_string(const char *text)
{
    json_write_string(stdout, text);
}
