#include "config.h"

#include "pushdown.h"

#include "base/memory.h"
#include "filter/filter_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kernel rejects filters of a page or more. */
enum { TEXT_MAX = 3000 };

/* A part of the filter, specialized for an event: a known result, or a text for the kernel. */
typedef struct part {
    enum { PART_FALSE, PART_TRUE, PART_TEXT } kind;
    bool inexact; /* also true for records that the filter does not match */
    char *text;
} part;

static const part never = {PART_FALSE, false, NULL}, always = {PART_TRUE, false, NULL},
                  perhaps = {PART_TRUE, true, NULL};

NL_PRINTF(1, 2) static part text_part(const char *format, ...)
{
    part made = {.kind = PART_TEXT};
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&made.text, format, arguments) < 0)
        nl_memory_failed();
    va_end(arguments);
    return made;
}

static part pushdown_copy(const part *p)
{
    part made = *p;
    if (p->kind == PART_TEXT) {
        made.text = nl_memory_check(strdup(p->text));
    }
    return made;
}

static void free_part(part *p)
{
    free(p->text);
    p->text = NULL;
}

/* Returns a && b, or a || b, and frees both. A text that becomes too long counts as true. */
static part pushdown_join(part a, const char *word, part b)
{
    bool both = strcmp(word, "&&") == 0;
    unsigned decided = both ? PART_FALSE : PART_TRUE, neutral = both ? PART_TRUE : PART_FALSE;
    part made;
    if (a.kind == decided || b.kind == decided)
        made = a.kind == decided && (b.kind != decided || !a.inexact) ? pushdown_copy(&a) : pushdown_copy(&b);
    else if (a.kind == neutral || b.kind == neutral) {
        made = a.kind == neutral ? pushdown_copy(&b) : pushdown_copy(&a);
        made.inexact = a.inexact || b.inexact;
    } else if (strlen(a.text) + strlen(b.text) > TEXT_MAX)
        made = perhaps;
    else {
        made = text_part("(%s) %s (%s)", a.text, word, b.text);
        made.inexact = a.inexact || b.inexact;
    }
    free_part(&a);
    free_part(&b);
    return made;
}

/* ---- one test ---- */

/* Returns the kernel's name of a field, or NULL if the kernel cannot test it. */
static const char *kernel_field(const kernel_event *event, nl_string name, const event_field **field)
{
    *field = kernel_event_field(event, name);
    if (*field != NULL)
        return (*field)->element || (*field)->kind == FIELD_FUNCTION ? NULL : (*field)->kernel_name;
    if (name.size == 3 && memcmp(name.data, "TID", 3) == 0)
        return "common_pid";
    if (name.size == 3 && memcmp(name.data, "CPU", 3) == 0)
        return "CPU";
    return NULL;
}

static bool is_own(nl_string name)
{
    return name.size == 3 &&
           (memcmp(name.data, "PID", 3) == 0 || memcmp(name.data, "TID", 3) == 0 || memcmp(name.data, "CPU", 3) == 0);
}

/* Returns whether a field of that kind can hold the number. The kernel rejects others, or wraps them around. */
static bool fits(field_kind kind, const nl_number *number)
{
    static const unsigned bits[] = {[FIELD_INT8] = 7,  [FIELD_INT16] = 15,  [FIELD_INT32] = 31,  [FIELD_INT64] = 63,
                                    [FIELD_UINT8] = 8, [FIELD_UINT16] = 16, [FIELD_UINT32] = 32, [FIELD_UINT64] = 64};
    if (number->kind == NL_NUMBER_LARGE)
        return kind == FIELD_UINT64;
    if (kind > FIELD_UINT64 || number->kind != NL_NUMBER_INTEGER)
        return false;
    int64_t top = bits[kind] < 63 ? (INT64_C(1) << bits[kind]) - 1 : INT64_MAX;
    return number->integer <= top && number->integer >= (kind <= FIELD_INT64 ? -top - 1 : 0);
}

static part number_part(const char *name, field_kind kind, nl_operator operator, const nl_operand * operand)
{
    static const char *const operators[] = {
        [NL_OPERATOR_EQUAL] = "==",      [NL_OPERATOR_NOT_EQUAL] = "!=", [NL_OPERATOR_LESS] = "<",
        [NL_OPERATOR_LESS_EQUAL] = "<=", [NL_OPERATOR_GREATER] = ">",    [NL_OPERATOR_GREATER_EQUAL] = ">="};
    if (!fits(kind, &operand->number))
        return perhaps;
    if (operand->number.kind == NL_NUMBER_LARGE)
        return text_part("%s %s %" PRIu64, name, operators[operator], operand->number.large);
    return text_part("%s %s %" PRId64, name, operators[operator], operand->number.integer);
}

/* Returns whether the kernel takes the text between quotes literally. */
static bool is_plain(nl_string text, bool pattern)
{
    if (text.size == 0 || text.size > 200)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        if (byte < 0x20 || byte == '"' || byte == '\'' || byte == '\\' || (pattern && (byte == '[' || byte == ']')))
            return false;
    }
    return !pattern || text.data[0] != '!';
}

static part string_part(const char *name, nl_operator operator, const nl_operand * operand)
{
    bool pattern = operator== NL_OPERATOR_GLOB || operator== NL_OPERATOR_NOT_GLOB;
    bool equal = operator== NL_OPERATOR_EQUAL || operator== NL_OPERATOR_NOT_EQUAL;
    if ((!pattern && !equal) || operand->number.kind != NL_NUMBER_NONE || !is_plain(operand->text, pattern))
        return perhaps;
    bool negated = operator== NL_OPERATOR_NOT_GLOB || operator== NL_OPERATOR_NOT_EQUAL;
    return text_part("%s%s %s \"%.*s\"%s", negated ? "!(" : "", name, pattern ? "~" : "==", (int)operand->text.size,
                     operand->text.data, negated ? ")" : "");
}

