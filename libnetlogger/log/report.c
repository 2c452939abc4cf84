#include "config.h"

#include "log/report.h"

#include "base/descriptor.h"
#include "base/signals.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LINE_SIZE = 2048 };

static nl_message_handler *handler;
static void *handler_user;
static nl_identity standard_error; /* members are atomic, because threads open logs at the same time */

void nl_set_message_handler(nl_message_handler *new_handler, void *user)
{
    handler_user = user;
    __atomic_store_n(&handler, new_handler, __ATOMIC_RELEASE);
}

void nl_report_begin(void)
{
    const nl_identity present = nl_identity_of(STDERR_FILENO);
    __atomic_store_n(&standard_error.device, present.device, __ATOMIC_RELAXED);
    __atomic_store_n(&standard_error.inode, present.inode, __ATOMIC_RELAXED);
}

/*
 * Returns whether standard error is still the same file as when a log was opened. If two threads set the members of
 * standard_error at the same time, the members may not describe any file; the function then returns false.
 */
static bool is_still_standard_error(void)
{
    const nl_identity opened = {__atomic_load_n(&standard_error.device, __ATOMIC_RELAXED),
                                __atomic_load_n(&standard_error.inode, __ATOMIC_RELAXED)};
    return nl_identity_holds(&opened, STDERR_FILENO);
}

/*
 * Prints a line of size bytes on standard error. Drops a line that does not fit into a pipe, because a pipe without a
 * reader must not block the program.
 */
static void print_line(char *line, size_t size)
{
    static const char prefix[] = "netlogger: ";
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    struct iovec parts[] = {{(char *)prefix, sizeof prefix - 1}, {line, size}};
    nl_held_signals held;
    if (!is_still_standard_error() || poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0)
        return;
    line[size] = '\n';
    parts[1].iov_len++;
    nl_signals_hold(&held);
    if (writev(STDERR_FILENO, parts, 2) < 0)
        errno = 0; /* a failure cannot be reported */
    nl_signals_release(&held);
}

void nl_report(nl_message_kind kind, const nl_url *url, const char *format, ...)
{
    char line[LINE_SIZE + 1]; /* the message with a newline */
    const int saved = errno;
    int size = url == NULL ? 0 : snprintf(line, LINE_SIZE / 2, "%.*s: ", (int)strcspn(url->text, "?"), url->text);
    va_list arguments;
    if (size < 0 || (size_t)size >= LINE_SIZE / 2)
        size = 0;
    va_start(arguments, format);
    vsnprintf(line + size, LINE_SIZE - (size_t)size, format, arguments);
    va_end(arguments);
    nl_message_handler *present = __atomic_load_n(&handler, __ATOMIC_ACQUIRE);
    if (present != NULL)
        present(handler_user, kind, line);
    else
        print_line(line, strlen(line));
    errno = saved;
}
