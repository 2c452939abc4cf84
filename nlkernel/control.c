#include "config.h"

#include "control.h"

#include "base/error.h"
#include "base/memory.h"
#include "program/glib_error.h"
#include "program/program.h"
#include "rights.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { COMMAND_SIZE = 4096, SEND_TIMEOUT_SECONDS = 10, COMMAND_TIMEOUT_US = 200000 };

/* The name of a recorder's socket in the abstract namespace. The socket disappears when the process ends. */
#define NAME_FORMAT "nlkernel-%d"

static socklen_t control_address(int pid, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int size = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, NAME_FORMAT, pid);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size);
}

/* ---- commands ---- */

typedef struct control_state {
    bool on, *events_on;
} control_state;

static bool read_state(const char *word, bool *on)
{
    *on = strcasecmp(word, "on") == 0;
    return *on || strcasecmp(word, "off") == 0;
}

/* Applies a command to `state`. Returns false and sets the error if the command is invalid. */
static bool control_take_line(const control *c, control_state *state, const char *line)
{
    char copy[COMMAND_SIZE], *rest, *words[4] = {NULL};
    bool on, any = false;
    size_t count = 0;
    if (snprintf(copy, sizeof copy, "%s", line) >= (int)sizeof copy)
        return nl_error_false(NL_ERROR_LIMIT, "the command is too long");
    for (char *at = copy; count < 4 && (words[count] = strtok_r(at, " \t\r", &rest)) != NULL; at = NULL)
        count++;
    if (count == 1 && read_state(words[0], &on)) {
        state->on = on;
        return true;
    }
    if (count != 3 || strcasecmp(words[0], "event") != 0 || !read_state(words[2], &on))
        return nl_error_false(NL_ERROR_INVALID,
                              "invalid command \"%.100s\"; the commands are on, off, and event PATTERN on|off", line);
    for (size_t i = 0; i < c->target.event_count; i++)
        if (c->target.matches(c->target.user, i, words[1])) {
            state->events_on[i] = on;
            any = true;
        }
    return any || nl_error_false(NL_ERROR_NOT_FOUND, "no recorded event matches \"%s\"", words[1]);
}

static control_state copy_state(const control *c)
{
    control_state state = {c->on, nl_memory_check(calloc(c->target.event_count + 1, sizeof *state.events_on))};
    memcpy(state.events_on, c->events_on, c->target.event_count * sizeof *state.events_on);
    return state;
}

/* Applies the differences between `state` and the current state, and frees `state`. Switches the whole recording off
 * before single events, and on after single events. Returns false and sets the error on failure. */
static bool apply_state(control *c, control_state *state)
{
    bool ok = true;
    const control_target *t = &c->target;
    if (c->on && !state->on) {
        ok = t->set(t->user, SIZE_MAX, false);
        c->on = !ok;
    }
    for (size_t i = 0; i < t->event_count; i++) {
        if (c->events_on[i] == state->events_on[i])
            continue;
        if (t->set(t->user, i, state->events_on[i]))
            c->events_on[i] = state->events_on[i];
        else
            ok = false;
    }
    if (!c->on && state->on && ok)
        c->on = ok = t->set(t->user, SIZE_MAX, true);
    free(state->events_on);
    return ok;
}

/* ---- control by socket ---- */

static void listen_for_commands(control *c)
{
    struct sockaddr_un address;
    socklen_t size = control_address(getpid(), &address);
    c->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd >= 0 && (bind(c->fd, (struct sockaddr *)&address, size) != 0 || listen(c->fd, 16) != 0)) {
        close(c->fd);
        c->fd = -1;
    }
}

static bool execute_command(control *c, int fd, const char *command)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || (peer.uid != 0 && peer.uid != getuid()))
        return nl_error_false(NL_ERROR_PERMISSION,
                              "only root and the user who started the recorder (user ID %u) may control it",
                              (unsigned)getuid());
    control_state state = copy_state(c);
    if (control_take_line(c, &state, command))
        return apply_state(c, &state);
    free(state.events_on);
    return false;
}

