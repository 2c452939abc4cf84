/* The options --where, --since and --until. Each option adds a condition to one filter. */
#include "config.h"

#include "program/program.h"
#include "filter/filter.h"
#include "base/error.h"

#include <stdlib.h>

bool program_filter_narrow(nl_filter **filter, const char *expression)
{
    nl_filter *narrower = nl_filter_parse(expression);
    if (narrower != NULL && *filter != NULL) {
        char *both = program_format("(%s) && (%s)", nl_filter_text(*filter), nl_filter_text(narrower));
        nl_filter_free(narrower);
        narrower = nl_filter_parse(both);
        free(both);
    }
    if (narrower == NULL)
        return false;
    nl_filter_free(*filter);
    *filter = narrower;
    return true;
}

static bool where_set_expression(void *settings, const nl_option *row, const char *value)
{
    (void)row;
    return program_filter_narrow(&((program_where *)settings)->filter, value);
}

static bool where_set_time(void *settings, const nl_option *row, const char *value)
{
    program_where *w = settings;
    char condition[32 + NL_TIME_TEXT_SIZE], time[NL_TIME_TEXT_SIZE];
    if (!w->ranged) {
        w->since_ns = INT64_MIN;
        w->until_ns = INT64_MAX;
        w->ranged = true;
    }
    if (!nl_option_set_by_type(row, w, value))
        return false;
    if (w->since_ns >= w->until_ns) {
        return nl_error_false(NL_ERROR_INVALID, "the range is empty; --since must be before --until");
    }
    bool is_since = row->offset == offsetof(program_where, since_ns);
    nl_time_format_ulm(is_since ? w->since_ns : w->until_ns, time);
    snprintf(condition, sizeof condition, "DATE %s %s", is_since ? ">=" : "<", time);
    return program_filter_narrow(&w->filter, condition);
}

const nl_option program_where_options[] = {
    {.name = "where",
     .value = "EXPRESSION",
     .repeatable = true,
     .set = where_set_expression,
     .help = "Use only records that match EXPRESSION, such as 'NL.EVNT == Read && SIZE > 65536 || PROG ~ \"dpss*\"'; "
             "doc/expressions.md describes the language"},
    {.name = "since",
     .type = NL_OPTION_TIME,
     .set = where_set_time,
     NL_OPTION_MEMBER(program_where, since_ns),
     .help = "Use only records at or after TIME: 2026-01-31T12:00:00.5, 20260131120000.5, seconds since 1970, or -10m "
             "for ten minutes ago"},
    {.name = "until",
     .type = NL_OPTION_TIME,
     .set = where_set_time,
     NL_OPTION_MEMBER(program_where, until_ns),
     .help = "Use only records before TIME"},
    {0},
};
