#include "config.h"

#include "model/filters.h"

#include "base/error.h"

void filters_free(filters *f)
{
    if (f == NULL)
        return;
    g_free(f->text);
    request_filter_free(f->requests);
    g_free(f->requests_text);
    nl_filter_free(f->shown);
    nl_filter_free(f->direct);
    g_free(f);
}

/* Parses the expression of the first step. Sets *is_of_records to whether it is an expression on records. Returns false
 * and sets the error if the expression is invalid. */
static bool parse_selects(filters *f, const char *expression, bool *is_of_records)
{
    *is_of_records = !request_filter_selects_requests(expression);
    nl_filter *on_records = *is_of_records ? nl_filter_parse(expression) : NULL;
    if (*is_of_records && on_records == NULL) /* unbalanced parentheses would become valid inside any() */
        return false;
    nl_filter_free(on_records);
    f->requests_text = *is_of_records ? g_strdup_printf("any(%s)", expression) : g_strdup(expression);
    return request_filter_narrow(&f->requests, f->requests_text);
}

static char *join(const char *selects, const char *shows)
{
    if (selects != NULL && shows != NULL)
        return g_strdup_printf("(%s) && %s", selects, shows);
    return g_strdup(selects != NULL ? selects : shows);
}

filters *filters_parse(const char *selects, const char *shows)
{
    filters *f = g_new0(filters, 1);
    bool is_of_records = true, good = selects == NULL || parse_selects(f, selects, &is_of_records);
    if (good && shows != NULL)
        good = (f->shown = nl_filter_parse(shows)) != NULL;
    char *both = join(selects, shows);
    if (good && is_of_records)
        good = (f->direct = nl_filter_parse(both)) != NULL;
    f->text = f->direct != NULL ? g_strdup(nl_filter_text(f->direct)) : g_strdup(both);
    g_free(both);
    if (good)
        return f;
    filters_free(f);
    return NULL;
}

bool filters_accept(const char *selects)
{
    filters *f = filters_parse(selects, NULL);
    filters_free(f);
    return f != NULL;
}
