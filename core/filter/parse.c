/*
 * Parses expressions by recursive descent:
 *
 *   series of ||  =  series of && { "||" series of && }
 *   series of &&  =  term { "&&" term }
 *   term          =  { "!" } ( test | "(" series of || ")" )
 *   test          =  "has" NAME | NAME OPERATOR VALUE | NAME [ "not" ] "in" "(" VALUE { "," VALUE } ")"
 *
 * If an operator follows a word such as "not" or "has", the word is a field name.
 */
#include "config.h"

#include "base/error.h"
#include "base/memory.h"
#include "filter/filter_internal.h"
#include "record/bytes.h"
#include "record/number.h"
#include "record/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { FAILED = -1, SHOWN = 20 };

typedef struct parser {
    nl_filter *filter;
    const char *text, *at, *end;
    char *strings;    /* free space in filter->strings */
    size_t positions; /* number of positions in all compiled patterns (pattern.h) */
    int depth;        /* number of open parentheses */
    int node_count;
    nl_node nodes[2 * NL_FILTER_TESTS_MAX]; /* a series has at least two nodes */
} parser;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Returns whether a byte is valid in a value without quotes. */
static bool is_bare(char c)
{
    return nl_byte_is(c, NL_BYTE_NAME) || (unsigned char)c >= 0x80 || (c != '\0' && strchr("+:/*?[]@%", c) != NULL);
}

static const char *skip_blanks(const char *at)
{
    while (is_blank(*at))
        at++;
    return at;
}

static const char *name_end(const char *at, const char *end)
{
    return nl_byte_is(*at, NL_BYTE_NAME_FIRST) ? nl_find_name_end(at, end, end) : at;
}

static size_t column(const parser *p, const char *at)
{
    return (size_t)(at - p->text) + 1;
}

/* Reports that the text at a position is not the expected text. */
static int unexpected(const parser *p, const char *at, const char *expected)
{
    char shown[SHOWN + 1];
    size_t size = 0;
    at = skip_blanks(at);
    if (at == p->end)
        return nl_error_set(NL_ERROR_INVALID, "column %zu: expected %s, not the end", column(p, at), expected);
    for (; size < SHOWN && at[size] != '\0' && !is_blank(at[size]); size++)
        shown[size] = at[size] > ' ' && at[size] < 127 ? at[size] : '.';
    shown[size] = '\0';
    return nl_error_set(NL_ERROR_INVALID, "column %zu: expected %s, not \"%s\"", column(p, at), expected, shown);
}

/* Returns the longest punctuation operator at a position, and sets its size. "=" is the same as "==". */
static nl_operator operator_at(const char *at, size_t *size)
{
    nl_operator found = *at == '=' ? NL_OPERATOR_EQUAL : NL_OPERATOR_NONE;
    *size = found != NL_OPERATOR_NONE;
    for (nl_operator operator= NL_OPERATOR_EQUAL; operator<= NL_OPERATOR_REGEX; operator++) {
        size_t length = strlen(nl_operator_rows[operator].text);
        if (length > *size && strncmp(at, nl_operator_rows[operator].text, length) == 0) {
            found = operator;
            *size = length;
        }
    }
    return found;
}

/* Returns the position after word if word is at `at`, otherwise NULL. */
static const char *word_at(const parser *p, const char *at, const char *word)
{
    size_t size = strlen(word);
    return (size_t)(name_end(at, p->end) - at) == size && strncasecmp(at, word, size) == 0 ? at + size : NULL;
}

static bool parser_skip_word(parser *p, const char *word)
{
    const char *behind = word_at(p, p->at, word);
    if (behind != NULL)
        p->at = behind;
    return behind != NULL;
}

/*
 * Skips a word. If an operator follows the word, it is a field name, and is not skipped. Returns whether the word was
 * skipped.
 */
static bool parser_skip_leading_word(parser *p, const char *word)
{
    size_t size;
    const char *behind = word_at(p, p->at, word);
    return behind != NULL && operator_at(skip_blanks(behind), &size) == NL_OPERATOR_NONE && parser_skip_word(p, word);
}

