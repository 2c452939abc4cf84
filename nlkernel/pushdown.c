#include "config.h"

#include "pushdown.h"

#include "base/text.h"
#include "filter/filter_internal.h"
#include "program/program.h"

#include <glib.h>
#include <inttypes.h>
#include <string.h>

/* Maximum length of a translated filter in bytes. The kernel rejects filters of a page (4096 bytes) or more. */
enum { TEXT_MAX = 3000 };

/* A part of the filter, translated for an event: a known result, or a text for the kernel to evaluate. */
typedef struct part {
    enum { PART_FALSE, PART_TRUE, PART_TEXT } kind;
    bool inexact;     /* the part is also true for some records that the filter does not match */
    const char *text; /* if kind is PART_TEXT, the text, which `texts` owns */
} part;

static const part never = {PART_FALSE, false, NULL}, always = {PART_TRUE, false, NULL},
                  perhaps = {PART_TRUE, true, NULL};

/* The translation of a filter for an event. */
typedef struct translation {
    const kernel_event *event;
    const nl_filter *filter;
    nl_string host;
    GStringChunk *texts;
} translation;

NL_PRINTF(2, 3) static part text_part(const translation *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    part made = {.kind = PART_TEXT, .text = g_string_chunk_insert(t->texts, text)};
    g_free(text);
    return made;
}

/* Returns a && b, or a || b. If the text becomes longer than TEXT_MAX, returns the inexact part `perhaps`. */
static part join_parts(const translation *t, part a, const char *word, part b)
{
    bool both = strcmp(word, "&&") == 0;
    unsigned decided = both ? PART_FALSE : PART_TRUE, neutral = both ? PART_TRUE : PART_FALSE;
    if (a.kind == decided || b.kind == decided)
        return a.kind == decided && (b.kind != decided || !a.inexact) ? a : b;
    part made = perhaps;
    if (a.kind == neutral || b.kind == neutral)
        made = a.kind == neutral ? b : a;
    else if (strlen(a.text) + strlen(b.text) <= TEXT_MAX)
        made = text_part(t, "(%s) %s (%s)", a.text, word, b.text);
    made.inexact = a.inexact || b.inexact || made.inexact;
    return made;
}

/* ---- tests ---- */

/* Returns the kernel's name of a field, or NULL if the kernel cannot test the field. Sets *field to the event's field,
 * or to NULL for a common field. */
static const char *kernel_field(const kernel_event *event, nl_string name, const event_field **field)
{
    *field = kernel_event_field(event, name);
    if (*field != NULL)
        return (*field)->element || (*field)->kind == FIELD_FUNCTION ? NULL : (*field)->kernel_name;
    if (nl_string_is(name, "TID"))
        return "common_pid";
    if (nl_string_is(name, "CPU"))
        return "CPU";
    return NULL;
}

static bool is_own(nl_string name)
{
    return name.size == 3 &&
           (memcmp(name.data, "PID", 3) == 0 || memcmp(name.data, "TID", 3) == 0 || memcmp(name.data, "CPU", 3) == 0);
}

/* Returns whether a field of this kind can hold the number. The kernel rejects or changes other numbers. */
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

static part number_part(const translation *t, const char *name, field_kind kind, nl_operator operator,
                        const nl_operand * operand)
{
    static const char *const operators[] = {
        [NL_OPERATOR_EQUAL] = "==",      [NL_OPERATOR_NOT_EQUAL] = "!=", [NL_OPERATOR_LESS] = "<",
        [NL_OPERATOR_LESS_EQUAL] = "<=", [NL_OPERATOR_GREATER] = ">",    [NL_OPERATOR_GREATER_EQUAL] = ">="};
    if (!fits(kind, &operand->number))
        return perhaps;
    if (operand->number.kind == NL_NUMBER_LARGE)
        return text_part(t, "%s %s %" PRIu64, name, operators[operator], operand->number.large);
    return text_part(t, "%s %s %" PRId64, name, operators[operator], operand->number.integer);
}

/*
 * Returns whether the text in quotes has the same meaning for the kernel as for nlkernel. In a pattern, only * and ?
 * may have a special meaning.
 */
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

static part string_part(const translation *t, const char *name, nl_operator operator, const nl_operand * operand)
{
    bool pattern = operator== NL_OPERATOR_GLOB || operator== NL_OPERATOR_NOT_GLOB;
    bool equal = operator== NL_OPERATOR_EQUAL || operator== NL_OPERATOR_NOT_EQUAL;
    if ((!pattern && !equal) || operand->number.kind != NL_NUMBER_NONE || !is_plain(operand->text, pattern))
        return perhaps;
    bool negated = operator== NL_OPERATOR_NOT_GLOB || operator== NL_OPERATOR_NOT_EQUAL;
    return text_part(t, "%s%s %s \"%.*s\"%s", negated ? "!(" : "", name, pattern ? "~" : "==", (int)operand->text.size,
                     operand->text.data, negated ? ")" : "");
}

