/*
 * POSIX extended regular expressions (IEEE Std 1003.1-2008, XBD 9.4) on bytes in the C locale. Constructs that POSIX
 * leaves undefined are rejected, except for empty alternatives and \d \s \w \D \S \W. There are no back-references.
 */
#include "config.h"

#include "filter/pattern_build.h"

#include <string.h>

enum { DEPTH_MAX = 32, REPEAT_MAX = 255 };

typedef struct regex {
    nl_builder *builder;
    const char *at, *end;
    int depth; /* number of open parentheses */
} regex;

static nl_fragment read_alternatives(regex *r);

static nl_fragment regex_fail(regex *r, const char *problem)
{
    nl_build_fail(r->builder, NL_ERROR_INVALID, problem);
    return nl_build_nothing();
}

/* Reads a bracket expression after its '['. */
static nl_fragment read_set(regex *r, const char **at, const char *end)
{
    nl_symbols set;
    bool good = nl_bracket_read(r->builder, at, end, "^", false, &set);
    return good ? nl_build_any_of(r->builder, &set) : nl_build_nothing();
}

/* Reads an escape after its backslash. */
static nl_fragment read_escape(regex *r)
{
    static const struct {
        char letter;
        const char *bracket; /* without '[' */
    } sets[] = {
        {'d', "0-9]"},        {'D', "^0-9]"},       {'s', "[:space:]]"},
        {'S', "^[:space:]]"}, {'w', "[:alnum:]_]"}, {'W', "^[:alnum:]_]"},
    };
    if (r->at == r->end)
        return regex_fail(r, "backslash at the end");
    char c = *r->at++;
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        if (c == sets[i].letter)
            return read_set(r, &(const char *){sets[i].bracket}, sets[i].bracket + strlen(sets[i].bracket));
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return letter ? regex_fail(r, "unknown escape; only \\d \\s \\w \\D \\S \\W are known")
                  : nl_build_symbol(r->builder, (unsigned char)c);
}

static nl_fragment read_group(regex *r)
{
    if (++r->depth > DEPTH_MAX)
        return regex_fail(r, "parentheses are nested too deeply");
    nl_fragment f = read_alternatives(r);
    r->depth--;
    if (r->at == r->end)
        return regex_fail(r, "missing )");
    r->at++;
    return f;
}

static nl_fragment read_atom(regex *r)
{
    static const nl_symbols none;
    nl_symbols set = nl_symbols_others(&none);
    char c = *r->at++;
    switch (c) {
    case '(':
        return read_group(r);
    case '[':
        return read_set(r, &r->at, r->end);
    case '.':
        return nl_build_any_of(r->builder, &set);
    case '^':
        return nl_build_symbol(r->builder, NL_SYMBOL_START);
    case '$':
        return nl_build_symbol(r->builder, NL_SYMBOL_END);
    case '\\':
        return read_escape(r);
    case '*':
    case '+':
    case '?':
    case '{':
        return regex_fail(r, "nothing to repeat");
    default:
        return nl_build_symbol(r->builder, (unsigned char)c);
    }
}

/* Reads a decimal number. Returns -1 if there is no number, and REPEAT_MAX + 1 if the number is too large. */
static int read_number(regex *r)
{
    int number = -1;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        number = (number < 0 ? 0 : number) * 10 + (*r->at - '0');
        if (number > REPEAT_MAX)
            number = REPEAT_MAX + 1;
    }
    return number;
}

/* Reads an interval after its '{'. Sets *maximum to -1 if it has no maximum. Returns false on failure. */
static bool read_interval(regex *r, int *minimum, int *maximum)
{
    *minimum = *maximum = read_number(r);
    if (r->at < r->end && *r->at == ',') {
        r->at++;
        *maximum = read_number(r);
        if (*minimum < 0 && *maximum < 0)
            return false;
        *minimum = *minimum < 0 ? 0 : *minimum;
    }
    if (*minimum < 0 || r->at == r->end || *r->at++ != '}')
        return false;
    return *minimum <= REPEAT_MAX && *maximum <= REPEAT_MAX && (*maximum < 0 || *minimum <= *maximum);
}

static bool is_nothing(const nl_fragment *f)
{
    static const nl_positions none;
    return memcmp(&f->first, &none, sizeof none) == 0;
}

/*
 * Repeats `f` from `minimum` to `maximum` times. `f` consists of all positions from `start` to the last position. Each
 * further repetition copies these positions, so the limit of positions also limits the number of copies. An empty
 * fragment is not copied.
 */
static nl_fragment repeat(regex *r, nl_fragment f, int minimum, int maximum, size_t start)
{
    nl_builder *builder = r->builder;
    nl_fragment whole = nl_build_nothing();
    const nl_fragment original = f;
    size_t end = builder->count;
    int count = maximum < 0 ? (minimum > 0 ? minimum : 1) : maximum;
    for (int i = 1; i <= count && !builder->failed && !is_nothing(&original); i++) {
        if (i > 1)
            f = nl_build_copy(builder, &original, start, end);
        if (maximum < 0 && i == count)
            nl_build_repeat(builder, &f);
        f.nullable |= i > minimum;
        whole = nl_build_sequence(builder, &whole, &f);
    }
    return whole;
}

/* Reads an atom and its repetitions. */
static nl_fragment read_piece(regex *r)
{
    const char *from = r->at;
    size_t start = r->builder->count;
    nl_fragment f = read_atom(r);
    bool repeated = false; /* repeating again has no effect */
    while (r->at < r->end && !r->builder->failed && strchr("*+?{", *r->at) != NULL && *r->at != '\0') {
        const char *to = r->at;
        char c = *r->at++;
        int minimum, maximum;
        if (*from == '^' && to == from + 1)
            return regex_fail(r, "nothing to repeat");
        if (c == '{') {
            if (!read_interval(r, &minimum, &maximum))
                return regex_fail(r, "a repetition must be {M}, {M,} or {M,N}, with numbers up to 255");
            f = repeat(r, f, minimum, maximum, start);
            repeated = false;
            continue;
        }
        if (c != '?' && !repeated) {
            nl_build_repeat(r->builder, &f);
            repeated = true;
        }
        f.nullable |= c != '+';
    }
    return f;
}

/* Reads a sequence of pieces. */
static nl_fragment read_branch(regex *r)
{
    nl_fragment whole = nl_build_nothing();
    while (r->at < r->end && *r->at != '|' && *r->at != ')' && !r->builder->failed) {
        nl_fragment next = read_piece(r);
        whole = nl_build_sequence(r->builder, &whole, &next);
    }
    return whole;
}

static nl_fragment read_alternatives(regex *r)
{
    nl_fragment whole = read_branch(r);
    while (r->at < r->end && *r->at == '|' && !r->builder->failed) {
        r->at++;
        nl_fragment next = read_branch(r);
        whole = nl_build_either(&whole, &next);
    }
    return whole;
}

nl_fragment nl_regex_read(nl_builder *builder, nl_string text)
{
    regex r = {.builder = builder, .at = text.data, .end = text.data + text.size};
    nl_fragment whole = read_alternatives(&r);
    if (r.at < r.end && !builder->failed)
        return regex_fail(&r, "missing (");
    return whole;
}
