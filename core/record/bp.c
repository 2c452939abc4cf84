#include "config.h"

#include "base/time_internal.h"
#include "record/bp.h"
#include "base/level.h"
#include "record/logfmt.h"

#include <string.h>

static nl_member member(const char *name, size_t size)
{
    switch (size) {
    case 2:
        return memcmp(name, "ts", 2) == 0 ? NL_MEMBER_TIME : NL_MEMBER_NONE;
    case 4:
        return memcmp(name, "host", 4) == 0   ? NL_MEMBER_HOST
               : memcmp(name, "prog", 4) == 0 ? NL_MEMBER_PROG
                                              : NL_MEMBER_NONE;
    case 5:
        return memcmp(name, "event", 5) == 0   ? NL_MEMBER_EVENT
               : memcmp(name, "level", 5) == 0 ? NL_MEMBER_LEVEL
                                               : NL_MEMBER_NONE;
    }
    return NL_MEMBER_NONE;
}

/* A date and the T after it; or, where only a field's start could be, today's ten digits of seconds and a point. */
static bool starts_record(const char *value, const char *end, bool within)
{
    size_t size = (size_t)(end - value);
    if (size < 11)
        return false;
    if (nl_digits(value, 5) == 4 && value[4] == '-' && nl_digits(value + 5, 3) == 2 && value[7] == '-' &&
        nl_digits(value + 8, 3) == 2 && value[10] == 'T')
        return true;
    return !within && nl_digits(value, 11) == 10 && value[10] == '.';
}

/* Nearly all lines have event= after a time of 27 bytes, which takes little to see. */
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
    .member = member,
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
    .description = "NetLogger 4's text, ts=... event=...",
    .suffix = ".bp",
    .suffix_is_format = true,
    .media_type = "text/plain; charset=utf-8",
    .text = &nl_bp,
};
