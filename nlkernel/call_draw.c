#include "config.h"

#include "call_draw.h"

#include "base/error.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/text.h"
#include "convert/output.h"

#include <graphviz/gvc.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The functions and variables of libgvc and libcgraph. */
#define GVC_FUNCTIONS(FUNCTION)                                                                                        \
    FUNCTION(, Agdirected)                                                                                             \
    FUNCTION(, agattr)                                                                                                 \
    FUNCTION(, agclose)                                                                                                \
    FUNCTION(, agedge)                                                                                                 \
    FUNCTION(, aglasterr)                                                                                              \
    FUNCTION(, agnameof)                                                                                               \
    FUNCTION(, agnode)                                                                                                 \
    FUNCTION(, agopen)                                                                                                 \
    FUNCTION(, agsafeset)                                                                                              \
    FUNCTION(, agseterr)                                                                                               \
    FUNCTION(, agwrite)                                                                                                \
    FUNCTION(, gvContext)                                                                                              \
    FUNCTION(, gvFreeContext)                                                                                          \
    FUNCTION(, gvFreeLayout)                                                                                           \
    FUNCTION(, gvLayout)                                                                                               \
    FUNCTION(, gvRender)

NL_LIBRARY_DEFINE(gvc, GVC_LIBRARY, GVC_FUNCTIONS);

static const char *find_format(const char *path)
{
    static const char *const formats[] = {"pdf", "svg", "png", "dot"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot != NULL && i < sizeof formats / sizeof *formats; i++)
        if (strcmp(dot + 1, formats[i]) == 0)
            return formats[i];
    return nl_error_null(NL_ERROR_INVALID, "%s: the name must end in .pdf, .svg, .png or .dot", path);
}

bool call_draw_knows(const char *path)
{
    return find_format(path) != NULL;
}

/* ---- colors and labels ---- */

/* Formats a color between pale yellow (heat 0) and dark red (heat 1). */
static void heat_color(double heat, char out[8])
{
    static const unsigned char stops[][3] = {
        {255, 255, 229}, {254, 217, 118}, {253, 141, 60}, {227, 26, 28}, {177, 0, 38}};
    enum { LAST = sizeof stops / sizeof *stops - 1 };
    heat = heat < 0 ? 0 : heat > 1 ? 1 : heat;
    int at = (int)(heat * LAST);
    at = at < LAST ? at : LAST - 1;
    double part = heat * LAST - at;
    unsigned rgb[3];
    for (int i = 0; i < 3; i++)
        rgb[i] = (unsigned)(stops[at][i] + part * (stops[at + 1][i] - stops[at][i]) + 0.5);
    snprintf(out, 8, "#%02x%02x%02x", rgb[0] & 255, rgb[1] & 255, rgb[2] & 255);
}

/* A logarithmic scale from the smallest number of calls (heat 0) to the largest number (heat 1). */
typedef struct heat_scale {
    uint64_t minimum, maximum;
} heat_scale;

static void heat_scale_take(heat_scale *s, uint64_t calls)
{
    calls = calls > 0 ? calls : 1;
    s->minimum = s->minimum == 0 || calls < s->minimum ? calls : s->minimum;
    s->maximum = calls > s->maximum ? calls : s->maximum;
}

static double heat_of(uint64_t calls, const heat_scale *s)
{
    return s->maximum > s->minimum ? log((double)(calls > 0 ? calls : 1) / (double)s->minimum) /
                                         log((double)s->maximum / (double)s->minimum)
                                   : 0.5;
}

/* Formats a count with a decimal unit and about 2 digits: 12345678 becomes "12 M". */
static void write_count(uint64_t count, char out[16])
{
    static const char units[] = " kMGTPE";
    double value = (double)count;
    size_t unit = 0;
    for (; value >= 999.5 && unit + 1 < sizeof units - 1; unit++)
        value /= 1000;
    if (unit == 0)
        snprintf(out, 16, "%" PRIu64, count);
    else
        snprintf(out, 16, value < 9.95 ? "%.1f %c" : "%.0f %c", value, units[unit]);
}

