#include "config.h"

#include "request_line.h"

#include <stdio.h>
#include <string.h>

enum { NAME_MAX = 40 };

static bool knows(const request_verb *v, const char *name, size_t size)
{
    char padded[NAME_MAX];
    return snprintf(padded, sizeof padded, " %.*s ", (int)size, name) < (int)sizeof padded &&
           strstr(v->fields, padded) != NULL;
}

/* The first field that the verb does not know; NULL when it knows them all. The standard ones are PROG and no other. */
static const char *unknown_field(const request_verb *v, const nl_record *asked, char name[NAME_MAX])
{
    for (size_t i = 0; i < asked->field_count; i++) {
        nl_string field = asked->fields[i].name;
        snprintf(name, NAME_MAX, "%.*s", (int)field.size, field.data);
        if (!knows(v, field.data, field.size))
            return name;
    }
    if (asked->prog.data != NULL && !knows(v, "PROG", 4))
        return "PROG";
    return asked->host.data != NULL         ? "HOST"
           : asked->event.data != NULL      ? "NL.EVNT"
           : asked->level_text.data != NULL ? "LVL"
                                            : NULL;
}

static const request_verb *find_verb(const char *name, size_t size, const request_verb *verbs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(verbs[i].name) == size && memcmp(verbs[i].name, name, size) == 0)
            return &verbs[i];
    return NULL;
}

/* The fields are those of a record: what it has to have besides is given to it. */
static bool read_fields(const char *text, size_t size, nl_buffer *storage, nl_record *asked)
{
    static const char time[] = "DATE=19700101000000 ";
    nl_buffer_append(storage, time, sizeof time - 1);
    nl_buffer_append(storage, text, size);
    return nl_record_decode(asked, NL_FORMAT_ULM, NL_FRACTION_DECIMAL, storage->data, storage->size) == NL_OK;
}

const request_verb *request_line_read(const char *line, size_t size, const request_verb *verbs, size_t count,
                                      bool control, nl_buffer *storage, nl_record *asked,
                                      char reason[REQUEST_REASON_SIZE])
{
    while (size > 0 && (line[size - 1] == '\r' || line[size - 1] == ' '))
        size--;
    const char *blank = size > 0 ? memchr(line, ' ', size) : NULL;
    size_t verb_size = blank != NULL ? (size_t)(blank - line) : size;
    const request_verb *verb = find_verb(line, verb_size, verbs, count);
    const char *unknown;
    char name[NAME_MAX];
    if (verb == NULL)
        snprintf(reason, REQUEST_REASON_SIZE, "there is no verb \"%.*s\"",
                 verb_size < NAME_MAX ? (int)verb_size : NAME_MAX, line);
    else if (!read_fields(line + verb_size, size - verb_size, storage, asked))
        snprintf(reason, REQUEST_REASON_SIZE, "what follows the verb is not NAME=value");
    else if ((unknown = unknown_field(verb, asked, name)) != NULL)
        snprintf(reason, REQUEST_REASON_SIZE, "%s has no %s", verb->name, unknown);
    else if (verb->control && !control)
        snprintf(reason, REQUEST_REASON_SIZE, "that is answered over the control socket only");
    else
        return verb;
    return NULL;
}
