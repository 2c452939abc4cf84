#include "config.h"

#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Long enough for a path of PATH_MAX's usual values and three causes; what is longer is cut, never overrun. */
enum { MESSAGE_SIZE = 1024 };

static _Thread_local char message[MESSAGE_SIZE];

static void NL_PRINTF(1, 0) set_message(const char *format, va_list arguments)
{
    vsnprintf(message, sizeof message, format, arguments);
}

static void append_message(const char *separator, const char *words)
{
    size_t used = strlen(message);
    snprintf(message + used, sizeof message - used, "%s%s", separator, words);
}

nl_status nl_error_set(const char *format, ...)
{
    int saved = errno;
    va_list arguments;
    va_start(arguments, format);
    set_message(format, arguments);
    va_end(arguments);
    errno = saved;
    return NL_FAILED;
}

nl_status nl_error_set_errno(const char *format, ...)
{
    int saved = errno;
    va_list arguments;
    va_start(arguments, format);
    set_message(format, arguments);
    va_end(arguments);
    char words[128];
    append_message(": ", strerror_r(saved, words, sizeof words));
    errno = saved;
    return NL_FAILED;
}

nl_status nl_error_prepend(const char *format, ...)
{
    int saved = errno;
    char cause[MESSAGE_SIZE];
    memcpy(cause, message, sizeof cause);
    va_list arguments;
    va_start(arguments, format);
    set_message(format, arguments);
    va_end(arguments);
    if (cause[0] != '\0')
        append_message(": ", cause);
    errno = saved;
    return NL_FAILED;
}

void nl_abort_call(const char *function, const char *what)
{
    fprintf(stderr, "netlogger: wrong call of %s: %s\n", function, what);
    abort();
}

const char *nl_error_message(void)
{
    return message;
}

void nl_error_clear(void)
{
    message[0] = '\0';
}

const char *nl_version(void)
{
    return PACKAGE_VERSION;
}
