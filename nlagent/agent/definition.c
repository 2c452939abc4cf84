#include "config.h"

#include "agent/definition.h"

#include "program/program.h"
#include "service/tracefs_mount.h"
#include "base/error.h"
#include "base/memory.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    NAME_SIZE = 64,
    OTHERS_MAX = 9 /* number of arguments: --event, --rules, --where and --tracefs, each with its value, and NULL */
};

static definition *definition_add(definitions *all, const char *name, const char *what)
{
    definition *d = nl_memory_check(calloc(1, sizeof *d));
    d->name = program_copy(name);
    d->what = program_copy(what);
    d->arguments_help = program_copy("");
    d->next = all->first;
    all->first = d;
    return d;
}

/*
 * Returns the path of a program, which the caller frees. Returns `configured` if it is not NULL. Otherwise, if this
 * program runs in a build tree, returns the path `beside` relative to this program's directory. In all other cases,
 * returns the path `installed`.
 */
static char *find_program(const char *configured, const char *beside, const char *installed)
{
    char path[4096];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 64);
    if (configured != NULL)
        return program_copy(configured);
    for (path[size > 0 ? size : 0] = '\0'; size > 0 && path[size - 1] != '/';)
        path[--size] = '\0';
    snprintf(path + (size > 0 ? size : 0), 64, "%s", beside);
    return program_copy(size > 0 && access(path, X_OK) == 0 ? path : installed);
}

void definitions_init(definitions *all, const char *program)
{
    all->first = all->retired = NULL;
    all->tracefs = NULL;
    pthread_mutex_init(&all->lock, NULL);
    all->program = find_program(program, "sensor", PKGLIBEXECDIR "/sensor");
    all->nlkernel = find_program(NULL, "../nlkernel/nlkernel", BINDIR "/nlkernel");
    definition *kernel = definition_add(all, "kernel", "kernel events, as nlkernel live logs them");
    kernel->kernel = true;
    kernel->arguments = " event filter rules ";
    free(kernel->arguments_help);
    kernel->arguments_help = program_copy("event=SYSTEM:EVENT,... (may contain *); rules=NAME (see nlkernel rules "
                                          "list); filter=EXPRESSION. Either event or rules is required");
    size_t count = 0;
    while (sensor_kinds[count] != NULL)
        count++;
    while (count-- > 0) {
        const sensor_kind *k = sensor_kinds[count];
        definition *d = definition_add(all, k->name, k->what);
        d->arguments = k->arguments;
        d->required = k->required;
        d->fields = k->fields;
        d->beats = true;
        free(d->arguments_help);
        d->arguments_help = program_copy(k->arguments_help != NULL ? k->arguments_help : "");
    }
}

static void free_list(definition *first)
{
    for (definition *d = first, *next; d != NULL; d = next) {
        next = d->next;
        free(d->name);
        free(d->what);
        free(d->arguments_help);
        free(d->command);
        free(d);
    }
}

void definitions_free(definitions *all)
{
    free_list(all->first);
    free_list(all->retired);
    pthread_mutex_destroy(&all->lock);
    free(all->program);
    free(all->nlkernel);
    free(all->tracefs);
}

void definitions_mount_tracefs(definitions *all)
{
    int fd = tracefs_mount_find() == NULL ? tracefs_mount_detached() : -1;
    if (fd >= 0)
        all->tracefs = program_format("/proc/%d/fd/%d", (int)getpid(), fd);
}

bool definition_check_own(const char *text)
{
    char name[NAME_SIZE];
    size_t size = strcspn(text, "=");
    if (text[size] != '=' || text[size + 1] == '\0' || size >= sizeof name)
        return nl_error_false(NL_ERROR_INVALID, "expected NAME=COMMAND");
    snprintf(name, sizeof name, "%.*s", (int)size, text);
    sensor_spec *spec = spec_parse(name);
    bool good = spec != NULL && spec->count == 0;
    spec_free(spec);
    return good || nl_error_false(NL_ERROR_INVALID, "invalid sensor name");
}

static void add_own(definitions *all, const char *text)
{
    char name[NAME_SIZE], what[200];
    size_t size = strcspn(text, "=");
    snprintf(name, sizeof name, "%.*s", (int)size, text);
    snprintf(what, sizeof what, "output of \"%.150s\"", text + size + 1);
    definition_add(all, name, what)->command = program_copy(text + size + 1);
}

static bool is_defined_by(const definition *d, const char *text)
{
    size_t size = strlen(d->name);
    return d->command != NULL && strncmp(text, d->name, size) == 0 && text[size] == '=' &&
           strcmp(text + size + 1, d->command) == 0;
}

static bool has_own(const definitions *all, const char *text)
{
    const definition *d = all->first;
    while (d != NULL && !is_defined_by(d, text))
        d = d->next;
    return d != NULL;
}

