/* Bracket expressions, which globs and regular expressions have in common: [a-z_], [!0-9], [[:alpha:]]. */
#include "config.h"

#include "filter/pattern_build.h"

#include <string.h>

static bool is_between(unsigned byte, unsigned from, unsigned to)
{
    return byte >= from && byte <= to;
}

/* The classes as they are in the C locale: a filter means the same everywhere. */
static bool is_in_class(nl_string name, unsigned byte)
{
    bool upper = is_between(byte, 'A', 'Z'), lower = is_between(byte, 'a', 'z'), digit = is_between(byte, '0', '9');
    bool graph = is_between(byte, '!', '~');
    const struct {
        const char *name;
        bool has;
    } classes[] = {
        {"alpha", upper || lower},
        {"digit", digit},
        {"alnum", upper || lower || digit},
        {"upper", upper},
        {"lower", lower},
        {"space", byte == ' ' || is_between(byte, '\t', '\r')},
        {"blank", byte == ' ' || byte == '\t'},
        {"punct", graph && !upper && !lower && !digit},
        {"print", graph || byte == ' '},
        {"graph", graph},
        {"cntrl", byte < ' ' || byte == 127},
        {"xdigit", digit || is_between(byte | 0x20, 'a', 'f')},
    };
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (name.size == strlen(classes[i].name) && memcmp(name.data, classes[i].name, name.size) == 0)
            return classes[i].has;
    return false;
}

/* *at is behind "[:". */
static const char *read_class(const char **at, const char *end, nl_symbols *set)
{
    const char *close = *at;
    while (close < end && is_between((unsigned char)*close, 'a', 'z'))
        close++;
    if (end - close < 2 || close[0] != ':' || close[1] != ']')
        return "a class is [:alpha:] or the like";
    nl_string name = {*at, (size_t)(close - *at)};
    bool any = false;
    for (unsigned byte = 0; byte < 256; byte++)
        if (is_in_class(name, byte)) {
            nl_symbols_add(set, byte);
            any = true;
        }
    *at = close + 2;
    return any ? NULL : "a class is [:alpha:] or the like";
}

/* One byte, an end of a range perhaps; -1 at the end. */
static int read_byte(const char **at, const char *end, bool escapes)
{
    if (escapes && *at < end && **at == '\\')
        ++*at;
    return *at < end ? (unsigned char)*(*at)++ : -1;
}

static bool begins(const char *at, const char *end, char second)
{
    return end - at >= 2 && at[0] == '[' && at[1] == second;
}

static const char *read_range(const char **at, const char *end, bool escapes, nl_symbols *set)
{
    int from = read_byte(at, end, escapes), to = from;
    if (end - *at >= 2 && **at == '-' && (*at)[1] != ']') {
        ++*at;
        if (begins(*at, end, ':') || begins(*at, end, '.') || begins(*at, end, '='))
            return "a range ends in a byte";
        to = read_byte(at, end, escapes);
    }
    if (from < 0 || to < 0)
        return "a [ without its ]";
    if (to < from)
        return "a range runs backwards";
    for (int byte = from; byte <= to; byte++)
        nl_symbols_add(set, (unsigned)byte);
    return NULL;
}

const char *nl_bracket_read(const char **at, const char *end, const char *negation, bool escapes, nl_symbols *set)
{
    *set = (nl_symbols){{0}};
    bool negated = *at < end && **at != '\0' && strchr(negation, **at) != NULL;
    *at += negated;
    const char *why = NULL, *start = *at;
    while (why == NULL && *at < end && (**at != ']' || *at == start)) {
        if (begins(*at, end, '.') || begins(*at, end, '=')) {
            why = "[. .] and [= =] are not supported";
        } else if (begins(*at, end, ':')) {
            *at += 2;
            why = read_class(at, end, set);
        } else {
            why = read_range(at, end, escapes, set);
        }
    }
    if (why != NULL)
        return why;
    if (*at == end)
        return "a [ without its ]";
    ++*at;
    if (negated)
        *set = nl_symbols_others(set);
    return NULL;
}
