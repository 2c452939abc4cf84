#include "config.h"

#include "log/log_internal.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "base/text.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOK_EVERY_NS = 250 * 1000000,
    FRESH_NS = 50 * 1000000, /* a file can change twice within this time without a new modification time */
    FILE_MAX = 1 << 20,      /* maximum size of the file in bytes */
};

/* ---- lists of commands; each command ends with a NUL ---- */

static const char *next_command(const nl_buffer *list, const char *at)
{
    at = at == NULL ? list->data : at + strlen(at) + 1;
    return list->size > 0 && at < list->data + list->size ? at : NULL;
}

static bool is_in(const nl_buffer *list, const char *command)
{
    for (const char *at = NULL; (at = next_command(list, at)) != NULL;)
        if (strcmp(at, command) == 0)
            return true;
    return false;
}

static bool is_of_kind(const char *command, const char *kind)
{
    return strncasecmp(command, kind, strlen(kind)) == 0 && command[strlen(kind)] == ' ';
}

/* Returns the commands of one kind, in the order of the file. The caller frees the buffer. */
static nl_buffer of_kind(const nl_buffer *list, const char *kind)
{
    nl_buffer found = {0};
    for (const char *at = NULL; (at = next_command(list, at)) != NULL;)
        if (is_of_kind(at, kind))
            nl_buffer_append(&found, at, strlen(at) + 1);
    return found;
}

static size_t count_of(const nl_buffer *list)
{
    size_t count = 0;
    for (const char *at = NULL; (at = next_command(list, at)) != NULL;)
        count++;
    return count;
}

/* ---- changes from one version of the file to the next ---- */

/* The results of applying a version of the file. */
typedef struct outcome {
    size_t undone;
    nl_buffer failures;
} outcome;

static void add_failure(outcome *o)
{
    enum { ENOUGH = 400 };
    if (o->failures.size > ENOUGH)
        return;
    if (o->failures.size > 0)
        nl_buffer_append(&o->failures, "; ", 2);
    nl_buffer_append_text(&o->failures, nl_error_message());
}

static void do_one(nl_log *log, const nl_activation *activation, const char *command, outcome *o)
{
    if (nl_control_do(log, activation->origin, command, strlen(command), NULL) != NL_OK) {
        nl_error_prepend("%s", command);
        add_failure(o);
    }
}

/*
 * Applies all commands of one kind together. The order of "event" commands matters. Only the last "level" command and
 * the last "destination" command have an effect. `old` contains the commands of the previous version of the file, and
 * `new` those of this version. Does nothing if the commands are unchanged, so that later changes by the program remain
 * in effect. Otherwise first undoes the previous commands, except a level or destination that a new command replaces.
 */
static void change_together(nl_log *log, nl_activation *activation, const nl_buffer *old, const nl_buffer *new,
                            outcome *o)
{
    if (old->size == new->size && (old->size == 0 || memcmp(old->data, new->data, old->size) == 0))
        return;
    if (old->size == 0 && is_of_kind(new->data, "level"))
        activation->level_before = __atomic_load_n(&log->gate.threshold, __ATOMIC_RELAXED);
    for (const char *at = NULL; (at = next_command(old, at)) != NULL;) {
        o->undone += !is_in(new, at);
        if ((is_of_kind(at, "event") || new->size == 0) && nl_control_undo(log, activation, at) != NL_OK)
            add_failure(o);
    }
    for (const char *at = NULL; (at = next_command(new, at)) != NULL;)
        do_one(log, activation, at, o);
}

/* Attaches and detaches probes. Probes that are in both versions of the file stay attached and keep their counts. */
static void change_markers(nl_log *log, const nl_activation *activation, const nl_buffer *now, outcome *o)
{
    const nl_buffer *before = &activation->done;
    for (const char *at = NULL; (at = next_command(before, at)) != NULL;)
        if (is_of_kind(at, "marker") && !is_in(now, at)) {
            nl_control_undo(log, activation, at);
            o->undone++;
        }
    for (const char *at = NULL; (at = next_command(now, at)) != NULL;)
        if (is_of_kind(at, "marker"))
            do_one(log, activation, at, o);
}

static void activation_report(nl_log *log, const nl_activation *activation, const char *event, nl_level level,
                              const outcome *o)
{
    nl_record *record = nl_own_record_new(log, level, event);
    nl_record_add_text(record, "BY", activation->path);
    if (o->failures.size > 0 && level == NL_WARNING) {
        nl_record_add_string(record, "MSG", o->failures.data, o->failures.size);
    } else {
        nl_record_add_uint(record, "DONE", count_of(&activation->done));
        nl_record_add_uint(record, "UNDONE", o->undone);
    }
    nl_own_records_add(log, record);
}

