/* Matches records with filters. */
#include "config.h"

#include "base/error.h"
#include "filter/filter.h"
#include "filter/filter_internal.h"

#include <math.h>
#include <stdlib.h>

/* Maximum costs of the parts of a test, in steps of about one nanosecond. */
enum {
    TEST_COST = 8,
    OPERAND_COST = 4,
    INTEGER_COST = 32, /* converting an integer to or from text */
    REAL_COST = 512,   /* converting a floating-point number to or from text */
    SHORT_NUMBER = 20, /* in bytes; a longer number may cost as much as a floating-point number */
};

/* Returns the number for a field's value, or NL_NUMBER_NONE. */
static nl_number filter_number_of(const nl_field *field)
{
    switch (field->type) {
    case NL_TYPE_STRING:
        return nl_number_read(field->string);
    case NL_TYPE_INT:
        return (nl_number){.kind = NL_NUMBER_INTEGER, .integer = field->int_value};
    case NL_TYPE_UINT:
        return nl_number_of_uint(field->uint_value);
    case NL_TYPE_DOUBLE:
        if (isnan(field->double_value))
            break;
        return (nl_number){.kind = NL_NUMBER_REAL, .real = field->double_value};
    case NL_TYPE_BOOL:
        break;
    }
    return (nl_number){.kind = NL_NUMBER_NONE};
}

static unsigned order_of_times(const nl_field *field, const nl_operand *operand)
{
    nl_number time = {.kind = NL_NUMBER_INTEGER, .integer = field->int_value};
    return nl_number_order(&time, &operand->number);
}

/* Compares known levels by rank, and other levels as text. Different texts have no order. */
static unsigned order_of_levels(nl_level level, nl_string text, const nl_operand *operand)
{
    nl_number number = {.kind = NL_NUMBER_INTEGER, .integer = level};
    if (level != NL_LEVEL_NONE && operand->number.kind != NL_NUMBER_NONE)
        return nl_number_order(&number, &operand->number);
    return nl_text_order(text, operand->text) == NL_ORDER_EQUAL ? NL_ORDER_EQUAL : NL_ORDER_NONE;
}

/*
 * Compares the field with the operands up to the first operand that equals it. Returns the result of the last
 * comparison.
 */
static unsigned order_of_values(const nl_filter *filter, const nl_filter_test *test, const nl_field *field)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_number number = {.kind = NL_NUMBER_NONE};
    nl_string text = {NULL, 0};
    if (test->numeric)
        number = filter_number_of(field);
    const nl_operand *operand = filter->operands + test->first_operand, *end = operand + test->operand_count;
    unsigned order = NL_ORDER_NONE;
    for (; operand < end && order != NL_ORDER_EQUAL; operand++) {
        if (number.kind != NL_NUMBER_NONE && operand->number.kind != NL_NUMBER_NONE) {
            order = nl_number_order(&number, &operand->number);
            continue;
        }
        if (text.data == NULL)
            text = nl_field_text(field, scratch);
        order = nl_text_order(text, operand->text);
    }
    return order;
}

static unsigned order_of_member(const nl_filter *filter, const nl_filter_test *test, const nl_record *record,
                                const nl_field *field)
{
    const nl_operand *operand = filter->operands + test->first_operand, *end = operand + test->operand_count;
    unsigned order = NL_ORDER_NONE;
    if (test->member == NL_MEMBER_TIME) {
        for (; operand < end && order != NL_ORDER_EQUAL; operand++)
            order = order_of_times(field, operand);
        return order;
    }
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_string text = nl_field_text(field, scratch);
    nl_level level = record->level != NL_LEVEL_NONE ? record->level : nl_level_parse(text.data, text.size);
    for (; operand < end && order != NL_ORDER_EQUAL; operand++)
        order = order_of_levels(level, text, operand);
    return order;
}

/* Returns the cost of writing a field as text. */
static uint64_t text_cost(const nl_field *field)
{
    switch (field->type) {
    case NL_TYPE_INT:
    case NL_TYPE_UINT:
        return INTEGER_COST;
    case NL_TYPE_DOUBLE:
        return REAL_COST;
    case NL_TYPE_STRING:
    case NL_TYPE_BOOL:
        break;
    }
    return 0;
}

/* Returns the cost of comparing a field with all operands of a test. */
static uint64_t order_cost(const nl_filter_test *test, const nl_field *field)
{
    uint64_t cost = text_cost(field) + (uint64_t)test->operand_count * OPERAND_COST;
    if (test->numeric && field->type == NL_TYPE_STRING)
        cost += field->string.size <= SHORT_NUMBER ? INTEGER_COST : REAL_COST;
    return cost;
}

