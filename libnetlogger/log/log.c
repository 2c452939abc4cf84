#include "config.h"

#include "log/log_internal.h"

#include "base/error.h"
#include "transport/dial.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "base/signals.h"
#include "base/text.h"
#include "log/marker.h"
#include "log/report.h"
#include "log/session.h"
#include "log/site.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    FINISH_MAX_NS = 200 * 1000000, /* maximum wait at exit for threads that are logging an event */
    FINISH_PAUSE_NS = 100 * 1000,
};

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static nl_log *logs;
static unsigned logs_opened;
static unsigned logs_in_use; /* number of logs that are in the list or are being closed */

void nl_registry_lock(void)
{
    pthread_mutex_lock(&registry);
}

void nl_registry_unlock(void)
{
    pthread_mutex_unlock(&registry);
}

/*
 * Locks everything before fork, so that the child's copy is consistent. The parent's writer thread may have been at any
 * point, so the child drops the state of that thread and the rings, which belong to the parent. The child begins new
 * streams at its first event.
 */
static void before_fork(void)
{
    nl_inside++; /* a signal handler must not wait for these locks */
    pthread_mutex_lock(&registry);
    for (nl_log *log = logs; log != NULL; log = log->next) {
        pthread_mutex_lock(&log->control.mutex);
        pthread_mutex_lock(&log->mutex);
    }
    nl_sites_lock();
    nl_destinations_lock();
}

static void unlock_all(void)
{
    nl_sites_unlock();
    for (nl_log *log = logs; log != NULL; log = log->next) {
        pthread_mutex_unlock(&log->mutex);
        pthread_mutex_unlock(&log->control.mutex);
    }
    pthread_mutex_unlock(&registry);
    nl_inside--;
}

static void after_fork_in_parent(void)
{
    nl_destinations_unlock(false);
    unlock_all();
}

static void forget_parent(nl_log *log)
{
    for (nl_ring *ring = log->rings, *next; ring != NULL; ring = next) {
        next = ring->next;
        nl_ring_remove(ring);
    }
    log->rings = NULL;
    log->running = false;
    log->stop = log->ending = false;
    log->flush_wanted = log->flush_done = 0;
    log->status = log->flush_status = NL_OK;
    log->lost = log->refused = 0;
    log->beginning = 0;
    log->unnamed = 0;
    log->reported_unnamed = false;
    nl_outbox_after_fork(&log->outbox);
    log->drain_ready = false; /* the drain's memory leaks, because the parent's thread may have been changing it */
    log->encoded = (nl_buffer){0};
    nl_clock_watch_after_fork(log->watch);
    if (log->control.next.url != NULL)
        nl_destination_after_fork(log->control.next.destination);
    log->control.own_records = NULL;
    log->control.own_record_count = 0;
    pthread_cond_init(&log->flushed, NULL);
}

static void after_fork_in_child(void)
{
    nl_destinations_unlock(true);
    nl_session_after_fork();
    nl_sites_forget();
    nl_producer_after_fork();
    logs_in_use = 0; /* do not count logs that another thread of the parent was closing */
    for (nl_log *log = logs; log != NULL; log = log->next, logs_in_use++)
        forget_parent(log);
    unlock_all();
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static void add_to_registry(nl_log *log)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    nl_registry_lock();
    log->number = logs_opened++;
    logs_in_use++;
    log->gate.slot = nl_slot_take();
    log->next = logs;
    logs = log;
    nl_registry_unlock();
}

static void remove_from_registry(nl_log *log)
{
    nl_registry_lock();
    nl_slot_release(log);
    for (nl_log **at = &logs; *at != NULL; at = &(*at)->next)
        if (*at == log) {
            *at = log->next;
            break;
        }
    nl_registry_unlock();
}

/* Frees the shared memory after the last log and its writer thread have ended. */
static void tidy_session(void)
{
    nl_registry_lock();
    if (--logs_in_use == 0) {
        nl_sites_forget();
        nl_session_remove();
    }
    nl_registry_unlock();
}

