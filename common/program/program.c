#include "config.h"

#include "program/program.h"

#include "program/message_output.h"
#include "record/terminal.h"
#include "transport/log_options.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *program_name = "netlogger";
static bool progress_shown;
static void (*program_listener)(const char *message);

const char *program_get_name(void)
{
    return program_name;
}

void program_start(const char *name)
{
    program_name = name;
    /*
     * Open the standard descriptors if they are closed, so that a file that the program opens later does not become
     * standard output.
     */
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

/* The linker exports this function, because the shared library also calls it. */
__attribute__((visibility("default"))) void program_memory_failed(void)
{
    program_fail(PROGRAM_PROBLEM, "out of memory");
}

void program_host(char *host, size_t size)
{
    nl_environment environment;
    nl_environment_read(&environment);
    if (environment.host != NULL)
        snprintf(host, size, "%s", environment.host);
    else if (gethostname(host, size) != 0)
        snprintf(host, size, "localhost");
    host[size - 1] = '\0';
}

void program_replace_controls(char *text, size_t size)
{
    const char *end = text + size;
    for (char *at = text; at < end;) {
        bool controls;
        size_t size = nl_terminal_character(at, end, &controls);
        if (controls && *at != '\n' && *at != '\t')
            memset(at, '?', size);
        at += size;
    }
}

NL_PRINTF(1, 0)
static void print_message(const char *format, va_list arguments)
{
    char *message;
    if (vasprintf(&message, format, arguments) < 0)
        return;
    /* Messages quote logs, which any program can write. A terminal would obey control characters in the quoted text. */
    program_replace_controls(message, strlen(message));
    program_progress_end();
    message_output_write(program_name, message);
    if (program_listener != NULL)
        program_listener(message);
    free(message);
}

void program_set_listener(void (*listener)(const char *message))
{
    program_listener = listener;
}

void program_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_message(format, arguments);
    va_end(arguments);
}

bool program_print_error(void)
{
    program_error("%s", nl_error_message());
    return false;
}

void program_fail(int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_message(format, arguments);
    va_end(arguments);
    exit(status);
}

void program_fail_with_error(int status)
{
    program_print_error();
    exit(status);
}

char *program_copy(const char *text)
{
    return nl_memory_check(strdup(text));
}

char *program_format(const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        program_memory_failed();
    va_end(arguments);
    return text;
}

char *program_read_secret(const char *path)
{
    char *line = NULL;
    size_t capacity = 0;
    FILE *file = fopen(path, "re");
    bool has_line = file != NULL && getline(&line, &capacity, file) >= 0;
    if (has_line)
        line[strcspn(line, "\r\n")] = '\0';
    if (!has_line && (file == NULL || ferror(file)))
        nl_error_set_errno("read %s", path);
    else if (!has_line || *line == '\0')
        nl_error_set(NL_ERROR_INVALID, "read %s: the first line is empty", path);
    if (file != NULL)
        fclose(file);
    if (has_line && *line != '\0')
        return line;
    free(line);
    return NULL;
}

int program_finish(int status)
{
    errno = 0;
    bool failed = ferror(stdout) != 0;
    if (fclose(stdout) != 0 || failed) {
        program_error("write standard output: %s", errno != 0 ? strerror(errno) : "failed");
        return PROGRAM_PROBLEM;
    }
    return status;
}

void program_progress(const char *what, uint64_t done, uint64_t total, uint64_t records)
{
    static int64_t shown_ns;
    static int terminal = -1;
    enum { INTERVAL_NS = 100000000 };
    if (terminal < 0)
        terminal = isatty(STDERR_FILENO);
    if (!terminal)
        return;
    int64_t now_ns = nl_monotonic_ns();
    if (now_ns - shown_ns < INTERVAL_NS)
        return;
    shown_ns = now_ns;
    progress_shown = true;
    fprintf(stderr, "\r\033[K%s: %s", program_name, what);
    if (total > 0)
        fprintf(stderr, " %3.0f %%", 100.0 * (double)done / (double)total);
    fprintf(stderr, "  %.1f M records", (double)records / 1e6);
}

void program_progress_end(void)
{
    if (progress_shown)
        fprintf(stderr, "\r\033[K");
    progress_shown = false;
}