static bool parser_skip_sign(parser *p, char sign)
{
    p->at = skip_blanks(p->at);
    if (*p->at != sign)
        return false;
    p->at++;
    return true;
}

static nl_string keep_string(parser *p, const char *data, size_t size)
{
    nl_string kept = {p->strings, size};
    memcpy(p->strings, data, size);
    p->strings += size;
    return kept;
}

/* Reads a value after its opening quote. Returns false on failure. */
static bool read_quoted(parser *p, char quote, nl_string *text)
{
    const char *open = p->at - 1;
    *text = (nl_string){p->strings, 0};
    while (*p->at != quote) {
        if (p->at == p->end) {
            nl_error_set(NL_ERROR_INVALID, "column %zu: missing closing %c", column(p, open), quote);
            return false;
        }
        if (p->at[0] == '\\' && p->at[1] == quote)
            p->at++;
        else if (*p->at == '\\') {
            *p->strings++ = nl_text_unescape(&p->at, p->end);
            continue;
        }
        *p->strings++ = *p->at++;
    }
    p->at++;
    text->size = (size_t)(p->strings - text->data);
    return true;
}

static bool read_bare(parser *p, nl_string *text)
{
    const char *start = p->at;
    while (is_bare(*p->at))
        p->at++;
    if (p->at == start) {
        unexpected(p, start, "a value (a word, or text in quotes)");
        return false;
    }
    if (!is_blank(*p->at) && *p->at != '\0' && strchr("),&|", *p->at) == NULL) {
        unexpected(p, p->at, "the end of the value (put quotes around a value that contains special characters)");
        return false;
    }
    *text = keep_string(p, start, (size_t)(p->at - start));
    return true;
}

/* Adds an operand. Returns NULL if memory runs out. */
static nl_operand *new_operand(nl_filter *filter)
{
    if (filter->operand_count == filter->operand_capacity) {
        size_t capacity = filter->operand_capacity == 0 ? 4 : 2 * filter->operand_capacity;
        nl_operand *operands = nl_memory_check(reallocarray(filter->operands, capacity, sizeof *operands));
        if (operands == NULL)
            return NULL;
        filter->operands = operands;
        filter->operand_capacity = capacity;
    }
    return &filter->operands[filter->operand_count++];
}

static bool compile_pattern(parser *p, nl_filter_test *test, nl_string text)
{
    bool glob = test->operator!= NL_OPERATOR_REGEX;
    test->pattern =
        nl_pattern_compile(text, glob ? NL_PATTERN_GLOB : NL_PATTERN_REGEX, NL_FILTER_PATTERNS_MAX - p->positions);
    if (test->pattern == NULL) {
        nl_error_prepend(glob ? "expected a glob" : "expected a regular expression");
        return false;
    }
    p->positions += nl_pattern_positions(test->pattern);
    return true;
}

/* Reads a value as an operand of the test. */
static bool read_value(parser *p, nl_filter_test *test)
{
    p->at = skip_blanks(p->at);
    const char *start = p->at;
    bool quoted = *start == '"' || *start == '\'';
    nl_operand *operand = new_operand(p->filter);
    if (operand == NULL)
        return false;
    if (test->operand_count++ == 0)
        test->first_operand = (uint32_t)(operand - p->filter->operands);
    p->at += quoted;
    if (!(quoted ? read_quoted(p, *start, &operand->text) : read_bare(p, &operand->text)))
        return false;
    if (!nl_operand_read(operand, test->member, test->operator, quoted) ||
        (nl_operator_is_pattern(test->operator) && !compile_pattern(p, test, operand->text))) {
        nl_error_prepend("column %zu", column(p, start));
        return false;
    }
    test->numeric |= operand->number.kind != NL_NUMBER_NONE;
    return true;
}

/* Reads a list: (a, b, c). Returns false on failure. */
static bool read_list(parser *p, nl_filter_test *test)
{
    if (!parser_skip_sign(p, '(')) {
        unexpected(p, p->at, "( and a list of values");
        return false;
    }
    do {
        if (!read_value(p, test))
            return false;
    } while (parser_skip_sign(p, ','));
    if (parser_skip_sign(p, ')'))
        return true;
    unexpected(p, p->at, "a comma or )");
    return false;
}

