/* nlschema json: prints a schema for other programs. */
#include "config.h"

#include "schema.h"

#include "program/json_document.h"

static json_object *field_object(const schema_field *f)
{
    json_object *object = json_object_new_object();
    json_add_text(object, "name", f->name);
    json_add_text(object, "type", schema_type_name(f->type));
    json_add_text(object, "unit", f->unit);
    json_add_text(object, "description", f->description);
    json_add_bool(object, "optional", f->optional);
    json_object *values = json_object_new_array();
    for (guint i = 0; i < f->values->len; i++)
        json_object_array_add(values, json_text(g_ptr_array_index(f->values, i)));
    if (f->type == SCHEMA_ENUM)
        json_object_object_add(object, "values", values);
    else
        json_object_put(values);
    return object;
}

static json_object *event_object(const schema_event *e)
{
    json_object *object = json_object_new_object(), *fields = json_object_new_array();
    json_add_text(object, "name", e->name);
    json_add_text(object, "level", nl_level_name(e->level));
    json_add_text(object, "description", e->description);
    json_add_text(object, "function", e->function);
    for (guint i = 0; i < e->fields->len; i++)
        json_object_array_add(fields, field_object(g_ptr_array_index(e->fields, i)));
    json_object_object_add(object, "fields", fields);
    return object;
}

json_object *schema_json(const schema *s)
{
    json_object *object = json_object_new_object(), *events = json_object_new_array();
    json_add_text(object, "name", s->name);
    json_add_text(object, "prefix", s->prefix);
    json_add_text(object, "description", s->description);
    for (guint i = 0; i < s->events->len; i++)
        json_object_array_add(events, event_object(g_ptr_array_index(s->events, i)));
    json_object_object_add(object, "events", events);
    return object;
}
