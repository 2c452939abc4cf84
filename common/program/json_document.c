#include "config.h"

#include "program/json_document.h"

#include "program/encoding.h"

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

bool json_document_write(json_object *document, FILE *file)
{
    const int how = JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE;
    bool ok = fprintf(file, "%s\n", json_object_to_json_string_ext(document, how)) >= 0;
    json_object_put(document);
    return ok;
}
