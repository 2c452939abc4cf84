#include "config.h"

#include "diag/place_names.h"

#include "diag/findings.h"
#include "requests/program_names.h"

typedef struct place_name {
    char *first;     /* the name in the first log */
    char *pattern;   /* the name with the patterns of programs */
    bool is_pattern; /* another log had a different name with the same pattern */
} place_name;

struct place_names {
    GArray *all;                       /* place_name */
    GHashTable *by_first, *by_pattern; /* map a text of a place_name to its number + 1 */
};

static place_name *name_at(const place_names *n, uint32_t number)
{
    return &g_array_index(n->all, place_name, number);
}

static void name_clear(gpointer data)
{
    place_name *name = data;
    g_free(name->first);
    g_free(name->pattern);
}

place_names *place_names_new(void)
{
    place_names *n = g_new0(place_names, 1);
    n->all = g_array_new(FALSE, FALSE, sizeof(place_name));
    g_array_set_clear_func(n->all, name_clear);
    n->by_first = g_hash_table_new(g_str_hash, g_str_equal);
    n->by_pattern = g_hash_table_new(g_str_hash, g_str_equal);
    return n;
}

void place_names_free(place_names *n)
{
    g_hash_table_destroy(n->by_first);
    g_hash_table_destroy(n->by_pattern);
    g_array_free(n->all, TRUE);
    g_free(n);
}

char *text_pattern_of_place(const visits *v, uint32_t number, const char *host)
{
    place p = *place_at(v, number);
    p.program = program_pattern(p.program);
    p.from_program = program_pattern(p.from_program);
    return text_of_place(v, &p, NULL, host);
}

/* Returns the number of a name. `is_single` states that no other place of the log has the same pattern. Takes ownership
 * of both texts. */
static uint32_t find_name(place_names *n, char *text, char *pattern, bool is_single)
{
    guint known = GPOINTER_TO_UINT(g_hash_table_lookup(n->by_first, text));
    if (known == 0 && is_single) {
        known = GPOINTER_TO_UINT(g_hash_table_lookup(n->by_pattern, pattern));
        if (known > 0)
            name_at(n, known - 1)->is_pattern = true;
    }
    if (known > 0 || n->all->len == PLACE_NAMES_MAX) {
        g_free(text);
        g_free(pattern);
        return known > 0 ? known - 1 : PLACE_NAME_NONE;
    }
    const place_name name = {.first = text, .pattern = pattern};
    g_array_append_val(n->all, name);
    g_hash_table_insert(n->by_first, text, GUINT_TO_POINTER(n->all->len));
    if (is_single)
        g_hash_table_insert(n->by_pattern, pattern, GUINT_TO_POINTER(n->all->len));
    return n->all->len - 1;
}

uint32_t *place_names_add(place_names *n, const visits *v)
{
    uint32_t *numbers = g_new(uint32_t, v->places->len + 1);
    char **patterns = g_new0(char *, v->places->len + 1);
    GHashTable *counts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < v->places->len; i++) {
        patterns[i] = text_pattern_of_place(v, i, NULL);
        guint count = GPOINTER_TO_UINT(g_hash_table_lookup(counts, patterns[i]));
        g_hash_table_insert(counts, g_strdup(patterns[i]), GUINT_TO_POINTER(count + 1));
    }
    for (guint i = 0; i < v->places->len; i++) {
        const bool is_single = GPOINTER_TO_UINT(g_hash_table_lookup(counts, patterns[i])) == 1;
        numbers[i] = find_name(n, text_place(v, i, NULL), patterns[i], is_single);
    }
    g_hash_table_destroy(counts);
    g_free(patterns);
    return numbers;
}

const char *place_names_text(const place_names *n, uint32_t number)
{
    const place_name *name = name_at(n, number);
    return name->is_pattern ? name->pattern : name->first;
}
