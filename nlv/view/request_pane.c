#include "config.h"

#include "view/request_pane.h"

#include "base/text.h"
#include "base/time_internal.h"
#include "model/request_name.h"
#include "requests/printable.h"
#include "scene/axis.h"
#include "scene/palette.h"
#include "scene/text.h"
#include "scene/waterfall_drawing.h"

#include <string.h>

enum {
    REFRESH_MS = 1000,
    COLUMNS = 8,
    HEIGHT = 190,
    HEIGHT_MIN = 60,
    ERROR_COLUMN = 2,
    START_COLUMN = 6,
    START_SIZE = 15, /* characters of hh:mm:ss.ffffff */
    FALLS_WIDTH_MIN = 280,
    KEPT_HEAD = 20,
};

/* The maximum share of the pane's height that the table gets when it appears. */
static const double height_share = 0.45;

typedef struct pane_column {
    const char *title;
    request_column sort;
    int width;
    bool is_number;
} pane_column;

/* The user cannot sort by the last column, the ID, because the list of requests does not contain IDs. */
static const pane_column columns[COLUMNS] = {
    {"Duration", REQUEST_BY_DURATION, 94, true},   {"Slowest span", REQUEST_BY_SLOWEST, 120, false},
    {"Error", REQUEST_BY_ERROR, 80, false},        {"Share", REQUEST_BY_SHARE, 60, true},
    {"Begins at", REQUEST_BY_POSITION, 80, true},  {"Hosts", REQUEST_BY_HOSTS, 58, true},
    {"Start (UTC)", REQUEST_BY_START, 128, false}, {"Request", REQUEST_BY_START, 90, false},
};

/* A request in the table. The row owns its texts. */
typedef struct pane_row {
    request_summary summary;
    char *slowest;
    char *name; /* NULL: not fetched yet */
} pane_row;

struct request_pane {
    model *model;
    request_pane_callbacks callbacks;
    GtkWidget *widget, *tree, *entry, *count, *all;
    GtkWidget *both;      /* the table and the waterfall, side by side */
    GtkWidget *area;      /* draws the waterfall */
    waterfall *waterfall; /* waterfall of the request in the cursor's row, or NULL */
    waterfall *kept;      /* waterfall that the user keeps above this waterfall, or NULL */
    char *kept_name;      /* the ID of the request of `kept`, or NULL */
    GtkWidget *falls;     /* scrolls the area */
    GtkListStore *store;  /* the indices of rows */
    GtkTreeViewColumn *columns[COLUMNS];
    GArray *rows; /* pane_row */
    request_choice choice;
    const char *chosen; /* text after the number of requests of the choice; NULL: the choice is all requests */
    request_column column;
    bool descending;
    uint64_t shown_count; /* number of requests in the list at the latest update of the table */
    gint64 shown_us;
    bool dark;
    axis_clock clock;
    int64_t origin_ns; /* start of the log, for relative times */
};

/* ---- cells ---- */

/* Returns the ID of a row's request. Reads the request's record when the row is visible for the first time. */
static const char *name_of_row(const request_pane *p, pane_row *row)
{
    if (row->name != NULL)
        return row->name;
    model_lock(p->model);
    row->name = request_name_at(p->model, row->summary.lifeline, row->summary.step_place);
    model_unlock(p->model);
    return row->name;
}

static void describe_cell(const request_pane *p, const pane_row *row, unsigned column, char text[AXIS_TIME_SIZE])
{
    const request_summary *r = &row->summary;
    switch (column) {
    case 0:
        axis_span_label((double)r->duration_ns, text);
        break;
    case 3:
        g_snprintf(text, 32, "%u %%", r->share);
        break;
    case 4:
        g_snprintf(text, 32, "%u %%", r->position);
        break;
    case 5:
        g_snprintf(text, 32, "%u", r->host_count);
        break;
    default:
        axis_write_clock(p->clock, p->origin_ns, r->start_ns, text);
        if (p->clock != AXIS_RELATIVE && strlen(text) > START_SIZE) /* without the time zone, which the title has */
            text[START_SIZE] = '\0';
    }
}