static part compare_part(const char *name, field_kind kind, nl_operator operator, const nl_operand * operand)
{
    if (kind == FIELD_TEXT || kind == FIELD_DYNAMIC_TEXT)
        return string_part(name, operator, operand);
    return operator<= NL_OPERATOR_GREATER_EQUAL ? number_part(name, kind, operator, operand) : perhaps;
}

static part set_part(const char *name, field_kind kind, const nl_filter *filter, const nl_filter_test *test)
{
    bool in = test->operator== NL_OPERATOR_IN;
    part made = in ? never : always;
    for (uint32_t i = 0; i < test->operand_count; i++)
        made = pushdown_join(made, in ? "||" : "&&",
                             compare_part(name, kind, in ? NL_OPERATOR_EQUAL : NL_OPERATOR_NOT_EQUAL,
                                          &filter->operands[test->first_operand + i]));
    return made;
}

/* Evaluates a test of a member that is the same in all records of this event. */
static part constant_part(const kernel_event *event, const nl_filter *filter, const nl_filter_test *test,
                          nl_string host)
{
    nl_filter_test one = *test;
    one.next[0] = NL_FILTER_NO;
    one.next[1] = NL_FILTER_YES;
    nl_filter alone = *filter;
    alone.tests = &one;
    alone.test_count = 1;
    nl_record *record = nl_record_new();
    record->level = NL_SYSTEM;
    record->host = host;
    record->event = (nl_string){event->name, strlen(event->name)};
    part made = nl_filter_matches(&alone, record) ? always : never;
    nl_record_free(record);
    return made;
}

static part test_part(const kernel_event *event, const nl_filter *filter, const nl_filter_test *test, nl_string host)
{
    if (test->member == NL_MEMBER_EVENT || test->member == NL_MEMBER_HOST || test->member == NL_MEMBER_LEVEL)
        return constant_part(event, filter, test, host);
    if (test->operator== NL_OPERATOR_HAS)
        return test->member != NL_MEMBER_NONE || is_own(test->name) || kernel_event_field(event, test->name) != NULL
                   ? always
                   : never;
    if (test->member == NL_MEMBER_TIME)
        return perhaps;
    const event_field *field = NULL;
    const char *name = test->member == NL_MEMBER_PROG ? "COMM" : kernel_field(event, test->name, &field);
    if (name == NULL)
        return field != NULL || is_own(test->name) ? perhaps : never;
    field_kind kind = field != NULL ? field->kind : test->member == NL_MEMBER_PROG ? FIELD_TEXT : FIELD_INT32;
    if (test->operator== NL_OPERATOR_IN || test->operator== NL_OPERATOR_NOT_IN)
        return set_part(name, kind, filter, test);
    return compare_part(name, kind, test->operator, & filter->operands[test->first_operand]);
}

/* Returns the negation of a test. That of an inexact test is unknown. */
static part negate(const part *p)
{
    if (p->inexact)
        return perhaps;
    if (p->kind == PART_TEXT)
        return text_part("!(%s)", p->text);
    return p->kind == PART_TRUE ? never : always;
}

/* ---- the filter ---- */

static part next_part(const part *known, uint16_t next)
{
    if (next == NL_FILTER_NO)
        return never;
    return next == NL_FILTER_YES ? always : pushdown_copy(&known[next]);
}

/* Returns whether two parts are equal, so that the test that leads to them does not matter. */
static bool pushdown_is_same(const part *a, const part *b)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): two of PART_TEXT have both a text */
    return a->kind == b->kind && a->inexact == b->inexact && (a->kind != PART_TEXT || strcmp(a->text, b->text) == 0);
}

/* Returns whether every test leads only to later tests. */
static bool tests_are_ordered(const nl_filter *filter)
{
    for (size_t i = 0; i < filter->test_count; i++)
        for (int way = 0; way < 2; way++)
            if (filter->tests[i].next[way] < NL_FILTER_NO && filter->tests[i].next[way] <= i)
                return false;
    return true;
}

/* Combines the tests from the last to the first: (t && part after true) || (!t && part after false). */
static part combine_tests(const kernel_event *event, const nl_filter *filter, nl_string host)
{
    part known[NL_FILTER_TESTS_MAX];
    if (filter->test_count == 0 || filter->test_count > NL_FILTER_TESTS_MAX || !tests_are_ordered(filter))
        return perhaps;
    for (size_t i = filter->test_count; i-- > 0;) {
        const nl_filter_test *test = &filter->tests[i];
        part t = test_part(event, filter, test, host);
        part yes = next_part(known, test->next[1]), no = next_part(known, test->next[0]);
        if (pushdown_is_same(&yes, &no)) {
            known[i] = yes;
            free_part(&no);
            free_part(&t);
            continue;
        }
        bool plain_or = yes.kind == PART_TRUE && !yes.inexact, plain_and = no.kind == PART_FALSE;
        part not_t = plain_or || plain_and ? always : negate(&t);
        known[i] = pushdown_join(pushdown_join(t, "&&", yes), "||", pushdown_join(not_t, "&&", no));
    }
    part made = pushdown_copy(&known[0]);
    for (size_t i = 0; i < filter->test_count; i++)
        free_part(&known[i]);
    return made;
}

bool pushdown(kernel_event *event, const nl_filter *filter, nl_string host)
{
    event->evaluate = false;
    event->kernel_filter = NULL;
    if (filter == NULL)
        return true;
    part made = combine_tests(event, filter, host);
    event->evaluate = made.inexact;
    event->kernel_filter = made.text;
    return made.kind != PART_FALSE;
}
