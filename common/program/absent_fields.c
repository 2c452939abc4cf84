#include "config.h"

#include "program/absent_fields.h"

#include "base/memory.h"
#include "filter/filter.h"
#include "program/program.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct absent_fields {
    char **names;
    size_t count;
};

absent_fields *absent_fields_new(void)
{
    return nl_memory_check(calloc(1, sizeof(absent_fields)));
}

void absent_fields_free(absent_fields *a)
{
    if (a == NULL)
        return;
    for (size_t i = 0; i < a->count; i++)
        free(a->names[i]);
    free(a->names);
    free(a);
}

static bool has_same_name(const char *name, nl_string other)
{
    return strlen(name) == other.size && memcmp(name, other.data, other.size) == 0;
}

static bool has_name(const absent_fields *a, nl_string name)
{
    for (size_t i = 0; i < a->count; i++)
        if (has_same_name(a->names[i], name))
            return true;
    return false;
}

void absent_fields_add_name(absent_fields *a, nl_string name)
{
    if (name.size == 0 || has_name(a, name))
        return;
    a->names = nl_memory_check(realloc(a->names, (a->count + 1) * sizeof *a->names));
    a->names[a->count++] = nl_memory_check(strndup(name.data, name.size));
}

void absent_fields_add(absent_fields *a, const nl_filter *filter)
{
    const size_t tests = nl_filter_count_tests(filter);
    for (size_t i = 0; i < tests; i++)
        absent_fields_add_name(a, nl_filter_test_field(filter, i));
}

static bool record_has_field(const nl_record *record, const char *name)
{
    for (size_t i = 0; i < record->field_count; i++)
        if (has_same_name(name, record->fields[i].name))
            return true;
    return false;
}

void absent_fields_look(absent_fields *a, const nl_record *record)
{
    size_t kept = 0;
    for (size_t i = 0; i < a->count; i++)
        if (record_has_field(record, a->names[i]))
            free(a->names[i]);
        else
            a->names[kept++] = a->names[i];
    a->count = kept;
}

char *absent_fields_describe(const absent_fields *a)
{
    if (a == NULL || a->count == 0)
        return program_copy("");
    bool names_request = false;
    char *text = program_copy(a->count == 1 ? "; no record has the field " : "; no record has the fields ");
    for (size_t i = 0; i < a->count; i++) {
        char *longer = program_format("%s%s%s", text, i == 0 ? "" : i + 1 < a->count ? ", " : " or ", a->names[i]);
        free(text);
        text = longer;
        names_request = names_request || strncasecmp(a->names[i], "request.", strlen("request.")) == 0;
    }
    if (names_request) {
        char *longer = program_format("%s; the only value of a request is request.duration", text);
        free(text);
        text = longer;
    }
    return text;
}
