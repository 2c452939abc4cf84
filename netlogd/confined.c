#include "config.h"

#include "confined.h"

#include "base/error.h"
#include "output/options.h"
#include "program/program.h"
#include "service/confine.h"

#include <stdlib.h>
#include <string.h>

static bool keep_output(const char *text)
{
    output_options options;
    if (output_options_parse(text, &options) != NL_OK)
        return true;
    bool good = true;
    if (options.spool != NULL)
        good = confine_keep_url(options.url);
    else if (options.path != NULL)
        good = confine_keep_file(options.path, CONFINE_WRITE);
    if (options.seal_key != NULL)
        good = confine_keep_file(options.seal_key, CONFINE_WRITE) && good;
    output_options_free(&options);
    return good;
}

static void keep_destination(const char *text)
{
    nl_url *url = nl_url_parse(text);
    if (url != NULL)
        confine_keep_url(url);
    nl_url_free(url);
}

/* Keeps the right that a listener needs to remove its Unix socket at the end, or to connect to NATS. */
static void keep_listening(const char *text)
{
    nl_url *url = nl_url_parse(text);
    if (url != NULL && url->scheme == NL_SCHEME_UNIX)
        confine_keep_file(url->path, CONFINE_WRITE);
    else if (url != NULL && url->scheme == NL_SCHEME_NATS)
        confine_keep_url(url);
    nl_url_free(url);
}

/* Keeps the right to read the files that match a pattern, and other files in their directory. */
static void keep_input(const char *pattern)
{
    size_t size = strcspn(pattern, "*?[\\");
    while (size > 0 && pattern[size - 1] != '/')
        size--;
    char *directory = size > 0 ? program_format("%.*s", (int)size, pattern) : program_copy(".");
    confine_keep_directory(directory, CONFINE_READ);
    free(directory);
}

static void keep_all(const settings *s)
{
    for (size_t i = 0; i < s->input_count; i++)
        keep_input(s->inputs[i]);
    if (s->journal != NULL)
        confine_keep_directory(s->journal, CONFINE_READ);
    for (size_t i = 0; i < s->output_count; i++)
        keep_output(s->outputs[i]);
    for (size_t i = 0; i < s->listen_count; i++)
        keep_listening(s->listen[i].nats != NULL ? s->listen[i].nats : s->listen[i].url);
    keep_destination(s->log);
    if (s->control != NULL)
        keep_listening(s->control);
    if (s->reject != NULL)
        confine_keep_file(s->reject, CONFINE_WRITE);
    if (s->pid_file != NULL)
        confine_keep_file(s->pid_file, CONFINE_WRITE);
    if (s->activation != NULL)
        confine_keep_file(s->activation, CONFINE_READ);
    /* A reload may add outputs to collectors whose names netlogd must then resolve. */
    confine_keep_resolver();
    confine_keep_any_port();
}

nl_status confined_begin(const settings *s)
{
    if (!s->confine)
        return NL_OK;
    keep_all(s);
    return confine() ? NL_OK : NL_FAILED;
}

nl_status confined_check(const settings *s)
{
    for (size_t i = 0; i < s->output_count; i++)
        if (!keep_output(s->outputs[i]))
            return nl_error_prepend("%.300s", s->outputs[i]);
    return NL_OK;
}
