#include "config.h"

#include "call_draw.h"

#include "base/error.h"
#include "base/memory.h"
#include "convert/output.h"

#include <graphviz/gvc.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *format_of(const char *path)
{
    static const char *const formats[] = {"pdf", "svg", "png", "dot"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot != NULL && i < sizeof formats / sizeof *formats; i++)
        if (strcmp(dot + 1, formats[i]) == 0)
            return formats[i];
    nl_error_set(NL_ERROR_INVALID, "%s: the name of a picture ends in .pdf, .svg, .png or .dot", path);
    return NULL;
}

bool call_draw_knows(const char *path)
{
    return format_of(path) != NULL;
}

/* ---- looks ---- */

/* From pale yellow by orange to red; heat from 0 to 1. */
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

/* Calls go over powers of ten: the most of what is shown is 1, the least 0. */
typedef struct heat_scale {
    uint64_t least, most;
} heat_scale;

static void heat_scale_take(heat_scale *s, uint64_t calls)
{
    calls = calls > 0 ? calls : 1;
    s->least = s->least == 0 || calls < s->least ? calls : s->least;
    s->most = calls > s->most ? calls : s->most;
}

static double heat_of(uint64_t calls, const heat_scale *s)
{
    return s->most > s->least
               ? log((double)(calls > 0 ? calls : 1) / (double)s->least) / log((double)s->most / (double)s->least)
               : 0.5;
}

/* 12345678 as 12.3 M. */
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

static void set(void *object, char *name, const char *value)
{
    agsafeset(object, name, (char *)value, "");
}

NL_PRINTF(3, 4) static void set_format(void *object, char *name, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    set(object, name, text);
}

/* ---- files ---- */

/* Renders into memory, to be freed. False when that failed. */
static bool render(GVC_t *context, Agraph_t *graph, const char *format, char **picture, size_t *size)
{
    FILE *file = nl_memory_check(open_memstream(picture, size));
    bool good = strcmp(format, "dot") == 0 ? agwrite(graph, file) == 0 : gvRender(context, graph, format, file) == 0;
    good = good && !ferror(file);
    return fclose(file) == 0 && good;
}

static bool call_draw_fail(const char *path, const char *doing)
{
    program_error("%s: it can't be %s: %s", path, doing, aglasterr() != NULL ? aglasterr() : "libgvc gives no reason");
    return false;
}

/* Into a file that takes its name when it is whole. */
static bool write_picture(GVC_t *context, Agraph_t *graph, const char *path, const char *format)
{
    char *picture = NULL;
    size_t size = 0;
    bool good = render(context, graph, format, &picture, &size) || call_draw_fail(path, "drawn");
    output *out = good ? output_open(path) : NULL;
    good = out != NULL && output_write(out, picture, size);
    good = out != NULL && output_close(out, good) && good;
    free(picture);
    return good;
}

/* Lays the graph out, unless it is to be laid out by who gets it, and writes it. Takes the graph. */
static bool finish(Agraph_t *graph, const char *path)
{
    const char *format = format_of(path);
    GVC_t *context = gvContext();
    bool laid_out = strcmp(format, "dot") != 0;
    bool good = !laid_out || gvLayout(context, graph, "dot") == 0 || call_draw_fail(path, "laid out");
    good = good && write_picture(context, graph, path, format);
    if (laid_out)
        gvFreeLayout(context, graph);
    agclose(graph);
    gvFreeContext(context);
    return good;
}

/* ---- the graph ---- */

static Agnode_t *add_function(Agraph_t *graph, const call_view *v, uint32_t function, const heat_scale *scale)
{
    const call_function *f = &v->calls.functions[function];
    const char *name = calls_name(&v->calls, function);
    Agnode_t *node = agnode(graph, (char *)name, 1);
    char color[8], count[16];
    size_t more;
    double heat = heat_of(calls_heat(f, v->chains), scale);
    heat_color(heat, color);
    write_count(f->calls, count);
    set_format(node, "label", f->calls > 0 ? "%s\n%s" : "%s", name, count);
    set(node, "fillcolor", color);
    set(node, "fontcolor", heat > 0.7 ? "white" : "black");
    const char *file = call_view_file(v, function, &more);
    set_format(node, "tooltip", "%s: %" PRIu64 " calls%s%s%s", name, f->calls, *file != '\0' ? ", " : "", file,
               more > 0 ? ", or another file" : "");
    return node;
}

static void add_call(Agraph_t *graph, Agnode_t *caller, Agnode_t *function, uint64_t calls, const heat_scale *scale)
{
    Agedge_t *edge = agedge(graph, caller, function, NULL, 1);
    char color[8], count[16];
    double heat = heat_of(calls, scale);
    heat_color(0.4 + 0.6 * heat, color);
    write_count(calls, count);
    set(edge, "color", color);
    set(edge, "label", count);
    set_format(edge, "penwidth", "%.2f", 0.6 + 3 * heat);
    set_format(edge, "weight", "%d", 1 + (int)(9 * heat));
    set_format(edge, "tooltip", "%s calls %s: %" PRIu64, agnameof(caller), agnameof(function), calls);
}

