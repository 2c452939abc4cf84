/* The protocols that nlkernel trace recognizes: requests, replies, secrets and hostile bytes. */
#include "config.h"

#include "base/error.h"
#include "trace/description.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static protocol_bytes bytes_of(const char *text, size_t size)
{
    return (protocol_bytes){.data = text, .captured = size, .size = size};
}

static protocol_request expect_request(const char *text, size_t size, const protocol *found, const char *verb,
                                       const char *object)
{
    protocol_request request;
    protocol_bytes bytes = bytes_of(text, size);
    assert_ptr_equal(protocol_find(&bytes, &request), found);
    assert_string_equal(request.verb, verb);
    assert_string_equal(request.object, object);
    return request;
}

#define REQUEST(text, found, verb, object) expect_request(text, sizeof text - 1, found, verb, object)

static void test_http_requests(void **state)
{
    (void)state;
    REQUEST("GET / HTTP/1.1\r\nHost: x\r\n\r\n", &protocol_http, "GET", "/");
    REQUEST("POST /a/b?token=secret HTTP/1.1\r\n\r\n", &protocol_http, "POST", "/a/b");
    REQUEST("GET /a;jsessionid=secret HTTP/1.1\r\n\r\n", &protocol_http, "GET", "/a");
    REQUEST("GET /a#secret HTTP/1.1\r\n\r\n", &protocol_http, "GET", "/a");
    REQUEST("GET http://user:secret@host/a HTTP/1.1\r\n\r\n", &protocol_http, "GET", "/a");
    REQUEST("GET http://user:secret@host HTTP/1.1\r\n\r\n", &protocol_http, "GET", "");
    REQUEST("CONNECT user:secret@host:1 HTTP/1.1\r\n\r\n", &protocol_http, "CONNECT", "");
    REQUEST("GET /cut", &protocol_http, "GET", "/cut");
    REQUEST("GET / SMTP/1.1\r\n", NULL, "", "");
    REQUEST("GET \r\n", NULL, "", "");
    REQUEST("HELO host\r\n", NULL, "", "");
    REQUEST("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", NULL, "", "");
    REQUEST("", NULL, "", "");
}

static void test_traceparent(void **state)
{
    (void)state;
    protocol_request r =
        REQUEST("GET / HTTP/1.1\r\nHost: x\r\nTraceParent:  00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 "
                "\r\nA: b\r\n\r\n",
                &protocol_http, "GET", "/");
    assert_string_equal(r.trace_id, "0af7651916cd43dd8448eb211c80319c");
    assert_string_equal(r.parent_id, "b7ad6b7169203331");
    r = REQUEST("GET / HTTP/1.1\r\ntraceparent: 00-00000000000000000000000000000000-b7ad6b7169203331-01\r\n\r\n",
                &protocol_http, "GET", "/");
    assert_string_equal(r.trace_id, "");
    r = REQUEST("POST / HTTP/1.1\r\n\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n",
                &protocol_http, "POST", "/"); /* the traceparent is in the body, so it is not a header */
    assert_string_equal(r.trace_id, "");
}

static void test_redis_requests(void **state)
{
    (void)state;
    assert_false(REQUEST("*2\r\n$3\r\nget\r\n$6\r\nsecret\r\n", &protocol_redis, "GET", "").several);
    assert_true(REQUEST("*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n", &protocol_redis, "PING", "").several);
    assert_true(REQUEST("*2\r\n$3\r\nSET\r\n$9999\r\nsec", &protocol_redis, "SET", "").several);
    REQUEST("*1\r\n$5\r\nhunt2\r\n", NULL, "", ""); /* no command has digits */
    REQUEST("*1\r\n$999999999999999999\r\nGET", NULL, "", "");
    REQUEST("*0\r\n", NULL, "", "");
    REQUEST("*-1\r\n", NULL, "", "");
    REQUEST("*1\r\n$", NULL, "", "");
    REQUEST("*999999999999\r\n$3\r\nGET\r\n", &protocol_redis, "GET", "");
}

