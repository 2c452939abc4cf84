#include "config.h"

#include "log/clock_watch.h"

#include "log/log_internal.h"

#include "base/descriptor.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "transport/destination.h"
#include "base/clock_quality.h"
#include "base/text.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    GIVE_UP_NS = 200 * 1000000,    /* maximum time to wait for chronyd's reply */
    LAST_WAIT_MS = 5,              /* maximum time to wait for the reply when the log is closed */
    BURST = 4,                     /* number of quick exchanges at the start and after a step */
    BURST_PAUSE_NS = 10 * 1000000, /* pause between these exchanges */
    STEP_NS = 50 * 1000,           /* a clock was set if it jumped by more than STEP_NS plus the maximum drift */
    STEP_PPM = 1000,               /* maximum drift between the two clocks since the last check, in parts per million */
    APART_NS = 10 * 1000,          /* maximum time for reading two clocks that are compared */
    DRIFT_PPM = 15,                /* clock drift that RFC 5905 assumes */
};

enum { NL_CLOCK_SAMPLES = 8 };

struct nl_clock_watch {
    int64_t every_ns;
    int64_t report_ns; /* time of the next report, on the monotonic clock */

    /* A request to chronyd that has no reply yet. */
    int fd; /* -1: no request waits for a reply */
    nl_identity identity;
    bool to_ask, own_socket;
    uint32_t number;
    int64_t give_up_ns;

    /*
     * A circular buffer of the exchanges since the latest report. The latest exchange is at (sample_count - 1) %
     * NL_CLOCK_SAMPLES.
     */
    nl_exchange samples[NL_CLOCK_SAMPLES];
    unsigned sample_count;
    int64_t exchange_ns; /* time of the next exchange */
    unsigned in_burst;   /* remaining quick exchanges */

    int64_t ahead_ns;    /* the real-time clock minus the boot-time clock, at compared_ns */
    int64_t compared_ns; /* 0 if the clocks have not been compared yet */
};

/* Returns whether the log's URL names a collector on this host, which has the same clock. */
static bool is_on_this_host(const nl_url *url)
{
    if (url == NULL || url->host == NULL)
        return url != NULL && url->scheme == NL_SCHEME_UNIX;
    return strcmp(url->host, "localhost") == 0 || strncmp(url->host, "127.", 4) == 0 || strcmp(url->host, "::1") == 0;
}

static void clock_watch_report(nl_log *log, nl_record *record, bool synchronized)
{
    nl_record_set_level(record, synchronized || is_on_this_host(log->url) ? NL_SYSTEM : NL_WARNING);
    nl_own_records_add(log, record);
}

static void report_kernel_clock(nl_log *log)
{
    bool synchronized;
    nl_record *record = nl_own_record_new(log, NL_SYSTEM, NL_CLOCK_KERNEL);
    if (nl_quality_add_kernel(record, &synchronized))
        clock_watch_report(log, record, synchronized);
    else
        nl_record_free(record);
}

/* ---- chronyd ---- */

static void forget_question(nl_clock_watch *w)
{
    if (w->fd >= 0 && nl_identity_holds(&w->identity, w->fd))
        nl_chrony_close(w->fd);
    w->fd = -1;
}

static void clock_watch_ask(nl_clock_watch *w, bool own_socket, int64_t now_ns)
{
    w->to_ask = false;
    w->own_socket = own_socket;
    w->give_up_ns = now_ns + GIVE_UP_NS;
    w->fd = nl_chrony_ask(++w->number, own_socket);
    if (w->fd >= 0)
        w->identity = nl_identity_of(w->fd);
    else if (!own_socket)
        clock_watch_ask(w, true, now_ns);
}

