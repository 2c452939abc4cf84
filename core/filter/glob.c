/*
 * Shell globs: * matches any number of bytes, ? one byte, [a-z] one byte in a set, and [!a-z] one byte that is not in a
 * set. A backslash makes the next byte literal.
 */
#include "config.h"

#include "filter/pattern_build.h"

static const nl_symbols no_symbols;

static nl_fragment read_star(nl_builder *builder)
{
    nl_symbols any = nl_symbols_others(&no_symbols);
    nl_fragment f = nl_build_any_of(builder, &any);
    nl_build_repeat(builder, &f);
    f.nullable = true;
    return f;
}

/* Reads a part of the glob that matches one byte. */
static nl_fragment read_one(nl_builder *builder, const char **at, const char *end)
{
    nl_symbols set = nl_symbols_others(&no_symbols);
    char c = *(*at)++;
    if (c == '?')
        return nl_build_any_of(builder, &set);
    if (c == '[') {
        bool good = nl_bracket_read(builder, at, end, "!^", true, &set);
        return good ? nl_build_any_of(builder, &set) : nl_build_nothing();
    }
    if (c == '\\' && *at < end)
        c = *(*at)++;
    return nl_build_symbol(builder, (unsigned char)c);
}

static const char *skip_stars(const char *at, const char *end)
{
    while (at < end && *at == '*')
        at++;
    return at;
}

/*
 * A star at either end of the glob needs no positions, because the search for a pattern begins and ends anywhere. At an
 * end without a star, the pattern has the start or end symbol.
 */
nl_fragment nl_glob_read(nl_builder *builder, nl_string text)
{
    const char *at = text.data, *end = text.data + text.size;
    bool open = at < end && *at == '*';
    nl_fragment whole = open ? nl_build_nothing() : nl_build_symbol(builder, NL_SYMBOL_START);
    at = skip_stars(at, end);
    while (at < end && !builder->failed) {
        bool star = *at == '*';
        at = skip_stars(at, end);
        open = star && at == end;
        if (open)
            return whole;
        nl_fragment next = star ? read_star(builder) : read_one(builder, &at, end);
        whole = nl_build_sequence(builder, &whole, &next);
    }
    if (open && whole.nullable)
        return whole;
    nl_fragment last = nl_build_symbol(builder, NL_SYMBOL_END);
    return nl_build_sequence(builder, &whole, &last);
}
