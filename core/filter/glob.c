/* Globs, as the shell has them: * is any bytes, ? one, [a-z] one of those, [!a-z] one of the others, \ takes away a
 * meaning. */
#include "config.h"

#include "filter/pattern_build.h"

static const nl_symbols no_symbols;

/* Any bytes, or none. */
static nl_fragment read_star(nl_builder *builder)
{
    nl_symbols any = nl_symbols_others(&no_symbols);
    nl_fragment f = nl_build_any_of(builder, &any);
    nl_build_repeat(builder, &f);
    f.nullable = true;
    return f;
}

/* What takes one byte. */
static nl_fragment read_one(nl_builder *builder, const char **at, const char *end)
{
    nl_symbols set = nl_symbols_others(&no_symbols);
    char c = *(*at)++;
    if (c == '?')
        return nl_build_any_of(builder, &set);
    if (c == '[') {
        builder->problem = nl_bracket_read(at, end, "!^", true, &set);
        return builder->problem == NULL ? nl_build_any_of(builder, &set) : nl_build_nothing();
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

/* Stars at the ends are what finding a pattern anywhere does anyway: only without them the start and end are asked for.
 */
nl_fragment nl_glob_read(nl_builder *builder, nl_string text)
{
    const char *at = text.data, *end = text.data + text.size;
    bool open = at < end && *at == '*';
    nl_fragment whole = open ? nl_build_nothing() : nl_build_symbol(builder, NL_SYMBOL_START);
    at = skip_stars(at, end);
    while (at < end && builder->problem == NULL) {
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
