#include "config.h"

#include "control.h"

#include "base/error.h"
#include "base/memory.h"
#include "rights.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { COMMAND_MAX = 4096, FILE_MAX = 1 << 20, SEND_SECONDS = 10 };

/* A name that no file stands for: it goes with its process. */
#define NAME_FORMAT "nlkernel-%d"

static socklen_t address_of(int pid, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int size = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, NAME_FORMAT, pid);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size);
}

/* ---- what is wanted ---- */

/* What is to be on. */
typedef struct wish {
    bool on, *events_on;
} wish;

static bool is_meant(const char *name, const char *pattern)
{
    const char *colon = strchr(name, ':');
    if (strpbrk(pattern, ":.") == NULL) /* a system, or an event of any */
        return (strncmp(name, pattern, (size_t)(colon - name)) == 0 && strlen(pattern) == (size_t)(colon - name)) ||
               fnmatch(pattern, colon + 1, 0) == 0;
    char copy[COMMAND_MAX];
    snprintf(copy, sizeof copy, "%s", pattern);
    char *dot = strpbrk(copy, ":.");
    *dot = ':';
    return fnmatch(copy, name, 0) == 0;
}

/* Splits a line into words, at most three. Returns how many; 4: more. */
static size_t split(char *line, char *parts[3])
{
    size_t count = 0;
    for (char *rest, *word = strtok_r(line, " \t\r", &rest); word != NULL; word = strtok_r(NULL, " \t\r", &rest)) {
        if (count == 3)
            return 4;
        parts[count++] = word;
    }
    return count;
}

static bool read_state(const char *word, bool *on)
{
    *on = strcasecmp(word, "on") == 0;
    return *on || strcasecmp(word, "off") == 0;
}

/* Puts into w what a line says. False with the reason. */
static bool control_take_line(const control *c, wish *w, const char *line)
{
    char copy[COMMAND_MAX], *parts[3];
    bool on;
    size_t size = strlen(line);
    if (size >= sizeof copy) {
        nl_error_set(NL_ERROR_LIMIT, "the command is too long");
        return false;
    }
    memcpy(copy, line, size + 1);
    size_t count = split(copy, parts);
    if (count == 1 && read_state(parts[0], &on)) {
        w->on = on;
        return true;
    }
    if (count != 3 || strcasecmp(parts[0], "event") != 0 || !read_state(parts[2], &on)) {
        nl_error_set(NL_ERROR_INVALID, "\"%.100s\" is no command: on, off, and event PATTERN on|off are", line);
        return false;
    }
    bool any = false;
    for (size_t i = 0; i < c->target.event_count; i++)
        if (is_meant(c->target.event_name(c->target.user, i), parts[1])) {
            w->events_on[i] = on;
            any = true;
        }
    if (!any)
        nl_error_set(NL_ERROR_NOT_FOUND, "no event that is recorded is called \"%s\"", parts[1]);
    return any;
}

static wish wish_of(const control *c)
{
    wish w = {c->on, nl_memory_check(calloc(c->target.event_count + 1, sizeof *w.events_on))};
    memcpy(w.events_on, c->events_on, c->target.event_count * sizeof *w.events_on);
    return w;
}

/* Switches what is not as wanted; what is switched off goes first. Returns how much that was, SIZE_MAX when something
 * could not be. Frees w's. */
static size_t grant(control *c, wish *w)
{
    size_t count = 0;
    bool good = true;
    const control_target *t = &c->target;
    if (c->on && !w->on) {
        good = t->set(t->user, SIZE_MAX, false);
        c->on = !good;
        count++;
    }
    for (size_t i = 0; i < t->event_count; i++) {
        if (c->events_on[i] == w->events_on[i])
            continue;
        if (t->set(t->user, i, w->events_on[i]))
            c->events_on[i] = w->events_on[i];
        else
            good = false;
        count++;
    }
    if (!c->on && w->on && good) {
        good = t->set(t->user, SIZE_MAX, true);
        c->on = good;
        count++;
    }
    free(w->events_on);
    return good ? count : SIZE_MAX;
}

/* ---- by command ---- */

static void listen_for_commands(control *c)
{
    struct sockaddr_un address;
    socklen_t size = address_of(getpid(), &address);
    c->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd >= 0 && (bind(c->fd, (struct sockaddr *)&address, size) != 0 || listen(c->fd, 16) != 0)) {
        close(c->fd);
        c->fd = -1;
    }
}

static bool may_command(int fd)
{
    struct ucred who;
    socklen_t size = sizeof who;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && (who.uid == 0 || who.uid == getuid());
}

/* Does a command, and puts the answer, which begins with + when it is done. */
static void obey(control *c, const char *command, char *answer, size_t size)
{
    wish w = wish_of(c);
    if (!control_take_line(c, &w, command)) {
        free(w.events_on);
        snprintf(answer, size, "-%s", nl_error_message());
        return;
    }
    size_t count = grant(c, &w);
    if (count == SIZE_MAX)
        snprintf(answer, size, "-%s", nl_error_message());
    else
        snprintf(answer, size, "+%zu switched", count);
}