static void test_memcached_requests(void **state)
{
    (void)state;
    assert_false(REQUEST("get secret\r\n", &protocol_memcached, "get", "").several);
    assert_false(REQUEST("get one two three four five six seven\r\n", &protocol_memcached, "get", "").several);
    assert_true(REQUEST("get a\r\nget b\r\n", &protocol_memcached, "get", "").several);
    assert_false(REQUEST("set secret 0 60 3\r\nabc\r\n", &protocol_memcached, "set", "").several);
    assert_true(REQUEST("set secret 0 60 3\r\nabc\r\nget a\r\n", &protocol_memcached, "set", "").several);
    assert_false(REQUEST("set secret 0 60 3\r\n", &protocol_memcached, "set", "").silent); /* the value follows */
    assert_true(REQUEST("set secret 0 60 3 noreply\r\nabc\r\n", &protocol_memcached, "set", "").silent);
    assert_false(REQUEST("get noreply\r\n", &protocol_memcached, "get", "").silent);
    assert_false(REQUEST("delete noreply\r\n", &protocol_memcached, "delete", "").silent);
    REQUEST("cas secret 0 60 3 17\r\nabc\r\n", &protocol_memcached, "cas", "");
    REQUEST("incr secret 1\r\n", &protocol_memcached, "incr", "");
    REQUEST("version\r\n", &protocol_memcached, "version", "");
    REQUEST("get\r\n", NULL, "", "");
    REQUEST("get a", NULL, "", "");
    REQUEST("get a\n", NULL, "", "");
    REQUEST("get  a\r\n", NULL, "", "");
    REQUEST("get a\1\r\n", NULL, "", "");
    REQUEST("getter a\r\n", NULL, "", "");
    REQUEST("set a 0 60\r\n", NULL, "", "");
    REQUEST("set a 0 60 -1\r\n", NULL, "", "");
    REQUEST("set a 0 60 99999999999999999999\r\n", NULL, "", "");
    REQUEST("delete a b\r\n", NULL, "", "");
    protocol_request request;
    protocol_bytes cut = {.data = "get one tw", .captured = 10, .size = 4000};
    assert_ptr_equal(protocol_find(&cut, &request), &protocol_memcached);
    assert_true(request.several);
}

static protocol_progress memcached_reply(const char *verb, const char *text, const char *status, bool failed)
{
    protocol_request request = {0};
    protocol_reply reply = {0};
    protocol_bytes bytes = bytes_of(text, strlen(text));
    protocol_copy_name(request.verb, sizeof request.verb, verb, strlen(verb));
    protocol_progress progress = protocol_memcached.read_reply(&bytes, &request, &reply);
    assert_string_equal(reply.status, status);
    assert_int_equal(reply.failed, failed);
    return progress;
}

static void test_memcached_replies(void **state)
{
    (void)state;
    assert_int_equal(memcached_reply("get", "END\r\n", "", false), PROTOCOL_COMPLETE);
    assert_int_equal(memcached_reply("get", "VALUE k 0 3\r\nabc\r\nEND\r\n", "", false), PROTOCOL_COMPLETE);
    assert_int_equal(memcached_reply("get", "VALUE k 0 9\r\nabc\r\n", "", false), PROTOCOL_UNKNOWN);
    assert_int_equal(memcached_reply("gets", "SERVER_ERROR out of secret\r\n", "SERVER_ERROR", true),
                     PROTOCOL_COMPLETE);
    assert_int_equal(memcached_reply("set", "STORED\r\n", "STORED", false), PROTOCOL_COMPLETE);
    assert_int_equal(memcached_reply("set", "STOR", "", false), PROTOCOL_UNKNOWN);
    assert_int_equal(memcached_reply("delete", "NOT_FOUND\r\n", "NOT_FOUND", false), PROTOCOL_COMPLETE);
    assert_int_equal(memcached_reply("incr", "4711\r\n", "", false), PROTOCOL_COMPLETE);
    assert_int_equal(memcached_reply("version", "VERSION 1.6.18\r\n", "", false), PROTOCOL_COMPLETE);

    protocol_request request = {.verb = "get"};
    protocol_reply reply = {0};
    protocol_bytes first = {.data = "VALUE k 0 5000\r\n", .captured = 16, .size = 4096, .tail = "xxxx", .tail_size = 4};
    protocol_bytes last = {.data = "xxxx", .captured = 4, .size = 927, .tail = "\r\nEND\r\n", .tail_size = 7};
    assert_int_equal(protocol_memcached.read_reply(&first, &request, &reply), PROTOCOL_UNKNOWN);
    assert_int_equal(protocol_memcached.read_reply(&last, &request, &reply), PROTOCOL_COMPLETE);
}

static void expect_statement(const char *statement, const char *verb, const char *object)
{
    char message[512] = "Q";
    size_t length = strlen(statement) + 5;
    message[3] = (char)(length >> 8);
    message[4] = (char)length;
    memcpy(message + 5, statement, strlen(statement) + 1);
    expect_request(message, length + 1, &protocol_postgresql, verb, object);
}

