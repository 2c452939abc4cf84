/*
 * BP, the "Best Practices" format of NetLogger 4:
 *
 *   ts=2012-03-14T14:04:46.000000Z event=stampede.wf.plan level=Info dax.label=montage argv="-x 0.9 \"a b\""
 *
 * ts is an ISO 8601 time, written in UTC with Z; decimal seconds since 1970 are also accepted.
 */
#include "config.h"

#include "base/time_internal.h"
#include "record/text.h"
#include "base/level.h"

#include <string.h>

/*
 * Returns whether the value begins with a date followed by T. At the start of a field, also accepts ten digits
 * (seconds) followed by a point.
 */
static bool starts_record(const char *value, const char *end, bool within)
{
    size_t size = (size_t)(end - value);
    if (size < 11)
        return false;
    if (nl_text_begins_with_day(value, end) && value[10] == 'T')
        return true;
    return !within && nl_digits(value, 11) == 10 && value[10] == '.';
}

/* Most lines have event= after a time of 27 bytes. The function checks this position first, because that is fast. */
static bool confirm(const char *line, const char *end)
{
    enum { DAY_END = 13, TIME_END = 30, EVENT_END = 37 };
    if (end - line >= EVENT_END && line[DAY_END] == 'T' && memcmp(line + TIME_END, " event=", 7) == 0)
        return true;
    return starts_record(line + 3, end, false) && !nl_logfmt_claims_ts(line, end);
}

static bool bp_detect(const nl_text_format *format, const char *line, const char *end, nl_text_place where)
{
    return nl_text_has_time(format, line, end, where) && !nl_logfmt_claims_ts(line, end);
}

const nl_text_format nl_bp = {
    .format = NL_FORMAT_BP,
    .begins = "ts=",
    .begins_mask = "\xff\xff\xff",
    .confirm = confirm,
    .iso_time = true,
    .names =
        {
            [NL_MEMBER_TIME] = {"ts", 2},
            [NL_MEMBER_HOST] = {"host", 4},
            [NL_MEMBER_PROG] = {"prog", 4},
            [NL_MEMBER_LEVEL] = {"level", 5},
            [NL_MEMBER_EVENT] = {"event", 5},
        },
    .order = {NL_MEMBER_TIME, NL_MEMBER_EVENT, NL_MEMBER_LEVEL, NL_MEMBER_HOST, NL_MEMBER_PROG},
    .no_time = "no ts= field",
    .hex_escape = "\\x",
    .parse_time = nl_time_parse,
    .put_time = nl_time_put_iso,
    .level_name = nl_level_bp_name,
    .starts_record = starts_record,
    .detect = bp_detect,
    .decode = nl_text_decode_fields,
};

const nl_format_info nl_bp_info = {
    .format = NL_FORMAT_BP,
    .name = "bp",
    .description = "NetLogger 4 text: ts=... event=...",
    .suffix = ".bp",
    .suffix_is_format = true,
    .media_type = "text/plain; charset=utf-8",
    .only_pairs = true,
    .text = &nl_bp,
};
