#include "config.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Each thread's error is allocated when a call first fails in the thread, and is freed when the thread ends. The error
 * is not in static TLS, which is scarce in a program that loads the library with dlopen. The error is not on the heap,
 * because a signal handler may interrupt malloc and then log an event whose failure sets the error.
 */
static _Thread_local nl_error *current __attribute__((tls_model("initial-exec")));

/* Preallocated errors for threads in which the first failure is a lack of memory. */
enum { SPARE_COUNT = 16 };
static nl_error spare[SPARE_COUNT];
static bool spare_used[SPARE_COUNT];

static nl_error *error_use_spare(void)
{
    for (int i = 0; i < SPARE_COUNT; i++)
        if (!__atomic_exchange_n(&spare_used[i], true, __ATOMIC_ACQ_REL)) {
            spare[i] = (nl_error){.code = NL_ERROR_NONE};
            return &spare[i];
        }
    return NULL;
}

static void free_error(void *unused)
{
    (void)unused;
    if (current >= spare && current < spare + SPARE_COUNT)
        __atomic_store_n(&spare_used[current - spare], false, __ATOMIC_RELEASE);
    else
        munmap(current, sizeof *current);
    current = NULL;
}

NL_THREAD_KEY(error_key, free_error)

/*
 * Allocates this thread's error unless it exists, or uses a spare one. If it returns false, the message is lost, but
 * the caller still returns a failure.
 */
static bool has_error(void)
{
    if (current != NULL)
        return true;
    void *memory = mmap(NULL, sizeof *current, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED && (memory = error_use_spare()) == NULL)
        return false;
    current = memory;
    error_key_set(current);
    return true;
}

/*
 * Sets this thread's error, and appends ": " and cause unless cause is empty. Keeps errno. The arguments may contain
 * the current message, so the function formats the new message in another buffer.
 */
static void NL_PRINTF(3, 0) set_error(nl_error_code code, const char *cause, const char *format, va_list arguments)
{
    int saved = errno;
    char message[NL_ERROR_MESSAGE_SIZE];
    int size = vsnprintf(message, sizeof message, format, arguments);
    if (cause[0] != '\0' && size >= 0 && (size_t)size < sizeof message)
        snprintf(message + size, sizeof message - (size_t)size, ": %s", cause);
    if (has_error()) {
        current->code = code;
        memcpy(current->message, message, sizeof message);
    }
    errno = saved;
}

nl_status nl_error_set(nl_error_code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_error(code, "", format, arguments);
    va_end(arguments);
    return NL_FAILED;
}

static nl_error_code code_of_errno(void)
{
    switch (errno) {
    case ENOMEM:
        return NL_ERROR_MEMORY;
    case ENOENT:
    case ESRCH:
        return NL_ERROR_NOT_FOUND;
    case EACCES:
    case EPERM:
        return NL_ERROR_PERMISSION;
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EPIPE:
        return NL_ERROR_UNREACHABLE;
    case ETIMEDOUT:
        return NL_ERROR_TIMEOUT;
    case EMFILE:
    case ENFILE:
    case EFBIG:
        return NL_ERROR_LIMIT;
    case ENOSPC:
    case EDQUOT:
        return NL_ERROR_FULL;
    case EBUSY:
    case EADDRINUSE:
        return NL_ERROR_BUSY;
    default:
        return NL_ERROR_SYSTEM;
    }
}

nl_status nl_error_set_errno(const char *format, ...)
{
    char cause[128];
    va_list arguments;
    va_start(arguments, format);
    set_error(code_of_errno(), strerror_r(errno, cause, sizeof cause), format, arguments);
    va_end(arguments);
    return NL_FAILED;
}

nl_status nl_error_set_open(const char *path)
{
    const int number = errno;
    const char *slash = strrchr(path, '/');
    char directory[PATH_MAX] = "";
    if (number == ENOENT && slash != NULL)
        snprintf(directory, sizeof directory, "%.*s", (int)(slash - path), path);
    const bool is_missing = directory[0] != '\0' && access(directory, F_OK) != 0;
    errno = number;
    if (is_missing)
        return nl_error_set(NL_ERROR_NOT_FOUND, "open %s: No such file or directory; create the directory %s", path,
                            directory);
    return nl_error_set_errno("open %s", path);
}

nl_status nl_error_prepend(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_error(nl_error_get_code(), nl_error_message(), format, arguments);
    va_end(arguments);
    return NL_FAILED;
}

nl_status nl_error_call(const char *function, const char *problem)
{
    return nl_error_set(NL_ERROR_CALL, "invalid call of %s: %s", function, problem);
}

nl_error_code nl_error_get_code(void)
{
    return current != NULL ? current->code : NL_ERROR_NONE;
}

void nl_error_save(nl_error *error)
{
    *error = current != NULL ? *current : (nl_error){.code = NL_ERROR_NONE};
}

nl_status nl_error_restore(const nl_error *error)
{
    if (has_error())
        *current = *error;
    return NL_FAILED;
}

__thread unsigned nl_memory_failures;

nl_status nl_memory_failed(void)
{
    if (program_memory_failed != NULL)
        program_memory_failed();
    nl_memory_failures++;
    return nl_error_set(NL_ERROR_MEMORY, "out of memory");
}

const char *nl_error_message(void)
{
    return current != NULL ? current->message : "";
}

void nl_error_clear(void)
{
    if (current != NULL)
        *current = (nl_error){.code = NL_ERROR_NONE};
}

const char *nl_version(void)
{
    return PACKAGE_VERSION;
}
