/* nlkernel report: what recorded events mean, in numbers. */
#include "config.h"

#include "command.h"
#include "json.h"
#include "program/program.h"
#include "scheduler.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    program_reading reading;
    const char *cdf; /* of that program; NULL: not asked for */
    bool json;
    size_t top;
    char **logs;
    int log_count;
} arguments;

enum { OPTION_CDF = 0x1000, OPTION_TOP, TOP_DEFAULT = 20, CDF_STEPS = 100 };

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "Print JSON, all programs", 0},
    {"top", OPTION_TOP, "NUMBER", 0, "So many lines of each table (default 20; 0: all)", 0},
    {"cdf", OPTION_CDF, "PROGRAM", 0,
     "Print how PROGRAM's quanta are distributed: lines of microseconds and the share of quanta that are no longer", 0},
    {0},
};

static const struct argp_child children[] = {{&program_reading_argp, 0, "reading logs:", 1}, {0}};

static void take_words(arguments *a, struct argp_state *state)
{
    a->logs = state->argv + state->next;
    a->log_count = state->argc - state->next;
    if (strcmp(a->logs[0], "scheduler") != 0)
        argp_error(state, "there is no report \"%s\": scheduler is", a->logs[0]);
    a->logs++;
    a->log_count--;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    arguments *a = state->input;
    char *end;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->reading;
        return 0;
    case 'j':
        a->json = true;
        return 0;
    case OPTION_CDF:
        a->cdf = argument;
        return 0;
    case OPTION_TOP:
        a->top = strtoul(argument, &end, 10);
        if (*argument < '0' || *argument > '9' || *end != '\0')
            argp_error(state, "--top %s: a whole number is wanted", argument);
        return 0;
    case ARGP_KEY_ARGS:
        take_words(a, state);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no report given: scheduler is one");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .children = children,
    .args_doc = "scheduler [SOURCE...]",
    .doc =
        "Say what the events of a log mean."
        "\vscheduler: how long each program ran at a time (its effective quantum), how long it waited for a CPU when "
        "it could have run, and who took the CPU from whom. Made of\n\n"
        "  nlkernel record -e sched:sched_switch -e 'sched:sched_wakeup*' -d 10s -o s.nlb\n\n"
        "in any order. What spans events that were lost is left out. Without SOURCE standard input is "
        "read. " PROGRAM_SOURCES ".",
};

static int read_log(arguments *a, scheduler *s, const char *name)
{
    program_log *log = program_log_open(&a->reading, name, false, false);
    if (log == NULL)
        return PROGRAM_PROBLEM;
    const nl_record *record;
    nl_status status;
    uint64_t number = 0, done, total;
    while ((status = program_log_next(log, NULL, &record)) == NL_OK) {
        scheduler_take(s, record);
        if (++number % 10000 == 0) {
            program_log_progress(log, &done, &total);
            program_progress(name, done, total, number);
        }
    }
    program_progress_end();
    program_log_close(log);
    return status == NL_FAILED ? PROGRAM_PROBLEM : PROGRAM_DONE;
}

static const double shares[] = {0.5, 0.9, 0.99, 1};
static const char *const share_names[] = {"p50", "p90", "p99", "max"};
enum { SHARE_COUNT = sizeof shares / sizeof *shares };

/* ---- text ---- */

static void print_durations(const durations *d)
{
    printf(" %8zu", d->count);
    for (size_t i = 0; i < SHARE_COUNT; i++)
        if (d->count > 0)
            printf(" %9.1f", (double)durations_at(d, shares[i]) / 1e3);
        else
            printf(" %9s", "-");
}

