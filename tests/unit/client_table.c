/* Tests which client netlogd closes when it has too many clients. */
#include "service/client_table.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND_NS INT64_C(1000000000)

static struct sockaddr *address(const char *text)
{
    static struct sockaddr_storage storage;
    memset(&storage, 0, sizeof storage);
    struct sockaddr_in *four = (struct sockaddr_in *)&storage;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&storage;
    if (strcmp(text, "unix") == 0) {
        storage.ss_family = AF_UNIX;
    } else if (strchr(text, ':') != NULL) {
        storage.ss_family = AF_INET6;
        assert_int_equal(inet_pton(AF_INET6, text, &six->sin6_addr), 1);
    } else {
        storage.ss_family = AF_INET;
        assert_int_equal(inet_pton(AF_INET, text, &four->sin_addr), 1);
    }
    return (struct sockaddr *)&storage;
}

static void unit_client_table_add(client_table *t, client_entry *e, const char *text, int64_t now_ns)
{
    *e = (client_entry){.fd = -1};
    assert_true(client_table_add(t, e, address(text), now_ns));
}

static client_entry *displaced;

static client_verdict admit(client_table *t, const char *text, int64_t now_ns)
{
    return client_table_admit(t, address(text), false, now_ns, &displaced);
}

static void test_limits(void **state)
{
    (void)state;
    client_table *t = client_table_new();
    client_entry e[6];
    client_table_set_limits(t, 4, 3);
    assert_int_equal(admit(t, "10.0.0.1", 0), CLIENT_ADMITTED);
    for (int i = 0; i < 3; i++)
        unit_client_table_add(t, &e[i], "10.0.0.1", 0);
    assert_int_equal(admit(t, "10.0.0.1", SECOND_NS / 2), CLIENT_TOO_MANY_OF_ONE);
    assert_int_equal(admit(t, "::ffff:10.0.0.1", SECOND_NS / 2), CLIENT_TOO_MANY_OF_ONE);
    assert_int_equal(admit(t, "10.0.0.2", 0), CLIENT_ADMITTED);
    unit_client_table_add(t, &e[3], "10.0.0.2", 0);
    assert_int_equal(client_table_count(t), 4);
    /*
     * A client of an address with fewer clients displaces a client, even a busy client, of the address with the most
     * clients.
     */
    assert_int_equal(admit(t, "10.0.0.2", 0), CLIENT_DISPLACES);
    assert_ptr_equal(displaced, &e[0]);
    /*
     * Within an address, the table first displaces clients without a valid record, and then the client that has been
     * silent longest.
     */
    client_table_heard(t, &e[0], 0);
    assert_int_equal(admit(t, "10.0.0.1", 2 * SECOND_NS), CLIENT_DISPLACES);
    assert_ptr_equal(displaced, &e[1]);
    client_table_heard(t, &e[1], 1);
    client_table_heard(t, &e[2], 2);
    client_table_heard(t, &e[0], 3);
    assert_int_equal(admit(t, "10.0.0.1", 2 * SECOND_NS), CLIENT_DISPLACES);
    assert_ptr_equal(displaced, &e[1]);
    client_table_remove(t, &e[1]);
    client_table_remove(t, &e[1]); /* an unknown client has no effect */
    assert_int_equal(admit(t, "10.0.0.1", 0), CLIENT_ADMITTED);
    client_table_replace(&e[0], &e[4]);
    assert_int_equal(client_table_count(t), 3);
    client_table_remove(t, &e[2]);
    client_table_remove(t, &e[3]);
    client_table_remove(t, &e[4]);
    assert_int_equal(client_table_count(t), 0);
    client_table_set_limits(t, 0, 0);
    assert_int_equal(admit(t, "10.0.0.1", 0), CLIENT_TOO_MANY);
    client_table_free(t);
}

static void test_addresses(void **state)
{
    (void)state;
    client_table *t = client_table_new();
    client_entry e[4];
    client_table_set_limits(t, 100, 1);
    unit_client_table_add(t, &e[0], "2001:db8:1:2::1", 0);
    assert_int_equal(admit(t, "2001:db8:1:2:ffff::9", 0), CLIENT_TOO_MANY_OF_ONE);
    assert_int_equal(admit(t, "2001:db8:1:3::1", 0), CLIENT_ADMITTED);
    unit_client_table_add(t, &e[1], "::1", 0);
    assert_int_equal(admit(t, "0.0.0.2", 0), CLIENT_ADMITTED);
    unit_client_table_add(t, &e[2], "unix", 0);
    assert_int_equal(admit(t, "unix", 0), CLIENT_ADMITTED); /* a local client has no limit itself */
    client_table_set_limits(t, 3, 1);
    /*
     * If addresses have equally many clients, the table displaces a client of the address that has been silent longest.
     */
    client_table_heard(t, &e[0], 1);
    assert_int_equal(admit(t, "10.0.0.1", 2 * SECOND_NS), CLIENT_DISPLACES);
    assert_ptr_equal(displaced, &e[1]);
    assert_int_equal(admit(t, "10.0.0.1", SECOND_NS / 2), CLIENT_TOO_MANY);
    for (int i = 0; i < 3; i++)
        client_table_remove(t, &e[i]);
    client_table_free(t);
}

