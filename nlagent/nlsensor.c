/*
 * nlsensor: measures the host at an interval and logs the results.
 *
 * The build makes two programs from this file: nlsensor, and a program that nlagentd starts. The second program writes
 * only to standard output, and needs a quarter of the memory of nlsensor (output.h). With --controlled, commands on
 * standard input change the interval, and the end of standard input ends the program.
 */
#include "config.h"

#include "base/monotonic.h"
#include "output.h"
#include "program/program.h"
#include "sensors/sensor.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

enum { SENSORS_MAX = 64 };

typedef struct sensor {
    const sensor_kind *kind; /* NULL after a failure */
    sensor_spec *spec;
    void *state;
    int64_t last_ns; /* time of the latest measurement, on the monotonic clock */
} sensor;

typedef struct arguments {
    sensor sensors[SENSORS_MAX];
    size_t count;
    int64_t interval_ns;
    uint64_t count_max; /* 0: no limit */
    const char *destination;
    bool controlled;
} arguments;

/* ---- lists of sensors ---- */

static bool list_kinds(void *settings, const nl_option *row, const char *value)
{
    (void)settings, (void)row, (void)value;
    for (size_t i = 0; sensor_kinds[i] != NULL; i++) {
        const sensor_kind *k = sensor_kinds[i];
        printf("%s%s\n    %s\n", k->name, k->is_default ? "" : " (only if named)", k->what);
        if (k->arguments_help != NULL)
            printf("    %s\n", k->arguments_help);
        for (const sensor_field *f = k->fields; f->event != NULL; f++) {
            if (f == k->fields || strcmp(f->event, f[-1].event) != 0)
                printf("    NL.EVNT=%s\n", f->event);
            printf("        %-22s %-14s %s\n", f->name, f->unit, f->meaning);
        }
    }
    exit(program_finish(PROGRAM_DONE));
}

/* Returns whether `f` is not a field of the sensor's first event, but the first event has a field with the same
 * name. */
static bool in_first_event(const sensor_kind *k, const sensor_field *f)
{
    const char *first = k->fields->event;
    if (strcmp(f->event, first) == 0)
        return false;
    for (const sensor_field *g = k->fields; strcmp(g->event, first) == 0; g++)
        if (strcmp(f->name, g->name) == 0 && strcmp(f->unit, g->unit) == 0 && strcmp(f->meaning, g->meaning) == 0)
            return true;
    return false;
}

/* Prints doc/sensors.md. For a field that an event shares with the sensor's first event, prints only the name. */
static bool print_table(void *settings, const nl_option *row, const char *value)
{
    (void)settings, (void)row, (void)value;
    puts("# Sensors\n\nThis page is the output of `nlsensor --table`. Rates (unit \"/s\") are means since the previous "
         "record.\nA \"new\" value is the increase since the previous record.");
    for (size_t i = 0; sensor_kinds[i] != NULL; i++) {
        const sensor_kind *k = sensor_kinds[i];
        printf("\n## %s\n\nLogs %s.%s\n", k->name, k->what, k->is_default ? "" : " Runs only if named.");
        if (k->arguments_help != NULL)
            printf("Arguments: %s.\n", k->arguments_help);
        for (const sensor_field *f = k->fields; f->event != NULL; f++) {
            if (f == k->fields || strcmp(f->event, f[-1].event) != 0)
                printf("\n### %s\n\n", f->event);
            if (in_first_event(k, f))
                printf("- `%s`\n", f->name);
            else
                printf(f->unit[0] != '\0' ? "- `%s` (%s): %s\n" : "- `%s`%s: %s\n", f->name, f->unit, f->meaning);
        }
    }
    exit(program_finish(PROGRAM_DONE));
}

/* ---- options ---- */