static nl_string this_host(const nl_environment *environment)
{
    const char *host = environment->host;
    if (host != NULL)
        return nl_string_copy(nl_string_of(host));
    char name[256];
    if (gethostname(name, sizeof name) != 0)
        return nl_string_copy((nl_string){"localhost", strlen("localhost")});
    name[sizeof name - 1] = '\0';
    return nl_string_copy(nl_string_of(name));
}

/* Appends a path to `out`. If the path is relative, first appends the directory. */
static void append_whole_path(nl_buffer *out, const char *directory, const char *path)
{
    if (path[0] != '/') {
        nl_url_append_escaped(out, directory);
        nl_buffer_append(out, "/", 1);
    }
    nl_url_append_escaped(out, path);
}

static bool is_file_option(const char *name)
{
    const nl_option *row = nl_option_find(nl_log_rows, name);
    if (row == NULL)
        row = nl_option_find(nl_dialer_rows, name);
    return row != NULL && row->is_path;
}

static void append_whole_url(nl_buffer *out, const char *directory, const nl_url *url);

/* Appends the URL of a backup, with absolute paths, as the value of an option. */
static void append_backup(nl_buffer *out, const char *directory, const char *value)
{
    nl_buffer whole = {0};
    nl_url *backup = nl_url_parse(value);
    if (backup != NULL)
        append_whole_url(&whole, directory, backup);
    else
        nl_buffer_append_text(&whole, value); /* opening the URL reports the error */
    if (nl_buffer_append(&whole, "", 1))
        nl_url_append_escaped(out, whole.data);
    nl_buffer_free(&whole);
    nl_url_free(backup);
}

static void append_options(nl_buffer *out, const char *directory, const nl_url *url)
{
    for (size_t i = 0; i < url->option_count; i++) {
        const nl_url_option *option = &url->options[i];
        nl_buffer_append(out, i == 0 ? "?" : "&", 1);
        nl_url_append_escaped(out, option->name);
        nl_buffer_append(out, "=", 1);
        if (is_file_option(option->name))
            append_whole_path(out, directory, option->value);
        else if (strcmp(option->name, "backup") == 0)
            append_backup(out, directory, option->value);
        else
            nl_url_append_escaped(out, option->value);
    }
}

static bool has_path(const nl_url *url)
{
    return url->scheme == NL_SCHEME_FILE || url->scheme == NL_SCHEME_UNIX;
}

bool nl_log_url_names_file(const nl_url *url)
{
    bool names = has_path(url);
    for (size_t i = 0; i < url->option_count && !names; i++)
        names = is_file_option(url->options[i].name) || strcmp(url->options[i].name, "backup") == 0;
    return names;
}

static bool is_relative(const nl_url *url)
{
    bool relative = has_path(url) && url->path[0] != '/';
    for (size_t i = 0; i < url->option_count && !relative; i++) {
        const nl_url_option *option = &url->options[i];
        if (strcmp(option->name, "backup") == 0) {
            nl_url *backup = nl_url_parse(option->value);
            relative = backup != NULL && is_relative(backup);
            nl_url_free(backup);
        } else {
            /* An empty path stays empty, so that opening it fails. */
            relative = is_file_option(option->name) && option->value[0] != '/' && option->value[0] != '\0';
        }
    }
    return relative;
}

static void append_whole_url(nl_buffer *out, const char *directory, const nl_url *url)
{
    if (has_path(url)) {
        const char *scheme = url->scheme == NL_SCHEME_FILE ? "file://" : "unix://";
        nl_buffer_append_text(out, scheme);
        append_whole_path(out, directory, url->path);
    } else {
        nl_buffer_append(out, url->text, strcspn(url->text, "?"));
    }
    append_options(out, directory, url);
}

/*
 * Makes all paths absolute, because the program may change its directory before the library opens the files. If the
 * current directory is unknown, the paths stay relative. Takes ownership of url, which may be NULL. Returns the URL to
 * use; NULL if url is NULL or memory runs out.
 */
