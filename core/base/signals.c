#include "config.h"

#include "base/signals.h"

#include <errno.h>
#include <time.h>

static const int raised_by_writing[] = {SIGPIPE, SIGXFSZ};
enum { COUNT = sizeof raised_by_writing / sizeof *raised_by_writing };

void nl_signals_hold(nl_held_signals *held)
{
    sigset_t these;
    sigemptyset(&these);
    for (int i = 0; i < COUNT; i++)
        sigaddset(&these, raised_by_writing[i]);
    pthread_sigmask(SIG_BLOCK, &these, &held->before);
    sigpending(&held->pending);
}

void nl_signals_release(const nl_held_signals *held)
{
    int saved = errno;
    sigset_t pending, ours;
    sigemptyset(&ours);
    sigpending(&pending);
    for (int i = 0; i < COUNT; i++)
        if (sigismember(&pending, raised_by_writing[i]) && !sigismember(&held->pending, raised_by_writing[i]))
            sigaddset(&ours, raised_by_writing[i]);
    while (sigtimedwait(&ours, NULL, &(struct timespec){0}) > 0 || errno == EINTR)
        errno = 0;
    pthread_sigmask(SIG_SETMASK, &held->before, NULL);
    errno = saved;
}
