#include "config.h"

#include "view/commands.h"

#include <string.h>

typedef struct key {
    guint value; /* 0: no key */
    GdkModifierType modifiers;
} key;

typedef struct entry {
    command which;
    const char *menu, *label;
    key keys[4]; /* the menu shows the first key */
} entry;

#define CONTROL GDK_CONTROL_MASK
#define SHIFT GDK_SHIFT_MASK
#define ALT GDK_MOD1_MASK

static const entry entries[] = {
    {COMMAND_OPEN, "_File", "_Open a log…", {{GDK_KEY_o, CONTROL}}},
    {COMMAND_CONNECT, "_File", "_Connect to a collector…", {{GDK_KEY_k, CONTROL}}},
    {COMMAND_EXPORT, "_File", "_Save the picture…", {{GDK_KEY_e, CONTROL}}},
    {COMMAND_EXPORT_RECORDS, "_File", "Save _records…", {{GDK_KEY_e, CONTROL | SHIFT}}},
    {COMMAND_PRINT, "_File", "_Print…", {{GDK_KEY_p, CONTROL}}},
    {COMMAND_LAST_TIME, "_File", "Restore the _last session", {{GDK_KEY_r, CONTROL}}},
    {COMMAND_QUIT, "_File", "_Quit", {{GDK_KEY_q, CONTROL}}},
    {COMMAND_UNDO, "_Edit", "_Undo", {{GDK_KEY_z, CONTROL}}},
    {COMMAND_REDO, "_Edit", "_Redo", {{GDK_KEY_z, CONTROL | SHIFT}, {GDK_KEY_y, CONTROL}}},
    {COMMAND_BOOKMARK, "_Edit", "_Bookmark here…", {{GDK_KEY_b, 0}}},
    {COMMAND_BOOKMARKS, "_Edit", "Book_marks…", {{GDK_KEY_b, CONTROL}}},
    {COMMAND_NEXT_BOOKMARK, "_Edit", "_Next bookmark", {{GDK_KEY_bracketright, 0}}},
    {COMMAND_PREVIOUS_BOOKMARK, "_Edit", "_Previous bookmark", {{GDK_KEY_bracketleft, 0}}},
    {COMMAND_MEASURE, "_Edit", "M_easure from here", {{GDK_KEY_m, 0}}},
    {COMMAND_EDIT, "_Edit", "E_dit the drawing…", {{GDK_KEY_F4, 0}}},
    {COMMAND_ALL, "_View", "Show _all", {{GDK_KEY_Home, 0}}},
    {COMMAND_ZOOM_IN, "_View", "Zoom _in", {{GDK_KEY_w, 0}, {GDK_KEY_Up, 0}, {GDK_KEY_plus, 0}, {GDK_KEY_KP_Add, 0}}},
    {COMMAND_ZOOM_OUT,
     "_View",
     "Zoom _out",
     {{GDK_KEY_s, 0}, {GDK_KEY_Down, 0}, {GDK_KEY_minus, 0}, {GDK_KEY_KP_Subtract, 0}}},
    {COMMAND_LEFT, "_View", "_Earlier", {{GDK_KEY_a, 0}, {GDK_KEY_Left, 0}}},
    {COMMAND_RIGHT, "_View", "_Later", {{GDK_KEY_d, 0}, {GDK_KEY_Right, 0}}},
    {COMMAND_BACK, "_View", "_Back", {{GDK_KEY_Left, ALT}, {GDK_KEY_BackSpace, 0}}},
    {COMMAND_FORWARD, "_View", "_Forward", {{GDK_KEY_Right, ALT}}},
    {COMMAND_ZOOM_TO_MARKED, "_View", "Zoom to the _marked time", {{GDK_KEY_z, 0}}},
    {COMMAND_CLOCK, "_View", "_UTC, local or relative time", {{GDK_KEY_u, 0}}},
    {COMMAND_THREADS, "_View", "T_hreads or events", {{GDK_KEY_v, 0}}},
    {COMMAND_TRACK, "_View", "Collapse or _pin a track…", {{GDK_KEY_k, 0}}},
    {COMMAND_EXPAND, "_View", "E_xpand the next track", {{GDK_KEY_t, 0}}},
    {COMMAND_SCROLL_UP, "_View", "Scroll up", {{GDK_KEY_Page_Up, 0}}},
    {COMMAND_SCROLL_DOWN, "_View", "Scroll down", {{GDK_KEY_Page_Down, 0}}},
    {COMMAND_CLEAR, "_View", "_Clear marks", {{GDK_KEY_Escape, 0}}},
    {COMMAND_SIDE, "_View", "_Side panel", {{GDK_KEY_F9, 0}}},
    {COMMAND_SENSORS, "_View", "Se_nsors", {{GDK_KEY_F8, 0}}},
    {COMMAND_CLOCKS, "_View", "Correct the cloc_ks", {{GDK_KEY_F7, 0}}},
    {COMMAND_DARK, "_View", "_Dark background", {{GDK_KEY_d, CONTROL}}},
    {COMMAND_REAL_TIME, "_Play", "_Follow or pause", {{GDK_KEY_space, 0}}},
    {COMMAND_PLAY, "_Play", "_Play from here", {{GDK_KEY_p, 0}}},
    {COMMAND_FASTER, "_Play", "_Faster", {{GDK_KEY_period, 0}}},
    {COMMAND_SLOWER, "_Play", "_Slower", {{GDK_KEY_comma, 0}}},
    {COMMAND_FIND, "_Search", "_Find…", {{GDK_KEY_f, CONTROL}, {GDK_KEY_slash, 0}}},
    {COMMAND_NEXT, "_Search", "_Next match", {{GDK_KEY_n, 0}, {GDK_KEY_F3, 0}}},
    {COMMAND_PREVIOUS, "_Search", "_Previous match", {{GDK_KEY_n, SHIFT}, {GDK_KEY_F3, SHIFT}}},
    {COMMAND_FILTER, "_Search", "Show _only…", {{GDK_KEY_l, CONTROL}}},
    {COMMAND_CHOOSE, "_Search", "_Events, hosts, programs…", {{GDK_KEY_t, CONTROL}}},
    {COMMAND_REQUESTS, "_Search", "Slow _requests…", {{GDK_KEY_r, 0}}},
    {COMMAND_FAILED, "_Search", "Failed r_equests…", {{GDK_KEY_e, 0}}},
    {COMMAND_ONLY_SLOW, "_Search", "Onl_y slow requests…", {{GDK_KEY_r, SHIFT}}},
    {COMMAND_ONLY_FAILED, "_Search", "Only faile_d requests…", {{GDK_KEY_e, SHIFT}}},
    {COMMAND_BRUSH, "_Search", "Requests of an _area of the heat map…", {{GDK_KEY_h, 0}}},
    {COMMAND_LEGEND, "_Search", "Show or hide co_lors…", {{GDK_KEY_l, 0}}},
    {COMMAND_COMPARE, "_Search", "_Compare requests…", {{GDK_KEY_c, 0}}},
    {COMMAND_PALETTE, "_Help", "_Find a command…", {{GDK_KEY_p, CONTROL | SHIFT}, {GDK_KEY_F2, 0}}},
    {COMMAND_SHORTCUTS, "_Help", "_Keys and pointer", {{GDK_KEY_F1, 0}}},
};