static void render_cell(GtkTreeViewColumn *column, GtkCellRenderer *cell, GtkTreeModel *tree, GtkTreeIter *at,
                        gpointer user)
{
    request_pane *p = user;
    guint index;
    char text[AXIS_TIME_SIZE] = "";
    gtk_tree_model_get(tree, at, 0, &index, -1);
    pane_row *row = &g_array_index(p->rows, pane_row, index);
    unsigned number = 0;
    while (p->columns[number] != column)
        number++;
    const char *shown = number == 1   ? row->slowest
                        : number == 2 ? request_errors_text(row->summary.errors)
                        : number == 7 ? name_of_row(p, row)
                                      : text;
    if (shown == text)
        describe_cell(p, row, number, text);
    g_object_set(cell, "text", shown, NULL);
}

/* ---- content ---- */

static void clear_row(gpointer data)
{
    pane_row *row = data;
    g_free(row->slowest);
    g_free(row->name);
}

/* Shows the number of requests. `is_reading` is true if the log has requests that nlv has not read yet. */
static void show_count(request_pane *p, size_t found, uint64_t total, uint64_t dropped, bool is_reading)
{
    GString *text = g_string_new(NULL);
    if (total == 0)
        g_string_append(text, is_reading || model_progress(p->model) < 1 || !model_is_settled(p->model)
                                  ? "nlv is still reading the requests"
                                  : "No requests, because no field identifies them, and no record has a duration");
    else
        g_string_append_printf(text, "%'zu of %'" G_GUINT64_FORMAT " request%s%s", found, total, nl_plural(total),
                               p->chosen != NULL ? p->chosen : "");
    if (found > p->rows->len)
        g_string_append_printf(text, "; the first %u are shown", p->rows->len);
    if (dropped > 0)
        g_string_append_printf(text, "; %'" G_GUINT64_FORMAT " fast request%s only in the heat map", dropped,
                               dropped == 1 ? " is" : "s are");
    gtk_label_set_text(GTK_LABEL(p->count), text->str);
    g_string_free(text, TRUE);
}

static void copy_rows(request_pane *p, const request_list *l, const uint32_t *found, size_t count)
{
    g_array_set_size(p->rows, 0);
    for (size_t i = 0; i < count; i++) {
        const request_summary *r = request_list_at(l, found[i]);
        pane_row row = {.summary = *r, .slowest = printable(names_text(l->names, r->slowest))};
        g_array_append_val(p->rows, row);
    }
}

/* Fills the table. The cursor remains at its row. */
static void fill(request_pane *p)
{
    GtkTreePath *cursor = NULL;
    gtk_tree_view_get_cursor(GTK_TREE_VIEW(p->tree), &cursor, NULL);
    gtk_tree_view_set_model(GTK_TREE_VIEW(p->tree), NULL);
    gtk_list_store_clear(p->store);
    bool has_errors = p->column == REQUEST_BY_ERROR;
    p->choice.text = gtk_entry_get_text(GTK_ENTRY(p->entry));
    size_t all = 0;
    uint64_t total = 0, dropped = 0;
    model_lock(p->model);
    const request_list *l = model_requests(p->model);
    int64_t to_ns;
    model_time_range(p->model, &p->origin_ns, &to_ns);
    if (l != NULL) {
        uint32_t *found;
        all = request_list_sort(l, &p->choice, p->column, p->descending, REQUEST_PANE_ROWS, &found);
        copy_rows(p, l, found, MIN(all, REQUEST_PANE_ROWS));
        g_free(found);
        total = l->heat.count;
        dropped = l->dropped;
    } else {
        g_array_set_size(p->rows, 0);
    }
    const bool is_reading = total == 0 && model_requests_progress(p->model) < 1;
    model_unlock(p->model);
    p->shown_count = total;
    p->shown_us = g_get_monotonic_time();
    for (guint i = 0; i < p->rows->len; i++) {
        has_errors = has_errors || g_array_index(p->rows, pane_row, i).summary.errors != 0;
        gtk_list_store_insert_with_values(p->store, NULL, -1, 0, i, -1);
    }
    gtk_tree_view_column_set_visible(p->columns[ERROR_COLUMN], has_errors);
    show_count(p, all, total, dropped, is_reading);
    gtk_tree_view_set_model(GTK_TREE_VIEW(p->tree), GTK_TREE_MODEL(p->store));
    gtk_tree_view_set_search_column(GTK_TREE_VIEW(p->tree), -1);
    if (cursor == NULL)
        cursor = gtk_tree_path_new_first();
    if (p->rows->len > 0)
        gtk_tree_view_set_cursor(GTK_TREE_VIEW(p->tree), cursor, NULL, FALSE);
    gtk_tree_path_free(cursor);
    gtk_widget_set_visible(p->all, p->chosen != NULL);
}

