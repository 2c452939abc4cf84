#include "config.h"

#include "classic/classic.h"

#include "transport/log_options.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "transport/destination.h"
#include "transport/dial.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONNECT_TIMEOUT_MS = 10000 };

static pthread_rwlock_t tags_lock = PTHREAD_RWLOCK_INITIALIZER;
static char *global_tag; /* NULL: no global tag */
static int tags_in_use;  /* number of tags that are set; atomic; writers take tags_lock only if it is not 0 */

/* Appends the URL in the form that nl_open expects: file://NAME of the old toolkit becomes file:NAME, a path relative
 * to the current directory, and x-syslog:// gets the facility local0. */
static void append_meant(nl_buffer *out, const char *url)
{
    static const char file[] = "file://", syslog[] = "x-syslog://";
    const size_t file_size = sizeof file - 1, syslog_size = sizeof syslog - 1;
    if (strncmp(url, file, file_size) == 0 && url[file_size] != '/') {
        nl_buffer_append_text(out, "file:");
        url += file_size;
    } else if (strncmp(url, syslog, syslog_size) == 0 && strchr("?", url[syslog_size]) != NULL) {
        nl_buffer_append_text(out, "x-syslog://local0");
        url += syslog_size;
    }
    nl_buffer_append_text(out, url);
}

/* Adds the append option to a file URL that lacks it. Converts a bare path to a URL first, because only a URL can have
 * options. */
static void add_append(nl_buffer *url, const nl_url *parsed, bool append_wanted)
{
    bool bare = strcmp(parsed->text, parsed->path) == 0;
    if (bare) {
        url->size = 0;
        nl_buffer_append_text(url, "file:");
        nl_url_append_escaped(url, parsed->path);
    }
    nl_buffer_append_text(url, !bare && strchr(parsed->text, '?') != NULL ? "&" : "?");
    nl_buffer_append_text(url, append_wanted ? "append=yes" : "append=no");
}

static nl_log *classic_open_log(const char *program_name, const char *url_text, int flags)
{
    const unsigned failures = nl_memory_failures;
    nl_buffer url = {0};
    append_meant(&url, url_text);
    nl_buffer_append(&url, "", 1);
    nl_url *parsed = nl_memory_failures == failures ? nl_url_parse(url.data) : NULL;
    if (parsed != NULL && parsed->scheme == NL_SCHEME_FILE && nl_url_option_value(parsed, "append") == NULL) {
        url.size--;
        add_append(&url, parsed, (flags & NL_APPEND) != 0);
        nl_buffer_append(&url, "", 1);
    }
    /* nl_open reports an invalid URL. */
    nl_log *log = nl_memory_failures == failures ? nl_open(program_name, url.data) : NULL;
    nl_url_free(parsed);
    nl_buffer_free(&url);
    return log;
}

NL_Handle *NetLoggerOpen(const char *program_name, const char *url, int flags)
{
    char number[24];
    if (program_name == NULL) {
        snprintf(number, sizeof number, "%ld", (long)getpid());
        program_name = number;
    }
    nl_environment environment;
    nl_environment_read(&environment);
    if ((flags & NL_ENV) != 0 && environment.destination != NULL)
        url = environment.destination;
    nl_error_clear();
    if (url == NULL || *url == '\0') {
        nl_error_set(NL_ERROR_INVALID, "no destination: the URL is empty%s",
                     (flags & NL_ENV) != 0 ? ", and so is " NL_DEST_ENV : ", and NL_ENV was not given");
        return NULL;
    }
    nl_log *log = classic_open_log(program_name, url, flags);
    if (log == NULL)
        return NULL;
    NL_Handle *handle = nl_memory_check(calloc(1, sizeof *handle));
    if (handle != NULL)
        handle->log = log;
    else
        nl_close(log);
    return handle;
}

NL_Handle *NetLoggerOpenFd(const char *program_name, int fd, int flags)
{
    char path[40];
    snprintf(path, sizeof path, "file:///dev/fd/%d", fd);
    return NetLoggerOpen(program_name, path, flags & ~NL_ENV);
}

void NetLoggerSetLevel(NL_Handle *handle, int log_level)
{
    if (handle != NULL)
        __atomic_store_n(&handle->level, log_level, __ATOMIC_RELAXED);
}

/*
 * Replaces the tag at *place with a copy of tag; NULL and "" remove the tag. Returns NL_OK. If memory runs out, keeps
 * the old tag and returns NL_FAILED.
 */
static nl_status set_tag(char **place, const char *tag)
{
    char *copy = tag != NULL && *tag != '\0' ? strdup(tag) : NULL;
    if (copy == NULL && tag != NULL && *tag != '\0')
        return nl_memory_failed();
    pthread_rwlock_wrlock(&tags_lock);
    __atomic_add_fetch(&tags_in_use, (copy != NULL) - (*place != NULL), __ATOMIC_RELAXED);
    char *before = *place;
    *place = copy;
    pthread_rwlock_unlock(&tags_lock);
    free(before);
    return NL_OK;
}

int NetLoggerSetTag(NL_Handle *handle, const char *tag)
{
    if (handle == NULL)
        return 0;
    return set_tag(&handle->tag, tag) == NL_OK ? 1 : -1;
}

int NetLoggerSetGlobalTag(const char *tag)
{
    return tag == NULL || set_tag(&global_tag, tag) == NL_OK ? 0 : -1;
}

void nl_classic_append_tags(NL_Handle *handle, nl_buffer *out)
{
    if (__atomic_load_n(&tags_in_use, __ATOMIC_RELAXED) == 0)
        return;
    pthread_rwlock_rdlock(&tags_lock);
    const char *const tags[] = {handle->tag, global_tag};
    for (int i = 0; i < 2; i++) {
        if (tags[i] == NULL)
            continue;
        nl_buffer_append_text(out, tags[i]);
        nl_buffer_append_text(out, " ");
    }
    pthread_rwlock_unlock(&tags_lock);
}

int NetLogOpen(const char *hostname, int port)
{
    char number[24];
    snprintf(number, sizeof number, "%d", port);
    int fd = hostname != NULL ? nl_tcp_connect(hostname, number, nl_deadline_ns(CONNECT_TIMEOUT_MS)) : -1;
    if (hostname == NULL)
        nl_error_set(NL_ERROR_INVALID, "the host name is NULL");
    if (fd >= 0)
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

int NetLoggerFlush(NL_Handle *handle)
{
    if (handle == NULL)
        return 0;
    return nl_flush(handle->log) == NL_OK ? 1 : -1;
}

int NetLoggerClose(NL_Handle *handle)
{
    if (handle == NULL)
        return 0;
    int result = nl_close(handle->log) == NL_OK ? 1 : -1;
    set_tag(&handle->tag, NULL);
    free(handle);
    return result;
}
