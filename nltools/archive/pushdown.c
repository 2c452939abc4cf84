#include "config.h"

#include "archive/pushdown.h"

#include "archive/store.h"
#include "base/text.h"
#include "filter/filter.h"

#include <ctype.h>
#include <string.h>

/* The parts of a term NAME OPERATOR VALUE in the canonical text. */
typedef struct term {
    nl_string name, operator, value;
} term;

static nl_string next_word(const char **at, const char *end)
{
    while (*at < end && **at == ' ')
        ++*at;
    const char *start = *at;
    while (*at < end && **at != ' ')
        ++*at;
    return (nl_string){start, (size_t)(*at - start)};
}

/* Splits a term. Returns false if it does not have the form NAME OPERATOR VALUE. */
static bool split(const char *at, const char *end, term *t)
{
    t->name = next_word(&at, end);
    t->operator= next_word(&at, end);
    t->value = next_word(&at, end);
    return t->value.size > 0 && next_word(&at, end).size == 0;
}

static void push_time(const term *t, nl_buffer *sql)
{
    int64_t time_ns;
    bool ordered = nl_string_is(t->operator, "<") || nl_string_is(t->operator, "<=") ||
                   nl_string_is(t->operator, ">") || nl_string_is(t->operator, ">=");
    nl_string value = t->value;
    if (value.size > 1 && value.data[0] == '"' && value.data[value.size - 1] == '"')
        value = (nl_string){value.data + 1, value.size - 2};
    if (ordered && nl_time_parse(value.data, value.size, NL_FRACTION_DECIMAL, &time_ns) == NL_OK)
        store_add(sql, " AND time_ns %.*s %lld", (int)t->operator.size, t->operator.data, (long long)time_ns);
}

/* Returns whether all equal values have the same text, unlike numbers, which can be written in several ways. */
static bool is_plain(nl_string value)
{
    if (value.size < 2 || !isalpha((unsigned char)value.data[0]))
        return false;
    for (size_t i = 0; i < value.size; i++)
        if (!isalnum((unsigned char)value.data[i]) && strchr("._-/", value.data[i]) == NULL)
            return false;
    return strncasecmp(value.data, "inf", 3) != 0 && strncasecmp(value.data, "nan", 3) != 0;
}

static void push_text(const term *t, const char *column, nl_buffer *sql)
{
    if (!nl_string_is(t->operator, "==") || !is_plain(t->value))
        return;
    store_add(sql, " AND %s = ", column);
    store_quote(sql, t->value);
}

static void push_term(const char *at, const char *end, nl_buffer *sql)
{
    static const struct {
        const char *names[2], *column;
    } columns[] = {{{"HOST", "host"}, "host"}, {{"PROG", "prog"}, "prog"}, {{"NL.EVNT", "event"}, "event"}};
    term t;
    if (!split(at, end, &t))
        return;
    if (nl_string_is(t.name, "DATE") || nl_string_is(t.name, "ts"))
        push_time(&t, sql);
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        if (nl_string_is(t.name, columns[i].names[0]) || nl_string_is(t.name, columns[i].names[1]))
            push_text(&t, columns[i].column, sql);
}

/* Returns the end of the term at `at`. Sets *or to true if the term contains || outside of parentheses. */
static const char *end_of_term(const char *at, bool * or)
{
    int depth = 0;
    bool quoted = false;
    for (; *at != '\0'; at++) {
        if (quoted && *at == '\\' && at[1] != '\0')
            at++;
        else if (*at == '"')
            quoted = !quoted;
        else if (!quoted)
            depth += (*at == '(') - (*at == ')');
        if (quoted || depth > 0)
            continue;
        if (strncmp(at, "||", 2) == 0)
            * or = true;
        if (strncmp(at, "&&", 2) == 0)
            break;
    }
    return at;
}

void pushdown(const nl_filter *filter, nl_buffer *sql)
{
    bool or = false;
    if (filter == NULL)
        return;
    const char *text = nl_filter_text(filter), *end;
    for (const char *at = text; *at != '\0' && ! or ; at = end + (*end != '\0' ? 2 : 0))
        end = end_of_term(at, & or);
    for (const char *at = text; *at != '\0' && ! or ; at = end + (*end != '\0' ? 2 : 0)) {
        end = end_of_term(at, & or);
        push_term(at, end, sql);
    }
}
