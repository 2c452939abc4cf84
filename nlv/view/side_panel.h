/* The side panel shows the chosen request: its events and records, the duration of each segment, and the reason why the
 * request counts as an error. Alternatively, the side panel shows the statistics of the marked time range. */
#ifndef NLV_SIDE_PANEL_H
#define NLV_SIDE_PANEL_H

#include "scene/scene.h"

#include <gtk/gtk.h>

typedef struct side_panel side_panel;

/* Shows the record at a time and a place (model/batch.h). */
typedef void side_panel_go(void *user, int64_t time_ns, uint64_t place);

/* Returns a side panel, which its widget owns. The model must outlive the side panel. `go` is called if the user
 * chooses the maximum of a statistic. */
side_panel *side_panel_new(model *m, side_panel_go *go, void *user);
GtkWidget *side_panel_widget(side_panel *p);

/* Makes the panel visible. The panel gets at most half of the width of the paned that contains it. */
void side_panel_appear(side_panel *p);

/* Shows the emphasized request of a view. If there is no such request, or its records are not in memory, returns false
 * and changes nothing. */
bool side_panel_show_request(side_panel *p, const scene_view *view);
void side_panel_show_range(side_panel *p, int64_t from_ns, int64_t to_ns);

/* Sets the clock of times. It applies to what the panel shows next. */
void side_panel_set_clock(side_panel *p, axis_clock clock);

void side_panel_set_dark(side_panel *p, bool dark);

/* Shows a hint about the objects that the user can choose. */
void side_panel_show_hint(side_panel *p);

#endif
