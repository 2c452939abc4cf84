/* Matching: the loop over tests, and the tests. */
#include "config.h"

#include "base/error.h"
#include "filter/filter_internal.h"

#include <math.h>
#include <stdlib.h>

/* A value of a record that is compared: its number where one is asked for, its text when it is looked at. */
static nl_number number_of(const nl_field *field)
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

/* Levels that both have their place stand by it; others are the same or not. */
static unsigned order_of_levels(nl_level level, nl_string text, const nl_operand *operand)
{
    nl_number number = {.kind = NL_NUMBER_INTEGER, .integer = level};
    if (level != NL_LEVEL_NONE && operand->number.kind != NL_NUMBER_NONE)
        return nl_number_order(&number, &operand->number);
    return nl_text_order(text, operand->text) == NL_ORDER_EQUAL ? NL_ORDER_EQUAL : NL_ORDER_NONE;
}

/* How the field stands to the first operand that it equals, else to the last one. */
static unsigned order_of_values(const nl_filter *filter, const nl_filter_test *test, const nl_field *field)
{
    char scratch[NL_FIELD_TEXT_SIZE];
    nl_number number = {.kind = NL_NUMBER_NONE};
    nl_string text = {NULL, 0};
    if (test->numeric)
        number = number_of(field);
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

static bool matches_pattern(const nl_filter_test *test, const nl_field *field)
{
    char scratch[NL_FIELD_TEXT_SIZE], time[NL_TIME_TEXT_SIZE];
    nl_string text;
    if (test->member == NL_MEMBER_TIME)
        text = (nl_string){time, nl_filter_time_text(test->name, field->int_value, time)};
    else
        text = nl_field_text(field, scratch);
    return nl_pattern_matches(test->pattern, text) == (test->operator!= NL_OPERATOR_NOT_GLOB);
}

static bool passes(const nl_filter *filter, const nl_filter_test *test, const nl_record *record)
{
    nl_field field;
    if (!nl_record_find_member(record, test->member, test->name, &field))
        return false;
    if (test->accepts == 0)
        return test->pattern == NULL || matches_pattern(test, &field);
    if (test->member == NL_MEMBER_TIME || test->member == NL_MEMBER_LEVEL)
        return (order_of_member(filter, test, record, &field) & test->accepts) != 0;
    return (order_of_values(filter, test, &field) & test->accepts) != 0;
}

bool nl_filter_matches(const nl_filter *filter, const nl_record *record)
{
    if (filter == NULL)
        return true;
    unsigned at = 0;
    while (at < NL_FILTER_NO)
        at = filter->tests[at].next[passes(filter, &filter->tests[at], record)];
    return at == NL_FILTER_YES;
}

const char *nl_filter_text(const nl_filter *filter)
{
    NL_REQUIRE(filter != NULL, "filter is NULL");
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
