#include "config.h"

#include "request_line.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

enum { FIELD_NAME_SIZE = 40 };

static bool accepts(const request_verb *v, const char *name, size_t size)
{
    char padded[FIELD_NAME_SIZE];
    return snprintf(padded, sizeof padded, " %.*s ", (int)size, name) < (int)sizeof padded &&
           strstr(v->fields, padded) != NULL;
}

/* Returns NL_FAILED if the verb does not accept a field. PROG is the only standard field that verbs may accept. */
static nl_status check_fields(const request_verb *v, const nl_record *asked)
{
    const struct {
        const char *name;
        bool present;
    } standard[] = {{"PROG", asked->prog.data != NULL && !accepts(v, "PROG", 4)},
                    {"HOST", asked->host.data != NULL},
                    {"NL.EVNT", asked->event.data != NULL},
                    {"LVL", asked->level_text.data != NULL}};
    for (size_t i = 0; i < asked->field_count; i++) {
        nl_string field = asked->fields[i].name;
        if (!accepts(v, field.data, field.size))
            return nl_error_set(NL_ERROR_INVALID, "the %s request does not accept the field %.*s", v->name,
                                field.size < FIELD_NAME_SIZE ? (int)field.size : FIELD_NAME_SIZE, field.data);
    }
    for (size_t i = 0; i < sizeof standard / sizeof standard[0]; i++)
        if (standard[i].present)
            return nl_error_set(NL_ERROR_INVALID, "the %s request does not accept the field %s", v->name,
                                standard[i].name);
    return NL_OK;
}

static const request_verb *find_verb(const char *name, size_t size, const request_verb *verbs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(verbs[i].name) == size && memcmp(verbs[i].name, name, size) == 0)
            return &verbs[i];
    return nl_error_null(NL_ERROR_INVALID, "unknown verb \"%.*s\"",
                         size < FIELD_NAME_SIZE ? (int)size : FIELD_NAME_SIZE, name);
}

/* Parses the fields as a ULM record. Adds the field DATE, which ULM requires. */
static nl_status read_fields(const char *text, size_t size, nl_buffer *storage, nl_record *asked)
{
    static const char date[] = "DATE=19700101000000 ";
    nl_buffer_append(storage, date, sizeof date - 1);
    nl_buffer_append(storage, text, size);
    if (nl_record_decode(asked, NL_FORMAT_ULM, NL_FRACTION_DECIMAL, storage->data, storage->size) == NL_OK)
        return NL_OK;
    return nl_error_set(NL_ERROR_INVALID, "the text after the verb must be NAME=value ...");
}

const request_verb *request_line_read(const char *line, size_t size, const request_verb *verbs, size_t count,
                                      bool control, nl_buffer *storage, nl_record *asked)
{
    while (size > 0 && (line[size - 1] == '\r' || line[size - 1] == ' '))
        size--;
    const char *blank = size > 0 ? memchr(line, ' ', size) : NULL;
    size_t verb_size = blank != NULL ? (size_t)(blank - line) : size;
    const request_verb *verb = find_verb(line, verb_size, verbs, count);
    if (verb == NULL || read_fields(line + verb_size, size - verb_size, storage, asked) != NL_OK ||
        check_fields(verb, asked) != NL_OK)
        return NULL;
    if (verb->control && !control)
        return nl_error_null(NL_ERROR_PERMISSION, "netlogd accepts %s only over the control socket", verb->name);
    return verb;
}
