#include "config.h"

#include "model/compare_query.h"

#include "base/error.h"
#include "filter/filter.h"

#include <string.h>

static const char *const log_prefix = "log:";

void compare_query_free(compare_query *q)
{
    if (q == NULL)
        return;
    for (unsigned i = 0; i < COMPARED_SIDES; i++) {
        g_free(q->sides[i].name);
        g_free(q->sides[i].log);
        request_filter_free(q->sides[i].where);
    }
    g_free(q);
}

/* Sets the requests that an expression selects or, if `excludes` is true, the others. */
static bool parse_side(compare_query_side *side, const char *expression, bool excludes)
{
    side->name = excludes ? g_strdup("the other requests") : g_strdup(expression);
    side->excludes = excludes;
    if (g_str_has_prefix(expression, log_prefix)) {
        side->log = g_strdup(expression + strlen(log_prefix));
        return true;
    }
    const bool is_of_requests = request_filter_selects_requests(expression);
    if (!is_of_requests) { /* an unbalanced parenthesis could become valid inside any() */
        nl_filter *records = nl_filter_parse(expression);
        if (records == NULL)
            return false;
        nl_filter_free(records);
    }
    char *where = g_strdup_printf("%s%s(%s)", excludes ? "!" : "", is_of_requests ? "" : "any", expression);
    const bool good = request_filter_narrow(&side->where, where);
    g_free(where);
    return good;
}

compare_query *compare_query_parse(const char *first, const char *second)
{
    compare_query *q = g_new0(compare_query, 1);
    const bool has_first = first != NULL && *first != '\0', has_second = second != NULL && *second != '\0';
    if (!has_first && !has_second) {
        q->is_by_position = true;
        q->sides[0].name = g_strdup("the first log");
        q->sides[1].name = g_strdup("the second log");
        return q;
    }
    const bool good = parse_side(&q->sides[0], has_first ? first : second, !has_first) &&
                      parse_side(&q->sides[1], has_second ? second : first, !has_second);
    if (good)
        return q;
    compare_query_free(q);
    return NULL;
}
