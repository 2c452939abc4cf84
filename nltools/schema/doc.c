/* nlschema doc: documents a schema. */
#include "config.h"

#include "schema.h"

#include <string.h>

/* The columns of an event's table. */
enum { COLUMNS = 4 };
static const char *const headings[COLUMNS] = {"Field", "Type", "Unit", "Description"};

/* Returns a copy of a text with escapes for Markdown and for the cells of its tables. The caller frees it with
 * g_free. */
static char *markdown(const char *text)
{
    char *plain = schema_plain(text);
    GString *out = g_string_new(NULL);
    for (const char *at = plain; *at != '\0'; at++) {
        if (*at == '<' || *at == '>' || *at == '&') {
            g_string_append(out, *at == '<' ? "&lt;" : *at == '>' ? "&gt;" : "&amp;");
            continue;
        }
        if (strchr("\\`*_[]|#~", *at) != NULL)
            g_string_append_c(out, '\\');
        g_string_append_c(out, *at);
    }
    g_free(plain);
    return g_string_free(out, FALSE);
}

static char *html(const char *text)
{
    char *plain = schema_plain(text), *escaped = g_markup_escape_text(plain, -1);
    g_free(plain);
    return escaped;
}

/* A style of documentation, such as Markdown: functions and texts that depend on the style. */
typedef struct style {
    char *(*text)(const char *text);
    void (*begin)(const schema *s, GString *out);
    void (*event)(const schema_event *e, GString *out);
    void (*row)(const char *const cells[COLUMNS], const size_t widths[COLUMNS], bool head, GString *out);
    const char *table_begin, *table_end;
    const char *end;
} style;

static void markdown_begin(const schema *s, GString *out)
{
    char *name = markdown(s->name), *description = markdown(s->description);
    g_string_append_printf(out, "# %s\n", name);
    if (*description != '\0')
        g_string_append_printf(out, "\n%s\n", description);
    g_free(name);
    g_free(description);
}

static void markdown_event(const schema_event *e, GString *out)
{
    char *name = markdown(e->name), *description = markdown(e->description);
    g_string_append_printf(out, "\n## %s\n\nLevel %s%s%s\n", name, nl_level_name(e->level),
                           *description != '\0' ? ". " : "", description);
    g_free(name);
    g_free(description);
}

static void markdown_row(const char *const cells[COLUMNS], const size_t widths[COLUMNS], bool head, GString *out)
{
    (void)widths;
    for (size_t i = 0; i < COLUMNS; i++)
        g_string_append_printf(out, "| %s ", cells[i]);
    g_string_append(out, head ? "|\n|---|---|---|---|\n" : "|\n");
}

static void html_begin(const schema *s, GString *out)
{
    char *name = html(s->name), *description = html(s->description);
    g_string_append_printf(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>%s</title>\n<style>\n"
        "body { font-family: sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; }\n"
        "table { border-collapse: collapse; }\nth, td { text-align: left; padding: 0.2em 1em 0.2em 0; "
        "border-bottom: 1px solid #ccc; }\n</style>\n</head>\n<body>\n<h1>%s</h1>\n<p>%s</p>\n",
        name, name, description);
    g_free(name);
    g_free(description);
}

static void html_event(const schema_event *e, GString *out)
{
    char *description = html(e->description);
    g_string_append_printf(out, "<h2 id=\"%s\">%s</h2>\n<p>Level %s%s%s</p>\n", e->name, e->name,
                           nl_level_name(e->level), *description != '\0' ? ". " : "", description);
    g_free(description);
}

static void html_row(const char *const cells[COLUMNS], const size_t widths[COLUMNS], bool head, GString *out)
{
    (void)widths;
    const char *tag = head ? "th" : "td";
    g_string_append(out, "<tr>");
    for (size_t i = 0; i < COLUMNS; i++)
        g_string_append_printf(out, "<%s>%s</%s>", tag, cells[i], tag);
    g_string_append(out, "</tr>\n");
}

static void text_begin(const schema *s, GString *out)
{
    char *description = schema_plain(s->description);
    g_string_append_printf(out, "%s%s%s\n", s->name, *description != '\0' ? ": " : "", description);
    g_free(description);
}

static void text_event(const schema_event *e, GString *out)
{
    char *description = schema_plain(e->description);
    g_string_append_printf(out, "\n%s (%s)%s%s\n", e->name, nl_level_name(e->level), *description != '\0' ? ": " : "",
                           description);
    g_free(description);
}

static void text_row(const char *const cells[COLUMNS], const size_t widths[COLUMNS], bool head, GString *out)
{
    (void)head;
    g_string_append(out, " ");
    for (size_t i = 0; i < COLUMNS; i++) {
        g_string_append_printf(out, " %s", cells[i]);
        for (size_t used = (size_t)g_utf8_strlen(cells[i], -1); i + 1 < COLUMNS && used <= widths[i]; used++)
            g_string_append_c(out, ' ');
    }
    while (out->str[out->len - 1] == ' ')
        g_string_truncate(out, out->len - 1);
    g_string_append_c(out, '\n');
}

static const style styles[] = {
    [SCHEMA_MARKDOWN] = {markdown, markdown_begin, markdown_event, markdown_row, "\n", "", ""},
    [SCHEMA_HTML] = {html, html_begin, html_event, html_row, "<table>\n", "</table>\n", "</body>\n</html>\n"},
    [SCHEMA_TEXT] = {schema_plain, text_begin, text_event, text_row, "", "", ""},
};

static void make_cells(const style *st, const schema_field *f, char *cells[COLUMNS])
{
    char *type = schema_field_type(f);
    char *whole = g_strconcat(type, f->optional ? ", optional" : "", NULL);
    cells[0] = st->text(f->name);
    cells[1] = st->text(whole);
    cells[2] = st->text(f->unit);
    cells[3] = st->text(f->description);
    g_free(type);
    g_free(whole);
}

/* Appends the headings and rows of an event's table. If `out` is NULL, only sets the widths of the columns. */
static void each_row(const style *st, const schema_event *e, size_t widths[COLUMNS], GString *out)
{
    for (guint row = 0; row <= e->fields->len; row++) {
        char *cells[COLUMNS];
        if (row > 0)
            make_cells(st, g_ptr_array_index(e->fields, row - 1), cells);
        else
            for (size_t i = 0; i < COLUMNS; i++)
                cells[i] = g_strdup(headings[i]);
        if (out != NULL)
            st->row((const char *const *)cells, widths, row == 0, out);
        for (size_t i = 0; i < COLUMNS; i++) {
            widths[i] = MAX(widths[i], (size_t)g_utf8_strlen(cells[i], -1));
            g_free(cells[i]);
        }
    }
}

void schema_doc(const schema *s, schema_doc_style which, GString *out)
{
    const style *st = &styles[which];
    st->begin(s, out);
    for (guint i = 0; i < s->events->len; i++) {
        const schema_event *e = g_ptr_array_index(s->events, i);
        size_t widths[COLUMNS] = {0};
        st->event(e, out);
        if (e->fields->len == 0)
            continue;
        g_string_append(out, st->table_begin);
        each_row(st, e, widths, NULL);
        each_row(st, e, widths, out);
        g_string_append(out, st->table_end);
    }
    g_string_append(out, st->end);
}
