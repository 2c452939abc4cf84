/* Bracket expressions of globs and regular expressions: [a-z_], [!0-9], [[:alpha:]]. */
#include "config.h"

#include "filter/pattern_build.h"

#include <string.h>

typedef struct byte_range {
    unsigned char from, to;
} byte_range;

/*
 * The character classes of the C locale, so that a filter has the same meaning everywhere. An empty range ends each
 * row.
 */
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

/* Adds the bytes of a class. Returns false if the class is unknown. */
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

/* Reads the name of a class after "[:", and adds its bytes to `set`. */
static bool read_class(nl_builder *builder, const char **at, const char *end, nl_symbols *set)
{
    const char *close = *at;
    while (close < end && *close >= 'a' && *close <= 'z')
        close++;
    bool known = end - close >= 2 && close[0] == ':' && close[1] == ']' &&
                 add_class(set, (nl_string){*at, (size_t)(close - *at)});
    *at = known ? close + 2 : *at;
    return known || nl_build_fail(builder, NL_ERROR_INVALID, "unknown class; use [:alpha:] or another POSIX class");
}

/* Reads a byte. Returns -1 at the end. */
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

static bool read_range(nl_builder *builder, const char **at, const char *end, bool escapes, nl_symbols *set)
{
    int from = read_byte(at, end, escapes), to = from;
    if (end - *at >= 2 && **at == '-' && (*at)[1] != ']') {
        ++*at;
        if (begins(*at, end, ':') || begins(*at, end, '.') || begins(*at, end, '='))
            return nl_build_fail(builder, NL_ERROR_INVALID, "a range must end with a single byte");
        to = read_byte(at, end, escapes);
    }
    if (from < 0 || to < 0)
        return nl_build_fail(builder, NL_ERROR_INVALID, "missing ]");
    if (to < from)
        return nl_build_fail(builder, NL_ERROR_INVALID, "the end of a range precedes its beginning");
    add_bytes(set, (unsigned)from, (unsigned)to);
    return true;
}

bool nl_bracket_read(nl_builder *builder, const char **at, const char *end, const char *negation, bool escapes,
                     nl_symbols *set)
{
    *set = (nl_symbols){{0}};
    bool negated = *at < end && **at != '\0' && strchr(negation, **at) != NULL, good = true;
    *at += negated;
    const char *start = *at;
    while (good && *at < end && (**at != ']' || *at == start)) {
        if (begins(*at, end, '.') || begins(*at, end, '='))
            return nl_build_fail(builder, NL_ERROR_UNSUPPORTED, "[. .] and [= =] are not supported");
        bool class = begins(*at, end, ':');
        *at += class ? 2 : 0;
        good = class ? read_class(builder, at, end, set) : read_range(builder, at, end, escapes, set);
    }
    if (good && *at == end)
        good = nl_build_fail(builder, NL_ERROR_INVALID, "missing ]");
    ++*at;
    if (negated)
        *set = nl_symbols_others(set);
    return good;
}