static void add_sensor(arguments *a, const char *text)
{
    sensor_spec *spec = spec_parse(text);
    if (spec == NULL)
        options_fail("%s", nl_error_message());
    const sensor_kind *kind = sensor_kind_find(spec->name);
    if (kind == NULL)
        options_fail("%s: unknown sensor; see nlsensor --list", spec->name);
    const char *unknown = spec_unknown(spec, kind->arguments);
    if (unknown != NULL)
        options_fail("sensor %s has no argument named \"%s\"", kind->name, unknown);
    if (!spec_has_required(spec, kind->required))
        options_fail("%s", nl_error_message());
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->sensors[i].spec->text, spec->text) == 0) {
            spec_free(spec);
            return;
        }
    void *memory = calloc(1, kind->state_size);
    if (memory == NULL || a->count == SENSORS_MAX)
        program_fail(PROGRAM_PROBLEM, "too many sensors; the maximum is %d", SENSORS_MAX);
    a->sensors[a->count++] = (sensor){.kind = kind, .spec = spec, .state = memory};
}

static void add_default(arguments *a)
{
    for (size_t i = 0; sensor_kinds[i] != NULL; i++)
        if (sensor_kinds[i]->is_default)
            add_sensor(a, sensor_kinds[i]->name);
}

/* Opens the sensors. Exits if opening a sensor fails, for example because its arguments are invalid. In contrast, a
 * failed measurement does not end the program (measure_all). */
static void open_sensors(arguments *a)
{
    for (size_t i = 0; i < a->count; i++) {
        sensor *s = &a->sensors[i];
        if (s->kind->open != NULL && !s->kind->open(s->state, s->spec))
            program_fail(PROGRAM_PROBLEM, "sensor %s: %s", s->kind->name, nl_error_message());
    }
}

static const nl_option options[] = {
    {.name = "interval",
     .letter = 'i',
     .type = NL_OPTION_DURATION,
     .initial = "1s",
     .minimum = 1000000,
     .maximum = 86400 * NL_NS_PER_SECOND,
     NL_OPTION_MEMBER(arguments, interval_ns),
     .help = "Interval between measurements"},
    {.name = "count",
     .letter = 'n',
     .type = NL_OPTION_COUNT,
     .initial = "(unlimited)",
     .minimum = 1,
     NL_OPTION_MEMBER(arguments, count_max),
     .help = "Stop after COUNT intervals"},
    {.name = "dest",
     .letter = 'd',
     .value = "URL",
     .initial = "-",
     .environment = "NETLOGGER_DEST",
     NL_OPTION_MEMBER(arguments, destination),
     .help = "Send records to URL; - is standard output"},
    {.name = "list",
     .letter = 'l',
     .type = NL_OPTION_FLAG,
     .set = list_kinds,
     .help = "List the sensors with their events and fields, and exit"},
    {.name = "table",
     .type = NL_OPTION_FLAG,
     .set = print_table,
     .help = "Print a documentation page that lists the sensors, and exit"},
    {.name = "controlled",
     .type = NL_OPTION_FLAG,
     NL_OPTION_MEMBER(arguments, controlled),
     .help = "Read commands, such as interval 5s, from standard input, and stop at the end of the input"},
    {0},
};

static const options_usage usage = {
    .groups = (const options_group[]){{NULL, options, 0}, {0}},
    .operands = "[SENSOR[?ARGUMENT=VALUE&...]...]",
    .summary = "Measure this host and log the results. Without SENSOR, run the default sensors; --list marks the "
               "others with (only if named).",
};

/* ---- measuring ---- */

static void emit(measurement *m)
{
    output *out = m->user;
    out->good = out->good && output_put(out, m->record);
}

/* Measures all sensors. Returns the number of sensors whose measurement succeeded. */
static size_t measure_all(arguments *a, output *out, nl_record *record)
{
    size_t alive = 0;
    for (size_t i = 0; i < a->count && out->good; i++) {
        sensor *s = &a->sensors[i];
        if (s->kind == NULL)
            continue;
        int64_t now_ns = nl_monotonic_ns();
        measurement m = {.state = s->state, .record = record, .emit = emit, .user = out};
        m.seconds = s->last_ns == 0 ? 0 : (double)(now_ns - s->last_ns) / 1e9;
        s->last_ns = now_ns;
        if (s->kind->measure(&m)) {
            alive++;
        } else {
            program_error("sensor %s: %s; continuing without it", s->kind->name, nl_error_message());
            s->kind = NULL;
        }
    }
    out->good = out->good && output_flush(out);
    return alive;
}

