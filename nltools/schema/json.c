/* nlschema json: a schema for other programs. */
#include "config.h"

#include "schema.h"

#include "requests/json.h"

static void append_member(GString *out, const char *name, const char *value)
{
    g_string_append_printf(out, "\"%s\": ", name);
    json_append_string(out, value);
    g_string_append(out, ", ");
}

static void append_field(const schema_field *f, GString *out)
{
    g_string_append_c(out, '{');
    append_member(out, "name", f->name);
    append_member(out, "type", schema_type_name(f->type));
    append_member(out, "unit", f->unit);
    append_member(out, "description", f->description);
    g_string_append_printf(out, "\"optional\": %s", f->optional ? "true" : "false");
    for (guint i = 0; i < f->values->len; i++) {
        g_string_append(out, i == 0 ? ", \"values\": [" : ", ");
        json_append_string(out, g_ptr_array_index(f->values, i));
    }
    g_string_append(out, f->values->len > 0 ? "]}" : "}");
}

static void append_event(const schema_event *e, GString *out)
{
    g_string_append(out, "    {");
    append_member(out, "name", e->name);
    append_member(out, "level", nl_level_name(e->level));
    append_member(out, "description", e->description);
    append_member(out, "function", e->function);
    g_string_append(out, "\"fields\": [");
    for (guint i = 0; i < e->fields->len; i++) {
        g_string_append(out, i == 0 ? "\n      " : ",\n      ");
        append_field(g_ptr_array_index(e->fields, i), out);
    }
    g_string_append(out, "]}");
}

void schema_json(const schema *s, GString *out)
{
    g_string_append(out, "{\n  ");
    append_member(out, "name", s->name);
    append_member(out, "prefix", s->prefix);
    append_member(out, "description", s->description);
    g_string_truncate(out, out->len - 1); /* the blank at the line's end */
    g_string_append(out, "\n  \"events\": [\n");
    for (guint i = 0; i < s->events->len; i++) {
        append_event(g_ptr_array_index(s->events, i), out);
        g_string_append(out, i + 1 < s->events->len ? ",\n" : "\n");
    }
    g_string_append(out, "  ]\n}\n");
}
