#include "config.h"

#include "view/welcome.h"
#include "program/glib_error.h"
#include "requests/printable.h"

#include <netlogger.h>
#include <stdlib.h>
#include <string.h>

static const char log_type[] = "application/x-netlogger-ulm"; /* nlv detects the format when it opens a log */

enum { RECENT_MAX = 8, REQUESTS = 300 };

typedef struct choice {
    welcome_callbacks callbacks;
    char *url; /* NULL: let the user choose a file */
} choice;

static void free_choice(gpointer data, GClosure *closure)
{
    choice *c = data;
    (void)closure;
    g_free(c->url);
    g_free(c);
}

/* ---- an example ---- */

/* Appends an example log: requests of a client to two servers, and the servers' load. One server is sometimes slow. */
static void write_example(GString *text)
{
    static const char *const events[] = {"Client.Send", "Server.Recv", "Disk.Start",
                                         "Disk.End",    "Server.Send", "Client.Recv"};
    static const int usual_us[] = {0, 800, 300, 5000, 400, 900};
    GRand *rand = g_rand_new_with_seed(7);
    int64_t start_ns = INT64_C(1767268800000000000);
    for (int i = 0; i < REQUESTS; i++) {
        int64_t time_ns = start_ns + (int64_t)i * 9000000 + g_rand_int_range(rand, 0, 4000000);
        int server = i % 2 + 1;
        bool slow = server == 2 && i % 60 > 45;
        for (int step = 0; step < 6; step++) {
            char date[NL_TIME_TEXT_SIZE];
            int took_us = usual_us[step] / 2 + (usual_us[step] > 0 ? g_rand_int_range(rand, 0, usual_us[step]) : 0);
            time_ns += (int64_t)took_us * (slow && step == 3 ? 12000 : 1000);
            nl_time_format_ulm(time_ns, date);
            bool on_client = step == 0 || step == 5;
            g_string_append_printf(text, "DATE=%s HOST=%s%.0d PROG=%s LVL=Usage NL.EVNT=%s REQ.ID=%d\n", date,
                                   on_client ? "client" : "server", on_client ? 0 : server, on_client ? "get" : "serve",
                                   events[step], i);
        }
        if (i % 5 == 0) {
            char date[NL_TIME_TEXT_SIZE];
            nl_time_format_ulm(start_ns + (int64_t)i * 9000000, date);
            g_string_append_printf(text, "DATE=%s HOST=server%d PROG=sensor LVL=System NL.EVNT=CpuLoad CPU.BUSY=%d\n",
                                   date, server, (slow ? 80 : 20) + g_rand_int_range(rand, 0, 20));
        }
        if (slow && i % 60 == 51) {
            char date[NL_TIME_TEXT_SIZE];
            nl_time_format_ulm(start_ns + (int64_t)i * 9000000, date);
            g_string_append_printf(text, "DATE=%s HOST=server2 PROG=kernel LVL=Warning NL.EVNT=DiskRetry DISK=sda\n",
                                   date);
        }
    }
    g_rand_free(rand);
}

