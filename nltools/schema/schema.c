/* Reading a schema file: GKeyFile gives the values, a scan of its own the lines and what GKeyFile would pass over. */
#include "config.h"

#include "schema.h"

#include <string.h>

static const char *const type_names[] = {
    [SCHEMA_BOOL] = "bool",     [SCHEMA_INT8] = "int8",   [SCHEMA_INT16] = "int16",   [SCHEMA_INT32] = "int32",
    [SCHEMA_INT64] = "int64",   [SCHEMA_UINT8] = "uint8", [SCHEMA_UINT16] = "uint16", [SCHEMA_UINT32] = "uint32",
    [SCHEMA_UINT64] = "uint64", [SCHEMA_FLOAT] = "float", [SCHEMA_DOUBLE] = "double", [SCHEMA_STRING] = "string",
    [SCHEMA_BYTES] = "bytes",   [SCHEMA_ENUM] = "enum",
};

/* A line of the file that says something: KEY=VALUE in the section of an event, or in [schema] when event is NULL. */
typedef struct entry {
    unsigned line;
    schema_event *event;
    char *section; /* both as they are spelt */
    char *key;
} entry;

typedef struct reading {
    schema *schema;
    GPtrArray *mistakes;
    GPtrArray *entries;   /* entry * */
    GString *good;        /* the lines that GKeyFile is to see */
    GHashTable *sections; /* name, quotes included, to the schema_event * */
    GHashTable *keys;     /* "EVENT]KEY", as no name holds a ], to the line of what was met so far */
    unsigned schema_line; /* of [schema]; 0 while there was none */
    /* Where the scan is: */
    unsigned line;
    char *section; /* as it is spelt; NULL before the first, and in one that is no good */
    bool skipping;
    schema_event *event;
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

static void free_entry(gpointer data)
{
    entry *e = data;
    g_free(e->section);
    g_free(e->key);
    g_free(e);
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
    m->line = line;
    m->text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
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
        bool shown = type != G_UNICODE_CONTROL && type != G_UNICODE_FORMAT && type != G_UNICODE_LINE_SEPARATOR &&
                     type != G_UNICODE_PARAGRAPH_SEPARATOR;
        g_string_append_unichar(out, shown ? c : ' ');
    }
    g_free(valid);
    return g_string_free(out, FALSE);
}

/* A name as it is spelt in the file, without the quotes that may be around it. */
static char *unquoted(const char *spelt)
{
    size_t size = strlen(spelt);
    if (size >= 2 && spelt[0] == '"' && spelt[size - 1] == '"')
        return g_strndup(spelt + 1, size - 2);
    return g_strdup(spelt);
}

/* Whether a name is one that a log can hold as it is. */
static bool is_name(const char *name)
{
    if (!g_ascii_isalpha(*name) && *name != '_')
        return false;
    while (g_ascii_isalnum(*name) || (*name != '\0' && strchr("._-", *name) != NULL))
        name++;
    return *name == '\0';
}

static bool check_name(reading *r, const char *what, const char *name)
{
    if (is_name(name))
        return true;
    char *plain = schema_plain(name);
    schema_mistake_add(
        r->mistakes, r->line,
        "\"%s\" is no name for %s: letters, digits, '.', '_' and '-' are, beginning with a letter or '_'", plain, what);
    g_free(plain);
    return false;
}

/* Fields that every record has by itself, by their names in ULM and in BP. */
static bool is_standard(const char *name)
{
    static const char *const standard[] = {"DATE", "HOST", "PROG",  "LVL",   "NL.EVNT", "ts",
                                           "host", "prog", "level", "event", NULL};
    return g_strv_contains(standard, name);
}

static schema_event *new_event(reading *r, char *name)
{
    schema_event *e = g_new0(schema_event, 1);
    e->name = name;
    e->line = r->line;
    e->level = NL_USAGE;
    e->description = g_strdup("");
    e->fields = g_ptr_array_new_with_free_func(free_field);
    g_ptr_array_add(r->schema->events, e);
    return e;
}

