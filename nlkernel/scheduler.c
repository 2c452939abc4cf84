#include "config.h"

#include "scheduler.h"

#include "base/error.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

enum { PIDS_MOST = 1 << 22, CPUS_MOST = 1 << 13 };

typedef enum event_kind { EVENT_SWITCH, EVENT_WAKEUP, EVENT_LOST } event_kind;

typedef struct scheduler_event {
    int64_t time_ns;
    size_t place; /* in which it was taken: the order of those of one time */
    event_kind kind;
    unsigned cpu;
    unsigned pid, next; /* PREV.PID and NEXT.PID; the one woken */
    unsigned program, next_program;
    bool can_run; /* the one switched out */
} scheduler_event;

static void *grown(void *list, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return list;
    *capacity = *capacity == 0 ? 64 : *capacity * 2;
    list = reallocarray(list, *capacity, size);
    NL_REQUIRE(list != NULL, "out of memory");
    return list;
}

/* ---- names ---- */

typedef struct name_place {
    char *name;
    unsigned place;
} name_place;

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const name_place *)a)->name, ((const name_place *)b)->name);
}

static unsigned program_of(scheduler *s, nl_string text)
{
    name_place *wanted = malloc(sizeof *wanted);
    NL_REQUIRE(wanted != NULL, "out of memory");
    *wanted = (name_place){strndup(text.data != NULL ? text.data : "", text.size), (unsigned)s->program_count};
    NL_REQUIRE(wanted->name != NULL, "out of memory");
    name_place **found = tsearch(wanted, &s->names, compare_names);
    NL_REQUIRE(found != NULL, "out of memory");
    if (*found != wanted) {
        free(wanted->name);
        free(wanted);
        return (*found)->place;
    }
    s->programs = reallocarray(s->programs, s->program_count + 1, sizeof *s->programs);
    NL_REQUIRE(s->programs != NULL, "out of memory");
    s->programs[s->program_count] = (scheduler_program){.name = wanted->name};
    return (unsigned)s->program_count++;
}

static void free_place(void *place)
{
    free(place); /* the name is the program's */
}

/* ---- taking ---- */

static bool number(const nl_record *record, const char *name, int64_t most, int64_t *value)
{
    nl_field field;
    return nl_record_find(record, name, &field) && nl_field_int(&field, value) && *value >= 0 && *value < most;
}

static bool text(const nl_record *record, const char *name, nl_string *value)
{
    nl_field field;
    if (!nl_record_find(record, name, &field) || field.type != NL_TYPE_STRING)
        return false;
    *value = field.string;
    return true;
}

static bool is(nl_string event, const char *name)
{
    return event.size == strlen(name) && memcmp(event.data, name, event.size) == 0;
}

static bool take_switch(scheduler *s, const nl_record *record, scheduler_event *event)
{
    /* The kernel's number for "ousted, and able to run". */
    enum { OUSTED = 0x100 };
    int64_t prev, next, state;
    nl_string prev_name, next_name;
    if (!number(record, "PREV.PID", PIDS_MOST, &prev) || !number(record, "NEXT.PID", PIDS_MOST, &next) ||
        !number(record, "PREV.STATE", INT64_MAX, &state) || !text(record, "PREV.COMM", &prev_name) ||
        !text(record, "NEXT.COMM", &next_name))
        return false;
    event->kind = EVENT_SWITCH;
    event->pid = (unsigned)prev;
    event->next = (unsigned)next;
    event->can_run = state == 0 || (state & OUSTED) != 0;
    event->program = program_of(s, prev_name);
    event->next_program = program_of(s, next_name);
    s->switches++;
    return true;
}

static bool take_wakeup(const nl_record *record, scheduler_event *event)
{
    int64_t pid;
    if (!number(record, "EV.PID", PIDS_MOST, &pid))
        return false;
    event->kind = EVENT_WAKEUP;
    event->pid = (unsigned)pid;
    return true;
}

