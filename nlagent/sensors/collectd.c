/*
 * What collectd measures, over the socket of its plugin unixsock: LISTVAL says which values there are and of when,
 * GETVAL what one of them is (collectd-unixsock(5)). An identifier HOST/PLUGIN-INSTANCE/TYPE-INSTANCE becomes an event
 * PLUGIN.TYPE, and fields; a value is logged once, with its own time.
 */
#include "config.h"

#include "sensors/sensor.h"

#include "base/error.h"
#include "base/hash_bytes.h"
#include "base/buffer.h"

#include <errno.h>
#include <fnmatch.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define DEFAULT_SOCKET "/run/collectd-unixsock"

enum { TIMEOUT_S = 5, VALUES_MAX = 20000, ANSWER_MAX = 8 << 20, LINE_MAX = 1024, NAME_MAX = 256, PIECE = 4096 };

/* A value that was logged. */
typedef struct seen {
    uint64_t key; /* a hash of its identifier */
    double time;
} seen;

typedef struct collectd_state {
    char socket[sizeof((struct sockaddr_un *)0)->sun_path];
    char match[256]; /* a glob of identifiers without their host; "": all */
    int fd;
    nl_buffer in; /* what was read, from at on not yet looked at */
    size_t at;
    nl_buffer list;
    seen *seen;
    size_t seen_count;
} collectd_state;

static bool collectd_start(void *state, const sensor_spec *spec)
{
    collectd_state *s = state;
    const char *path = spec_argument(spec, "socket"), *match = spec_argument(spec, "match");
    path = path != NULL ? path : DEFAULT_SOCKET;
    if (strlen(path) >= sizeof s->socket)
        return nl_error_false(NL_ERROR_INVALID, "the socket's path is too long");
    memcpy(s->socket, path, strlen(path) + 1);
    snprintf(s->match, sizeof s->match, "%s", match != NULL ? match : "");
    s->fd = -1;
    return true;
}

/* ---- talking ---- */

static bool collectd_connect_to(collectd_state *s)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval timeout = {.tv_sec = TIMEOUT_S};
    memcpy(address.sun_path, s->socket, sizeof s->socket); /* both are of that size */
    s->in.size = s->at = 0;
    s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->fd < 0 || connect(s->fd, (struct sockaddr *)&address, sizeof address) != 0)
        return nl_error_set_errno("connect"), false;
    setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    setsockopt(s->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    return true;
}

