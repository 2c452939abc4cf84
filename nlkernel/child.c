#include "config.h"

#include "child.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How long a command that is told to end is waited for. */
enum { END_WAIT_MS = 5000, END_LOOK_MS = 10 };

_Noreturn static void be_child(int go_fd, int error_fd, char **argv)
{
    char go;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    if (read(go_fd, &go, 1) != 1)
        _exit(0); /* nobody is there any more, or there is nothing to be done */
    execvp(argv[0], argv);
    int error = errno;
    if (write(error_fd, &error, sizeof error) < 0)
        _exit(126);
    _exit(127);
}

bool child_prepare(child *c, char **argv)
{
    int go[2], error[2];
    *c = (child){0};
    if (pipe2(go, O_CLOEXEC) != 0)
        return nl_error_set_errno("make a pipe") == NL_OK;
    if (pipe2(error, O_CLOEXEC) != 0) {
        close(go[0]);
        close(go[1]);
        return nl_error_set_errno("make a pipe") == NL_OK;
    }
    c->pid = fork();
    if (c->pid == 0) {
        close(go[1]);
        be_child(go[0], error[1], argv);
    }
    close(go[0]);
    close(error[1]);
    c->go_fd = go[1];
    c->error_fd = error[0];
    if (c->pid > 0)
        return true;
    c->pid = 0;
    close(go[1]);
    close(error[0]);
    return nl_error_set_errno("fork") == NL_OK;
}

bool child_start(child *c)
{
    int error = 0;
    ssize_t put = write(c->go_fd, "", 1), got;
    close(c->go_fd);
    c->go_fd = -1;
    do
        got = read(c->error_fd, &error, sizeof error);
    while (got < 0 && errno == EINTR);
    if (put == 1 && got != (ssize_t)sizeof error)
        return true;
    errno = error;
    if (error != 0)
        nl_error_set_errno("it can't be started");
    else
        nl_error_set(NL_ERROR_SYSTEM, "it was ended before it began");
    return false;
}

void child_look(child *c)
{
    if (c->pid > 0 && !c->ended && waitpid(c->pid, &c->status, WNOHANG) == c->pid)
        c->ended = true;
}

bool child_end(child *c)
{
    if (c->pid == 0)
        return true;
    child_look(c);
    if (c->go_fd >= 0)
        close(c->go_fd); /* it ends by itself */
    else if (!c->ended)
        kill(c->pid, SIGTERM);
    for (int looks = 0; !c->ended && looks < END_WAIT_MS / END_LOOK_MS; looks++) {
        nanosleep(&(struct timespec){.tv_nsec = END_LOOK_MS * 1000000}, NULL);
        child_look(c);
    }
    close(c->error_fd);
    c->pid = 0;
    return c->ended;
}
