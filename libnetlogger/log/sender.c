#include "config.h"

#include "log/sender.h"

#include "base/memory.h"
#include "base/thread.h"
#include "log/log_internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SENDER_STACK_SIZE = 512 << 10 };

struct nl_sender {
    void (*wake)(void *user);
    void *user;
    nl_job job;
    nl_url *url; /* URL of the destination to open */
    nl_destination_options options;
    pthread_t thread;
    bool has_thread;    /* a thread was created, and this process has it */
    unsigned interrupt; /* bits of nl_interrupt; atomic */

    pthread_mutex_t mutex; /* protects the members below */
    pthread_cond_t changed;
    bool running;    /* the thread has the job */
    bool free;       /* the thread ends after its job */
    nl_buffer heard; /* commands of the collector: for each frame, its size and its bytes */
};

static void init_locks(nl_sender *sender)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&sender->mutex, NULL);
    pthread_cond_init(&sender->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

nl_sender *nl_sender_new(void (*wake)(void *user), void *user)
{
    nl_sender *sender = nl_memory_check(calloc(1, sizeof *sender));
    if (sender == NULL)
        return NULL;
    sender->wake = wake;
    sender->user = user;
    init_locks(sender);
    return sender;
}

static void free_all(nl_sender *sender)
{
    if (sender->job.destination != NULL)
        nl_destination_close(sender->job.destination, true);
    nl_url_free(sender->url);
    nl_buffer_free(&sender->job.bytes);
    nl_buffer_free(&sender->heard);
    pthread_mutex_destroy(&sender->mutex);
    pthread_cond_destroy(&sender->changed);
    free(sender);
}

/* Keeps a frame of commands. If memory runs out, the frame is lost. */
static void keep_commands(void *user, const char *commands, size_t size)
{
    nl_sender *sender = user;
    pthread_mutex_lock(&sender->mutex);
    if (nl_buffer_reserve(&sender->heard, sizeof size + size)) {
        nl_buffer_append(&sender->heard, &size, sizeof size);
        nl_buffer_append(&sender->heard, commands, size);
    }
    pthread_mutex_unlock(&sender->mutex);
}

void nl_sender_adapt(nl_sender *sender, nl_destination_options *options)
{
    options->on_control = keep_commands;
    options->user = sender;
    options->interrupt = &sender->interrupt;
}

void nl_sender_hear(nl_sender *sender, void (*on_control)(void *user, const char *commands, size_t size), void *user)
{
    pthread_mutex_lock(&sender->mutex);
    nl_buffer heard = sender->heard;
    sender->heard = (nl_buffer){0};
    pthread_mutex_unlock(&sender->mutex);
    size_t size;
    for (size_t at = 0; at < heard.size; at += sizeof size + size) {
        memcpy(&size, heard.data + at, sizeof size);
        on_control(user, heard.data + at + sizeof size, size);
    }
    nl_buffer_free(&heard);
}

/* ---- jobs ---- */

/* Opens the job's destination unless it is open. Returns NL_FAILED on failure, or after an interrupt. */
static nl_status open_for_job(nl_sender *sender)
{
    nl_job *job = &sender->job;
    if (job->destination == NULL && sender->url == NULL)
        return nl_memory_failed();
    if (job->destination == NULL)
        job->destination = nl_destination_open(sender->url, &sender->options);
    const bool wanted = (__atomic_load_n(&sender->interrupt, __ATOMIC_ACQUIRE) & NL_INTERRUPT_WANTED) == 0;
    return job->destination != NULL && wanted ? NL_OK : NL_FAILED;
}

static void do_job(nl_sender *sender)
{
    nl_job *job = &sender->job;
    nl_error_clear();
    job->status = open_for_job(sender);
    if (job->status == NL_OK && job->kind == NL_JOB_WRITE)
        job->status =
            nl_destination_write(job->destination, job->level, job->bytes.data, job->bytes.size, &job->written);
    else if (job->status == NL_OK && job->kind == NL_JOB_EXCHANGE)
        job->status = nl_destination_exchange(job->destination, &job->exchange);
    nl_error_save(&job->error);
}

/* Does jobs until the sender is freed. */
static void *sender_run(void *user)
{
    nl_sender *sender = user;
    nl_inside = 1; /* only a signal handler could log an event in this thread; the library rejects such events */
    pthread_mutex_lock(&sender->mutex);
    while (!sender->free) {
        if (!sender->running) {
            pthread_cond_wait(&sender->changed, &sender->mutex);
            continue;
        }
        pthread_mutex_unlock(&sender->mutex);
        do_job(sender);
        pthread_mutex_lock(&sender->mutex);
        if (sender->free)
            break;
        sender->running = false;
        sender->wake(sender->user);
        pthread_cond_broadcast(&sender->changed);
    }
    /* If nl_sender_free was called during the job, this thread frees the sender. */
    const bool running = sender->running;
    pthread_mutex_unlock(&sender->mutex);
    if (running)
        free_all(sender);
    return NULL;
}

static bool start_thread(nl_sender *sender)
{
    sender->has_thread = nl_thread_create_small(&sender->thread, SENDER_STACK_SIZE, sender_run, sender) == 0;
    if (sender->has_thread)
        pthread_setname_np(sender->thread, "netlogger-send");
    return sender->has_thread;
}

nl_job *nl_sender_job(nl_sender *sender)
{
    return &sender->job;
}

void nl_sender_start(nl_sender *sender, const nl_url *url, const nl_destination_options *options)
{
    if (sender->job.destination == NULL) {
        nl_url_free(sender->url);
        sender->url = nl_url_parse(url->text);
        sender->options = *options;
        sender->options.ident = NULL; /* only syslog needs the identity, which may be freed before the job ends */
    }
    sender->job.written = 0;
    __atomic_fetch_and(&sender->interrupt, ~(unsigned)NL_INTERRUPT_WANTED,
                       __ATOMIC_ACQ_REL); /* clears the interrupt of an earlier job */
    if (!sender->has_thread && !start_thread(sender)) {
        do_job(sender);
        return;
    }
    pthread_mutex_lock(&sender->mutex);
    sender->running = true;
    pthread_cond_broadcast(&sender->changed);
    pthread_mutex_unlock(&sender->mutex);
}

bool nl_sender_is_running(nl_sender *sender)
{
    pthread_mutex_lock(&sender->mutex);
    bool running = sender->running;
    pthread_mutex_unlock(&sender->mutex);
    return running;
}

void nl_sender_wait(nl_sender *sender, int64_t wait_ns)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    wait_ns += until.tv_nsec;
    until.tv_sec += wait_ns / NL_NS_PER_SECOND;
    until.tv_nsec = wait_ns % NL_NS_PER_SECOND;
    pthread_mutex_lock(&sender->mutex);
    int error = 0;
    while (sender->running && error == 0)
        error = pthread_cond_timedwait(&sender->changed, &sender->mutex, &until);
    pthread_mutex_unlock(&sender->mutex);
}

