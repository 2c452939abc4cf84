/*
 * The panel at the side: the lifeline that was chosen, through all its events and hosts with the time of each segment
 * and its records; or the statistics of a stretch of time that was marked.
 */
#ifndef NLV_SIDE_PANEL_H
#define NLV_SIDE_PANEL_H

#include "model/model.h"

#include <gtk/gtk.h>

typedef struct side_panel side_panel;

/* Belongs to its widget and goes with it. The model must outlive it. */
side_panel *side_panel_new(model *m);
GtkWidget *side_panel_widget(side_panel *p);

void side_panel_show_lifeline(side_panel *p, size_t lifeline, uint32_t object);
void side_panel_show_range(side_panel *p, int64_t from_ns, int64_t to_ns);

/* Nothing is chosen: says what could be. */
void side_panel_show_hint(side_panel *p);

#endif