static void test_postgresql_requests(void **state)
{
    (void)state;
    expect_statement("SELECT a, b FROM orders WHERE c = 'secret'", "SELECT", "orders");
    expect_statement("  select count(*) from s.orders", "SELECT", "s.orders");
    expect_statement("/* secret */ -- secret\nSELECT pg_sleep(0.2)", "SELECT", "pg_sleep");
    expect_statement("SELECT 'it''s FROM secret', x FROM t", "SELECT", "t");
    expect_statement("SELECT E'it\\'s FROM secret', x FROM t", "SELECT", "t");
    expect_statement("SELECT $$ FROM secret $$, x FROM t", "SELECT", "t");
    expect_statement("SELECT $tag$ FROM secret $tag$, $1 FROM t", "SELECT", "t");
    expect_statement("SELECT $tag$ FROM secret", "SELECT", "");
    expect_statement("SELECT e'it\\'s FROM secret', x FROM t", "SELECT", "t");
    expect_statement("SELECT x LIKE'\\' FROM t WHERE y = ' FROM secret'", "SELECT", "t");
    expect_statement("INSERT INTO \"my orders\" VALUES (1)", "INSERT", "myorders");
    expect_statement("SELECT \"\xd0\xb0\" FROM t", "SELECT", "t"); /* names that consist of Cyrillic letters */
    expect_statement("SELECT \"\", \"from\", x FROM t", "SELECT", "t");
    expect_statement("SELECT x FROM \"\xd0\xb0\" WHERE y = 1", "SELECT", "");
    expect_statement("SELECT x FROM \xd0\xb0 WHERE y = 1", "SELECT", "");
    expect_statement("SELECT x FROM \"\xd0\xb0 orders\" WHERE y = 1", "SELECT", "orders");
    expect_statement("UPDATE ONLY orders SET password = 'secret'", "UPDATE", "orders");
    expect_statement("SELECT x FROM \"shop\".\"orders\" WHERE y = 1", "SELECT", "shop.orders");
    expect_statement("SELECT x FROM shop.\"orders\" WHERE y = 1", "SELECT", "shop.orders");
    expect_statement("SELECT x FROM \"or\"\"ders\"", "SELECT", "orders");
    expect_statement("SELECT a FROM (SELECT b FROM orders) AS c", "SELECT", "orders");
    expect_statement("SELECT a FROM (VALUES (1)) AS c JOIN orders USING (a)", "SELECT", "orders");
    expect_statement("COPY (SELECT a FROM orders) TO STDOUT", "COPY", "orders");
    expect_statement("SELECT EXTRACT(epoch FROM created) FROM orders", "SELECT", "orders");
    expect_statement("SELECT a IS DISTINCT FROM b, c IS NOT DISTINCT FROM d FROM orders", "SELECT", "orders");
    expect_statement("SELECT DISTINCT a FROM orders", "SELECT", "orders");
    expect_statement("SELECT trim(both ' ' from lower(name)), x FROM orders", "SELECT", "orders");
    expect_statement("SELECT /* a /* b */ FROM secret */ x FROM orders", "SELECT", "orders");
    expect_statement("DELETE FROM ONLY orders", "DELETE", "orders");
    expect_statement("COPY orders FROM STDIN", "COPY", "orders");
    expect_statement("SET password TO secret", "SET", "");
    expect_statement("BEGIN", "BEGIN", "");
    expect_statement("hunter2", "", "");
    expect_statement("", "", "");
    REQUEST("P\0\0\0\x1dname\0SELECT x FROM orders\0\0\0", &protocol_postgresql, "SELECT", "orders");
    REQUEST("B\0\0\0\x0c\0\0\0\0\0\0\0\0", &protocol_postgresql, "execute", "");
    assert_true(REQUEST("X\0\0\0\4", &protocol_postgresql, "terminate", "").silent);
    REQUEST("p\0\0\0\x0bsecret\0", &protocol_postgresql, "authenticate", "");
    REQUEST("\0\0\0\x8\4\xd2\x16\x2f", &protocol_postgresql, "negotiate", "");
    REQUEST("\0\0\0\x9\0\3\0\0\0", &protocol_postgresql, "startup", "");
    REQUEST("Q\xff\xff\xff\xffSELECT", NULL, "", "");
    REQUEST("Q\0\0\0\3", NULL, "", "");
    REQUEST("Q\0\0", NULL, "", "");
}

/* Checks how a packet of MySQL is read. */
static protocol_request expect_mysql_request(int sequence, int command, const char *text, const char *verb,
                                             const char *object)
{
    char packet[512];
    size_t size = strlen(text) + 1;
    packet[0] = (char)size;
    packet[1] = (char)(size >> 8);
    packet[2] = 0;
    packet[3] = (char)sequence;
    packet[4] = (char)command;
    memcpy(packet + 5, text, size - 1);
    return expect_request(packet, size + 4, *verb != '\0' ? &protocol_mysql : NULL, verb, object);
}