void definitions_set_own(definitions *all, char *const *texts)
{
    pthread_mutex_lock(&all->lock);
    for (definition **link = &all->first, *d; (d = *link) != NULL;) {
        bool stays = d->command == NULL;
        for (char *const *text = texts; *text != NULL && !stays; text++)
            stays = is_defined_by(d, *text);
        if (stays) {
            link = &d->next;
            continue;
        }
        *link = d->next;
        d->next = all->retired;
        all->retired = d;
    }
    for (; *texts != NULL; texts++)
        if (!has_own(all, *texts))
            add_own(all, *texts);
    pthread_mutex_unlock(&all->lock);
}

const definition *definitions_find(const definitions *all, const char *name)
{
    const definition *d = all->first;
    while (d != NULL && strcmp(d->name, name) != 0)
        d = d->next;
    return d;
}

const definition *definitions_find_command(const definitions *all, const char *name, const char *command)
{
    const definition *const lists[] = {all->first, all->retired};
    for (size_t i = 0; i < 2; i++)
        for (const definition *d = lists[i]; d != NULL; d = d->next)
            if (strcmp(d->name, name) == 0 && (command == NULL) == (d->command == NULL) &&
                (command == NULL || strcmp(d->command, command) == 0))
                return d;
    return NULL;
}

bool definition_check(const definition *d, const sensor_spec *spec)
{
    const char *unknown = d->arguments != NULL ? spec_unknown(spec, d->arguments) : NULL;
    const char *rules = d->kernel ? spec_argument(spec, "rules") : NULL;
    if (unknown != NULL)
        return nl_error_false(NL_ERROR_INVALID, "sensor %s has no argument named \"%s\"", d->name, unknown);
    /* reject paths, because a client must not make nlkernel read a file */
    if (rules != NULL && (strchr(rules, '/') != NULL || *rules == '\0'))
        return nl_error_false(NL_ERROR_INVALID, "rules= must be the name of rules that nlkernel has, not a path");
    if (d->kernel && rules == NULL && spec_argument(spec, "event") == NULL)
        return nl_error_false(NL_ERROR_INVALID, "expected event=SYSTEM:EVENT or rules=NAME");
    return spec_has_required(spec, d->required);
}

static void execute_kernel(const definitions *all, const sensor_spec *spec)
{
    char *const begin[] = {all->nlkernel, "live", "--quiet", "--dest", "-"};
    size_t count = sizeof begin / sizeof begin[0], capacity = count + OTHERS_MAX;
    const char *filter = spec_argument(spec, "filter"), *events = spec_argument(spec, "event");
    const char *rules = spec_argument(spec, "rules");
    char *list = events != NULL ? program_copy(events) : NULL, *rest = list;
    for (const char *c = events; c != NULL && *c != '\0'; c++)
        capacity += *c == ',' ? 2 : 0; /* space for another --event option and its value */
    char **arguments = calloc(capacity, sizeof *arguments);
    if (arguments == NULL) {
        free(list);
        return;
    }
    memcpy(arguments, begin, sizeof begin);
    if (rules != NULL) {
        arguments[count++] = "--rules";
        arguments[count++] = (char *)rules;
    }
    for (char *event; (event = strsep(&rest, ",")) != NULL;) {
        arguments[count++] = "--event";
        arguments[count++] = event;
    }
    if (filter != NULL) {
        arguments[count++] = "--where";
        arguments[count++] = (char *)filter;
    }
    if (all->tracefs != NULL) {
        arguments[count++] = "--tracefs";
        arguments[count++] = all->tracefs;
    }
    execv(all->nlkernel, arguments);
    free(arguments);
    free(list);
}

/* Sets environment variables such as NL_ARGUMENT_host=dpss1. Characters other than letters and digits become '_'. */
static void set_environment(const sensor_spec *spec, double interval_s)
{
    char name[SPEC_SIZE_MAX + 16], value[32];
    snprintf(value, sizeof value, "%g", interval_s);
    setenv("NL_SENSOR_INTERVAL", value, 1);
    for (size_t i = 0; i < spec->count; i++) {
        snprintf(name, sizeof name, "NL_ARGUMENT_%s", spec->arguments[i].name);
        for (char *c = name; *c != '\0'; c++)
            *c = (char)(isalnum((unsigned char)*c) ? *c : '_');
        setenv(name, spec->arguments[i].value, 1);
    }
}

void definition_execute(const definitions *all, const definition *d, const sensor_spec *spec, double interval_s)
{
    char interval[32];
    snprintf(interval, sizeof interval, "--interval=%g", interval_s);
    unsetenv("NETLOGGER_DEST");
    set_environment(spec, interval_s);
    if (d->program != NULL)
        execv(d->program[0], d->program);
    else if (d->kernel)
        execute_kernel(all, spec);
    else if (d->command != NULL)
        execl("/bin/sh", "sh", "-c", d->command, (char *)NULL);
    else
        execl(all->program, "sensor", "--controlled", interval, spec->text, (char *)NULL);
}
