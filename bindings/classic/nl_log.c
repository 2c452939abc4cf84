#include "nl_private.h"

#include "nl_log.h"

#include <stdlib.h>
#include <string.h>

typedef struct nl_module {
    struct nl_module *next;
    NL_log_T log;
    char name[];
} nl_module;

static pthread_rwlock_t modules_lock = PTHREAD_RWLOCK_INITIALIZER;
static nl_module *modules; /* protected by modules_lock */

static nl_module *module_find(const char *name)
{
    nl_module *at = modules;
    while (at != NULL && strcmp(at->name, name) != 0)
        at = at->next;
    return at;
}

/* Makes log the log of a module, and closes the module's previous log. Returns false if memory runs out. */
static bool module_set(const char *name, NL_log_T log)
{
    pthread_rwlock_wrlock(&modules_lock);
    nl_module *module = module_find(name);
    if (module == NULL && (module = calloc(1, sizeof *module + strlen(name) + 1)) != NULL) {
        memcpy(module->name, name, strlen(name) + 1);
        module->next = modules;
        modules = module;
    }
    NL_log_T before = NULL;
    if (module != NULL) {
        before = module->log;
        module->log = log;
    }
    pthread_rwlock_unlock(&modules_lock);
    NL_close(before);
    return module != NULL;
}

static NL_result_t module_add(const char *name, const char *url, NL_level_t level, const char *format,
                              va_list *arguments)
{
    NL_log_T log = name != NULL ? NL_open(url) : NULL;
    if (log == NULL)
        return LOST;
    NL_set_level(log, level);
    NL_result_t result = nl_classic_set_constants(log, format, arguments);
    if (!module_set(name, log)) {
        NL_close(log);
        return LOST;
    }
    return result;
}

NL_result_t NL_logger_module(const char *module, const char *url, NL_level_t level, NL_type_t type, const char *format,
                             ...)
{
    (void)type;
    va_list arguments;
    va_start(arguments, format);
    NL_result_t result = module_add(module, url, level, format, &arguments);
    va_end(arguments);
    return result;
}

NL_result_t NL_logger_module_const(const char *module, const char *url, NL_level_t level, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    NL_result_t result = module_add(module, url, level, format, &arguments);
    va_end(arguments);
    return result;
}

void NL_logger_del(void)
{
    pthread_rwlock_wrlock(&modules_lock);
    nl_module *all = modules;
    modules = NULL;
    pthread_rwlock_unlock(&modules_lock);
    while (all != NULL) {
        nl_module *next = all->next;
        NL_close(all->log);
        free(all);
        all = next;
    }
}

static NL_result_t module_write(const char *name, NL_level_t level, const char *event, const char *format,
                                va_list *arguments)
{
    NL_result_t result = LOST;
    if (pthread_rwlock_rdlock(&modules_lock) != 0)
        return LOST;
    nl_module *module = name != NULL ? module_find(name) : NULL;
    if (module != NULL)
        result = nl_classic_write(module->log, 0, level, event, format, arguments);
    pthread_rwlock_unlock(&modules_lock);
    return result;
}

#define MODULE_FUNCTION(NAME, LEVEL)                                                                                   \
    NL_result_t NAME(const char *module, const char *event, const char *format, ...)                                   \
    {                                                                                                                  \
        va_list arguments;                                                                                             \
        va_start(arguments, format);                                                                                   \
        NL_result_t result = module_write(module, LEVEL, event, format, &arguments);                                   \
        va_end(arguments);                                                                                             \
        return result;                                                                                                 \
    }

MODULE_FUNCTION(NL_fatal, NL_LVL_FATAL)
MODULE_FUNCTION(NL_error, NL_LVL_ERROR)
MODULE_FUNCTION(NL_warn, NL_LVL_WARN)
MODULE_FUNCTION(NL_info, NL_LVL_INFO)
MODULE_FUNCTION(NL_debug, NL_LVL_DEBUG)
MODULE_FUNCTION(NL_debug1, NL_LVL_DEBUG1)
MODULE_FUNCTION(NL_debug2, NL_LVL_DEBUG2)
MODULE_FUNCTION(NL_debug3, NL_LVL_DEBUG3)
