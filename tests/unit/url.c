/* URLs: their parts, and invalid URLs. */
#include <netlogger.h>

#include "base/error.h"
#include "transport/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void names_what_it_says(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        nl_scheme scheme;
        const char *host;
        unsigned port;
        const char *path;
    } cases[] = {
        {"-", NL_SCHEME_STDIO, NULL, 0, NULL},
        {"a.log", NL_SCHEME_FILE, NULL, 0, "a.log"},
        {"/tmp/a?b", NL_SCHEME_FILE, NULL, 0, "/tmp/a?b"},
        {"/tmp/a?B=c", NL_SCHEME_FILE, NULL, 0, "/tmp/a?B=c"},
        {"file:/tmp/a%3Fb=c", NL_SCHEME_FILE, NULL, 0, "/tmp/a?b=c"},
        {"./x-netlog", NL_SCHEME_FILE, NULL, 0, "./x-netlog"},
        {"C:colon", NL_SCHEME_FILE, NULL, 0, "C:colon"},
        {"file:///tmp/a%20b", NL_SCHEME_FILE, NULL, 0, "/tmp/a b"},
        {"file:a.log", NL_SCHEME_FILE, NULL, 0, "a.log"},
        {"FILE:/a", NL_SCHEME_FILE, NULL, 0, "/a"},
        {"x-netlog://dolly", NL_SCHEME_NETLOG, "dolly", 14830, NULL},
        {"x-netlog://dolly.lbl.gov:5/", NL_SCHEME_NETLOG, "dolly.lbl.gov", 5, NULL},
        {"x-netlog://[::1]:65535", NL_SCHEME_NETLOG, "::1", 65535, NULL},
        {"x-netlog://[fe80::1%25eth0]", NL_SCHEME_NETLOG, "fe80::1%eth0", 14830, NULL},
        {"x-netlog://127.0.0.1:0", NL_SCHEME_NETLOG, "127.0.0.1", 0, NULL},
        {"x-netlogs://dolly?ca=/a", NL_SCHEME_NETLOGS, "dolly", 14830, NULL},
        {"x-netlog+udp://dolly:7", NL_SCHEME_UDP, "dolly", 7, NULL},
        {"udp://dolly", NL_SCHEME_UDP, "dolly", 14830, NULL},
        {"inherited:tls?cert=/a", NL_SCHEME_INHERITED, NULL, 0, "tls"},
        {"unix:/run/s", NL_SCHEME_UNIX, NULL, 0, "/run/s"},
        {"unix:///run/s", NL_SCHEME_UNIX, NULL, 0, "/run/s"},
        {"x-syslog://", NL_SCHEME_SYSLOG, NULL, 0, ""},
        {"x-syslog://local3", NL_SCHEME_SYSLOG, NULL, 0, "local3"},
        {"nats://h/S", NL_SCHEME_NATS, "h", 0, "S"},
        {"nats://h:1,[::1]:2/S?a=b", NL_SCHEME_NATS, "h:1,[::1]:2", 0, "S"},
        {"nats://u:p%40:/@h/S?at=@/", NL_SCHEME_NATS, "h", 0, "S"},
        {"otlp://h", NL_SCHEME_OTLP, "h", 4317, NULL},
        {"otlp+http://h", NL_SCHEME_OTLP_HTTP, "h", 4318, NULL},
        {"otlp+http://[::1]:5?cert=/a", NL_SCHEME_OTLP_HTTP, "::1", 5, NULL},
        {"syslog+udp://h", NL_SCHEME_SYSLOG_UDP, "h", 514, NULL},
        {"syslog+tcp://[::]:7", NL_SCHEME_SYSLOG_TCP, "::", 7, NULL},
        {"syslog+tls://h?cert=/a", NL_SCHEME_SYSLOG_TLS, "h", 6514, NULL},
        {"memory:m", NL_SCHEME_MEMORY, NULL, 0, "m"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nl_url *url = nl_url_parse(cases[i].text);
        assert_non_null(url);
        assert_int_equal(url->scheme, cases[i].scheme);
        assert_string_equal(url->text, cases[i].text);
        assert_int_equal(url->port, cases[i].port);
        assert_true((url->host == NULL) == (cases[i].host == NULL));
        if (url->host != NULL)
            assert_string_equal(url->host, cases[i].host);
        assert_true((url->path == NULL) == (cases[i].path == NULL));
        if (url->path != NULL)
            assert_string_equal(url->path, cases[i].path);
        nl_url_free(url);
    }
}

static void options_are_decoded(void **state)
{
    (void)state;
    nl_url *url = nl_url_parse("x-netlog://h?buffer=64k&name=a%26b%3Dc&empty=&");
    assert_non_null(url);
    assert_int_equal(url->option_count, 3);
    assert_string_equal(nl_url_option_value(url, "buffer"), "64k");
    assert_string_equal(nl_url_option_value(url, "name"), "a&b=c");
    assert_string_equal(nl_url_option_value(url, "empty"), "");
    assert_null(nl_url_option_value(url, "Buffer"));
    nl_url_free(url);
}

static void secrets_are_options(void **state)
{
    (void)state;
    nl_url *url = nl_url_parse("nats://u%3A:p%40s@h,i/S?x=1");
    assert_non_null(url);
    assert_string_equal(nl_url_option_value(url, "user"), "u:");
    assert_string_equal(nl_url_option_value(url, "password"), "p@s");
    assert_string_equal(nl_url_option_value(url, "x"), "1");
    nl_url_free(url);
}

