#include "config.h"

#include "base/library.h"

#include "base/error.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static bool library_find_functions(nl_library *l)
{
    void *handle = dlopen(l->file, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return nl_error_false(NL_ERROR_UNSUPPORTED, "cannot load the library: %s", dlerror());
    for (size_t i = 0; i < l->count; i++) {
        void *function = dlsym(handle, l->names[i]);
        if (function == NULL)
            return nl_error_false(NL_ERROR_UNSUPPORTED, "cannot use the library: %s", dlerror());
        memcpy((char *)l->functions + i * sizeof function, &function, sizeof function);
    }
    return true;
}

bool nl_library_load(nl_library *l)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    l->is_loaded = l->is_loaded || library_find_functions(l);
    bool is_loaded = l->is_loaded;
    pthread_mutex_unlock(&lock);
    return is_loaded;
}