static void print_text(const scheduler *s, size_t top)
{
    printf("%.3f s, %u CPU%s, %" PRIu64 " switches, %" PRIu64 " events lost; times in microseconds\n\n",
           (double)(s->to_ns - s->from_ns) / 1e9, s->cpus, s->cpus == 1 ? "" : "s", s->switches, s->lost);
    printf("%-16s %9s  %8s %39s  %8s %39s %8s\n", "", "", "quanta:", "", "waits for a CPU:", "", "");
    printf("%-16s %9s", "program", "ran ms");
    for (int table = 0; table < 2; table++) {
        printf("  %8s", "number");
        for (size_t i = 0; i < SHARE_COUNT; i++)
            printf(" %9s", share_names[i]);
    }
    printf(" %8s\n", "ousted");
    for (size_t i = 0, shown = 0; i < s->program_count && (top == 0 || shown < top); i++) {
        const scheduler_program *p = &s->programs[i];
        if (p->quanta.count == 0 && p->delays.count == 0)
            continue;
        shown++;
        printf("%-16s %9.3f ", p->name, (double)p->quanta.sum_ns / 1e6);
        print_durations(&p->quanta);
        putchar(' ');
        print_durations(&p->delays);
        printf(" %8" PRIu64 "\n", p->ousted);
    }
    if (s->ousting_count > 0)
        printf("\n%-16s %-16s %8s\n", "ousted", "by", "times");
    for (size_t i = 0; i < s->ousting_count && (top == 0 || i < top); i++)
        printf("%-16s %-16s %8" PRIu64 "\n", s->programs[s->oustings[i].victim].name,
               s->programs[s->oustings[i].by].name, s->oustings[i].count);
}

static int print_cdf(const scheduler *s, const char *program)
{
    for (size_t i = 0; i < s->program_count; i++) {
        const durations *d = &s->programs[i].quanta;
        if (strcmp(s->programs[i].name, program) != 0 || d->count == 0)
            continue;
        for (int step = 1; step <= CDF_STEPS; step++)
            printf("%.3f %.2f\n", (double)durations_at(d, (double)step / CDF_STEPS) / 1e3, (double)step / CDF_STEPS);
        return PROGRAM_DONE;
    }
    program_error("no program \"%s\" ran from one switch to another in this log", program);
    return PROGRAM_PROBLEM;
}

/* ---- JSON ---- */

static void print_json_durations(const char *name, const durations *d)
{
    printf(",\"%s\":{\"count\":%zu,\"sum_ns\":%" PRId64, name, d->count, d->sum_ns);
    for (size_t i = 0; i < SHARE_COUNT && d->count > 0; i++)
        printf(",\"%s_ns\":%" PRId64, share_names[i], durations_at(d, shares[i]));
    putchar('}');
}

static void print_json(const scheduler *s)
{
    printf("{\"seconds\":%.9f,\"cpus\":%u,\"switches\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"programs\":[",
           (double)(s->to_ns - s->from_ns) / 1e9, s->cpus, s->switches, s->lost);
    for (size_t i = 0; i < s->program_count; i++) {
        printf("%s{\"program\":", i == 0 ? "" : ",\n ");
        json_print_string(s->programs[i].name);
        print_json_durations("quanta", &s->programs[i].quanta);
        print_json_durations("delays", &s->programs[i].delays);
        printf(",\"ousted\":%" PRIu64 "}", s->programs[i].ousted);
    }
    printf("],\n \"oustings\":[");
    for (size_t i = 0; i < s->ousting_count; i++) {
        printf("%s{\"ousted\":", i == 0 ? "" : ",\n ");
        json_print_string(s->programs[s->oustings[i].victim].name);
        printf(",\"by\":");
        json_print_string(s->programs[s->oustings[i].by].name);
        printf(",\"times\":%" PRIu64 "}", s->oustings[i].count);
    }
    printf("]}\n");
}

int command_report(int argc, char **argv)
{
    if (report_is_of_functions(argc, argv))
        return report_functions(argc, argv);
    arguments a = {.top = TOP_DEFAULT};
    argp_parse(&argp, argc, argv, 0, NULL, &a);
    scheduler s = {0};
    int status = PROGRAM_DONE;
    for (int i = 0; i < (a.log_count > 0 ? a.log_count : 1); i++)
        if (read_log(&a, &s, a.log_count > 0 ? a.logs[i] : "-") != PROGRAM_DONE)
            status = PROGRAM_PROBLEM;
    if (program_reading_finish(&a.reading) != PROGRAM_DONE)
        status = PROGRAM_PROBLEM;
    scheduler_compute(&s);
    if (s.switches == 0) {
        program_error("there is no sched.sched_switch: nlkernel record -e sched:sched_switch -e 'sched:sched_wakeup*'");
        status = PROGRAM_PROBLEM;
    } else if (a.cdf != NULL) {
        int printed = print_cdf(&s, a.cdf);
        status = printed != PROGRAM_DONE ? printed : status;
    } else if (a.json) {
        print_json(&s);
    } else {
        print_text(&s, a.top);
    }
    scheduler_free(&s);
    return status;
}
