/*
 * What the parts of the window share: window.c makes it and shows what comes, window_commands.c does what is commanded,
 * window_open.c opens logs, window_play.c has the view move by itself, window_sensors.c is the pane of sensors,
 * window_session.c how all is looked at. All of it, but what stands in a thread of its own, in the main loop's.
 */
#ifndef NLV_WINDOW_PRIVATE_H
#define NLV_WINDOW_PRIVATE_H

#include "model/model.h"
#include "model/session.h"
#include "view/bookmarks.h"
#include "view/canvas.h"
#include "view/chooser.h"
#include "view/commands.h"
#include "view/editor.h"
#include "view/player.h"
#include "view/search_bar.h"
#include "view/sensor_pane.h"
#include "view/side_panel.h"
#include "view/undo.h"

#include <gtk/gtk.h>

typedef struct window window;

struct window {
    GtkWidget *top;
    GtkWidget *stack; /* the canvas and the side panel, or what to do when there is no log */
    GtkWidget *welcome;
    GtkWidget *side;
    GtkWidget *live_button;
    GtkWidget *status;
    GtkWidget *info, *info_text; /* what went wrong, until it is closed */
    canvas *canvas;
    side_panel *panel;
    search_bar *search;
    chooser *chooser;
    editor *editor;
    player *player;
    sensor_pane *sensors;
    char *typed; /* the expression that was typed of what to show only; NULL: none */
    model *model;
    program_reading *reading;
    bool live;
    bool own_change; /* the button is being set by the program, not by the user */
    bool first_shown;
    bool touched;        /* the user has moved the view: it is no longer fitted to what comes */
    unsigned generation; /* of the model, when it was last shown */
    gint64 shown_us;     /* then */
    uint64_t malformed;  /* when it was last said */
    int source_count;
    int openings;       /* under way, each in a thread */
    GPtrArray *sources; /* what was opened, by path or URL */
    session *session;   /* how all is looked at; its marks are here alone, the rest is what it was when last asked */
    session *last;      /* how the same logs were left the last time; NULL: never */
    char *session_path; /* where that is kept */
    bool choice_waits;  /* the lifeline that the session tells is not there yet */
    char *drawing_text; /* what the user draws; NULL: what is found out */
    undo undo;
    gint64 looked_us; /* when it was last looked whether something changed */
    bookmarks *bookmarks;
    bool measuring; /* one end of what is measured is marked */
    char *caption;  /* of pictures; NULL: none so far */
    double speed;   /* of playing; 0: not */
    double last_speed;
    guint ticking; /* the timer of all that is looked at again and again */
    gint64 played_us;
};

/* Says something in the bar above the canvas, until it is closed. */
void window_say(window *w, const char *text);

/* Shows only what was typed and what is ticked; false: that is no expression. */
bool window_apply_filter(window *w, const char *typed);

/* What is chosen has changed; what is there is to be shown anew. */
void window_show_chosen(window *w);
void window_show_range(window *w);
void window_show_news(window *w);

/* What the title and the line below the canvas say has changed. */
void window_show_title(window *w);
void window_show_counts(window *w);

/* ---- window_commands.c ---- */

/* Does what the user asks for by menu, key or palette; a command_do, user being the window. */
void window_command(void *user, command which);

/* ---- window_open.c ---- */

/* Opens one more log, in a thread, for a collector may take long to answer: what came of it is shown. */
void window_open(window *w, const char *url);

/* Asks which file to open, and does. */
void window_choose_log(window *w);

/* Files that are dropped on the window are opened. */
void window_accept_drops(window *w);

/* ---- window_play.c ---- */

/* Whether the view moves on as the log grows. */
void window_set_live(window *w, bool live);

/* There is something that comes as it happens: shows it so. */
void window_follow(window *w);

/* In real time: moves the view to where the log is now. */
void window_follow_time(window *w);

/* Plays at so many times real time; 0: no more. */
void window_set_speed(window *w, double speed);

/* Begins or ends playing; moves the view as far as it is due by now; makes and shows the player. */
void window_play(window *w);
void window_play_on(window *w);
GtkWidget *window_make_player(window *w);
void window_show_player(window *w);

/* ---- window_sensors.c ---- */

/* The pane of sensors, hidden, beside main; what holds both. directory: where to look up; NULL: not said. */
GtkWidget *window_sensors_beside(window *w, const char *directory, GtkWidget *main);
void window_sensors_toggle(window *w);

/* ---- window_session.c ---- */

void window_session_begin(window *w);
void window_session_end(window *w);

/* Writes down how all is looked at, and keeps it for the next time; while the widgets are still there. */
void window_session_keep(window *w);

/* Another log was opened: what was noted about them is shown again. */
void window_session_opened(window *w, const char *url);

/* To be called now and then: what changed becomes a step that can be undone. */
void window_session_look(window *w);
void window_undo(window *w, int step);

/* Shows all as it was when these logs were closed the last time. */
void window_as_last_time(window *w);

/* Puts a bookmark where the pointer is; shows the list; goes to the next one or that before. */
void window_bookmark(window *w);
void window_show_bookmarks(window *w);
void window_next_bookmark(window *w, bool backwards);

/* Once the log is there, what the session says is chosen is chosen. */
void window_choose_waiting(window *w);

#endif
