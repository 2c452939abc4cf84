#include "config.h"

#include "synthesis/sections.h"

#include "base/error.h"
#include "base/memory.h"
#include "program/program.h"

#include <ctype.h>
#include <errno.h>
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
    nl_error_set(NL_ERROR_INVALID, "%s:%u: %s", s->file, line, message);
    return false;
}

static char *sections_copy(const char *data, size_t size)
{
    return nl_memory_check(strndup(data, size));
}

static char *trimmed(const char *begin, const char *end)
{
    while (begin < end && isspace((unsigned char)*begin))
        begin++;
    while (end > begin && isspace((unsigned char)end[-1]))
        end--;
    return sections_copy(begin, (size_t)(end - begin));
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
    return sections_copy(begin, (size_t)(end - begin));
}

/* ---- lines ---- */

static bool begin_section(nl_sections *s, const char *begin, const char *end, unsigned line)
{
    while (end > begin && isspace((unsigned char)end[-1]))
        end--;
    if (end[-1] != ']')
        return nl_sections_error(s, line, "missing ] after the name of a section");
    char *inside = trimmed(begin + 1, end - 1);
    size_t size = strcspn(inside, " \t");
    s->list = nl_memory_check(reallocarray(s->list, s->count + 1, sizeof *s->list));
    s->list[s->count++] = (nl_section){
        .kind = sections_copy(inside, size), .name = trimmed(inside + size, inside + strlen(inside)), .line = line};
    free(inside);
    return true;
}

static bool add_setting(nl_sections *s, const char *begin, const char *end, unsigned line)
{
    const char *equals = memchr(begin, '=', (size_t)(end - begin));
    if (equals == NULL)
        return nl_sections_error(s, line, "expected [SECTION] or KEY = VALUE");
    if (s->count == 0)
        return nl_sections_error(s, line, "expected [SECTION] before the first setting");
    nl_section *section = &s->list[s->count - 1];
    section->settings =
        nl_memory_check(reallocarray(section->settings, section->setting_count + 1, sizeof *section->settings));
    section->settings[section->setting_count++] = (nl_setting){trimmed(begin, equals), trimmed(equals + 1, end), line};
    return true;
}

static bool sections_take_line(nl_sections *s, const char *begin, const char *end, unsigned line)
{
    while (begin < end && isspace((unsigned char)*begin))
        begin++;
    if (begin == end || *begin == '#')
        return true;
    return *begin == '[' ? begin_section(s, begin, end, line) : add_setting(s, begin, end, line);
}

/* Takes all lines. A joined line has the number of its first part. */
static bool sections_take_text(nl_sections *s, const char *text)
{
    char *joined = NULL;
    size_t size = 0;
    unsigned line = 0, first = 0;
    bool ok = true;
    for (const char *at = text; ok && *at != '\0';) {
        const char *end = strchrnul(at, '\n'), *stop = end;
        line++;
        if (size == 0)
            first = line;
        while (stop > at && (stop[-1] == '\r' || stop[-1] == ' ' || stop[-1] == '\t'))
            stop--;
        bool continues = stop > at && stop[-1] == '\\' && *end != '\0';
        joined = nl_memory_check(realloc(joined, size + (size_t)(stop - at) + 1));
        memcpy(joined + size, at, (size_t)(stop - at));
        size += (size_t)(stop - at) - (continues ? 1 : 0);
        if (!continues) {
            joined[size] = '\0';
            ok = sections_take_line(s, joined, joined + size, first);
            size = 0;
        }
        at = *end == '\0' ? end : end + 1;
    }
    free(joined);
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
    char *dollar;
    for (size_t from = 0; (dollar = strstr(*text + from, "${")) != NULL;) {
        char *end = strchr(dollar, '}'), *replaced;
        const char *value = end != NULL ? find_parameter(s, dollar + 2, (size_t)(end - dollar - 2), parameters) : NULL;
        if (value == NULL)
            return nl_sections_error(s, line, "no [parameter] for %.*s", end != NULL ? (int)(end + 1 - dollar) : 20,
                                     dollar);
        from = (size_t)(dollar - *text) + strlen(value);
        replaced = program_format("%.*s%s%s", (int)(dollar - *text), *text, value, end + 1);
        free(*text);
        *text = replaced;
    }
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
    *s = (nl_sections){.file = sections_copy(file, strlen(file))};
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