static void sort_by(request_pane *p, request_column column, bool descending)
{
    p->column = column;
    p->descending = descending;
    for (unsigned i = 0; i + 1 < COLUMNS; i++) {
        gtk_tree_view_column_set_sort_indicator(p->columns[i], columns[i].sort == column);
        gtk_tree_view_column_set_sort_order(p->columns[i], descending ? GTK_SORT_DESCENDING : GTK_SORT_ASCENDING);
    }
    fill(p);
    if (p->rows->len > 0) {
        GtkTreePath *first = gtk_tree_path_new_first();
        gtk_tree_view_set_cursor(GTK_TREE_VIEW(p->tree), first, NULL, FALSE);
        gtk_tree_path_free(first);
    }
}

/* Sorts by a column. If the table is already sorted by this column, reverses the order. */
static void choose_column(request_pane *p, unsigned number)
{
    const request_column column = columns[number].sort;
    const bool is_text = column == REQUEST_BY_START || column == REQUEST_BY_SLOWEST || column == REQUEST_BY_POSITION;
    sort_by(p, column, column == p->column ? !p->descending : !is_text);
}

void request_pane_tick(request_pane *p)
{
    if (!gtk_widget_get_visible(p->widget) || g_get_monotonic_time() - p->shown_us < REFRESH_MS * 1000)
        return;
    model_lock(p->model);
    const request_list *l = model_requests(p->model);
    const bool has_changed = (l != NULL ? l->heat.count : 0) != p->shown_count;
    model_unlock(p->model);
    if (has_changed || p->shown_count == 0)
        fill(p);
}

/* ---- the waterfall of the request in the cursor's row ---- */

static double kept_height(const request_pane *p)
{
    return p->kept != NULL ? 2 * KEPT_HEAD + waterfall_height(p->kept) : 0;
}

static void resize_area(request_pane *p)
{
    const double own = p->waterfall != NULL ? waterfall_height(p->waterfall) : 0, height = kept_height(p) + own;
    gtk_widget_set_size_request(p->area, -1, height > 0 ? (int)height : -1);
    gtk_widget_queue_draw(p->area);
}

static void show_waterfall(request_pane *p, const request_summary *request)
{
    waterfall_free(p->waterfall);
    p->waterfall = NULL;
    if (request != NULL) {
        model_lock(p->model);
        const uint32_t record = store_find_place(model_store(p->model), request->step_ns, request->step_place);
        p->waterfall = waterfall_read(p->model, request->lifeline, record);
        model_unlock(p->model);
    }
    resize_area(p);
}

/* If p->kept is NULL, keeps the waterfall of the cursor's row above the waterfalls of rows that the user selects later.
 * Otherwise, removes the kept waterfall. */
