/* Parses and compares the values in expressions. */
#include "config.h"

#include "base/error.h"
#include "base/time_internal.h"
#include "filter/filter_internal.h"
#include "record/number.h"

#include <math.h>
#include <string.h>

/* Parsing longer numbers would allocate memory. */
enum { NUMBER_SIZE_MAX = 127 };

/* Parses an integer above INT64_MAX exactly. Returns false if the text has another form. */
static bool read_large(nl_string text, uint64_t *value)
{
    *value = 0;
    if (nl_digits(text.data, text.size) != text.size)
        return false;
    for (size_t i = 0; i < text.size; i++)
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(text.data[i] - '0'), value))
            return false;
    return true;
}

nl_number nl_number_of_uint(uint64_t value)
{
    if (value > INT64_MAX)
        return (nl_number){.kind = NL_NUMBER_LARGE, .large = value};
    return (nl_number){.kind = NL_NUMBER_INTEGER, .integer = (int64_t)value};
}

nl_number nl_number_read(nl_string text)
{
    if (text.size == 0 || text.size > NUMBER_SIZE_MAX)
        return (nl_number){.kind = NL_NUMBER_NONE};
    int64_t integer;
    uint64_t large;
    double real;
    if (nl_number_parse_int(text, &integer))
        return (nl_number){.kind = NL_NUMBER_INTEGER, .integer = integer};
    if (read_large(text, &large))
        return nl_number_of_uint(large);
    if (nl_number_parse_double(text, &real) && !isnan(real))
        return (nl_number){.kind = NL_NUMBER_REAL, .real = real};
    return (nl_number){.kind = NL_NUMBER_NONE};
}

static unsigned opposite(unsigned order)
{
    return order == NL_ORDER_LESS ? NL_ORDER_GREATER : order == NL_ORDER_GREATER ? NL_ORDER_LESS : order;
}

#define ORDER(a, b) ((a) < (b) ? NL_ORDER_LESS : (a) > (b) ? NL_ORDER_GREATER : NL_ORDER_EQUAL)

/* Compares without converting the integer to a double, because a double cannot represent every integer. */
static unsigned order_with_real(const nl_number *whole, double real)
{
    bool large = whole->kind == NL_NUMBER_LARGE;
    if (real >= (large ? 0x1p64 : 0x1p63))
        return NL_ORDER_LESS;
    if (real < (large ? 0x1p63 : -0x1p63))
        return NL_ORDER_GREATER;
    unsigned order = large ? ORDER(whole->large, (uint64_t)real) : ORDER(whole->integer, (int64_t)real);
    double rest = real - (large ? (double)(uint64_t)real : (double)(int64_t)real);
    return order != NL_ORDER_EQUAL ? order : ORDER(0, rest);
}

unsigned nl_number_order(const nl_number *a, const nl_number *b)
{
    if (a->kind == NL_NUMBER_REAL && b->kind == NL_NUMBER_REAL)
        return ORDER(a->real, b->real);
    if (b->kind == NL_NUMBER_REAL)
        return order_with_real(a, b->real);
    if (a->kind == NL_NUMBER_REAL)
        return opposite(order_with_real(b, a->real));
    if (a->kind != b->kind)
        return a->kind == NL_NUMBER_INTEGER ? NL_ORDER_LESS : NL_ORDER_GREATER;
    return a->kind == NL_NUMBER_LARGE ? ORDER(a->large, b->large) : ORDER(a->integer, b->integer);
}

unsigned nl_text_order(nl_string a, nl_string b)
{
    size_t common = a.size < b.size ? a.size : b.size;
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
    if (order == 0)
        return a.size < b.size ? NL_ORDER_LESS : a.size > b.size ? NL_ORDER_GREATER : NL_ORDER_EQUAL;
    return order < 0 ? NL_ORDER_LESS : NL_ORDER_GREATER;
}

static bool read_time(nl_operand *operand)
{
    nl_string text = operand->text;
    if (text.size == 8 && nl_digits(text.data, 8) == 8) {
        nl_error_set(NL_ERROR_INVALID, "expected a time; write a day as %.4s-%.2s-%.2s", text.data, text.data + 4,
                     text.data + 6);
        return false;
    }
    int64_t time_ns;
    if (nl_time_parse(text.data, text.size, NL_FRACTION_DECIMAL, &time_ns) == NL_OK) {
        operand->number = (nl_number){.kind = NL_NUMBER_INTEGER, .integer = time_ns};
        return true;
    }
    nl_error_prepend("expected a time, such as 2012-03-14T14:04:46Z or 20120314140446");
    return false;
}

static bool read_level(nl_operand *operand, nl_operator operator)
{
    nl_level level = nl_level_parse(operand->text.data, operand->text.size);
    if (level != NL_LEVEL_NONE) {
        operand->number = (nl_number){.kind = NL_NUMBER_INTEGER, .integer = level};
        return true;
    }
    if (!nl_operator_orders(operator))
        return true;
    nl_error_set(NL_ERROR_INVALID,
                 "expected a level: Emergency, Alert, Error, Warning, Auth, Security, Usage, System, Important or "
                 "Debug");
    return false;
}

bool nl_operand_read(nl_operand *operand, nl_member member, nl_operator operator, bool quoted)
{
    operand->number = (nl_number){.kind = NL_NUMBER_NONE};
    if (nl_operator_is_pattern(operator))
        return true;
    if (member == NL_MEMBER_TIME)
        return read_time(operand);
    if (member == NL_MEMBER_LEVEL)
        return read_level(operand, operator);
    if (!quoted)
        operand->number = nl_number_read(operand->text);
    return true;
}