static unsigned interrupt_job(nl_sender *sender)
{
    return __atomic_fetch_or(&sender->interrupt, NL_INTERRUPT_WANTED, __ATOMIC_ACQ_REL);
}

size_t nl_sender_stop(nl_sender *sender)
{
    const bool writes = (interrupt_job(sender) & NL_INTERRUPT_WRITES) != 0;
    pthread_mutex_lock(&sender->mutex);
    while (writes && sender->running)
        pthread_cond_wait(&sender->changed, &sender->mutex);
    pthread_mutex_unlock(&sender->mutex);
    return __atomic_load_n(&sender->job.written, __ATOMIC_ACQUIRE);
}

void nl_sender_after_fork(nl_sender *sender)
{
    init_locks(sender);
    sender->has_thread = sender->running = false;
    sender->interrupt = 0;
    /* The memory leaks, because the parent's threads may have been changing it. */
    sender->job = (nl_job){0};
    sender->url = NULL;
    sender->heard = (nl_buffer){0};
}

void nl_sender_cancel(nl_sender *sender)
{
    interrupt_job(sender);
    pthread_mutex_lock(&sender->mutex);
    sender->free = true;
    pthread_cond_broadcast(&sender->changed);
    pthread_mutex_unlock(&sender->mutex);
}

void nl_sender_free(nl_sender *sender)
{
    if (sender == NULL)
        return;
    interrupt_job(sender);
    pthread_mutex_lock(&sender->mutex);
    const bool running = sender->running;
    if (running)
        pthread_detach(sender->thread);
    sender->free = true;
    pthread_cond_broadcast(&sender->changed);
    pthread_mutex_unlock(&sender->mutex);
    if (running)
        return;
    if (sender->has_thread)
        pthread_join(sender->thread, NULL);
    free_all(sender);
}