static part compare_part(const translation *t, const char *name, field_kind kind, nl_operator operator,
                         const nl_operand * operand)
{
    if (kind == FIELD_TEXT || kind == FIELD_DYNAMIC_TEXT)
        return string_part(t, name, operator, operand);
    return operator<= NL_OPERATOR_GREATER_EQUAL ? number_part(t, name, kind, operator, operand) : perhaps;
}

static part set_part(const translation *t, const char *name, field_kind kind, const nl_filter_test *test)
{
    bool in = test->operator== NL_OPERATOR_IN;
    part made = in ? never : always;
    for (uint32_t i = 0; i < test->operand_count; i++)
        made = join_parts(t, made, in ? "||" : "&&",
                          compare_part(t, name, kind, in ? NL_OPERATOR_EQUAL : NL_OPERATOR_NOT_EQUAL,
                                       &t->filter->operands[test->first_operand + i]));
    return made;
}

/* Returns the result of a test of the level, the host or the event's name, which are the same in all records of this
 * event. */
static part constant_part(const translation *t, const nl_filter_test *test)
{
    nl_filter_test one = *test;
    one.next[0] = NL_FILTER_NO;
    one.next[1] = NL_FILTER_YES;
    nl_filter alone = *t->filter;
    alone.tests = &one;
    alone.test_count = 1;
    nl_record *record = nl_record_new();
    record->level = NL_SYSTEM;
    record->host = t->host;
    record->event = nl_string_of(t->event->name);
    part made = nl_filter_matches(&alone, record) ? always : never;
    nl_record_free(record);
    return made;
}

static part test_part(const translation *t, const nl_filter_test *test)
{
    if (test->member == NL_MEMBER_EVENT || test->member == NL_MEMBER_HOST || test->member == NL_MEMBER_LEVEL)
        return constant_part(t, test);
    if (test->operator== NL_OPERATOR_HAS)
        return test->member != NL_MEMBER_NONE || is_own(test->name) || kernel_event_field(t->event, test->name) != NULL
                   ? always
                   : never;
    if (test->member == NL_MEMBER_TIME)
        return perhaps;
    const event_field *field = NULL;
    const char *name = test->member == NL_MEMBER_PROG ? "COMM" : kernel_field(t->event, test->name, &field);
    if (name == NULL)
        return field != NULL || is_own(test->name) ? perhaps : never;
    field_kind kind = field != NULL ? field->kind : test->member == NL_MEMBER_PROG ? FIELD_TEXT : FIELD_INT32;
    if (test->operator== NL_OPERATOR_IN || test->operator== NL_OPERATOR_NOT_IN)
        return set_part(t, name, kind, test);
    return compare_part(t, name, kind, test->operator, & t->filter->operands[test->first_operand]);
}

/* Returns the negation of a part. If the part is inexact, its negation is unknown. */
static part negate(const translation *t, part p)
{
    if (p.inexact)
        return perhaps;
    if (p.kind == PART_TEXT)
        return text_part(t, "!(%s)", p.text);
    return p.kind == PART_TRUE ? never : always;
}

/* ---- the filter ---- */

static part next_part(const part *known, uint16_t next)
{
    return next == NL_FILTER_NO ? never : next == NL_FILTER_YES ? always : known[next];
}

static bool part_is_equal(part a, part b)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): both are texts */
    return a.kind == b.kind && a.inexact == b.inexact && (a.kind != PART_TEXT || strcmp(a.text, b.text) == 0);
}

/* Combines the tests from the last to the first, because the result of a test leads only to later tests. Each test t
 * becomes (t && part after true) || (!t && part after false). */
static part combine_tests(const translation *t)
{
    part known[NL_FILTER_TESTS_MAX];
    const nl_filter *filter = t->filter;
    if (filter->test_count == 0 || filter->test_count > NL_FILTER_TESTS_MAX)
        return perhaps;
    for (size_t i = filter->test_count; i-- > 0;) {
        const nl_filter_test *test = &filter->tests[i];
        part yes = next_part(known, test->next[1]), no = next_part(known, test->next[0]);
        known[i] = yes;
        if (part_is_equal(yes, no))
            continue; /* the test has no effect, because both results lead to the same part */
        part p = test_part(t, test);
        bool is_or = yes.kind == PART_TRUE && !yes.inexact, is_and = no.kind == PART_FALSE;
        part not_p = is_or || is_and ? always : negate(t, p);
        known[i] = join_parts(t, join_parts(t, p, "&&", yes), "||", join_parts(t, not_p, "&&", no));
    }
    return known[0];
}

bool pushdown(kernel_event *event, const nl_filter *filter, nl_string host)
{
    event->evaluate = false;
    event->kernel_filter = NULL;
    if (filter == NULL)
        return true;
    translation t = {event, filter, host, g_string_chunk_new(1024)};
    part made = combine_tests(&t);
    event->evaluate = made.inexact;
    event->kernel_filter = made.kind == PART_TEXT ? program_copy(made.text) : NULL;
    g_string_chunk_free(t.texts);
    return made.kind != PART_FALSE;
}
