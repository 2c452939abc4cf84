#include "config.h"

#include "agent/registrar.h"

#include "agents/directory.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "base/text.h"
#include "base/thread.h"
#include "program/program.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STOP_MS = 2000 };

struct registrar {
    registrar_options options;
    definitions *definitions;
    nl_log *log;
    client *client; /* NULL: the directory is an LDAP server */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wakes;
    bool stopping, again, ended;
};

static bool is_ldap(const char *url)
{
    return strncmp(url, "ldap", 4) == 0;
}

/* Returns the names of a sensor's events, separated by blanks. The caller frees the string. */
static char *events_of(const definition *d)
{
    nl_buffer text = {0};
    for (const sensor_field *f = d->fields; f != NULL && f->event != NULL; f++) {
        if (f > d->fields && strcmp(f->event, f[-1].event) == 0)
            continue;
        if (text.size > 0)
            nl_buffer_append(&text, " ", 1);
        nl_buffer_append_text(&text, f->event);
    }
    nl_buffer_append(&text, "", 1);
    return text.data;
}

/* Copies the list of sensors, and returns the number of sensors. Definitions remain valid until the process exits, but
 * the list can change. */
static size_t list_sensors(definitions *all, directory_sensor sensors[DIRECTORY_SENSORS_MAX])
{
    size_t count = 0;
    pthread_mutex_lock(&all->lock);
    for (const definition *d = all->first; d != NULL && count < DIRECTORY_SENSORS_MAX; d = d->next)
        sensors[count++] = (directory_sensor){d->name, d->what, events_of(d)};
    pthread_mutex_unlock(&all->lock);
    return count;
}

static bool register_with_agent(registrar *r, const directory_sensor *sensors, size_t count)
{
    nl_buffer message = {0};
    soap_call answer;
    soap_begin(&message, "Register");
    soap_put_agent(&message, r->options.host, r->options.url, r->options.ttl_s, sensors, count);
    soap_end(&message, "Register");
    bool good = client_call(r->client, &message, &answer);
    soap_call_free(&answer);
    nl_buffer_free(&message);
    return good;
}

static bool do_register(registrar *r)
{
    directory_sensor sensors[DIRECTORY_SENSORS_MAX];
    size_t count = list_sensors(r->definitions, sensors);
    const registrar_options *o = &r->options;
    bool good = r->client == NULL ? ldap_register(&o->ldap, o->host, o->url, o->ttl_s, sensors, count)
                                  : register_with_agent(r, sensors, count);
    for (size_t i = 0; i < count; i++)
        free((char *)sensors[i].events);
    return good;
}

static void do_withdraw(registrar *r)
{
    if (r->client == NULL) {
        ldap_withdraw(&r->options.ldap, r->options.url);
        return;
    }
    nl_buffer message = {0};
    soap_call answer;
    soap_begin(&message, "Withdraw");
    soap_put(&message, "url", r->options.url);
    soap_end(&message, "Withdraw");
    client_call(r->client, &message, &answer);
    soap_call_free(&answer);
    nl_buffer_free(&message);
}

/*
 * Waits for a third of the time after which the registration expires, so that a single failed renewal does not end the
 * registration. If the registration expires in less than 6 s, waits for 1 s. A call of registrar_again ends the wait.
 * Returns false if the thread must end.
 */
static bool wait_for_renewal(registrar *r)
{
    struct timespec until = nl_monotonic_in_ms(r->options.ttl_s >= 6 ? (int64_t)(r->options.ttl_s / 3) * 1000 : 1000);
    pthread_mutex_lock(&r->lock);
    while (!r->stopping && !r->again && pthread_cond_timedwait(&r->wakes, &r->lock, &until) == 0)
        continue;
    bool goes_on = !r->stopping;
    r->again = false;
    pthread_mutex_unlock(&r->lock);
    return goes_on;
}

/* Logs the result of a registration. Logs nothing if the thread must end, because the log may already be closed. */
static void registrar_report(registrar *r, bool good)
{
    const registrar_options *o = &r->options;
    pthread_mutex_lock(&r->lock);
    if (!r->stopping && good)
        nl_write(r->log, NL_USAGE, "Nlagentd.Registered", "DIRECTORY=%s URL=%s", o->directory, o->url);
    else if (!r->stopping)
        nl_write(r->log, NL_WARNING, "Nlagentd.NotRegistered", "DIRECTORY=%s REASON=%s", o->directory,
                 nl_error_message());
    pthread_mutex_unlock(&r->lock);
}

static void *registrar_run(void *user)
{
    registrar *r = user;
    bool was_good = false, was_reported = false;
    do {
        bool good = do_register(r);
        if (good != was_good || (!good && !was_reported))
            registrar_report(r, good);
        was_reported = was_reported || !good;
        was_good = good;
    } while (wait_for_renewal(r));
    if (was_good)
        do_withdraw(r);
    pthread_mutex_lock(&r->lock);
    r->ended = true;
    pthread_cond_signal(&r->wakes);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

registrar *registrar_start(const registrar_options *o, definitions *all, nl_log *log)
{
    registrar *r = nl_memory_check(calloc(1, sizeof *r));
    r->options = *o;
    r->definitions = all;
    r->log = log;
    if (!is_ldap(o->directory) && (r->client = client_new(o->directory, &r->options.client)) == NULL) {
        free(r);
        return NULL;
    }
    nl_monotonic_cond_init(&r->wakes);
    pthread_mutex_init(&r->lock, NULL);
    int error = nl_thread_create(&r->thread, NULL, registrar_run, r);
    if (error != 0)
        program_fail(PROGRAM_PROBLEM, "cannot start a thread: %s", strerror(error));
    return r;
}

void registrar_again(registrar *r)
{
    if (r == NULL)
        return;
    pthread_mutex_lock(&r->lock);
    r->again = true;
    pthread_cond_signal(&r->wakes);
    pthread_mutex_unlock(&r->lock);
}

bool registrar_stop(registrar *r)
{
    if (r == NULL)
        return true;
    struct timespec until = nl_monotonic_in_ms(STOP_MS);
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    pthread_cond_signal(&r->wakes);
    while (!r->ended && pthread_cond_timedwait(&r->wakes, &r->lock, &until) == 0)
        continue;
    bool ended = r->ended;
    pthread_mutex_unlock(&r->lock);
    if (!ended)
        return false;
    pthread_join(r->thread, NULL);
    client_free(r->client);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->wakes);
    free(r);
    return true;
}
