#include "config.h"

#include "requests/field_units.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

struct field_units {
    GHashTable *units; /* "EVENT\nFIELD": unit */
};

static char *key_of(const char *event, const char *field)
{
    return g_strdup_printf("%s\n%s", event, field);
}

static void add_unit(field_units *u, const char *event, const char *field, const char *unit)
{
    char *key = key_of(event, field);
    const char *known = g_hash_table_lookup(u->units, key);
    const bool contradicts = known != NULL && strcmp(known, unit) != 0;
    g_hash_table_replace(u->units, key, g_strdup(contradicts ? "" : unit));
}

/* Returns a copy of a name without the quotes that mark the name of a field. */
static char *unquoted(const char *name)
{
    const size_t size = strlen(name);
    return size >= 2 && *name == '"' && name[size - 1] == '"' ? g_strndup(name + 1, size - 2) : g_strdup(name);
}

/* Adds the units of a field's declaration, which is "TYPE; UNIT; DESCRIPTION". */
static void add_declaration(field_units *u, const char *event, const char *name, const char *declaration)
{
    static const char *const others[] = {"level", "description", "optional", NULL};
    if (g_strv_contains(others, name))
        return;
    char **parts = g_strsplit(declaration, ";", 3), *field = unquoted(name);
    add_unit(u, event, field, parts[0] != NULL && parts[1] != NULL ? g_strstrip(parts[1]) : "");
    g_strfreev(parts);
    g_free(field);
}

static void add_schema(field_units *u, const char *path)
{
    GKeyFile *file = g_key_file_new();
    char **events = g_key_file_load_from_file(file, path, G_KEY_FILE_NONE, NULL) && g_key_file_has_group(file, "schema")
                        ? g_key_file_get_groups(file, NULL)
                        : NULL;
    for (char **event = events; event != NULL && *event != NULL; event++) {
        char **fields = strcmp(*event, "schema") != 0 ? g_key_file_get_keys(file, *event, NULL, NULL) : NULL;
        for (char **field = fields; field != NULL && *field != NULL; field++) {
            char *declaration = g_key_file_get_string(file, *event, *field, NULL);
            if (declaration != NULL)
                add_declaration(u, *event, *field, declaration);
            g_free(declaration);
        }
        g_strfreev(fields);
    }
    g_strfreev(events);
    g_key_file_free(file);
}

/* Adds the schemas of a directory. Takes ownership of `path`. */
static void add_directory(field_units *u, char *path)
{
    GDir *directory = g_dir_open(path, 0, NULL);
    const char *name;
    while (directory != NULL && (name = g_dir_read_name(directory)) != NULL) {
        char *file = g_str_has_suffix(name, ".schema") ? g_build_filename(path, name, NULL) : NULL;
        if (file != NULL)
            add_schema(u, file);
        g_free(file);
    }
    if (directory != NULL)
        g_dir_close(directory);
    g_free(path);
}

field_units *field_units_new(void)
{
    field_units *u = g_new(field_units, 1);
    u->units = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    for (const sensor_unit *row = sensor_units; row->event != NULL; row++)
        add_unit(u, row->event, row->field, row->unit);
    add_directory(u, g_build_filename(g_get_user_data_dir(), "netlogger", "schemas", NULL));
    for (const char *const *parent = g_get_system_data_dirs(); *parent != NULL; parent++)
        add_directory(u, g_build_filename(*parent, "netlogger", "schemas", NULL));
    add_directory(u, g_strdup(NL_SCHEMAS));
    return u;
}

void field_units_free(field_units *u)
{
    g_hash_table_destroy(u->units);
    g_free(u);
}

const char *field_units_find(const field_units *u, const char *event, const char *field)
{
    char *key = key_of(event, field);
    const char *unit = g_hash_table_lookup(u->units, key);
    g_free(key);
    return unit;
}