static bool take_lost(scheduler *s, const nl_record *record, scheduler_event *event)
{
    int64_t count;
    if (!number(record, "COUNT", INT64_MAX, &count))
        return false;
    event->kind = EVENT_LOST;
    s->lost += (uint64_t)count;
    return true;
}

void scheduler_take(scheduler *s, const nl_record *record)
{
    int64_t cpu;
    scheduler_event event = {.time_ns = record->time_ns, .place = s->event_count};
    bool taken = false;
    if (is(record->event, "sched.sched_switch"))
        taken = take_switch(s, record, &event);
    else if (is(record->event, "sched.sched_wakeup") || is(record->event, "sched.sched_wakeup_new"))
        taken = take_wakeup(record, &event);
    else if (is(record->event, "NetLogger.Lost"))
        taken = take_lost(s, record, &event);
    if (!taken || !number(record, "CPU", CPUS_MOST, &cpu))
        return;
    event.cpu = (unsigned)cpu;
    if (event.cpu >= s->cpus)
        s->cpus = event.cpu + 1;
    s->events = grown(s->events, s->event_count, &s->event_capacity, sizeof *s->events);
    s->events[s->event_count++] = event;
}

/* ---- computing ---- */

static void add_duration(durations *d, int64_t ns)
{
    d->ns = grown(d->ns, d->count, &d->capacity, sizeof *d->ns);
    d->ns[d->count++] = ns;
    d->sum_ns += ns;
}

static void add_ousting(scheduler *s, unsigned victim, unsigned by)
{
    s->programs[victim].ousted++;
    for (size_t i = 0; i < s->ousting_count; i++)
        if (s->oustings[i].victim == victim && s->oustings[i].by == by) {
            scheduler_ousting found = s->oustings[i];
            found.count++;
            if (i > 0 && s->oustings[i - 1].count < found.count) { /* the frequent ones are found first */
                s->oustings[i] = s->oustings[i - 1];
                i--;
            }
            s->oustings[i] = found;
            return;
        }
    s->oustings = grown(s->oustings, s->ousting_count, &s->ousting_capacity, sizeof *s->oustings);
    s->oustings[s->ousting_count++] = (scheduler_ousting){victim, by, 1};
}

typedef struct cpu_state {
    bool known; /* which thread runs on it, and since when */
    unsigned pid;
    int64_t since_ns;
} cpu_state;

typedef struct thread_state {
    bool waits, runs;
    int64_t since_ns;
} thread_state;

typedef struct states {
    cpu_state *cpus;
    thread_state *threads; /* by number: memory that is touched where there are threads only */
    int64_t lost_ns;       /* what was before is not known any more */
} states;

static void compute_switch(scheduler *s, const scheduler_event *e, states *now)
{
    cpu_state *cpu = &now->cpus[e->cpu];
    thread_state *prev = &now->threads[e->pid], *next = &now->threads[e->next];
    if (e->pid != 0) {
        if (cpu->known && cpu->pid == e->pid)
            add_duration(&s->programs[e->program].quanta, e->time_ns - cpu->since_ns);
        *prev = (thread_state){.waits = e->can_run, .since_ns = e->time_ns};
        if (e->can_run && e->next != 0)
            add_ousting(s, e->program, e->next_program);
    }
    if (e->next != 0) {
        if (next->waits && next->since_ns >= now->lost_ns)
            add_duration(&s->programs[e->next_program].delays, e->time_ns - next->since_ns);
        *next = (thread_state){.runs = true, .since_ns = e->time_ns};
    }
    *cpu = (cpu_state){.known = true, .pid = e->next, .since_ns = e->time_ns};
}

