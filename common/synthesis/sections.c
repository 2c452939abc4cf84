#include "config.h"

#include "synthesis/sections.h"

#include "base/error.h"
#include "base/memory.h"

#include <ctype.h>
#include <glib.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_SIZE_MAX = 1 << 20 };

bool nl_sections_error(const nl_sections *s, unsigned line, const char *format, ...)
{
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return nl_error_false(NL_ERROR_INVALID, "%s:%u: %s", s->file, line, message);
}

const char *nl_section_value(const nl_section *section, const char *key)
{
    for (size_t i = section->setting_count; i-- > 0;)
        if (strcmp(section->settings[i].key, key) == 0)
            return section->settings[i].value;
    return NULL;
}

char *nl_word_next(const char **text, const char *separators)
{
    const char *at = *text;
    while (*at != '\0' && (isspace((unsigned char)*at) || strchr(separators, *at) != NULL))
        at++;
    const char *begin = at, *end;
    if (*at == '\0')
        return NULL;
    if (*at == '\'') {
        at++;
        while (*at != '\0' && *at != '\'')
            at++;
        end = at;
        if (*at != '\0')
            at++;
    } else {
        while (*at != '\0' && !isspace((unsigned char)*at) && strchr(separators, *at) == NULL)
            at++;
        end = at;
    }
    *text = at;
    return g_strndup(begin, (size_t)(end - begin));
}

/* ---- lines ---- */

static bool begin_section(nl_sections *s, char *text, unsigned line)
{
    size_t size = strlen(text);
    if (text[size - 1] != ']')
        return nl_sections_error(s, line, "missing ] after a section name");
    text[size - 1] = '\0';
    char *kind = g_strstrip(text + 1), *name = kind + strcspn(kind, " \t");
    s->list = nl_memory_check(reallocarray(s->list, s->count + 1, sizeof *s->list));
    s->list[s->count++] =
        (nl_section){.kind = g_strndup(kind, (size_t)(name - kind)), .name = g_strdup(g_strchug(name)), .line = line};
    return true;
}

static bool sections_take_line(nl_sections *s, char *text, unsigned line)
{
    g_strstrip(text);
    if (*text == '\0' || *text == '#')
        return true;
    if (*text == '[')
        return begin_section(s, text, line);
    char *equals = strchr(text, '=');
    if (equals == NULL)
        return nl_sections_error(s, line, "expected [SECTION] or KEY = VALUE");
    if (s->count == 0)
        return nl_sections_error(s, line, "expected [SECTION] before the first setting");
    *equals = '\0';
    nl_section *section = &s->list[s->count - 1];
    section->settings =
        nl_memory_check(reallocarray(section->settings, section->setting_count + 1, sizeof *section->settings));
    section->settings[section->setting_count++] =
        (nl_setting){g_strdup(g_strchomp(text)), g_strdup(g_strchug(equals + 1)), line};
    return true;
}

/*
 * Reads all lines. A line that continues over several lines has the number of the first line. Returns false on failure.
 */
static bool sections_take_text(nl_sections *s, const char *text)
{
    char **lines = g_strsplit(text, "\n", -1);
    GString *joined = g_string_new(NULL);
    unsigned first = 1;
    bool ok = true;
    for (unsigned i = 0; ok && lines[i] != NULL; i++) {
        g_string_append(joined, g_strchomp(lines[i]));
        if (joined->len > 0 && joined->str[joined->len - 1] == '\\' && lines[i + 1] != NULL) {
            g_string_truncate(joined, joined->len - 1);
            continue;
        }
        ok = sections_take_line(s, joined->str, first);
        g_string_truncate(joined, 0);
        first = i + 2;
    }
    g_string_free(joined, TRUE);
    g_strfreev(lines);
    return ok;
}

/* ---- parameters ---- */

