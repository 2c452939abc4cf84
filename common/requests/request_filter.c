#include "config.h"

#include "requests/request_filter.h"

#include "base/error.h"
#include "base/option.h"
#include "requests/request_reader.h"

#include <ctype.h>
#include <fnmatch.h>
#include <string.h>
#include <strings.h>

enum {
    TESTS_MAX = 32,  /* maximum number of any(...), because each has one bit of request_event.matches */
    NESTED_MAX = 32, /* maximum number of nested parentheses and negations */
    WORD_SIZE = 64,
};

typedef enum term_kind { TERM_OR, TERM_AND, TERM_NOT, TERM_ANY, TERM_DURATION, TERM_SPAN } term_kind;

typedef enum span_value { SPAN_EXISTS, SPAN_ON_PATH, SPAN_DURATION, SPAN_SELF, SPAN_PATH } span_value;

typedef enum comparison { LESS, LESS_OR_EQUAL, EQUAL, UNEQUAL, MORE_OR_EQUAL, MORE } comparison;

typedef struct term {
    term_kind kind;
    struct term *left, *right; /* TERM_NOT uses only left */
    unsigned test;             /* TERM_ANY: index of the expression on records in the filter */
    char *span;                /* TERM_SPAN: pattern of the span's name */
    span_value value;
    comparison comparison;
    int64_t limit_ns;
} term;

struct request_filter {
    term *root;
    nl_filter *tests[TESTS_MAX];
    unsigned test_count;
    bool has_other_terms; /* terms other than any() */
};

static void free_term(term *t)
{
    if (t == NULL)
        return;
    free_term(t->left);
    free_term(t->right);
    g_free(t->span);
    g_free(t);
}

void request_filter_free(request_filter *f)
{
    if (f == NULL)
        return;
    free_term(f->root);
    for (unsigned i = 0; i < f->test_count; i++)
        nl_filter_free(f->tests[i]);
    g_free(f);
}

/* ---- text ---- */

static bool is_word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '-';
}

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* Returns the position after a quoted text, or the end of the expression. */
static const char *skip_quoted(const char *at)
{
    char quote = *at++;
    while (*at != '\0' && *at != quote)
        at += at[0] == '\\' && at[1] != '\0' ? 2 : 1;
    return at + (*at != '\0');
}

static bool is_word(const char *at, size_t size, const char *word)
{
    return strlen(word) == size && strncasecmp(at, word, size) == 0;
}

/* Returns the length in bytes of the words "on critical path" at a position, or 0 if the text is different. */
static size_t on_path_size(const char *at)
{
    static const char *const words[] = {"on", "critical", "path"};
    const char *const begin = at;
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
        size_t size = 0;
        at = skip_space(at);
        while (is_word_char(at[size]))
            size++;
        if (!is_word(at, size, words[i]))
            return 0;
        at += size;
    }
    return (size_t)(at - begin);
}

static bool begins_term(const char *at, size_t size)
{
    return is_word(at, size, "request.duration") || on_path_size(at) > 0 ||
           ((is_word(at, size, "any") || is_word(at, size, "span")) && *skip_space(at + size) == '(');
}

bool request_filter_selects_requests(const char *expression)
{
    for (const char *at = expression; *at != '\0';) {
        size_t size = 0;
        while (is_word_char(at[size]))
            size++;
        if (begins_term(at, size))
            return true;
        at = size > 0 ? at + size : *at == '"' || *at == '\'' ? skip_quoted(at) : at + 1;
    }
    return false;
}

/* ---- parsing ---- */

typedef struct parser {
    request_filter *filter;
    const char *text, *at;
    unsigned depth;
} parser;

static term *parse_error(const parser *p, const char *expected)
{
    return nl_error_null(NL_ERROR_INVALID, "column %zu: expected %s", (size_t)(p->at - p->text) + 1, expected);
}

static bool skip_sign(parser *p, const char *sign)
{
    p->at = skip_space(p->at);
    bool found = strncmp(p->at, sign, strlen(sign)) == 0;
    p->at += found ? strlen(sign) : 0;
    return found;
}

/* Skips a word, ignoring its case. Returns false if the text at the position is different. */
static bool skip_word(parser *p, const char *word)
{
    size_t size = 0;
    p->at = skip_space(p->at);
    while (is_word_char(p->at[size]))
        size++;
    bool found = is_word(p->at, size, word);
    p->at += found ? size : 0;
    return found;
}

static term *new_term(term_kind kind, term *left, term *right)
{
    term *t = g_new0(term, 1);
    t->kind = kind;
    t->left = left;
    t->right = right;
    return t;
}

