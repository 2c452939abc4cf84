#include "config.h"

#include "tracing.h"

#include "base/error.h"
#include "base/memory.h"
#include "rights.h"
#include "base/buffer.h"
#include "program/program.h"
#include "service/tracefs_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tracefs.h>
#include <unistd.h>

char *tracing_path(const tracing *t, const char *format, ...)
{
    char *name;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&name, format, arguments) < 0)
        nl_memory_failed();
    va_end(arguments);
    char *path = program_format("%s/%s", t->path, name);
    free(name);
    return path;
}

char *tracing_read(const char *path, size_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        rights_set_open_error(path);
        return NULL;
    }
    nl_buffer text = {0};
    ssize_t got;
    do {
        nl_buffer_reserve(&text, 16384);
        got = read(fd, text.data + text.size, 16383);
        text.size += got > 0 ? (size_t)got : 0;
    } while (got > 0 || (got < 0 && errno == EINTR));
    if (got < 0) {
        nl_error_set_errno("%s", path);
        nl_buffer_free(&text);
    } else {
        text.data[text.size] = '\0';
    }
    close(fd);
    if (size != NULL)
        *size = text.size;
    return text.data;
}

bool tracing_write(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_TRUNC);
    if (fd < 0) {
        rights_set_open_error(path);
        return false;
    }
    ssize_t put = write(fd, text, strlen(text));
    if (put < 0)
        nl_error_set_errno("%s: write \"%s\"", path, text);
    close(fd);
    return put >= 0;
}

static bool tracing_find(tracing *t, const char *path)
{
    if (path != NULL && !tracefs_mount_is(path))
        return nl_error_false(NL_ERROR_UNSUPPORTED, "%s: not a mount point of tracefs", path);
    if (path == NULL)
        path = tracefs_mount_find();
    if (path != NULL) {
        t->path = nl_memory_check(strdup(path));
        return true;
    }
    t->mount_fd = tracefs_mount_detached();
    if (t->mount_fd < 0) {
        rights_set_mount_error();
        return false;
    }
    t->path = program_format("/proc/self/fd/%d", t->mount_fd);
    return true;
}

bool tracing_open(tracing *t, const char *path)
{
    *t = (tracing){.mount_fd = -1};
    if (!tracing_find(t, path))
        return false;
    char *events = tracing_path(t, "events");
    int fd = open(events, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* not access(2), which would ignore capabilities */
    bool ok = fd >= 0;
    if (ok)
        close(fd);
    else if (errno == ENOENT)
        nl_error_set(NL_ERROR_UNSUPPORTED, "%s: this kernel offers no events", t->path);
    else
        rights_set_open_error(events);
    if (ok && tracefs_set_tracing_dir(t->path) != 0)
        ok = nl_error_set_errno("%s", t->path) == NL_OK;
    free(events);
    if (!ok)
        tracing_close(t);
    return ok;
}

void tracing_close(tracing *t)
{
    if (t->mount_fd >= 0)
        close(t->mount_fd);
    free(t->path);
    *t = (tracing){.mount_fd = -1};
}
