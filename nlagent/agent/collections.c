#include "config.h"

#include "agent/collections.h"

#include "base/error.h"
#include "base/memory.h"
#include "program/program.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COLLECTIONS_MAX = 32, OPTIONS_MAX = 9 };

typedef struct collection {
    struct collection *next;
    agent *agent;
    char name[24];
    definition definition;
    sensor_spec *spec;
    sensor_process *process;
} collection;

struct collections {
    agent *agent;
    collection *first;
    char *directory;
    size_t count;
    unsigned number;
};

collections *collections_new(agent *a, const char *directory)
{
    collections *c = nl_memory_check(calloc(1, sizeof *c));
    c->agent = a;
    c->directory = directory != NULL ? program_copy(directory) : NULL;
    return c;
}

static void collection_free(collection *one)
{
    process_free(one->process);
    spec_free(one->spec);
    for (size_t i = 0; one->definition.program[i] != NULL; i++)
        free(one->definition.program[i]);
    free(one->definition.program);
    free(one);
}

void collections_free(collections *c)
{
    while (c->first != NULL) {
        collection *one = c->first;
        c->first = one->next;
        collection_free(one);
    }
    free(c->directory);
    free(c);
}

static void on_ended(void *user, const char *reason, double retry_s)
{
    const collection *one = user;
    nl_write(one->agent->log, NL_WARNING, "Nlagentd.CollectionFailed", "COLLECTION=%s REASON=%s AGAIN=%g", one->name,
             reason, retry_s);
}

char *collections_client_path(void)
{
    char path[4096];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 16);
    while (size > 0 && path[size - 1] != '/')
        size--;
    memcpy(path + (size > 0 ? size : 0), "nlagent", sizeof "nlagent");
    return program_copy(access(path, X_OK) == 0 ? path : BINDIR "/nlagent");
}

static size_t count_list(const char **list)
{
    size_t count = 0;
    while (list[count] != NULL)
        count++;
    return count;
}

/* Returns the command line of a collection's process, which is NULL-terminated. */
static char **make_command(const collections *c, const collection_options *o)
{
    const struct {
        const char *option, *value;
    } options[] = {{"--directory=", c->directory},
                   {"--dest=", o->destination},
                   {"--interval=", o->interval},
                   {"--where=", o->where},
                   {"--hosts=", o->hosts}};
    size_t count = 0;
    char **command =
        nl_memory_check(calloc(OPTIONS_MAX + count_list(o->agents) + count_list(o->sensors), sizeof *command));
    command[count++] = collections_client_path();
    command[count++] = program_copy("collect");
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (options[i].value != NULL)
            command[count++] = program_format("%s%s", options[i].option, options[i].value);
    for (const char **url = o->agents; *url != NULL; url++)
        command[count++] = program_format("--agent=%s", *url);
    command[count++] = program_copy("--"); /* so that nlagent does not parse the sensors as options */
    for (const char **sensor = o->sensors; *sensor != NULL; sensor++)
        command[count++] = program_copy(*sensor);
    return command;
}

const char *collections_start(collections *c, const collection_options *o)
{
    if (c->count == COLLECTIONS_MAX) {
        nl_error_set(NL_ERROR_LIMIT, "the maximum number of collections (%d) is running", COLLECTIONS_MAX);
        return NULL;
    }
    collection *one = nl_memory_check(calloc(1, sizeof *one));
    const process_watcher watcher = {.on_ended = on_ended, .user = one};
    one->agent = c->agent;
    snprintf(one->name, sizeof one->name, "collection-%u", ++c->number);
    one->definition.name = one->name;
    one->definition.program = make_command(c, o);
    one->spec = spec_parse(one->name);
    one->process = process_new(c->agent->base, &one->definition, one->spec, 1, &watcher);
    one->next = c->first;
    c->first = one;
    c->count++;
    return one->name;
}

bool collections_end(collections *c, const char *name)
{
    collection **link = &c->first;
    while (*link != NULL && strcmp((*link)->name, name) != 0)
        link = &(*link)->next;
    if (*link == NULL)
        return false;
    collection *ended = *link;
    *link = ended->next;
    c->count--;
    collection_free(ended);
    return true;
}
