/*
 * Reads the values of collectd through the socket of its unixsock plugin. LISTVAL lists identifiers with times, and
 * GETVAL returns one value (collectd-unixsock(5)). The identifier HOST/PLUGIN-INSTANCE/TYPE-INSTANCE becomes the event
 * PLUGIN.TYPE and fields. The sensor logs each value once, with collectd's time.
 */
#include "config.h"

#include "sensors/sensor.h"

#include "base/error.h"
#include "base/hash_bytes.h"
#include "base/memory.h"

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

enum { TIMEOUT_S = 5, VALUES_MAX = 20000, LIST_SIZE_MAX = 8 << 20, LINE_SIZE = 1024, NAME_SIZE = 256 };

/* A logged value. */
typedef struct seen {
    uint64_t key; /* hash of the value's identifier */
    double time;
} seen;

typedef struct collectd_state {
    char socket[sizeof((struct sockaddr_un *)0)->sun_path];
    char match[256]; /* glob for identifiers without their host; "": all identifiers */
    FILE *stream;    /* NULL: not connected */
    char line[LINE_SIZE];
    nl_buffer list;
    seen *seen;
    size_t seen_count;
} collectd_state;

static bool collectd_open(void *state, const sensor_spec *spec)
{
    collectd_state *s = state;
    const char *path = spec_argument(spec, "socket"), *match = spec_argument(spec, "match");
    path = path != NULL ? path : DEFAULT_SOCKET;
    if (strlen(path) >= sizeof s->socket)
        return nl_error_false(NL_ERROR_INVALID, "the path of the socket is too long");
    memcpy(s->socket, path, strlen(path) + 1);
    snprintf(s->match, sizeof s->match, "%s", match != NULL ? match : "");
    return true;
}

/* ---- requests ---- */

static bool collectd_connect(collectd_state *s)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval timeout = {.tv_sec = TIMEOUT_S};
    memcpy(address.sun_path, s->socket, sizeof s->socket);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        nl_error_set_errno("connect");
        if (fd >= 0)
            close(fd);
        return false;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    s->stream = fdopen(fd, "r");
    return nl_memory_check(s->stream) != NULL;
}

/* Returns the next line without its newline, or NULL on failure. The line is valid until the next call. */
static char *collectd_read_line(collectd_state *s)
{
    if (fgets(s->line, sizeof s->line, s->stream) == NULL) {
        if (ferror(s->stream) && errno != EAGAIN)
            return nl_error_set_errno("read"), NULL;
        return nl_error_null(NL_ERROR_UNREACHABLE,
                             ferror(s->stream) ? "no reply in time" : "collectd closed the connection");
    }
    char *end = strchr(s->line, '\n');
    if (end == NULL)
        return nl_error_null(NL_ERROR_PROTOCOL, "a line is too long; is this collectd?");
    *end = '\0';
    return s->line;
}

/* Sends a request and reads the first line of the reply. Sets *count to the number of lines that follow, or to a
 * negative number if collectd reports an error. Returns false and sets the error if the connection fails or the reply
 * is invalid. */
