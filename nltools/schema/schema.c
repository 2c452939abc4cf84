/* Reads a schema file line by line. Evaluates the "optional" keys last, because an event may declare fields after this
 * key. */
#include "config.h"

#include "schema.h"

#include "base/text.h"
#include "program/glib_error.h"
#include "record/field_name.h"

#include <string.h>

static const char *const type_names[] = {
    [SCHEMA_BOOL] = "bool",     [SCHEMA_INT8] = "int8",   [SCHEMA_INT16] = "int16",   [SCHEMA_INT32] = "int32",
    [SCHEMA_INT64] = "int64",   [SCHEMA_UINT8] = "uint8", [SCHEMA_UINT16] = "uint16", [SCHEMA_UINT32] = "uint32",
    [SCHEMA_UINT64] = "uint64", [SCHEMA_FLOAT] = "float", [SCHEMA_DOUBLE] = "double", [SCHEMA_STRING] = "string",
    [SCHEMA_BYTES] = "bytes",   [SCHEMA_ENUM] = "enum",
};

/* The value of an "optional" key, which the module evaluates at the end of the file. */
typedef struct optional_list {
    unsigned line;
    schema_event *event;
    char *value;
} optional_list;

typedef struct reading {
    schema *schema;
    GPtrArray *mistakes;
    GPtrArray *optional;  /* optional_list * */
    GHashTable *events;   /* maps a name to a schema_event * */
    GHashTable *keys;     /* maps "EVENT]KEY" to the line of the key; no name contains a ] */
    unsigned schema_line; /* line of [schema]; 0: not found yet */
    unsigned line;        /* number of the current line */
    bool in_section;      /* the current line is in a valid section */
    bool skipping;        /* the current line is in an invalid section */
    schema_event *event;  /* event of the current section; NULL in [schema] */
} reading;

static void free_mistake(gpointer data)
{
    schema_mistake *m = data;
    g_free(m->text);
    g_free(m);
}

static void free_field(gpointer data)
{
    schema_field *f = data;
    g_free(f->name);
    g_ptr_array_unref(f->values);
    g_free(f->unit);
    g_free(f->description);
    g_free(f->parameter);
    g_free(f->c_type);
    g_ptr_array_unref(f->constants);
    g_free(f);
}

static void free_event(gpointer data)
{
    schema_event *e = data;
    g_free(e->name);
    g_free(e->description);
    g_ptr_array_unref(e->fields);
    g_free(e->function);
    g_free(e);
}

static void free_optional(gpointer data)
{
    g_free(((optional_list *)data)->value);
    g_free(data);
}

void schema_free(schema *s)
{
    if (s == NULL)
        return;
    g_free(s->name);
    g_free(s->prefix);
    g_free(s->description);
    g_ptr_array_unref(s->events);
    g_free(s);
}

void schema_mistake_add(GPtrArray *mistakes, unsigned line, const char *format, ...)
{
    schema_mistake *m = g_new0(schema_mistake, 1);
    va_list arguments;
    va_start(arguments, format);
    char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    m->line = line;
    m->text = schema_plain(text);
    g_free(text);
    g_ptr_array_add(mistakes, m);
}

const char *schema_type_name(schema_type type)
{
    return type_names[type];
}

char *schema_field_type(const schema_field *field)
{
    GString *out = g_string_new(type_names[field->type]);
    for (guint i = 0; i < field->values->len; i++)
        g_string_append_printf(out, "%c%s", i == 0 ? '(' : '|', (char *)g_ptr_array_index(field->values, i));
    if (field->values->len > 0)
        g_string_append_c(out, ')');
    return g_string_free(out, FALSE);
}

char *schema_plain(const char *text)
{
    char *valid = g_utf8_make_valid(text, -1);
    GString *out = g_string_new(NULL);
    for (const char *at = valid; *at != '\0'; at = g_utf8_next_char(at)) {
        gunichar c = g_utf8_get_char(at);
        GUnicodeType type = g_unichar_type(c);
        bool visible = type != G_UNICODE_CONTROL && type != G_UNICODE_FORMAT && type != G_UNICODE_LINE_SEPARATOR &&
                       type != G_UNICODE_PARAGRAPH_SEPARATOR;
        g_string_append_unichar(out, visible ? c : ' ');
    }
    g_free(valid);
    return g_string_free(out, FALSE);
}

/* ---- names ---- */

/* Returns a copy of a name, without the double quotes around it. The caller frees it with g_free. */
static char *unquoted(const char *text)
{
    size_t size = strlen(text);
    if (size >= 2 && text[0] == '"' && text[size - 1] == '"')
        return g_strndup(text + 1, size - 2);
    return g_strdup(text);
}

