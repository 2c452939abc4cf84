#include "config.h"

#include "choice.h"

#include "base/error.h"
#include "base/memory.h"
#include "rights.h"
#include "base/option.h"
#include "program/program.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENT_NAME_SIZE = 128 };

/* ---- names ---- */

static void add_name(event_names *names, const char *system, const char *event)
{
    names->list = nl_memory_check(reallocarray(names->list, names->count + 1, sizeof *names->list));
    event_name *name = &names->list[names->count++];
    *name = (event_name){.system = nl_memory_check(strdup(system)), .event = nl_memory_check(strdup(event))};
}

static bool is_event_directory(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) &&
           strcmp(entry->d_name, "enable") != 0 && strcmp(entry->d_name, "filter") != 0;
}

static bool read_system(event_names *names, const char *events, const char *system)
{
    char *path = program_format("%s/%s", events, system);
    DIR *directory = opendir(path);
    if (directory == NULL)
        rights_set_open_error(path);
    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;)
        if (is_event_directory(entry))
            add_name(names, system, entry->d_name);
    free(path);
    if (directory != NULL)
        closedir(directory);
    return directory != NULL;
}

static int order_event_names(const void *a, const void *b)
{
    const event_name *left = a, *right = b;
    int systems = strcmp(left->system, right->system);
    return systems != 0 ? systems : strcmp(left->event, right->event);
}

bool event_names_read(event_names *names, const tracing *t)
{
    *names = (event_names){0};
    char *events = tracing_path(t, "events");
    DIR *directory = opendir(events);
    bool good = directory != NULL;
    if (!good)
        rights_set_open_error(events);
    /* skip the system ftrace, whose events describe records of tracers and cannot be enabled */
    for (struct dirent *entry; good && (entry = readdir(directory)) != NULL;)
        if (is_event_directory(entry) && entry->d_type == DT_DIR && strcmp(entry->d_name, "ftrace") != 0)
            good = read_system(names, events, entry->d_name);
    if (directory != NULL)
        closedir(directory);
    free(events);
    if (good && names->count > 0)
        qsort(names->list, names->count, sizeof *names->list, order_event_names);
    if (!good)
        event_names_free(names);
    return good;
}

void event_names_free(event_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->list[i].system);
        free(names->list[i].event);
    }
    free(names->list);
    *names = (event_names){0};
}

/* ---- patterns ---- */

static void fail_unknown_event(const event_names *names, const char *pattern)
{
    nl_option_nearest nearest = {0};
    char(*full)[EVENT_NAME_SIZE] = nl_memory_check(calloc(names->count + 1, sizeof *full)), text[EVENT_NAME_SIZE];
    snprintf(text, sizeof text, "%s", pattern);
    char *separator = strpbrk(text, ":.");
    if (separator != NULL)
        *separator = ':';
    for (size_t i = 0; i < names->count; i++) {
        /* for a pattern without a system, suggest names of events */
        snprintf(full[i], sizeof full[i], "%s:%s", names->list[i].system, names->list[i].event);
        nl_option_find_nearest(&nearest,
                               (nl_option[]){{.name = separator != NULL ? full[i] : names->list[i].event}, {0}}, text);
    }
    if (nearest.name != NULL)
        nl_error_set(NL_ERROR_UNSUPPORTED, "this kernel has no event \"%s\"; did you mean %s?", pattern, nearest.name);
    else
        nl_error_set(NL_ERROR_UNSUPPORTED, "this kernel has no event \"%s\"; nlkernel list prints all events", pattern);
    free(full);
}

bool event_name_matches(const char *system, const char *event, const char *pattern)
{
    size_t size = strcspn(pattern, ":.");
    if (pattern[size] == '\0')
        return fnmatch(pattern, system, 0) == 0 || fnmatch(pattern, event, 0) == 0;
    char *first = nl_memory_check(strndup(pattern, size));
    bool matches = fnmatch(first, system, 0) == 0 && fnmatch(pattern + size + 1, event, 0) == 0;
    free(first);
    return matches;
}

bool event_names_choose(event_names *names, const char *pattern)
{
    bool any = false, full = strpbrk(pattern, ":.") != NULL && strpbrk(pattern, "*?[") == NULL;
    for (size_t i = 0; i < names->count; i++) {
        event_name *name = &names->list[i];
        if (!event_name_matches(name->system, name->event, pattern))
            continue;
        any = name->chosen = true;
        name->named = name->named || full;
    }
    if (!any)
        fail_unknown_event(names, pattern);
    return any;
}

/* ---- descriptions ---- */

bool kernel_events_read(kernel_events *events, const event_names *names, const tracing *t)
{
    *events =
        (kernel_events){.list = nl_memory_check(calloc(names->count + KERNEL_EVENTS_TRACED_MAX, sizeof *events->list))};
    for (size_t i = 0; i < names->count; i++) {
        const event_name *name = &names->list[i];
        if (!name->chosen)
            continue;
        if (kernel_event_read(t, name->system, name->event, &events->list[events->count])) {
            events->count++;
        } else if (name->named) {
            kernel_events_free(events);
            return false;
        }
    }
    return true;
}
