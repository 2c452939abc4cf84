#include "config.h"

#include "program/temporary_file.h"

#include "base/error.h"
#include "base/option.h"
#include "program/program.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct place {
    const char *directory;
} place;

static const nl_option rows[] = {
    {.name = "temporary-directory",
     .environment = "TMPDIR",
     NL_OPTION_MEMBER(place, directory),
     .help = "Directory for temporary files"},
    {0},
};

static const char *directory_or(const char *otherwise)
{
    place p = {0};
    nl_options_read_environment(rows, &p);
    return p.directory != NULL ? p.directory : otherwise;
}

int temporary_file_open(const char *directory)
{
    if (directory == NULL)
        directory = directory_or("/var/tmp");
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    /* for file systems that do not support O_TMPFILE */
    char *path = program_format("%s/netlogger.XXXXXX", directory);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    else
        nl_error_set_errno("create a temporary file in %s", directory);
    free(path);
    return fd;
}

char *temporary_directory_make(const char *otherwise)
{
    char *path = program_format("%s/netlogger.XXXXXX", directory_or(otherwise));
    if (mkdtemp(path) != NULL)
        return path;
    nl_error_set_errno("create the directory %s", path);
    free(path);
    return NULL;
}