static nl_url *make_whole(nl_url *url)
{
    if (url == NULL || !is_relative(url))
        return url;
    char *directory = getcwd(NULL, 0);
    if (directory == NULL && errno == ENOMEM) {
        nl_memory_failed();
        nl_url_free(url);
        return NULL;
    }
    if (directory == NULL)
        return url;
    const unsigned failures = nl_memory_failures;
    nl_buffer text = {0};
    append_whole_url(&text, directory, url);
    nl_buffer_append(&text, "", 1);
    nl_url *whole = nl_memory_failures == failures ? nl_url_parse(text.data) : NULL;
    nl_buffer_free(&text);
    free(directory);
    if (whole == NULL && nl_memory_failures == failures)
        return url;
    nl_url_free(url);
    return whole;
}

/*
 * Returns an absolute copy of the path, or an unchanged copy if the current directory is unknown. The caller frees the
 * copy. Returns NULL if memory runs out.
 */
static char *whole_path(const char *path)
{
    char *directory = path[0] != '/' ? getcwd(NULL, 0) : NULL, *whole;
    if (asprintf(&whole, "%s%s%s", directory != NULL ? directory : "", directory != NULL ? "/" : "", path) < 0)
        whole = NULL;
    free(directory);
    return nl_memory_check(whole);
}

/* Without a stored URL, nlrecover requires another destination for the log. */
void nl_log_note_url(nl_log *log)
{
    const nl_url *url = log->url;
    size_t size = strlen(url->text);
    memset(log->recovery_url, 0, sizeof log->recovery_url);
    if (size < sizeof log->recovery_url && !is_relative(url))
        memcpy(log->recovery_url, url->text, size);
}

/*
 * Parses the URL of the backup, which the log uses while the destination is unreachable. Returns NL_OK, also without a
 * backup, or NL_FAILED with the reason.
 */
static nl_status open_backup(nl_log *log)
{
    if (log->options.backup == NULL)
        return NL_OK;
    log->outbox.backup.url = nl_url_parse_for(log->options.backup, NL_URL_WRITE);
    return log->outbox.backup.url != NULL ? NL_OK : nl_error_prepend("backup");
}

static nl_destination_options destination_options(nl_log *log, const nl_writer_options *writer)
{
    return (nl_destination_options){.truncate = writer->truncate,
                                    .timeout_ms = writer->timeout_ms,
                                    .format = writer->format,
                                    .on_control = nl_activation_hear,
                                    .user = log,
                                    .ident = log->prog.data};
}

/*
 * Opens the spool and the destination. If the destination cannot be reached now, returns NL_OK; the log tries again
 * later. Returns NL_FAILED if the backup's URL is invalid, the spool cannot be opened, or the destination can never
 * work and the log has no backup.
 */
static nl_status open_destination(nl_log *log)
{
    nl_outbox *outbox = &log->outbox;
    outbox->url = log->url;
    outbox->options = &log->options;
    outbox->how = destination_options(log, &log->options.writer);
    if (open_backup(log) != NL_OK || nl_outbox_open_spool(outbox) != NL_OK)
        return NL_FAILED;
    if ((outbox->spool != NULL || outbox->backup.url != NULL) &&
        nl_outbox_make_sender(outbox, nl_writer_thread_wake, log) != NL_OK)
        return NL_FAILED;
    outbox->how.connect_later = true;
    nl_status status = nl_outbox_open_destination(outbox);
    outbox->how.now = true; /* later attempts must not wait for a FIFO's reader, because they run in the writer
                             * thread */
    return status;
}

static void log_free(nl_log *log)
{
    nl_clock_watch_free(log->watch);
    nl_control_free(log);
    nl_buffer_free(&log->encoded);
    if (log->drain_ready)
        nl_drain_finish(&log->drain);
    pthread_mutex_destroy(&log->mutex);
    pthread_cond_destroy(&log->flushed);
    free((char *)log->host.data);
    free((char *)log->prog.data);
    free(log);
}

void nl_log_start(nl_log *log)
{
    pthread_mutex_lock(&log->mutex);
    if (!log->running)
        log->running = nl_writer_thread_start(log);
    pthread_mutex_unlock(&log->mutex);
}

/* Executes the commands of the activation file before the first event. The writer thread applies later changes of the
 * file. */
static void begin_activation(nl_log *log)
{
    const char *path = log->options.activation;
    if (path == NULL)
        return;
    log->control.activation.origin = NL_CONTROL_FILE;
    log->control.activation.path = whole_path(path);
    if (log->control.activation.path == NULL)
        return; /* the log works without activation */
    nl_activation_look(log);
    nl_log_start(log);
}