void control_answer(control *c)
{
    char command[COMMAND_MAX], answer[COMMAND_MAX + 64];
    int fd = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    /* A command comes at once, or is not waited for long. */
    struct timeval most = {.tv_usec = 200000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    ssize_t got = recv(fd, command, sizeof command - 1, 0);
    if (got > 0 && !may_command(fd)) {
        snprintf(answer, sizeof answer, "-only user %u, who records, and root may command it", (unsigned)getuid());
        send(fd, answer, strlen(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
    } else if (got > 0) {
        command[got] = '\0';
        obey(c, command, answer, sizeof answer);
        send(fd, answer, strlen(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    close(fd);
}

/* The process of the only recorder that runs; 0 with the reason when there is none, or are several. */
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
        nl_error_set(NL_ERROR_NOT_FOUND, "no nlkernel records here");
    else if (count > 1)
        nl_error_set(NL_ERROR_BUSY, "several record here: say --recorder, which is one of %s", others);
    return count == 1 ? found : 0;
}

char *control_send(int pid, const char *command, bool *good)
{
    char answer[COMMAND_MAX + 64];
    struct sockaddr_un address;
    if (pid == 0 && (pid = find_recorder()) == 0)
        return NULL;
    socklen_t size = address_of(pid, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    struct timeval most = {.tv_sec = SEND_SECONDS};
    ssize_t got = -1;
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, size) != 0)
        nl_error_set(NL_ERROR_NOT_FOUND,
                     errno == ECONNREFUSED ? "no nlkernel records as process %d" : "process %d can't be reached", pid);
    else if (send(fd, command, strlen(command), MSG_NOSIGNAL) < 0 ||
             (got = recv(fd, answer, sizeof answer - 1, 0)) <= 0)
        nl_error_set(NL_ERROR_TIMEOUT, "process %d does not answer", pid);
    if (fd >= 0)
        close(fd);
    if (got <= 0)
        return NULL;
    answer[got] = '\0';
    *good = *answer == '+';
    return strdup(answer + 1);
}

/* ---- by file ---- */

static bool control_is_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_dev == b->st_dev;
}

/* A file may change again without its time changing: so young a one is looked at again. */
static bool is_young(const struct stat *status)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec - status->st_mtim.tv_sec < 2;
}

static bool take_lines(const control *c, wish *w, char *text)
{
    bool good = true;
    size_t number = 0;
    for (char *line = text, *next; line != NULL; line = next) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        number++;
        const char *start = line + strspn(line, " \t\r");
        if (*start == '\0' || *start == '#' || control_take_line(c, w, start))
            continue;
        if (good) /* the first is said */
            nl_error_prepend("%s:%zu", c->path, number);
        good = false;
    }
    return good;
}

/* The file's text, "" when there is none; NULL with the reason. */
static char *read_file(const char *path)
{
    rights_lower();
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), error = errno;
    rights_raise();
    errno = error;
    char *text = nl_memory_check(calloc(1, FILE_MAX));
    ssize_t got = 0;
    for (size_t size = 0; fd >= 0 && size + 1 < FILE_MAX && (got = read(fd, text + size, FILE_MAX - 1 - size)) > 0;)
        size += (size_t)got;
    bool good = fd >= 0 ? got >= 0 : error == ENOENT;
    if (!good) {
        errno = fd >= 0 ? errno : error;
        nl_error_set_errno("%s", path);
    }
    if (fd >= 0)
        close(fd);
    if (good)
        return text;
    free(text);
    return NULL;
}

bool control_look(control *c)
{
    struct stat now = {0};
    if (c->path == NULL)
        return true;
    if (stat(c->path, &now) != 0)
        now = (struct stat){0};
    if (control_is_same(&now, &c->seen))
        return true;
    char *text = read_file(c->path);
    c->seen = now;
    if (is_young(&now))
        c->seen.st_size = -1;
    if (text == NULL)
        return false;
    wish w = wish_of(c);
    w.on = true;
    memset(w.events_on, 1, c->target.event_count * sizeof *w.events_on);
    bool good = take_lines(c, &w, text);
    free(text);
    return grant(c, &w) != SIZE_MAX && good;
}

/* ---- its life ---- */

void control_open(control *c, const control_target *target, const char *path)
{
    *c = (control){.target = *target, .on = true, .fd = -1, .path = path};
    c->events_on = nl_memory_check(malloc(target->event_count + 1));
    memset(c->events_on, 1, target->event_count + 1);
    listen_for_commands(c);
}

void control_close(control *c)
{
    if (c->events_on == NULL)
        return;
    if (c->fd >= 0)
        close(c->fd);
    free(c->events_on);
    *c = (control){.fd = -1};
}