typedef struct item {
    command_do *act;
    void *user;
    command which;
} item;

static void on_activate(GtkMenuItem *widget, gpointer user)
{
    (void)widget;
    const item *i = user;
    i->act(i->user, i->which);
}

static void free_item(gpointer data, GClosure *closure)
{
    (void)closure;
    g_free(data);
}

static GtkWidget *menu_item(const entry *e, command_do *act, void *user)
{
    GtkWidget *widget = gtk_menu_item_new_with_mnemonic(e->label);
    gtk_accel_label_set_accel(GTK_ACCEL_LABEL(gtk_bin_get_child(GTK_BIN(widget))), e->keys[0].value,
                              e->keys[0].modifiers);
    item *i = g_new(item, 1);
    *i = (item){act, user, e->which};
    g_signal_connect_data(widget, "activate", G_CALLBACK(on_activate), i, free_item, 0);
    return widget;
}

GtkWidget *commands_menu_bar(command_do *act, void *user)
{
    GtkWidget *bar = gtk_menu_bar_new(), *menu = NULL;
    const char *name = "";
    for (size_t i = 0; i < G_N_ELEMENTS(entries); i++) {
        if (strcmp(entries[i].menu, name) != 0) {
            name = entries[i].menu;
            GtkWidget *top = gtk_menu_item_new_with_mnemonic(name);
            menu = gtk_menu_new();
            gtk_menu_item_set_submenu(GTK_MENU_ITEM(top), menu);
            gtk_menu_shell_append(GTK_MENU_SHELL(bar), top);
        }
        gtk_menu_shell_append(GTK_MENU_SHELL(menu), menu_item(&entries[i], act, user));
    }
    return bar;
}

