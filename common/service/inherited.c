#include "config.h"

#include "service/inherited.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FIRST = 3, MAX = 64 };

static char *names[MAX];
static size_t count;

static void inherited_take(size_t number, const char **list)
{
    size_t size = strcspn(*list, ":");
    int fd = FIRST + (int)number;
    names[number] = size > 0 ? strndup(*list, size) : strdup("unknown");
    *list += size + ((*list)[size] == ':');
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

void inherited_find(void)
{
    const char *pid = getenv("LISTEN_PID"), *sockets = getenv("LISTEN_FDS"), *list = getenv("LISTEN_FDNAMES");
    unsigned long wanted = sockets != NULL ? strtoul(sockets, NULL, 10) : 0;
    if (pid != NULL && strtol(pid, NULL, 10) == (long)getpid() && wanted <= MAX) {
        list = list != NULL ? list : "";
        for (; count < wanted; count++)
            inherited_take(count, &list);
    }
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
}

size_t inherited_count(void)
{
    return count;
}

int inherited_next(const char *name, int after)
{
    size_t i = after < FIRST ? 0 : (size_t)(after - FIRST) + 1;
    while (i < count && strcmp(name, "*") != 0 && strcmp(name, names[i]) != 0)
        i++;
    return i < count ? FIRST + (int)i : -1;
}

const char *inherited_name(int fd)
{
    return names[fd - FIRST];
}

void inherited_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = path != NULL ? strlen(path) : 0;
    if (size < 2 || size >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(address.sun_path, path, size);
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    socklen_t whole = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address, whole);
    close(fd);
}
