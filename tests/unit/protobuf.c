/* Fields of protobuf messages, compiled with unsigned plain characters, as on ARM. */
#include "convert/protobuf.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void every_size_is_read(void **state)
{
    (void)state;
    assert_int_equal(CHAR_MIN, 0);
    static char message[1000];
    for (size_t size = 0; size < sizeof message - 3; size++) {
        size_t at = 0;
        message[at++] = 1 << 3 | PROTOBUF_BYTES;
        message[at++] = (char)(size < 128 ? size : (size & 127) | 128);
        if (size >= 128)
            message[at++] = (char)(size >> 7);
        const char *next = message;
        protobuf_field field = {0};
        assert_true(protobuf_next(&next, message + at + size, &field));
        assert_int_equal(field.number, 1);
        assert_int_equal(field.wire, PROTOBUF_BYTES);
        assert_int_equal(field.size, size);
        assert_ptr_equal(field.data, message + at);
        assert_ptr_equal(next, message + at + size);
        next = message;
        assert_true(size == 0 || !protobuf_next(&next, message + at + size - 1, &field));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
