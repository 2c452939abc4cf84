#include "config.h"

#include "record/terminal.h"

size_t nl_utf8_read(const unsigned char *at, const unsigned char *end, uint32_t *code)
{
    static const uint32_t minimum[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t size = *at < 0x80 ? 1 : *at >= 0xc2 && *at < 0xe0 ? 2 : *at >= 0xe0 && *at < 0xf0 ? 3 : *at >= 0xf0 ? 4 : 0;
    *code = UINT32_MAX;
    if (size == 0 || *at > 0xf4 || (size_t)(end - at) < size)
        return 1;
    uint32_t value = size == 1 ? *at : *at & (0x7fu >> size);
    for (size_t i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 1;
        value = value << 6 | (at[i] & 0x3f);
    }
    if (value < minimum[size] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
        return 1;
    *code = value;
    return size;
}

size_t nl_terminal_character(const char *text, const char *end, bool *controls)
{
    const unsigned char *at = (const unsigned char *)text;
    uint32_t code;
    size_t size = nl_utf8_read(at, (const unsigned char *)end, &code);
    if (code == UINT32_MAX)
        *controls = *at < 0xa0;
    else
        *controls = code < ' ' || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e || code == 0x200f ||
                    (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    return size;
}

bool nl_terminal_controls_anywhere(const char *text, size_t size)
{
    const char *end = text + size;
    bool controls = false;
    while (text < end && !controls) {
        if (*text >= ' ' && *text < 0x7f)
            text++;
        else
            text += nl_terminal_character(text, end, &controls);
    }
    return controls;
}