static void refuses_with_a_reason(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "x-netlog://",
        "nats:h/S",
        "nats://h",
        "nats://h/",
        "nats:///S",
        "nats:///a/S",
        "nats://u@h/S",
        "nats://u:%00@h/S",
        "x-netlog:h",
        "x-netlog://h:",
        "x-netlog://h:99999",
        "x-netlog://h:1x",
        "x-netlog://h:-1",
        "x-netlog://[::1",
        "x-netlog://[::1]x",
        "x-netlog://a b",
        "http://h",
        "ftp://x/y",
        "file:",
        "/tmp/there-is-none?where=LVL",
        "file://host/path",
        "file:a%",
        "file:a%0",
        "file:a%zz",
        "file:a%00b",
        "unix:",
        "memory:",
        "x-netlog://h?novalue",
        "x-netlog://h?=x",
        "x-netlog://u@h",
        "x-netlog://h:999999999999999999999999",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        nl_error_clear();
        assert_null(nl_url_parse(bad[i]));
        assert_string_not_equal(nl_error_message(), "");
    }
}

/* If a URL lacks its host, name or path, the message contains the form of the URL. */
static void an_incomplete_url_is_rejected_with_its_form(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } incomplete[] = {
        {"x-netlog://", "URL \"x-netlog://\": missing host; use x-netlog://HOST"},
        {"file:", "URL \"file:\": missing file; use file:PATH"},
        {"unix:?a=b", "URL \"unix:?a=b\": missing socket; use unix:PATH"},
        {"memory:", "URL \"memory:\": missing name; use memory:NAME"},
        {"nats:///S", "URL \"nats:///S\": missing host; use nats://HOST/STREAM"},
    };
    for (size_t i = 0; i < sizeof incomplete / sizeof *incomplete; i++) {
        assert_null(nl_url_parse(incomplete[i].text));
        assert_string_equal(nl_error_message(), incomplete[i].message);
    }
}

static void addresses_without_a_scheme_are_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *text, *url;
    } addresses[] = {
        {"localhost", "x-netlog://localhost;"},     {"LOCALHOST", "x-netlog://LOCALHOST;"},
        {"127.0.0.1", "x-netlog://127.0.0.1;"},     {"::1", "x-netlog://[::1];"},
        {"[::1]:14830", "x-netlog://[::1]:14830;"}, {"dolly.lbl.gov:5000", "x-netlog://dolly.lbl.gov:5000;"},
    };
    static const char *const files[] = {"./localhost", "a.log", "localhost.log", "run-T10:30",
                                        "1.2",         "dolly", "a b:5000"};
    char name[] = "/tmp/netlogger-url.XXXXXX", own[256], message[300];
    assert_non_null(mkdtemp(name));
    assert_int_equal(chdir(name), 0);
    setenv("NETLOGGER_QUIET", "1", 1);
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        assert_null(nl_url_parse(addresses[i].text));
        assert_non_null(strstr(nl_error_message(), addresses[i].url));
        assert_int_equal(nl_error_get_code(), NL_ERROR_NOT_FOUND);
        nl_error_clear();
        assert_null(nl_open("p", addresses[i].text));
        assert_non_null(strstr(nl_error_message(), addresses[i].url));
    }
    assert_int_equal(gethostname(own, sizeof own), 0);
    assert_null(nl_url_parse(own));
    snprintf(message, sizeof message, "for a new file, write ./%s", own);
    assert_non_null(strstr(nl_error_message(), message));
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        nl_url *url = nl_url_parse(files[i]);
        assert_non_null(url);
        assert_int_equal(url->scheme, NL_SCHEME_FILE);
        nl_url_free(url);
    }
    nl_log *log = nl_open("p", "./localhost"); /* without "./", nl_open would reject the name of this host */
    assert_non_null(log);
    assert_int_equal(nl_close(log), NL_OK);
    nl_url *url = nl_url_parse("localhost");
    assert_non_null(url);
    nl_url_free(url);
    assert_int_equal(unlink("localhost"), 0);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(name), 0);
}

/* Random bytes cause no crash, and the text of an accepted URL is accepted again. */
static void survives_garbage(void **state)
{
    (void)state;
    static const char alphabet[] = "x-netlog://[]:%?&=aF0file:unix:memory:\xff";
    srand(1);
    for (int i = 0; i < 200000; i++) {
        char text[40];
        size_t size = (size_t)rand() % (sizeof text - 1);
        for (size_t j = 0; j < size; j++)
            text[j] = alphabet[(size_t)rand() % (sizeof alphabet - 1)];
        text[size] = '\0';
        nl_url *url = nl_url_parse(text);
        if (url == NULL)
            continue;
        nl_url *again = nl_url_parse(url->text);
        assert_non_null(again);
        assert_int_equal(again->scheme, url->scheme);
        nl_url_free(again);
        nl_url_free(url);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_what_it_says),
        cmocka_unit_test(options_are_decoded),
        cmocka_unit_test(secrets_are_options),
        cmocka_unit_test(refuses_with_a_reason),
        cmocka_unit_test(an_incomplete_url_is_rejected_with_its_form),
        cmocka_unit_test(survives_garbage),
        cmocka_unit_test(addresses_without_a_scheme_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