static gint by_line(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorts lines that begin with their times. */
static void sort_lines(GString *text)
{
    char **lines = g_strsplit(text->str, "\n", -1);
    qsort(lines, g_strv_length(lines), sizeof *lines, by_line);
    char *sorted = g_strjoinv("\n", lines + (**lines == '\0'));
    g_string_printf(text, "%s\n", sorted);
    g_free(sorted);
    g_strfreev(lines);
}

static char *welcome_make_example(void)
{
    char *directory = g_build_filename(g_get_user_cache_dir(), "netlogger", NULL);
    char *path = g_build_filename(directory, "example.log", NULL);
    GString *text = g_string_new(NULL);
    GError *error = NULL;
    write_example(text);
    sort_lines(text);
    bool good = g_mkdir_with_parents(directory, 0700) == 0;
    if (!good)
        nl_error_set_errno("create %s", directory);
    else
        good = g_file_set_contents(path, text->str, (gssize)text->len, &error) || glib_error_take(error);
    g_string_free(text, TRUE);
    g_free(directory);
    if (!good)
        g_clear_pointer(&path, g_free);
    return path;
}

/* ---- recently opened logs ---- */

void welcome_remember(const char *path)
{
    char *absolute = g_canonicalize_filename(path, NULL), *uri = g_filename_to_uri(absolute, NULL, NULL);
    GtkRecentData data = {.mime_type = (char *)log_type, .app_name = (char *)"nlv", .app_exec = (char *)"nlv %f"};
    if (uri != NULL && g_file_test(absolute, G_FILE_TEST_EXISTS))
        gtk_recent_manager_add_full(gtk_recent_manager_get_default(), uri, &data);
    g_free(uri);
    g_free(absolute);
}

static gint by_time(gconstpointer a, gconstpointer b)
{
    time_t first = gtk_recent_info_get_modified((GtkRecentInfo *)a);
    time_t second = gtk_recent_info_get_modified((GtkRecentInfo *)b);
    return (first < second) - (first > second);
}

static void on_choice(GtkButton *button, gpointer user)
{
    (void)button;
    const choice *c = user;
    if (c->url != NULL)
        c->callbacks.open(c->callbacks.user, c->url);
    else
        c->callbacks.choose(c->callbacks.user);
}

static GtkWidget *choice_button(const char *label, const char *tip, const char *url, welcome_callbacks callbacks)
{
    GtkWidget *button = gtk_button_new_with_mnemonic(label);
    choice *c = g_new(choice, 1);
    *c = (choice){callbacks, g_strdup(url)};
    gtk_widget_set_tooltip_text(button, tip);
    gtk_widget_set_halign(gtk_bin_get_child(GTK_BIN(button)), GTK_ALIGN_START);
    g_signal_connect_data(button, "clicked", G_CALLBACK(on_choice), c, free_choice, 0);
    return button;
}

static void add_recent(GtkWidget *box, welcome_callbacks callbacks)
{
    GList *items = g_list_sort(gtk_recent_manager_get_items(gtk_recent_manager_get_default()), by_time);
    int shown = 0;
    GtkWidget *grid = gtk_grid_new();
    gtk_grid_set_column_homogeneous(GTK_GRID(grid), TRUE);
    gtk_box_pack_start(GTK_BOX(box), grid, FALSE, FALSE, 0);
    for (GList *at = items; at != NULL && shown < RECENT_MAX; at = at->next) {
        GtkRecentInfo *info = at->data;
        char *path = g_filename_from_uri(gtk_recent_info_get_uri(info), NULL, NULL);
        bool is_log = g_strcmp0(gtk_recent_info_get_mime_type(info), log_type) ==
                      0; /* the entry is a log, not a picture or printout */
        if (path != NULL && is_log && gtk_recent_info_has_application(info, "nlv") &&
            g_file_test(path, G_FILE_TEST_EXISTS)) {
            char *tip = printable(path), *base = g_path_get_basename(path), *label = printable(base);
            GtkWidget *button = choice_button("", tip, path, callbacks);
            gtk_button_set_use_underline(GTK_BUTTON(button), FALSE);
            gtk_button_set_label(GTK_BUTTON(button), label);
            gtk_widget_set_halign(gtk_bin_get_child(GTK_BIN(button)), GTK_ALIGN_START);
            gtk_button_set_relief(GTK_BUTTON(button), GTK_RELIEF_NONE);
            gtk_label_set_ellipsize(GTK_LABEL(gtk_bin_get_child(GTK_BIN(button))), PANGO_ELLIPSIZE_MIDDLE);
            gtk_grid_attach(GTK_GRID(grid), button, shown % 2, shown / 2, 1, 1);
            g_free(label);
            g_free(base);
            g_free(tip);
            shown++;
        }
        g_free(path);
    }
    g_list_free_full(items, (GDestroyNotify)(void (*)(void))gtk_recent_info_unref);
    if (shown == 0) {
        GtkWidget *none = gtk_label_new("No recent logs");
        gtk_label_set_xalign(GTK_LABEL(none), 0);
        gtk_style_context_add_class(gtk_widget_get_style_context(none), "dim-label");
        gtk_box_pack_start(GTK_BOX(box), none, FALSE, FALSE, 0);
    }
}

/* ---- the page ---- */

static GtkWidget *heading(const char *markup)
{
    GtkWidget *label = gtk_label_new(NULL);
    gtk_label_set_markup(GTK_LABEL(label), markup);
    gtk_label_set_xalign(GTK_LABEL(label), 0);
    gtk_label_set_line_wrap(GTK_LABEL(label), TRUE);
    gtk_label_set_max_width_chars(GTK_LABEL(label), 56);
    return label;
}

static void on_address(GtkEntry *entry, gpointer user)
{
    const choice *c = user;
    char *text = g_strstrip(g_strdup(gtk_entry_get_text(entry)));
    char *url = strstr(text, "://") != NULL || g_str_has_prefix(text, "unix:") ? g_strdup(text)
                                                                               : g_strdup_printf("x-netlog://%s", text);
    if (*text != '\0')
        c->callbacks.open(c->callbacks.user, url);
    g_free(url);
    g_free(text);
}

static void on_connect(GtkButton *button, gpointer user)
{
    (void)button;
    g_signal_emit_by_name(user, "activate");
}

static GtkWidget *address_row(GtkWidget *welcome, welcome_callbacks callbacks)
{
    GtkWidget *row = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6), *entry = gtk_entry_new();
    GtkWidget *button = gtk_button_new_with_label("Connect");
    choice *c = g_new0(choice, 1);
    c->callbacks = callbacks;
    gtk_entry_set_placeholder_text(GTK_ENTRY(entry), "host or host:14830");
    atk_object_set_name(gtk_widget_get_accessible(entry), "A collector's address");
    gtk_widget_set_tooltip_text(entry, "The address of a netlogd; nlv shows its new records as they arrive");
    g_signal_connect_data(entry, "activate", G_CALLBACK(on_address), c, free_choice, 0);
    g_signal_connect(button, "clicked", G_CALLBACK(on_connect), entry);
    gtk_box_pack_start(GTK_BOX(row), entry, TRUE, TRUE, 0);
    gtk_box_pack_start(GTK_BOX(row), button, FALSE, FALSE, 0);
    g_object_set_data(G_OBJECT(welcome), "address", entry);
    return row;
}

