/* nlsensor: looks at the host at intervals and logs what it sees. */
#include "config.h"

#include "program/program.h"
#include "sensors/sensor.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const sensor_kind *const kinds[] = {&cpu_sensor, &memory_sensor, &tcp_sensor, &disk_sensor};
enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

struct sensor {
    const sensor_kind *kind; /* NULL once it has failed */
    void *state;
    int64_t last_ns; /* of its latest look, on the monotonic clock */
};

typedef struct arguments {
    sensor sensors[KIND_COUNT];
    size_t count;
    double interval_s;
    uint64_t looks; /* 0: for ever */
    const char *destination;
} arguments;

static void list_kinds(void)
{
    for (int i = 0; i < KIND_COUNT; i++)
        printf("%-8s NL.EVNT=%s\n         %s\n", kinds[i]->name, kinds[i]->event, kinds[i]->fields);
    exit(program_finish(PROGRAM_DONE));
}

static void add_sensor(arguments *a, const char *name, struct argp_state *state)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->sensors[i].kind->name, name) == 0)
            return;
    for (int i = 0; i < KIND_COUNT; i++)
        if (strcmp(kinds[i]->name, name) == 0) {
            void *memory = calloc(1, kinds[i]->state_size);
            if (memory == NULL)
                program_fail(PROGRAM_PROBLEM, "out of memory");
            a->sensors[a->count++] = (sensor){.kind = kinds[i], .state = memory};
            return;
        }
    argp_error(state, "there is no sensor \"%s\": see --list", name);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    char *end;
    switch (key) {
    case 'i':
        a->interval_s = strtod(argument, &end);
        if (end == argument || *end != '\0' || !(a->interval_s >= 0.001 && a->interval_s <= 86400))
            argp_error(state, "--interval %s: 0.001 to 86400 seconds are wanted", argument);
        return 0;
    case 'n':
        a->looks = strtoull(argument, &end, 10);
        if (*argument < '0' || *argument > '9' || *end != '\0' || a->looks == 0)
            argp_error(state, "--count %s: a whole number from 1 is wanted", argument);
        return 0;
    case 'd':
        a->destination = argument;
        return 0;
    case 'l':
        list_kinds();
        return 0;
    case ARGP_KEY_ARG:
        add_sensor(a, argument, state);
        return 0;
    case ARGP_KEY_END:
        if (a->count == 0)
            for (int i = 0; i < KIND_COUNT; i++)
                add_sensor(a, kinds[i]->name, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"interval", 'i', "SECONDS", 0, "Look so often (default 1)", 0},
    {"count", 'n', "N", 0, "End after N intervals (default: never)", 0},
    {"dest", 'd', "URL", 0, "Log there (default $NETLOGGER_DEST, or standard output)", 0},
    {"list", 'l', NULL, 0, "Say which sensors there are and what they log", 0},
    {0},
};

static const struct argp argp = {.options = options,
                                 .parser = parse,
                                 .args_doc = "[SENSOR...]",
                                 .doc = "Log what this host is doing. Without SENSOR all of them."};

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NL_NS_PER_SECOND + now.tv_nsec;
}

/* One look. False when the log cannot be written. */
static bool look(sensor *s, nl_log *log, nl_record *record)
{
    int64_t now_ns = monotonic_ns();
    double seconds = s->last_ns == 0 ? 0 : (double)(now_ns - s->last_ns) / 1e9;
    const char *extra = NULL;
    s->last_ns = now_ns;
    nl_record_clear(record);
    nl_record_set_level(record, NL_SYSTEM);
    nl_record_set_event(record, s->kind->event, strlen(s->kind->event));
    switch (s->kind->sample(s->state, seconds, record, &extra)) {
    case SAMPLE_NOTHING:
        return true;
    case SAMPLE_FAILED:
        program_error("sensor %s: %s; going on without it", s->kind->name, proc_error());
        s->kind = NULL;
        return true;
    case SAMPLE_DONE:
        break;
    }
    if (nl_write_record(log, record) < NL_OK)
        return false;
    if (extra == NULL)
        return true;
    nl_record_set_event(record, extra, strlen(extra));
    return nl_write_record(log, record) >= NL_OK;
}

/* Waits until a time of the monotonic clock. False when the program is to end: SIGTERM and SIGINT are blocked but for
 * here. */
static bool wait_until(int64_t time_ns, const sigset_t *signals)
{
    for (;;) {
        int64_t left_ns = time_ns - monotonic_ns();
        if (left_ns < 0)
            left_ns = 0;
        struct timespec left = {left_ns / NL_NS_PER_SECOND, left_ns % NL_NS_PER_SECOND};
        if (sigtimedwait(signals, NULL, &left) > 0)
            return false;
        if (errno == EAGAIN)
            return true;
    }
}

static size_t look_at_all(arguments *a, nl_log *log, nl_record *record, bool *good)
{
    size_t alive = 0;
    for (size_t i = 0; i < a->count && *good; i++)
        if (a->sensors[i].kind != NULL) {
            *good = look(&a->sensors[i], log, record);
            alive++;
        }
    *good = *good && nl_flush(log) == NL_OK;
    return alive;
}

/* Looks at fixed times, so that what a look costs does not add up. False when the log cannot be written. */
static bool run(arguments *a, nl_log *log)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    nl_record *record = nl_record_new();
    int64_t next_ns = monotonic_ns();
    bool good = true;
    for (uint64_t turn = 0; look_at_all(a, log, record, &good) > 0 && good; turn++) {
        next_ns += (int64_t)(a->interval_s * 1e9);
        if (turn == a->looks && a->looks > 0)
            break;
        if (!wait_until(next_ns, &signals))
            break;
    }
    nl_record_free(record);
    return good;
}

int main(int argc, char **argv)
{
    program_start("nlsensor", argv);
    static arguments a = {.interval_s = 1}; /* what sensors remember lasts as long as the process */
    a.destination = getenv("NETLOGGER_DEST");
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    nl_log *log = nl_open("nlsensor", a.destination != NULL && *a.destination != '\0' ? a.destination : "-");
    if (log == NULL)
        program_fail(PROGRAM_PROBLEM, "%s",
                     *nl_error_message() != '\0' ? nl_error_message() : "logging is switched off");
    bool good = run(&a, log);
    if (!good)
        program_error("%s", nl_error_message());
    if (nl_close(log) != NL_OK && good)
        program_fail(PROGRAM_PROBLEM, "%s", nl_error_message());
    return program_finish(good ? PROGRAM_DONE : PROGRAM_PROBLEM);
}
