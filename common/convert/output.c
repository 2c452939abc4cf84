#include "config.h"

#include "convert/output.h"

#include "base/memory.h"
#include "base/replacement.h"
#include "base/write_some.h"
#include "program/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct output {
    nl_replacement file;
    char *path; /* NULL means standard output */
};

static bool output_fail(const char *doing, const char *path)
{
    program_error("%s %s: %s", doing, path != NULL ? path : "standard output", strerror(errno));
    return false;
}

output *output_open(const char *path)
{
    output *o = nl_memory_check(calloc(1, sizeof *o));
    if (path == NULL || strcmp(path, "-") == 0) {
        o->file.fd = STDOUT_FILENO;
        return o;
    }
    if (!nl_replacement_open(&o->file, path)) {
        output_fail("open", path);
        free(o);
        return NULL;
    }
    o->path = nl_memory_check(strdup(path));
    return o;
}

bool output_write(output *o, const char *data, size_t size)
{
    return nl_write_all(o->file.fd, data, size) || output_fail("write", o->path);
}

bool output_close(output *o, bool keep)
{
    bool good = o->path == NULL || !keep || nl_replacement_keep(&o->file) || output_fail("write", o->path);
    nl_replacement_free(&o->file);
    if (o->path != NULL && close(o->file.fd) != 0)
        good = output_fail("write", o->path);
    free(o->path);
    free(o);
    return good;
}
