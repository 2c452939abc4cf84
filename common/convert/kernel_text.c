#include "config.h"

#include "convert/kernel_text.h"

#include "convert/lines.h"

bool kernel_text_time(nl_string *text, int64_t *time_ns)
{
    enum { SECONDS_MAX = 9 };
    nl_string seconds, fraction;
    if (!text_digits(text, &seconds) || seconds.size > SECONDS_MAX || !text_take(text, ".") ||
        !text_digits(text, &fraction) || fraction.size > 9 || !text_take(text, ":"))
        return false;
    int64_t ns = 0;
    for (size_t i = 0; i < seconds.size; i++)
        ns = 10 * ns + (seconds.data[i] - '0');
    for (size_t i = 0; i < 9; i++)
        ns = 10 * ns + (i < fraction.size ? fraction.data[i] - '0' : 0);
    *time_ns = ns;
    return true;
}

void kernel_text_date(builder *b, int64_t time_ns, sink *s)
{
    int64_t base_ns = s->about != NULL && s->about->has_base ? s->about->base_ns : 0;
    s->undated = s->undated || base_ns == 0;
    if (__builtin_add_overflow(base_ns, time_ns, &time_ns))
        time_ns = INT64_MAX;
    nl_record_set_time(b->record, time_ns);
    b->seen |= 1u << MEMBER_TIME;
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Returns the name that nlkernel uses for a field. */
static nl_string field_name(builder *b, nl_string name)
{
    while (name.size > 1 && *name.data == '_')
        text_skip(&name, 1);
    bool taken = nl_string_is(name, "pid") || nl_string_is(name, "tid") || nl_string_is(name, "cpu") ||
                 nl_string_is(name, "host");
    char *text = builder_bytes(b, name.size + 3), *to = text;
    if (text == NULL)
        return name;
    if (taken) {
        memcpy(to, "EV.", 3);
        to += 3;
    }
    for (size_t i = 0; i < name.size; i++, to++)
        *to = name.data[i] == '_'                          ? '.'
              : name.data[i] >= 'a' && name.data[i] <= 'z' ? (char)(name.data[i] - 'a' + 'A')
                                                           : name.data[i];
    return (nl_string){text, (size_t)(to - text)};
}

/* Returns the value without the blanks and separators (such as "==>") at its end. */
static nl_string trim_value(nl_string value)
{
    text_drop_blanks(&value);
    if (text_drop(&value, "==>"))
        text_drop_blanks(&value);
    text_drop(&value, ",");
    return value;
}

/*
 * Returns the offset of the next "NAME=" or "NAME: " that begins a word, or SIZE_MAX. Sets *size to the size of NAME,
 * and *sign to the size of the "=" or ": ".
 */
static size_t next_name(nl_string text, size_t at, size_t *size, size_t *sign)
{
    while (at < text.size) {
        size_t start = at;
        while (at < text.size && is_name_byte(text.data[at]))
            at++;
        bool is_long = at + 1 < text.size;
        bool equals = at < text.size && text.data[at] == '=' && !(is_long && text.data[at + 1] == '=');
        bool colon = is_long && text.data[at] == ':' && text.data[at + 1] == ' ';
        if (at > start && (text.data[start] < '0' || text.data[start] > '9') && (equals || colon)) {
            *size = at - start;
            *sign = equals ? 1 : 2;
            return start;
        }
        while (at < text.size && text.data[at] != ' ')
            at++;
        at += at < text.size;
    }
    return SIZE_MAX;
}

void kernel_text_fields(builder *b, nl_string text, sink *s)
{
    size_t size, sign, at = next_name(text, 0, &size, &sign);
    nl_string before = trim_value((nl_string){text.data, at != SIZE_MAX ? at : text.size});
    if (before.size > 0)
        builder_add_text(b, (nl_string){"TEXT", 4}, before, s);
    while (at != SIZE_MAX) {
        nl_string name = {text.data + at, size};
        size_t start = at + size + sign;
        const char *blank = start < text.size ? memchr(text.data + start, ' ', text.size - start) : NULL;
        at = blank != NULL ? next_name(text, (size_t)(blank + 1 - text.data), &size, &sign) : SIZE_MAX;
        size_t end = at != SIZE_MAX ? at : text.size;
        nl_string value = {text.data + start, end - start};
        builder_add_text(b, field_name(b, name), trim_value(value), s);
    }
}