static void test_mysql_requests(void **state)
{
    (void)state;
    expect_mysql_request(0, 3, "SELECT a FROM `my orders` WHERE b = \"secret FROM x\"", "SELECT", "myorders");
    expect_mysql_request(0, 3, "# secret\nselect 'it\\'s FROM secret', x from shop.orders", "SELECT", "shop.orders");
    expect_mysql_request(0, 3, "SELECT a FROM `shop`.`my orders` b", "SELECT", "shop.myorders");
    expect_mysql_request(0, 3, "SELECT a FROM `shop`.orders b", "SELECT", "shop.orders");
    expect_mysql_request(0, 3, "SELECT 5--1 FROM orders", "SELECT", "orders");
    expect_mysql_request(0, 3, "SELECT 5 -- FROM secret\n FROM orders --", "SELECT", "orders");
    expect_mysql_request(0, 3, "SELECT /* /* */ a FROM orders", "SELECT", "orders");
    expect_mysql_request(0, 3, "SELECT a INTO OUTFILE 'secret' FROM orders", "SELECT", "orders");
    expect_mysql_request(0, 3, "UPDATE LOW_PRIORITY orders SET a = 1", "UPDATE", "orders");
    expect_mysql_request(0, 3, "/* secret */ INSERT IGNORE INTO orders VALUES (1)", "INSERT", "orders");
    expect_mysql_request(0, 3, "INSERT orders VALUES (1)", "INSERT", "orders");
    expect_mysql_request(0, 3, "REPLACE DELAYED orders SELECT a FROM b", "REPLACE", "orders");
    expect_mysql_request(0, 3, "REPLACE INTO orders VALUES (1)", "REPLACE", "orders");
    expect_mysql_request(0, 3, "SELECT SLEEP(1)", "SELECT", "SLEEP");
    expect_mysql_request(0, 3, "SET PASSWORD = secret", "SET", "");
    expect_mysql_request(0, 3, "\1\2\3", "", "");
    expect_mysql_request(0, 0x16, "UPDATE orders SET a = ?", "UPDATE", "orders");
    expect_mysql_request(0, 0x17, "\1\1\1\1secret", "execute", "");
    expect_mysql_request(0, 2, "secret", "use", "");
    assert_true(expect_mysql_request(0, 1, "", "quit", "").silent);
    assert_true(expect_mysql_request(0, 0x19, "\1\1\1\1", "close", "").silent);
    expect_mysql_request(1, 3, "SELECT 1", "", "");
    expect_mysql_request(0, 0x40, "SELECT 1", "", "");
    REQUEST("\5\0\0\0\x19\1\0\0\0\1\0\0\0\x0e", &protocol_mysql, "ping", "");
    REQUEST("\5\0\0\0\x19\1\0\0\0\5\0\0\0\x19\2\0\0\0\1\0\0\0\x0e", &protocol_mysql, "ping", "");
    /*
     * These messages follow the end of a statement: an unknown command, the beginning of a command, and a command
     * without captured bytes.
     */
    assert_false(REQUEST("\5\0\0\0\x19\1\0\0\0\1\0\0\0\x40", &protocol_mysql, "", "").silent);
    assert_false(REQUEST("\5\0\0\0\x19\1\0\0\0\1\0\0", &protocol_mysql, "", "").silent);
    protocol_request request;
    protocol_bytes cut = {.data = "\5\0\0\0\x19\1\0\0\0", .captured = 9, .size = 14};
    assert_ptr_equal(protocol_find(&cut, &request), &protocol_mysql);
    assert_false(request.silent);
    char many[1024];
    for (size_t i = 0; i < sizeof many; i++)
        many[i] = "\5\0\0\0\x19\1\0\0\0"[i % 9];
    cut = (protocol_bytes){.data = many, .captured = sizeof many, .size = 1 << 20};
    assert_ptr_equal(protocol_find(&cut, &request), &protocol_mysql);
    REQUEST("\1\0\0\0\1\1\0\0\0\x0e", NULL, "", ""); /* nothing follows the end of a connection */
    REQUEST("\x09\0\0\0\3SELECT", NULL, "", "");     /* shorter than its length */
    REQUEST("\xff\xff\xff\0\3SELECT", NULL, "", "");
    REQUEST("\0\0\0\0\3SELECT", NULL, "", "");
}

static void test_dns_requests(void **state)
{
    (void)state;
    REQUEST("\0\x1d\x12\x34\1\0\0\1\0\0\0\0\0\0\3Www\7example\0\0\1\0\1", &protocol_dns, "A", "www.example");
    REQUEST("\0\x11\x12\x34\1\0\0\1\0\0\0\0\0\0\0\0\2\0\1", &protocol_dns, "NS", ".");
    REQUEST("\0\x12\x12\x34\1\0\0\1\0\0\0\0\0\0\0\0\2\0\1", NULL, "", "");
    REQUEST("\0\x11\x12\x34\x81\0\0\1\0\0\0\0\0\0\0\0\2\0\1", NULL, "", ""); /* a reply */
    REQUEST("\0\x11\x12\x34\1\0\0\1\0\0\0\0\0\0\x3f\0\2\0\1", NULL, "", "");
    REQUEST("\0\x11\x12\x34\1\0\0\1\0\0\0\0\0\0\xc0\x0c\2\0\1", NULL, "", ""); /* a pointer */
    uint16_t id;
    uint32_t question;
    bool is_reply;
    static const char name[] = "\x12\x34\1\0\0\1\0\0\0\0\0\0\6a?#b;'\0\0\x1c\0\1";
    protocol_bytes datagram = bytes_of(name, sizeof name - 1);
    protocol_request request = {0};
    assert_true(protocol_dns_identify(&datagram, &id, &question, &is_reply));
    assert_int_equal(id, 0x1234);
    assert_false(is_reply);
    assert_true(protocol_dns_datagram.read_request(&datagram, &request));
    assert_string_equal(request.verb, "AAAA");
    assert_string_equal(request.object, "a__b__");
    for (size_t size = 0; size < sizeof name - 1; size++) {
        datagram = bytes_of(name, size);
        assert_false(protocol_dns_identify(&datagram, &id, &question, &is_reply));
    }
}