static void toggle_kept(request_pane *p)
{
    GtkTreePath *path = NULL;
    waterfall_free(p->kept);
    g_free(p->kept_name);
    const bool was = p->kept != NULL;
    p->kept = NULL;
    p->kept_name = NULL;
    gtk_tree_view_get_cursor(GTK_TREE_VIEW(p->tree), &path, NULL);
    const guint index = path != NULL ? (guint)gtk_tree_path_get_indices(path)[0] : G_MAXUINT;
    gtk_tree_path_free(path);
    if (!was && index < p->rows->len && p->waterfall != NULL) {
        pane_row *row = &g_array_index(p->rows, pane_row, index);
        p->kept_name = g_strdup(name_of_row(p, row));
        p->kept = g_steal_pointer(&p->waterfall);
        show_waterfall(p, &row->summary);
    }
    resize_area(p);
}

static void on_cursor(GtkTreeView *tree, gpointer user)
{
    request_pane *p = user;
    GtkTreePath *path = NULL;
    gtk_tree_view_get_cursor(tree, &path, NULL);
    const guint index = path != NULL ? (guint)gtk_tree_path_get_indices(path)[0] : G_MAXUINT;
    gtk_tree_path_free(path);
    show_waterfall(p, index < p->rows->len ? &g_array_index(p->rows, pane_row, index).summary : NULL);
}

static gboolean on_draw_waterfall(GtkWidget *area, cairo_t *cr, gpointer user)
{
    const request_pane *p = user;
    const double width = gtk_widget_get_allocated_width(area);
    const int64_t length_ns =
        MAX(p->kept != NULL ? p->kept->length_ns : 0, p->waterfall != NULL ? p->waterfall->length_ns : 0);
    if (p->kept != NULL) {
        char *text = g_strdup_printf("Kept (K): %s", p->kept_name);
        palette_set(cr, palette_background(p->dark), 1);
        cairo_paint(cr);
        text_draw(cr, text, TEXT_SMALL, palette_accent(p->dark), TEXT_LEFT, 6, KEPT_HEAD / 2.0, width);
        text_draw(cr, "Selected", TEXT_SMALL, palette_accent(p->dark), TEXT_LEFT, 6, kept_height(p) - KEPT_HEAD / 2.0,
                  width);
        g_free(text);
        cairo_save(cr);
        cairo_translate(cr, 0, KEPT_HEAD);
        cairo_rectangle(cr, 0, 0, width, waterfall_height(p->kept));
        cairo_clip(cr);
        waterfall_draw(p->kept, cr, width, length_ns, p->dark);
        cairo_restore(cr);
    }
    cairo_translate(cr, 0, kept_height(p));
    cairo_rectangle(cr, 0, 0, width, gtk_widget_get_allocated_height(area));
    cairo_clip(cr);
    if (p->waterfall != NULL)
        waterfall_draw(p->waterfall, cr, width, length_ns, p->dark);
    return TRUE;
}

static gboolean on_waterfall_tooltip(GtkWidget *area, gint x, gint y, gboolean by_key, GtkTooltip *tooltip,
                                     gpointer user)
{
    (void)area, (void)x, (void)by_key;
    const request_pane *p = user;
    const bool is_kept = y < kept_height(p);
    const waterfall *w = is_kept ? p->kept : p->waterfall;
    const unsigned span = w != NULL ? waterfall_find(w, y - (is_kept ? KEPT_HEAD : kept_height(p))) : G_MAXUINT;
    if (span == G_MAXUINT)
        return FALSE;
    char *text = waterfall_describe(w, span);
    gtk_tooltip_set_text(tooltip, text);
    g_free(text);
    return TRUE;
}

void request_pane_set_clock(request_pane *p, axis_clock clock)
{
    char *title = g_strdup_printf("Start (%s)", axis_clock_text(clock));
    p->clock = clock;
    gtk_tree_view_column_set_title(p->columns[START_COLUMN], title);
    gtk_widget_queue_draw(p->tree);
    g_free(title);
}

void request_pane_set_dark(request_pane *p, bool dark)
{
    p->dark = dark;
    gtk_widget_queue_draw(p->area);
}

/* ---- the user's actions ---- */

