#include "config.h"

#include "scene/render.h"
#include "base/error.h"
#include "base/replacement.h"

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

static bool ends_with(const char *path, const char *end)
{
    size_t size = strlen(path), end_size = strlen(end);
    return size > end_size && g_ascii_strcasecmp(path + size - end_size, end) == 0;
}

bool render_knows(const char *path)
{
    return ends_with(path, ".png") || ends_with(path, ".svg") || ends_with(path, ".pdf");
}

typedef struct sink {
    FILE *file;
    int error; /* errno of the first failure */
} sink;

static cairo_status_t write_bytes(void *closure, const unsigned char *data, unsigned size)
{
    sink *s = closure;
    if (fwrite(data, 1, size, s->file) == size)
        return CAIRO_STATUS_SUCCESS;
    s->error = s->error != 0 ? s->error : errno;
    return CAIRO_STATUS_WRITE_ERROR;
}

typedef struct picture {
    double width, height;
    const model *model; /* the model whose `view` to draw; NULL: draw `comparison` */
    const scene_view *view;
    const comparison *comparison;
    const comparison_view *comparison_view;
} picture;

static cairo_status_t draw_to(const picture *p, const char *path, sink *s)
{
    cairo_surface_t *surface;
    bool png = ends_with(path, ".png");
    if (png)
        surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)p->width, (int)p->height);
    else if (ends_with(path, ".svg"))
        surface = cairo_svg_surface_create_for_stream(write_bytes, s, p->width, p->height);
    else
        surface = cairo_pdf_surface_create_for_stream(write_bytes, s, p->width, p->height);
    cairo_t *cr = cairo_create(surface);
    if (p->model != NULL)
        scene_draw(p->model, p->view, cr);
    else
        comparison_draw(p->comparison, p->comparison_view, cr);
    cairo_status_t status = cairo_status(cr);
    cairo_destroy(cr);
    if (png && status == CAIRO_STATUS_SUCCESS)
        status = cairo_surface_write_to_png_stream(surface, write_bytes, s);
    cairo_surface_finish(surface);
    if (status == CAIRO_STATUS_SUCCESS)
        status = cairo_surface_status(surface);
    cairo_surface_destroy(surface);
    return status;
}

static bool render_picture(const picture *p, const char *path)
{
    nl_replacement file;
    if (!nl_replacement_open(&file, path))
        return nl_error_set_errno("%s", path), false;
    sink s = {.file = fdopen(file.fd, "w")};
    cairo_status_t status = s.file != NULL ? draw_to(p, path, &s) : CAIRO_STATUS_WRITE_ERROR;
    if ((s.file == NULL || fflush(s.file) != 0) && s.error == 0)
        s.error = errno;
    if (status == CAIRO_STATUS_SUCCESS && s.error == 0 && !nl_replacement_keep(&file))
        s.error = errno;
    nl_replacement_free(&file);
    if (s.file != NULL)
        fclose(s.file);
    else
        close(file.fd);
    if (status == CAIRO_STATUS_SUCCESS && s.error == 0)
        return true;
    return nl_error_false(NL_ERROR_SYSTEM, "%s: %s", path,
                          s.error != 0 ? strerror(s.error) : cairo_status_to_string(status));
}

bool render_to_file(const model *m, const scene_view *view, const char *path)
{
    return render_picture(&(picture){.width = view->width, .height = view->height, .model = m, .view = view}, path);
}

bool render_comparison_to_file(const comparison *c, const comparison_view *view, const char *path)
{
    return render_picture(
        &(picture){.width = view->width, .height = view->height, .comparison = c, .comparison_view = view}, path);
}