static void compute_event(scheduler *s, const scheduler_event *e, states *now)
{
    thread_state *thread = &now->threads[e->pid];
    switch (e->kind) {
    case EVENT_SWITCH:
        compute_switch(s, e, now);
        break;
    case EVENT_WAKEUP:
        if (!thread->waits && (!thread->runs || thread->since_ns < now->lost_ns))
            *thread = (thread_state){.waits = true, .since_ns = e->time_ns};
        break;
    case EVENT_LOST:
        now->cpus[e->cpu].known = false;
        now->lost_ns = e->time_ns;
        break;
    }
}

static int order_events(const void *a, const void *b)
{
    const scheduler_event *left = a, *right = b;
    if (left->time_ns != right->time_ns)
        return left->time_ns < right->time_ns ? -1 : 1;
    return left->place < right->place ? -1 : left->place > right->place;
}

static int order_ns(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

static int order_programs(const void *a, const void *b)
{
    const scheduler_program *left = a, *right = b;
    if (left->quanta.sum_ns != right->quanta.sum_ns)
        return left->quanta.sum_ns > right->quanta.sum_ns ? -1 : 1;
    return strcmp(left->name, right->name);
}

static int order_oustings(const void *a, const void *b)
{
    const scheduler_ousting *left = a, *right = b;
    return left->count < right->count ? 1 : left->count > right->count ? -1 : 0;
}

static void sort_durations(durations *d)
{
    if (d->count > 0)
        qsort(d->ns, d->count, sizeof *d->ns, order_ns);
}

/* Puts programs and oustings in the order in which they are told. */
static void put_in_order(scheduler *s)
{
    unsigned *places = calloc(s->program_count + 1, sizeof *places);
    char **names = calloc(s->program_count + 1, sizeof *names);
    NL_REQUIRE(places != NULL && names != NULL, "out of memory");
    for (size_t i = 0; i < s->program_count; i++) {
        names[i] = s->programs[i].name;
        sort_durations(&s->programs[i].quanta);
        sort_durations(&s->programs[i].delays);
    }
    if (s->program_count > 0)
        qsort(s->programs, s->program_count, sizeof *s->programs, order_programs);
    for (size_t i = 0; i < s->program_count; i++)
        for (unsigned j = 0; j < s->program_count; j++)
            if (names[j] == s->programs[i].name)
                places[j] = (unsigned)i;
    for (size_t i = 0; i < s->ousting_count; i++) {
        s->oustings[i].victim = places[s->oustings[i].victim];
        s->oustings[i].by = places[s->oustings[i].by];
    }
    if (s->ousting_count > 0)
        qsort(s->oustings, s->ousting_count, sizeof *s->oustings, order_oustings);
    free(places);
    free(names);
}

void scheduler_compute(scheduler *s)
{
    states now = {.cpus = calloc(CPUS_MOST, sizeof *now.cpus),
                  .threads = calloc(PIDS_MOST, sizeof *now.threads),
                  .lost_ns = INT64_MIN};
    NL_REQUIRE(now.cpus != NULL && now.threads != NULL, "out of memory");
    if (s->event_count > 0) {
        qsort(s->events, s->event_count, sizeof *s->events, order_events);
        s->from_ns = s->events[0].time_ns;
        s->to_ns = s->events[s->event_count - 1].time_ns;
    }
    for (size_t i = 0; i < s->event_count; i++)
        compute_event(s, &s->events[i], &now);
    free(now.cpus);
    free(now.threads);
    put_in_order(s);
}

int64_t durations_at(const durations *d, double share)
{
    if (d->count == 0)
        return 0;
    size_t at = (size_t)(share * (double)d->count + 0.999999);
    return d->ns[at == 0 ? 0 : at > d->count ? d->count - 1 : at - 1];
}

void scheduler_free(scheduler *s)
{
    tdestroy(s->names, free_place);
    for (size_t i = 0; i < s->program_count; i++) {
        free(s->programs[i].name);
        free(s->programs[i].quanta.ns);
        free(s->programs[i].delays.ns);
    }
    free(s->programs);
    free(s->oustings);
    free(s->events);
    *s = (scheduler){0};
}
