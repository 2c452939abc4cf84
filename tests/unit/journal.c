/*
 * Tests that netlogd ignores the last entry of its journal if a kill truncated or damaged the entry at any byte. Also
 * tests that the journal's size is limited.
 */
#include "output/journal.h"

#include "reader/streams.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/netlogger-journal-XXXXXX";
static char path[sizeof folder + 20];

static int make_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/all.log.streams", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static int remove_journal(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

static nl_stream_state stream(unsigned name, uint64_t next)
{
    static const nl_number_range gaps[] = {{3, 4}, {7, 9}};
    nl_stream_state state = {.next = next, .latest_ns = -5, .gap_count = 2, .gaps = gaps};
    memcpy(state.stream, &name, sizeof name);
    state.stream[15] = 1;
    return state;
}

static long size_of(const char *file)
{
    struct stat status;
    return stat(file, &status) == 0 ? (long)status.st_size : -1;
}

/* Opens a journal with its own streams, which the caller frees. */
static journal *open_it(nl_streams **streams, journal_mark *mark, bool *found)
{
    *streams = nl_streams_new();
    *mark = (journal_mark){0};
    journal *j = journal_open(path, *streams, mark, found);
    assert_non_null(j);
    return j;
}

static void close_it(journal *j, nl_streams *streams)
{
    journal_close(j);
    nl_streams_free(streams);
}

/*
 * Opens and closes the journal at `path`. Checks that the next number of stream 1 is next_of_1; 0: the journal does not
 * have the stream. Returns the journal's mark.
 */
static journal_mark unit_journal_look(uint64_t next_of_1)
{
    nl_streams *streams;
    journal_mark mark;
    bool found;
    journal *j = open_it(&streams, &mark, &found);
    nl_stream_state expected = stream(1, next_of_1), state;
    bool known = nl_streams_get(streams, expected.stream, &state);
    assert_int_equal(known, next_of_1 > 0);
    if (known) {
        assert_memory_equal(state.stream, expected.stream, sizeof state.stream);
        assert_int_equal(state.next, expected.next);
        assert_int_equal(state.latest_ns, expected.latest_ns);
        assert_int_equal(state.gap_count, expected.gap_count);
        assert_memory_equal(state.gaps, expected.gaps, expected.gap_count * sizeof *expected.gaps);
    }
    assert_int_equal(found, mark.inode != 0);
    close_it(j, streams);
    return mark;
}

static void set_and_touch(journal *j, nl_streams *streams, unsigned name, uint64_t next)
{
    nl_stream_state state = stream(name, next);
    nl_streams_set(streams, &state);
    journal_touch(j, state.stream);
}

/* Writes an entry, and two entries that continue stream 1. Returns the size before the last entry. */
static long write_three(void)
{
    nl_streams *streams;
    journal_mark mark;
    bool found;
    journal *j = open_it(&streams, &mark, &found);
    assert_false(found);
    assert_false(journal_is_needed(j));
    set_and_touch(j, streams, 1, 10);
    assert_true(journal_is_needed(j));
    assert_int_equal(size_of(path), -1);
    assert_int_equal(journal_begin(j, &(journal_mark){.number = 7, .inode = 8, .size = 100}, false), NL_OK);
    assert_int_equal(unit_journal_look(0).size, 100);
    assert_int_equal(journal_write(j, &(journal_mark){.number = 7, .inode = 8, .size = 200}, false), NL_OK);
    assert_int_equal(unit_journal_look(10).size, 200);
    long before = size_of(path);
    set_and_touch(j, streams, 1, 20);
    set_and_touch(j, streams, 2, 5);
    set_and_touch(j, streams, 1, 30);
    assert_int_equal(journal_write(j, &(journal_mark){.number = 8, .inode = 9, .size = 50}, true), NL_OK);
    journal_mark latest = unit_journal_look(30);
    assert_int_equal(latest.number, 8);
    assert_int_equal(latest.inode, 9);
    assert_int_equal(latest.size, 50);
    assert_false(latest.ended);
    close_it(j, streams);
    return before;
}

