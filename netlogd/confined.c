#include "config.h"

#include "confined.h"

#include "output/options.h"
#include "program/program.h"
#include "service/confine.h"

#include <stdlib.h>
#include <string.h>

/* Directories, each allocated. */
typedef struct directories {
    char **paths;
    size_t count;
} directories;

static void add(directories *d, const char *path)
{
    d->paths = realloc(d->paths, (d->count + 1) * sizeof *d->paths);
    if (d->paths == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    d->paths[d->count++] = program_copy(path);
}

/* The directory that a file is in. */
static void add_parent(directories *d, const char *path)
{
    char *copy = program_copy(path), *slash = strrchr(copy, '/');
    if (slash != NULL)
        slash[slash == copy] = '\0';
    add(d, slash != NULL ? copy : ".");
    free(copy);
}

/* A URL's own file or socket, and its spool. */
static void add_url(directories *d, const char *text)
{
    nl_url *url = text != NULL ? nl_url_parse(text) : NULL;
    if (url == NULL)
        return;
    const char *spool = nl_url_option_value(url, "spool");
    if (url->path != NULL && (url->scheme == NL_SCHEME_FILE || url->scheme == NL_SCHEME_UNIX))
        add_parent(d, url->path);
    if (spool != NULL)
        add(d, spool);
    nl_url_free(url);
}

static void add_output(directories *d, const char *text)
{
    output_options options;
    if (output_options_parse(text, &options) != NL_OK)
        return;
    if (options.path != NULL)
        add_parent(d, options.path);
    if (options.spool != NULL)
        add(d, options.spool);
    output_options_free(&options);
}

static directories find_directories(const settings *s)
{
    directories d = {0};
    add(&d, "/dev"); /* /dev/null, and what killed programs have left in /dev/shm */
    const char *rings = getenv("NETLOGGER_SHM");
    if (rings != NULL)
        add(&d, rings);
    for (size_t i = 0; i < s->output_count; i++)
        add_output(&d, s->outputs[i]);
    for (size_t i = 0; i < s->listen_count; i++)
        add_url(&d, s->listen[i].url);
    add_url(&d, s->log);
    add_url(&d, s->control);
    if (s->reject != NULL)
        add_parent(&d, s->reject);
    if (s->pid_file != NULL)
        add_parent(&d, s->pid_file);
    return d;
}

void confined_begin(const settings *s, nl_log *log)
{
    char message[CONFINE_MESSAGE];
    if (!s->confine)
        return;
    directories d = find_directories(s);
    const confine_options options = {.writable = (const char *const *)d.paths, .writable_count = d.count};
    if (!confine(&options, message)) {
        program_error("%s", message);
        nl_write(log, NL_WARNING, "Netlogd.NotConfined", "REASON=%s", message);
    }
    for (size_t i = 0; i < d.count; i++)
        free(d.paths[i]);
    free(d.paths);
}

const char *confined_forbids(const settings *s)
{
    for (size_t i = 0; i < s->output_count; i++) {
        output_options options;
        if (output_options_parse(s->outputs[i], &options) != NL_OK)
            continue;
        bool good = (options.path == NULL || options.spool != NULL || confine_permits(options.path)) &&
                    (options.spool == NULL || confine_permits(options.spool));
        output_options_free(&options);
        if (!good)
            return s->outputs[i];
    }
    return NULL;
}
