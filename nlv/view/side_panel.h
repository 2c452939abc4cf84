/*
 * The side panel shows the events and records of the chosen lifeline with the duration of each segment, or the
 * statistics of the marked time range.
 */
#ifndef NLV_SIDE_PANEL_H
#define NLV_SIDE_PANEL_H

#include "model/model.h"

#include <gtk/gtk.h>

typedef struct side_panel side_panel;

/* Returns a side panel, which its widget owns. The model must outlive the side panel. */
side_panel *side_panel_new(model *m);
GtkWidget *side_panel_widget(side_panel *p);

/* Makes the panel visible. The panel gets at most half of the width of the paned that contains it. */
void side_panel_appear(side_panel *p);

void side_panel_show_lifeline(side_panel *p, size_t lifeline, uint32_t object);
void side_panel_show_range(side_panel *p, int64_t from_ns, int64_t to_ns);

/* Shows a hint about the objects that the user can choose. */
void side_panel_show_hint(side_panel *p);

#endif