/* Accepts a connection and executes its command. Replies with "+" on success, or with "-" and a message on failure. */
void control_answer(control *c)
{
    char command[COMMAND_SIZE], answer[COMMAND_SIZE + 64] = "+";
    int fd = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_usec = COMMAND_TIMEOUT_US}, sizeof(struct timeval));
    ssize_t got = recv(fd, command, sizeof command - 1, 0);
    if (got > 0) {
        command[got] = '\0';
        if (!execute_command(c, fd, command))
            snprintf(answer, sizeof answer, "-%s", nl_error_message());
        send(fd, answer, strlen(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    close(fd);
}

/*
 * Returns the process ID of the only running recorder. If no recorder or more than one recorder is running, returns 0
 * and sets the error.
 */
static int find_recorder(void)
{
    char line[512], others[256] = "";
    int found = 0, count = 0, pid;
    FILE *file = fopen("/proc/net/unix", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *name = strchr(line, '@');
        if (name == NULL || sscanf(name, "@" NAME_FORMAT, &pid) != 1 || pid == found)
            continue;
        found = pid;
        if (count++ < 16)
            snprintf(others + strlen(others), sizeof others - strlen(others), "%s%d", count == 1 ? "" : ", ", pid);
    }
    if (file != NULL)
        fclose(file);
    if (count == 0)
        nl_error_set(NL_ERROR_NOT_FOUND, "no recorder is running");
    else if (count > 1)
        nl_error_set(NL_ERROR_BUSY, "several recorders are running; use --recorder with one of %s", others);
    return count == 1 ? found : 0;
}

bool control_send(int pid, const char *command)
{
    char answer[COMMAND_SIZE + 64];
    struct sockaddr_un address;
    if (pid == 0 && (pid = find_recorder()) == 0)
        return false;
    socklen_t size = control_address(pid, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ssize_t got = -1;
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = SEND_TIMEOUT_SECONDS},
                   sizeof(struct timeval));
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, size) != 0)
        nl_error_set(NL_ERROR_NOT_FOUND,
                     errno == ECONNREFUSED ? "process %d is not a recorder" : "cannot connect to process %d", pid);
    else if (send(fd, command, strlen(command), MSG_NOSIGNAL) < 0 ||
             (got = recv(fd, answer, sizeof answer - 1, 0)) <= 0)
        nl_error_set(NL_ERROR_TIMEOUT, "process %d does not reply", pid);
    if (fd >= 0)
        close(fd);
    if (got <= 0)
        return false;
    answer[got] = '\0';
    return *answer == '+' || nl_error_false(NL_ERROR_INVALID, "%s", answer + 1);
}

/* ---- control by file ---- */

static bool file_is_unchanged(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_dev == b->st_dev;
}

/* Returns whether the file may change again without a new time stamp, because time stamps have a limited resolution. */
static bool file_is_recent(const struct stat *status)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec - status->st_mtim.tv_sec < 2;
}

static bool control_take_lines(const control *c, control_state *state, char *text)
{
    bool ok = true;
    size_t number = 0;
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        number++;
        line += strspn(line, " \t\r");
        if (*line == '\0' || *line == '#' || control_take_line(c, state, line))
            continue;
        if (ok) /* report only the first error */
            nl_error_prepend("%s:%zu", c->path, number);
        ok = false;
    }
    return ok;
}

/* Returns the file's text, or "" if there is no file. The caller frees the text. Returns NULL and sets the error on
 * failure. */
static char *read_control_file(const char *path)
{
    char *text = NULL;
    GError *error = NULL;
    rights_lower();
    bool ok = g_file_get_contents(path, &text, NULL, &error);
    rights_raise();
    if (ok || !g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOENT)) {
        if (!ok)
            glib_error_take(error);
        return text;
    }
    g_error_free(error);
    return program_copy("");
}

bool control_poll_file(control *c)
{
    struct stat now = {0};
    if (c->path == NULL)
        return true;
    if (stat(c->path, &now) != 0 || !S_ISREG(now.st_mode))
        now = (struct stat){0};
    if (file_is_unchanged(&now, &c->seen))
        return true;
    char *text = S_ISREG(now.st_mode) ? read_control_file(c->path) : program_copy("");
    c->seen = now;
    if (file_is_recent(&now))
        c->seen.st_size = -1; /* makes the next poll read the file again */
    if (text == NULL)
        return false;
    control_state state = copy_state(c);
    state.on = true;
    memset(state.events_on, 1, c->target.event_count * sizeof *state.events_on);
    bool ok = control_take_lines(c, &state, text);
    free(text);
    return apply_state(c, &state) && ok;
}

/* ---- opening and closing ---- */

void control_open(control *c, const control_target *target, const char *path)
{
    *c = (control){.target = *target, .on = true, .fd = -1, .path = path};
    c->events_on = nl_memory_check(malloc(target->event_count + 1));
    memset(c->events_on, 1, target->event_count + 1);
    listen_for_commands(c);
}

void control_close(control *c)
{
    if (c->fd >= 0)
        close(c->fd);
    free(c->events_on);
    *c = (control){.fd = -1};
}