/*
 * Applies the commands in text. If text is NULL because the file no longer exists, undoes all commands. Returns false,
 * without changing anything, if memory runs out before the commands are known.
 */
static bool apply(nl_log *log, nl_activation *activation, const char *text)
{
    enum { LEVEL, EVENT, DESTINATION, KIND_COUNT };
    static const char *const kinds[KIND_COUNT] = {"level", "event", "destination"};
    const unsigned failures = nl_memory_failures;
    nl_buffer now = {0}, old[KIND_COUNT], new[KIND_COUNT];
    outcome o = {0};
    if (text != NULL && nl_control_do(NULL, activation->origin, text, strlen(text), &now) != NL_OK)
        add_failure(&o);
    for (int i = 0; i < KIND_COUNT; i++) {
        old[i] = of_kind(&activation->done, kinds[i]);
        new[i] = of_kind(&now, kinds[i]);
    }
    const bool is_known = nl_memory_failures == failures; /* otherwise, a list may be incomplete */
    if (is_known) {
        change_together(log, activation, &old[LEVEL], &new[LEVEL], &o);
        change_together(log, activation, &old[EVENT], &new[EVENT], &o);
        change_markers(log, activation, &now, &o);
        change_together(log, activation, &old[DESTINATION], &new[DESTINATION], &o);
        nl_buffer_free(&activation->done);
        activation->done = now;
        activation_report(log, activation, "NetLogger.Activation", NL_USAGE, &o);
        if (o.failures.size > 0)
            activation_report(log, activation, "NetLogger.Activation.Error", NL_WARNING, &o);
    } else {
        nl_buffer_free(&now);
    }
    for (int i = 0; i < KIND_COUNT; i++) {
        nl_buffer_free(&old[i]);
        nl_buffer_free(&new[i]);
    }
    nl_buffer_free(&o.failures);
    return is_known;
}

/* ---- the file ---- */

/*
 * Returns the first FILE_MAX bytes of the file with a final NUL; the caller frees the bytes. NULs in the file become
 * spaces. Sets *seen to the file's state. Returns NULL if the file cannot be opened or is not regular, or memory runs
 * out.
 */
static char *read_file(const char *path, struct stat *seen)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    char *text = NULL;
    if (fstat(fd, seen) == 0 && S_ISREG(seen->st_mode)) {
        text = malloc(FILE_MAX + 1);
        if (text == NULL) {
            close(fd);
            nl_memory_failed();
            return NULL;
        }
        size_t size = 0;
        ssize_t got;
        while (size < FILE_MAX && (got = read(fd, text + size, FILE_MAX - size)) > 0)
            size += (size_t)got;
        text[size] = '\0';
        for (size_t i = 0; i < size; i++)
            text[i] = text[i] == '\0' ? ' ' : text[i];
    }
    close(fd);
    return text;
}

static int64_t time_of(const struct timespec *time)
{
    return (int64_t)time->tv_sec * NL_NS_PER_SECOND + time->tv_nsec;
}

static bool may_have_changed(const nl_activation *activation)
{
    struct stat now;
    const struct stat *seen = &activation->seen;
    if (stat(activation->path, &now) != 0)
        return activation->text != NULL;
    int64_t age_ns = nl_time_now_ns() - time_of(&now.st_mtim);
    return activation->text == NULL || now.st_dev != seen->st_dev || now.st_ino != seen->st_ino ||
           now.st_size != seen->st_size || time_of(&now.st_mtim) != time_of(&seen->st_mtim) ||
           (age_ns >= 0 && age_ns < LOOK_EVERY_NS + FRESH_NS);
}

void nl_activation_look(nl_log *log)
{
    nl_activation *activation = &log->control.activation;
    if (activation->path == NULL || nl_monotonic_ns() < activation->look_ns)
        return;
    activation->look_ns = nl_monotonic_ns() + LOOK_EVERY_NS;
    if (!may_have_changed(activation))
        return;
    const unsigned failures = nl_memory_failures;
    struct stat seen = activation->seen;
    char *text = read_file(activation->path, &seen);
    if (nl_memory_failures != failures)
        return; /* try again at the next check */
    bool same =
        text == NULL ? activation->text == NULL : activation->text != NULL && strcmp(text, activation->text) == 0;
    if (!same && !apply(log, activation, text)) {
        free(text);
        return; /* the next check applies the file */
    }
    activation->seen = seen;
    free(activation->text);
    activation->text = text;
}

void nl_activation_hear(void *user, const char *commands, size_t size)
{
    nl_log *log = user;
    nl_activation *collector = &log->control.collector;
    char *text = nl_memory_check(strndup(commands, size));
    if (collector->path == NULL)
        collector->path = nl_memory_check(strdup("collector"));
    collector->origin = NL_CONTROL_COLLECTOR;
    if (text != NULL && collector->path != NULL)
        apply(log, collector, text);
    free(text);
}
