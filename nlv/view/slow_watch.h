/*
 * Finds slow requests that end in a growing log, and makes them flash in the margin of the picture. Ignores incomplete
 * requests, such as requests that began before nlv connected to a collector. A request flashes for a few seconds after
 * nlv has read its end. The watch owns the flashes. All functions run in GTK's thread.
 */
#ifndef NLV_SLOW_WATCH_H
#define NLV_SLOW_WATCH_H

#include "scene/scene.h"

typedef struct slow_watch slow_watch;

/* Returns a watch without flashes. The model must outlive the watch. */
slow_watch *slow_watch_new(model *m);
void slow_watch_free(slow_watch *s); /* NULL is allowed */

/* If is_live is true, finds the slow requests that have ended since the last call. Dims the older flashes and removes
 * the oldest. Returns whether the caller must draw the picture again. */
bool slow_watch_tick(slow_watch *s, bool is_live);

/* Returns the flashes (scene_flash), which are valid as long as the watch. */
const GArray *slow_watch_flashes(const slow_watch *s);

#endif
