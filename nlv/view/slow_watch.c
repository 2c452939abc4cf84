#include "config.h"

#include "view/slow_watch.h"

enum { FLASH_US = 4000000, FLASHES_MAX = 20, REQUESTS_MIN = 50, SEARCHED_MAX = 8192 };

struct slow_watch {
    model *model;
    GArray *flashes;   /* scene_flash */
    GArray *begins_us; /* gint64: the time at which each flash began */
    bool is_watching;
    int64_t seen_ns; /* the latest end of the requests that the module has seen */
};

slow_watch *slow_watch_new(model *m)
{
    slow_watch *s = g_new0(slow_watch, 1);
    s->model = m;
    s->flashes = g_array_new(FALSE, FALSE, sizeof(scene_flash));
    s->begins_us = g_array_new(FALSE, FALSE, sizeof(gint64));
    return s;
}

void slow_watch_free(slow_watch *s)
{
    if (s == NULL)
        return;
    g_array_free(s->flashes, TRUE);
    g_array_free(s->begins_us, TRUE);
    g_free(s);
}

const GArray *slow_watch_flashes(const slow_watch *s)
{
    return s->flashes;
}

static void add_flash(slow_watch *s, const request_summary *r)
{
    const scene_flash flash = {r->start_ns + r->duration_ns, r->duration_ns, 1};
    const gint64 now_us = g_get_monotonic_time();
    if (s->flashes->len == FLASHES_MAX) {
        g_array_remove_index(s->flashes, 0);
        g_array_remove_index(s->begins_us, 0);
    }
    g_array_append_val(s->flashes, flash);
    g_array_append_val(s->begins_us, now_us);
}

/*
 * Adds a flash for each slow request that ended after s->seen_ns. The positions in the list do not show which requests
 * are new. The list is only approximately in the order of the ends, and nlv rebuilds the list of a small log when the
 * log grows.
 */
static void find_new(slow_watch *s)
{
    int64_t last_ns = s->seen_ns;
    model_lock(s->model);
    const request_list *l = model_requests(s->model);
    const uint32_t count = l != NULL ? l->count : 0;
    const double slow_ns = count >= REQUESTS_MIN ? heat_map_slow_ns(&l->heat) : 9e18;
    for (uint32_t i = count - MIN(count, SEARCHED_MAX); i < count; i++) {
        const request_summary *r = request_list_at(l, i);
        const int64_t end_ns = r->start_ns + r->duration_ns;
        const bool is_whole = (r->errors & REQUEST_INCOMPLETE) == 0; /* false: the duration is unknown */
        if (s->is_watching && is_whole && end_ns > s->seen_ns && (double)r->duration_ns >= slow_ns)
            add_flash(s, r);
        last_ns = MAX(last_ns, end_ns);
    }
    model_unlock(s->model);
    s->seen_ns = last_ns;
    s->is_watching = count > 0;
}

bool slow_watch_tick(slow_watch *s, bool is_live)
{
    const gint64 now_us = g_get_monotonic_time();
    const guint before = s->flashes->len;
    if (is_live)
        find_new(s);
    else
        s->is_watching = false;
    while (s->begins_us->len > 0 && now_us - g_array_index(s->begins_us, gint64, 0) > FLASH_US) {
        g_array_remove_index(s->flashes, 0);
        g_array_remove_index(s->begins_us, 0);
    }
    for (guint i = 0; i < s->flashes->len; i++)
        g_array_index(s->flashes, scene_flash, i).strength =
            1 - (double)(now_us - g_array_index(s->begins_us, gint64, i)) / FLASH_US;
    return before > 0 || s->flashes->len > 0;
}
