/* Bracket expressions, which globs and regular expressions have in common: [a-z_], [!0-9], [[:alpha:]]. */
#include "config.h"

#include "filter/pattern_build.h"

#include <string.h>

typedef struct byte_range {
    unsigned char from, to;
} byte_range;

/* The classes as they are in the C locale, as ranges up to an empty one: a filter means the same everywhere. */
static const struct {
    const char *name;
    byte_range ranges[5];
} classes[] = {
    {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
    {"digit", {{'0', '9'}}},
    {"alnum", {{'A', 'Z'}, {'a', 'z'}, {'0', '9'}}},
    {"upper", {{'A', 'Z'}}},
    {"lower", {{'a', 'z'}}},
    {"space", {{' ', ' '}, {'\t', '\r'}}},
    {"blank", {{' ', ' '}, {'\t', '\t'}}},
    {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
    {"print", {{' ', '~'}}},
    {"graph", {{'!', '~'}}},
    {"cntrl", {{'\0', 31}, {127, 127}}},
    {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
};

static void add_bytes(nl_symbols *set, unsigned from, unsigned to)
{
    for (unsigned byte = from; byte <= to; byte++)
        nl_symbols_add(set, byte);
}

/* Adds the bytes of a class. Returns false when no class has that name. */
static bool add_class(nl_symbols *set, nl_string name)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (name.size != strlen(classes[i].name) || memcmp(name.data, classes[i].name, name.size) != 0)
            continue;
        for (const byte_range *range = classes[i].ranges; range->to != 0; range++)
            add_bytes(set, range->from, range->to);
        return true;
    }
    return false;
}

/* *at is behind "[:". */
static const char *read_class(const char **at, const char *end, nl_symbols *set)
{
    const char *close = *at;
    while (close < end && *close >= 'a' && *close <= 'z')
        close++;
    bool known = end - close >= 2 && close[0] == ':' && close[1] == ']' &&
                 add_class(set, (nl_string){*at, (size_t)(close - *at)});
    *at = known ? close + 2 : *at;
    return known ? NULL : "a class is [:alpha:] or the like";
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
    add_bytes(set, (unsigned)from, (unsigned)to);
    return NULL;
}

const char *nl_bracket_read(const char **at, const char *end, const char *negation, bool escapes, nl_symbols *set)
{
    *set = (nl_symbols){{0}};
    bool negated = *at < end && **at != '\0' && strchr(negation, **at) != NULL;
    *at += negated;
    const char *problem = NULL, *start = *at;
    while (problem == NULL && *at < end && (**at != ']' || *at == start)) {
        if (begins(*at, end, '.') || begins(*at, end, '=')) {
            problem = "[. .] and [= =] are not supported";
        } else if (begins(*at, end, ':')) {
            *at += 2;
            problem = read_class(at, end, set);
        } else {
            problem = read_range(at, end, escapes, set);
        }
    }
    if (problem != NULL)
        return problem;
    if (*at == end)
        return "a [ without its ]";
    ++*at;
    if (negated)
        *set = nl_symbols_others(set);
    return NULL;
}
