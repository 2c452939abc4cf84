#include "config.h"

#include "base/time_internal.h"
#include "record/bp.h"
#include "base/level.h"

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

const nl_text_format nl_bp = {
    .format = NL_FORMAT_BP,
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
    .member = member,
    .parse_time = nl_time_parse,
    .put_time = nl_time_put_iso,
    .level_name = nl_level_bp_name,
    .starts_record = starts_record,
};