static const char *find_parameter(const nl_sections *s, const char *name, size_t size, const char *const *parameters)
{
    for (size_t i = 0; i < s->count; i++) {
        const nl_section *section = &s->list[i];
        if (strcmp(section->kind, "parameter") != 0 || strlen(section->name) != size ||
            memcmp(section->name, name, size) != 0)
            continue;
        for (size_t j = 0; parameters != NULL && parameters[j] != NULL; j++)
            if (strncmp(parameters[j], name, size) == 0 && parameters[j][size] == '=')
                return parameters[j] + size + 1;
        const char *value = nl_section_value(section, "default");
        return value != NULL ? value : "";
    }
    return NULL;
}

static bool substitute(const nl_sections *s, char **text, unsigned line, const char *const *parameters)
{
    GString *out = g_string_new(NULL);
    const char *at = *text;
    for (const char *dollar; (dollar = strstr(at, "${")) != NULL;) {
        const char *end = strchr(dollar, '}');
        const char *value = end != NULL ? find_parameter(s, dollar + 2, (size_t)(end - dollar - 2), parameters) : NULL;
        if (value == NULL) {
            g_string_free(out, TRUE);
            return nl_sections_error(s, line, "no [parameter] section declares %.*s",
                                     end != NULL ? (int)(end + 1 - dollar) : 20, dollar);
        }
        g_string_append_len(out, at, dollar - at);
        g_string_append(out, value);
        at = end + 1;
    }
    g_string_append(out, at);
    free(*text);
    *text = g_string_free(out, FALSE);
    return true;
}

static bool substitute_all(const nl_sections *s, const char *const *parameters)
{
    for (size_t i = 0; parameters != NULL && parameters[i] != NULL; i++)
        if (find_parameter(s, parameters[i], strcspn(parameters[i], "="), NULL) == NULL ||
            strchr(parameters[i], '=') == NULL)
            return nl_error_false(NL_ERROR_NOT_FOUND, "%s: unknown parameter \"%.*s\"", s->file,
                                  (int)strcspn(parameters[i], "="), parameters[i]);
    for (size_t i = 0; i < s->count; i++) {
        nl_section *section = &s->list[i];
        if (strcmp(section->kind, "parameter") == 0)
            continue;
        if (!substitute(s, &section->name, section->line, parameters))
            return false;
        for (size_t j = 0; j < section->setting_count; j++)
            if (!substitute(s, &section->settings[j].value, section->settings[j].line, parameters))
                return false;
    }
    return true;
}

/* ---- reading ---- */

bool nl_sections_parse(nl_sections *s, const char *text, const char *file, const char *const *parameters)
{
    *s = (nl_sections){.file = g_strdup(file)};
    return sections_take_text(s, text) && substitute_all(s, parameters);
}

bool nl_sections_read(nl_sections *s, const char *path, const char *const *parameters)
{
    *s = (nl_sections){0};
    FILE *file = fopen(path, "re");
    char *text = nl_memory_check(calloc(1, FILE_SIZE_MAX + 1));
    size_t size = file != NULL ? fread(text, 1, FILE_SIZE_MAX, file) : 0;
    bool ok = file != NULL && !ferror(file);
    if (!ok)
        nl_error_set_errno("%s", path);
    else if (strlen(text) != size || size == FILE_SIZE_MAX)
        ok = nl_error_false(NL_ERROR_LIMIT, "%s: not a text file, or larger than 1 MiB", path);
    if (file != NULL)
        fclose(file);
    ok = ok && nl_sections_parse(s, text, path, parameters);
    free(text);
    return ok;
}

void nl_sections_free(nl_sections *s)
{
    for (size_t i = 0; i < s->count; i++) {
        nl_section *section = &s->list[i];
        for (size_t j = 0; j < section->setting_count; j++) {
            free(section->settings[j].key);
            free(section->settings[j].value);
        }
        free(section->settings);
        free(section->kind);
        free(section->name);
    }
    free(s->list);
    free(s->file);
    *s = (nl_sections){0};
}