/* Once a section is known as good, GKeyFile sees its line. */
static void enter_section(reading *r, const char *spelt, schema_event *event)
{
    r->section = g_strdup(spelt);
    r->skipping = false;
    r->event = event;
    g_string_append_printf(r->good, "[%s]\n", spelt);
}

static void scan_event(reading *r, const char *spelt)
{
    char *name = unquoted(spelt);
    schema_event *e = g_hash_table_lookup(r->sections, name);
    if (e != NULL)
        schema_mistake_add(r->mistakes, r->line, "the event %s is declared a second time, first in line %u", name,
                           e->line);
    /* The rest of a second one is read as if it were more of the first: that finds what else is wrong there. */
    if (e == NULL && check_name(r, "an event", name)) {
        e = new_event(r, g_strdup(name));
        g_hash_table_insert(r->sections, g_strdup(name), e);
    }
    if (e != NULL)
        enter_section(r, spelt, e);
    g_free(name);
}

static void scan_section(reading *r, char *text)
{
    char *end = strchr(text, ']');
    g_free(r->section);
    r->section = NULL;
    r->skipping = true;
    if (end == NULL || end[1] != '\0') {
        schema_mistake_add(r->mistakes, r->line, "a section's line is [NAME] and no more");
        return;
    }
    *end = '\0';
    if (strcmp(text + 1, "schema") != 0) {
        scan_event(r, text + 1);
        return;
    }
    if (r->schema_line != 0)
        schema_mistake_add(r->mistakes, r->line, "[schema] is there a second time, first in line %u", r->schema_line);
    else
        r->schema_line = r->line;
    enter_section(r, "schema", NULL);
}

/* Whether a key of an event says something of it; any other, and these in quotes, declares a field. */
static bool is_own_key(const char *key)
{
    return strcmp(key, "level") == 0 || strcmp(key, "description") == 0 || strcmp(key, "optional") == 0;
}

/* Takes a KEY=VALUE into the entries, unless there was one of that key. */
static void scan_entry(reading *r, char *text)
{
    char *equals = strchr(text, '=');
    *equals = '\0';
    g_strchomp(text);
    char *name = unquoted(text);
    bool good = check_name(r, r->event != NULL ? "a field" : "a key", name);
    char *id = g_strdup_printf("%s]%s", r->event != NULL ? r->event->name : "", is_own_key(name) ? text : name);
    unsigned first = GPOINTER_TO_UINT(g_hash_table_lookup(r->keys, id));
    if (good && first != 0) {
        schema_mistake_add(r->mistakes, r->line, "%s is there a second time, first in line %u", name, first);
    } else if (good) {
        entry *e = g_new0(entry, 1);
        *e = (entry){r->line, r->event, g_strdup(r->section), g_strdup(text)};
        g_ptr_array_add(r->entries, e);
        g_hash_table_insert(r->keys, g_strdup(id), GUINT_TO_POINTER(r->line));
        g_string_append_printf(r->good, "%s=%s\n", text, equals + 1);
    }
    g_free(id);
    g_free(name);
}

static void scan_line(reading *r, char *text, size_t size)
{
    if (!g_utf8_validate(text, (gssize)size, NULL)) {
        schema_mistake_add(r->mistakes, r->line, "is not UTF-8, or holds a NUL");
        return;
    }
    g_strstrip(text);
    if (*text == '\0' || *text == '#')
        return;
    if (*text == '[')
        scan_section(r, text);
    else if (strchr(text, '=') == NULL)
        schema_mistake_add(r->mistakes, r->line, "is neither [EVENT], KEY=VALUE nor a comment with #");
    else if (r->section != NULL)
        scan_entry(r, text);
    else if (!r->skipping)
        schema_mistake_add(r->mistakes, r->line, "comes before any section");
}

