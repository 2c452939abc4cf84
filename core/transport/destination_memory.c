/*
 * The memory:NAME destination. The process keeps the bytes under a name, for tests and for programs that read their own
 * log.
 */
#include "config.h"

#include "transport/destination.h"

#include "base/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct named_memory {
    struct named_memory *next;
    char *name;
    nl_buffer bytes;
} named_memory;

typedef struct memory_destination {
    nl_destination base;
    char *name;
} memory_destination;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static named_memory *memories;

/* Locks the mutex. Otherwise, another thread could hold the mutex during fork, and the child process would wait
 * forever. */
static void before_fork(void)
{
    pthread_mutex_lock(&mutex);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&mutex);
}

/* Registers the fork handlers before those of logs, so that fork takes this module's lock after the locks of logs. */
__attribute__((constructor(101))) static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

/* Returns the address of the pointer to the memory with this name, or the address at which to store a new pointer. */
static named_memory **destination_memory_find(const char *name)
{
    named_memory **at = &memories;
    while (*at != NULL && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

static named_memory *find_or_add(const char *name)
{
    named_memory **at = destination_memory_find(name);
    if (*at != NULL)
        return *at;
    named_memory *added = calloc(1, sizeof *added);
    char *copy = strdup(name);
    if (added == NULL || copy == NULL) {
        nl_memory_failed();
        free(added);
        free(copy);
        return NULL;
    }
    added->name = copy;
    *at = added;
    return added;
}

static nl_status memory_write(nl_destination *destination, nl_level level, const char *data, size_t size,
                              size_t *written)
{
    (void)level;
    pthread_mutex_lock(&mutex);
    named_memory *memory = find_or_add(((memory_destination *)destination)->name);
    bool good = memory != NULL && nl_buffer_append(&memory->bytes, data, size);
    pthread_mutex_unlock(&mutex);
    *written = good ? size : 0;
    return good ? NL_OK : NL_FAILED;
}

static nl_status memory_close(nl_destination *destination, bool keep)
{
    (void)keep;
    free(((memory_destination *)destination)->name);
    free(destination);
    return NL_OK;
}

static const nl_destination_kind memory_kind = {.write = memory_write, .close = memory_close};

nl_destination *nl_memory_destination_open(const nl_url *url)
{
    memory_destination *memory = nl_memory_check(calloc(1, sizeof *memory));
    if (memory == NULL)
        return NULL;
    memory->base.kind = &memory_kind;
    memory->name = nl_memory_check(strdup(url->path));
    pthread_mutex_lock(&mutex);
    bool good = memory->name != NULL && find_or_add(memory->name) != NULL;
    pthread_mutex_unlock(&mutex);
    if (good)
        return &memory->base;
    memory_close(&memory->base, false);
    return NULL;
}

bool nl_memory_read(const char *name, nl_buffer *out)
{
    pthread_mutex_lock(&mutex);
    named_memory *memory = *destination_memory_find(name);
    bool good = false;
    if (memory != NULL)
        good = nl_buffer_append(out, memory->bytes.data, memory->bytes.size);
    pthread_mutex_unlock(&mutex);
    return good;
}

void nl_memory_free(const char *name)
{
    pthread_mutex_lock(&mutex);
    named_memory **at = destination_memory_find(name), *memory = *at;
    if (memory != NULL)
        *at = memory->next;
    pthread_mutex_unlock(&mutex);
    if (memory == NULL)
        return;
    nl_buffer_free(&memory->bytes);
    free(memory->name);
    free(memory);
}