/* Logs what the sensors have noticed since their last measurement. */
static void finish_all(arguments *a, output *out, nl_record *record)
{
    for (size_t i = 0; i < a->count && out->good; i++) {
        const sensor *s = &a->sensors[i];
        if (s->kind != NULL && s->kind->finish != NULL)
            s->kind->finish(&(measurement){.state = s->state, .record = record, .emit = emit, .user = out});
    }
    out->good = out->good && output_flush(out);
}

/* Reads and executes commands from standard input. Returns false at end of file or after a read error. */
static bool read_commands(arguments *a)
{
    static char line[256];
    static size_t size;
    ssize_t got = read(STDIN_FILENO, line + size, sizeof line - 1 - size);
    if (got <= 0)
        return got < 0 && errno == EINTR;
    size += (size_t)got;
    line[size] = '\0';
    for (char *end; (end = strchr(line, '\n')) != NULL;) {
        *end = '\0';
        if (strncmp(line, "interval ", 9) == 0)
            nl_option_set(&options[0], a, line + 9);
        size -= (size_t)(end + 1 - line);
        memmove(line, end + 1, size + 1);
    }
    size = size < sizeof line - 1 ? size : 0; /* discard a line that is too long */
    return true;
}

/*
 * Waits until the interval after from_ns has ended. Commands may change the interval. Returns false if the program
 * should end.
 */
static bool wait_for_interval(arguments *a, int64_t from_ns, int signals)
{
    for (;;) {
        struct pollfd ready[2] = {{.fd = signals, .events = POLLIN},
                                  {.fd = a->controlled ? STDIN_FILENO : -1, .events = POLLIN}};
        int64_t left_ns = from_ns + a->interval_ns - nl_monotonic_ns();
        if (left_ns < 0)
            left_ns = 0;
        struct timespec left = {left_ns / NL_NS_PER_SECOND, left_ns % NL_NS_PER_SECOND};
        int count = ppoll(ready, 2, &left, NULL);
        if (count == 0)
            return true;
        if (count > 0 && (ready[0].revents != 0 || (ready[1].revents != 0 && !read_commands(a))))
            return false;
    }
}

static int catch_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        program_fail(PROGRAM_PROBLEM, "signalfd: %s", strerror(errno));
    return fd;
}

/* Measures at multiples of the interval, so that the duration of measurements does not accumulate as a delay. Skips
 * missed measurements. Returns false if the measurements of all sensors fail, or if writing the records fails. */
static bool nlsensor_run(arguments *a, output *out)
{
    int signals = catch_signals();
    nl_record *record = nl_record_new();
    int64_t start_ns = nl_monotonic_ns();
    bool good;
    for (uint64_t round = 0; (good = measure_all(a, out, record) > 0 && out->good); round++) {
        if (round == a->count_max && a->count_max > 0)
            break;
        if (!wait_for_interval(a, start_ns, signals))
            break;
        int64_t step_ns = a->interval_ns, late_ns = nl_monotonic_ns() - start_ns;
        start_ns += late_ns / step_ns > 0 ? late_ns / step_ns * step_ns : step_ns;
    }
    if (good)
        finish_all(a, out, record);
    nl_record_free(record);
    close(signals);
    return good && out->good;
}

int main(int argc, char **argv)
{
    program_start("nlsensor");
    static arguments a; /* static, because sensors keep their state in `a` */
    for (int i = options_parse(&usage, argc, argv, &a); i < argc; i++)
        add_sensor(&a, argv[i]);
    if (a.count == 0)
        add_default(&a);
    output out = {.good = true};
    signal(SIGPIPE, SIG_IGN);
    output_open(&out, a.destination);
    open_sensors(&a);
    bool good = nlsensor_run(&a, &out);
    good = output_close(&out) && good;
    return program_finish(good ? PROGRAM_DONE : PROGRAM_PROBLEM);
}