static void scan(reading *r, const char *data, size_t size)
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
        scan_line(r, text, length);
        g_free(text);
        at += length + 1;
    }
}

/* Cuts the values of enum(...) at the bars. False when they are no good. */
static bool read_values(reading *r, schema_field *f, const char *text)
{
    char **values = g_strsplit(text, "|", 0);
    bool good = true;
    for (char **v = values; *v != NULL && good; v++) {
        g_strstrip(*v);
        good = **v != '\0';
        if (!good)
            schema_mistake_add(r->mistakes, f->line, "%s: an enum's values are not empty: enum(a|b|c)", f->name);
        else if (g_ptr_array_find_with_equal_func(f->values, *v, g_str_equal, NULL)) {
            char *plain = schema_plain(*v);
            schema_mistake_add(r->mistakes, f->line, "%s: the value %s is there twice", f->name, plain);
            g_free(plain);
        } else
            g_ptr_array_add(f->values, g_strdup(*v));
    }
    if (*values == NULL)
        schema_mistake_add(r->mistakes, f->line, "%s: an enum needs values: enum(a|b|c)", f->name);
    g_strfreev(values);
    return good;
}

/* Reads the type that text begins with. Returns what follows it, NULL after having said what is wrong. */
static const char *read_type(reading *r, schema_field *f, const char *text)
{
    if (g_str_has_prefix(text, "enum(")) {
        const char *end = strchr(text, ')');
        if (end == NULL) {
            schema_mistake_add(r->mistakes, f->line, "%s: the enum has no )", f->name);
            return NULL;
        }
        char *values = g_strndup(text + 5, (size_t)(end - text - 5));
        read_values(r, f, values);
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
    char *word = g_strndup(text, strcspn(text, ";")), *plain = schema_plain(g_strstrip(word));
    schema_mistake_add(r->mistakes, f->line,
                       "%s: \"%s\" is no type: bool, int8 to int64, uint8 to uint64, float, double, string, bytes and "
                       "enum(a|b|c) are",
                       f->name, plain);
    g_free(word);
    g_free(plain);
    return NULL;
}

static void read_field(reading *r, schema_event *event, unsigned line, char *name, const char *value)
{
    schema_field *f = g_new0(schema_field, 1);
    f->name = name;
    f->line = line;
    f->values = g_ptr_array_new_with_free_func(g_free);
    f->constants = g_ptr_array_new_with_free_func(g_free);
    const char *rest = read_type(r, f, value);
    char **parts = g_strsplit(rest != NULL ? rest : "", ";", 3);
    guint count = g_strv_length(parts);
    if (count > 0 && *g_strstrip(parts[0]) != '\0')
        schema_mistake_add(r->mistakes, line, "%s: after the type comes \"; UNIT; DESCRIPTION\"", name);
    f->unit = g_strdup(count > 1 ? g_strstrip(parts[1]) : "");
    f->description = g_strdup(count > 2 ? g_strstrip(parts[2]) : "");
    g_strfreev(parts);
    if (is_standard(name))
        schema_mistake_add(r->mistakes, line, "every event has %s anyway: it is not to be declared", name);
    g_ptr_array_add(event->fields, f);
    if (event->fields->len == SCHEMA_FIELDS_MAX + 1)
        schema_mistake_add(r->mistakes, line, "%s is field %d of %s: %d is the most", name, SCHEMA_FIELDS_MAX + 1,
                           event->name, SCHEMA_FIELDS_MAX);
}

static void read_optional(reading *r, const entry *e, const char *value)
{
    char **names = g_strsplit(value, ";", 0);
    for (char **name = names; *name != NULL; name++) {
        bool found = *g_strstrip(*name) == '\0';
        for (guint i = 0; i < e->event->fields->len; i++) {
            schema_field *f = g_ptr_array_index(e->event->fields, i);
            if (strcmp(f->name, *name) != 0)
                continue;
            found = f->optional = e->event->has_optional = true;
        }
        char *plain = schema_plain(*name);
        if (!found)
            schema_mistake_add(r->mistakes, e->line, "optional: %s has no field \"%s\"", e->event->name, plain);
        g_free(plain);
    }
    g_strfreev(names);
}

static void read_schema_entry(reading *r, const entry *e, const char *value)
{
    schema *s = r->schema;
    char **to = strcmp(e->key, "name") == 0          ? &s->name
                : strcmp(e->key, "prefix") == 0      ? &s->prefix
                : strcmp(e->key, "description") == 0 ? &s->description
                                                     : NULL;
    if (to == NULL) {
        schema_mistake_add(r->mistakes, e->line, "[schema] has name, prefix and description, and no %s", e->key);
        return;
    }
    if (to != &s->description && (!is_name(value) || !g_ascii_isalpha(*value))) {
        char *plain = schema_plain(value);
        schema_mistake_add(r->mistakes, e->line, "%s: \"%s\" is no name that begins with a letter", e->key, plain);
        g_free(plain);
    }
    g_free(*to);
    *to = g_strdup(value);
}

static void read_entry(reading *r, const entry *e, const char *value)
{
    if (e->event == NULL) {
        read_schema_entry(r, e, value);
    } else if (strcmp(e->key, "level") == 0) {
        e->event->level = nl_level_parse(value, strlen(value));
        char *plain = schema_plain(value);
        if (e->event->level == NL_LEVEL_NONE)
            schema_mistake_add(r->mistakes, e->line, "\"%s\" is not a level; use one of " NL_LEVEL_NAMES, plain);
        g_free(plain);
    } else if (strcmp(e->key, "description") == 0) {
        g_free(e->event->description);
        e->event->description = g_strdup(value);
    } else {
        read_field(r, e->event, e->line, unquoted(e->key), value);
    }
}

/* Reads what the scan found. Which fields are optional comes last, as they may be declared after that is said. */
static void read_entries(reading *r)
{
    GKeyFile *file = g_key_file_new();
    GError *error = NULL;
    if (!g_key_file_load_from_data(file, r->good->str, r->good->len, G_KEY_FILE_NONE, &error)) {
        schema_mistake_add(r->mistakes, 0, "%s", error->message);
        g_clear_error(&error);
    }
    for (int optional = 0; optional < 2; optional++)
        for (guint i = 0; i < r->entries->len; i++) {
            const entry *e = g_ptr_array_index(r->entries, i);
            if ((e->event != NULL && strcmp(e->key, "optional") == 0) != (optional == 1))
                continue;
            char *value = g_key_file_get_string(file, e->section, e->key, &error);
            if (error != NULL) /* it may have given a value all the same */
                schema_mistake_add(r->mistakes, e->line, "%s: after \\ comes one of s, n, t, r and \\", e->key);
            else if (optional == 1)
                read_optional(r, e, value);
            else
                read_entry(r, e, value);
            g_free(value);
            g_clear_error(&error);
        }
    g_key_file_free(file);
}

static void check_whole(reading *r)
{
    schema *s = r->schema;
    if (r->schema_line == 0)
        schema_mistake_add(r->mistakes, r->line > 0 ? 1 : 0, "there is no [schema]");
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
    r->entries = g_ptr_array_new_with_free_func(free_entry);
    r->good = g_string_new("[.]\n"); /* a section, as in the first GKeyFile takes a key "Encoding" for its own */
    r->sections = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    r->keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    scan(r, data, size);
    read_entries(r);
    check_whole(r);
    schema_name_all(r->schema, r->mistakes);
    g_ptr_array_sort(r->mistakes, compare_lines);
    g_ptr_array_unref(r->entries);
    g_string_free(r->good, TRUE);
    g_hash_table_unref(r->sections);
    g_hash_table_unref(r->keys);
    g_free(r->section);
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
        schema_mistake_add(r.mistakes, 0, "%s", error->message);
        g_error_free(error);
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
