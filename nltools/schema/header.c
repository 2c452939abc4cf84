/* nlschema header: writes an inline function for each event, so that the compiler checks the types of the fields. */
#include "config.h"

#include "schema.h"

#include <string.h>

enum { LINE_WIDTH = 120 };

static void schema_append_literal(GString *out, const char *text)
{
    g_string_append_c(out, '"');
    for (; *text != '\0'; text++)
        if (*text == '"' || *text == '\\' || *text == '?') /* escape ?, because ?? begins a trigraph */
            g_string_append_printf(out, "\\%c", *text);
        else if (g_ascii_isprint(*text))
            g_string_append_c(out, *text);
        else
            g_string_append_printf(out, "\\%03o", (unsigned)(unsigned char)*text);
    g_string_append_c(out, '"');
}

/* Appends text inside a comment. Breaks up comment delimiters and trigraphs. */
static void append_comment(GString *out, const char *text)
{
    char *plain = schema_plain(text);
    for (const char *at = plain; *at != '\0'; at++) {
        bool is_special = at > plain && ((at[-1] == '*' && *at == '/') || (at[-1] == '/' && *at == '*') ||
                                         (at[-1] == '?' && *at == '?'));
        if (is_special)
            g_string_append_c(out, ' ');
        g_string_append_c(out, *at);
    }
    g_free(plain);
}

/* Appends an item of an argument list. Begins a new line, indented by `indent` spaces, if the line is full. */
static void append_item(GString *out, const char *item, size_t indent, bool last)
{
    const char *line = strrchr(out->str, '\n');
    size_t used = out->len - (line != NULL ? (size_t)(line + 1 - out->str) : 0);
    if (used + strlen(item) + 3 > LINE_WIDTH)
        g_string_append_printf(out, "\n%*s", (int)indent, "");
    else if (out->str[out->len - 1] == ',')
        g_string_append_c(out, ' ');
    g_string_append_printf(out, "%s%s", item, last ? "" : ",");
}

static void append_enum(const schema_field *f, GString *out)
{
    g_string_append_printf(out, "typedef enum %s {\n", f->c_type);
    for (guint i = 0; i < f->constants->len; i++)
        g_string_append_printf(out, "    %s,\n", (char *)g_ptr_array_index(f->constants, i));
    g_string_append_printf(out, "} %s;\n\nstatic inline const char *%s_name(%s value)\n{\n    switch (value) {\n",
                           f->c_type, f->c_type, f->c_type);
    for (guint i = 0; i < f->constants->len; i++) {
        g_string_append_printf(out, "    case %s:\n        return ", (char *)g_ptr_array_index(f->constants, i));
        schema_append_literal(out, g_ptr_array_index(f->values, i));
        g_string_append(out, ";\n");
    }
    g_string_append(out, "    }\n    static __thread char number[16]; /* text for any other value */\n"
                         "    const int plain = value;\n    snprintf(number, sizeof number, \"%d\", plain);\n"
                         "    return number;\n}\n\n");
}

static void append_description(const schema_event *e, GString *out)
{
    g_string_append_printf(out, "/*\n * %s, %s", e->name, nl_level_name(e->level));
    if (*e->description != '\0')
        g_string_append(out, ": ");
    append_comment(out, e->description);
    g_string_append_c(out, '\n');
    for (guint i = 0; i < e->fields->len; i++) {
        const schema_field *f = g_ptr_array_index(e->fields, i);
        g_string_append_printf(out, " *   %s%s%s", f->name, f->optional ? " (optional)" : "",
                               *f->unit != '\0' || *f->description != '\0' ? ": " : "");
        append_comment(out, f->description);
        if (*f->unit != '\0') {
            g_string_append(out, *f->description != '\0' ? " [" : "[");
            append_comment(out, f->unit);
            g_string_append_c(out, ']');
        }
        g_string_append_c(out, '\n');
    }
    g_string_append(out, " */\n");
}

static void append_function(const schema_event *e, bool with_optional, GString *out)
{
    GPtrArray *fields = g_ptr_array_new();
    for (guint i = 0; i < e->fields->len; i++) {
        schema_field *f = g_ptr_array_index(e->fields, i);
        if (with_optional || !f->optional)
            g_ptr_array_add(fields, f);
    }
    size_t start = out->len;
    g_string_append_printf(out, "static inline void %s%s(", e->function, with_optional ? "" : "_required");
    size_t indent = out->len - start;
    append_item(out, "nl_log *log", indent, fields->len == 0);
    for (guint i = 0; i < fields->len; i++) {
        const schema_field *f = g_ptr_array_index(fields, i);
        bool pointer = g_str_has_suffix(f->c_type, "*");
        char *item = g_strconcat(f->c_type, pointer ? "" : " ", f->parameter, NULL);
        append_item(out, item, indent, i + 1 == fields->len);
        g_free(item);
    }
    char *level = g_ascii_strup(nl_level_name(e->level), -1);
    g_string_append_printf(out, ")\n{\n    NL_EVENT(log, NL_%s, \"%s\"%s", level, e->name, fields->len > 0 ? "," : "");
    g_free(level);
    for (guint i = 0; i < fields->len; i++) {
        const schema_field *f = g_ptr_array_index(fields, i);
        char *value =
            f->type == SCHEMA_ENUM ? g_strdup_printf("%s_name(%s)", f->c_type, f->parameter) : g_strdup(f->parameter);
        char *item = g_strdup_printf("\"%s\", %s", f->name, value);
        append_item(out, item, strlen("    NL_EVENT("), i + 1 == fields->len);
        g_free(item);
        g_free(value);
    }
    g_string_append(out, ");\n}\n\n");
    g_ptr_array_unref(fields);
}

static void append_event(const schema_event *e, GString *out)
{
    for (guint i = 0; i < e->fields->len; i++) {
        const schema_field *f = g_ptr_array_index(e->fields, i);
        if (f->type == SCHEMA_ENUM)
            append_enum(f, out);
    }
    append_description(e, out);
    append_function(e, true, out);
    if (e->has_optional) {
        g_string_append_printf(out, "/* %s without its optional fields. */\n", e->name);
        append_function(e, false, out);
    }
}

void schema_header(const schema *s, GString *out)
{
    char *guard = g_ascii_strup(s->prefix, -1);
    g_strdelimit(guard, ".-", '_');
    g_string_append_printf(out, "/*\n * The events of %s", s->name);
    if (*s->description != '\0')
        g_string_append(out, ": ");
    append_comment(out, s->description);
    g_string_append_printf(
        out,
        "\n *\n * Generated by nlschema; edit the schema, not this file. With log NULL, the functions "
        "do nothing.\n */\n#ifndef %s_SCHEMA_H\n#define %s_SCHEMA_H\n\n#include <netlogger.h>\n#include <stdio.h>\n\n"
        "#ifndef NL_EVENT\n#error \"this netlogger.h is too old: it has no NL_EVENT\"\n#endif\n\n",
        guard, guard);
    for (guint i = 0; i < s->events->len; i++)
        append_event(g_ptr_array_index(s->events, i), out);
    g_string_append(out, "#endif\n");
    g_free(guard);
}
