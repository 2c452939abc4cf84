/* traceparent and tracestate: the format of W3C Trace Context, and every kind of malformed header. */
#include <netlogger.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static bool is_empty(const nl_context *context)
{
    return memcmp(context, NL_NO_PARENT, sizeof *context) == 0;
}

static void test_traceparent(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int flags; /* -1: invalid */
    } cases[] = {
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", 1},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", 0},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03", 3},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-fc", 0},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff", 3},
        {" \t00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\t ", 1},
        {"7f-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", 1},
        {"7f-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more=fields", 1},
        {"7f-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-", 1},
        {"7f-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.more", -1},
        {"7f-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-012", -1},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", -1},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-", -1},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.", -1},
        {"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", -1},
        {"FF-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", -1},
        {"x0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", -1},
        {"0x-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", -1},
        {"000-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", -1},
        {"0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", -1},
        {"00-00000000000000000000000000000000-b7ad6b7169203331-01", -1},
        {"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", -1},
        {"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", -1},
        {"00-0af7651916cd43dd8448eb211c80319c-B7AD6B7169203331-01", -1},
        {"00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01", -1},
        {"00-0af7651916cd43dd8448eb211c80319c0-b7ad6b7169203331-01", -1},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333-01", -1},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b71692033310-01", -1},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1", -1},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-001", -1},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-x0", -1},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x", -1},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0A", -1},
        {"00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", -1},
        {"00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01", -1},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331_01", -1},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-", -1},
        {"00 -0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", -1},
        {"", -1},
        {" ", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        nl_context context;
        memset(&context, 0xaa, sizeof context);
        nl_status status = nl_traceparent_parse(cases[i].text, strlen(cases[i].text), &context);
        if (cases[i].flags < 0) {
            assert_int_equal(status, NL_FAILED);
            assert_true(is_empty(&context));
            continue;
        }
        assert_int_equal(status, NL_OK);
        char expected[NL_TRACEPARENT_SIZE], text[NL_TRACEPARENT_SIZE];
        snprintf(expected, sizeof expected, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0%u",
                 (unsigned)cases[i].flags % 10);
        assert_int_equal(nl_traceparent_format(&context, text), 55);
        if (cases[i].flags & NL_CONTEXT_SAMPLED) {
            assert_string_equal(text, expected);
        } else { /* a new span ID */
            assert_memory_equal(text, expected, 36);
            assert_memory_not_equal(text + 36, expected + 36, 16);
            assert_string_equal(text + 52, expected + 52);
        }
    }
}

/* Tries every byte at every position. Only the digits and the hyphens of the format are valid. */
static void test_every_byte_of_a_traceparent(void **state)
{
    (void)state;
    static const char valid[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for (size_t at = 0; at < sizeof valid - 1; at++)
        for (int byte = 0; byte < 256; byte++) {
            char text[sizeof valid];
            memcpy(text, valid, sizeof text);
            text[at] = (char)byte;
            bool digit = byte != 0 && strchr("0123456789abcdef", byte) != NULL;
            bool good = valid[at] == '-' ? byte == '-' : digit;
            nl_context context;
            nl_status status = nl_traceparent_parse(text, sizeof valid - 1, &context);
            if ((status == NL_OK) != good)
                fail_msg("byte %d at %zu: %d", byte, at, status);
        }
}

static void test_format_of_nothing(void **state)
{
    (void)state;
    char text[NL_TRACEPARENT_SIZE] = "x";
    assert_int_equal(nl_traceparent_format(NL_NO_PARENT, text), 0);
    assert_string_equal(text, "");
    assert_int_equal(nl_traceparent_format(NULL, text), 0);
    nl_context context;
    assert_int_equal(nl_traceparent_parse("x", 0, &context), NL_FAILED);
    assert_int_equal(nl_traceparent_parse("", 0, NULL), NL_FAILED);
}

/* Appends the headers, which are separated by '\n'. */
static nl_status append_all(char state[NL_TRACESTATE_SIZE], const char *headers)
{
    nl_status status = NL_OK;
    *state = '\0';
    for (const char *at = headers;; at++) {
        size_t size = strcspn(at, "\n");
        status = nl_tracestate_append(state, at, size);
        at += size;
        if (status != NL_OK || *at == '\0')
            return status;
    }
}

static void test_tracestate(void **state)
{
    (void)state;
    static const struct {
        const char *headers, *result; /* NULL: invalid */
    } cases[] = {
        {"", ""},
        {"a=1", "a=1"},
        {"a=1,b=2", "a=1,b=2"},
        {"a=1,b=2\nc=3\nd=4,e=5", "a=1,b=2,c=3,d=4,e=5"},
        {"\na=1\n", "a=1"},
        {" \t a=1 \t,\t b=2 , , ,c=3,", "a=1,b=2,c=3"},
        {"a=1 2  3,b= x", "a=1 2  3,b= x"},
        {"a=1,b=2,a=3\nb=4", "a=1,b=2"},
        {"aa=1,a=2,aaa=3", "aa=1,a=2,aaa=3"},
        {"0tenant@system=x,t_-*/@@=y,z@=1", "0tenant@system=x,t_-*/@@=y,z@=1"},
        {"k=!\"#$%&'()*+-./0123456789:;<>?@AZ[\\]^_`az{|}~", "k=!\"#$%&'()*+-./0123456789:;<>?@AZ[\\]^_`az{|}~"},
        {"a", NULL},
        {"=1", NULL},
        {"a=", NULL},
        {"a=1,b=,c=3", NULL},
        {"a =1", NULL},
        {"A=1", NULL},
        {"aB=1", NULL},
        {"a.b=1", NULL},
        {"@a=1", NULL},
        {"_a=1", NULL},
        {"-a=1", NULL},
        {"a=b=c", NULL},
        {"a=1;b=2", NULL},
        {"a=\x01", NULL},
        {"a=b\x7f", NULL},
        {"a=\xc3\xa9", NULL},
        {"a=1\nB=2", NULL},
    };
    char text[NL_TRACESTATE_SIZE];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        nl_status status = append_all(text, cases[i].headers);
        assert_int_equal(status, cases[i].result != NULL ? NL_OK : NL_FAILED);
        assert_string_equal(text, cases[i].result != NULL ? cases[i].result : "");
    }
}

