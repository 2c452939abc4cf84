/* Whether a server answers: can one connect, does HTTP answer, and how long that takes. */
#include "config.h"

#include "sensors/http.h"
#include "sensors/sensor.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

enum { ANSWER_MAX = 1 << 20, TIMEOUT_MS = 2000 };

typedef struct server_state {
    char url[SPEC_SIZE_MAX];
    http_place place;
    http_answer answer;
    long timeout_ms;
} server_state;

static bool server_start(void *state, const sensor_spec *spec)
{
    server_state *s = state;
    const char *url = spec_argument(spec, "url");
    if (url == NULL || !http_place_read(url, &s->place))
        return nl_error_false(NL_ERROR_INVALID, "expected url=http://HOST[:PORT]/PATH or url=tcp://HOST:PORT");
    if (!spec_number(spec, "timeout", 1, 60000, TIMEOUT_MS, &s->timeout_ms))
        return false;
    snprintf(s->url, sizeof s->url, "%s", url); /* a part of a specification that was of that size */
    return true;
}

static bool server_look(sensor_look *look)
{
    server_state *s = look->state;
    const http_answer *a = &s->answer;
    bool good = http_get(&s->place, (int)s->timeout_ms, ANSWER_MAX, &s->answer);
    nl_record *record = look_begin(look, "ServerStatus");
    add_text(record, "SERVER.URL", s->url);
    nl_record_add_bool(record, "SERVER.UP", good && a->status < 500);
    if (a->connected)
        add_rounded(record, "SERVER.CONNECT.MS", a->connect_ms, 3);
    if (a->status != 0) {
        nl_record_add_int(record, "SERVER.STATUS", a->status);
        add_rounded(record, "SERVER.ANSWER.MS", a->answer_ms, 3);
        nl_record_add_uint(record, "SERVER.SIZE", a->body.size);
    }
    if (!good)
        add_text(record, "SERVER.ERROR", nl_error_message());
    look_end(look);
    return true;
}

static const sensor_field fields[] = {
    {"ServerStatus", "SERVER.URL", "", "that was asked"},
    {"ServerStatus", "SERVER.UP", "", "whether it answered, and not with an error of its own (500 and up)"},
    {"ServerStatus", "SERVER.CONNECT.MS", "ms", "looking up the host and connecting took"},
    {"ServerStatus", "SERVER.STATUS", "", "of HTTP"},
    {"ServerStatus", "SERVER.ANSWER.MS", "ms", "until the end of the answer"},
    {"ServerStatus", "SERVER.SIZE", "bytes", "of the answer, without its head"},
    {"ServerStatus", "SERVER.ERROR", "", "what went wrong"},
    {0},
};

const sensor_kind server_sensor = {.name = "server",
                                   .what = "whether a server can be connected to, and answers HTTP",
                                   .arguments = " url timeout ",
                                   .arguments_help = "url=http://HOST[:PORT]/PATH or tcp://HOST:PORT, which has to be "
                                                     "said; timeout=MILLISECONDS (default 2000)",
                                   .fields = fields,
                                   .open = server_start,
                                   .look = server_look,
                                   .state_size = sizeof(server_state)};
