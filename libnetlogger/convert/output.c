#include "config.h"

#include "convert/output.h"

#include "program/program.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct output {
    int fd;
    char *path;    /* NULL: standard output */
    bool nameless; /* it has no name until it is whole: whatever becomes of this process, nothing is left behind */
    char *aside;   /* what it is called until then, if it has a name of its own; NULL when it is written in place */
};

static bool fail(const char *doing, const char *path)
{
    program_error("%s %s: %s", doing, path != NULL ? path : "standard output", strerror(errno));
    return false;
}

/* A device or a pipe is written as it is; a file that is there, or not yet, aside. */
static bool is_written_aside(const char *path)
{
    struct stat status;
    return stat(path, &status) != 0 || S_ISREG(status.st_mode);
}

static int open_nameless(const char *path)
{
    char *copy = strdup(path);
    if (copy == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    int fd = open(dirname(copy), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    free(copy);
    return fd;
}

static bool open_aside(output *o)
{
    o->fd = open_nameless(o->path);
    o->nameless = o->fd >= 0;
    if (!o->nameless) { /* the file system has no such files */
        if (asprintf(&o->aside, "%s.XXXXXX", o->path) < 0)
            program_fail(PROGRAM_PROBLEM, "out of memory");
        o->fd = mkostemp(o->aside, O_CLOEXEC);
    }
    if (o->fd < 0)
        return false;
    struct stat before;
    mode_t mask = umask(0);
    umask(mask);
    mode_t mode = stat(o->path, &before) == 0 ? before.st_mode & 07777 : 0666 & ~mask;
    return fchmod(o->fd, mode) == 0;
}

static void destroy(output *o)
{
    free(o->path);
    free(o->aside);
    free(o);
}

output *output_open(const char *path)
{
    output *o = calloc(1, sizeof *o);
    if (o == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    if (path == NULL || strcmp(path, "-") == 0) {
        o->fd = STDOUT_FILENO;
        return o;
    }
    o->path = realpath(path, NULL); /* a link stays one: what it names is replaced */
    if (o->path == NULL && (o->path = strdup(path)) == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    if (is_written_aside(o->path) ? open_aside(o) : (o->fd = open(o->path, O_WRONLY | O_CLOEXEC)) >= 0)
        return o;
    fail("open", path);
    destroy(o);
    return NULL;
}

bool output_write(output *o, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t written = write(o->fd, data, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return fail("write", o->path);
        data += written;
        size -= (size_t)written;
    }
    return true;
}

/* Gives a file its first name: its own, or, where there is a file of that name, one beside it. */
static bool name_it(output *o)
{
    enum { ATTEMPTS = 100 };
    char self[40];
    snprintf(self, sizeof self, "/proc/self/fd/%d", o->fd);
    bool named = linkat(AT_FDCWD, self, AT_FDCWD, o->path, AT_SYMLINK_FOLLOW) == 0;
    for (int i = 0; !named && errno == EEXIST && i < ATTEMPTS; i++) {
        free(o->aside);
        if (asprintf(&o->aside, "%s.%ld-%d", o->path, (long)getpid(), i) < 0)
            program_fail(PROGRAM_PROBLEM, "out of memory");
        named = linkat(AT_FDCWD, self, AT_FDCWD, o->aside, AT_SYMLINK_FOLLOW) == 0;
    }
    return named || fail("write", o->path);
}

bool output_close(output *o, bool keep)
{
    bool good = !o->nameless || !keep || name_it(o);
    if (o->path != NULL && close(o->fd) != 0)
        good = fail("write", o->path);
    if (o->aside != NULL && good && keep && rename(o->aside, o->path) != 0)
        good = fail("rename to", o->path);
    if (o->aside != NULL && !(good && keep))
        unlink(o->aside);
    destroy(o);
    return good;
}
