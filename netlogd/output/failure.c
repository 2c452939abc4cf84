#include "config.h"

#include "failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char text[1024];

nl_status failure(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return NL_FAILED;
}

nl_status failure_errno(const char *format, ...)
{
    int why = errno;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t size = strlen(text);
    snprintf(text + size, sizeof text - size, ": %s", strerror(why));
    errno = why;
    return NL_FAILED;
}

const char *failure_text(void)
{
    return text;
}
