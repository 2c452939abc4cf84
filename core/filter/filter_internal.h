/*
 * Internals of filters. The tests of an expression are in an array, in the order of the text. For each of its two
 * results, a test has a link to the next test or to the final result. These links implement && || ! and parentheses.
 * Matching is a loop that ends as soon as the result is certain.
 */
#ifndef NETLOGGER_FILTER_FILTER_INTERNAL_H
#define NETLOGGER_FILTER_FILTER_INTERNAL_H

#include "filter/pattern.h"
#include "record/record_internal.h"

/* The result of comparing two values. A test accepts a set of results. */
enum {
    NL_ORDER_LESS = 1,
    NL_ORDER_EQUAL = 2,
    NL_ORDER_GREATER = 4,
    NL_ORDER_NONE = 8, /* the values differ and have no order */
};

typedef enum nl_operator {
    NL_OPERATOR_NONE,
    NL_OPERATOR_EQUAL,
    NL_OPERATOR_NOT_EQUAL,
    NL_OPERATOR_LESS,
    NL_OPERATOR_LESS_EQUAL,
    NL_OPERATOR_GREATER,
    NL_OPERATOR_GREATER_EQUAL,
    NL_OPERATOR_GLOB,
    NL_OPERATOR_NOT_GLOB,
    NL_OPERATOR_REGEX,
    NL_OPERATOR_IN,
    NL_OPERATOR_NOT_IN,
    NL_OPERATOR_HAS,
} nl_operator;

typedef struct nl_number {
    enum { NL_NUMBER_NONE, NL_NUMBER_INTEGER, NL_NUMBER_LARGE, NL_NUMBER_REAL } kind;
    union {
        int64_t integer;
        uint64_t large; /* an integer above INT64_MAX */
        double real;
    };
} nl_number;

/*
 * A value in an expression. `number` is nanoseconds since 1970 UTC for a time, the nl_level for a level, or the number
 * that the unquoted text of another value represents. If this text is not a number, the kind of `number` is
 * NL_NUMBER_NONE.
 */
typedef struct nl_operand {
    nl_string text;
    nl_number number;
} nl_operand;

typedef struct nl_filter_test {
    nl_string name;
    nl_member member;
    nl_operator operator;
    unsigned char accepts;  /* set of NL_ORDER_ values */
    bool numeric;           /* at least one operand is a number */
    uint16_t next[2];       /* indexed by the test's result: index of the next test, or NL_FILTER_NO or NL_FILTER_YES */
    uint32_t first_operand; /* index in nl_filter.operands */
    uint32_t operand_count;
    nl_pattern *pattern;
} nl_filter_test;

enum { NL_FILTER_NO = 0xfffe, NL_FILTER_YES = 0xffff };

struct nl_filter {
    nl_buffer text; /* the canonical form, NUL-terminated */
    nl_filter_test *tests;
    size_t test_count;
    nl_operand *operands;
    size_t operand_count, operand_capacity;
    char *strings; /* bytes of all names and values */
};

/* The tree of an expression while it is parsed. A node is a test, or a series of nodes joined by && or by ||. */
typedef enum nl_node_kind { NL_NODE_TEST, NL_NODE_AND, NL_NODE_OR } nl_node_kind;

typedef struct nl_node {
    nl_node_kind kind;
    bool negated;
    int first_test;  /* index of the test, or of the first test below this node */
    int first_child; /* index of the first node of the series, or -1 for a test */
    int next;        /* index of the next node of the series, or -1 */
} nl_node;

/* The text of each operator, and the set of NL_ORDER_ values that a comparison accepts. */
typedef struct nl_operator_row {
    const char *text;
    unsigned char accepts;
} nl_operator_row;

extern const nl_operator_row nl_operator_rows[];

/* Returns whether the operator compares by order: <, <=, > or >=. */
static inline bool nl_operator_orders(nl_operator operator)
{
    return operator>= NL_OPERATOR_LESS && operator<= NL_OPERATOR_GREATER_EQUAL;
}

static inline bool nl_operator_is_pattern(nl_operator operator)
{
    return operator>= NL_OPERATOR_GLOB && operator<= NL_OPERATOR_REGEX;
}

/* Parses the whole text as a number. Returns NL_NUMBER_NONE if the text is not a number, or is nan. */
nl_number nl_number_read(nl_string text);
nl_number nl_number_of_uint(uint64_t value);

/* Compare a with b. Return an NL_ORDER_ value. */
unsigned nl_number_order(const nl_number *a, const nl_number *b);
unsigned nl_text_order(nl_string a, nl_string b);

/*
 * Converts operand->text to the type with which a test compares member. `quoted` means that the value was in quotes.
 * Returns false and sets the error if the value is invalid.
 */
bool nl_operand_read(nl_operand *operand, nl_member member, nl_operator operator, bool quoted);

/* Writes the expression below nodes[root] in canonical form. Returns the maximum depth of its parentheses. */
int nl_filter_print(const nl_filter *filter, const nl_node *nodes, int root, nl_buffer *out);

/*
 * Formats a time for patterns and for the canonical form. The field name determines whether the form is ULM or BP.
 * Returns the length.
 */
size_t nl_filter_time_text(nl_string name, int64_t time_ns, char out[NL_TIME_TEXT_SIZE]);

#endif
