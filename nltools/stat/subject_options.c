#include "config.h"

#include "stat/subject_options.h"

#include "stat/gather.h"

static bool subject_set_ids(void *settings, const nl_option *row, const char *value)
{
    (void)row;
    subject_options *o = settings;
    g_strfreev(o->ids);
    o->ids = g_strsplit(value, ",", 0);
    return true;
}

const nl_option subject_own_options[] = {
    {.name = "id",
     .value = "FIELD,...",
     .initial = "(detected in the log)",
     .set = subject_set_ids,
     .help = "Fields that identify a request"},
    {.name = "config",
     .letter = 'c',
     .value = "FILE",
     NL_OPTION_MEMBER(subject_options, config),
     .help = "Read the lifelines from an nlv configuration file"},
    {.name = "memory",
     .type = NL_OPTION_SIZE,
     .initial = "1g",
     .minimum = 1 << 20,
     NL_OPTION_MEMBER(subject_options, memory),
     .help =
         "Maximum memory for incomplete requests; beyond it, the oldest incomplete requests are measured as they are"},
    {0},
};

size_t subject_steps(const subject_options *o)
{
    return o->memory / 2 / sizeof(gather_step);
}

bool subject_read(subject_options *o, const char *source, void (*take)(void *user, const nl_record *record), void *user)
{
    o->reading.ranged = o->where.ranged;
    o->reading.from_ns = o->where.since_ns;
    o->reading.to_ns = o->where.until_ns;
    program_log *log = program_log_open(&o->reading, source, false, false);
    if (log == NULL)
        return false;
    const nl_record *record;
    nl_status status;
    while ((status = program_log_next(log, o->where.filter, &record)) == NL_OK)
        take(user, record);
    program_log_close(log);
    return status != NL_FAILED;
}

bool subject_options_finish(subject_options *o)
{
    g_strfreev(o->ids);
    nl_filter_free(o->where.filter);
    return program_reading_finish(&o->reading) == PROGRAM_DONE;
}
