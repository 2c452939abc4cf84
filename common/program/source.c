/*
 * Opens the sources that programs read, which may be compressed and in any format.
 */
#include "config.h"

#include "base/memory.h"
#include "program/foreign.h"
#include "program/gzip.h"
#include "program/program.h"
#include "program/reading.h"
#include "record/zstd_magic.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PAUSE_NS = 5000000 };

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

bool program_was_stopped(void)
{
    return stopped != 0;
}

void program_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool program_awaits_signal(const char *name)
{
    nl_url *url = nl_url_parse(name);
    bool endless = url != NULL && nl_url_is_collector(url);
    nl_url_free(url);
    return endless;
}

void program_await_signal(const char *name)
{
    static bool reported;
    if (reported)
        return;
    program_catch_signals();
    program_error("%s: reading live; press Ctrl-C to stop and print the result", name);
    reported = true;
}

void program_pause(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

enum { HEAD_SIZE = 64 << 10 };

/*
 * Returns at most HEAD_SIZE bytes from the position of a regular file. Sets *size to 0 at the end of the file, after a
 * read error, and for other kinds of files. The caller frees the result.
 */
static char *read_head(const nl_source *source, size_t *size)
{
    int fd = nl_source_file(source);
    char *head = nl_memory_check(malloc(HEAD_SIZE));
    ssize_t got = fd >= 0 ? pread(fd, head, HEAD_SIZE, (off_t)nl_source_position(source)) : 0;
    *size = got > 0 ? (size_t)got : 0;
    return head;
}

static bool may_be_compressed(const char *head, size_t size)
{
    return size == 0 || nl_zstd_may_begin(head, size) || gzip_begins(head, size);
}

bool program_is_read_in_place(const program_reading *reading, const char *head, size_t size)
{
    return !may_be_compressed(head, size) && !program_is_foreign(reading, head, size);
}

/* Reports, once, that a program waits for input on a terminal. */
static void report_terminal(void)
{
    static bool reported;
    if (!reported && isatty(STDIN_FILENO))
        program_error("reading standard input; press Ctrl-D to end it, or see %s --help", program_get_name());
    reported = true;
}

/* Opens a source. If `reading` is NULL, the source only decompresses the stored bytes, and does not convert formats. */
static nl_source *open_source(program_reading *reading, const char *name, bool follow, bool nonblocking)
{
    nl_url *url = nl_url_parse_for(name, NL_URL_READ);
    if (url != NULL && url->scheme == NL_SCHEME_STDIO)
        report_terminal();
    nl_source *source = url != NULL ? nl_source_open(url, follow, nonblocking) : NULL;
    if (source != NULL && (url->scheme == NL_SCHEME_FILE || url->scheme == NL_SCHEME_STDIO)) {
        size_t size;
        char *head = read_head(source, &size);
        bool in_place =
            reading != NULL ? program_is_read_in_place(reading, head, size) : !may_be_compressed(head, size);
        if (!in_place)
            gzip_add(source, name);
        if (!in_place && reading != NULL && reading->format == NL_FORMAT_UNKNOWN)
            program_translate(source, reading, name);
        free(head);
    }
    nl_url_free(url);
    if (source != NULL && !follow && program_awaits_signal(name))
        program_await_signal(name);
    return source;
}

nl_source *program_source_open_stored(const char *name)
{
    return open_source(NULL, name, false, program_awaits_signal(name));
}

nl_source *program_source_open(program_reading *reading, const char *name, bool follow, bool nonblocking)
{
    if (reading->reads_directories || (program_is_directory(name) && program_is_foreign_directory(name)))
        return program_translate_directory(reading, name);
    return open_source(reading, name, follow, nonblocking || (!follow && program_awaits_signal(name)));
}

nl_status program_source_read(nl_source *source, const char **data, size_t *size)
{
    while (!stopped) {
        nl_status status = nl_source_read(source, data, size);
        if (status != NL_AGAIN)
            return status;
        program_pause();
    }
    return NL_END;
}

/* ---- archives ---- */

bool program_is_archive(const char *path)
{
    return program_is_directory(path) && !program_is_foreign_directory(path);
}

bool program_expand_archives(program_reading *reading, char **names, size_t count, char ***files, size_t *file_count)
{
    static char *standard_input[] = {"-"};
    bool good = true;
    if (count == 0) {
        names = standard_input;
        count = 1;
    }
    *files = NULL;
    *file_count = 0;
    for (size_t i = 0; i < count; i++) {
        char **found = NULL, *name = NULL;
        size_t more = 1;
        bool directory = program_is_archive(names[i]);
        program_add_source(reading, names[i]);
        reading->live = reading->live || program_awaits_signal(names[i]);
        if (directory && !program_list_archive(names[i], &found, &more)) {
            reading->failed = true;
            good = false;
            continue;
        }
        if (directory)
            program_archive_begin(reading, names[i]);
        *files = nl_memory_check(realloc(*files, (*file_count + more + 1) * sizeof **files));
        if (!directory)
            name = program_copy(names[i]);
        memcpy(*files + *file_count, directory ? found : &name, more * sizeof **files);
        *file_count += more;
        free(found);
    }
    return good;
}