static void set_attribute(void *object, char *name, const char *value)
{
    gvc.agsafeset(object, name, (char *)value, "");
}

NL_PRINTF(3, 4) static void set_format(void *object, char *name, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    set_attribute(object, name, text);
}

/* ---- files ---- */

/* Renders into *picture, which the caller frees, and sets *size to its length in bytes. Returns false on failure. */
static bool render(GVC_t *context, Agraph_t *graph, const char *format, char **picture, size_t *size)
{
    FILE *file = nl_memory_check(open_memstream(picture, size));
    bool good =
        strcmp(format, "dot") == 0 ? gvc.agwrite(graph, file) == 0 : gvc.gvRender(context, graph, format, file) == 0;
    good = good && !ferror(file);
    return fclose(file) == 0 && good;
}

static bool report_libgvc_error(const char *path)
{
    program_error("%s: cannot draw: %s", path,
                  gvc.aglasterr() != NULL ? gvc.aglasterr() : "libgvc did not give a reason");
    return false;
}

/*
 * Writes a temporary file, and renames it to path when it is complete. On failure, reports the problem and returns
 * false.
 */
static bool write_picture(GVC_t *context, Agraph_t *graph, const char *path, const char *format)
{
    char *picture = NULL;
    size_t size = 0;
    bool good = render(context, graph, format, &picture, &size) || report_libgvc_error(path);
    output *out = good ? output_open(path) : NULL;
    good = out != NULL && output_write(out, picture, size);
    good = out != NULL && output_close(out, good) && good;
    free(picture);
    return good;
}

/* Lays out the graph (not for a .dot file), and writes and frees the graph. On failure, reports the problem and returns
 * false. */
static bool write_graph(Agraph_t *graph, const char *path)
{
    const char *format = find_format(path);
    GVC_t *context = gvc.gvContext();
    bool laid_out = strcmp(format, "dot") != 0;
    bool good = !laid_out || gvc.gvLayout(context, graph, "dot") == 0 || report_libgvc_error(path);
    good = good && write_picture(context, graph, path, format);
    if (laid_out)
        gvc.gvFreeLayout(context, graph);
    gvc.agclose(graph);
    gvc.gvFreeContext(context);
    return good;
}

/* ---- the graph ---- */

static Agnode_t *add_function(Agraph_t *graph, const call_view *v, uint32_t function, const heat_scale *scale)
{
    const call_function *f = &v->calls.functions[function];
    const char *name = calls_name(&v->calls, function);
    Agnode_t *node = gvc.agnode(graph, (char *)name, 1);
    char color[8], count[16];
    size_t more;
    double heat = heat_of(calls_heat(f, v->chains), scale);
    heat_color(heat, color);
    write_count(f->calls, count);
    set_format(node, "label", f->calls > 0 ? "%s\n%s" : "%s", name, count);
    set_attribute(node, "fillcolor", color);
    set_attribute(node, "fontcolor", heat > 0.7 ? "white" : "black");
    const char *file = call_view_file(v, function, &more);
    set_format(node, "tooltip", "%s: %" PRIu64 " call%s%s%s%s", name, f->calls, nl_plural(f->calls),
               *file != '\0' ? ", " : "", file, more > 0 ? ", or another file" : "");
    return node;
}

static void add_call(Agraph_t *graph, Agnode_t *caller, Agnode_t *function, uint64_t calls, const heat_scale *scale)
{
    Agedge_t *edge = gvc.agedge(graph, caller, function, NULL, 1);
    char color[8], count[16];
    double heat = heat_of(calls, scale);
    heat_color(0.4 + 0.6 * heat, color);
    write_count(calls, count);
    set_attribute(edge, "color", color);
    set_attribute(edge, "label", count);
    set_format(edge, "penwidth", "%.2f", 0.6 + 3 * heat);
    set_format(edge, "weight", "%d", 1 + (int)(9 * heat));
    set_format(edge, "tooltip", "%s calls %s: %" PRIu64, gvc.agnameof(caller), gvc.agnameof(function), calls);
}