static void on_example(GtkButton *button, gpointer user)
{
    (void)button;
    const choice *c = user;
    char *path = welcome_make_example();
    if (path != NULL)
        c->callbacks.open(c->callbacks.user, path);
    g_free(path);
}

GtkWidget *welcome_new(welcome_callbacks callbacks)
{
    GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 8);
    GtkWidget *example = gtk_button_new_with_mnemonic("Open an e_xample");
    choice *c = g_new0(choice, 1);
    c->callbacks = callbacks;
    gtk_widget_set_halign(box, GTK_ALIGN_CENTER);
    gtk_widget_set_valign(box, GTK_ALIGN_CENTER);
    gtk_widget_set_size_request(box, 460, -1);
    gtk_widget_set_halign(gtk_bin_get_child(GTK_BIN(example)), GTK_ALIGN_START);
    gtk_widget_set_tooltip_text(example, "Requests to two servers; the disk of one server is sometimes slow");
    g_signal_connect_data(example, "clicked", G_CALLBACK(on_example), c, free_choice, 0);
    GtkWidget *parts[] = {
        heading("<span size='xx-large' weight='bold'>See where the time goes</span>"),
        heading("nlv draws logs. Each request's way through programs and hosts is a line; the flatter the line, the "
                "more time a step takes. Drop a log here, or begin with one of these:"),
        choice_button("_Open a log…   (Ctrl+O)", "Files of any size, in any format that nlconv reads", NULL, callbacks),
        example,
        heading("<b>Recent logs</b>"),
    };
    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++)
        gtk_box_pack_start(GTK_BOX(box), parts[i], FALSE, FALSE, 0);
    add_recent(box, callbacks);
    gtk_box_pack_start(GTK_BOX(box), heading("<b>Watch a collector</b>"), FALSE, FALSE, 0);
    GtkWidget *scrolled = gtk_scrolled_window_new(NULL, NULL);
    gtk_box_pack_start(GTK_BOX(box), address_row(scrolled, callbacks), FALSE, FALSE, 0);
    gtk_scrolled_window_set_policy(GTK_SCROLLED_WINDOW(scrolled), GTK_POLICY_NEVER, GTK_POLICY_AUTOMATIC);
    gtk_container_add(GTK_CONTAINER(scrolled), box);
    return scrolled;
}

void welcome_begin_address(GtkWidget *welcome)
{
    gtk_widget_grab_focus(g_object_get_data(G_OBJECT(welcome), "address"));
}
