/* Tests whether a server accepts connections and replies to HTTP requests, and measures the times of both. */
#include "config.h"

#include "sensors/http.h"
#include "sensors/sensor.h"

#include "base/error.h"

#include <stdio.h>

enum { REPLY_MAX = 1 << 20, TIMEOUT_MS = 2000 };

typedef struct server_state {
    char url[SPEC_SIZE_MAX];
    http_place place;
    http_reply reply;
    long timeout_ms;
} server_state;

static bool server_open(void *state, const sensor_spec *spec)
{
    server_state *s = state;
    const char *url = spec_argument(spec, "url");
    if (!http_place_read(url, &s->place))
        return nl_error_false(NL_ERROR_INVALID, "expected url=http://HOST[:PORT]/PATH or url=tcp://HOST:PORT");
    if (!spec_number(spec, "timeout", 1, 60000, TIMEOUT_MS, &s->timeout_ms))
        return false;
    snprintf(s->url, sizeof s->url, "%s", url);
    return true;
}

static bool server_measure(measurement *m)
{
    server_state *s = m->state;
    const http_reply *a = &s->reply;
    bool good = http_get(&s->place, (int)s->timeout_ms, REPLY_MAX, &s->reply);
    nl_record *record = record_begin(m, "ServerStatus");
    add_text(record, "SERVER.URL", s->url);
    nl_record_add_bool(record, "SERVER.UP", good && a->status < 500);
    if (a->connected)
        add_rounded(record, "SERVER.CONNECT.MS", a->connect_ms, 3);
    if (a->status != 0) {
        nl_record_add_int(record, "SERVER.STATUS", a->status);
        add_rounded(record, "SERVER.ANSWER.MS", a->reply_ms, 3);
        nl_record_add_uint(record, "SERVER.SIZE", a->body.size);
    }
    if (!good)
        add_text(record, "SERVER.ERROR", nl_error_message());
    record_end(m);
    return true;
}

static const sensor_field fields[] = {
    {"ServerStatus", "SERVER.URL", "", "URL of the server"},
    {"ServerStatus", "SERVER.UP", "",
     "whether the server replied with a status below 500, or accepted the connection (tcp)"},
    {"ServerStatus", "SERVER.CONNECT.MS", "ms", "time to resolve the name and connect"},
    {"ServerStatus", "SERVER.STATUS", "", "HTTP status"},
    {"ServerStatus", "SERVER.ANSWER.MS", "ms", "time until the end of the reply"},
    {"ServerStatus", "SERVER.SIZE", "bytes", "size of the reply without its header"},
    {"ServerStatus", "SERVER.ERROR", "", "error message"},
    {0},
};

const sensor_kind server_sensor = {
    .name = "server",
    .what = "whether a server accepts connections and HTTP requests",
    .arguments = " url timeout ",
    .arguments_help = "url=http://HOST[:PORT]/PATH or tcp://HOST:PORT (required), timeout=MILLISECONDS (default 2000)",
    .required = "url=http://HOST[:PORT]/PATH",
    .fields = fields,
    .open = server_open,
    .measure = server_measure,
    .state_size = sizeof(server_state)};
