#include "config.h"

#include "rules_file.h"

#include "base/error.h"
#include "base/memory.h"
#include "program/program.h"

#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX ".rules"

/* ---- parameters ---- */

static bool rules_add_parameter(void *settings, const nl_option *row, const char *value)
{
    rules_parameters *p = settings;
    (void)row;
    if (strchr(value, '=') == NULL)
        return nl_error_false(NL_ERROR_INVALID, "\"%s\" is not NAME=VALUE", value);
    p->list = nl_memory_check(reallocarray(p->list, p->count + 2, sizeof *p->list));
    p->list[p->count++] = value;
    p->list[p->count] = NULL;
    return true;
}

const nl_option rules_parameter_options[] = {
    {.name = "set",
     .value = "NAME=VALUE",
     .repeatable = true,
     .set = rules_add_parameter,
     .help = "Set the parameter NAME of the rules; nlkernel rules show RULES lists the parameters"},
    {0},
};

/* ---- directories ---- */

typedef struct rules_environment {
    const char *directories;
} rules_environment;

const nl_option rules_environment_options[] = {
    {.name = "rules-directories",
     .value = "DIRECTORY:...",
     .environment = "NETLOGGER_RULES",
     NL_OPTION_MEMBER(rules_environment, directories),
     .help = "Directories of rules files, which nlkernel searches before the installed directory"},
    {0},
};

/*
 * Returns the directories to search, separated by colons: the directories of $NETLOGGER_RULES, the directory of the
 * build, and the installed directory. The caller frees the text.
 */
static char *rules_directories(void)
{
    char program[PATH_MAX] = "";
    ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);
    program[size > 0 ? size : 0] = '\0';
    const char *directory = dirname(program);
    rules_environment own = {0};
    nl_options_read_environment(rules_environment_options, &own);
    return program_format("%s%s%s/rules:%s/../share/netlogger/rules", own.directories != NULL ? own.directories : "",
                          own.directories != NULL ? ":" : "", directory, directory);
}

/* Returns the file name in `path` without the suffix of rules files. The caller frees the name. */
static char *rules_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
    size_t size = strlen(base), suffix = strlen(SUFFIX);
    bool has_suffix = size > suffix && strcmp(base + size - suffix, SUFFIX) == 0;
    return program_format("%.*s", (int)(has_suffix ? size - suffix : size), base);
}

static char *rules_find(const char *name)
{
    if (strchr(name, '/') != NULL)
        return program_copy(name);
    char *all = rules_directories(), *save = NULL, *path = NULL;
    for (char *directory = strtok_r(all, ":", &save); path == NULL && directory != NULL;
         directory = strtok_r(NULL, ":", &save)) {
        path = program_format("%s/%s" SUFFIX, directory, name);
        if (access(path, R_OK) != 0) {
            free(path);
            path = NULL;
        }
    }
    free(all);
    if (path == NULL)
        nl_error_set(NL_ERROR_NOT_FOUND, "%s: unknown rules; nlkernel rules list prints all names; a path needs a /",
                     name);
    return path;
}

static int order_rules_names(const void *a, const void *b)
{
    return strcmp(strrchr(*(char *const *)a, '/'), strrchr(*(char *const *)b, '/'));
}

void rules_file_each(void (*visit)(const char *name, void *user), void *user)
{
    char *all = rules_directories(), *save = NULL;
    glob_t found = {0};
    int flags = 0;
    for (char *directory = strtok_r(all, ":", &save); directory != NULL; directory = strtok_r(NULL, ":", &save)) {
        char *pattern = program_format("%s/*" SUFFIX, directory);
        glob(pattern, flags, NULL, &found);
        flags = GLOB_APPEND;
        free(pattern);
    }
    if (found.gl_pathc > 0)
        qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, order_rules_names);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        /* skip repeated names, because two directories may contain files with the same name */
        if (i > 0 && order_rules_names(&found.gl_pathv[i - 1], &found.gl_pathv[i]) == 0)
            continue;
        char *name = rules_name(found.gl_pathv[i]);
        visit(name, user);
        free(name);
    }
    globfree(&found);
    free(all);
}

/* ---- reading ---- */

static bool rules_add_event(rules_file *file, const nl_section *section)
{
    const char *need = nl_section_value(section, "need"), *where = nl_section_value(section, "where");
    for (size_t i = 0; i < section->setting_count; i++)
        if (strcmp(section->settings[i].key, "need") != 0 && strcmp(section->settings[i].key, "where") != 0)
            return nl_sections_error(&file->sections, section->settings[i].line, "expected \"need =\" or \"where =\"");
    if (*section->name == '\0')
        return nl_sections_error(&file->sections, section->line, "expected [event SYSTEM:EVENT]");
    file->patterns = nl_memory_check(reallocarray(file->patterns, file->pattern_count + 1, sizeof *file->patterns));
    file->patterns[file->pattern_count++] =
        program_format("%s%s", need != NULL && strcmp(need, "no") == 0 ? "?" : "", section->name);
    if (where == NULL)
        return true;
    char *event = program_copy(section->name), *colon = strchr(event, ':'), *before = file->filter;
    if (colon != NULL)
        *colon = '.';
    file->filter = program_format("%s%s(NL.EVNT !~ '%s' || (%s))", before != NULL ? before : "",
                                  before != NULL ? " && " : "", event, where);
    free(event);
    free(before);
    return true;
}

bool rules_file_read(rules_file *file, const char *name, const rules_parameters *parameters)
{
    *file = (rules_file){.path = rules_find(name)};
    if (file->path == NULL)
        return false;
    file->name = rules_name(file->path);
    file->title = file->name;
    bool ok = nl_sections_read(&file->sections, file->path, parameters != NULL ? parameters->list : NULL);
    for (size_t i = 0; ok && i < file->sections.count; i++) {
        const nl_section *section = &file->sections.list[i];
        const char *title = strcmp(section->kind, "rules") == 0 ? nl_section_value(section, "title") : NULL;
        if (title != NULL)
            file->title = title;
        if (strcmp(section->kind, "event") == 0)
            ok = rules_add_event(file, section);
    }
    if (!ok)
        rules_file_free(file);
    return ok;
}

bool rules_file_add_events(const rules_file *file, recording_options *o)
{
    for (size_t i = 0; i < file->pattern_count; i++)
        recording_options_add_pattern(o, file->patterns[i]);
    return file->filter == NULL || program_filter_narrow(&o->filter, file->filter);
}

void rules_file_free(rules_file *file)
{
    for (size_t i = 0; i < file->pattern_count; i++)
        free(file->patterns[i]);
    free(file->patterns);
    free(file->filter);
    free(file->name);
    free(file->path);
    nl_sections_free(&file->sections);
    *file = (rules_file){0};
}
