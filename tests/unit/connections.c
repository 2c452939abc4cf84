/* netlogd's list of connections: visits, connections that exceed their share, and pending acknowledgements. */
#include "connections.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { COUNT = 5 };

struct connection {
    connections_entry listed;
    int64_t since_ns;
    unsigned visits;
};

static void fill(connection members[COUNT])
{
    for (int i = 0; i < COUNT; i++) {
        members[i] = (connection){0};
        members[i].listed.owner = &members[i];
        connections_add(&members[i].listed);
    }
}

static void remove_visited(connection *c, void *user)
{
    c->visits++;
    if (user == NULL || c == user)
        connections_remove(&c->listed);
}

static void test_visits_meet_each_although_they_close(void **state)
{
    (void)state;
    connection members[COUNT];
    fill(members);
    connections_visit(remove_visited, &members[2]);
    connections_visit(remove_visited, NULL);
    connections_visit(remove_visited, NULL);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(members[i].visits, i == 2 ? 1 : 2);
}

static int64_t since_ns(const connection *c)
{
    return c->since_ns;
}

static void test_the_worst_holds_its_share_for_longest(void **state)
{
    (void)state;
    connection members[COUNT];
    fill(members);
    assert_null(connections_find_worst(since_ns));
    connections_set_held(&members[0].listed, 1); /* less than its share */
    members[0].since_ns = 1;
    for (int i = 1; i < 4; i++) {
        connections_set_held(&members[i].listed, 100);
        members[i].since_ns = i == 3 ? 0 : 10 - i;
    }
    assert_int_equal(connections_get_held(), 301);
    assert_ptr_equal(connections_find_worst(since_ns), &members[2]);
    connections_remove(&members[2].listed);
    assert_ptr_equal(connections_find_worst(since_ns), &members[1]);
    connections_remove(&members[1].listed);
    assert_ptr_equal(connections_find_worst(since_ns), &members[3]);
    connections_remove(&members[3].listed);
    assert_int_equal(connections_get_held(), 1);
    connections_visit(remove_visited, NULL);
    assert_int_equal(connections_get_held(), 0);
}

static void test_each_is_acknowledged_once(void **state)
{
    (void)state;
    connection members[COUNT];
    fill(members);
    assert_null(connections_next_to_acknowledge());
    for (int i = 0; i < COUNT; i++)
        for (int times = 0; times <= i; times++)
            connections_await_acknowledgement(&members[i].listed);
    connections_remove(&members[1].listed);
    for (const connection *c; (c = connections_next_to_acknowledge()) != NULL;)
        members[c - members].visits++;
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(members[i].visits, i == 1 ? 0 : 1);
    connections_visit(remove_visited, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_visits_meet_each_although_they_close),
        cmocka_unit_test(test_the_worst_holds_its_share_for_longest),
        cmocka_unit_test(test_each_is_acknowledged_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