/* Reads a comparison with a duration into `t`. On an error, frees `t` and returns NULL. */
static term *parse_comparison(parser *p, term *t)
{
    static const struct {
        const char *sign;
        comparison comparison;
    } signs[] = {{"<=", LESS_OR_EQUAL}, {"<", LESS},     {">=", MORE_OR_EQUAL}, {">", MORE},
                 {"==", EQUAL},         {"!=", UNEQUAL}, {"=", EQUAL}};
    size_t i = 0, size = 0;
    while (i < G_N_ELEMENTS(signs) && !skip_sign(p, signs[i].sign))
        i++;
    p->at = skip_space(p->at);
    while (is_word_char(p->at[size]))
        size++;
    char duration[WORD_SIZE] = "";
    if (size < sizeof duration)
        memcpy(duration, p->at, size);
    if (i < G_N_ELEMENTS(signs) && nl_duration_parse(duration, &t->limit_ns)) {
        t->comparison = signs[i].comparison;
        p->at += size;
        return t;
    }
    free_term(t);
    return parse_error(p, i < G_N_ELEMENTS(signs) ? "a duration such as 50ms" : "a comparison such as > 50ms");
}

/* Reads the expression on records between the parentheses of any(). Returns its term, or NULL on failure. */
static term *parse_any(parser *p)
{
    const char *from = p->at;
    for (unsigned open = 1; open > 0 && *p->at != '\0';) {
        if (*p->at == '"' || *p->at == '\'') {
            p->at = skip_quoted(p->at);
            continue;
        }
        open += (*p->at == '(') - (*p->at == ')');
        p->at += open > 0;
    }
    if (*p->at != ')')
        return parse_error(p, "\")\"");
    if (p->filter->test_count == TESTS_MAX)
        return nl_error_null(NL_ERROR_LIMIT, "an expression may have at most %d any()", TESTS_MAX);
    char *text = g_strndup(from, (size_t)(p->at - from));
    nl_filter *test = nl_filter_parse(text);
    g_free(text);
    if (test == NULL) {
        nl_error_prepend("any()");
        return NULL;
    }
    p->at++;
    term *t = new_term(TERM_ANY, NULL, NULL);
    t->test = p->filter->test_count;
    p->filter->tests[p->filter->test_count++] = test;
    return t;
}

static term *parse_span(parser *p)
{
    static const struct {
        const char *word;
        span_value value;
    } values[] = {{".duration", SPAN_DURATION}, {".self", SPAN_SELF}, {".path", SPAN_PATH}};
    const char *name = p->at = skip_space(p->at);
    if (*name != '"' && *name != '\'')
        return parse_error(p, "the name of a span in quotes");
    p->at = skip_quoted(name);
    size_t size = (size_t)(p->at - name);
    if (size < 2 || name[size - 1] != *name || !skip_sign(p, ")"))
        return parse_error(p, "the closing quote and \")\"");
    term *t = new_term(TERM_SPAN, NULL, NULL);
    t->span = g_strndup(name + 1, size - 2);
    for (size_t i = 0; i < G_N_ELEMENTS(values); i++)
        if (skip_word(p, values[i].word)) {
            t->value = values[i].value;
            return parse_comparison(p, t);
        }
    if (*p->at == '.') {
        free_term(t);
        return parse_error(p, ".duration, .self or .path");
    }
    const size_t on_path = on_path_size(p->at);
    p->at += on_path;
    t->value = on_path > 0 ? SPAN_ON_PATH : SPAN_EXISTS;
    return t;
}

/* Returns the term of "on critical path" without a span, which is true if any span is on the path. */
static term *parse_on_path(parser *p)
{
    p->at += on_path_size(p->at);
    term *t = new_term(TERM_SPAN, NULL, NULL);
    t->span = g_strdup("*");
    t->value = SPAN_ON_PATH;
    return t;
}

static term *parse_series(parser *p);

static term *parse_term(parser *p)
{
    term *t = NULL;
    if (p->depth == NESTED_MAX)
        return nl_error_null(NL_ERROR_LIMIT, "an expression may have at most %d nested parentheses", NESTED_MAX);
    p->depth++;
    if (skip_sign(p, "!") || skip_word(p, "not")) {
        term *operand = parse_term(p);
        t = operand != NULL ? new_term(TERM_NOT, operand, NULL) : NULL;
    } else if (skip_sign(p, "(")) {
        t = parse_series(p);
        if (t != NULL && !skip_sign(p, ")")) {
            free_term(t);
            t = parse_error(p, "&&, || or \")\"");
        }
    } else if (skip_word(p, "request.duration")) {
        p->filter->has_other_terms = true;
        t = parse_comparison(p, new_term(TERM_DURATION, NULL, NULL));
    } else if (on_path_size(p->at) > 0) {
        p->filter->has_other_terms = true;
        t = parse_on_path(p);
    } else if (skip_word(p, "any") && skip_sign(p, "(")) {
        t = parse_any(p);
    } else if (skip_word(p, "span") && skip_sign(p, "(")) {
        p->filter->has_other_terms = true;
        t = parse_span(p);
    } else {
        t = parse_error(p, "request.duration, span(\"NAME\") or any(TEST); write tests of records inside any()");
    }
    p->depth--;
    return t;
}