/*
 * Opens a log, and takes ownership of url. Sets *quiet if the URL contains quiet=yes. Returns NULL with the reason on
 * failure.
 */
static nl_log *open_url(const char *prog, nl_url *url, const nl_environment *environment, bool *quiet)
{
    nl_log *log = nl_memory_check(calloc(1, sizeof *log));
    if (log == NULL) {
        nl_url_free(url);
        return NULL;
    }
    log->url = url;
    log->outbox.mapping.fd = -1;
    log->host = this_host(environment);
    if (prog == NULL)
        prog = program_invocation_short_name;
    log->prog = nl_string_copy(nl_string_of(prog));
    log->gate.threshold = environment->level;
    pthread_mutex_init(&log->mutex, NULL);
    pthread_mutex_init(&log->control.mutex, NULL);
    log->control.first_url = url;
    pthread_cond_init(&log->flushed, NULL);
    nl_status status = log->host.data != NULL && log->prog.data != NULL ? nl_log_options_read(&log->options, url, true)
                                                                        : nl_memory_failed();
    *quiet |= log->options.quiet % 2 == 1;
    log->outbox.reports = !*quiet;
    if (status == NL_OK)
        status = open_destination(log);
    else
        nl_url_free(url); /* after success, the outbox owns the URL */
    if (status != NL_OK) {
        nl_outbox_close(&log->outbox);
        log_free(log);
        return NULL;
    }
    nl_log_note_url(log);
    add_to_registry(log);
    nl_clock_watch_begin(log);
    begin_activation(log);
    /*
     * Starting a thread allocates memory. Therefore, the thread starts now and not at the first event, which may be in
     * a signal handler.
     */
    nl_log_start(log);
    return log;
}

nl_log *nl_open(const char *prog, const char *url_text)
{
    nl_environment environment;
    bool good = nl_environment_read(&environment);
    if (url_text == NULL)
        url_text = environment.destination;
    if (environment.on % 2 == 0 || url_text == NULL || *url_text == '\0') {
        nl_error_clear();
        return NULL;
    }
    bool quiet = environment.quiet % 2 == 1;
    nl_log *log = NULL;
    const nl_visit visit = nl_enter();
    nl_report_begin();
    if (good) {
        nl_error_clear();
        nl_url *url = make_whole(nl_url_parse_for(url_text, NL_URL_WRITE));
        log = url != NULL ? open_url(prog, url, &environment, &quiet) : NULL;
    }
    if (log == NULL && !quiet)
        nl_report(NL_MESSAGE_OPEN, NULL, "%s", nl_error_message());
    nl_leave(&visit);
    return log;
}

static nl_status log_flush_once(nl_log *log)
{
    pthread_mutex_lock(&log->mutex);
    nl_status status = nl_writer_thread_await(log, nl_writer_thread_ask(log));
    pthread_mutex_unlock(&log->mutex);
    return status;
}

nl_status nl_flush(nl_log *log)
{
    if (log == NULL)
        return NL_OK;
    const nl_visit visit = nl_enter();
    nl_status status = log_flush_once(log);
    nl_registry_lock();
    bool more = nl_producer_report_lost(log);
    nl_registry_unlock();
    if (more && status == NL_OK)
        status = log_flush_once(log);
    nl_leave(&visit);
    return status;
}

nl_status nl_log_set_destination(nl_log *log, const char *url_text, bool go_on)
{
    nl_next_destination next = {.url = make_whole(nl_url_parse_for(url_text, NL_URL_WRITE))};
    nl_log_options options;
    if (next.url == NULL || nl_log_options_read(&options, next.url, false) != NL_OK) {
        nl_url_free(next.url);
        return NL_FAILED;
    }
    next.writer = options.writer;
    next.writer.truncate &= !go_on;
    nl_destination_options how = destination_options(log, &next.writer);
    nl_outbox_adapt(&log->outbox, &how);
    next.destination = nl_destination_open(next.url, &how);
    if (next.destination == NULL) {
        nl_url_free(next.url);
        return NL_FAILED;
    }
    pthread_mutex_lock(&log->mutex);
    nl_next_destination replaced = log->control.next;
    log->control.next = next;
    pthread_mutex_unlock(&log->mutex);
    if (replaced.url != NULL) {
        nl_destination_close(replaced.destination, true);
        nl_url_free(replaced.url);
    }
    nl_writer_thread_wake(log);
    return NL_OK;
}