/* So that a graph of any size is laid out in time: what is large is laid out less carefully. */
static void set_effort(Agraph_t *graph, size_t edges)
{
    enum { CAREFULLY = 400, QUICKLY = 1500 };
    set(graph, "splines", edges > QUICKLY ? "line" : edges > CAREFULLY ? "polyline" : "true");
    if (edges > CAREFULLY) {
        set(graph, "nslimit", edges > QUICKLY ? "0.5" : "2");
        set(graph, "nslimit1", edges > QUICKLY ? "0.5" : "2");
        set(graph, "mclimit", edges > QUICKLY ? "0.05" : "0.3");
    }
}

static Agraph_t *new_graph(const call_view *v, char *name)
{
    Agraph_t *graph = agopen(name, Agdirected, NULL);
    char *summary = call_view_summary(v);
    agseterr(AGMAX); /* what went wrong is asked for, not printed */
    set(graph, "label", summary);
    set(graph, "labelloc", "t");
    set(graph, "labeljust", "l");
    set(graph, "fontname", "DejaVu Sans");
    set(graph, "rankdir", "LR");
    set(graph, "nodesep", "0.12");
    set(graph, "ranksep", "0.6");
    agattr(graph, AGNODE, "shape", "box");
    agattr(graph, AGNODE, "style", "filled,rounded");
    agattr(graph, AGNODE, "color", "#888888");
    agattr(graph, AGNODE, "fontname", "DejaVu Sans");
    agattr(graph, AGNODE, "fontsize", "10");
    agattr(graph, AGNODE, "margin", "0.08,0.03");
    agattr(graph, AGNODE, "height", "0.3");
    agattr(graph, AGEDGE, "fontname", "DejaVu Sans");
    agattr(graph, AGEDGE, "fontsize", "8");
    agattr(graph, AGEDGE, "arrowsize", "0.6");
    free(summary);
    return graph;
}

bool call_draw_graph(const call_view *v, const char *path)
{
    const calls *c = &v->calls;
    Agraph_t *graph = new_graph(v, "calls");
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
    return finish(graph, path);
}

/* ---- bars ---- */

/* A name as XML has it. */
static void append_escaped(nl_buffer *out, const char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '<' || *text == '>' || *text == '&')
            nl_buffer_append(out, *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : "&amp;", *text == '&' ? 5 : 4);
        else
            nl_buffer_append(out, text, 1);
}

NL_PRINTF(2, 3) static void append_format(nl_buffer *out, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    nl_buffer_append(out, text, size < (int)sizeof text ? (size_t)size : sizeof text - 1);
}

static void append_bar(nl_buffer *out, const call_view *v, uint32_t function, const heat_scale *scale)
{
    enum { LONGEST = 480 };
    const call_function *f = &v->calls.functions[function];
    char color[8], count[16];
    int width = 1 + (int)((double)f->calls / (double)scale->most * (LONGEST - 1));
    heat_color(heat_of(f->calls, scale), color);
    write_count(f->calls, count);
    append_format(out, "<TR><TD ALIGN=\"RIGHT\">");
    append_escaped(out, calls_name(&v->calls, function));
    append_format(out,
                  "</TD><TD><TABLE BORDER=\"0\" CELLBORDER=\"0\" CELLSPACING=\"0\" CELLPADDING=\"0\"><TR>"
                  "<TD BGCOLOR=\"%s\" FIXEDSIZE=\"TRUE\" WIDTH=\"%d\" HEIGHT=\"13\"></TD>",
                  color, width);
    append_format(out, "<TD FIXEDSIZE=\"TRUE\" WIDTH=\"50\" HEIGHT=\"13\">%s</TD>", count);
    /* All rows are equally long, so that none is stretched. */
    append_format(out, "<TD FIXEDSIZE=\"TRUE\" WIDTH=\"%d\" HEIGHT=\"13\"></TD></TR></TABLE></TD></TR>",
                  1 + LONGEST - width);
}

bool call_draw_bars(const call_view *v, const char *path)
{
    Agraph_t *graph = new_graph(v, "functions");
    nl_buffer label = {0};
    heat_scale scale = {0};
    for (size_t i = 0; i < v->count; i++)
        heat_scale_take(&scale, v->calls.functions[v->order[i]].calls);
    append_format(&label, "<TABLE BORDER=\"0\" CELLBORDER=\"0\" CELLSPACING=\"2\" CELLPADDING=\"0\">");
    for (size_t i = 0; i < v->count; i++)
        append_bar(&label, v, v->order[i], &scale);
    append_format(&label, "</TABLE>");
    nl_buffer_append(&label, "", 1);
    Agnode_t *node = agnode(graph, "bars", 1);
    char *text = agstrdup_html(graph, label.data);
    agattr(graph, AGNODE, "label", "\\N");
    agset(node, "label", text);
    set(node, "shape", "plaintext");
    set(node, "style", "solid");
    agstrfree(graph, text);
    nl_buffer_free(&label);
    return finish(graph, path);
}
