/*
 * The table of requests: duration, slowest span, hosts, errors, start and ID of each request. The user can search the
 * table, and sort it by any column except the ID; Enter shows a request in the picture. The table shows the first
 * REQUEST_PANE_ROWS requests in its order, so that sorting and filling take constant memory. Beside the table is the
 * waterfall of the request in the cursor's row (scene/waterfall_drawing.h).
 *
 * The pane owns copies of the summaries that it shows. All functions run in GTK's thread.
 */
#ifndef NLV_REQUEST_PANE_H
#define NLV_REQUEST_PANE_H

#include "model/model.h"
#include "scene/axis.h"

#include <gtk/gtk.h>

enum { REQUEST_PANE_ROWS = 5000 };

typedef struct request_pane request_pane;

typedef struct request_pane_callbacks {
    void (*go)(void *user, const request_summary *request); /* show this request in the picture */
    void (*cleared)(void *user); /* the table lists all requests again, instead of the requests of an area */
    void (*left)(void *user);    /* the pane is hidden; the callback must move the focus to another widget */
    void *user;
} request_pane_callbacks;

/* Returns a pane, which its widget owns. The pane is hidden at first. The model must outlive the pane. */
request_pane *request_pane_new(model *m, request_pane_callbacks callbacks);
GtkWidget *request_pane_widget(request_pane *p);

/*
 * Shows all requests and gives the table the focus. The slowest requests come first. If `failed` is true, the requests
 * with errors come first.
 */
void request_pane_show(request_pane *p, bool failed);

/*
 * Shows the requests of an area of the heat map (request_choice), and gives the table the focus. Ignores the text of
 * the choice. request_pane_clear_area shows all requests again.
 */
void request_pane_show_area(request_pane *p, const request_choice *area);
void request_pane_clear_area(request_pane *p);

/* Like request_pane_show_area, but shows the slow requests, or the requests with errors, of the whole heat map. */
void request_pane_show_choice(request_pane *p, const request_choice *choice);

void request_pane_hide(request_pane *p);

/* Selects the colors of the waterfall. */
/* Sets the clock of the requests' times. */
void request_pane_set_clock(request_pane *p, axis_clock clock);

void request_pane_set_dark(request_pane *p, bool dark);

/* Shows new requests. Call this function often. */
void request_pane_tick(request_pane *p);

#endif