void nl_set_level(nl_log *log, nl_level level)
{
    if (log != NULL)
        __atomic_store_n(&log->gate.threshold, (int)level, __ATOMIC_RELAXED);
}

void nl_set_policy(nl_log *log, nl_policy policy, int64_t block_ns, nl_level keep_level)
{
    if (log != NULL)
        log->options.policy = (nl_ring_policy){policy, block_ns, keep_level};
}

void nl_set_idle(nl_log *log, int64_t idle_ns)
{
    if (log != NULL && idle_ns > 0)
        __atomic_store_n(&log->options.idle_ns, idle_ns, __ATOMIC_RELAXED);
}

/*
 * Returns the number of events that are still in the rings, and adds lost events to *lost. Does not change the rings,
 * because the writer thread may be reading them.
 */
static uint64_t left_in_rings(const nl_log *log, uint64_t *lost)
{
    uint64_t count = 0;
    nl_event_header header;
    for (const nl_ring *ring = log->rings; ring != NULL; ring = ring->next) {
        const nl_shared_ring *shared = ring->shared;
        nl_ring look = *ring;
        *lost += shared->lost.full + shared->lost.refused + __atomic_load_n(&ring->refused, __ATOMIC_RELAXED);
        look.at = __atomic_load_n(&shared->tail, __ATOMIC_ACQUIRE) & ~NL_TAIL_PINNED;
        look.end = __atomic_load_n(&shared->published, __ATOMIC_ACQUIRE);
        for (const char *event; (event = nl_ring_event(&look, &header)) != NULL; look.at += header.size) {
            nl_lost_event before = {0};
            if (header.site == NL_SITE_LOST)
                memcpy(&before, event + sizeof header, sizeof before);
            *lost += before.full + before.refused;
            count += header.site != NL_SITE_LOST;
        }
    }
    return count;
}

/* Returns whether another process can find and deliver the remaining events. */
static bool can_be_recovered(const nl_log *log)
{
    if (log->url->scheme == NL_SCHEME_STDIO || log->url->scheme == NL_SCHEME_MEMORY || !log->outbox.mapping.named)
        return false;
    for (const nl_ring *ring = log->rings; ring != NULL; ring = ring->next)
        if (!ring->mapping.named)
            return false;
    return true;
}

/*
 * Keeps the batch and the rings for nlrecover, which delivers the events after the process has ended or closed its last
 * log.
 */
static void leave_for_recovery(nl_log *log)
{
    nl_registry_lock();
    nl_session_keep();
    nl_registry_unlock();
    nl_mapping_leave(&log->outbox.mapping);
    for (nl_ring *ring = log->rings; ring != NULL; ring = ring->next)
        if (!nl_ring_is_empty(ring) || nl_ring_has_lost(ring)) /* the caller removes empty rings, which take memory */
            nl_mapping_leave(&ring->mapping);
}

/*
 * Prepends to the thread's error the number of undelivered events and their location, and returns NL_FAILED. `waiting`
 * is the number of events that could not be sent, and `lost` is the number of events that never entered a ring. `kept`
 * means that the waiting events stay in shared memory.
 */
static nl_status fail_undelivered(nl_status status, uint64_t waiting, uint64_t lost, bool kept)
{
    static const char cause[] =
        "the ring was full, memory ran out, or a signal handler logged while its thread was logging";
    const char *directory = kept ? nl_session_directory() : "";
    const char *plural = nl_plural(waiting + lost);
    const char *where = kept ? "; nlrecover delivers " : "", *what = !kept          ? ""
                                                                     : waiting == 1 ? "it from "
                                                                                    : "them from ";
    if (status == NL_OK)
        nl_error_set(NL_ERROR_LIMIT, "%s", waiting == 0 ? cause : "the program ended");
    if (waiting == 0)
        return nl_error_prepend("%" PRIu64 " event%s lost", lost, plural);
    if (lost == 0)
        return nl_error_prepend("%" PRIu64 " event%s not delivered%s%s%s", waiting, plural, where, what, directory);
    return nl_error_prepend("%" PRIu64 " event%s not delivered: %" PRIu64 " lost (%s), %" PRIu64 " waiting%s%s%s",
                            waiting + lost, plural, lost, cause, waiting, where, what, directory);
}

