#include "config.h"

#include "diag/report.h"
#include "program/glib_error.h"
#include "base/text.h"
#include "base/time_internal.h"

#include <glib/gstdio.h>
#include <unistd.h>

static void append_escaped(GString *out, const char *text)
{
    char *valid = g_utf8_make_valid(text, -1), *escaped = g_markup_escape_text(valid, -1);
    g_string_append(out, escaped);
    g_free(escaped);
    g_free(valid);
}

/* Returns the path of nlv in this program's directory or in PATH, or NULL. The caller frees it with g_free. */
static char *find_nlv(void)
{
    char *self = g_file_read_link("/proc/self/exe", NULL);
    char *directory = self != NULL ? g_path_get_dirname(self) : NULL;
    char *beside = directory != NULL ? g_build_filename(directory, "nlv", NULL) : NULL;
    g_free(self);
    g_free(directory);
    if (beside != NULL && g_file_test(beside, G_FILE_TEST_IS_EXECUTABLE))
        return beside;
    g_free(beside);
    return g_find_program_in_path("nlv");
}

/* Lets nlv draw the time range of a cause, and appends the picture. Appends nothing if nlv fails. */
static void append_picture(GString *out, const finding *cause, const visits *v, const report_sources *sources)
{
    char *picture = NULL, *nlv = find_nlv(), *bytes = NULL;
    gsize size = 0;
    int fd = nlv != NULL ? g_file_open_tmp("nldiag-XXXXXX.png", &picture, NULL) : -1;
    if (fd >= 0) {
        close(fd);
        GPtrArray *command = report_command(cause, v, sources);
        g_free(command->pdata[0]);
        command->pdata[0] = g_strdup(nlv);
        g_ptr_array_insert(command, 1, g_strdup("--no-index"));
        g_ptr_array_insert(command, 1, g_strdup(picture));
        g_ptr_array_insert(command, 1, g_strdup("--render"));
        g_ptr_array_add(command, NULL);
        int status = 0;
        bool ran =
            g_spawn_sync(NULL, (char **)command->pdata, NULL, G_SPAWN_STDOUT_TO_DEV_NULL | G_SPAWN_STDERR_TO_DEV_NULL,
                         NULL, NULL, NULL, NULL, &status, NULL);
        if (ran && status == 0 && g_file_get_contents(picture, &bytes, &size, NULL) && size > 0) {
            char *text = g_base64_encode((const guchar *)bytes, size);
            g_string_append_printf(out, "<img alt=\"lifelines\" src=\"data:image/png;base64,%s\">\n", text);
        }
        g_ptr_array_free(command, TRUE);
        g_unlink(picture);
    }
    g_free(bytes);
    g_free(picture);
    g_free(nlv);
}

/* Omits a finding's answer if it equals `heading`, the heading of the page. */
static void append_cause(GString *out, const findings *f, guint number, const char *heading,
                         const report_sources *sources)
{
    const finding *cause = g_ptr_array_index(f->list, number);
    char *gain = text_share(cause->rival_of != NULL ? cause->possible : cause->gain), *sure = text_share(cause->sure),
         *view = report_view(cause, f->visits, sources);
    g_string_append(out, "<li><h2>");
    if (cause->rival_of != NULL)
        g_string_append_printf(out, "Alternative to %u: ", report_number(f, cause->rival_of));
    append_escaped(out, strcmp(cause->answer, heading) == 0 ? "Evidence and remedy" : cause->answer);
    g_string_append_printf(out, "</h2>\n<p>Expected gain: %s of the requests' time; confidence %s.</p>\n<ul>\n", gain,
                           sure);
    for (guint i = 0; i < cause->evidence->len; i++) {
        g_string_append(out, "<li>");
        append_escaped(out, g_ptr_array_index(cause->evidence, i));
        g_string_append(out, "</li>\n");
    }
    g_string_append(out, "</ul>\n<p>Try: ");
    append_escaped(out, cause->advice);
    g_string_append(out, "</p>\n");
    append_picture(out, cause, f->visits, sources);
    g_string_append(out, "<pre>");
    append_escaped(out, view);
    g_string_append(out, "</pre></li>\n");
    g_free(gain);
    g_free(sure);
    g_free(view);
}

static void append_cell(GString *out, const char *text)
{
    g_string_append(out, "<td>");
    append_escaped(out, text);
    g_string_append(out, "</td>");
}

static void append_places(GString *out, const findings *f)
{
    enum { SHOWN = 12 };
    uint32_t *order = report_places(f->visits);
    g_string_append(out, "<h2>Where the requests' time goes</h2>\n<table>\n"
                         "<tr><th>Share</th><th>Explained</th><th>Place</th><th>Mean time</th></tr>\n");
    for (guint i = 0; i < f->visits->places->len && i < SHOWN && place_at(f->visits, order[i])->path_ns > 0; i++) {
        report_place_row row = report_describe_place(f, order[i]);
        g_string_append(out, "<tr>");
        append_cell(out, row.share);
        append_cell(out, row.explained != NULL ? row.explained : "");
        append_cell(out, row.name);
        append_cell(out, row.mean);
        g_string_append(out, "</tr>\n");
        report_place_row_clear(&row);
    }
    g_string_append(out, "</table>\n");
    g_free(order);
}

bool report_html(const findings *f, const report_sources *sources, const char *path)
{
    const visits *v = f->visits;
    char *answer = report_answer(f), *limits = report_limits(v);
    GString *out =
        g_string_new("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>nldiag</title>\n<style>"
                     "body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}"
                     "img{max-width:100%;border:1px solid #ccc}pre{background:#f4f4f4;padding:.5em;overflow:auto}"
                     "h2{margin-bottom:0}th,td{text-align:left;vertical-align:top;padding:.1em 1.5em .1em "
                     "0}</style></head><body>\n<h1>");
    append_escaped(out, answer);
    g_string_append(out, "</h1>\n<p>");
    for (int i = 0; i < sources->count; i++) {
        append_escaped(out, sources->names[i]);
        g_string_append(out, " ");
    }
    char *counts = report_counts(v);
    g_string_append_printf(out, "<br>%s</p>\n", counts);
    g_free(counts);
    if (limits != NULL) {
        g_string_append(out, "<p><b>Incomplete</b>: ");
        append_escaped(out, limits);
        g_string_append(out, "</p>\n");
    }
    g_string_append(out, "<ol>\n");
    for (guint i = 0; i < f->list->len; i++)
        append_cause(out, f, i, answer, sources);
    g_string_append(out, "</ol>\n");
    if (v->total_ns > 0)
        append_places(out, f);
    g_string_append(out, "</body></html>\n");
    GError *error = NULL;
    bool written = g_file_set_contents(path, out->str, (gssize)out->len, &error) || glib_error_take(error);
    g_string_free(out, TRUE);
    g_free(answer);
    g_free(limits);
    return written;
}
