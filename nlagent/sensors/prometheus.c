/*
 * What an exporter for Prometheus says, each sample a record: the text format 0.0.4, as its documentation
 * "exposition formats" has it. The event is the metric's name; labels become fields, with a name that is not to be
 * taken (VALUE) in capitals as it is, for names are told by case.
 */
#include "config.h"

#include "sensors/http.h"
#include "sensors/sensor.h"

#include "base/error.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MAX = 16 << 20, TIMEOUT_MS = 5000, RECORDS_MAX = 20000, NAME_MAX = 256, VALUE_MAX = 1024 };

typedef struct prometheus_state {
    http_place place;
    http_answer answer;
    char url[SPEC_SIZE_MAX];
    char match[256]; /* a glob of names; "": all */
} prometheus_state;

static bool prometheus_start(void *state, const sensor_spec *spec)
{
    prometheus_state *s = state;
    const char *url = spec_argument(spec, "url"), *match = spec_argument(spec, "match");
    if (url == NULL || !http_place_read(url, &s->place) || s->place.plain_tcp)
        return nl_error_false(NL_ERROR_INVALID, "expected url=http://HOST:PORT/metrics");
    snprintf(s->url, sizeof s->url, "%s", url); /* a part of a specification that was of that size */
    snprintf(s->match, sizeof s->match, "%s", match != NULL ? match : "");
    return true;
}

/* A label's value behind its opening quote, unescaped. Returns what is behind the closing one; NULL without one. */
static const char *read_value(const char *at, char value[VALUE_MAX], size_t *size)
{
    for (*size = 0; *at != '"'; at++) {
        char c = *at;
        if (c == '\0' || c == '\n')
            return NULL;
        if (c == '\\' && at[1] != '\0' && at[1] != '\n')
            c = *++at == 'n' ? '\n' : *at;
        if (*size < VALUE_MAX)
            value[(*size)++] = c;
    }
    return at + 1;
}

/* {name="value",...} becomes fields. Returns what is behind it; NULL when it is not well-formed. */
static const char *read_labels(nl_record *record, const char *at)
{
    char name[NAME_MAX], value[VALUE_MAX];
    for (at++; *at != '}';) {
        size_t size = strcspn(at, "=\n}"), value_size;
        if (at[size] != '=' || at[size + 1] != '"' || size >= sizeof name)
            return NULL;
        snprintf(name, sizeof name, "%.*s", (int)size, at);
        at = read_value(at + size + 2, value, &value_size);
        if (at == NULL)
            return NULL;
        nl_record_add_string(record, name, value, value_size);
        at += strspn(at, ", ");
    }
    return at + 1;
}

/* One line; what is no sample is passed over. Whether it was logged. */
static bool look_at_line(sensor_look *look, const char *line)
{
    const prometheus_state *s = look->state;
    size_t size = strcspn(line, "{ \t\n");
    char name[NAME_MAX], *end;
    if (*line == '#' || size == 0 || size >= sizeof name)
        return false;
    snprintf(name, sizeof name, "%.*s", (int)size, line);
    if (s->match[0] != '\0' && fnmatch(s->match, name, 0) != 0)
        return false;
    nl_record *record = look_begin(look, name);
    const char *at = line + size;
    if (*at == '{' && (at = read_labels(record, at)) == NULL)
        return false;
    double value = strtod(at, &end);
    if (end == at || memchr(at, '\n', (size_t)(end - at)) != NULL)
        return false;
    nl_record_add_double(record, "VALUE", value);
    long long ms = strtoll(at = end, &end, 10);
    if (end != at && strspn(at, " \t") > 0 && ms > 0 && ms < INT64_MAX / 1000000)
        nl_record_set_time(record, ms * 1000000); /* the sample's own */
    look_end(look);
    return true;
}

static bool prometheus_look(sensor_look *look)
{
    prometheus_state *s = look->state;
    const http_answer *a = &s->answer;
    bool good = http_get(&s->place, TIMEOUT_MS, ANSWER_MAX, &s->answer);
    uint64_t count = 0;
    for (const char *line = good && a->status == 200 ? a->body.data : NULL; line != NULL && count < RECORDS_MAX;
         line = proc_next_line(line))
        count += look_at_line(look, line);
    nl_record *record = look_begin(look, "PrometheusRead");
    add_text(record, "SERVER.URL", s->url);
    nl_record_add_uint(record, "SAMPLES", count);
    if (a->status != 0)
        nl_record_add_int(record, "SERVER.STATUS", a->status);
    if (!good)
        add_text(record, "SERVER.ERROR", nl_error_message());
    look_end(look);
    return true;
}

static const sensor_field fields[] = {
    {"METRIC", "VALUE", "", "of the metric whose name is the event; in the unit that its name says"},
    {"METRIC", "LABEL", "", "each label is a field of its own name"},
    {"PrometheusRead", "SERVER.URL", "", "that was read"},
    {"PrometheusRead", "SAMPLES", "records", "that it gave"},
    {"PrometheusRead", "SERVER.STATUS", "", "of HTTP"},
    {"PrometheusRead", "SERVER.ERROR", "", "what went wrong"},
    {0},
};

const sensor_kind prometheus_sensor = {
    .name = "prometheus",
    .what = "what an exporter for Prometheus says",
    .arguments = " url match ",
    .arguments_help = "url=http://HOST:PORT/metrics, which has to be said; match=GLOB: of the metrics' names",
    .fields = fields,
    .open = prometheus_start,
    .look = prometheus_look,
    .state_size = sizeof(prometheus_state)};