/*
 * Reports events that stay behind. `spooled` means that the spool has events, and `spooled_count` is the number of
 * these events that this process has logged.
 */
static void report_left(const nl_log *log, nl_status status, bool spooled, uint64_t spooled_count)
{
    if (!log->outbox.reports)
        return;
    if (status != NL_OK)
        nl_report(NL_MESSAGE_CLOSE,
                  nl_error_get_code() == NL_ERROR_LIMIT || !nl_url_is_collector(log->url) ? log->url : NULL, "%s",
                  nl_error_message());
    if (spooled && spooled_count == 0)
        nl_report(
            NL_MESSAGE_CLOSE, log->url,
            "events of earlier programs remain in the spool %s; this user's next program with this URL delivers them",
            log->options.spool);
    else if (spooled)
        nl_report(NL_MESSAGE_CLOSE, log->url,
                  "%" PRIu64 " event%s remain%s in the spool %s; this user's next program with this URL delivers %s",
                  spooled_count, nl_plural(spooled_count), spooled_count == 1 ? "s" : "", log->options.spool,
                  spooled_count == 1 ? "it" : "them");
}

nl_status nl_close(nl_log *log)
{
    if (log == NULL)
        return NL_OK;
    const nl_visit visit = nl_enter();
    nl_held_signals held;
    nl_signals_hold(&held); /* if there is no writer thread, this thread writes */
    nl_control_finish(log);
    nl_markers_forget_log(log);
    nl_registry_lock();
    nl_producer_report_lost(log); /* reports losses since this thread's latest event or flush */
    nl_registry_unlock();
    remove_from_registry(log);
    nl_writer_thread_stop(log);
    nl_outbox_stop_sending(&log->outbox);
    nl_control_close_next(log);
    nl_status status = log->status;
    if (status != NL_OK)
        nl_error_restore(&log->error);
    uint64_t lost = log->lost + log->refused + (log->drain_ready ? log->drain.lost : 0);
    uint64_t waiting = nl_outbox_waiting(&log->outbox);
    waiting += left_in_rings(log, &lost);
    bool left = waiting > 0 && can_be_recovered(log);
    if (left)
        leave_for_recovery(log);
    for (nl_ring *ring = log->rings, *next; ring != NULL; ring = next) {
        next = ring->next;
        nl_ring_remove(ring);
    }
    const bool spooled = nl_outbox_is_spooled(&log->outbox);
    const uint64_t spooled_count = nl_outbox_count_spooled(&log->outbox);
    if (nl_outbox_close_destination(&log->outbox) != NL_OK)
        status = NL_FAILED;
    if (waiting + lost > 0)
        status = fail_undelivered(status, waiting, lost, left);
    report_left(log, status, spooled, spooled_count);
    if (log->url != log->control.first_url)
        nl_url_free(log->control.first_url);
    nl_outbox_close(&log->outbox);
    log_free(log);
    tidy_session();
    nl_signals_release(&held);
    nl_leave(&visit);
    return status;
}

/* Returns whether the log has sent all events and reports of losses. The caller holds log->mutex. */
static bool log_has_sent_all(const nl_log *log)
{
    bool all_sent = nl_outbox_is_empty(&log->outbox);
    for (const nl_ring *ring = log->rings; ring != NULL; ring = ring->next)
        all_sent &= nl_ring_is_empty(ring) && !nl_ring_has_lost(ring);
    return all_sent;
}

/*
 * Reports the events that a log leaves behind at the end of the program. Returns whether all events have been sent.
 * Changes nothing, because the writer thread and the program's threads may be running.
 */