/*
 * Reads terms that are joined by "and" or "or", depending on `kind`. Returns the joined term. On an error, frees the
 * terms and returns NULL.
 */
static term *parse_joined(parser *p, term_kind kind)
{
    bool is_or = kind == TERM_OR;
    term *left = is_or ? parse_joined(p, TERM_AND) : parse_term(p);
    while (left != NULL && (skip_sign(p, is_or ? "||" : "&&") || skip_word(p, is_or ? "or" : "and"))) {
        term *right = is_or ? parse_joined(p, TERM_AND) : parse_term(p);
        if (right == NULL) {
            free_term(left);
            return NULL;
        }
        left = new_term(kind, left, right);
    }
    return left;
}

static term *parse_series(parser *p)
{
    return parse_joined(p, TERM_OR);
}

bool request_filter_narrow(request_filter **filter, const char *expression)
{
    request_filter *f = *filter != NULL ? *filter : g_new0(request_filter, 1);
    const unsigned before = f->test_count;
    const bool had_other_terms = f->has_other_terms;
    parser p = {f, expression, expression, 0};
    term *t = parse_series(&p);
    if (t != NULL && *skip_space(p.at) != '\0') {
        free_term(t);
        p.at = skip_space(p.at);
        t = parse_error(&p, "&&, || or the end");
    }
    if (t != NULL) {
        f->root = f->root != NULL ? new_term(TERM_AND, f->root, t) : t;
        *filter = f;
        return true;
    }
    while (f->test_count > before)
        nl_filter_free(f->tests[--f->test_count]);
    f->has_other_terms = had_other_terms;
    if (*filter == NULL)
        request_filter_free(f);
    nl_error_prepend("filter \"%s\"", expression);
    return false;
}

void request_filter_add_fields(const request_filter *f, absent_fields *fields)
{
    for (unsigned i = 0; i < f->test_count; i++)
        absent_fields_add(fields, f->tests[i]);
}

/* ---- matching ---- */

uint32_t request_filter_match_record(const request_filter *f, const nl_record *record)
{
    uint32_t matches = 0;
    for (unsigned i = 0; i < f->test_count; i++)
        matches |= (uint32_t)nl_filter_matches(f->tests[i], record) << i;
    return matches;
}

static bool compare_ns(const term *t, int64_t ns)
{
    switch (t->comparison) {
    case LESS:
        return ns < t->limit_ns;
    case LESS_OR_EQUAL:
        return ns <= t->limit_ns;
    case EQUAL:
        return ns == t->limit_ns;
    case UNEQUAL:
        return ns != t->limit_ns;
    case MORE_OR_EQUAL:
        return ns >= t->limit_ns;
    default:
        return ns > t->limit_ns;
    }
}

static bool span_matches(const term *t, const request_span *s)
{
    switch (t->value) {
    case SPAN_EXISTS:
        return true;
    case SPAN_ON_PATH:
        return s->path_ns > 0;
    case SPAN_DURATION:
        return compare_ns(t, s->end_ns - s->begin_ns);
    case SPAN_SELF:
        return compare_ns(t, s->self_ns);
    default:
        return compare_ns(t, s->path_ns);
    }
}

/* The pattern "request" also matches the names of spans without names, such as "request of nginx". */
static bool name_matches(const term *t, const char *name)
{
    return fnmatch(t->span, name, 0) == 0 || (strcmp(t->span, REQUEST_UNNAMED) == 0 &&
                                              strncmp(name, REQUEST_UNNAMED_OF, sizeof REQUEST_UNNAMED_OF - 1) == 0);
}

static bool has_span(const term *t, const request_graph *g, const event_names *names)
{
    for (size_t i = 0; i < g->span_count; i++)
        if (span_matches(t, &g->spans[i]) && name_matches(t, event_names_text(names, g->spans[i].name)))
            return true;
    return false;
}

static bool term_matches(const term *t, const request_graph *g, const event_names *names, uint32_t matches)
{
    switch (t->kind) {
    case TERM_OR:
        return term_matches(t->left, g, names, matches) || term_matches(t->right, g, names, matches);
    case TERM_AND:
        return term_matches(t->left, g, names, matches) && term_matches(t->right, g, names, matches);
    case TERM_NOT:
        return !term_matches(t->left, g, names, matches);
    case TERM_ANY:
        return matches >> t->test & 1;
    case TERM_DURATION:
        return compare_ns(t, g->to_ns - g->from_ns);
    default:
        return has_span(t, g, names);
    }
}

bool request_filter_matches_single(const request_filter *f, uint32_t matches)
{
    return !f->has_other_terms && term_matches(f->root, NULL, NULL, matches);
}

bool request_filter_matches(const request_filter *f, const request_graph *g, const event_names *names)
{
    uint32_t matches = 0;
    for (size_t i = 0; i < g->event_count; i++)
        matches |= g->events[i].matches;
    return term_matches(f->root, g, names, matches);
}
