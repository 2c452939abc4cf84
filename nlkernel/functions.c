#include "config.h"

#include "functions.h"

#include "base/error.h"
#include "program/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *tracer_of(functions_kind kind)
{
    return kind == FUNCTIONS_GRAPH ? "function_graph" : "function";
}

static bool describe(kernel_events *events, const tracing *t, const char *name, const kallsyms *symbols)
{
    kernel_event *event = &events->list[events->count];
    if (!kernel_event_read(t, "ftrace", name, event)) {
        nl_error_prepend("--functions: this kernel has no such tracer (CONFIG_FUNCTION_TRACER, "
                         "CONFIG_FUNCTION_GRAPH_TRACER)");
        return false;
    }
    event->traced = true;
    event->symbols = symbols;
    events->count++;
    return true;
}

bool functions_describe(kernel_events *events, const tracing *t, functions_kind kind, const kallsyms *symbols)
{
    if (kind != FUNCTIONS_GRAPH)
        return describe(events, t, "function", symbols);
    return describe(events, t, "funcgraph_entry", symbols) && describe(events, t, "funcgraph_exit", symbols);
}

/* Whether word is one of those in text, which have blanks between. */
static bool has_word(const char *text, const char *word)
{
    size_t size = strlen(word);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += size)
        if ((at == text || strchr(" \n", at[-1]) != NULL) && (at[size] == '\0' || strchr(" \n", at[size]) != NULL))
            return true;
    return false;
}

/* A glob more into a file of filters. */
static bool add_filter(const instance *i, const char *file, const char *glob)
{
    int fd = instance_open(i, file, O_WRONLY | O_APPEND);
    if (fd < 0) {
        nl_error_prepend("--filter-function: this kernel can't choose functions");
        return false;
    }
    bool good = dprintf(fd, "%s\n", glob) >= 0; /* what has no end the kernel looks at when nobody can be told */
    int error = errno;
    close(fd);
    if (!good && error == EINVAL)
        nl_error_set(NL_ERROR_UNSUPPORTED,
                     "--filter-function %s: this kernel has no function of that name that can be traced "
                     "(available_filter_functions lists them)",
                     glob);
    else if (!good) {
        errno = error;
        nl_error_set_errno("--filter-function %s: %s", glob, file);
    }
    return good;
}

static bool is_refused(const instance *i, const char *tracer)
{
    char *path = program_format("%s/current_tracer", i->dir);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool refused = fd < 0 || write(fd, tracer, strlen(tracer)) < 0;
    int error = errno;
    if (fd >= 0)
        close(fd);
    free(path);
    if (refused)
        nl_error_set(NL_ERROR_SYSTEM, "--functions: this kernel has the tracer %s, but refuses it: %s. %s", tracer,
                     strerror(error),
                     error == EPERM ? "Where it is locked down (/sys/kernel/security/lockdown), or was told so by who "
                                      "started it, nothing here can grant it: record on another kernel, and draw here"
                                    : "sysctl kernel.ftrace_enabled must be 1");
    return refused;
}

bool functions_offered(const instance *i, functions_kind kind)
{
    char *tracers = instance_read(i, "available_tracers");
    bool there = tracers != NULL && kind != FUNCTIONS_ANY && has_word(tracers, tracer_of(kind));
    if (tracers != NULL && !there)
        nl_error_set(NL_ERROR_UNSUPPORTED,
                     "--functions: this kernel has no tracer %s (it was built without it): its tracers are %.*s",
                     tracer_of(kind), (int)strcspn(tracers, "\n"), tracers);
    free(tracers);
    return there;
}

bool functions_choose(const instance *i, functions_kind kind, const char *const *globs, size_t count)
{
    bool there = functions_offered(i, kind);
    char self[16];
    snprintf(self, sizeof self, "%d", getpid());
    if (there) {
        /* The threads that read are begun later, and inherit it. */
        instance_write_if_there(i, "options/function-fork", "1");
        instance_write_if_there(i, "set_ftrace_notrace_pid", self);
    }
    for (size_t g = 0; there && g < count; g++)
        there = globs[g][0] == '!' ? add_filter(i, "set_ftrace_notrace", globs[g] + 1)
                                   : add_filter(i, "set_ftrace_filter", globs[g]);
    return there && !is_refused(i, tracer_of(kind));
}
