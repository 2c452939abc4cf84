/*
 * The first line of the input is a filter, and the other lines are records. The filter's canonical form has the same
 * result; a double negation gives the filter's result, and a triple negation the opposite.
 */
#include "fuzz.h"

#include "base/error.h"
#include "filter/filter.h"

/* Returns the expression with a prefix and a suffix; NULL if it exceeds the limits. */
static nl_filter *compile_within(const char *before, const char *text, const char *behind)
{
    nl_buffer whole = {0};
    nl_buffer_append(&whole, before, strlen(before));
    nl_buffer_append(&whole, text, strlen(text));
    nl_buffer_append(&whole, behind, strlen(behind) + 1);
    nl_filter *filter = nl_filter_parse(whole.data);
    nl_buffer_free(&whole);
    return filter;
}

typedef struct forms {
    nl_filter *plain, *again, *negated, *both, *either;
} forms;

static void check_record(const forms *f, const nl_record *record)
{
    bool matches = nl_filter_matches(f->plain, record);
    fuzz_expect(nl_filter_matches(f->again, record) == matches, "the canonical form means the same");
    if (f->negated != NULL)
        fuzz_expect(nl_filter_matches(f->negated, record) != matches, "a negation is true where the filter is not");
    if (f->both != NULL)
        fuzz_expect(nl_filter_matches(f->both, record) == matches, "has DATE and a filter is the filter");
    if (f->either != NULL)
        fuzz_expect(nl_filter_matches(f->either, record), "a filter or has DATE is always true");
}

static void check_records(const forms *f, const char *at, const char *end)
{
    nl_record *record = nl_record_new();
    check_record(f, record);
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *line_end = newline != NULL ? newline : end;
        nl_record_clear(record);
        if (nl_record_decode(record, NL_FORMAT_ULM, NL_FRACTION_DECIMAL, at, (size_t)(line_end - at)) == NL_OK)
            check_record(f, record);
        at = line_end + 1;
    }
    nl_record_free(record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *newline = size > 0 ? memchr(data, '\n', size) : NULL;
    size_t line = newline != NULL ? (size_t)(newline - data) : size;
    char *text = fuzz_copy(data, line);
    text = realloc(text, line + 1);
    fuzz_expect(text != NULL, "there is memory");
    text[line] = '\0';
    nl_error_clear();
    forms f = {.plain = nl_filter_parse(text)};
    if (f.plain == NULL) {
        /* The error of a limit of the whole expression contains no position. */
        fuzz_expect(strstr(nl_error_message(), "column ") != NULL || nl_error_get_code() == NL_ERROR_LIMIT,
                    "what is wrong has a place");
        free(text);
        return 0;
    }
    const char *canonical = nl_filter_text(f.plain);
    f.again = nl_filter_parse(canonical);
    fuzz_expect(f.again != NULL, "the canonical form is an expression");
    fuzz_expect(strcmp(nl_filter_text(f.again), canonical) == 0, "the canonical form is its own");
    f.negated = compile_within("!(", text, ")");
    f.both = compile_within("has DATE && not not(", text, ")");
    f.either = compile_within("", text, " || has DATE");
    free(text);
    if (newline != NULL) {
        char *records = fuzz_copy(newline + 1, size - line - 1);
        check_records(&f, records, records + (size - line - 1));
        free(records);
    }
    nl_filter_free(f.plain);
    nl_filter_free(f.again);
    nl_filter_free(f.negated);
    nl_filter_free(f.both);
    nl_filter_free(f.either);
    return 0;
}
