#include "config.h"

#include "functions.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *tracer_name(functions_kind kind)
{
    return kind == FUNCTIONS_GRAPH ? "function_graph" : "function";
}

static bool describe_tracer_event(kernel_events *events, const tracing *t, const char *name, const kallsyms *symbols)
{
    kernel_event *event = &events->list[events->count];
    if (!kernel_event_read(t, "ftrace", name, event)) {
        nl_error_prepend("--functions: this kernel was built without function tracers (CONFIG_FUNCTION_TRACER, "
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
        return describe_tracer_event(events, t, "function", symbols);
    return describe_tracer_event(events, t, "funcgraph_entry", symbols) &&
           describe_tracer_event(events, t, "funcgraph_exit", symbols);
}

/* Returns whether `text`, a list of words, contains `word`. */
static bool has_word(const char *text, const char *word)
{
    size_t size = strlen(word);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += size)
        if ((at == text || strchr(" \n", at[-1]) != NULL) && (at[size] == '\0' || strchr(" \n", at[size]) != NULL))
            return true;
    return false;
}

/* Appends a glob to one of the instance's filter files. Returns false and sets the error on failure. */
static bool add_filter(const instance *i, const char *file, const char *glob)
{
    int fd = instance_open(i, file, O_WRONLY | O_APPEND);
    if (fd < 0) {
        nl_error_prepend("--filter-function: this kernel cannot filter functions");
        return false;
    }
    bool good = dprintf(fd, "%s\n", glob) >= 0; /* without the newline, the kernel would check the glob only at close */
    int error = errno;
    close(fd);
    if (!good && error == EINVAL)
        nl_error_set(
            NL_ERROR_UNSUPPORTED,
            "--filter-function %s: no traceable function matches; available_filter_functions in tracefs lists them",
            glob);
    else if (!good) {
        errno = error;
        nl_error_set_errno("--filter-function %s: %s", glob, file);
    }
    return good;
}

static bool set_tracer(const instance *i, const char *tracer)
{
    if (instance_write(i, "current_tracer", tracer))
        return true;
    int error = errno;
    return nl_error_false(
        NL_ERROR_SYSTEM, "--functions: this kernel rejects the tracer %s: %s; %s", tracer, strerror(error),
        error == EPERM
            ? "a locked-down kernel (/sys/kernel/security/lockdown) does not trace functions; record on another kernel"
            : "set the sysctl kernel.ftrace_enabled to 1");
}

bool functions_offered(const instance *i, functions_kind kind)
{
    char *tracers = instance_read(i, "available_tracers");
    bool offered = tracers != NULL && kind != FUNCTIONS_ANY && has_word(tracers, tracer_name(kind));
    if (tracers != NULL && !offered)
        nl_error_set(NL_ERROR_UNSUPPORTED,
                     "--functions: this kernel was built without the tracer %s; its tracers are %.*s",
                     tracer_name(kind), (int)strcspn(tracers, "\n"), tracers);
    free(tracers);
    return offered;
}

bool functions_choose(const instance *i, functions_kind kind, const char *const *globs, size_t count)
{
    bool ok = functions_offered(i, kind);
    if (ok) {
        /* also exclude the threads that read the buffers, which start later */
        instance_write(i, "options/function-fork", "1");
        instance_write_number(i, "set_ftrace_notrace_pid", getpid());
    }
    for (size_t g = 0; ok && g < count; g++)
        ok = globs[g][0] == '!' ? add_filter(i, "set_ftrace_notrace", globs[g] + 1)
                                : add_filter(i, "set_ftrace_filter", globs[g]);
    return ok && set_tracer(i, tracer_name(kind));
}