/* Returns whether a key edits text or moves the cursor in text. */
static bool is_for_text(const key *k)
{
    return (k->modifiers & (CONTROL | ALT)) == 0 && (k->value < GDK_KEY_F1 || k->value > GDK_KEY_F12) &&
           k->value != GDK_KEY_Escape;
}

command commands_of_key(const GdkEventKey *event, bool typing)
{
    guint value = gdk_keyval_to_lower(event->keyval);
    GdkModifierType modifiers = event->state & (CONTROL | ALT | SHIFT);
    for (size_t i = 0; i < G_N_ELEMENTS(entries); i++)
        for (size_t k = 0; k < G_N_ELEMENTS(entries[i].keys); k++) {
            const key *own = &entries[i].keys[k];
            /* for keys that are not letters, ignore Shift, because some keyboards need Shift for these keys */
            bool is_letter = (value >= GDK_KEY_a && value <= GDK_KEY_z) || value > 0xff;
            GdkModifierType wanted = is_letter ? modifiers : (GdkModifierType)(modifiers & ~SHIFT);
            if (own->value == value && own->value != 0 && own->modifiers == wanted && !(typing && is_for_text(own)))
                return entries[i].which;
        }
    return COMMAND_NONE;
}

/* Returns a copy of a label without underscores, which mark mnemonics. */
static char *plain_label(const char *label)
{
    char *plain = g_strdup(label), *to = plain;
    for (const char *at = label; *at != '\0'; at++)
        if (*at != '_')
            *to++ = *at;
    *to = '\0';
    return plain;
}

command commands_at(size_t i, char **name, char **key)
{
    if (i >= G_N_ELEMENTS(entries))
        return COMMAND_NONE;
    *name = plain_label(entries[i].label);
    *key = gtk_accelerator_get_label(entries[i].keys[0].value, entries[i].keys[0].modifiers);
    return entries[i].which;
}

char *commands_help(void)
{
    GString *text =
        g_string_new("<b>With the pointer</b>\n"
                     "Wheel: zoom at the pointer. With Shift: move earlier or later.\n"
                     "Drag: move. Click: choose a lifeline; its records appear at the side.\n"
                     "Drag with Shift, or the middle button: zoom to the dragged range.\n"
                     "Drag with the right button, or Ctrl: show statistics of that time.\n"
                     "The strip at the bottom shows the whole log. Click there: show the failed or slowest request, or "
                     "go to that time. Drag there: list the requests of an area. Click on the number of slow or "
                     "failed requests below the strip: list these requests.\n"
                     "Click on a color below the title: show only the requests with this color, or all again. With "
                     "Shift: hide them, or show them again.\n"
                     "Click on a name or a label at the left: collapse or expand this track. With Shift: pin it at the "
                     "top, or unpin it. Wheel there, or with Ctrl: scroll the tracks.\n");
    const char *name = "";
    for (size_t i = 0; i < G_N_ELEMENTS(entries); i++) {
        if (strcmp(entries[i].menu, name) != 0)
            g_string_append_printf(text, "\n<b>%s</b>\n", entries[i].menu + 1);
        name = entries[i].menu;
        char *plain = plain_label(entries[i].label);
        char *shown = gtk_accelerator_get_label(entries[i].keys[0].value, entries[i].keys[0].modifiers);
        g_string_append_printf(text, "<tt>%-12s</tt> %s\n", shown, plain);
        g_free(shown);
        g_free(plain);
    }
    return g_string_free(text, FALSE);
}
