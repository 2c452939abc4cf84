#include "config.h"

#include "base/text.h"
#include "program/json_document.h"

#include "program/encoding.h"
#include "record/terminal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

json_object *json_text(const char *text)
{
    if (text == NULL)
        return NULL;
    nl_buffer valid = {0};
    encoding_make_valid(&valid, nl_string_of(text));
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

/* Appends the escape (\uXXXX) of a valid UTF-8 character below U+10000. */
static void put_escape(nl_buffer *out, const char *character, size_t size)
{
    const unsigned char *at = (const unsigned char *)character;
    char escape[8];
    unsigned code = size == 1 ? at[0] : size == 2 ? at[0] & 0x1fU : at[0] & 0x0fU;
    for (size_t i = 1; i < size; i++)
        code = code << 6 | (at[i] & 0x3fU);
    nl_buffer_append(out, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", code & 0xffff));
}

static void free_text(json_object *document, void *text)
{
    (void)document;
    free(text);
}

/*
 * Escapes the characters that must not reach a terminal. json-c escapes only the control characters below the space.
 * Outside strings, a document has only ASCII characters.
 */
const char *json_document_text(json_object *document, bool indented)
{
    const char *at = json_object_to_json_string_ext(document, JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE |
                                                                  (indented ? JSON_C_TO_STRING_PRETTY : 0));
    const char *end = at + strlen(at);
    nl_buffer text = {0};
    for (size_t size; at < end; at += size) {
        bool controls;
        size = nl_terminal_character(at, end, &controls);
        if (controls && (unsigned char)*at >= 0x7f)
            put_escape(&text, at, size);
        else
            nl_buffer_append(&text, at, size);
    }
    nl_buffer_append(&text, "", 1);
    json_object_set_userdata(document, text.data, free_text);
    return text.data;
}

bool json_document_write(json_object *document, FILE *file)
{
    bool ok = fprintf(file, "%s\n", json_document_text(document, true)) >= 0;
    json_object_put(document);
    return ok;
}
