/*
 * A format of nl_write with int arguments. If the format is read as a row of fields, its record can be written and read
 * again.
 *
 * A format comes from the program, not from strangers, so the library need not survive a %s without its string. The
 * target therefore uses only conversions that need an int and conversions that the library rejects.
 */
#include "text_round_trip.h"

#include "log/format_arguments.h"

enum { ARGUMENT_COUNT = 12, DIGITS_MAX = 4 };

/* Returns whether the conversion after a '%' needs only int arguments, or no argument. */
static bool takes_int(const char *at)
{
    at += strcspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ%");
    while (*at == 'h' || *at == 'I')
        at += 1 + strcspn(at + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ%");
    return *at == '\0' || strchr("spaAeEfFgGlLjzt", *at) == NULL;
}

/* Returns whether the target can use the format: few arguments, all int, and no width that would only fill memory. */
static bool is_harmless(const char *format)
{
    size_t arguments = 0;
    for (const char *at = format; *at != '\0'; at++) {
        arguments += *at == '%' || *at == '*';
        if (*at == '%' && !takes_int(at + 1))
            return false;
        if (strspn(at, "0123456789") > DIGITS_MAX)
            return false;
    }
    return arguments <= ARGUMENT_COUNT;
}

static void fuzz_format_arguments_add_field(nl_record *record, const nl_field *field)
{
    switch (field->type) {
    case NL_TYPE_STRING:
        nl_record_add_string(record, field->name.data, field->string.data, field->string.size);
        break;
    case NL_TYPE_INT:
        nl_record_add_int(record, field->name.data, field->int_value);
        break;
    case NL_TYPE_UINT:
        nl_record_add_uint(record, field->name.data, field->uint_value);
        break;
    default:
        fuzz_expect(false, "a format gives strings and integers only");
    }
}

static nl_status format_arguments_take(nl_record *record, const nl_plan *plan, ...)
{
    va_list arguments;
    nl_buffer scratch = {0};
    nl_field *fields = calloc(plan->field_count + 1, sizeof *fields);
    fuzz_expect(fields != NULL, "there is memory");
    va_start(arguments, plan);
    nl_status status = nl_plan_take(plan, fields, &scratch, 0, &arguments);
    va_end(arguments);
    for (size_t i = 0; i < plan->field_count && status == NL_OK; i++)
        fuzz_format_arguments_add_field(record, &fields[i]);
    free(fields);
    nl_buffer_free(&scratch);
    return status;
}

/* Reads the arguments twice with the same plan: the second call must not depend on the first. */
static nl_status add_fields(nl_record *record, const char *format)
{
    nl_plan plan;
    if (nl_plan_make(&plan, format) != NL_OK)
        return NL_FAILED;
    format_arguments_take(record, &plan, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
    nl_record_clear(record);
    nl_status status = format_arguments_take(record, &plan, 7, -3, 0, 61, 34, 10, -70000, 1, 32, 255, 5, 92);
    nl_plan_free(&plan);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *format = fuzz_copy(data, size);
    format = realloc(format, size + 1);
    fuzz_expect(format != NULL, "there is memory");
    format[size] = '\0';
    nl_record *record = nl_record_new();
    if (is_harmless(format)) {
        nl_error_clear();
        if (add_fields(record, format) == NL_OK) {
            fuzz_check_written(record, NL_FORMAT_ULM);
            fuzz_check_written(record, NL_FORMAT_BP);
        } else {
            fuzz_expect(*nl_error_message() != '\0', "there are words for what is no format");
        }
    }
    nl_record_free(record);
    free(format);
    return 0;
}
