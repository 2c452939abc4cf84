/* Tests the characters that must not reach a terminal. The text formats escape all of them, and read them back. */
#include "record/terminal.h"
#include "record/encoder.h"
#include "reader/decoder.h"

#include <netlogger.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Encodes a character by the definition of UTF-8. */
static size_t put_utf8(char *to, unsigned code)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (char)(0xc0 | code >> 6);
        to[1] = (char)(0x80 | (code & 63));
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (char)(0xe0 | code >> 12);
        to[1] = (char)(0x80 | (code >> 6 & 63));
        to[2] = (char)(0x80 | (code & 63));
        return 3;
    }
    to[0] = (char)(0xf0 | code >> 18);
    to[1] = (char)(0x80 | (code >> 12 & 63));
    to[2] = (char)(0x80 | (code >> 6 & 63));
    to[3] = (char)(0x80 | (code & 63));
    return 4;
}

static bool is_listed(unsigned code)
{
    static const unsigned listed[] = {0x61c,  0x200e, 0x200f, 0x202a, 0x202b, 0x202c,
                                      0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069};
    for (size_t i = 0; i < sizeof listed / sizeof listed[0]; i++)
        if (code == listed[i])
            return true;
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

static void every_character_is_classed(void **state)
{
    (void)state;
    for (unsigned code = 0; code <= 0x10ffff; code++) {
        if (code >= 0xd800 && code < 0xe000)
            continue;
        char text[40];
        bool controls;
        size_t size = put_utf8(text, code);
        assert_int_equal(nl_terminal_character(text, text + size, &controls), size);
        assert_int_equal(controls, is_listed(code));
        memset(text, 'x', sizeof text);
        put_utf8(text + code % 30, code);
        assert_int_equal(nl_terminal_controls(text, sizeof text), is_listed(code));
    }
}

static void bytes_of_no_character_are_classed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool controls;
    } cases[] = {
        {"\x9b", true},         {"a\x80", true},     {"\xff", false},         {"\xa0", false},
        {"\xc0\x9b", true},     {"\xe2\x9b", true},  {"\xed\xa0\x80", true},  {"\xf5\x80\x80\x80", true},
        {"\xe0\x82\x9b", true}, {"\xc3\x9b", false}, {"\xe2\x9b\x84", false}, {"\xfc\xe4", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(nl_terminal_controls(cases[i].text, strlen(cases[i].text)), cases[i].controls);
}

/*
 * Writes a value as text. The text must contain no control character except the newline, and must give the same value
 * when it is read.
 */
static void assert_round_trip(nl_format format, const char *value, size_t size)
{
    nl_encoder *encoder = nl_encoder_new(&(nl_encoder_options){.format = format});
    nl_record *record = nl_record_new();
    nl_buffer out = {0};
    nl_record_set_event(record, "E", 1);
    nl_record_add_string(record, "V", value, size);
    nl_encoder_put(encoder, record);
    nl_encoder_finish(encoder, &out);
    assert_false(nl_terminal_controls(out.data, out.size - 1));
    nl_decoder *decoder = nl_decoder_new(NULL);
    const nl_record *read;
    nl_decoder_feed(decoder, out.data, out.size);
    assert_int_equal(nl_decoder_next(decoder, &read), NL_OK);
    nl_string back = read->fields[0].string;
    assert_int_equal(back.size, size);
    assert_memory_equal(back.data, value, size);
    nl_decoder_free(decoder);
    nl_buffer_free(&out);
    nl_record_free(record);
    nl_encoder_free(encoder);
}

static void every_byte_sequence_survives(void **state)
{
    (void)state;
    static const char alphabet[] = "ab =\"\\\x00\x1b\x7f\x80\x9b\x9f\xa0\xc2\xc3\xd8\x9c\xe2\x80\xae\x81\xa6\xf0\xff";
    srand(21);
    for (int i = 0; i < 20000; i++) {
        char value[40];
        size_t size = 1 + (size_t)rand() % (sizeof value - 1);
        for (size_t k = 0; k < size; k++)
            value[k] = alphabet[(size_t)rand() % (sizeof alphabet - 1)];
        assert_round_trip(i % 2 == 0 ? NL_FORMAT_ULM : NL_FORMAT_BP, value, size);
    }
    assert_round_trip(NL_FORMAT_ULM, "gr\xc3\xbc\xc3\x9f", 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_character_is_classed),
        cmocka_unit_test(bytes_of_no_character_are_classed),
        cmocka_unit_test(every_byte_sequence_survives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
