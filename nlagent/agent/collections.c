#include "config.h"

#include "agent/collections.h"

#include "program/program.h"
#include "base/error.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COLLECTIONS_MAX = 32, OPTIONS_MAX = 8 };

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

collections *collections_new(agent *a)
{
    collections *c = nl_memory_check(calloc(1, sizeof *c));
    c->agent = a;
    return c;
}

void collections_set_directory(collections *c, const char *url)
{
    free(c->directory);
    c->directory = url != NULL ? strdup(url) : NULL;
}

static void free_one(collection *one)
{
    if (one->process != NULL)
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
        free_one(one);
    }
    free(c->directory);
    free(c);
}

/* nlagent writes what it sends away on standard output never, so nothing comes. */
static void on_record(void *user, const nl_record *record)
{
    (void)user, (void)record;
}

static void on_ended(void *user, const char *reason, double again_s)
{
    collection *one = user;
    nl_record *record = agent_record(one->agent, NL_WARNING, "Nlagentd.CollectionFailed");
    nl_record_add_string(record, "COLLECTION", one->name, strlen(one->name));
    nl_record_add_string(record, "REASON", reason, strlen(reason));
    nl_record_add_double(record, "AGAIN", again_s);
    if (one->agent->log != NULL)
        nl_write_record(one->agent->log, record);
    nl_record_free(record);
}

static void on_started(void *user, bool again)
{
    (void)user, (void)again;
}

static void collections_add(char **to, size_t *count, const char *option, const char *value)
{
    if (value == NULL)
        return;
    to[*count] = program_format("%s%s", option, value);
    ++*count;
}

char *collections_client_path(void)
{
    char path[4096];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 16);
    while (size > 0 && path[size - 1] != '/')
        size--;
    memcpy(path + (size > 0 ? size : 0), "nlagent", sizeof "nlagent");
    return strdup(access(path, X_OK) == 0 ? path : BINDIR "/nlagent");
}

static size_t count_of(const char **list)
{
    size_t count = 0;
    while (list[count] != NULL)
        count++;
    return count;
}

static char **make_command(const collections *c, const collection_wish *w)
{
    size_t count = 0;
    char **command =
        nl_memory_check(calloc(OPTIONS_MAX + count_of(w->urls) + count_of(w->sensors) + 1, sizeof *command));
    command[count++] = collections_client_path();
    collections_add(command, &count, "", "collect");
    collections_add(command, &count, "--directory=", c->directory);
    collections_add(command, &count, "--dest=", w->destination);
    collections_add(command, &count, "--interval=", w->interval);
    collections_add(command, &count, "--where=", w->where);
    collections_add(command, &count, "--hosts=", w->hosts);
    for (const char **url = w->urls; *url != NULL; url++)
        collections_add(command, &count, "--agent=", *url);
    collections_add(command, &count, "", "--"); /* nothing of what follows is an option */
    for (const char **sensor = w->sensors; *sensor != NULL; sensor++)
        collections_add(command, &count, "", *sensor);
    return command;
}

const char *collections_begin(collections *c, const collection_wish *w)
{
    const process_watcher watcher = {on_record, on_ended, on_started, NULL};
    if (c->count == COLLECTIONS_MAX) {
        nl_error_set(NL_ERROR_LIMIT, "there are %d collections, which is as many as may be", COLLECTIONS_MAX);
        return NULL;
    }
    collection *one = nl_memory_check(calloc(1, sizeof *one));
    one->agent = c->agent;
    snprintf(one->name, sizeof one->name, "collection-%u", ++c->number);
    one->definition.name = one->name;
    one->definition.program = make_command(c, w);
    one->spec = spec_parse(one->name);
    process_watcher own = watcher;
    own.user = one;
    one->process = process_new(c->agent->base, &c->agent->definitions, &one->definition, one->spec, 1, &own);
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
    collection *gone = *link;
    *link = gone->next;
    c->count--;
    free_one(gone);
    return true;
}