static bool spend(uint64_t *steps, uint64_t cost)
{
    bool enough = cost <= *steps;
    *steps -= enough ? cost : *steps;
    return enough;
}

static nl_status match_pattern(const nl_filter_test *test, const nl_field *field, uint64_t *steps, bool *result)
{
    char scratch[NL_FIELD_TEXT_SIZE], time[NL_TIME_TEXT_SIZE];
    nl_string text;
    if (!spend(steps, text_cost(field)))
        return NL_FAILED;
    if (test->member == NL_MEMBER_TIME)
        text = (nl_string){time, nl_filter_time_text(test->name, field->int_value, time)};
    else
        text = nl_field_text(field, scratch);
    nl_status status = nl_pattern_match(test->pattern, text, steps, result);
    *result = *result == (test->operator!= NL_OPERATOR_NOT_GLOB);
    return status;
}

static nl_status match_test(const nl_filter *filter, const nl_filter_test *test, const nl_record *record,
                            uint64_t *steps, bool *result)
{
    nl_field field;
    *result = false;
    if (!spend(steps, TEST_COST + (test->member == NL_MEMBER_NONE ? record->field_count : 0)))
        return NL_FAILED;
    if (!nl_record_find_member(record, test->member, test->name, &field))
        return NL_OK;
    if (test->pattern != NULL)
        return match_pattern(test, &field, steps, result);
    unsigned order = 0;
    if (test->accepts != 0) {
        bool member = test->member == NL_MEMBER_TIME || test->member == NL_MEMBER_LEVEL;
        if (!spend(steps, order_cost(test, &field)))
            return NL_FAILED;
        order = member ? order_of_member(filter, test, record, &field) : order_of_values(filter, test, &field);
    }
    *result = test->accepts == 0 || (order & test->accepts) != 0;
    return NL_OK;
}

nl_status nl_filter_match(const nl_filter *filter, const nl_record *record, uint64_t *steps, bool *matches)
{
    unsigned at = filter != NULL ? 0 : NL_FILTER_YES;
    while (at < NL_FILTER_NO) {
        bool result;
        if (match_test(filter, &filter->tests[at], record, steps, &result) != NL_OK)
            return nl_error_set(NL_ERROR_LIMIT,
                                "the expression needs too many steps for this record; use a simpler expression");
        at = filter->tests[at].next[result];
    }
    *matches = at == NL_FILTER_YES;
    return NL_OK;
}

bool nl_filter_matches(const nl_filter *filter, const nl_record *record)
{
    uint64_t steps = UINT64_MAX;
    bool matches = false;
    nl_filter_match(filter, record, &steps, &matches);
    return matches;
}

size_t nl_filter_count_tests(const nl_filter *filter)
{
    return filter->test_count;
}

nl_string nl_filter_test_field(const nl_filter *filter, size_t test)
{
    const nl_filter_test *t = &filter->tests[test];
    return t->member == NL_MEMBER_NONE ? t->name : (nl_string){"", 0};
}

size_t nl_filter_list_equalities(const nl_filter *filter, nl_filter_equality *list, size_t capacity)
{
    size_t count = 0;
    for (size_t i = 0; i < filter->test_count && count < capacity; i++) {
        const nl_filter_test *test = &filter->tests[i];
        if (test->member == NL_MEMBER_NONE && (test->operator== NL_OPERATOR_EQUAL || test->operator== NL_OPERATOR_IN))
            list[count++] = (nl_filter_equality){i, test->name, test->first_operand, test->operand_count};
    }
    return count;
}

/* Follows the links of all possible results. Links lead only to later tests. */
bool nl_filter_may_match(const nl_filter *filter, const bool *impossible)
{
    bool reached[NL_FILTER_TESTS_MAX] = {true};
    for (size_t i = 0; i < filter->test_count; i++)
        for (int result = 0; reached[i] && result <= (impossible[i] ? 0 : 1); result++) {
            const uint16_t next = filter->tests[i].next[result];
            if (next == NL_FILTER_YES)
                return true;
            if (next != NL_FILTER_NO)
                reached[next] = true;
        }
    return false;
}

const char *nl_filter_text(const nl_filter *filter)
{
    NL_REQUIRE(filter != NULL, "filter is NULL", "");
    return filter->text.data;
}

void nl_filter_free(nl_filter *filter)
{
    if (filter == NULL)
        return;
    for (size_t i = 0; i < filter->test_count; i++)
        nl_pattern_free(filter->tests[i].pattern);
    nl_buffer_free(&filter->text);
    free(filter->tests);
    free(filter->operands);
    free(filter->strings);
    free(filter);
}
