#include "config.h"

#include "choice.h"

#include "base/error.h"
#include "base/memory.h"
#include "rights.h"
#include "program/program.h"

#include <dirent.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUGGESTIONS = 3, EVENT_NAME_MAX = 128 };

/* ---- what there is ---- */

static void add_name(event_names *names, const char *system, const char *event)
{
    names->list = nl_memory_check(reallocarray(names->list, names->count + 1, sizeof *names->list));
    event_name *name = &names->list[names->count++];
    *name = (event_name){.system = nl_memory_check(strdup(system)), .event = nl_memory_check(strdup(event))};
}

static bool is_folder(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) &&
           strcmp(entry->d_name, "enable") != 0 && strcmp(entry->d_name, "filter") != 0;
}

static bool read_system(event_names *names, const char *events, const char *system)
{
    char *path = program_format("%s/%s", events, system);
    DIR *folder = opendir(path);
    if (folder == NULL)
        rights_explain_denied(path);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;)
        if (is_folder(entry))
            add_name(names, system, entry->d_name);
    free(path);
    if (folder != NULL)
        closedir(folder);
    return folder != NULL;
}

static int order(const void *a, const void *b)
{
    const event_name *left = a, *right = b;
    int systems = strcmp(left->system, right->system);
    return systems != 0 ? systems : strcmp(left->event, right->event);
}

bool event_names_read(event_names *names, const tracing *t)
{
    *names = (event_names){0};
    char *events = tracing_path(t, "events");
    DIR *folder = opendir(events);
    bool good = folder != NULL;
    if (!good)
        rights_explain_denied(events);
    /* The system ftrace is no source of events: it says how the tracers write theirs. */
    for (struct dirent *entry; good && (entry = readdir(folder)) != NULL;)
        if (is_folder(entry) && entry->d_type == DT_DIR && strcmp(entry->d_name, "ftrace") != 0)
            good = read_system(names, events, entry->d_name);
    if (folder != NULL)
        closedir(folder);
    free(events);
    if (good && names->count > 0)
        qsort(names->list, names->count, sizeof *names->list, order);
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

/* ---- names that are like one that is none ---- */

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* How many letters must be put in, taken out or changed to make b of a. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[EVENT_NAME_MAX + 1];
    size_t width = strnlen(b, EVENT_NAME_MAX), height = strnlen(a, EVENT_NAME_MAX);
    for (unsigned i = 0; i <= width; i++)
        row[i] = i;
    for (unsigned y = 1; y <= height; y++) {
        unsigned corner = row[0];
        row[0] = y;
        for (size_t x = 1; x <= width; x++) {
            unsigned above = row[x];
            row[x] = least(least(row[x] + 1, row[x - 1] + 1), corner + (a[y - 1] != b[x - 1]));
            corner = above;
        }
    }
    return row[width];
}

/* distance, or UINT_MAX when that is more than a slip of the fingers. */
static unsigned slip(const char *written, const char *name)
{
    unsigned apart = distance(written, name);
    return apart <= 1 + strlen(written) / 3 ? apart : UINT_MAX;
}

/* How far a name is from what was written: that may lack the system, or be a part of it. */
static unsigned unlikeness(const event_name *name, const char *pattern)
{
    char full[EVENT_NAME_MAX], system[EVENT_NAME_MAX];
    const char *colon = strpbrk(pattern, ":."), *event = colon != NULL ? colon + 1 : pattern;
    snprintf(full, sizeof full, "%s:%s", name->system, name->event);
    snprintf(system, sizeof system, "%.*s", (int)(event - pattern - (colon != NULL)), pattern);
    if (strpbrk(event, "*?[") != NULL)
        return colon != NULL ? slip(system, name->system) : UINT_MAX;
    unsigned by_event = slip(event, name->event);
    if (by_event == UINT_MAX && strlen(event) >= 4 && strstr(name->event, event) != NULL)
        by_event = 1;
    if (by_event != UINT_MAX && colon != NULL)
        by_event++; /* the system is another one */
    return least(slip(pattern, full), by_event);
}

static void say_none(const event_names *names, const char *pattern)
{
    const event_name *best[SUGGESTIONS] = {NULL};
    unsigned marks[SUGGESTIONS];
    size_t found = 0;
    for (size_t i = 0; i < names->count; i++) {
        unsigned mark = unlikeness(&names->list[i], pattern);
        if (mark == UINT_MAX || (found == SUGGESTIONS && mark >= marks[found - 1]))
            continue;
        size_t at = found < SUGGESTIONS ? found++ : SUGGESTIONS - 1;
        for (; at > 0 && marks[at - 1] > mark; at--) {
            marks[at] = marks[at - 1];
            best[at] = best[at - 1];
        }
        marks[at] = mark;
        best[at] = &names->list[i];
    }
    char text[SUGGESTIONS * (EVENT_NAME_MAX + 4)] = "nlkernel list shows what there is";
    while (found > 1 && marks[found - 1] > marks[0] + 1)
        found--; /* far less like it than the first */
    for (size_t i = 0, size = 0; i < found; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%.60s:%.60s%s", i == 0 ? "is it " : " or ",
                                 best[i]->system, best[i]->event, i + 1 == found ? "?" : "");
    nl_error_set(NL_ERROR_UNSUPPORTED, "this kernel has no event \"%s\": %s", pattern, text);
}

/* ---- patterns ---- */

static bool is_meant(const event_name *name, const char *system, const char *event)
{
    if (event != NULL)
        return fnmatch(system, name->system, 0) == 0 && fnmatch(event, name->event, 0) == 0;
    return fnmatch(system, name->system, 0) == 0 || fnmatch(system, name->event, 0) == 0;
}

bool event_names_choose(event_names *names, const char *pattern)
{
    char *system = nl_memory_check(strdup(pattern));
    char *event = strpbrk(system, ":.");
    if (event != NULL)
        *event++ = '\0';
    bool any = false, exact = event != NULL && strpbrk(pattern, "*?[") == NULL;
    for (size_t i = 0; i < names->count; i++) {
        event_name *name = &names->list[i];
        if (!is_meant(name, system, event))
            continue;
        any = name->chosen = true;
        name->named = name->named || exact;
    }
    free(system);
    if (!any)
        say_none(names, pattern);
    return any;
}

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