static bool check_name(reading *r, const char *what, const char *name)
{
    if (nl_is_name(nl_string_of(name)))
        return true;
    schema_mistake_add(
        r->mistakes, r->line,
        "\"%s\" is not a name for %s; use letters, digits, '.', '_' and '-', beginning with a letter or '_'", name,
        what);
    return false;
}

/* Returns whether a name is the name of a standard field in ULM or BP. */
static bool is_standard(const char *name)
{
    static const char *const standard[] = {"DATE", "HOST", "PROG",  "LVL",   "NL.EVNT", "ts",
                                           "host", "prog", "level", "event", NULL};
    return g_strv_contains(standard, name);
}

/* ---- fields ---- */

/* Adds the values in `text`, which is the text between the parentheses of enum(...), to a field. */
static void read_enum(reading *r, schema_field *f, const char *text)
{
    char **values = g_strsplit(text, "|", 0);
    bool ok = true;
    for (char **v = values; *v != NULL && ok; v++) {
        g_strstrip(*v);
        ok = **v != '\0';
        if (!ok)
            schema_mistake_add(r->mistakes, r->line, "%s: an enum has an empty value; use enum(a|b|c)", f->name);
        else if (g_ptr_array_find_with_equal_func(f->values, *v, g_str_equal, NULL))
            schema_mistake_add(r->mistakes, r->line, "%s: the value %s is repeated", f->name, *v);
        else
            g_ptr_array_add(f->values, g_strdup(*v));
    }
    if (*values == NULL)
        schema_mistake_add(r->mistakes, r->line, "%s: an enum has no values; use enum(a|b|c)", f->name);
    g_strfreev(values);
}

/* Reads the type at the start of text. Returns the rest, or NULL if the type is invalid. */
static const char *read_type(reading *r, schema_field *f, const char *text)
{
    if (g_str_has_prefix(text, "enum(")) {
        const char *end = strchr(text, ')');
        if (end == NULL) {
            schema_mistake_add(r->mistakes, r->line, "%s: the enum has no )", f->name);
            return NULL;
        }
        char *values = g_strndup(text + 5, (size_t)(end - text - 5));
        read_enum(r, f, values);
        g_free(values);
        f->type = SCHEMA_ENUM;
        return end + 1;
    }
    size_t size = strcspn(text, "; \t");
    for (unsigned i = 0; i < SCHEMA_ENUM; i++)
        if (strlen(type_names[i]) == size && memcmp(type_names[i], text, size) == 0) {
            f->type = (schema_type)i;
            return text + size;
        }
    char *word = g_strndup(text, strcspn(text, ";"));
    schema_mistake_add(r->mistakes, r->line,
                       "%s: \"%s\" is not a type; use bool, int8 to int64, uint8 to uint64, float, double, string, "
                       "bytes or enum(a|b|c)",
                       f->name, g_strstrip(word));
    g_free(word);
    return NULL;
}

static void read_field(reading *r, char *name, const char *value)
{
    schema_event *event = r->event;
    schema_field *f = g_new0(schema_field, 1);
    f->name = name;
    f->line = r->line;
    f->values = g_ptr_array_new_with_free_func(g_free);
    f->constants = g_ptr_array_new_with_free_func(g_free);
    const char *rest = read_type(r, f, value);
    char **parts = g_strsplit(rest != NULL ? rest : "", ";", 3);
    guint count = g_strv_length(parts);
    if (count > 0 && *g_strstrip(parts[0]) != '\0')
        schema_mistake_add(r->mistakes, r->line, "%s: \"; UNIT; DESCRIPTION\" must follow the type", name);
    f->unit = g_strdup(count > 1 ? g_strstrip(parts[1]) : "");
    f->description = g_strdup(count > 2 ? g_strstrip(parts[2]) : "");
    g_strfreev(parts);
    if (is_standard(name))
        schema_mistake_add(r->mistakes, r->line, "every event has %s; do not declare it", name);
    g_ptr_array_add(event->fields, f);
    if (event->fields->len == SCHEMA_FIELDS_MAX + 1)
        schema_mistake_add(r->mistakes, r->line, "%s is field %d of %s; the maximum is %d", name, SCHEMA_FIELDS_MAX + 1,
                           event->name, SCHEMA_FIELDS_MAX);
}