/* A client with unread bytes is not silent. */
static void test_unread(void **state)
{
    (void)state;
    int ends[2];
    client_table *t = client_table_new();
    client_entry e[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    client_table_set_limits(t, 2, 0);
    for (int i = 0; i < 2; i++) {
        e[i] = (client_entry){.fd = ends[i]};
        assert_true(client_table_add(t, &e[i], address("10.0.0.1"), i));
    }
    assert_int_equal(write(ends[1], "x", 1), 1); /* for e[0] */
    assert_int_equal(admit(t, "10.0.0.1", 2 * SECOND_NS), CLIENT_DISPLACES);
    assert_ptr_equal(displaced, &e[1]);
    assert_int_equal(write(ends[0], "x", 1), 1);
    assert_int_equal(admit(t, "10.0.0.1", 2 * SECOND_NS), CLIENT_TOO_MANY);
    /* Unread bytes protect a client only once, until netlogd reads from it. */
    client_table_heard(t, &e[0], 3 * SECOND_NS);
    assert_int_equal(admit(t, "10.0.0.1", 5 * SECOND_NS), CLIENT_DISPLACES);
    assert_ptr_equal(displaced, &e[1]);
    client_table_heard(t, &e[1], 5 * SECOND_NS);
    assert_int_equal(admit(t, "10.0.0.1", 5 * SECOND_NS), CLIENT_TOO_MANY);
    assert_int_equal(admit(t, "10.0.0.1", 6 * SECOND_NS), CLIENT_DISPLACES);
    assert_ptr_equal(displaced, &e[0]);
    for (int i = 0; i < 2; i++) {
        client_table_remove(t, &e[i]);
        close(ends[i]);
    }
    client_table_free(t);
}

/* An address whose clients all have unread bytes does not lock out another address. */
static void test_all_unread(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    int ends[COUNT][2];
    client_table *t = client_table_new();
    client_entry e[COUNT];
    client_table_set_limits(t, COUNT, 0);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]), 0);
        assert_int_equal(write(ends[i][1], "x", 1), 1);
        e[i] = (client_entry){.fd = ends[i][0]};
        assert_true(client_table_add(t, &e[i], address("10.0.0.1"), i));
        client_table_heard(t, &e[i], i);
    }
    assert_int_equal(admit(t, "10.0.0.2", SECOND_NS / 2), CLIENT_DISPLACES);
    assert_ptr_equal(displaced, &e[0]);
    /* Within the address, other clients are protected first, but not forever. */
    client_verdict verdict = CLIENT_TOO_MANY;
    for (int i = 1; i <= 10 && verdict == CLIENT_TOO_MANY; i++)
        verdict = admit(t, "10.0.0.1", (i + 1) * SECOND_NS);
    assert_int_equal(verdict, CLIENT_DISPLACES);
    for (int i = 0; i < COUNT; i++) {
        client_table_remove(t, &e[i]);
        close(ends[i][0]);
        close(ends[i][1]);
    }
    client_table_free(t);
}

/* The counts of many addresses stay correct for all arrivals and departures. */
static void test_many(void **state)
{
    (void)state;
    enum { COUNT = 20000, HOSTS = 300 };
    client_table *t = client_table_new();
    client_entry *e = calloc(COUNT, sizeof *e);
    char text[32];
    client_table_set_limits(t, COUNT, 0);
    srandom(1);
    for (int i = 0; i < COUNT; i++) {
        snprintf(text, sizeof text, "10.1.%d.%d", (int)(random() % 2), (int)(random() % HOSTS) % 256);
        unit_client_table_add(t, &e[i], text, i);
        if (random() % 2)
            client_table_heard(t, &e[random() % (i + 1)], i);
    }
    for (int64_t now_ns = 10 * SECOND_NS; client_table_count(t) > 0; now_ns++) {
        client_table_set_limits(t, client_table_count(t), 0);
        assert_int_equal(admit(t, "192.0.2.1", now_ns), CLIENT_DISPLACES);
        client_table_remove(t, displaced);
    }
    free(e);
    client_table_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),     cmocka_unit_test(test_addresses), cmocka_unit_test(test_unread),
        cmocka_unit_test(test_all_unread), cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