/* Limits the time for the layout, by reducing libgvc's effort for graphs with many edges. */
static void set_effort(Agraph_t *graph, size_t edges)
{
    enum { EDGES_MEDIUM = 400, EDGES_MANY = 1500 };
    set_attribute(graph, "splines", edges > EDGES_MANY ? "line" : edges > EDGES_MEDIUM ? "polyline" : "true");
    if (edges > EDGES_MEDIUM) {
        set_attribute(graph, "nslimit", edges > EDGES_MANY ? "0.5" : "2");
        set_attribute(graph, "nslimit1", edges > EDGES_MANY ? "0.5" : "2");
        set_attribute(graph, "mclimit", edges > EDGES_MANY ? "0.05" : "0.3");
    }
}

static Agraph_t *new_graph(const call_view *v)
{
    Agraph_t *graph = gvc.agopen("calls", *gvc.Agdirected, NULL);
    char *summary = call_view_summary(v);
    gvc.agseterr(AGMAX); /* libgvc must not print errors */
    set_attribute(graph, "label", summary);
    set_attribute(graph, "labelloc", "t");
    set_attribute(graph, "labeljust", "l");
    set_attribute(graph, "fontname", "DejaVu Sans");
    set_attribute(graph, "rankdir", "LR");
    set_attribute(graph, "nodesep", "0.12");
    set_attribute(graph, "ranksep", "0.6");
    gvc.agattr(graph, AGNODE, "shape", "box");
    gvc.agattr(graph, AGNODE, "style", "filled,rounded");
    gvc.agattr(graph, AGNODE, "color", "#888888");
    gvc.agattr(graph, AGNODE, "fontname", "DejaVu Sans");
    gvc.agattr(graph, AGNODE, "fontsize", "10");
    gvc.agattr(graph, AGNODE, "margin", "0.08,0.03");
    gvc.agattr(graph, AGNODE, "height", "0.3");
    gvc.agattr(graph, AGEDGE, "fontname", "DejaVu Sans");
    gvc.agattr(graph, AGEDGE, "fontsize", "8");
    gvc.agattr(graph, AGEDGE, "arrowsize", "0.6");
    free(summary);
    return graph;
}

bool call_draw_graph(const call_view *v, const char *path)
{
    const calls *c = &v->calls;
    if (!nl_library_load(&gvc_library)) {
        program_error("%s: cannot draw: %s", path, nl_error_message());
        return false;
    }
    Agraph_t *graph = new_graph(v);
    Agnode_t **nodes = nl_memory_check(calloc(c->function_count + 1, sizeof *nodes));
    heat_scale of_functions = {0}, of_calls = {0};
    size_t edges = 0;
    for (size_t i = 0; i < v->count; i++)
        heat_scale_take(&of_functions, calls_heat(&c->functions[v->order[i]], v->chains));
    for (size_t i = 0; i < v->count; i++)
        nodes[v->order[i]] = add_function(graph, v, v->order[i], &of_functions);
    for (size_t i = 0; i < c->edge_count; i++)
        if (nodes[c->edges[i].caller] != NULL && nodes[c->edges[i].function] != NULL)
            heat_scale_take(&of_calls, c->edges[i].calls);
    for (size_t i = 0; i < c->edge_count; i++)
        if (nodes[c->edges[i].caller] != NULL && nodes[c->edges[i].function] != NULL) {
            add_call(graph, nodes[c->edges[i].caller], nodes[c->edges[i].function], c->edges[i].calls, &of_calls);
            edges++;
        }
    free(nodes);
    set_effort(graph, edges);
    return write_graph(graph, path);
}
