/*
 * A filter from inside.
 *
 * The tests of an expression lie one behind the other as they were written. Each says for both of its results which
 * test is next, or that the record is meant or not: && || ! and parentheses are nothing but these ways. Matching
 * therefore is a loop, and stops as soon as the result is certain.
 */
#ifndef NETLOGGER_FILTER_FILTER_INTERNAL_H
#define NETLOGGER_FILTER_FILTER_INTERNAL_H

#include "filter/pattern.h"
#include "record/record_internal.h"

/* How two values stand to each other. A test accepts a set of these. */
enum {
    NL_ORDER_LESS = 1,
    NL_ORDER_EQUAL = 2,
    NL_ORDER_GREATER = 4,
    NL_ORDER_NONE = 8, /* they are different, and neither comes first */
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
        uint64_t large; /* above INT64_MAX */
        double real;
    };
} nl_number;

/* A value in an expression. Its number is the time or the level when it is compared with one. */
typedef struct nl_operand {
    nl_string text;
    nl_number number;
} nl_operand;

typedef struct nl_filter_test {
    nl_string name;
    nl_member member;
    nl_operator operator;
    unsigned char accepts; /* NL_ORDER_... */
    bool numeric;          /* some operand is a number */
    uint16_t next[2];      /* by the result: a test, or one of those below */
    uint32_t first_operand, operand_count;
    nl_pattern *pattern;
} nl_filter_test;

enum { NL_FILTER_NO = 0xfffe, NL_FILTER_YES = 0xffff };

struct nl_filter {
    nl_buffer text; /* canonical, NUL-terminated */
    nl_filter_test *tests;
    size_t test_count;
    nl_operand *operands;
    size_t operand_count, operand_capacity;
    char *strings; /* the bytes of all names and values */
};

/* What an expression is made of while it is read: tests, and series of them joined by one word. */
typedef enum nl_node_kind { NL_NODE_TEST, NL_NODE_AND, NL_NODE_OR } nl_node_kind;

typedef struct nl_node {
    nl_node_kind kind;
    bool negated;
    int first_test; /* the test itself, or the first one of all that it holds */
    int first_child;
    int next; /* the next of the same series; -1 at its end */
} nl_node;

/* Whether an operator asks which value comes first. */
static inline bool nl_operator_orders(nl_operator operator)
{
    return operator>= NL_OPERATOR_LESS && operator<= NL_OPERATOR_GREATER_EQUAL;
}

static inline bool nl_operator_is_pattern(nl_operator operator)
{
    return operator>= NL_OPERATOR_GLOB && operator<= NL_OPERATOR_REGEX;
}

/* The number that text is from first byte to last; NL_NUMBER_NONE when it is none, or no number at all (nan). */
nl_number nl_number_read(nl_string text);
nl_number nl_number_of_uint(uint64_t value);

/* How a stands to b: one NL_ORDER_... */
unsigned nl_number_order(const nl_number *a, const nl_number *b);
unsigned nl_text_order(nl_string a, nl_string b);

/*
 * Makes of operand->text what a test of member compares with. quoted: it was in quotes. False with the reason in
 * nl_error_message().
 */
bool nl_operand_read(nl_operand *operand, nl_member member, nl_operator operator, bool quoted);

/* How an operator is written. */
const char *nl_operator_text(nl_operator operator);

/* Writes the expression under nodes[root] in canonical form to out. Returns how deep its parentheses go. */
int nl_filter_print(const nl_filter *filter, const nl_node *nodes, int root, nl_buffer *out);

/* The text of a time as patterns see it and as it is printed, by the name that was used for the field. */
size_t nl_filter_time_text(nl_string name, int64_t time_ns, char out[NL_TIME_TEXT_SIZE]);

#endif