static void test_limits_of_tracestate(void **state)
{
    (void)state;
    char headers[4000], text[NL_TRACESTATE_SIZE];
    int size = 0;
    for (int i = 0; i < 32; i++)
        size += snprintf(headers + size, sizeof headers - (size_t)size, "key%02d=%d,", i, i);
    assert_int_equal(append_all(text, headers), NL_OK);
    assert_int_equal(strlen(text), size - 1);
    static const char *const one_more[] = {"more=33", "\nmore=33", "key05=again", "\nkey05=again"};
    for (size_t i = 0; i < sizeof one_more / sizeof *one_more; i++) {
        snprintf(headers + size, sizeof headers - (size_t)size, "%s", one_more[i]);
        assert_int_equal(append_all(text, headers), NL_FAILED);
        assert_string_equal(text, "");
    }
    snprintf(headers + size, sizeof headers - (size_t)size, " ,, "); /* empty members do not count */
    assert_int_equal(append_all(text, headers), NL_OK);
    char key[258];
    memset(key, 'k', sizeof key);
    snprintf(headers, sizeof headers, "%.256s=1", key);
    assert_int_equal(append_all(text, headers), NL_OK);
    snprintf(headers, sizeof headers, "%.257s=1", key);
    assert_int_equal(append_all(text, headers), NL_FAILED);
    snprintf(headers, sizeof headers, "v=%.256s", key);
    assert_int_equal(append_all(text, headers), NL_OK);
    snprintf(headers, sizeof headers, "v=%.257s", key);
    assert_int_equal(append_all(text, headers), NL_FAILED);
    /* Too long: large members are removed first, then the last members. */
    snprintf(headers, sizeof headers, "a=%.200s,b=1,c=%.200s\nd=%.120s,e=%.120s,f=%.120s,g=%.120s,h=%.120s,i=%.120s",
             key, key, key, key, key, key, key, key);
    assert_int_equal(append_all(text, headers), NL_OK);
    assert_null(strstr(text, ",c="));
    assert_memory_equal(text, "a=", 2);
    assert_non_null(strstr(text, ",h="));
    assert_non_null(strstr(text, ",i="));
    for (int i = 0; i < 32; i++)
        snprintf(headers + 100 * i, sizeof headers - 100 * (size_t)i, "m%02d=%.95s,", i, key);
    assert_int_equal(append_all(text, headers), NL_OK);
    assert_true(strlen(text) >= 512 && strlen(text) < NL_TRACESTATE_SIZE);
    assert_int_equal(strlen(text) % 100, 99); /* whole members */
    assert_int_equal(nl_tracestate_append(NULL, "", 0), NL_FAILED);
    assert_int_equal(nl_tracestate_append(text, NULL, 1), NL_FAILED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_traceparent),          cmocka_unit_test(test_every_byte_of_a_traceparent),
        cmocka_unit_test(test_format_of_nothing),    cmocka_unit_test(test_tracestate),
        cmocka_unit_test(test_limits_of_tracestate),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
