#include "config.h"

#include "stat/subject.h"

#include "base/error.h"
#include "record/format.h"
#include "record/text.h"
#include "requests/record_sample.h"
#include "stat/repeated_sources.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct subject {
    subject_options *options;
    subject_user user;
    drawing *drawing;     /* NULL if the lifelines are not known yet */
    record_sample sample; /* records that wait until the lifelines are known */
    uint64_t record_count;
    repeated_sources *repeats; /* NULL if there is only one source */
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

static bool subject_set_where(void *settings, const nl_option *row, const char *value)
{
    (void)row;
    subject_options *o = settings;
    if (request_filter_selects_requests(value))
        return request_filter_narrow(&o->requests, value);
    const bool good = program_filter_narrow(&o->where.filter, value);
    if (!good && strncasecmp(value, "request.", strlen("request.")) == 0)
        nl_error_prepend("the only value of a request is request.duration");
    return good;
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
     .help = "Maximum memory for requests; if the limit is reached, the report states the effect"},
    {.name = "where",
     .value = "EXPRESSION",
     .repeatable = true,
     .set = subject_set_where,
     .help = "Use only records or requests that match EXPRESSION. 'NL.EVNT == Read && SIZE > 65536 || PROG ~ "
             "\"dpss*\"' selects records. 'request.duration > 50ms && any(STATUS >= 500)' and 'span(\"Query\").self > "
             "10ms' select whole requests. See doc/expressions.md and nlstat(1)"},
    {0},
};

const char *subject_reason_no_requests(subject_options *o)
{
    if (o->requests != NULL)
        return "no request matches --where";
    if (o->config != NULL)
        return "no record belongs to a lifeline of --config";
    if (!o->has_events)
        return "the records have no event names; log the name in the field event";
    if (o->ids == NULL)
        return "cannot find a request ID field; name one with --id, or log a request ID (TRACE.ID) with every event";
    char *absent = absent_fields_describe(o->absent_ids);
    free(o->reason);
    o->reason = program_format("no two events have the same values in the fields of --id%s", absent);
    free(absent);
    return o->reason;
}

bool subject_options_finish(subject_options *o)
{
    g_strfreev(o->ids);
    absent_fields_free(o->absent);
    absent_fields_free(o->absent_ids);
    free(o->repeated);
    free(o->reason);
    nl_filter_free(o->where.filter);
    request_filter_free(o->requests);
    return program_reading_finish(&o->reading) == PROGRAM_DONE;
}

/* ---- the sample ---- */

static void find_drawing(subject *s)
{
    s->drawing = record_sample_infer(&s->sample, (const char *const *)s->options->ids);
}

void subject_settle(subject *s)
{
    if (s->drawing != NULL)
        return;
    find_drawing(s);
    s->user.begin(s->user.user, s->drawing);
    record_sample_walk(&s->sample, s->user.take, s->user.user);
    record_sample_free(&s->sample);
}

/* ---- reading ---- */

void subject_add(subject *s, const nl_record *record)
{
    s->record_count++;
    if (s->drawing == NULL) {
        bool fits = record_sample_add(&s->sample, record);
        if (!fits || record_sample_is_full(&s->sample))
            subject_settle(s);
        if (fits)
            return;
    }
    s->user.take(s->user.user, record);
}

/* Returns the ID fields, except standard fields, which every record has. */
static absent_fields *new_absent_ids(const char *const *ids)
{
    const nl_text_format *text = nl_format_get_info(NL_FORMAT_ULM)->text;
    absent_fields *absent = absent_fields_new();
    for (; *ids != NULL; ids++)
        if (nl_text_member(text, *ids, strlen(*ids)) == NL_MEMBER_NONE)
            absent_fields_add_name(absent, (nl_string){*ids, strlen(*ids)});
    return absent;
}

bool subject_read_records(subject_options *o, const char *source, void (*take)(void *user, const nl_record *record),
                          void *user, uint64_t *count)
{
    o->reading.ranged = o->where.ranged;
    o->reading.from_ns = o->where.since_ns;
    o->reading.to_ns = o->where.until_ns;
    program_log *log = program_log_open(&o->reading, source, false, false);
    if (log == NULL)
        return false;
    const nl_record *record;
    nl_status status;
    if (o->requests != NULL && o->absent == NULL) {
        o->absent = absent_fields_new();
        request_filter_add_fields(o->requests, o->absent);
    }
    if (o->ids != NULL && o->absent_ids == NULL)
        o->absent_ids = new_absent_ids((const char *const *)o->ids);
    while ((status = program_log_next(log, o->where.filter, &record)) == NL_OK) {
        ++*count;
        o->has_events |= record->event.size > 0;
        if (o->absent_ids != NULL)
            absent_fields_look(o->absent_ids, record);
        if (o->absent != NULL)
            absent_fields_look(o->absent, record);
        take(user, record);
    }
    program_log_close(log);
    return status != NL_FAILED;
}

static void subject_take(void *user, const nl_record *record)
{
    subject *s = user;
    if (s->repeats != NULL)
        repeated_sources_add(s->repeats, record);
    subject_add(s, record);
}

bool subject_read(subject *s, const char *source)
{
    uint64_t count = 0; /* not used, because subject_add counts the records */
    if (s->repeats != NULL)
        repeated_sources_begin(s->repeats, source);
    bool ok = subject_read_records(s->options, source, subject_take, s, &count);
    if (s->repeats != NULL && s->options->repeated == NULL)
        s->options->repeated = repeated_sources_describe(s->repeats);
    return ok;
}

bool subject_has_records(const subject *s)
{
    return program_has_records(&s->options->reading, s->record_count, "");
}

/* ---- creation and destruction ---- */

subject *subject_new(subject_options *options, subject_user user)
{
    subject *s = g_new0(subject, 1);
    s->options = options;
    s->user = user;
    if (options->has_sources)
        s->repeats = repeated_sources_new();
    if (options->config != NULL) {
        s->drawing = drawing_read(options->config);
        if (s->drawing == NULL)
            program_fail_with_error(PROGRAM_PROBLEM);
        user.begin(user.user, s->drawing);
    }
    return s;
}

void subject_free(subject *s)
{
    if (s == NULL)
        return;
    drawing_free(s->drawing);
    record_sample_free(&s->sample);
    repeated_sources_free(s->repeats);
    g_free(s);
}
