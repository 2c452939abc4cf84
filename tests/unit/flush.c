/*
 * Tests when netlogd flushes its outputs: with idle clients, with clients that always have bytes, and after a failure.
 */
#include "flush.h"

#include "base/error.h"
#include "base/monotonic.h"
#include "connection.h"
#include "datagrams.h"
#include "file_inputs.h"
#include "journal_input.h"
#include "nats_reader.h"
#include "otlp_client.h"
#include "output/outputs.h"
#include "server.h"
#include "turns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static struct event_base *base;
static unsigned flushes, settles, acknowledgements, responses, inputs;
static bool blocked, paused;

/* ---- called by flush.c ---- */

struct event *server_new_event(evutil_socket_t fd, short what, event_callback_fn callback, void *user)
{
    return event_new(base, fd, what, callback, user);
}

bool server_is_stopping(void)
{
    return false;
}

nl_status outputs_flush(void)
{
    flushes++;
    event_base_loopbreak(base);
    return blocked ? nl_error_set(NL_ERROR_SYSTEM, "disk full") : NL_OK;
}

nl_status outputs_settle(void)
{
    settles++;
    return blocked ? nl_error_set(NL_ERROR_SYSTEM, "disk full") : NL_OK;
}

bool outputs_are_settled(void)
{
    return true;
}

int outputs_settle_ms(void)
{
    return 0;
}

bool outputs_are_blocked(void)
{
    return blocked;
}

bool outputs_are_due(void)
{
    return false;
}

void connections_visit(void (*visit)(connection *c, void *user), void *user)
{
    visit(NULL, user);
}

void connection_pause(connection *c, bool pause)
{
    (void)c;
    paused = pause;
}

connection *connections_next_to_acknowledge(void)
{
    return NULL;
}

void connection_acknowledge(connection *c)
{
    (void)c;
}

void datagrams_pause(bool pause)
{
    (void)pause;
}

void nats_readers_pause(bool pause)
{
    (void)pause;
}

void nats_readers_acknowledge(void)
{
    acknowledgements++;
}

void otlp_clients_settled(void)
{
    responses++;
}

void file_inputs_acknowledge(void)
{
    inputs++;
}

void journal_input_acknowledge(void)
{
    inputs++;
}

void turns_idle(void)
{
}

/* ---- tests ---- */

static int set_up(void **state)
{
    (void)state;
    base = event_base_new();
    event_base_priority_init(base, SERVER_PRIORITIES);
    flushes = settles = acknowledgements = responses = inputs = 0;
    blocked = paused = false;
    flush_start();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    flush_free();
    event_base_free(base);
    return 0;
}

static void test_idle_clients(void **state)
{
    (void)state;
    flush_request(false);
    assert_int_equal(flushes, 0);
    event_base_loop(base, EVLOOP_ONCE);
    assert_int_equal(flushes, 1);
    assert_int_equal(acknowledgements, 1);
    assert_int_equal(responses, 1);
    assert_int_equal(inputs, 2); /* files and the journal */
}

static struct event *always;

static void be_active(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what, (void)user;
    event_add(always, &(struct timeval){0});
}

/* A client whose bytes never complete a record keeps the loop busy; the flush event does not run. */
static void test_busy_clients(void **state)
{
    (void)state;
    always = event_new(base, -1, 0, be_active, NULL);
    be_active(-1, 0, NULL);
    flush_request(false);
    alarm(60); /* without the timer, the loop does not end */
    event_base_loop(base, 0);
    alarm(0);
    assert_int_equal(flushes, 1);
    assert_int_equal(acknowledgements, 1);
    assert_int_equal(responses, 1);
    assert_int_equal(inputs, 2); /* files and the journal */
    event_free(always);
}

/* netlogd acknowledges nothing and reads no client until it can write the output. */
static void test_pause(void **state)
{
    (void)state;
    flush_request(false);
    blocked = true;
    event_base_loop(base, EVLOOP_ONCE);
    assert_true(flush_is_paused());
    assert_true(paused);
    while (settles < 2)
        event_base_loop(base, EVLOOP_ONCE);
    assert_int_equal(acknowledgements, 0);
    assert_int_equal(responses, 0);
    assert_int_equal(inputs, 0);
    blocked = false;
    while (flush_is_paused())
        event_base_loop(base, EVLOOP_ONCE);
    assert_false(paused);
    assert_int_equal(acknowledgements, 1);
    assert_int_equal(responses, 1);
    assert_int_equal(inputs, 2); /* files and the journal */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_idle_clients, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_busy_clients, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pause, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
