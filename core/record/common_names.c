#include "config.h"

#include "record/common_names.h"

#include <string.h>

enum { MESSAGE_MAX = 64 /* maximum size of a message that names an event, in bytes */ };

static bool is_named(const nl_field *field, const char *name)
{
    return field->name.size == strlen(name) && memcmp(field->name.data, name, field->name.size) == 0;
}

static bool names_event(nl_string message)
{
    for (size_t i = 0; i < message.size; i++)
        if (message.data[i] >= '0' && message.data[i] <= '9')
            return false;
    return message.size <= MESSAGE_MAX;
}

/* Sets a member to the value of a field with one of the names, if the member is empty. */
static void use_field(nl_string *member, const nl_field *field, const char *name, const char *other)
{
    if (member->size == 0 && (is_named(field, name) || is_named(field, other)))
        *member = field->string;
}

void nl_record_use_common_names(nl_record *record)
{
    if (record->event.size > 0)
        return;
    for (size_t i = 0; i < record->field_count; i++) {
        const nl_field *field = &record->fields[i];
        if (field->type != NL_TYPE_STRING || field->string.size == 0)
            continue;
        if (names_event(field->string))
            use_field(&record->event, field, "msg", "message");
        use_field(&record->prog, field, "service", "service.name");
        use_field(&record->host, field, "hostname", "host.name");
    }
}
