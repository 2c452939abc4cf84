#include "config.h"

#include "convert/strace_line.h"

#include "convert/strace_threads.h"

bool strace_number_below(nl_string digits, uint64_t limit, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < digits.size; i++) {
        *number = 10 * *number + (uint64_t)(digits.data[i] - '0');
        if (*number >= limit)
            return false;
    }
    return digits.size > 0;
}

int64_t strace_fraction_ns(nl_string text)
{
    const char *point = memchr(text.data, '.', text.size);
    int64_t ns = 0, unit = NL_NS_PER_SECOND;
    if (point == NULL)
        return 0;
    for (const char *at = point; ++at < text.data + text.size && (unit /= 10) > 0;)
        ns += (*at - '0') * unit;
    return ns;
}

/* ---- heads: [pid N] TIME ---- */

/*
 * Removes an optional "[pid 123<comm>] " or "123<comm> " from the beginning of *text. Returns false if this text is
 * malformed.
 */
static bool strace_line_read_thread(nl_string *text, strace_line *l)
{
    nl_string digits, whole = *text;
    uint64_t tid;
    bool in_brackets = text_take(text, "[pid");
    text_blanks(text);
    if (!text_digits(text, &digits) || (!in_brackets && text->size > 0 && *text->data != ' ' && *text->data != '<')) {
        *text = whole;
        return !in_brackets;
    }
    if (!strace_number_below(digits, STRACE_TID_LIMIT, &tid))
        return false;
    l->tid = (uint32_t)tid;
    const char *close = text_take(text, "<") ? text_find(*text, in_brackets ? ">]" : "> ") : NULL;
    if (close != NULL) {
        l->comm = (nl_string){text->data, (size_t)(close - text->data)};
        text_skip(text, l->comm.size + 1);
    }
    return !in_brackets || text_take(text, "]");
}

static bool strace_line_read_time(nl_string *text, strace_line *l)
{
    nl_string digits, start = *text;
    if (!text_digits(text, &digits))
        return false;
    l->is_clock = text_take(text, ":");
    if (l->is_clock && (!text_digits(text, &digits) || !text_take(text, ":") || !text_digits(text, &digits)))
        return false;
    bool has_fraction = text_take(text, ".") && text_digits(text, &digits);
    l->time = (nl_string){start.data, (size_t)(text->data - start.data)};
    return (has_fraction || l->is_clock) && text_take(text, " ");
}

bool strace_line_head(nl_string text, strace_line *l)
{
    *l = (strace_line){0};
    if (!strace_line_read_thread(&text, l))
        return false;
    text_blanks(&text);
    bool taken = strace_line_read_time(&text, l);
    text_blanks(&text);
    l->rest = text;
    return taken;
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '?';
}

bool strace_line_name(nl_string *text, nl_string *name)
{
    enum { NAME_SIZE_MAX = 64 };
    size_t size = 0;
    while (size < text->size && size < NAME_SIZE_MAX && is_name_byte(text->data[size]))
        size++;
    *name = (nl_string){text->data, size};
    text_skip(text, size);
    return size > 0 && text_take(text, "(");
}

/* ---- outcomes ---- */

/* Converts seconds such as "0.000110" to nanoseconds. Returns false if the text has another form. */
static bool read_duration(nl_string text, int64_t *ns)
{
    nl_string digits, whole = text;
    uint64_t seconds;
    if (!text_digits(&text, &digits) || !strace_number_below(digits, 1000000000, &seconds))
        return false;
    if (text.size > 0 && (!text_take(&text, ".") || !text_digits(&text, &digits) || text.size > 0))
        return false;
    *ns = (int64_t)seconds * NL_NS_PER_SECOND + strace_fraction_ns(whole);
    return true;
}

static void strace_line_read_duration(nl_string *text, strace_outcome *o)
{
    const char *open =
        text->size > 0 && text->data[text->size - 1] == '>' ? memrchr(text->data, '<', text->size) : NULL;
    if (open == NULL)
        return;
    nl_string inside = {open + 1, (size_t)(text->data + text->size - open - 2)};
    if (!read_duration(inside, &o->duration_ns))
        return;
    o->has_duration = true;
    o->duration = inside;
    text->size = (size_t)(open - text->data);
    text_drop_blanks(text);
}

nl_string strace_line_word(nl_string *text)
{
    size_t size = 0;
    while (size < text->size && text->data[size] != ' ' && text->data[size] != '<')
        size++;
    nl_string word = {text->data, size};
    text_skip(text, size);
    return word;
}

static strace_outcome read_outcome(nl_string text)
{
    strace_outcome o = {0};
    strace_line_read_duration(&text, &o);
    o.value = strace_line_word(&text);
    if (text_take(&text, "<")) {
        const char *close = memrchr(text.data, '>', text.size);
        size_t size = close != NULL ? (size_t)(close - text.data) : text.size;
        o.path = (nl_string){text.data, size};
        text_skip(&text, size + (close != NULL));
    }
    text_blanks(&text);
    if (text.size > 1 && text.data[0] == 'E' && text.data[1] >= 'A' && text.data[1] <= 'Z')
        o.name = strace_line_word(&text);
    text_blanks(&text);
    if (text_take(&text, "(") && text_drop(&text, ")"))
        *(o.name.data != NULL ? &o.error : &o.info) = text;
    return o;
}

/* Returns the offset of the "= " after ")" and blanks, or SIZE_MAX. */
static size_t find_outcome(nl_string text)
{
    size_t at = text.size;
    while (at >= 3) {
        const char *equals = memrchr(text.data, '=', at);
        if (equals == NULL)
            return SIZE_MAX;
        at = (size_t)(equals - text.data);
        size_t before = at;
        while (before > 0 && text.data[before - 1] == ' ')
            before--;
        if (before < at && before > 0 && text.data[before - 1] == ')' && at + 1 < text.size && text.data[at + 1] == ' ')
            return at;
    }
    return SIZE_MAX;
}

bool strace_line_split(nl_string text, nl_string *arguments, strace_outcome *o)
{
    size_t equals = find_outcome(text);
    if (equals == SIZE_MAX)
        return false;
    *arguments = (nl_string){text.data, equals};
    text_drop_blanks(arguments);
    arguments->size--; /* removes the parenthesis */
    text_skip(&text, equals + 2);
    *o = read_outcome(text);
    return true;
}

bool strace_outcome_is_failure(const strace_outcome *o)
{
    return o->value.size == 0 || *o->value.data == '-' || *o->value.data == '?';
}