static void read_optional(reading *r, const optional_list *o)
{
    char **names = g_strsplit(o->value, ";", 0);
    for (char **name = names; *name != NULL; name++) {
        bool found = *g_strstrip(*name) == '\0';
        for (guint i = 0; i < o->event->fields->len; i++) {
            schema_field *f = g_ptr_array_index(o->event->fields, i);
            if (strcmp(f->name, *name) == 0)
                found = f->optional = o->event->has_optional = true;
        }
        if (!found)
            schema_mistake_add(r->mistakes, o->line, "optional: %s has no field \"%s\"", o->event->name, *name);
    }
    g_strfreev(names);
}

/* ---- keys ---- */

static void read_schema_key(reading *r, const char *key, const char *value)
{
    schema *s = r->schema;
    char **to = strcmp(key, "name") == 0          ? &s->name
                : strcmp(key, "prefix") == 0      ? &s->prefix
                : strcmp(key, "description") == 0 ? &s->description
                                                  : NULL;
    if (to == NULL) {
        schema_mistake_add(r->mistakes, r->line, "[schema] has no key %s; use name, prefix or description", key);
        return;
    }
    if (to != &s->description && (!g_ascii_isalpha(*value) || !nl_is_name(nl_string_of(value))))
        schema_mistake_add(r->mistakes, r->line, "%s: \"%s\" is not a valid name; use a name that begins with a letter",
                           key, value);
    g_free(*to);
    *to = g_strdup(value);
}

/* Returns whether a key describes its event. Other keys, and keys in quotes, declare fields. */
static bool is_own_key(const char *key)
{
    return strcmp(key, "level") == 0 || strcmp(key, "description") == 0 || strcmp(key, "optional") == 0;
}

static void read_event_key(reading *r, const char *key, const char *value)
{
    schema_event *e = r->event;
    if (!is_own_key(key)) {
        read_field(r, unquoted(key), value);
    } else if (strcmp(key, "level") == 0) {
        e->level = nl_level_parse(value, strlen(value));
        if (e->level == NL_LEVEL_NONE)
            schema_mistake_add(r->mistakes, r->line, "\"%s\" is not a level; use one of " NL_LEVEL_NAMES, value);
    } else if (strcmp(key, "description") == 0) {
        g_free(e->description);
        e->description = g_strdup(value);
    } else {
        optional_list *o = g_new0(optional_list, 1);
        *o = (optional_list){r->line, e, g_strdup(value)};
        g_ptr_array_add(r->optional, o);
    }
}

/* Replaces \s, \n, \t, \r and \\ in place. Returns false if another character follows a backslash. */
static bool unescape(char *text)
{
    static const char letters[] = "sntr\\", values[] = " \n\t\r\\";
    char *out = text;
    for (; *text != '\0'; text++) {
        if (*text != '\\') {
            *out++ = *text;
            continue;
        }
        const char *letter = *++text != '\0' ? strchr(letters, *text) : NULL;
        if (letter == NULL)
            return false;
        *out++ = values[letter - letters];
    }
    *out = '\0';
    return true;
}

static void read_key(reading *r, char *key, char *value)
{
    char *name = unquoted(key);
    char *id = g_strdup_printf("%s]%s", r->event != NULL ? r->event->name : "", is_own_key(name) ? key : name);
    unsigned first = GPOINTER_TO_UINT(g_hash_table_lookup(r->keys, id));
    if (!check_name(r, r->event != NULL ? "a field" : "a key", name)) {
        g_free(id);
    } else if (first != 0) {
        schema_mistake_add(r->mistakes, r->line, "%s is repeated; it already appears in line %u", name, first);
        g_free(id);
    } else {
        g_hash_table_insert(r->keys, id, GUINT_TO_POINTER(r->line));
        if (!unescape(value))
            schema_mistake_add(r->mistakes, r->line, "%s: invalid escape; use \\s, \\n, \\t, \\r or \\\\", name);
        else if (r->event != NULL)
            read_event_key(r, key, value);
        else
            read_schema_key(r, key, value);
    }
    g_free(name);
}

/* ---- sections and lines ---- */

/* Begins the section of an event. A repeated section is a mistake, but continues the first section, so that one run
 * finds more mistakes. */
static void begin_event(reading *r, const char *text)
{
    char *name = unquoted(text);
    schema_event *e = g_hash_table_lookup(r->events, name);
    if (e != NULL) {
        schema_mistake_add(r->mistakes, r->line, "the event %s is repeated; it already appears in line %u", name,
                           e->line);
    } else if (check_name(r, "an event", name)) {
        e = g_new0(schema_event, 1);
        e->name = g_strdup(name);
        e->line = r->line;
        e->level = NL_USAGE;
        e->description = g_strdup("");
        e->fields = g_ptr_array_new_with_free_func(free_field);
        g_ptr_array_add(r->schema->events, e);
        g_hash_table_insert(r->events, e->name, e);
    }
    r->in_section = e != NULL;
    r->event = e;
    g_free(name);
}

