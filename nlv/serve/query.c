#include "config.h"

#include "serve/query.h"

#include "base/error.h"
#include "base/option.h"
#include "model/color_filter.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Limit of times, so that the additions and subtractions of drawing cannot overflow. */
static const int64_t time_max_ns = INT64_MAX / 2;

enum { VIEW_MIN_NS = 100 };

static bool set_nanoseconds(void *settings, const nl_option *row, const char *value)
{
    query *q = settings;
    char *end;
    errno = 0;
    const long long number = strtoll(value, &end, 10);
    if (end == value || isspace((unsigned char)*value) || *end != '\0' || errno != 0 || number > time_max_ns ||
        number < -time_max_ns)
        return nl_error_false(NL_ERROR_INVALID, "not a time in nanoseconds");
    *(int64_t *)(void *)((char *)settings + row->offset) = number;
    q->has_from |= row->offset == offsetof(query, from_ns);
    q->has_to |= row->offset == offsetof(query, to_ns);
    q->has_step |= row->offset == offsetof(query, step_ns);
    return true;
}

static bool set_search_text(void *settings, const nl_option *row, const char *value)
{
    if (strlen(value) >= QUERY_TEXT_SIZE)
        return nl_error_false(NL_ERROR_INVALID, "the text is too long");
    strcpy((char *)settings + row->offset, value);
    return true;
}

static bool set_tracks(void *settings, const nl_option *row, const char *value)
{
    if (strlen(value) >= TRACK_SET_TEXT_SIZE)
        return nl_error_false(NL_ERROR_INVALID, "the text is too long");
    strcpy((char *)settings + row->offset, value);
    return true;
}

#define TIME(row_name, member)                                                                                         \
    {                                                                                                                  \
        .name = (row_name), .set = set_nanoseconds, NL_OPTION_MEMBER(query, member)                                    \
    }
#define COUNT(row_name, member, min, max, default_text)                                                                \
    {                                                                                                                  \
        .name = (row_name), .type = NL_OPTION_COUNT, .minimum = (min), .maximum = (max), .initial = (default_text),    \
        NL_OPTION_MEMBER(query, member)                                                                                \
    }
#define FLAG(row_name, member)                                                                                         \
    {                                                                                                                  \
        .name = (row_name), .type = NL_OPTION_FLAG, NL_OPTION_MEMBER(query, member)                                    \
    }

static const nl_option parameters[] = {
    TIME("from", from_ns),
    TIME("to", to_ns),
    TIME("step", step_ns),
    COUNT("place", place, 0, INT64_MAX, "0"),
    COUNT("lifeline", lifeline, 0, 255, "0"),
    COUNT("width", width, 100, QUERY_SIDE_MAX, "1200"),
    COUNT("height", height, 50, QUERY_SIDE_MAX, "800"),
    COUNT("scale", scale, 1, 3, "1"),
    COUNT("top", top, 0, 1 << 20, "0"),
    COUNT("x", x, 0, QUERY_SIDE_MAX, "0"),
    COUNT("y", y, 0, 1 << 20, "0"),
    COUNT("end-x", end_x, 0, QUERY_SIDE_MAX, "0"),
    COUNT("end-y", end_y, 0, QUERY_SIDE_MAX, "0"),
    COUNT("shortest", shortest_ns, 0, INT64_MAX, "0"),
    COUNT("longest", longest_ns, 0, INT64_MAX, "9223372036854775807"),
    COUNT("rows", rows, 1, QUERY_ROWS_MAX, "100"),
    COUNT("color", color, 0, COLOR_FILTER_MAX, "0"),
    {.name = "sort",
     .type = NL_OPTION_CHOICE,
     .choices = "start|duration|slowest|share|position|hosts|error", /* in the order of request_column */
     .initial = "duration",
     NL_OPTION_MEMBER(query, sort)},
    FLAG("descending", descending),
    FLAG("errors", only_errors),
    FLAG("dark", is_dark),
    FLAG("coarse", is_coarse),
    FLAG("threads", shows_threads),
    COUNT("scroll", scroll, 0, 1 << 24, "0"),
    COUNT("track", track, 0, UINT32_MAX, "0"),
    {.name = "action",
     .type = NL_OPTION_CHOICE,
     .choices = "find|toggle|pin|next|previous|expand", /* in the order of track_action */
     .initial = "find",
     NL_OPTION_MEMBER(query, action)},
    {.name = "clock",
     .type = NL_OPTION_CHOICE,
     .choices = "utc|local|relative", /* in the order of axis_clock */
     .initial = "utc",
     NL_OPTION_MEMBER(query, clock)},
    {.name = "collapsed", .empty_value = true, .set = set_tracks, NL_OPTION_MEMBER(query, collapsed)},
    {.name = "expanded", .empty_value = true, .set = set_tracks, NL_OPTION_MEMBER(query, expanded)},
    {.name = "pinned", .empty_value = true, .set = set_tracks, NL_OPTION_MEMBER(query, pinned)},
    {.name = "text", .empty_value = true, .set = set_search_text, NL_OPTION_MEMBER(query, text)},
    {.name = "other", .empty_value = true, .set = set_search_text, NL_OPTION_MEMBER(query, other)},
    {0},
};

void query_init(query *q)
{
    *q = (query){.from_ns = -time_max_ns, .to_ns = time_max_ns};
    nl_options_init(parameters, q); /* the defaults are valid */
}

bool query_set(query *q, const char *name, const char *value)
{
    const nl_option *row = nl_option_find(parameters, name);
    if (row == NULL)
        return nl_error_false(NL_ERROR_INVALID, "unknown parameter \"%.40s\"", name);
    if (nl_option_set(row, q, value))
        return true;
    nl_error_prepend("parameter %s", row->name);
    return false;
}

bool query_finish(const query *q)
{
    if ((uint64_t)q->width * q->height * q->scale * q->scale > QUERY_PIXELS_MAX)
        return nl_error_false(NL_ERROR_LIMIT, "the picture is too large");
    if (q->to_ns - q->from_ns < VIEW_MIN_NS)
        return nl_error_false(NL_ERROR_INVALID, "the time from \"from\" to \"to\" is too short");
    return true;
}
