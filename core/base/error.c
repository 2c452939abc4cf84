#include "config.h"

#include "base/error.h"
#include "base/memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Long enough for a path of PATH_MAX's usual values and three causes; what is longer is cut, never overrun. */
enum { MESSAGE_SIZE = 1024 };

/*
 * Made at a thread's first failure and freed when the thread ends: what a library takes for every thread from the start
 * is scarce (static TLS), and a program that loads the library late has little of it left. From no heap, so that an
 * event that a signal handler logs in the middle of malloc may fail; for the same reason the key is made when the
 * library is loaded: pthread_setspecific allocates only for a process's later keys.
 */
static _Thread_local char *message __attribute__((tls_model("initial-exec")));
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

/* For threads whose first failure is that there is no memory. */
enum { SPARE_COUNT = 16 };
static char spare[SPARE_COUNT][MESSAGE_SIZE];
static bool spare_used[SPARE_COUNT];

static char *take_spare(void)
{
    for (int i = 0; i < SPARE_COUNT; i++)
        if (!__atomic_exchange_n(&spare_used[i], true, __ATOMIC_ACQ_REL)) {
            spare[i][0] = '\0';
            return spare[i];
        }
    return NULL;
}

static void free_message(void *unused)
{
    (void)unused;
    bool is_spare = false;
    for (int i = 0; i < SPARE_COUNT && !is_spare; i++) {
        is_spare = message == spare[i];
        if (is_spare)
            __atomic_store_n(&spare_used[i], false, __ATOMIC_RELEASE);
    }
    if (!is_spare)
        munmap(message, MESSAGE_SIZE);
    message = NULL;
}

static void make_key(void)
{
    pthread_key_create(&key, free_message);
}

__attribute__((constructor)) static void on_load(void)
{
    pthread_once(&key_once, make_key);
}

/* False when there is no memory: then the words are lost, not the failure. */
static bool has_message(void)
{
    if (message != NULL)
        return true;
    void *memory = mmap(NULL, MESSAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED && (memory = take_spare()) == NULL)
        return false;
    message = memory;
    pthread_once(&key_once, make_key);
    pthread_setspecific(key, message);
    return true;
}

static void NL_PRINTF(1, 0) set_message(const char *format, va_list arguments)
{
    if (has_message())
        vsnprintf(message, MESSAGE_SIZE, format, arguments);
}

static void append_message(const char *separator, const char *words)
{
    if (!has_message())
        return;
    size_t used = strlen(message);
    snprintf(message + used, MESSAGE_SIZE - used, "%s%s", separator, words);
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
    snprintf(cause, sizeof cause, "%s", nl_error_message());
    va_list arguments;
    va_start(arguments, format);
    set_message(format, arguments);
    va_end(arguments);
    if (cause[0] != '\0')
        append_message(": ", cause);
    errno = saved;
    return NL_FAILED;
}

nl_status nl_error_call(const char *function, const char *problem)
{
    return nl_error_set("wrong call of %s: %s", function, problem);
}

__thread unsigned nl_memory_failures;

nl_status nl_memory_failed(void)
{
    if (program_memory_failed != NULL)
        program_memory_failed();
    nl_memory_failures++;
    return nl_error_set("out of memory");
}

const char *nl_error_message(void)
{
    return message != NULL ? message : "";
}

void nl_error_clear(void)
{
    if (message != NULL)
        message[0] = '\0';
}

const char *nl_version(void)
{
    return PACKAGE_VERSION;
}