static bool collectd_say(collectd_state *s, const char *text)
{
    for (size_t size = strlen(text); size > 0;) {
        ssize_t sent = send(s->fd, text, size, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return nl_error_set_errno("send"), false;
        text += sent > 0 ? sent : 0;
        size -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

/* The next line of the answer, without its end, valid until the next call; NULL on failure. */
static char *read_line(collectd_state *s)
{
    for (;;) {
        char *begin = s->in.data + s->at;
        char *end = s->in.size > s->at ? memchr(begin, '\n', s->in.size - s->at) : NULL;
        if (end != NULL) {
            if (end - begin >= LINE_MAX)
                return nl_error_null(NL_ERROR_PROTOCOL, "it is no collectd: a line is too long");
            *end = '\0';
            s->at += (size_t)(end + 1 - begin);
            return begin;
        }
        if (s->at > 0)
            memmove(s->in.data, begin, s->in.size - s->at);
        s->in.size -= s->at;
        s->at = 0;
        if (s->in.size > LINE_MAX)
            return nl_error_null(NL_ERROR_PROTOCOL, "it is no collectd: a line is too long");
        nl_buffer_reserve(&s->in, PIECE);
        ssize_t got = recv(s->fd, s->in.data + s->in.size, PIECE, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            if (got < 0 && errno != EAGAIN)
                return nl_error_set_errno("read"), NULL;
            return nl_error_null(NL_ERROR_UNREACHABLE,
                                 got == 0 ? "it has closed the connection" : "it does not answer");
        }
        s->in.size += (size_t)got;
    }
}

/* Asks, and reads the first line of the answer: how many follow, below 0 for an error. False on failure. */
static bool collectd_ask(collectd_state *s, const char *request, long *count)
{
    char *line = collectd_say(s, request) ? read_line(s) : NULL, *end;
    if (line == NULL)
        return false;
    *count = strtol(line, &end, 10);
    return (end != line && *count <= VALUES_MAX) ||
           nl_error_false(NL_ERROR_PROTOCOL, "it is no collectd: what it answers is no count");
}

/* ---- values ---- */

/* Whether it was logged before with that time. They mostly come in the same order: *from is where the next one is. */
static bool was_seen(const collectd_state *s, uint64_t key, double time, size_t *from)
{
    for (size_t i = 0; i < s->seen_count; i++) {
        size_t at = (*from + i) % s->seen_count;
        if (s->seen[at].key == key) {
            *from = at + 1;
            return s->seen[at].time == time;
        }
    }
    return false;
}

/* "cpu-0" becomes "cpu" and "0". */
static char *cut_instance(char *part)
{
    char *dash = strchr(part, '-');
    if (dash != NULL)
        *dash++ = '\0';
    return dash;
}

/* A name of a value, "shortterm", in capitals. */
static void add_value(nl_record *record, const char *line, bool *any)
{
    char name[NAME_MAX];
    size_t size = strcspn(line, "=");
    if (line[size] != '=' || size == 0 || size >= sizeof name)
        return;
    for (size_t i = 0; i < size; i++)
        name[i] = (char)toupper((unsigned char)line[i]);
    name[size] = '\0';
    double value = strtod(line + size + 1, NULL);
    if (isfinite(value)) /* what collectd does not know yet is none */
        nl_record_add_double(record, name, value);
    *any = *any || isfinite(value);
}

/* Asks for one value and logs it. False when the connection is of no use any more. */
static bool log_value(sensor_look *look, double time, const char *identifier, uint64_t *count)
{
    collectd_state *s = look->state;
    char request[2 * LINE_MAX + 16] = "GETVAL \"", *to = request + strlen(request), event[LINE_MAX], parts[LINE_MAX];
    for (const char *c = identifier; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            *to++ = '\\';
        *to++ = *c;
    }
    memcpy(to, "\"\n", sizeof "\"\n");
    long values;
    if (!collectd_ask(s, request, &values))
        return false;
    snprintf(parts, sizeof parts, "%s", identifier);
    char *rest = parts, *host = strsep(&rest, "/"), *plugin = strsep(&rest, "/"), *type = rest;
    bool any = false, is_good = plugin != NULL && type != NULL;
    char *instance = is_good ? cut_instance(plugin) : NULL, *type_instance = is_good ? cut_instance(type) : NULL;
    snprintf(event, sizeof event, "%.400s.%.400s", is_good ? plugin : "", is_good ? type : "");
    nl_record *record = look_begin(look, event);
    add_text(record, "COLLECTD.HOST", host);
    if (instance != NULL)
        add_text(record, "PLUGIN.INSTANCE", instance);
    if (type_instance != NULL)
        add_text(record, "TYPE.INSTANCE", type_instance);
    for (; values > 0; values--) {
        const char *line = read_line(s);
        if (line == NULL)
            return false;
        add_value(record, line, &any);
    }
    if (!any || !is_good)
        return true;
    if (time > 0 && time < 9e9)
        nl_record_set_time(record, (int64_t)(time * 1000) * 1000000); /* the value's own, in ms */
    look_end(look);
    ++*count;
    return true;
}

/* Reads which values there are into the list: lines "TIME IDENTIFIER". */
static bool read_list(collectd_state *s)
{
    long count;
    s->list.size = 0;
    if (!collectd_ask(s, "LISTVAL\n", &count))
        return false;
    for (; count > 0 && s->list.size < ANSWER_MAX; count--) {
        const char *line = read_line(s);
        if (line == NULL)
            return false;
        nl_buffer_append(&s->list, line, strlen(line) + 1);
    }
    return count <= 0 || nl_error_false(NL_ERROR_PROTOCOL, "there are too many values");
}

static bool log_values(sensor_look *look, uint64_t *count)
{
    collectd_state *s = look->state;
    seen *now = calloc(VALUES_MAX, sizeof *now);
    size_t now_count = 0, from = 0;
    bool good = now != NULL;
    for (size_t at = 0; good && at < s->list.size; at += strlen(s->list.data + at) + 1) {
        char *identifier;
        double time = strtod(s->list.data + at, &identifier);
        identifier += strspn(identifier, " ");
        const char *slash = strchr(identifier, '/');
        if (slash == NULL || (s->match[0] != '\0' && fnmatch(s->match, slash + 1, 0) != 0))
            continue;
        uint64_t key = hash_bytes(0, identifier, strlen(identifier));
        now[now_count++] = (seen){key, time};
        if (!was_seen(s, key, time, &from))
            good = log_value(look, time, identifier, count);
    }
    if (good) {
        free(s->seen);
        s->seen = now;
        s->seen_count = now_count;
    } else {
        free(now);
    }
    return good;
}

static bool collectd_look(sensor_look *look)
{
    collectd_state *s = look->state;
    uint64_t count = 0;
    bool good = (s->fd >= 0 || collectd_connect_to(s)) && read_list(s) && log_values(look, &count);
    if (!good && s->fd >= 0) {
        close(s->fd);
        s->fd = -1;
    }
    nl_record *record = look_begin(look, "CollectdRead");
    add_text(record, "COLLECTD.SOCKET", s->socket);
    nl_record_add_uint(record, "SAMPLES", count);
    if (!good)
        add_text(record, "COLLECTD.ERROR", nl_error_message());
    look_end(look);
    return true;
}

static const sensor_field fields[] = {
    {"PLUGIN.TYPE", "COLLECTD.HOST", "", "that the value is of, as collectd calls it"},
    {"PLUGIN.TYPE", "PLUGIN.INSTANCE", "", "which of several: eth0, root"},
    {"PLUGIN.TYPE", "TYPE.INSTANCE", "", "which of several: idle, used"},
    {"PLUGIN.TYPE", "VALUE", "", "each value is a field of its own name, in capitals; what is counted up as a rate/s"},
    {"CollectdRead", "COLLECTD.SOCKET", "", "that was read"},
    {"CollectdRead", "SAMPLES", "records", "that are new"},
    {"CollectdRead", "COLLECTD.ERROR", "", "what went wrong"},
    {0},
};

const sensor_kind collectd_sensor = {.name = "collectd",
                                     .what = "what collectd measures, by its plugin unixsock",
                                     .arguments = " socket match ",
                                     .arguments_help = "socket=PATH (default " DEFAULT_SOCKET
                                                       "); match=GLOB: of PLUGIN-INSTANCE/TYPE-INSTANCE, as "
                                                       "interface-*/if_octets",
                                     .fields = fields,
                                     .open = collectd_start,
                                     .look = collectd_look,
                                     .state_size = sizeof(collectd_state)};
