/* Invalid calls fail like others: they return a failure, name the function, and have no other effect. */
#include <NetLogger.h>

#include "record/encoder.h"
#include "record/line_scanner.h"
#include "transport/url.h"
#include "reader/decoder.h"
#include <netlogger.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check_message(const char *function)
{
    char wanted[80];
    snprintf(wanted, sizeof wanted, "invalid call of %s: ", function);
    assert_non_null(strstr(nl_error_message(), wanted));
    nl_error_clear();
}

#define ASSERT_FAILS(call, failure, function)                                                                          \
    do {                                                                                                               \
        nl_error_clear();                                                                                              \
        assert_true((call) == (failure));                                                                              \
        check_message(function);                                                                                       \
    } while (0)

static void logging(void **state)
{
    (void)state;
    nl_log *log = nl_open("p", "memory:wrong");
    assert_non_null(log);
    ASSERT_FAILS(nl_write(log, NL_USAGE, NULL, NULL), NL_FAILED, "nl_write");
    ASSERT_FAILS(nl_write(log, (nl_level)99, "Event", NULL), NL_FAILED, "nl_write");
    ASSERT_FAILS(nl_write_record(log, NULL), NL_FAILED, "nl_write_record");
    ASSERT_FAILS(nl_event_write(log, NULL, NULL), NL_FAILED, "nl_event_write");
    ASSERT_FAILS(nl_event_kind_new(NL_LEVEL_NONE, (nl_string){"E", 1}, NULL, 0), NULL, "nl_event_kind_new");
    ASSERT_FAILS(nl_event_kind_new(NL_USAGE, (nl_string){NULL, 0}, NULL, 0), NULL, "nl_event_kind_new");
    nl_event_kind *kind = nl_event_kind_new(NL_USAGE, (nl_string){"E", 1}, &(nl_string){"A", 1}, 1);
    ASSERT_FAILS(nl_event_write(log, kind, &(nl_field){.type = (nl_type)7}), NL_FAILED, "nl_event_write");
    nl_span span;
    ASSERT_FAILS(nl_span_begin_fields(NULL, log, NL_USAGE, "N", NULL, NULL, 0), NL_FAILED, "nl_span_begin_fields");
    ASSERT_FAILS(nl_span_begin_fields(&span, log, NL_USAGE, NULL, NULL, NULL, 0), NL_FAILED, "nl_span_begin_fields");
    ASSERT_FAILS(nl_traceparent_parse("", 0, NULL), NL_FAILED, "nl_traceparent_parse");
    ASSERT_FAILS(nl_tracestate_append(NULL, "", 0), NL_FAILED, "nl_tracestate_append");
    ASSERT_FAILS(nl_control(log, NULL, 1), NL_FAILED, "nl_control_do");
    assert_int_equal(nl_write(log, NL_USAGE, "After", "I=%d", 1), NL_OK);
    nl_event_kind_free(kind);
    assert_int_equal(nl_close(log), NL_OK);
    nl_buffer text = {0};
    assert_true(nl_memory_read("wrong", &text));
    assert_true(nl_buffer_append(&text, "", 1));
    assert_non_null(strstr(text.data, "NL.EVNT=After I=1\n"));
    assert_ptr_equal(strchr(text.data, '\n') + 2, text.data + text.size); /* no other event was logged */
    nl_buffer_free(&text);
    nl_memory_free("wrong");
    assert_int_equal(NetLoggerWrite(NULL, "Event", "", ""), 0);
}

static void markers(void **state)
{
    (void)state;
    const nl_probe_options wrong[] = {{.kind = NL_PROBE_LOG, .pattern = "m", .level = NL_USAGE},
                                      {.kind = NL_PROBE_TIME, .pattern = "m"},
                                      {.kind = NL_PROBE_CALL, .pattern = "m"},
                                      {.kind = NL_PROBE_COUNT},
                                      {.kind = (nl_probe_kind)9, .pattern = "m"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ASSERT_FAILS(nl_marker_attach(&wrong[i]), 0, "nl_marker_attach");
    ASSERT_FAILS(nl_marker_attach(NULL), 0, "nl_marker_attach");
    ASSERT_FAILS(nl_marker_list(NULL, NULL), NL_FAILED, "nl_marker_list");
}

static void records(void **state)
{
    (void)state;
    nl_buffer out = {0};
    nl_record *record = nl_record_new();
    ASSERT_FAILS(nl_record_encode(record, NL_FORMAT_NLB, &out), NL_FAILED, "nl_record_encode");
    ASSERT_FAILS(nl_record_encode(NULL, NL_FORMAT_ULM, &out), NL_FAILED, "nl_record_encode");
    ASSERT_FAILS(nl_record_decode(NULL, NL_FORMAT_ULM, NL_FRACTION_DECIMAL, "", 0), NL_FAILED, "nl_record_decode");
    ASSERT_FAILS(nl_encoder_new(&(nl_encoder_options){0}), NULL, "nl_encoder_new");
    ASSERT_FAILS(nl_line_scanner_new(NL_FORMAT_NLB, NL_FRACTION_DECIMAL), NULL, "nl_line_scanner_new");
    ASSERT_FAILS(nl_url_parse(NULL), NULL, "nl_url_parse");
    ASSERT_FAILS(nl_filter_parse(NULL), NULL, "nl_filter_parse");
    assert_int_equal(out.size, 0);
    nl_record_set_time(NULL, 1); /* a record is NULL if memory ran out */
    nl_record_add_string(NULL, "A", "b", 1);
    nl_record_clear(NULL);
    nl_record_free(record);
}

static void readers(void **state)
{
    (void)state;
    nl_decoder *decoder = nl_decoder_new(NULL);
    nl_decoder_finish(decoder);
    nl_decoder_feed(decoder, "DATE=2026\n", 10);
    check_message("nl_decoder_feed");
    nl_decoder_free(decoder);
    ASSERT_FAILS(nl_recover(&(nl_recover_options){.everyone = true}, NULL, NULL), NL_FAILED, "nl_recover");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logging),
        cmocka_unit_test(markers),
        cmocka_unit_test(records),
        cmocka_unit_test(readers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
