#include "config.h"

#include "view/history.h"

enum { ONE_MOVE_US = 700000, VIEWS_MAX = 500 };

void history_init(history *h)
{
    *h = (history){.views = g_array_new(FALSE, FALSE, sizeof(history_view))};
}

void history_free(history *h)
{
    g_array_free(h->views, TRUE);
}

void history_move(history *h, history_view before, history_view now)
{
    gint64 now_us = g_get_monotonic_time();
    bool goes_on =
        h->views->len > 0 && now_us - h->changed_us < ONE_MOVE_US && h->at + 1 == h->views->len && h->views->len > 1;
    h->changed_us = now_us;
    if (goes_on) {
        g_array_index(h->views, history_view, h->at) = now;
        return;
    }
    if (h->views->len > 0)
        g_array_set_size(h->views, h->at + 1);
    if (h->views->len == VIEWS_MAX)
        g_array_remove_index(h->views, 0);
    if (h->views->len == 0 || g_array_index(h->views, history_view, h->views->len - 1).from_ns != before.from_ns ||
        g_array_index(h->views, history_view, h->views->len - 1).to_ns != before.to_ns)
        g_array_append_val(h->views, before);
    g_array_append_val(h->views, now);
    h->at = h->views->len - 1;
}

bool history_go(history *h, int step, history_view *view)
{
    if ((step < 0 && h->at == 0) || (step > 0 && h->at + 1 >= h->views->len) || h->views->len == 0)
        return false;
    h->at += (guint)step;
    h->changed_us = 0;
    *view = g_array_index(h->views, history_view, h->at);
    return true;
}
