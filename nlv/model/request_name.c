#include "config.h"

#include "model/request_name.h"

#include "requests/printable.h"

typedef struct naming {
    GString *name;
    char **ids;
} naming;

static void find_name(void *user, const nl_record *record)
{
    naming *n = user;
    char scratch[NL_FIELD_TEXT_SIZE];
    double number;
    for (size_t i = 0; n->ids[0] == NULL && i < record->field_count; i++) {
        const nl_string value = nl_field_text(&record->fields[i], scratch);
        if (value.size > 1 && !nl_field_double(&record->fields[i], &number))
            g_string_append_printf(n->name, "%s%.*s", n->name->len > 0 ? " " : "", (int)value.size, value.data);
    }
    for (char **id = n->ids; *id != NULL; id++) {
        nl_field field;
        if (!drawing_find_id(record, *id, &field))
            continue;
        nl_string value = nl_field_text(&field, scratch);
        if (n->ids[1] != NULL)
            g_string_append_printf(n->name, "%s%s=", n->name->len > 0 ? " " : "", *id);
        g_string_append_len(n->name, value.data, (gssize)value.size);
    }
}

char *request_name_at(const model *m, size_t lifeline, uint64_t place)
{
    naming n = {g_string_new(NULL), model_lifeline(m, lifeline)->ids};
    model_record_at(m, place, find_name, &n);
    char *valid = printable(n.name->str);
    g_string_free(n.name, TRUE);
    return valid;
}
