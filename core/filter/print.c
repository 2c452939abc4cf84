/* The canonical form of an expression. */
#include "config.h"

#include "filter/filter_internal.h"
#include "record/text.h"
#include "base/buffer.h"
#include "base/text.h"

#include <string.h>

const nl_operator_row nl_operator_rows[] = {
    [NL_OPERATOR_NONE] = {"", 0},
    [NL_OPERATOR_EQUAL] = {"==", NL_ORDER_EQUAL},
    [NL_OPERATOR_NOT_EQUAL] = {"!=", NL_ORDER_LESS | NL_ORDER_GREATER | NL_ORDER_NONE},
    [NL_OPERATOR_LESS] = {"<", NL_ORDER_LESS},
    [NL_OPERATOR_LESS_EQUAL] = {"<=", NL_ORDER_LESS | NL_ORDER_EQUAL},
    [NL_OPERATOR_GREATER] = {">", NL_ORDER_GREATER},
    [NL_OPERATOR_GREATER_EQUAL] = {">=", NL_ORDER_GREATER | NL_ORDER_EQUAL},
    [NL_OPERATOR_GLOB] = {"~", 0},
    [NL_OPERATOR_NOT_GLOB] = {"!~", 0},
    [NL_OPERATOR_REGEX] = {"=~", 0},
    [NL_OPERATOR_IN] = {"in", NL_ORDER_EQUAL},
    [NL_OPERATOR_NOT_IN] = {"not in", NL_ORDER_LESS | NL_ORDER_GREATER | NL_ORDER_NONE},
    [NL_OPERATOR_HAS] = {"has", 0},
};

static const nl_text_format *format_of_name(nl_string name)
{
    return nl_text_member(&nl_bp, name.data, name.size) != NL_MEMBER_NONE ? &nl_bp : &nl_ulm;
}

size_t nl_filter_time_text(nl_string name, int64_t time_ns, char out[NL_TIME_TEXT_SIZE])
{
    return format_of_name(name)->put_time(time_ns, &(nl_known_second){0}, out);
}

static void put_operand(const nl_filter_test *test, const nl_operand *operand, nl_buffer *out)
{
    char time[NL_TIME_TEXT_SIZE];
    if (operand->number.kind == NL_NUMBER_NONE) {
        if (!nl_buffer_reserve(out, NL_TEXT_QUOTED_SIZE(operand->text.size)))
            return;
        char *end = nl_text_put_quoted(out->data + out->size, operand->text, nl_ulm.hex_escape);
        out->size = (size_t)(end - out->data);
    } else if (test->member == NL_MEMBER_TIME) {
        nl_buffer_append(out, time, nl_filter_time_text(test->name, operand->number.integer, time));
    } else if (test->member == NL_MEMBER_LEVEL) {
        nl_buffer_append_text(out, format_of_name(test->name)->level_name((nl_level)operand->number.integer));
    } else {
        nl_buffer_append(out, operand->text.data, operand->text.size);
    }
}

static void put_test(const nl_filter *filter, const nl_filter_test *test, nl_buffer *out)
{
    bool list = test->operator== NL_OPERATOR_IN || test->operator== NL_OPERATOR_NOT_IN;
    if (test->operator== NL_OPERATOR_HAS)
        nl_buffer_append_text(out, "has ");
    nl_buffer_append(out, test->name.data, test->name.size);
    if (test->operator== NL_OPERATOR_HAS)
        return;
    nl_buffer_append_text(out, " ");
    nl_buffer_append_text(out, nl_operator_rows[test->operator].text);
    nl_buffer_append_text(out, list ? " (" : " ");
    for (uint32_t i = 0; i < test->operand_count; i++) {
        nl_buffer_append_text(out, i > 0 ? ", " : "");
        put_operand(test, &filter->operands[test->first_operand + i], out);
    }
    nl_buffer_append_text(out, list ? ")" : "");
}

/*
 * Prints the expression below nodes[at]. `within` is the kind of the enclosing series, or NL_NODE_TEST outside of a
 * series. `depth` is the number of open parentheses. Returns the maximum depth.
 */
static int print(const nl_filter *filter, const nl_node *nodes, int at, nl_node_kind within, int depth, nl_buffer *out)
{
    const nl_node *node = &nodes[at];
    bool is_has = node->kind == NL_NODE_TEST && filter->tests[node->first_test].operator== NL_OPERATOR_HAS;
    bool parentheses = (node->negated && !is_has) || (node->kind == NL_NODE_OR && within == NL_NODE_AND);
    int deepest = depth += parentheses;
    nl_buffer_append_text(out, node->negated ? "!" : "");
    nl_buffer_append_text(out, parentheses ? "(" : "");
    if (node->kind == NL_NODE_TEST)
        put_test(filter, &filter->tests[node->first_test], out);
    else
        for (int child = node->first_child; child >= 0; child = nodes[child].next) {
            int deep = print(filter, nodes, child, node->kind, depth, out);
            deepest = deep > deepest ? deep : deepest;
            if (nodes[child].next >= 0)
                nl_buffer_append_text(out, node->kind == NL_NODE_AND ? " && " : " || ");
        }
    nl_buffer_append_text(out, parentheses ? ")" : "");
    return deepest;
}

int nl_filter_print(const nl_filter *filter, const nl_node *nodes, int root, nl_buffer *out)
{
    return print(filter, nodes, root, NL_NODE_TEST, 0, out);
}