static void read_section(reading *r, char *text)
{
    char *end = strchr(text, ']');
    r->in_section = false;
    r->skipping = true;
    if (end == NULL || end[1] != '\0') {
        schema_mistake_add(r->mistakes, r->line, "invalid section; put [NAME] on its own line");
        return;
    }
    *end = '\0';
    if (strcmp(text + 1, "schema") != 0) {
        begin_event(r, text + 1);
        return;
    }
    if (r->schema_line != 0)
        schema_mistake_add(r->mistakes, r->line, "[schema] is repeated; it already appears in line %u", r->schema_line);
    else
        r->schema_line = r->line;
    r->in_section = true;
    r->event = NULL;
}

static void read_line(reading *r, char *text, size_t size)
{
    if (!g_utf8_validate(text, (gssize)size, NULL)) {
        schema_mistake_add(r->mistakes, r->line, "not UTF-8, or contains a NUL");
        return;
    }
    g_strstrip(text);
    char *equals = strchr(text, '=');
    if (*text == '\0' || *text == '#')
        return;
    if (*text == '[') {
        read_section(r, text);
    } else if (equals == NULL) {
        schema_mistake_add(r->mistakes, r->line, "expected [EVENT], KEY=VALUE or a comment that begins with #");
    } else if (r->in_section) {
        *equals = '\0';
        read_key(r, g_strchomp(text), g_strchug(equals + 1));
    } else if (!r->skipping) {
        schema_mistake_add(r->mistakes, r->line, "expected [schema] or [EVENT] before the first KEY=VALUE");
    }
}

static void read_lines(reading *r, const char *data, size_t size)
{
    const char *at = data, *end = data + size;
    if (size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0)
        at += 3; /* a byte order mark */
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((newline != NULL ? newline : end) - at);
        char *text = g_malloc(length + 1);
        memcpy(text, at, length);
        text[length] = '\0';
        r->line++;
        read_line(r, text, length);
        g_free(text);
        at += length + 1;
    }
}

/* ---- checks after the last line ---- */

static void check_whole(reading *r)
{
    schema *s = r->schema;
    if (r->schema_line == 0)
        schema_mistake_add(r->mistakes, r->line > 0 ? 1 : 0, "missing [schema]");
    else if (s->name == NULL)
        schema_mistake_add(r->mistakes, r->schema_line, "[schema] has no name=");
    if (s->events->len == 0)
        schema_mistake_add(r->mistakes, r->line, "no event is declared");
    if (s->name == NULL)
        s->name = g_strdup("schema");
    if (s->prefix == NULL)
        s->prefix = g_strdup(s->name);
    if (s->description == NULL)
        s->description = g_strdup("");
}

static int compare_lines(gconstpointer a, gconstpointer b)
{
    const schema_mistake *first = *(schema_mistake *const *)a, *second = *(schema_mistake *const *)b;
    return (first->line > second->line) - (first->line < second->line);
}

static void read_data(reading *r, const char *data, size_t size)
{
    r->optional = g_ptr_array_new_with_free_func(free_optional);
    r->events = g_hash_table_new(g_str_hash, g_str_equal);
    r->keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    read_lines(r, data, size);
    for (guint i = 0; i < r->optional->len; i++)
        read_optional(r, g_ptr_array_index(r->optional, i));
    check_whole(r);
    schema_name_all(r->schema, r->mistakes);
    g_ptr_array_sort(r->mistakes, compare_lines);
    g_ptr_array_unref(r->optional);
    g_hash_table_unref(r->events);
    g_hash_table_unref(r->keys);
}

schema *schema_read(const char *path, GPtrArray **mistakes)
{
    reading r = {.mistakes = g_ptr_array_new_with_free_func(free_mistake), .schema = g_new0(schema, 1)};
    r.schema->events = g_ptr_array_new_with_free_func(free_event);
    char *data;
    gsize size;
    GError *error = NULL;
    if (g_file_get_contents(strcmp(path, "-") == 0 ? "/dev/stdin" : path, &data, &size, &error)) {
        read_data(&r, data, size);
        g_free(data);
    } else {
        glib_error_take(error);
        schema_mistake_add(r.mistakes, 0, "%s", nl_error_message());
    }
    *mistakes = NULL;
    if (r.mistakes->len == 0) {
        g_ptr_array_unref(r.mistakes);
        return r.schema;
    }
    *mistakes = r.mistakes;
    schema_free(r.schema);
    return NULL;
}
