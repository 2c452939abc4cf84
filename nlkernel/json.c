#include "config.h"

#include "json.h"

#include "convert/json_text.h"

#include <string.h>

/* Appends text with U+FFFD for each byte that is no UTF-8. */
static void append_valid(nl_buffer *out, const char *text)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + strlen(text);
    nl_buffer_reserve(out, 3 * strlen(text) + 1);
    while (at < end) {
        size_t size = *at < 0x80 ? 1 : utf8_size(at, end);
        nl_buffer_append(out, size > 0 ? (const char *)at : "\xef\xbf\xbd", size > 0 ? size : 3);
        at += size > 0 ? size : 1;
    }
}

void json_write_string(FILE *to, const char *text)
{
    nl_buffer valid = {0}, quoted = {0};
    append_valid(&valid, text);
    json_put_quoted(&quoted, (nl_string){valid.data, valid.size});
    fwrite(quoted.data, 1, quoted.size, to);
    nl_buffer_free(&quoted);
    nl_buffer_free(&valid);
}

void json_print_string(const char *text)
{
    json_write_string(stdout, text);
}
