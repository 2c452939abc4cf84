#include "config.h"

#include "model/compare_query.h"

#include "base/error.h"
#include "model/filters.h"

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
    g_free(q->filter);
    g_free(q);
}

/*
 * Sets a side to the requests that an expression or log:NAME selects. If `excludes` is true, sets the side to all other
 * requests. Returns false and sets the error if the expression is invalid.
 */
static bool parse_side(compare_query_side *side, const char *expression, bool excludes)
{
    side->name = excludes ? g_strdup("the other requests") : g_strdup(expression);
    side->excludes = excludes;
    if (g_str_has_prefix(expression, log_prefix)) {
        side->log = g_strdup(expression + strlen(log_prefix));
        return true;
    }
    if (!filters_accept(expression)) /* check the expression alone, because unbalanced parentheses could become valid
                                        inside other parentheses */
        return false;
    char *where = g_strdup_printf("%s%s(%s)", excludes ? "!" : "",
                                  request_filter_selects_requests(expression) ? "" : "any", expression);
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

bool compare_query_narrow(compare_query *q, const filters *f)
{
    if (f == NULL || f->requests_text == NULL)
        return true;
    q->filter = g_strdup(f->text);
    return request_filter_narrow(&q->sides[0].where, f->requests_text) &&
           request_filter_narrow(&q->sides[1].where, f->requests_text);
}