/* Reads the reply if it has arrived. */
static void clock_watch_read_reply(nl_log *log, int64_t now_ns)
{
    nl_clock_watch *w = log->watch;
    if (w->fd < 0)
        return;
    if (!nl_identity_holds(&w->identity, w->fd)) { /* the program has closed the descriptor */
        w->fd = -1;
        return;
    }
    bool synchronized, own_socket = w->own_socket;
    nl_record *record = nl_own_record_new(log, NL_SYSTEM, NL_CLOCK_TRACKING);
    nl_chrony_answer answer = nl_chrony_take(w->fd, w->number, record, &synchronized);
    if (answer == NL_CHRONY_NOT_YET && now_ns >= w->give_up_ns)
        answer = NL_CHRONY_NONE;
    if (answer != NL_CHRONY_NOT_YET)
        forget_question(w);
    if (answer == NL_CHRONY_ANSWERED)
        clock_watch_report(log, record, synchronized);
    else
        nl_record_free(record);
    if (answer == NL_CHRONY_NONE && !own_socket)
        clock_watch_ask(w, true, now_ns);
}

/* ---- the collector's clock ---- */

static bool can_exchange(const nl_log *log)
{
    return log->options.writer.format == NL_FORMAT_NLB && log->outbox.destination != NULL && !log->outbox.away;
}

/* Returns the maximum error of the offset at the time now_ns. */
static int64_t error_ns(const nl_exchange *e, int64_t now_ns)
{
    return e->delay_ns / 2 + (now_ns - e->monotonic_ns) / 1000000 * DRIFT_PPM;
}

static void report_offset(nl_log *log, int64_t now_ns)
{
    nl_clock_watch *w = log->watch;
    unsigned count = w->sample_count < NL_CLOCK_SAMPLES ? w->sample_count : NL_CLOCK_SAMPLES;
    const nl_exchange *best = NULL;
    for (unsigned i = 0; i < count; i++)
        if (best == NULL || error_ns(&w->samples[i], now_ns) < error_ns(best, now_ns))
            best = &w->samples[i];
    if (best == NULL)
        return;
    nl_record *record = nl_own_record_new(log, NL_SYSTEM, NL_CLOCK_OFFSET);
    nl_record_set_time(record, best->time_ns - best->time_ns % 1000);
    nl_record_add_text(record, "CLOCK.COLLECTOR", best->collector);
    nl_quality_add(record, "CLOCK.OFFSET", (double)best->offset_ns / 1e3);
    nl_quality_add(record, "CLOCK.DELAY", (double)best->delay_ns / 1e3);
    nl_quality_add(record, "CLOCK.ERROR", (double)best->delay_ns / 2e3);
    nl_record_add_uint(record, "CLOCK.SAMPLES", w->sample_count);
    nl_own_records_add(log, record);
    w->sample_count = 0;
}

/* Exchanges timestamps. If `wait` is false and the log has a sender, a later call gets the result. */
static void exchange(nl_log *log, int64_t now_ns, bool wait)
{
    nl_clock_watch *w = log->watch;
    nl_exchange *sample = &w->samples[w->sample_count % NL_CLOCK_SAMPLES];
    nl_status status = nl_outbox_exchange(&log->outbox, sample, wait);
    if (status == NL_AGAIN)
        return;
    w->sample_count += status == NL_OK;
    if (w->in_burst > 0 && status == NL_OK && --w->in_burst == 0)
        report_offset(log, nl_monotonic_ns());
    w->exchange_ns = now_ns + (w->in_burst > 0 ? BURST_PAUSE_NS : w->every_ns / NL_CLOCK_SAMPLES);
}

/* ---- steps of the clock ---- */

/* Returns the boot-time clock. Like the real-time clock, it includes the time during which the machine is suspended. */
static int64_t boot_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * NL_NS_PER_SECOND + now.tv_nsec;
}

/*
 * Sets *ahead_ns to the real-time clock minus the boot-time clock. Returns false if reading the clocks took APART_NS or
 * more, so that the difference is imprecise.
 */
static bool compare_clocks(int64_t *ahead_ns)
{
    int64_t before_ns = boot_ns(), real_ns = nl_time_now_ns(), after_ns = boot_ns();
    *ahead_ns = real_ns - before_ns - (after_ns - before_ns) / 2;
    return after_ns - before_ns < APART_NS;
}

