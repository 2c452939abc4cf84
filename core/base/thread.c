#include "config.h"

#include "base/thread.h"

#include <link.h>

/* Adds the size and alignment of a module's thread-local variables to *user, which is a size_t. */
static int add_thread_local_size(struct dl_phdr_info *module, size_t size, void *user)
{
    (void)size;
    for (ElfW(Half) i = 0; i < module->dlpi_phnum; i++)
        if (module->dlpi_phdr[i].p_type == PT_TLS)
            *(size_t *)user += module->dlpi_phdr[i].p_memsz + module->dlpi_phdr[i].p_align;
    return 0;
}

int nl_thread_create_small(pthread_t *thread, size_t stack_size, void *(*run)(void *user), void *user)
{
    pthread_attr_t attributes;
    dl_iterate_phdr(add_thread_local_size, &stack_size);
    int error = pthread_attr_init(&attributes);
    if (error != 0)
        return error;
    pthread_attr_setstacksize(&attributes, stack_size);
    error = nl_thread_create(thread, &attributes, run, user);
    pthread_attr_destroy(&attributes);
    return error;
}