static void test_tls_requests(void **state)
{
    (void)state;
    REQUEST("\x16\3\1\2\0\1", &protocol_tls, "", "");
    REQUEST("\x17\3\3", NULL, "", "");
}

/* Reads a reply that arrives in one call. */
static protocol_progress read_one(const protocol *p, const char *verb, const char *text, size_t size,
                                  protocol_reply *reply)
{
    protocol_request request = {0};
    protocol_bytes bytes = bytes_of(text, size);
    memcpy(request.verb, verb, strlen(verb));
    memset(reply, 0, sizeof *reply);
    return p->read_reply(&bytes, &request, reply);
}

#define REPLY(p, verb, text) read_one(p, verb, text, sizeof text - 1, &reply)

static void test_http_replies(void **state)
{
    (void)state;
    protocol_reply reply;
    protocol_request request = {.verb = "GET"};
    assert_int_equal(REPLY(&protocol_http, "GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), PROTOCOL_COMPLETE);
    assert_string_equal(reply.status, "200");
    assert_false(reply.failed);
    assert_int_equal(REPLY(&protocol_http, "GET", "HTTP/1.0 503 No\r\n\r\nx"), PROTOCOL_UNKNOWN);
    assert_true(reply.failed);
    assert_int_equal(REPLY(&protocol_http, "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), PROTOCOL_COMPLETE);
    assert_int_equal(REPLY(&protocol_http, "GET", "HTTP/1.1 304 x\r\n\r\n"), PROTOCOL_COMPLETE);
    assert_int_equal(REPLY(&protocol_http, "GET", "HTTP/1.1 100 Continue\r\n\r\n"), PROTOCOL_INTERIM);
    assert_int_equal(REPLY(&protocol_http, "GET", "HTTP/1.1 2"), PROTOCOL_UNKNOWN);
    assert_int_equal(REPLY(&protocol_http, "GET", ""), PROTOCOL_UNKNOWN);
    assert_int_equal(
        REPLY(&protocol_http, "GET", "HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
        PROTOCOL_COMPLETE);
    assert_int_equal(REPLY(&protocol_http, "GET", "HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"),
                     PROTOCOL_MORE);
    protocol_bytes last = {.data = "", .size = 9000, .tail = "x\r\n0\r\n\r\n", .tail_size = 8};
    assert_int_equal(protocol_http.read_reply(&last, &request, &reply), PROTOCOL_COMPLETE);
    assert_int_equal(REPLY(&protocol_http, "GET", "HTTP/1.1 200 OK\r\nContent-Length: 9002\r\n\r\nok"), PROTOCOL_MORE);
    assert_int_equal(protocol_http.read_reply(&last, &request, &reply), PROTOCOL_COMPLETE);
}

static void test_redis_replies(void **state)
{
    (void)state;
    protocol_reply reply;
    protocol_request request = {.verb = "GET"};
    assert_int_equal(REPLY(&protocol_redis, "SET", "+OK\r\n"), PROTOCOL_COMPLETE);
    assert_int_equal(REPLY(&protocol_redis, "GET", "$-1\r\n"), PROTOCOL_COMPLETE);
    assert_int_equal(REPLY(&protocol_redis, "GET", "$2\r\nok\r\n"), PROTOCOL_COMPLETE);
    assert_int_equal(REPLY(&protocol_redis, "KEYS", "*1\r\n$2\r\nok\r\n"), PROTOCOL_UNKNOWN);
    assert_int_equal(REPLY(&protocol_redis, "GET", "-WRONGTYPE the key secret\r\n"), PROTOCOL_COMPLETE);
    assert_string_equal(reply.status, "WRONGTYPE");
    assert_true(reply.failed);
    assert_int_equal(REPLY(&protocol_redis, "GET", "$5000\r\nx"), PROTOCOL_MORE);
    protocol_bytes rest = {.data = "", .size = 5001};
    assert_int_equal(protocol_redis.read_reply(&rest, &request, &reply), PROTOCOL_COMPLETE);
    assert_int_equal(REPLY(&protocol_redis, "GET", "\0"), PROTOCOL_UNKNOWN);
}

static void test_mysql_replies(void **state)
{
    (void)state;
    protocol_reply reply;
    assert_int_equal(REPLY(&protocol_mysql, "INSERT", "\7\0\0\1\0\1\0\2\0\0\0"), PROTOCOL_COMPLETE);
    assert_int_equal(REPLY(&protocol_mysql, "SELECT", "\x18\0\0\1\xff\x7a\x04#42S02secret x secret"),
                     PROTOCOL_COMPLETE);
    assert_string_equal(reply.status, "1146");
    assert_true(reply.failed);
    assert_int_equal(REPLY(&protocol_mysql, "SELECT", "\1\0\0\1\1\2\0\0\2ab"), PROTOCOL_UNKNOWN);
    assert_int_equal(REPLY(&protocol_mysql, "SELECT", "\1\0\0\1\1\2\0\0\2ab\5\0\0\3\xfe\0\0\2\0"), PROTOCOL_COMPLETE);
    assert_int_equal(REPLY(&protocol_mysql, "CALL", "\1\0\0\1\1\2\0\0\2ab\5\0\0\3\xfe\0\0\x0a\0"),
                     PROTOCOL_UNKNOWN); /* more results follow */
    assert_int_equal(REPLY(&protocol_mysql, "SELECT", "\1\0\0\1\1\7\0\0\2\xfe\0\0\2\0\0\0"), PROTOCOL_COMPLETE);
    assert_int_equal(REPLY(&protocol_mysql, "SELECT", "\xff\xff\xff\1\xff\1"), PROTOCOL_UNKNOWN);
    assert_int_equal(REPLY(&protocol_mysql, "SELECT", ""), PROTOCOL_UNKNOWN);
}

static void test_dns_replies(void **state)
{
    (void)state;
    protocol_reply reply;
    protocol_request request = {0};
    assert_int_equal(REPLY(&protocol_dns, "NS", "\0\x11\x12\x34\x81\3\0\1\0\0\0\0\0\0\0\0\2\0\1"), PROTOCOL_COMPLETE);
    assert_string_equal(reply.status, "NXDOMAIN");
    assert_false(reply.failed);
    assert_int_equal(REPLY(&protocol_dns, "NS", "\0"), PROTOCOL_MORE);
    assert_int_equal(REPLY(&protocol_dns, "NS", "\0\x11"), PROTOCOL_MORE);
    assert_int_equal(REPLY(&protocol_dns, "NS", "\0\x11\x12\x34\x81\2\0\1\0\0\0\0\0\0\0\0\2\0"), PROTOCOL_MORE);
    protocol_bytes rest = bytes_of("\1", 1);
    assert_int_equal(protocol_dns.read_reply(&rest, &request, &reply), PROTOCOL_COMPLETE);
    assert_int_equal(REPLY(&protocol_dns_datagram, "NS", "\xff"), PROTOCOL_COMPLETE);
}

static void test_postgresql_replies(void **state)
{
    (void)state;
    protocol_reply reply;
    assert_int_equal(REPLY(&protocol_postgresql, "SELECT", "C\0\0\0\x0dSELECT 1\0Z\0\0\0\5I"), PROTOCOL_COMPLETE);
    assert_false(reply.failed);
    assert_int_equal(REPLY(&protocol_postgresql, "SELECT", "T\0\0\0\6\0\0"), PROTOCOL_MORE);
    assert_int_equal(REPLY(&protocol_postgresql, "SELECT", "E\0\0\0\x1dSERROR\0C42P01\0Msecret x\0\0Z\0\0\0\5E"),
                     PROTOCOL_COMPLETE);
    assert_string_equal(reply.status, "42P01");
    assert_true(reply.failed);
    assert_int_equal(REPLY(&protocol_postgresql, "SELECT",
                           "E\xff\xff\xff\xff"
                           "C"),
                     PROTOCOL_MORE);
    assert_string_equal(reply.status, "");
}

/* ---- protocols that rules files describe ---- */

static const char queue_rules[] = "[protocol queue]\nport = 11300 11301\nframe = line\nrequest = put reserve quit\n"
                                  "request-body = put 4\nsilent = quit\nreply = INSERTED RESERVED 2##\n"
                                  "reply-body = RESERVED 2\nfailed = NOT_FOUND 5##\n";
static const char frame_rules[] =
    "[protocol names]\nport = 53\nframe = length at 0 size 2 big add 2\nrequest-at = 4 2\n"
    "request = 0x0100 query\nreply-at = 4 2\nreply = 0x8180 NOERROR\n"
    "failed = 0x8183 NXDOMAIN\n";

static descriptions *describe(const char *rules)
{
    nl_sections sections = {0};
    descriptions *d = descriptions_new();
    assert_true(nl_sections_parse(&sections, rules, "test.rules", NULL));
    bool ok = descriptions_add(d, &sections);
    nl_sections_free(&sections);
    if (ok)
        return d;
    descriptions_free(d);
    return NULL;
}

static void expect_described(const char *rules, uint16_t port, const char *text, size_t size, const char *verb,
                             bool several, bool silent)
{
    descriptions *d = describe(rules);
    protocol_request request;
    protocol_bytes bytes = bytes_of(text, size);
    const protocol *found = descriptions_find(d, port, 0, &bytes, &request);
    assert_int_equal(found != NULL, verb != NULL);
    assert_string_equal(request.verb, verb != NULL ? verb : "");
    assert_int_equal(request.several, several);
    assert_int_equal(request.silent, silent);
    descriptions_free(d);
}

#define DESCRIBED(rules, port, text, verb, several, silent)                                                            \
    expect_described(rules, port, text, sizeof text - 1, verb, several, silent)

static void test_described_requests(void **state)
{
    (void)state;
    DESCRIBED(queue_rules, 11300, "reserve\r\n", "reserve", false, false);
    DESCRIBED(queue_rules, 11301, "RESERVE\n", "reserve", false, false);
    DESCRIBED(queue_rules, 11302, "reserve\r\n", NULL, false, false);
    DESCRIBED(queue_rules, 11300, "reserve\r\nreserve\r\n", "reserve", true, false);
    DESCRIBED(queue_rules, 11300, "quit\r\n", "quit", false, true);
    DESCRIBED(queue_rules, 11300, "quit\r\nreserve\r\n", "quit", true, false);
    DESCRIBED(queue_rules, 11300, "put 1 2 3 6\r\nsecret\r\n", "put", false, false);
    DESCRIBED(queue_rules, 11300, "put 1 2 3 6\r\nsecret\r\nquit\r\n", "put", true, false);
    DESCRIBED(queue_rules, 11300, "put 1 2 3\r\nsecret\r\n", NULL, false, false);
    DESCRIBED(queue_rules, 11300, "put 1 2 3 99999999999999\r\n", NULL, false, false);
    DESCRIBED(queue_rules, 11300, "put 1 2 3 -1\r\n", NULL, false, false);
    DESCRIBED(queue_rules, 11300, "reserve-with\r\n", NULL, false, false);
    DESCRIBED(queue_rules, 11300, "secret\r\n", NULL, false, false);
    DESCRIBED(queue_rules, 11300, "reserve", NULL, false, false);
    DESCRIBED(queue_rules, 11300, "\r\n", NULL, false, false);
    DESCRIBED(queue_rules, 11300, "", NULL, false, false);
    DESCRIBED(frame_rules, 53, "\0\4ab\1\0", "query", false, false);
    DESCRIBED(frame_rules, 53, "\0\4ab\1\0\0", "query", true, false);
    DESCRIBED(frame_rules, 53, "\0\4ab\2\0", NULL, false, false);
    DESCRIBED(frame_rules, 53, "\0\4ab\1", NULL, false, false);
    DESCRIBED(frame_rules, 53, "\0", NULL, false, false);
    DESCRIBED("[protocol one]\nport = 1\nframe = length at 0 size 1 big add 0\nrequest-at = 1 1\nrequest = 1 stop\n"
              "silent = 1 stop\n",
              1, "\2\1", "stop", false, true);
    DESCRIBED("[protocol huge]\nport = 1\nframe = length at 0 size 8 little add 255\n", 1,
              "\xff\xff\xff\xff\xff\xff\xff\xff", NULL, false, false);
    DESCRIBED("[protocol any]\nport = 1\nframe = length at 0 size 1 little add 1\n", 1, "\2ab", "", false, false);
}

static protocol_progress described_reply(const char *rules, uint16_t port, const char *text, size_t size,
                                         const char *status, bool failed)
{
    descriptions *d = describe(rules);
    protocol_bytes first = bytes_of(port == 53 ? "\0\4ab\1\0" : "reserve\n", port == 53 ? 6 : 8),
                   bytes = bytes_of(text, size);
    protocol_request request;
    protocol_reply reply = {0};
    const protocol *p = descriptions_find(d, port, 0, &first, &request);
    assert_non_null(p);
    protocol_progress progress = description_read_reply(p->description, &bytes, &request, &reply);
    assert_string_equal(reply.status, status);
    assert_int_equal(reply.failed, failed);
    descriptions_free(d);
    return progress;
}

#define DESCRIBED_REPLY(rules, port, text, status, failed)                                                             \
    described_reply(rules, port, text, sizeof text - 1, status, failed)

static void test_described_replies(void **state)
{
    (void)state;
    assert_int_equal(DESCRIBED_REPLY(queue_rules, 11300, "INSERTED 7\r\n", "INSERTED", false), PROTOCOL_COMPLETE);
    assert_int_equal(DESCRIBED_REPLY(queue_rules, 11300, "NOT_FOUND\r\n", "NOT_FOUND", true), PROTOCOL_COMPLETE);
    assert_int_equal(DESCRIBED_REPLY(queue_rules, 11300, "RESERVED 7 6\r\nsecret\r\n", "RESERVED", false),
                     PROTOCOL_COMPLETE);
    assert_int_equal(DESCRIBED_REPLY(queue_rules, 11300, "RESERVED 7 600\r\nsecret", "RESERVED", false), PROTOCOL_MORE);
    assert_int_equal(DESCRIBED_REPLY(queue_rules, 11300, "RESERVED 7 x\r\nsecret", "RESERVED", false),
                     PROTOCOL_UNKNOWN);
    assert_int_equal(DESCRIBED_REPLY(queue_rules, 11300, "550 secret\r\n", "550", true), PROTOCOL_COMPLETE);
    assert_int_equal(DESCRIBED_REPLY(queue_rules, 11300, "250-secret\r\n250 secret\r\n", "250", false),
                     PROTOCOL_UNKNOWN);
    assert_int_equal(DESCRIBED_REPLY(queue_rules, 11300, "secret\r\n", "", false), PROTOCOL_COMPLETE);
    assert_int_equal(DESCRIBED_REPLY(queue_rules, 11300, "INSERTED", "INSERTED", false), PROTOCOL_UNKNOWN);
    assert_int_equal(DESCRIBED_REPLY(queue_rules, 11300, "", "", false), PROTOCOL_UNKNOWN);
    assert_int_equal(DESCRIBED_REPLY(frame_rules, 53, "\0\4ab\x81\x80", "NOERROR", false), PROTOCOL_COMPLETE);
    assert_int_equal(DESCRIBED_REPLY(frame_rules, 53, "\0\5ab\x81\x83", "NXDOMAIN", true), PROTOCOL_MORE);
    assert_int_equal(DESCRIBED_REPLY(frame_rules, 53, "\0", "", false), PROTOCOL_UNKNOWN);
}

static void test_invalid_descriptions(void **state)
{
    static const char *const rules[][2] = {
        {"[rules]\ntitle = x\n", "test.rules: no section [protocol NAME]"},
        {"[protocol a/b]\n", "test.rules:1: [protocol a/b]: invalid name"},
        {"[protocol a]\nport = 1\n", "test.rules:1: [protocol a]: missing frame"},
        {"[protocol a]\nport = 70000\n", "test.rules:2: port: expected port numbers"},
        {"[protocol a]\nport = 1\nframe = line\n", "test.rules:1: [protocol a]: missing request"},
        {"[protocol a]\nframe = line\nrequest = GET\n", "test.rules:1: [protocol a]: missing port"},
        {"[protocol a]\nframe = lines\n",
         "test.rules:2: frame: expected line, or length at OFFSET size SIZE big|little "
         "add BYTES"},
        {"[protocol a]\nrequest = GET\n", "test.rules:2: request: expected frame before this line"},
        {"[protocol a]\nrequest-at = 0 9\n", "test.rules:2: request-at: expected OFFSET SIZE, in bytes"},
        {"[protocol a]\nframe = length at 0 size 1 big add 0\nrequest = GET\n",
         "test.rules:3: request: expected NUMBER NAME"},
        {"[protocol a]\nframe = line\nrequest = aaaaaaaaaaaaaaaaaaaaaaaa\n",
         "test.rules:3: request: expected names of letters, digits, - . _ and #, shorter than 24 characters"},
        {"[protocol a]\nframe = line\nframe = line\n",
         "test.rules:3: frame: expected only one line of this key in a section"},
        {"[protocol a]\nport = 1\nframe = length at 0 size 1 big add 0\nrequest = 1 GET\n",
         "test.rules:1: [protocol a]: missing request-at"},
        {"[protocol a]\nport = 1\nframe = length at 0 size 1 big add 0\nfailed = 1 NO\n",
         "test.rules:1: [protocol a]: missing reply-at"},
        {"[protocol a]\nport = 1\nframe = line\nrequest = GET\nreply-at = 0 1\n",
         "test.rules:1: [protocol a]: request-at and reply-at require frame = length"},
        {"[protocol a]\nframe = length at 0 size 1 big add 0\nrequest = 18446744073709551616 GET\n",
         "test.rules:3: request: expected NUMBER NAME"},
        {"[protocol a]\nverbs = GET\n",
         "test.rules:2: unknown key \"verbs\"; use port, frame, request, request-at, request-body, silent, reply, "
         "reply-at, reply-body or failed"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        assert_null(describe(rules[i][0]));
        assert_string_equal(nl_error_message(), rules[i][1]);
    }
    descriptions_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_http_requests),        cmocka_unit_test(test_traceparent),
        cmocka_unit_test(test_redis_requests),       cmocka_unit_test(test_memcached_requests),
        cmocka_unit_test(test_memcached_replies),    cmocka_unit_test(test_postgresql_requests),
        cmocka_unit_test(test_mysql_requests),       cmocka_unit_test(test_mysql_replies),
        cmocka_unit_test(test_dns_requests),         cmocka_unit_test(test_dns_replies),
        cmocka_unit_test(test_tls_requests),         cmocka_unit_test(test_http_replies),
        cmocka_unit_test(test_redis_replies),        cmocka_unit_test(test_postgresql_replies),
        cmocka_unit_test(test_described_requests),   cmocka_unit_test(test_described_replies),
        cmocka_unit_test(test_invalid_descriptions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
