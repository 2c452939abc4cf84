#include "config.h"

#include "rules_file.h"

#include "base/error.h"
#include "base/memory.h"
#include "filter/filter_text.h"
#include "program/program.h"

#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUFFIX ".rules"

/* ---- where they are ---- */

/* The folders, with : between: the user's, those beside the program, as it is built, and installed. */
static char *folders(void)
{
    char program[PATH_MAX] = "";
    ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);
    program[size > 0 ? size : 0] = '\0';
    const char *own = getenv("NETLOGGER_RULES"), *folder = dirname(program);
    return program_format("%s%s%s/rules:%s/../share/netlogger/rules", own != NULL ? own : "", own != NULL ? ":" : "",
                          folder, folder);
}

char *rules_file_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
    size_t size = strlen(base), suffix = strlen(SUFFIX);
    if (size > suffix && strcmp(base + size - suffix, SUFFIX) == 0)
        size -= suffix;
    return program_format("%.*s", (int)size, base);
}

char *rules_file_find(const char *name)
{
    if (strchr(name, '/') != NULL)
        return program_copy(name);
    char *all = folders(), *save = NULL, *path = NULL;
    for (char *folder = strtok_r(all, ":", &save); path == NULL && folder != NULL;
         folder = strtok_r(NULL, ":", &save)) {
        path = program_format("%s/%s" SUFFIX, folder, name);
        if (access(path, R_OK) != 0) {
            free(path);
            path = NULL;
        }
    }
    free(all);
    if (path == NULL)
        nl_error_set(NL_ERROR_NOT_FOUND,
                     "there are no rules \"%s\": nlkernel rules list shows what there is, and ./FILE is a file", name);
    return path;
}

typedef struct named {
    char *name, *path;
} named;

static int order_names(const void *a, const void *b)
{
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

void rules_file_each(void (*visit)(const char *path, void *user), void *user)
{
    char *all = folders(), *save = NULL;
    glob_t found = {0};
    int flags = 0;
    for (char *folder = strtok_r(all, ":", &save); folder != NULL; folder = strtok_r(NULL, ":", &save)) {
        char *pattern = program_format("%s/*" SUFFIX, folder);
        glob(pattern, flags, NULL, &found);
        flags = GLOB_APPEND;
        free(pattern);
    }
    named *list = nl_memory_check(calloc(found.gl_pathc + 1, sizeof *list));
    size_t count = 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char *name = rules_file_name(found.gl_pathv[i]);
        size_t same = 0;
        while (same < count && strcmp(list[same].name, name) != 0)
            same++;
        if (same == count) /* the first folder's is meant */
            list[count++] = (named){name, found.gl_pathv[i]};
        else
            free(name);
    }
    if (count > 0)
        qsort(list, count, sizeof *list, order_names);
    for (size_t i = 0; i < count; i++) {
        visit(list[i].path, user);
        free(list[i].name);
    }
    free(list);
    globfree(&found);
    free(all);
}

/* ---- what they say ---- */

static bool rules_file_take_event(rules_file *s, const nl_section *section)
{
    const char *need = nl_section_value(section, "need"), *where = nl_section_value(section, "where");
    for (size_t i = 0; i < section->setting_count; i++)
        if (strcmp(section->settings[i].key, "need") != 0 && strcmp(section->settings[i].key, "where") != 0)
            return nl_sections_error(&s->sections, section->settings[i].line, "need or where is wanted");
    if (*section->name == '\0')
        return nl_sections_error(&s->sections, section->line, "[event SYSTEM:EVENT] is wanted");
    s->patterns = nl_memory_check(reallocarray(s->patterns, s->pattern_count + 1, sizeof *s->patterns));
    s->patterns[s->pattern_count++] =
        program_format("%s%s", need != NULL && strcmp(need, "no") == 0 ? "?" : "", section->name);
    if (where == NULL)
        return true;
    char *event = program_copy(section->name), *colon = strchr(event, ':');
    if (colon != NULL)
        *colon = '.';
    char *joined = program_format("%s%s(NL.EVNT !~ '%s' || (%s))", s->filter != NULL ? s->filter : "",
                                  s->filter != NULL ? " && " : "", event, where);
    free(event);
    free(s->filter);
    s->filter = joined;
    return true;
}

bool rules_file_read(rules_file *s, const char *name, const char *const *parameters)
{
    *s = (rules_file){.path = rules_file_find(name)};
    if (s->path == NULL)
        return false;
    s->name = rules_file_name(s->path);
    bool good = nl_sections_read(&s->sections, s->path, parameters);
    for (size_t i = 0; good && i < s->sections.count; i++) {
        const nl_section *section = &s->sections.list[i];
        if (strcmp(section->kind, "rules") == 0)
            s->title = nl_section_value(section, "title");
        else if (strcmp(section->kind, "event") == 0)
            good = rules_file_take_event(s, section);
    }
    if (good && s->title == NULL)
        s->title = s->name;
    if (!good)
        rules_file_free(s);
    return good;
}

bool rules_file_choose(const rules_file *s, recording_options *o)
{
    o->patterns =
        nl_memory_check(reallocarray(o->patterns, o->pattern_count + s->pattern_count + 1, sizeof *o->patterns));
    for (size_t i = 0; i < s->pattern_count; i++)
        o->patterns[o->pattern_count++] = s->patterns[i];
    if (s->filter == NULL)
        return true;
    char *both;
    const char *other = o->filter != NULL ? nl_filter_text(o->filter) : NULL;
    both = program_format("%s%s%s%s", other != NULL ? "(" : "", other != NULL ? other : "",
                          other != NULL ? ") && " : "", s->filter);
    nl_filter *filter = nl_filter_parse(both);
    free(both);
    nl_filter_free(o->filter);
    o->filter = filter;
    return filter != NULL;
}

void rules_file_free(rules_file *s)
{
    for (size_t i = 0; i < s->pattern_count; i++)
        free(s->patterns[i]);
    free(s->patterns);
    free(s->filter);
    free(s->name);
    free(s->path);
    nl_sections_free(&s->sections);
    *s = (rules_file){0};
}