static bool collectd_request(collectd_state *s, const char *request, long *count)
{
    char *end;
    if (send(fileno(s->stream), request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
        return nl_error_set_errno("send"), false;
    const char *line = collectd_read_line(s);
    if (line == NULL)
        return false;
    *count = strtol(line, &end, 10);
    return (end != line && *count <= VALUES_MAX) ||
           nl_error_false(NL_ERROR_PROTOCOL, "the reply contains no count; is this collectd?");
}

/* ---- values ---- */

/*
 * Returns whether the sensor has already logged the value with this key and time. *from is the index at which the
 * function begins to search, because the order of the values rarely changes. Sets *from to the index after the value.
 */
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

/* Splits "cpu-0" into "cpu" and "0". Returns the second part, or NULL if there is no second part. */
static char *cut_instance(char *part)
{
    char *dash = strchr(part, '-');
    if (dash != NULL)
        *dash++ = '\0';
    return dash;
}

/* Adds the line NAME=VALUE as a field whose name is in upper case. Sets *any if the field has a value. */
static void add_value(nl_record *record, const char *line, bool *any)
{
    char name[NAME_SIZE];
    size_t size = strcspn(line, "=");
    if (line[size] != '=' || size == 0 || size >= sizeof name)
        return;
    for (size_t i = 0; i < size; i++)
        name[i] = (char)toupper((unsigned char)line[i]);
    name[size] = '\0';
    double value = strtod(line + size + 1, NULL);
    if (isfinite(value)) /* unless collectd has no value yet */
        nl_record_add_double(record, name, value);
    *any = *any || isfinite(value);
}

/* Requests the value of an identifier, and logs it. Returns false and sets the error if the connection fails or the
 * reply is invalid. */
static bool log_value(measurement *m, double time, const char *identifier, uint64_t *count)
{
    collectd_state *s = m->state;
    char request[2 * LINE_SIZE + 16] = "GETVAL \"", *to = request + strlen(request), event[LINE_SIZE], parts[LINE_SIZE];
    for (const char *c = identifier; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            *to++ = '\\';
        *to++ = *c;
    }
    memcpy(to, "\"\n", sizeof "\"\n");
    long values;
    if (!collectd_request(s, request, &values))
        return false;
    snprintf(parts, sizeof parts, "%s", identifier);
    char *rest = parts, *host = strsep(&rest, "/"), *plugin = strsep(&rest, "/"), *type = rest;
    bool any = false, is_good = plugin != NULL && type != NULL;
    char *instance = is_good ? cut_instance(plugin) : NULL, *type_instance = is_good ? cut_instance(type) : NULL;
    snprintf(event, sizeof event, "%.400s.%.400s", is_good ? plugin : "", is_good ? type : "");
    nl_record *record = record_begin(m, event);
    add_text(record, "COLLECTD.HOST", host);
    if (instance != NULL)
        add_text(record, "PLUGIN.INSTANCE", instance);
    if (type_instance != NULL)
        add_text(record, "TYPE.INSTANCE", type_instance);
    for (; values > 0; values--) {
        const char *line = collectd_read_line(s);
        if (line == NULL)
            return false;
        add_value(record, line, &any);
    }
    if (!any || !is_good)
        return true;
    if (time > 0 && time < 9e9)
        nl_record_set_time(record, (int64_t)(time * 1000) * 1000000); /* the time has a resolution of 1 ms */
    record_end(m);
    ++*count;
    return true;
}

/* Reads the list of values, whose lines are "TIME IDENTIFIER". Returns false and sets the error if the connection
 * fails, the reply is invalid or the list is too long. */
static bool read_list(collectd_state *s)
{
    long count;
    s->list.size = 0;
    if (!collectd_request(s, "LISTVAL\n", &count))
        return false;
    for (; count > 0 && s->list.size < LIST_SIZE_MAX; count--) {
        const char *line = collectd_read_line(s);
        if (line == NULL)
            return false;
        nl_buffer_append(&s->list, line, strlen(line) + 1);
    }
    return count <= 0 || nl_error_false(NL_ERROR_PROTOCOL, "too many values");
}

static bool log_values(measurement *m, uint64_t *count)
{
    collectd_state *s = m->state;
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
            good = log_value(m, time, identifier, count);
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

static bool collectd_measure(measurement *m)
{
    collectd_state *s = m->state;
    uint64_t count = 0;
    bool good = (s->stream != NULL || collectd_connect(s)) && read_list(s) && log_values(m, &count);
    if (!good && s->stream != NULL) {
        fclose(s->stream);
        s->stream = NULL;
    }
    nl_record *record = record_begin(m, "CollectdRead");
    add_text(record, "COLLECTD.SOCKET", s->socket);
    nl_record_add_uint(record, "SAMPLES", count);
    if (!good)
        add_text(record, "COLLECTD.ERROR", nl_error_message());
    record_end(m);
    return true;
}

static const sensor_field fields[] = {
    {"PLUGIN.TYPE", "COLLECTD.HOST", "", "host of the value, as collectd names it"},
    {"PLUGIN.TYPE", "PLUGIN.INSTANCE", "", "instance of the plugin, such as eth0 or root"},
    {"PLUGIN.TYPE", "TYPE.INSTANCE", "", "instance of the type, such as idle or used"},
    {"PLUGIN.TYPE", "VALUE", "",
     "each value becomes a field with the value's name in upper case; counters become rates per second"},
    {"CollectdRead", "COLLECTD.SOCKET", "", "path of the socket"},
    {"CollectdRead", "SAMPLES", "records", "new values"},
    {"CollectdRead", "COLLECTD.ERROR", "", "error message"},
    {0},
};

const sensor_kind collectd_sensor = {.name = "collectd",
                                     .what = "the values that collectd's unixsock plugin provides",
                                     .arguments = " socket match ",
                                     .arguments_help = "socket=PATH (default " DEFAULT_SOCKET
                                                       "), match=GLOB (log only values whose name, "
                                                       "PLUGIN[-INSTANCE]/TYPE[-INSTANCE], matches GLOB, such as "
                                                       "interface-*/if_octets)",
                                     .fields = fields,
                                     .open = collectd_open,
                                     .measure = collectd_measure,
                                     .state_size = sizeof(collectd_state)};
