#include "config.h"

#include "convert/picture.h"

#include "requests/infer.h"
#include "program/program.h"

picture *picture_new(void)
{
    picture *p = g_new0(picture, 1);
    p->trace = trace_new();
    return p;
}

static void free_lifelines(gpointer l)
{
    lifelines_free(l);
}

void picture_free(picture *p)
{
    if (p->lifelines != NULL)
        g_ptr_array_free(p->lifelines, TRUE);
    if (p->drawing != NULL)
        drawing_free(p->drawing);
    trace_free(p->trace);
    g_free(p);
}

void picture_finish(picture *p, drawing *given)
{
    trace_sort(p->trace);
    p->drawing = given != NULL ? given : infer_drawing(p->trace);
    p->lifelines = g_ptr_array_new_with_free_func(free_lifelines);
    for (guint i = 0; i < p->drawing->lifelines->len; i++)
        g_ptr_array_add(p->lifelines, lifelines_build(p->trace, g_ptr_array_index(p->drawing->lifelines, i)));
}

void *picture_share(const char *drawing_path)
{
    picture_config *config = g_new0(picture_config, 1);
    if (drawing_path != NULL && (config->drawing = drawing_read(drawing_path)) == NULL) {
        program_print_error();
        g_free(config);
        return NULL;
    }
    return config;
}

void picture_unshare(void *shared)
{
    picture_config *config = shared;
    if (config->drawing != NULL)
        drawing_free(config->drawing);
    g_free(config);
}

drawing *picture_take(void *shared)
{
    picture_config *config = shared;
    drawing *given = config->drawing;
    config->drawing = NULL;
    return given;
}

char *picture_object_name(const picture *p, const lifelines *l, const lifeline_object *object)
{
    const trace_record *first = trace_get(p->trace, l->steps[object->first_step].record);
    GString *name = g_string_new(l->definition->name);
    for (char **id = l->definition->ids; *id != NULL; id++) {
        uint32_t value = lifelines_id_value(p->trace, first, *id);
        if (value != TRACE_NONE)
            g_string_append_printf(name, " %s", trace_string(p->trace, value));
    }
    return g_string_free(name, FALSE);
}
