/*
 * Reads the samples of a Prometheus exporter, in text format 0.0.4 (Prometheus documentation, "Exposition formats").
 * The name of the metric becomes the event, the sample becomes the field VALUE, and each label becomes a field.
 */
#include "config.h"

#include "sensors/http.h"
#include "sensors/sensor.h"

#include "base/error.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLY_MAX = 16 << 20, TIMEOUT_MS = 5000, RECORDS_MAX = 20000, NAME_MAX = 256, VALUE_MAX = 1024 };

typedef struct prometheus_state {
    http_place place;
    http_reply reply;
    char url[SPEC_SIZE_MAX];
    char match[256]; /* glob for metric names; "": all metrics */
} prometheus_state;

static bool prometheus_open(void *state, const sensor_spec *spec)
{
    prometheus_state *s = state;
    const char *url = spec_argument(spec, "url"), *match = spec_argument(spec, "match");
    if (!http_place_read(url, &s->place) || s->place.plain_tcp)
        return nl_error_false(NL_ERROR_INVALID, "expected url=http://HOST:PORT/metrics");
    snprintf(s->url, sizeof s->url, "%s", url);
    snprintf(s->match, sizeof s->match, "%s", match != NULL ? match : "");
    return true;
}

/* Parses a label's value, which begins after its opening quote. Returns the text after the closing quote, or NULL. */
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

/* Adds {name="value",...} as fields. Returns the text after the labels, or NULL if the labels are malformed. */
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

/* Logs the sample in a line. Returns false if the line contains no sample. */
static bool measure_line(measurement *m, const char *line)
{
    const prometheus_state *s = m->state;
    size_t size = strcspn(line, "{ \t\n");
    char name[NAME_MAX], *end;
    if (*line == '#' || size == 0 || size >= sizeof name)
        return false;
    snprintf(name, sizeof name, "%.*s", (int)size, line);
    if (s->match[0] != '\0' && fnmatch(s->match, name, 0) != 0)
        return false;
    nl_record *record = record_begin(m, name);
    const char *at = line + size;
    if (*at == '{' && (at = read_labels(record, at)) == NULL)
        return false;
    double value = strtod(at, &end);
    if (end == at || memchr(at, '\n', (size_t)(end - at)) != NULL)
        return false;
    nl_record_add_double(record, "VALUE", value);
    long long ms = strtoll(at = end, &end, 10);
    if (end != at && strspn(at, " \t") > 0 && ms > 0 && ms < INT64_MAX / 1000000)
        nl_record_set_time(record, ms * 1000000); /* the exporter has sent a time for the sample */
    record_end(m);
    return true;
}

static bool prometheus_measure(measurement *m)
{
    prometheus_state *s = m->state;
    const http_reply *a = &s->reply;
    bool good = http_get(&s->place, TIMEOUT_MS, REPLY_MAX, &s->reply);
    uint64_t count = 0;
    for (const char *line = good && a->status == 200 ? a->body.data : NULL; line != NULL && count < RECORDS_MAX;
         line = proc_next_line(line))
        count += measure_line(m, line);
    nl_record *record = record_begin(m, "PrometheusRead");
    add_text(record, "SERVER.URL", s->url);
    nl_record_add_uint(record, "SAMPLES", count);
    if (a->status != 0)
        nl_record_add_int(record, "SERVER.STATUS", a->status);
    if (!good)
        add_text(record, "SERVER.ERROR", nl_error_message());
    record_end(m);
    return true;
}

static const sensor_field fields[] = {
    {"METRIC", "VALUE", "",
     "value of the metric; the event's name is the metric's name, which usually contains the unit"},
    {"METRIC", "LABEL", "", "each label becomes a field with the label's name"},
    {"PrometheusRead", "SERVER.URL", "", "URL of the exporter"},
    {"PrometheusRead", "SAMPLES", "records", "samples read"},
    {"PrometheusRead", "SERVER.STATUS", "", "HTTP status"},
    {"PrometheusRead", "SERVER.ERROR", "", "error message"},
    {0},
};

const sensor_kind prometheus_sensor = {
    .name = "prometheus",
    .what = "the samples that a Prometheus exporter provides",
    .arguments = " url match ",
    .arguments_help = "url=http://HOST:PORT/metrics (required), match=GLOB (log only metrics with matching names)",
    .required = "url=http://HOST:PORT/metrics",
    .fields = fields,
    .open = prometheus_open,
    .measure = prometheus_measure,
    .state_size = sizeof(prometheus_state)};
