/*
 * ULM, the Universal Format for Logger Messages (draft-abela-ulm-05), as NetLogger uses it:
 *
 *   DATE=20000330112320.957943 HOST=dpss1.lbl.gov PROG=testProg LVL=Usage NL.EVNT=WriteData SEND.SZ=49332
 *
 * DATE is in UTC, with 0 to 9 fractional digits; further digits are ignored. ISO 8601 times are also accepted.
 */
#include "config.h"

#include "record/format.h"
#include "base/time_internal.h"
#include "record/bytes.h"
#include "record/text.h"

/* Returns whether the value begins with 14 digits and an optional fraction, followed by a blank or the end. */
static bool starts_record(const char *value, const char *end, bool within)
{
    (void)within;
    if (nl_digits(value, end - value < 15 ? (size_t)(end - value) : 15) != 14)
        return false;
    value += 14;
    if (value < end && *value == '.')
        value += 1 + nl_digits(value + 1, (size_t)(end - value - 1));
    return value == end || nl_byte_is_blank(*value);
}

const nl_text_format nl_ulm = {
    .format = NL_FORMAT_ULM,
    .begins = "DATE=",
    .begins_mask = "\xff\xff\xff\xff\xff",
    .names =
        {
            [NL_MEMBER_TIME] = {"DATE", 4},
            [NL_MEMBER_HOST] = {"HOST", 4},
            [NL_MEMBER_PROG] = {"PROG", 4},
            [NL_MEMBER_LEVEL] = {"LVL", 3},
            [NL_MEMBER_EVENT] = {"NL.EVNT", 7},
        },
    .order = {NL_MEMBER_TIME, NL_MEMBER_HOST, NL_MEMBER_PROG, NL_MEMBER_LEVEL, NL_MEMBER_EVENT},
    .no_time = "no DATE= field",
    .hex_escape = "\\x",
    .parse_time = nl_time_parse_calendar,
    .put_time = nl_time_put_ulm,
    .level_name = nl_level_name,
    .starts_record = starts_record,
    .detect = nl_text_has_time,
    .decode = nl_text_decode_fields,
};

const nl_format_info nl_ulm_info = {
    .format = NL_FORMAT_ULM,
    .name = "ulm",
    .description = "NetLogger text: DATE=... HOST=... (a log may mix ulm, bp, logfmt and nlb)",
    .suffix = ".log",
    .media_type = "text/plain; charset=utf-8",
    .only_pairs = true,
    .text = &nl_ulm,
};
