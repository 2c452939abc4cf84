#include "config.h"

#include "child.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Maximum time to wait for a command to end after SIGTERM, and interval of the checks. */
enum { END_WAIT_MS = 5000, END_POLL_MS = 10 };

_Noreturn static void wait_and_execute(int go_fd, int error_fd, char **argv)
{
    char go;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    if (read(go_fd, &go, 1) != 1)
        _exit(0); /* without the byte, the recording has failed or nlkernel was killed */
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
        return nl_error_set_errno("create a pipe") == NL_OK;
    if (pipe2(error, O_CLOEXEC) != 0) {
        close(go[0]);
        close(go[1]);
        return nl_error_set_errno("create a pipe") == NL_OK;
    }
    c->pid = fork();
    if (c->pid == 0) {
        close(go[1]);
        wait_and_execute(go[0], error[1], argv);
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
    if (error == 0)
        return nl_error_false(NL_ERROR_SYSTEM, "the process ended before it executed the command");
    errno = error;
    return nl_error_set_errno("cannot start") == NL_OK;
}

void child_poll(child *c)
{
    if (c->pid > 0 && !c->ended && waitpid(c->pid, NULL, WNOHANG) == c->pid)
        c->ended = true;
}

bool child_end(child *c)
{
    if (c->pid == 0)
        return true;
    child_poll(c);
    if (c->go_fd >= 0)
        close(c->go_fd); /* the process then exits by itself */
    else if (!c->ended)
        kill(c->pid, SIGTERM);
    for (int looks = 0; !c->ended && looks < END_WAIT_MS / END_POLL_MS; looks++) {
        nanosleep(&(struct timespec){.tv_nsec = END_POLL_MS * 1000000}, NULL);
        child_poll(c);
    }
    close(c->error_fd);
    c->pid = 0;
    return c->ended;
}

bool child_run(char *const *argv, const char *output)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t none; /* for the command, unblock the signals that a recording blocks */
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        if (output != NULL) {
            int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
            dup2(fd, STDOUT_FILENO);
            dup2(fd, STDERR_FILENO);
        }
        execvp(argv[0], argv);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
