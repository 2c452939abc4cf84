#include "config.h"

#include "activation.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "connection.h"
#include "connections.h"
#include "program/program.h"
#include "server.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD = 8, TEXT_MAX = 64 << 10, CHECK_MS = 500 };

/* A command of netlogctl tell. */
typedef struct program_command {
    char *prog, *command;
} program_command;

static const char *path;    /* NULL: no file is used */
static struct event *timer; /* timer that checks the file; NULL if no file is used */
static nl_buffer text;      /* content of the file */
static program_command *commands;
static size_t command_count, commands_size; /* commands_size is the size of all commands with their newlines */
static bool ever;     /* a command was set or revoked since the start of netlogd, so programs need frames */
static bool reported; /* a problem with the file was reported */
static nl_buffer frame;

static void free_command(program_command *t)
{
    free(t->prog);
    free(t->command);
}

static ssize_t report_problem(const char *problem)
{
    if (!reported)
        program_error("activation file %s: %s", path, problem);
    reported = true;
    return -1;
}

/*
 * Reads the file's text. Returns its size in bytes, or 0 if the file does not exist. On failure, reports the problem
 * and returns -1.
 */
static ssize_t read_text(char bytes[TEXT_MAX + 1])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? 0 : report_problem(strerror(errno));
    ssize_t size = 0, got = 0;
    while (size <= TEXT_MAX && (got = read(fd, bytes + size, (size_t)(TEXT_MAX + 1 - size))) > 0)
        size += got;
    int error = errno;
    close(fd);
    if (got < 0)
        return report_problem(strerror(error));
    return size <= TEXT_MAX ? size : report_problem("larger than 64 KiB");
}

static void send_to_connection(connection *c, void *user)
{
    (void)user;
    connection_send_activation(c);
}

static void on_check(evutil_socket_t fd, short what, void *user)
{
    static char bytes[TEXT_MAX + 1];
    (void)fd, (void)what, (void)user;
    ssize_t size = read_text(bytes);
    if (size < 0)
        return;
    reported = false;
    if (text.size == (size_t)size && (size == 0 || memcmp(text.data, bytes, (size_t)size) == 0))
        return;
    text.size = 0;
    nl_buffer_append(&text, bytes, (size_t)size);
    ever = true;
    connections_visit(send_to_connection, NULL);
}

void activation_start(const char *file)
{
    path = file;
    if (path == NULL)
        return;
    timer = server_new_event(-1, EV_PERSIST, on_check, NULL);
    event_add(timer, &(struct timeval){.tv_usec = CHECK_MS * 1000});
    on_check(-1, 0, NULL);
}

void activation_free(void)
{
    for (size_t i = 0; i < command_count; i++)
        free_command(&commands[i]);
    free(commands);
    nl_buffer_free(&text);
    nl_buffer_free(&frame);
    if (timer != NULL)
        event_free(timer);
}

static void remove_commands(const char *prog)
{
    size_t kept = 0;
    for (size_t i = 0; i < command_count; i++) {
        if (strcmp(commands[i].prog, prog) != 0) {
            commands[kept++] = commands[i];
            continue;
        }
        commands_size -= strlen(commands[i].command) + 1;
        free_command(&commands[i]);
    }
    command_count = kept;
}

nl_status activation_tell(const char *prog, const char *command)
{
    if (strchr(command, '\n') != NULL)
        return nl_error_set(NL_ERROR_INVALID, "a command must be one line");
    if (command[strspn(command, " \t")] == '\0') {
        remove_commands(prog);
        ever = true;
        return NL_OK;
    }
    if (nl_control_check(command, strlen(command)) != NL_OK)
        return NL_FAILED;
    if (commands_size + strlen(command) + 1 > TEXT_MAX / 2)
        return nl_error_set(NL_ERROR_LIMIT,
                            "the commands are too long; an empty command revokes all commands of the same --prog");
    commands = nl_memory_check(realloc(commands, (command_count + 1) * sizeof *commands));
    commands[command_count++] = (program_command){program_copy(prog), program_copy(command)};
    commands_size += strlen(command) + 1;
    ever = true;
    return NL_OK;
}

nl_string activation_frame(const char *prog)
{
    frame.size = 0;
    if (!ever)
        return (nl_string){0};
    nl_buffer_append(&frame, "NLC1\0\0\0", HEAD);
    /* The commands must fit after the text. If they do not, drop the end of the text. */
    size_t space = TEXT_MAX - commands_size - 1;
    nl_buffer_append(&frame, text.data, text.size < space ? text.size : space);
    for (size_t i = 0; i < command_count; i++) {
        if (fnmatch(commands[i].prog, prog, 0) != 0)
            continue;
        if (frame.data[frame.size - 1] != '\n')
            nl_buffer_append(&frame, "\n", 1);
        nl_buffer_append_text(&frame, commands[i].command);
    }
    uint32_t length = htole32((uint32_t)(frame.size - HEAD));
    memcpy(frame.data + 4, &length, sizeof length);
    return (nl_string){frame.data, frame.size};
}