static void on_row(GtkTreeView *tree, GtkTreePath *path, GtkTreeViewColumn *column, gpointer user)
{
    (void)tree, (void)column;
    request_pane *p = user;
    const guint index = (guint)gtk_tree_path_get_indices(path)[0];
    if (index < p->rows->len)
        p->callbacks.go(p->callbacks.user, &g_array_index(p->rows, pane_row, index).summary);
}

static void on_column(GtkTreeViewColumn *column, gpointer user)
{
    request_pane *p = user;
    unsigned number = 0;
    while (p->columns[number] != column)
        number++;
    choose_column(p, number);
}

static gboolean on_table_key(GtkWidget *tree, GdkEventKey *event, gpointer user)
{
    (void)tree;
    request_pane *p = user;
    if (event->state & (GDK_CONTROL_MASK | GDK_MOD1_MASK))
        return FALSE;
    if (event->keyval >= GDK_KEY_1 && event->keyval < GDK_KEY_1 + COLUMNS - 1)
        choose_column(p, event->keyval - GDK_KEY_1);
    else if (event->keyval == GDK_KEY_slash)
        gtk_widget_grab_focus(p->entry);
    else if (event->keyval == GDK_KEY_r || event->keyval == GDK_KEY_e)
        request_pane_show(p, event->keyval == GDK_KEY_e);
    else if (event->keyval == GDK_KEY_c)
        request_pane_clear_area(p);
    else if (event->keyval == GDK_KEY_k)
        toggle_kept(p);
    else
        return FALSE;
    return TRUE;
}

static void on_search(GtkSearchEntry *entry, gpointer user)
{
    (void)entry;
    fill(user);
}

static void on_search_done(GtkEntry *entry, gpointer user)
{
    (void)entry;
    request_pane *p = user;
    fill(p);
    gtk_widget_grab_focus(p->tree);
}

static void on_all(GtkButton *button, gpointer user)
{
    (void)button;
    request_pane *p = user;
    request_pane_clear_area(p);
    gtk_widget_grab_focus(p->tree);
}

static void on_close_table(GtkButton *button, gpointer user)
{
    (void)button;
    request_pane_hide(user);
}

static void forget_area(request_pane *p)
{
    p->choice = request_choice_all;
    p->chosen = NULL;
    p->callbacks.cleared(p->callbacks.user);
}

/* Returns the width of the table with all visible columns. */
static int table_width(const request_pane *p)
{
    int width = 0;
    for (unsigned i = 0; i < COLUMNS; i++)
        width += gtk_tree_view_column_get_visible(p->columns[i]) ? columns[i].width : 0;
    return width + 4;
}

/*
 * Shows the table. In a low window, the table gets only a part of the height, so that the picture remains visible. The
 * table gets half of the width, or the width of all its columns if enough width remains for the waterfall. In a narrow
 * window, hides the waterfall.
 */
static void appear(request_pane *p)
{
    GtkWidget *paned = gtk_widget_get_parent(p->widget);
    const int height = gtk_widget_get_allocated_height(paned), wanted = HEIGHT + KEPT_HEAD + 16;
    if (!gtk_widget_get_visible(p->widget) && GTK_IS_PANED(paned))
        gtk_paned_set_position(GTK_PANED(paned), height - MIN(wanted, (int)(height * height_share)));
    const int width = gtk_widget_get_allocated_width(paned);
    gtk_widget_set_visible(p->falls, width >= 2 * FALLS_WIDTH_MIN);
    const int table = table_width(p);
    if (!gtk_widget_get_visible(p->widget))
        gtk_paned_set_position(GTK_PANED(p->both),
                               width - table >= FALLS_WIDTH_MIN ? MAX(table, width / 2) : width / 2);
    gtk_widget_show(p->widget);
}

void request_pane_hide(request_pane *p)
{
    gtk_widget_hide(p->widget);
    forget_area(p);
    p->callbacks.left(p->callbacks.user);
}

void request_pane_clear_area(request_pane *p)
{
    forget_area(p);
    sort_by(p, p->column, p->descending);
}