static bool finish_at_exit(nl_log *log)
{
    pthread_mutex_lock(&log->mutex);
    bool all_sent = log_has_sent_all(log);
    nl_status status = NL_OK;
    if (!all_sent) {
        const nl_status flushed = log->flush_status;
        if (flushed != NL_OK)
            nl_error_restore(&log->flush_error);
        uint64_t lost = log->lost + log->refused;
        uint64_t waiting = nl_outbox_waiting(&log->outbox);
        waiting += left_in_rings(log, &lost);
        if (waiting + lost > 0)
            status = fail_undelivered(flushed, waiting, lost, can_be_recovered(log));
    }
    report_left(log, status, nl_outbox_is_spooled(&log->outbox), log->flush_spooled);
    pthread_mutex_unlock(&log->mutex);
    return all_sent;
}

/* Flushes all logs at the same time. The registry is locked. */
static void flush_all(void)
{
    for (nl_log *log = logs; log != NULL; log = log->next) {
        pthread_mutex_lock(&log->mutex);
        nl_writer_thread_ask(log);
        pthread_mutex_unlock(&log->mutex);
    }
    for (nl_log *log = logs; log != NULL; log = log->next) {
        pthread_mutex_lock(&log->mutex);
        nl_writer_thread_await(log, log->flush_wanted);
        pthread_mutex_unlock(&log->mutex);
    }
}

/* Stops the senders of logs that still have records. A sender must not send records that nlrecover will also
 * deliver. */
static void stop_senders(void)
{
    for (nl_log *log = logs; log != NULL; log = log->next) {
        pthread_mutex_lock(&log->mutex);
        if (log->outbox.sender != NULL && (!log_has_sent_all(log) || nl_outbox_is_spooled(&log->outbox))) {
            log->ending = true;
            nl_writer_thread_await(log, nl_writer_thread_ask(log));
        }
        pthread_mutex_unlock(&log->mutex);
    }
}

/*
 * Rejects later events, and waits until no thread is logging an event; the wait is limited, because a thread may be
 * blocked in an event. Returns whether no thread is logging. The caller has locked the registry; the function unlocks
 * it during the wait.
 */
static bool finish_producers(void)
{
    const int64_t deadline_ns = nl_monotonic_ns() + FINISH_MAX_NS;
    for (;;) {
        bool idle = true;
        for (nl_log *log = logs; log != NULL; log = log->next)
            idle &= nl_producer_finish(log);
        if (idle || nl_monotonic_ns() >= deadline_ns)
            return idle;
        nl_registry_unlock(); /* a thread that is creating a ring needs the registry */
        nanosleep(&(struct timespec){.tv_nsec = FINISH_PAUSE_NS}, NULL);
        nl_registry_lock();
    }
}

/* Returns whether a log whose latest flush succeeded has events again, which threads logged during the flush. */
static bool is_flush_worthwhile(void)
{
    bool worthwhile = false;
    for (nl_log *log = logs; log != NULL; log = log->next) {
        pthread_mutex_lock(&log->mutex);
        worthwhile |= log->flush_status == NL_OK && !log_has_sent_all(log);
        pthread_mutex_unlock(&log->mutex);
    }
    return worthwhile;
}

/*
 * Sends the events of logs that the program has not closed. If all events are sent, removes the shared memory. Rejects
 * later events of threads that still run, because nothing could send these events.
 */
__attribute__((destructor)) static void at_exit(void)
{
    const nl_visit visit = nl_enter();
    nl_registry_lock();
    for (nl_log *log = logs; log != NULL; log = log->next) {
        nl_control_finish(log);
        nl_producer_report_lost(log);
    }
    flush_all();
    bool all_sent = finish_producers();
    if (is_flush_worthwhile())
        flush_all();
    stop_senders();
    for (nl_log *log = logs; log != NULL; log = log->next)
        all_sent &= finish_at_exit(log);
    if (all_sent) { /* if false, the rings stay for nlrecover */
        for (nl_log *log = logs; log != NULL; log = log->next) {
            for (nl_ring *ring = log->rings; ring != NULL; ring = ring->next)
                nl_mapping_forget(&ring->mapping);
            nl_mapping_forget(&log->outbox.mapping);
        }
        nl_sites_leave();
        nl_session_remove();
    }
    nl_registry_unlock();
    nl_leave(&visit);
}
