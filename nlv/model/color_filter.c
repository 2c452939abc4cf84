#include "config.h"

#include "model/color_filter.h"

#include <string.h>

static const char *const joint = " && ";

/* ---- expressions ---- */

const char *color_filter_field(const model *m, size_t color)
{
    const GPtrArray *lifelines = model_drawing(m)->lifelines;
    const batch_names *names = &model_store(m)->names;
    const char *text = model_color_text(m, color);
    for (guint i = 0; i < lifelines->len; i++) {
        const char *field = ((const drawing_lifeline *)g_ptr_array_index(lifelines, i))->color;
        struct names *values = strcmp(field, "HOST") == 0   ? names->hosts
                               : strcmp(field, "PROG") == 0 ? names->progs
                                                            : names->colors;
        if (names_find(values, text) != NAMES_NONE)
            return field;
    }
    return names_find(names->hosts, text) != NAMES_NONE ? "HOST" : NULL;
}

/* Returns the term of a filter that isolates or hides a color, or NULL if there is no such term. The caller frees it
 * with g_free. */
static char *term_of(const model *m, size_t color, bool hides)
{
    const char *value = model_color_text(m, color), *field = *value != '\0' ? color_filter_field(m, color) : NULL;
    if (field == NULL || strcmp(field, DRAWING_COLOR_LOG) == 0)
        return NULL;
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "%s%s == \"", hides ? "!any(" : "any(", field);
    for (; *value != '\0'; value++) {
        if (*value == '"' || *value == '\\')
            g_string_append_c(text, '\\');
        g_string_append_c(text, *value);
    }
    g_string_append(text, "\")");
    return g_string_free(text, FALSE);
}

bool color_filter_is_possible(const model *m, size_t color)
{
    char *term = term_of(m, color, false);
    const bool is = term != NULL;
    g_free(term);
    return is;
}

/* ---- the parts of a filter ---- */

typedef struct filter_parts {
    size_t count; /* number of colors */
    bool is_isolated[COLOR_FILTER_MAX], is_hidden[COLOR_FILTER_MAX];
    char *base; /* the other conditions; "": there are no others */
} filter_parts;

/* Removes a term from the end of `text`. Returns false if the text does not end with the term. */
static bool remove_term(char *text, const char *term)
{
    if (term == NULL || !g_str_has_suffix(text, term))
        return false;
    const size_t left = strlen(text) - strlen(term);
    if (left > 0 && (left < strlen(joint) || memcmp(text + left - strlen(joint), joint, strlen(joint)) != 0))
        return false;
    text[left > 0 ? left - strlen(joint) : 0] = '\0';
    return true;
}

/* Removes a color's term from the end of parts->base, and sets the color's is_hidden or is_isolated. Returns false if
 * parts->base does not end with a color's term. */
static bool take_term(const model *m, filter_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        for (int hides = 0; hides < 2; hides++) {
            char *term = term_of(m, i, hides == 1);
            const bool is_removed = remove_term(parts->base, term);
            g_free(term);
            if (!is_removed)
                continue;
            (hides == 1 ? parts->is_hidden : parts->is_isolated)[i] = true;
            return true;
        }
    return false;
}

/* Returns whether a text is in parentheses. */
static bool is_in_parentheses(const char *text)
{
    unsigned open = 0;
    if (*text != '(')
        return false;
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\'') {
            const char quote = *text;
            for (text++; *text != '\0' && *text != quote; text++)
                text += text[0] == '\\' && text[1] != '\0';
            if (*text == '\0')
                return false;
        }
        open += *text == '(';
        open -= *text == ')';
        if (open == 0)
            return text[1] == '\0';
    }
    return false;
}

/* Separates the terms of colors from the other conditions of the model's filter. The caller frees parts->base. */
static void find_parts(const model *m, filter_parts *parts)
{
    const char *text = model_request_filter(m);
    *parts = (filter_parts){.count = MIN(model_color_count(m), COLOR_FILTER_MAX),
                            .base = g_strdup(text != NULL ? text : "")};
    bool any = false;
    while (*parts->base != '\0' && take_term(m, parts))
        any = true;
    if (!any || *parts->base == '\0')
        return;
    char *base = parts->base;
    if (is_in_parentheses(base)) {
        parts->base = g_strndup(base + 1, strlen(base) - 2);
    } else { /* these terms are the user's, and may apply only to a part of the expression */
        *parts = (filter_parts){.count = parts->count, .base = g_strdup(text)};
    }
    g_free(base);
}

static void append_terms(GString *text, const model *m, const filter_parts *parts, bool hides)
{
    const bool *is_set = hides ? parts->is_hidden : parts->is_isolated;
    for (size_t i = 0; i < parts->count; i++) {
        char *term = is_set[i] ? term_of(m, i, hides) : NULL;
        if (term != NULL)
            g_string_append_printf(text, "%s%s", text->len > 0 ? joint : "", term);
        g_free(term);
    }
}

size_t color_filter_find_hidden(const model *m, bool is_hidden[COLOR_FILTER_MAX])
{
    if (model_request_filter(m) == NULL)
        return 0;
    filter_parts parts;
    find_parts(m, &parts);
    g_free(parts.base);
    bool isolates = false;
    for (size_t i = 0; i < parts.count; i++)
        isolates = isolates || parts.is_isolated[i];
    for (size_t i = 0; i < parts.count; i++)
        is_hidden[i] = parts.is_hidden[i] || (isolates && !parts.is_isolated[i]);
    return parts.count;
}

char *color_filter_toggle(const model *m, size_t color, bool hides)
{
    filter_parts parts;
    find_parts(m, &parts);
    if (color < parts.count) {
        const bool was_set = (hides ? parts.is_hidden : parts.is_isolated)[color];
        memset(parts.is_isolated, 0, sizeof parts.is_isolated);
        if (!hides)
            memset(parts.is_hidden, 0, sizeof parts.is_hidden);
        (hides ? parts.is_hidden : parts.is_isolated)[color] = !was_set;
    }
    GString *filter = g_string_new(NULL);
    append_terms(filter, m, &parts, false);
    append_terms(filter, m, &parts, true);
    if (*parts.base == '\0' && g_str_has_prefix(filter->str, "any(") && strstr(filter->str, joint) == NULL) {
        g_string_erase(filter, 0, strlen("any(")); /* an expression on records is easier to read */
        g_string_truncate(filter, filter->len - 1);
    } else if (*parts.base != '\0') {
        const bool has_terms = filter->len > 0;
        g_string_prepend(filter, has_terms ? joint : "");
        g_string_prepend(filter, has_terms ? ")" : "");
        g_string_prepend(filter, parts.base);
        g_string_prepend(filter, has_terms ? "(" : "");
    }
    g_free(parts.base);
    return g_string_free(filter, filter->len == 0);
}