static bool read_name(parser *p, nl_filter_test *test, const char *expected)
{
    p->at = skip_blanks(p->at);
    const char *end = name_end(p->at, p->end);
    if (end == p->at) {
        unexpected(p, p->at, expected);
        return false;
    }
    test->name = keep_string(p, p->at, (size_t)(end - p->at));
    test->member = nl_member_of_name(test->name);
    p->at = end;
    return true;
}

static nl_operator read_operator(parser *p)
{
    size_t size;
    p->at = skip_blanks(p->at);
    nl_operator operator= operator_at(p->at, &size);
    if (operator!= NL_OPERATOR_NONE) {
        p->at += size;
        return operator;
    }
    if (parser_skip_word(p, "in"))
        return NL_OPERATOR_IN;
    const char *behind = word_at(p, p->at, "not");
    if (behind != NULL && word_at(p, skip_blanks(behind), "in") != NULL) {
        p->at = skip_blanks(behind) + strlen("in");
        return NL_OPERATOR_NOT_IN;
    }
    unexpected(p, p->at, "an operator (== != < <= > >= ~ !~ =~ in) after the field's name");
    return NL_OPERATOR_NONE;
}

static int new_node(parser *p, nl_node_kind kind, int first_test, int first_child)
{
    p->nodes[p->node_count] = (nl_node){.kind = kind, .first_test = first_test, .first_child = first_child, .next = -1};
    return p->node_count++;
}

static int read_test(parser *p)
{
    nl_filter *filter = p->filter;
    if (filter->test_count == NL_FILTER_TESTS_MAX)
        return nl_error_set(NL_ERROR_LIMIT, "column %zu: an expression may have at most %d tests", column(p, p->at),
                            NL_FILTER_TESTS_MAX);
    int index = (int)filter->test_count++;
    nl_filter_test *test = &filter->tests[index];
    *test = (nl_filter_test){.operator= NL_OPERATOR_HAS };
    if (parser_skip_leading_word(p, "has")) {
        if (!read_name(p, test, "a field's name"))
            return FAILED;
        return new_node(p, NL_NODE_TEST, index, -1);
    }
    if (!read_name(p, test, "a field name, has, not or ("))
        return FAILED;
    test->operator= read_operator(p);
    if (test->operator== NL_OPERATOR_NONE)
        return FAILED;
    test->accepts = nl_operator_rows[test->operator].accepts;
    bool list = test->operator== NL_OPERATOR_IN || test->operator== NL_OPERATOR_NOT_IN;
    if (!(list ? read_list(p, test) : read_value(p, test)))
        return FAILED;
    return new_node(p, NL_NODE_TEST, index, -1);
}

static int read_series(parser *p, nl_node_kind kind);

static int read_parentheses(parser *p)
{
    if (++p->depth > NL_FILTER_DEPTH_MAX)
        return nl_error_set(NL_ERROR_LIMIT, "column %zu: an expression may have at most %d nested parentheses",
                            column(p, p->at - 1), NL_FILTER_DEPTH_MAX);
    int node = read_series(p, NL_NODE_OR);
    p->depth--;
    if (node == FAILED || parser_skip_sign(p, ')'))
        return node;
    return unexpected(p, p->at, "&&, || or )");
}

static int read_term(parser *p)
{
    bool negated = false;
    for (;; negated = !negated)
        if (!parser_skip_sign(p, '!') && !parser_skip_leading_word(p, "not"))
            break;
    int node = parser_skip_sign(p, '(') ? read_parentheses(p) : read_test(p);
    if (node != FAILED)
        p->nodes[node].negated ^= negated;
    return node;
}

static bool parser_skip_connective(parser *p, nl_node_kind kind)
{
    p->at = skip_blanks(p->at);
    if (strncmp(p->at, kind == NL_NODE_AND ? "&&" : "||", 2) != 0)
        return parser_skip_word(p, kind == NL_NODE_AND ? "and" : "or");
    p->at += 2;
    return true;
}