void request_pane_show(request_pane *p, bool failed)
{
    forget_area(p);
    gtk_entry_set_text(GTK_ENTRY(p->entry), "");
    sort_by(p, failed ? REQUEST_BY_ERROR : REQUEST_BY_DURATION, true);
    appear(p);
    gtk_widget_grab_focus(p->tree);
}

static void show_choice_of(request_pane *p, const request_choice *choice, const char *chosen)
{
    p->choice = *choice;
    p->chosen = chosen;
    gtk_entry_set_text(GTK_ENTRY(p->entry), "");
    sort_by(p, REQUEST_BY_DURATION, true);
    appear(p);
    gtk_widget_grab_focus(p->tree);
}

void request_pane_show_area(request_pane *p, const request_choice *area)
{
    show_choice_of(p, area, " (marked area)");
}

void request_pane_show_choice(request_pane *p, const request_choice *choice)
{
    show_choice_of(p, choice, choice->only_errors ? " (failed or incomplete)" : " (slow)");
}

/* ---- construction ---- */

static void add_columns(request_pane *p)
{
    for (unsigned i = 0; i < COLUMNS; i++) {
        GtkCellRenderer *cell = gtk_cell_renderer_text_new();
        p->columns[i] = gtk_tree_view_column_new_with_attributes(columns[i].title, cell, NULL);
        g_object_set(cell, "xalign", columns[i].is_number ? 1.0 : 0.0, "ellipsize",
                     columns[i].is_number ? PANGO_ELLIPSIZE_NONE : PANGO_ELLIPSIZE_MIDDLE, NULL);
        gtk_tree_view_column_set_alignment(p->columns[i], columns[i].is_number ? 1 : 0);
        gtk_tree_view_column_set_sizing(p->columns[i], GTK_TREE_VIEW_COLUMN_FIXED);
        gtk_tree_view_column_set_fixed_width(p->columns[i], columns[i].width);
        gtk_tree_view_column_set_resizable(p->columns[i], TRUE);
        gtk_tree_view_column_set_expand(p->columns[i], !columns[i].is_number);
        gtk_tree_view_column_set_cell_data_func(p->columns[i], cell, render_cell, p, NULL);
        gtk_tree_view_append_column(GTK_TREE_VIEW(p->tree), p->columns[i]);
        if (i + 1 == COLUMNS)
            break;
        gtk_tree_view_column_set_clickable(p->columns[i], TRUE);
        g_signal_connect(p->columns[i], "clicked", G_CALLBACK(on_column), p);
    }
}

static GtkWidget *make_table(request_pane *p)
{
    GtkWidget *scrolled = gtk_scrolled_window_new(NULL, NULL);
    p->store = gtk_list_store_new(1, G_TYPE_UINT);
    p->tree = gtk_tree_view_new();
    gtk_tree_view_set_enable_search(GTK_TREE_VIEW(p->tree), FALSE);
    add_columns(p);
    gtk_tree_view_set_fixed_height_mode(GTK_TREE_VIEW(p->tree), TRUE);
    atk_object_set_name(gtk_widget_get_accessible(p->tree), "Requests");
    g_signal_connect(p->tree, "cursor-changed", G_CALLBACK(on_cursor), p);
    g_signal_connect(p->tree, "row-activated", G_CALLBACK(on_row), p);
    g_signal_connect(p->tree, "key-press-event", G_CALLBACK(on_table_key), p);
    g_object_set(scrolled, "min-content-height", HEIGHT_MIN, NULL);
    gtk_container_add(GTK_CONTAINER(scrolled), p->tree);
    return scrolled;
}

static GtkWidget *make_waterfall(request_pane *p)
{
    GtkWidget *scrolled = gtk_scrolled_window_new(NULL, NULL);
    p->area = gtk_drawing_area_new();
    gtk_widget_set_has_tooltip(p->area, TRUE);
    atk_object_set_name(gtk_widget_get_accessible(p->area), "Waterfall of the request");
    g_signal_connect(p->area, "draw", G_CALLBACK(on_draw_waterfall), p);
    g_signal_connect(p->area, "query-tooltip", G_CALLBACK(on_waterfall_tooltip), p);
    gtk_scrolled_window_set_policy(GTK_SCROLLED_WINDOW(scrolled), GTK_POLICY_NEVER, GTK_POLICY_AUTOMATIC);
    gtk_container_add(GTK_CONTAINER(scrolled), p->area);
    p->falls = scrolled;
    return scrolled;
}

