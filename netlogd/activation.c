#include "config.h"

#include "activation.h"

#include "program/program.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD = 8, TEXT_MAX = 64 << 10 };

typedef struct told {
    char *prog, *command;
} told;

struct activation {
    char *path;     /* NULL: no file */
    nl_buffer text; /* the file's */
    told *told;
    size_t told_count, told_size; /* size: of all commands, with their newlines */
    bool ever;                    /* something was asked: from then on what was asked may be taken back */
    nl_buffer frame;
    bool complained;
};

activation *activation_new(const char *path)
{
    activation *a = calloc(1, sizeof *a);
    if (a == NULL || (path != NULL && (a->path = strdup(path)) == NULL))
        program_fail(PROGRAM_PROBLEM, "out of memory");
    return a;
}

static void activation_forget(told *t)
{
    free(t->prog);
    free(t->command);
}

void activation_free(activation *a)
{
    if (a == NULL)
        return;
    for (size_t i = 0; i < a->told_count; i++)
        activation_forget(&a->told[i]);
    free(a->told);
    free(a->path);
    nl_buffer_free(&a->text);
    nl_buffer_free(&a->frame);
    free(a);
}

static bool complain(activation *a, const char *reason)
{
    if (!a->complained)
        program_error("activation file %s: %s", a->path, reason);
    a->complained = true;
    return false;
}

/* Reads the file's text. -1 when it can't be used; a file that is gone is an empty one. */
static ssize_t read_text(activation *a, char text[TEXT_MAX + 1])
{
    int fd = open(a->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return 0;
    ssize_t size = 0, got = 0;
    while (fd >= 0 && size <= TEXT_MAX && (got = read(fd, text + size, (size_t)(TEXT_MAX + 1 - size))) > 0)
        size += got;
    int reason = errno;
    if (fd >= 0)
        close(fd);
    if (fd < 0 || got < 0)
        complain(a, strerror(reason));
    else if (size > TEXT_MAX)
        complain(a, "it is larger than 64 KiB");
    else
        return size;
    return -1;
}

bool activation_look(activation *a)
{
    static char text[TEXT_MAX + 1];
    ssize_t size = a->path != NULL ? read_text(a, text) : 0;
    if (size < 0)
        return false;
    a->complained = false;
    if (a->text.size == (size_t)size && (size == 0 || memcmp(a->text.data, text, (size_t)size) == 0))
        return false;
    a->text.size = 0;
    nl_buffer_append(&a->text, text, (size_t)size);
    a->ever = true;
    return true;
}

static void take_back(activation *a, const char *prog)
{
    size_t kept = 0;
    for (size_t i = 0; i < a->told_count; i++) {
        if (strcmp(a->told[i].prog, prog) != 0) {
            a->told[kept++] = a->told[i];
            continue;
        }
        a->told_size -= strlen(a->told[i].command) + 1;
        activation_forget(&a->told[i]);
    }
    a->told_count = kept;
}

const char *activation_tell(activation *a, const char *prog, const char *command)
{
    if (strchr(command, '\n') != NULL)
        return "a command is one line";
    if (command[strspn(command, " \t")] == '\0') {
        take_back(a, prog);
        return NULL;
    }
    if (nl_control_check(command, strlen(command)) != NL_OK)
        return nl_error_message();
    if (a->told_size + strlen(command) + 1 > TEXT_MAX / 2)
        return "more was told than programs would take: take something back";
    a->told = realloc(a->told, (a->told_count + 1) * sizeof *a->told);
    told t = {strdup(prog), strdup(command)};
    if (a->told == NULL || t.prog == NULL || t.command == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    a->told[a->told_count++] = t;
    a->told_size += strlen(command) + 1;
    a->ever = true;
    return NULL;
}

nl_string activation_frame(activation *a, const char *prog)
{
    nl_buffer *frame = &a->frame;
    frame->size = 0;
    if (!a->ever)
        return (nl_string){0};
    nl_buffer_append(frame, "NLC1\0\0\0", HEAD);
    /* Of a file so large that what was told has no room beside it the end gives way. */
    size_t space = TEXT_MAX - a->told_size - 1;
    nl_buffer_append(frame, a->text.data, a->text.size < space ? a->text.size : space);
    for (size_t i = 0; i < a->told_count; i++) {
        if (fnmatch(a->told[i].prog, prog, 0) != 0)
            continue;
        if (frame->data[frame->size - 1] != '\n')
            nl_buffer_append(frame, "\n", 1);
        nl_buffer_append(frame, a->told[i].command, strlen(a->told[i].command));
    }
    uint32_t length = htole32((uint32_t)(frame->size - HEAD));
    memcpy(frame->data + 4, &length, sizeof length);
    return (nl_string){frame->data, frame->size};
}
