#include "config.h"

#include "view/undo.h"

#include <string.h>

enum { STEPS_MAX = 300 };

void undo_init(undo *u)
{
    *u = (undo){.texts = g_ptr_array_new_with_free_func(g_free)};
}

void undo_free(undo *u)
{
    g_ptr_array_free(u->texts, TRUE);
    g_free(u->seen);
}

void undo_clear(undo *u)
{
    g_ptr_array_set_size(u->texts, 0);
    g_clear_pointer(&u->seen, g_free);
    u->at = 0;
}

static void push(undo *u, const char *text)
{
    if (u->texts->len > 0)
        g_ptr_array_set_size(u->texts, (gint)u->at + 1);
    if (u->texts->len == STEPS_MAX)
        g_ptr_array_remove_index(u->texts, 0);
    g_ptr_array_add(u->texts, g_strdup(text));
    u->at = u->texts->len - 1;
}

bool undo_look(undo *u, const char *text, bool at_once)
{
    bool is_new = u->texts->len == 0 || strcmp(g_ptr_array_index(u->texts, u->at), text) != 0;
    bool is_steady = u->seen != NULL && strcmp(u->seen, text) == 0;
    bool is_step = is_new && (is_steady || at_once || u->texts->len == 0);
    if (is_step)
        push(u, text);
    if (!is_steady) {
        g_free(u->seen);
        u->seen = g_strdup(text);
    }
    return is_step;
}

const char *undo_go(undo *u, int step)
{
    if (u->texts->len == 0 || (step < 0 ? u->at == 0 : u->at + 1 >= u->texts->len))
        return NULL;
    u->at += (guint)step;
    const char *text = g_ptr_array_index(u->texts, u->at);
    g_free(u->seen);
    u->seen = g_strdup(text);
    return text;
}
