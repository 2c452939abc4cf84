#include "config.h"

#include "view/keeping.h"

static const double bytes_a_record = 48, most_millions = 2000;

static void on_changed(GtkSpinButton *spin, gpointer label)
{
    double millions = gtk_spin_button_get_value(spin);
    char *text = millions > 0 ? g_strdup_printf("at most about %.0f MB of memory", millions * bytes_a_record)
                              : g_strdup("0: all of them, whatever memory that takes");
    gtk_label_set_text(GTK_LABEL(label), text);
    g_free(text);
}

void keeping_ask(window *w)
{
    GtkWidget *dialog = gtk_dialog_new_with_buttons("Records kept", GTK_WINDOW(w->top), GTK_DIALOG_MODAL, "_Cancel",
                                                    GTK_RESPONSE_CANCEL, "_Keep", GTK_RESPONSE_ACCEPT, NULL);
    GtkWidget *box = gtk_dialog_get_content_area(GTK_DIALOG(dialog));
    GtkWidget *label =
        gtk_label_new_with_mnemonic("_Millions of records, the latest, that are kept of a log that goes on:");
    GtkWidget *spin = gtk_spin_button_new_with_range(0, most_millions, 1), *memory = gtk_label_new("");
    gtk_label_set_line_wrap(GTK_LABEL(label), TRUE);
    gtk_label_set_max_width_chars(GTK_LABEL(label), 40);
    gtk_label_set_mnemonic_widget(GTK_LABEL(label), spin);
    atk_object_set_name(gtk_widget_get_accessible(spin), "Millions of records");
    gtk_spin_button_set_digits(GTK_SPIN_BUTTON(spin), 1);
    gtk_entry_set_activates_default(GTK_ENTRY(spin), TRUE);
    gtk_dialog_set_default_response(GTK_DIALOG(dialog), GTK_RESPONSE_ACCEPT);
    g_signal_connect(spin, "value-changed", G_CALLBACK(on_changed), memory);
    gtk_spin_button_set_value(GTK_SPIN_BUTTON(spin), model_records_max(w->model) / 1e6);
    on_changed(GTK_SPIN_BUTTON(spin), memory);
    g_object_set(box, "margin", 12, "spacing", 8, NULL);
    gtk_container_add(GTK_CONTAINER(box), label);
    gtk_container_add(GTK_CONTAINER(box), spin);
    gtk_container_add(GTK_CONTAINER(box), memory);
    gtk_widget_show_all(dialog);
    if (gtk_dialog_run(GTK_DIALOG(dialog)) == GTK_RESPONSE_ACCEPT) {
        gtk_spin_button_update(GTK_SPIN_BUTTON(spin));
        model_set_records_max(w->model, (uint32_t)(gtk_spin_button_get_value(GTK_SPIN_BUTTON(spin)) * 1e6));
    }
    gtk_widget_destroy(dialog);
}
