#include "config.h"

#include "stat/subject.h"

#include "record/format.h"
#include "requests/infer.h"

#include <string.h>

enum { SAMPLE_RECORDS_MAX = 100000, SAMPLE_FIELDS_MAX = 1 << 20, SAMPLE_SIZE_MAX = 64 << 20 /* bytes */ };

struct subject {
    subject_options *options;
    subject_user user;
    drawing *drawing; /* NULL until it is known */
    nl_buffer sample; /* until then: for each record its size, uint32_t, and what nl_record_pack made of it */
    uint64_t record_count;
    uint64_t field_count; /* of the sample */
};

/* ---- options ---- */

static bool subject_set_ids(void *settings, const nl_option *row, const char *value)
{
    (void)row;
    subject_options *o = settings;
    g_strfreev(o->ids);
    o->ids = g_strsplit(value, ",", 0);
    return true;
}

const nl_option subject_option_rows[] = {
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
     .initial = "512m",
     .minimum = 1 << 20,
     NL_OPTION_MEMBER(subject_options, memory_max),
     .help = "Maximum memory for requests; see the manual page for what happens beyond it"},
    {0},
};

bool subject_options_finish(subject_options *o)
{
    g_strfreev(o->ids);
    nl_filter_free(o->where.filter);
    return program_reading_finish(&o->reading) == PROGRAM_DONE;
}

/* ---- the sample ---- */

/* Calls take for each record of the sample. */
static void sample_walk(const subject *s, void (*take)(void *user, const nl_record *record), void *user)
{
    nl_record *record = nl_record_new();
    uint32_t size;
    for (size_t at = 0; at < s->sample.size; at += size) {
        memcpy(&size, s->sample.data + at, sizeof size);
        at += sizeof size;
        if (nl_record_unpack(record, s->sample.data + at, size) == NL_OK)
            take(user, record);
    }
    nl_record_free(record);
}

/* Returns false if the record is too large. */
static bool sample_add(subject *s, const nl_record *record)
{
    size_t begin = s->sample.size;
    uint32_t size = 0;
    nl_buffer_append(&s->sample, &size, sizeof size);
    if (!nl_record_pack(record, &s->sample)) {
        s->sample.size = begin;
        return false;
    }
    size = (uint32_t)(s->sample.size - begin - sizeof size);
    memcpy(s->sample.data + begin, &size, sizeof size);
    s->field_count += record->field_count;
    return true;
}

static void trace_take(void *user, const nl_record *record)
{
    trace_add(user, record);
}

static void find_drawing(subject *s)
{
    trace *t = trace_new();
    sample_walk(s, trace_take, t);
    trace_sort(t);
    s->drawing = infer_drawing_by(t, (const char *const *)s->options->ids);
    trace_free(t);
}

void subject_settle(subject *s)
{
    if (s->drawing != NULL)
        return;
    find_drawing(s);
    s->user.begin(s->user.user, s->drawing);
    sample_walk(s, s->user.take, s->user.user);
    nl_buffer_free(&s->sample);
}

/* ---- reading ---- */

static void subject_add(subject *s, const nl_record *record)
{
    s->record_count++;
    if (s->drawing == NULL) {
        bool fits = sample_add(s, record);
        if (!fits || s->record_count == SAMPLE_RECORDS_MAX || s->field_count >= SAMPLE_FIELDS_MAX ||
            s->sample.size >= SAMPLE_SIZE_MAX)
            subject_settle(s);
        if (fits)
            return;
    }
    s->user.take(s->user.user, record);
}

bool subject_read(subject *s, const char *source)
{
    subject_options *o = s->options;
    o->reading.ranged = o->where.ranged;
    o->reading.from_ns = o->where.since_ns;
    o->reading.to_ns = o->where.until_ns;
    program_log *log = program_log_open(&o->reading, source, false, false);
    if (log == NULL)
        return false;
    const nl_record *record;
    nl_status status;
    while ((status = program_log_next(log, o->where.filter, &record)) == NL_OK)
        subject_add(s, record);
    program_log_close(log);
    return status != NL_FAILED;
}

bool subject_has_records(const subject *s)
{
    return program_has_records(&s->options->reading, s->record_count, "");
}

/* ---- life ---- */

subject *subject_new(subject_options *options, subject_user user)
{
    subject *s = g_new0(subject, 1);
    s->options = options;
    s->user = user;
    if (options->config != NULL) {
        s->drawing = drawing_read(options->config);
        if (s->drawing == NULL)
            program_fail(PROGRAM_PROBLEM, "%s", nl_error_message());
        user.begin(user.user, s->drawing);
    }
    return s;
}

void subject_free(subject *s)
{
    if (s == NULL)
        return;
    drawing_free(s->drawing);
    nl_buffer_free(&s->sample);
    g_free(s);
}
