/* The error of a thread: its code, its context, its copies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <netlogger.h>

#include "base/error.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

static void test_context_keeps_code(void **state)
{
    (void)state;
    nl_error_clear();
    assert_int_equal(nl_error_get_code(), NL_ERROR_NONE);
    assert_int_equal(nl_error_set(NL_ERROR_LIMIT, "%d sensors run", 3), NL_FAILED);
    assert_int_equal(nl_error_prepend("start %s", "cpu"), NL_FAILED);
    assert_string_equal(nl_error_message(), "start cpu: 3 sensors run");
    assert_int_equal(nl_error_get_code(), NL_ERROR_LIMIT);
    assert_false(nl_error_false(NL_ERROR_INVALID, "invalid"));
    assert_null(nl_error_null(NL_ERROR_NOT_FOUND, "it says \"%s\"", nl_error_message()));
    assert_string_equal(nl_error_message(), "it says \"invalid\"");
    assert_int_equal(nl_error_get_code(), NL_ERROR_NOT_FOUND);
}

static void test_errno_selects_code(void **state)
{
    (void)state;
    static const struct {
        int number;
        nl_error_code code;
    } cases[] = {{ENOENT, NL_ERROR_NOT_FOUND},         {EACCES, NL_ERROR_PERMISSION}, {ETIMEDOUT, NL_ERROR_TIMEOUT},
                 {ECONNREFUSED, NL_ERROR_UNREACHABLE}, {ENOMEM, NL_ERROR_MEMORY},     {EIO, NL_ERROR_SYSTEM}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        errno = cases[i].number;
        nl_error_set_errno("open %s", "x");
        assert_int_equal(errno, cases[i].number);
        assert_int_equal(nl_error_get_code(), cases[i].code);
        assert_non_null(strstr(nl_error_message(), strerror(cases[i].number)));
    }
}

static void test_long_messages_are_cut(void **state)
{
    (void)state;
    char text[3 * NL_ERROR_MESSAGE_SIZE];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    nl_error_set(NL_ERROR_INVALID, "%s", text);
    assert_int_equal(strlen(nl_error_message()), NL_ERROR_MESSAGE_SIZE - 1);
    nl_error_prepend("abc");
    assert_int_equal(strlen(nl_error_message()), NL_ERROR_MESSAGE_SIZE - 1);
    assert_memory_equal(nl_error_message(), "abc: xxx", 8);
    nl_error_prepend("%s", text);
    assert_int_equal(strlen(nl_error_message()), NL_ERROR_MESSAGE_SIZE - 1);
}

static void *fail_in_thread(void *error)
{
    nl_error_set(NL_ERROR_TIMEOUT, "no answer");
    nl_error_save(error);
    return NULL;
}

static void test_saved_errors_cross_threads(void **state)
{
    (void)state;
    pthread_t thread;
    nl_error error;
    nl_error_set(NL_ERROR_INVALID, "ours");
    assert_int_equal(pthread_create(&thread, NULL, fail_in_thread, &error), 0);
    pthread_join(thread, NULL);
    assert_string_equal(nl_error_message(), "ours");
    assert_int_equal(nl_error_restore(&error), NL_FAILED);
    assert_string_equal(nl_error_message(), "no answer");
    assert_int_equal(nl_error_get_code(), NL_ERROR_TIMEOUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_context_keeps_code),
        cmocka_unit_test(test_errno_selects_code),
        cmocka_unit_test(test_long_messages_are_cut),
        cmocka_unit_test(test_saved_errors_cross_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