static int read_series(parser *p, nl_node_kind kind)
{
    int first = kind == NL_NODE_OR ? read_series(p, NL_NODE_AND) : read_term(p);
    int series = first;
    for (int last = first; last != FAILED && parser_skip_connective(p, kind); last = p->nodes[last].next) {
        int next = kind == NL_NODE_OR ? read_series(p, NL_NODE_AND) : read_term(p);
        if (next == FAILED)
            return FAILED;
        if (last == first)
            series = new_node(p, kind, p->nodes[first].first_test, first);
        p->nodes[last].next = next;
    }
    return series;
}

/* Sets the next test or result for all tests below a node. */
static void set_results(parser *p, int at, uint16_t yes, uint16_t no)
{
    const nl_node *node = &p->nodes[at];
    uint16_t met = node->negated ? no : yes, missed = node->negated ? yes : no;
    if (node->kind == NL_NODE_TEST) {
        p->filter->tests[node->first_test].next[true] = met;
        p->filter->tests[node->first_test].next[false] = missed;
        return;
    }
    for (int child = node->first_child, next; child >= 0; child = next) {
        next = p->nodes[child].next;
        uint16_t more = next >= 0 ? (uint16_t)p->nodes[next].first_test : node->kind == NL_NODE_AND ? met : missed;
        if (node->kind == NL_NODE_AND)
            set_results(p, child, more, missed);
        else
            set_results(p, child, met, more);
    }
}

static bool parse(parser *p)
{
    if ((size_t)(p->end - p->text) > NL_FILTER_SIZE_MAX) {
        nl_error_set(NL_ERROR_LIMIT, "an expression may have at most %d bytes", NL_FILTER_SIZE_MAX);
        return false;
    }
    int root = read_series(p, NL_NODE_OR);
    if (root == FAILED)
        return false;
    if (*skip_blanks(p->at) != '\0') {
        unexpected(p, p->at, "&&, || or the end");
        return false;
    }
    set_results(p, root, NL_FILTER_YES, NL_FILTER_NO);
    nl_buffer *text = &p->filter->text;
    int depth = nl_filter_print(p->filter, p->nodes, root, text);
    if (depth > NL_FILTER_DEPTH_MAX || text->size > NL_FILTER_SIZE_MAX) {
        nl_error_set(NL_ERROR_LIMIT,
                     "the expression is too long or too deeply nested; use at most %d bytes and %d nested parentheses",
                     NL_FILTER_SIZE_MAX, NL_FILTER_DEPTH_MAX);
        return false;
    }
    nl_buffer_append(text, "", 1);
    return true;
}

/*
 * Creates the C locale now. Otherwise, matching would create it for the first number that needs strtod_l.
 */
static void prepare_numbers(void)
{
    double unused;
    nl_number_parse_double((nl_string){"1e-300", 6}, &unused);
}

nl_filter *nl_filter_parse(const char *text)
{
    NL_REQUIRE(text != NULL, "text is NULL", NULL);
    const unsigned failures = nl_memory_failures;
    prepare_numbers();
    size_t size = strlen(text);
    size_t capacity = size < NL_FILTER_SIZE_MAX ? size : NL_FILTER_SIZE_MAX;
    nl_filter *filter = calloc(1, sizeof *filter);
    parser *p = malloc(sizeof *p);
    if (filter == NULL || p == NULL) {
        nl_memory_failed();
        free(filter);
        free(p);
        return NULL;
    }
    *p = (parser){.filter = filter, .text = text, .at = text, .end = text + size};
    filter->tests = nl_memory_check(calloc(NL_FILTER_TESTS_MAX, sizeof *filter->tests));
    p->strings = filter->strings = nl_memory_check(malloc(capacity + 1));
    bool good = filter->tests != NULL && filter->strings != NULL && parse(p) && nl_memory_failures == failures;
    free(p);
    if (good) {
        nl_filter_test *fewer = reallocarray(filter->tests, filter->test_count, sizeof *fewer);
        filter->tests = fewer != NULL ? fewer : filter->tests;
        return filter;
    }
    nl_error_prepend("filter \"%.200s\"", text);
    nl_filter_free(filter);
    return NULL;
}