static void remembers_what_was_noted(void **state)
{
    (void)state;
    write_three();
}

static void a_torn_entry_is_as_if_it_were_not_there(void **state)
{
    (void)state;
    long before = write_three(), all = size_of(path);
    char content[1000];
    FILE *file = fopen(path, "r");
    assert_int_equal(fread(content, 1, sizeof content, file), all);
    fclose(file);
    for (long size = all - 1; size >= before; size--) {
        file = fopen(path, "w");
        fwrite(content, 1, (size_t)size, file);
        fclose(file);
        assert_int_equal(unit_journal_look(10).size, 200);
        assert_int_equal(size_of(path), before);
    }
    for (long at = before; at < all; at++) {
        content[at] ^= 1;
        file = fopen(path, "w");
        fwrite(content, 1, (size_t)all, file);
        fclose(file);
        assert_int_equal(unit_journal_look(10).size, 200);
        content[at] ^= 1;
    }
}

static void goes_on_behind_a_torn_entry(void **state)
{
    (void)state;
    long before = write_three();
    assert_int_equal(truncate(path, before + 20), 0);
    nl_streams *streams;
    journal_mark mark;
    bool found;
    journal *j = open_it(&streams, &mark, &found);
    assert_true(found);
    set_and_touch(j, streams, 1, 11);
    assert_int_equal(journal_write(j, &(journal_mark){.number = 7, .inode = 8, .size = 300}, false), NL_OK);
    close_it(j, streams);
    assert_int_equal(unit_journal_look(11).size, 300);
}

static void says_that_it_ended(void **state)
{
    (void)state;
    write_three();
    nl_streams *streams;
    journal_mark mark;
    bool found;
    journal *j = open_it(&streams, &mark, &found);
    mark.ended = true;
    assert_int_equal(journal_write(j, &mark, false), NL_OK);
    close_it(j, streams);
    mark = unit_journal_look(30);
    assert_true(mark.ended);
    assert_int_equal(mark.size, 50);
}

static void its_size_is_bounded(void **state)
{
    (void)state;
    nl_streams *streams;
    journal_mark mark;
    bool found;
    long largest = 0;
    journal *j = open_it(&streams, &mark, &found);
    for (unsigned round = 1; round <= 400; round++) {
        for (unsigned name = 1; name <= 1000; name++)
            set_and_touch(j, streams, name, round);
        mark = (journal_mark){.number = 1, .inode = 2, .size = round};
        assert_int_equal(journal_write(j, &mark, false), NL_OK);
        largest = size_of(path) > largest ? size_of(path) : largest;
    }
    for (unsigned name = 2000; name < 2 * NL_STREAMS_MAX; name++) {
        set_and_touch(j, streams, name, 1);
        if (name % 1000 == 0)
            assert_int_equal(journal_write(j, &mark, false), NL_OK);
    }
    assert_in_range(largest, 1 << 20, (1 << 20) + 100000);
    close_it(j, streams);
    assert_in_range(size_of(path), 1, 3 * NL_STREAMS_MAX * 48);
    assert_int_equal(unit_journal_look(0).size, 400); /* stream 1 was silent longest */
}

static void no_journal_where_none_can_be(void **state)
{
    (void)state;
    nl_streams *streams = nl_streams_new();
    journal_mark mark = {0};
    bool found;
    journal *j = journal_open("/nonexistent/streams", streams, &mark, &found);
    assert_non_null(j);
    set_and_touch(j, streams, 1, 1);
    assert_int_equal(journal_begin(j, &mark, false), NL_FAILED);
    assert_int_equal(journal_write(j, &mark, false), NL_FAILED);
    close_it(j, streams);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(remembers_what_was_noted, remove_journal),
        cmocka_unit_test_teardown(a_torn_entry_is_as_if_it_were_not_there, remove_journal),
        cmocka_unit_test_teardown(goes_on_behind_a_torn_entry, remove_journal),
        cmocka_unit_test_teardown(says_that_it_ended, remove_journal),
        cmocka_unit_test_teardown(its_size_is_bounded, remove_journal),
        cmocka_unit_test(no_journal_where_none_can_be),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
