#include "config.h"

#include "program/json_document.h"

#include "program/encoding.h"

#include <math.h>
#include <string.h>

json_object *json_text(const char *text)
{
    if (text == NULL)
        return NULL;
    nl_buffer valid = {0};
    encoding_make_valid(&valid, (nl_string){text, strlen(text)});
    json_object *string = json_object_new_string_len(valid.data != NULL ? valid.data : "", (int)valid.size);
    nl_buffer_free(&valid);
    return string;
}

void json_add_text(json_object *object, const char *name, const char *text)
{
    json_object_object_add(object, name, json_text(text));
}

void json_add_int(json_object *object, const char *name, int64_t value)
{
    json_object_object_add(object, name, json_object_new_int64(value));
}

void json_add_double(json_object *object, const char *name, double value)
{
    json_object_object_add(object, name, isfinite(value) ? json_object_new_double(value) : NULL);
}

void json_add_bool(json_object *object, const char *name, bool value)
{
    json_object_object_add(object, name, json_object_new_boolean(value));
}

const char *json_document_text(json_object *document)
{
    return json_object_to_json_string_ext(document, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
                                                        JSON_C_TO_STRING_NOSLASHESCAPE);
}

bool json_document_write(json_object *document, FILE *file)
{
    bool ok = fprintf(file, "%s\n", json_document_text(document)) >= 0;
    json_object_put(document);
    return ok;
}