/* Detects a step: slewing affects both clocks, so only setting the real-time clock changes their difference. */
static void clock_watch_detect_step(nl_log *log, int64_t now_ns)
{
    nl_clock_watch *w = log->watch;
    int64_t ahead_ns;
    if (!compare_clocks(&ahead_ns))
        return;
    int64_t step_ns = ahead_ns - w->ahead_ns;
    int64_t minimum_ns = STEP_NS + (now_ns - w->compared_ns) / 1000000 * STEP_PPM;
    bool compared = w->compared_ns != 0;
    w->compared_ns = now_ns;
    w->ahead_ns = ahead_ns;
    if (!compared || (step_ns < minimum_ns && step_ns > -minimum_ns))
        return;
    nl_record *record = nl_own_record_new(log, NL_WARNING, NL_CLOCK_STEP);
    nl_quality_add(record, "CLOCK.STEP", (double)step_ns / 1e3);
    nl_own_records_add(log, record);
    w->sample_count = 0;
    w->in_burst = BURST;
    w->exchange_ns = now_ns;
}

/*
 * Returns whether the writer thread runs. If a log that is being closed has no thread, it cannot write records, because
 * a record would start the thread.
 */
static bool is_running(nl_log *log)
{
    pthread_mutex_lock(&log->mutex);
    bool running = log->running;
    pthread_mutex_unlock(&log->mutex);
    return running;
}

void nl_clock_watch_begin(nl_log *log)
{
    if (log->options.clock_ns <= 0)
        return;
    nl_clock_watch *w = log->watch = nl_memory_check(calloc(1, sizeof *w));
    if (w == NULL)
        return; /* the log has no records about its clock */
    w->fd = -1;
    w->every_ns = log->options.clock_ns;
    w->in_burst = BURST;
}

/*
 * Returns whether the module must not write a record yet. A log that has never reached its destination must keep only
 * the events of the program.
 */
static bool waits_for_destination(const nl_log *log)
{
    return log->watch->report_ns == 0 && log->outbox.away;
}

void nl_clock_watch_look(nl_log *log)
{
    nl_clock_watch *w = log->watch;
    if (w == NULL || waits_for_destination(log))
        return;
    int64_t now_ns = nl_monotonic_ns();
    clock_watch_detect_step(log, now_ns);
    bool due = now_ns >= w->report_ns;
    if (due) {
        w->report_ns = now_ns + w->every_ns;
        forget_question(w);
        w->to_ask = true;
        report_kernel_clock(log);
        report_offset(log, now_ns);
    }
    if (w->to_ask)
        clock_watch_ask(w, false, now_ns);
    else
        clock_watch_read_reply(log, now_ns);
    if (now_ns >= w->exchange_ns && can_exchange(log))
        exchange(log, now_ns, false);
}

void nl_clock_watch_finish(nl_log *log)
{
    nl_clock_watch *w = log->watch;
    if (w == NULL || !is_running(log) || waits_for_destination(log))
        return;
    int64_t now_ns = nl_monotonic_ns();
    if (w->report_ns == 0) { /* first check */
        report_kernel_clock(log);
        w->to_ask = true;
    }
    if (w->to_ask)
        clock_watch_ask(w, false, now_ns);
    struct pollfd answer = {.fd = w->fd, .events = POLLIN};
    if (w->fd >= 0 && poll(&answer, 1, LAST_WAIT_MS) == 1)
        clock_watch_read_reply(log, now_ns);
    forget_question(w);
    if (w->in_burst == BURST && w->sample_count == 0 && can_exchange(log))
        exchange(log, now_ns, true);
    report_offset(log, nl_monotonic_ns());
}

/* Forgets the pending request and the first report, which belong to the parent. */
void nl_clock_watch_after_fork(nl_clock_watch *watch)
{
    if (watch == NULL)
        return;
    if (watch->fd >= 0)
        nl_identity_close(&watch->identity, watch->fd);
    watch->fd = -1;
    if (watch->report_ns == 0)
        watch->report_ns = nl_monotonic_ns() + watch->every_ns;
    watch->sample_count = 0;
    watch->in_burst = BURST;
    watch->exchange_ns = 0;
}

void nl_clock_watch_free(nl_clock_watch *watch)
{
    free(watch);
}