static GtkWidget *make_head(request_pane *p)
{
    GtkWidget *head = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 8),
              *close = gtk_button_new_from_icon_name("window-close-symbolic", GTK_ICON_SIZE_BUTTON);
    p->count = gtk_label_new("");
    gtk_label_set_xalign(GTK_LABEL(p->count), 0);
    gtk_label_set_ellipsize(GTK_LABEL(p->count), PANGO_ELLIPSIZE_END);
    p->all = gtk_button_new_with_label("Clear the selection (C)");
    p->entry = gtk_search_entry_new();
    gtk_entry_set_placeholder_text(GTK_ENTRY(p->entry),
                                   "ID, span, \342\200\234failed\342\200\235 or \342\200\234incomplete\342\200\235");
    gtk_entry_set_width_chars(GTK_ENTRY(p->entry), 12);
    gtk_entry_set_max_width_chars(GTK_ENTRY(p->entry), 30);
    atk_object_set_name(gtk_widget_get_accessible(p->entry), "Find requests");
    atk_object_set_name(gtk_widget_get_accessible(close), "Close the table of requests");
    gtk_button_set_relief(GTK_BUTTON(close), GTK_RELIEF_NONE);
    g_signal_connect(p->entry, "search-changed", G_CALLBACK(on_search), p);
    g_signal_connect(p->entry, "activate", G_CALLBACK(on_search_done), p);
    g_signal_connect(p->all, "clicked", G_CALLBACK(on_all), p);
    g_signal_connect(close, "clicked", G_CALLBACK(on_close_table), p);
    g_object_set(head, "margin-start", 8, "margin-end", 4, "margin-top", 2, "margin-bottom", 2, NULL);
    gtk_box_pack_start(GTK_BOX(head), p->count, TRUE, TRUE, 0);
    gtk_box_pack_end(GTK_BOX(head), close, FALSE, FALSE, 0);
    gtk_box_pack_end(GTK_BOX(head), p->entry, FALSE, FALSE, 0);
    gtk_box_pack_end(GTK_BOX(head), p->all, FALSE, FALSE, 0);
    return head;
}

static void request_pane_on_destroy(GtkWidget *widget, gpointer user)
{
    (void)widget;
    request_pane *p = user;
    waterfall_free(p->waterfall);
    waterfall_free(p->kept);
    g_free(p->kept_name);
    g_array_free(p->rows, TRUE);
    g_object_unref(p->store);
    g_free(p);
}

request_pane *request_pane_new(model *m, request_pane_callbacks callbacks)
{
    request_pane *p = g_new0(request_pane, 1);
    p->model = m;
    p->callbacks = callbacks;
    p->choice = request_choice_all;
    p->rows = g_array_new(FALSE, FALSE, sizeof(pane_row));
    g_array_set_clear_func(p->rows, clear_row);
    p->widget = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0);
    gtk_box_pack_start(GTK_BOX(p->widget), make_head(p), FALSE, FALSE, 0);
    p->both = gtk_paned_new(GTK_ORIENTATION_HORIZONTAL);
    gtk_paned_pack1(GTK_PANED(p->both), make_table(p), TRUE, TRUE);
    gtk_paned_pack2(GTK_PANED(p->both), make_waterfall(p), TRUE, TRUE);
    gtk_box_pack_start(GTK_BOX(p->widget), p->both, TRUE, TRUE, 0);
    g_signal_connect(p->widget, "destroy", G_CALLBACK(request_pane_on_destroy), p);
    return p;
}

GtkWidget *request_pane_widget(request_pane *p)
{
    return p->widget;
}
