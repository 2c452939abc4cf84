#include "config.h"

#include "service/daemon.h"

#include "program/program.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The write end of the pipe on which the parent waits; -1 if the process is not detached, or is ready. */
static int starter = -1;
static bool redirects;

void daemon_detach(bool keep_streams)
{
    int ends[2], status = 0;
    char ready;
    if (pipe2(ends, O_CLOEXEC) != 0)
        program_fail(PROGRAM_PROBLEM, "cannot start in the background: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0)
        program_fail(PROGRAM_PROBLEM, "cannot start in the background: %s", strerror(errno));
    if (child == 0) {
        close(ends[0]);
        starter = ends[1];
        redirects = !keep_streams;
        setsid();
        return;
    }
    close(ends[1]);
    ssize_t got;
    do
        got = read(ends[0], &ready, 1);
    while (got < 0 && errno == EINTR);
    if (got == 1)
        _exit(PROGRAM_DONE);
    waitpid(child, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : PROGRAM_PROBLEM);
}

void daemon_ready(void)
{
    int nothing = starter >= 0 && redirects ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
    if (starter < 0)
        return;
    for (int fd = STDIN_FILENO; nothing >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(nothing, fd);
    if (nothing >= 0)
        close(nothing);
    if (write(starter, "", 1) != 1)
        program_error("cannot start in the background: %s", strerror(errno));
    close(starter);
    starter = -1;
}

bool daemon_has_no_streams(void)
{
    return redirects;
}
