#include "config.h"

#include "stat/subject_options.h"

#include "stat/gather.h"

#define DEFAULT_MEMORY ((size_t)1 << 30)

enum { OPTION_FROM = 0x2000, OPTION_TO, OPTION_MEMORY };

static const struct argp_option options[] = {
    {"id", 'i', "FIELD,...", 0, "The fields that name an object (default: found from the log)", 0},
    {"config", 'c', "FILE", 0, "Take the lifelines from an nlv file", 0},
    {"from", OPTION_FROM, "TIME", 0,
     "Only records of then or later: 2026-01-31T12:00:00.5, 20260131120000.5 or seconds since 1970", 0},
    {"to", OPTION_TO, "TIME", 0, "Only records before that", 0},
    {"memory", OPTION_MEMORY, "SIZE", 0,
     "Keep at most so much of objects under way (default 1G); when there is more, those that have waited longest are "
     "measured as they are",
     0},
    {0},
};

static const struct argp_child children[] = {
    {&program_where_argp, 0, NULL, 0}, {&program_reading_argp, 0, NULL, 1}, {&program_strict_argp, 0, NULL, 1}, {0}};

static void begin(struct argp_state *state, subject_options *o)
{
    *o = (subject_options){.from_ns = INT64_MIN, .to_ns = INT64_MAX, .memory = DEFAULT_MEMORY};
    state->child_inputs[0] = &o->where;
    state->child_inputs[1] = &o->reading;
    state->child_inputs[2] = &o->reading.strict;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    subject_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        begin(state, o);
        return 0;
    case 'i':
        g_strfreev(o->ids);
        o->ids = g_strsplit(argument, ",", 0);
        if (*argument == '\0')
            argp_error(state, "--id needs a field's name");
        return 0;
    case 'c':
        o->config = argument;
        return 0;
    case OPTION_FROM:
        o->from_ns = program_parse_time(state, argument);
        return 0;
    case OPTION_TO:
        o->to_ns = program_parse_time(state, argument);
        return 0;
    case OPTION_MEMORY:
        if (!nl_size_parse(argument, &o->memory) || o->memory < 1 << 20)
            argp_error(state, "--memory %s: a size of at least 1M, such as 500M, is wanted", argument);
        return 0;
    case ARGP_KEY_END:
        if (o->from_ns >= o->to_ns)
            argp_error(state, "--from is not before --to");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp subject_argp = {.options = options, .parser = parse, .children = children};

size_t subject_steps(const subject_options *o)
{
    return o->memory / 2 / sizeof(gather_step);
}

bool subject_read(subject_options *o, const char *source, void (*take)(void *user, const nl_record *record), void *user)
{
    o->reading.ranged = o->from_ns != INT64_MIN || o->to_ns != INT64_MAX;
    o->reading.from_ns = o->from_ns;
    o->reading.to_ns = o->to_ns;
    program_log *log = program_log_open(&o->reading, source, false, false);
    if (log == NULL)
        return false;
    const nl_record *record;
    nl_status status;
    while ((status = program_log_next(log, o->where, &record)) == NL_OK)
        if (record->time_ns >= o->from_ns && record->time_ns < o->to_ns)
            take(user, record);
    program_log_close(log);
    return status != NL_FAILED;
}

bool subject_options_finish(subject_options *o)
{
    g_strfreev(o->ids);
    nl_filter_free(o->where);
    return program_reading_finish(&o->reading) == PROGRAM_DONE;
}
