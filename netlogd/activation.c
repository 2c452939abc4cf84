#include "config.h"

#include "activation.h"

#include "program/program.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD = 8, TEXT_MOST = 64 << 10 };

struct activation {
    char *path;
    char *frame;
    size_t size;
    bool complained;
};

activation *activation_new(const char *path)
{
    activation *a = calloc(1, sizeof *a);
    if (a == NULL || (a->path = strdup(path)) == NULL || (a->frame = malloc(HEAD + TEXT_MOST)) == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    return a;
}

void activation_free(activation *a)
{
    if (a == NULL)
        return;
    free(a->path);
    free(a->frame);
    free(a);
}

static bool complain(activation *a, const char *why)
{
    if (!a->complained)
        program_error("activation file %s: %s", a->path, why);
    a->complained = true;
    return false;
}

/* Reads the file's text. -1 when it can't be used; a file that is gone is an empty one. */
static ssize_t read_text(activation *a, char text[TEXT_MOST + 1])
{
    int fd = open(a->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return 0;
    ssize_t size = 0, got = 0;
    while (fd >= 0 && size <= TEXT_MOST && (got = read(fd, text + size, (size_t)(TEXT_MOST + 1 - size))) > 0)
        size += got;
    int why = errno;
    if (fd >= 0)
        close(fd);
    if (fd < 0 || got < 0)
        complain(a, strerror(why));
    else if (size > TEXT_MOST)
        complain(a, "it is larger than 64 KiB");
    else
        return size;
    return -1;
}

bool activation_look(activation *a)
{
    static char text[TEXT_MOST + 1];
    ssize_t size = read_text(a, text);
    if (size < 0)
        return false;
    a->complained = false;
    if (a->size == HEAD + (size_t)size && memcmp(a->frame + HEAD, text, (size_t)size) == 0)
        return false;
    if (a->size == 0 && size == 0) /* there was none yet */
        return false;
    uint32_t length = htole32((uint32_t)size);
    memcpy(a->frame, "NLC1", 4);
    memcpy(a->frame + 4, &length, sizeof length);
    memcpy(a->frame + HEAD, text, (size_t)size);
    a->size = HEAD + (size_t)size;
    return true;
}

nl_string activation_frame(const activation *a)
{
    return (nl_string){a->frame, a->size};
}
