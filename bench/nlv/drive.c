/*
 * Drives nlv's model and scene as its window does, without one, and prints what that takes:
 * drive LOG [--again] [--size WxH] [--png FOLDER]
 *
 * A log is opened and read by the model's own thread while frames are drawn into a picture in memory; then a scripted
 * way through it is gone, at every scale from all of the log down to a microsecond: zoom in at a place, pan a bit.
 */
#include "config.h"

#include "model/model.h"
#include "scene/scene.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { FRAMES_MOST = 20000, PANS = 6, PLACES = 5 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Processor time of this thread: what a frame would take if nobody else was there. */
static double spent_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

typedef struct frames {
    double ms[FRAMES_MOST], spent_ms[FRAMES_MOST];
    size_t count;
} frames;

static int by_size(const void *a, const void *b)
{
    double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

static double quantile(const double *sorted, size_t count, double share)
{
    return sorted[(size_t)((double)(count - 1) * share)];
}

static void print_frames(const char *what, frames *f)
{
    qsort(f->ms, f->count, sizeof f->ms[0], by_size);
    qsort(f->spent_ms, f->count, sizeof f->spent_ms[0], by_size);
    if (f->count > 0)
        printf("  %-20s %5zu frames  p50 %6.2f  p99 %6.2f  max %6.2f ms  (processor: p50 %6.2f  p99 %6.2f)\n", what,
               f->count, quantile(f->ms, f->count, 0.5), quantile(f->ms, f->count, 0.99), f->ms[f->count - 1],
               quantile(f->spent_ms, f->count, 0.5), quantile(f->spent_ms, f->count, 0.99));
    fflush(stdout);
}

typedef struct driver {
    model *model;
    cairo_surface_t *surface;
    cairo_t *cr;
    scene_view view;
    frames all, scale;
    const char *folder; /* for pictures; NULL: none */
} driver;

static void take(frames *f, double ms, double spent_ms)
{
    if (f->count == FRAMES_MOST)
        return;
    f->ms[f->count] = ms;
    f->spent_ms[f->count++] = spent_ms;
}

/* Draws a frame, and notes in to (NULL: nowhere) what it took. */
static void draw(driver *d, frames *to, frames *and_to)
{
    double begin = now_s(), spent = spent_s();
    model_lock(d->model);
    scene_draw(d->model, &d->view, d->cr);
    model_unlock(d->model);
    cairo_surface_flush(d->surface);
    double ms = (now_s() - begin) * 1e3, spent_ms = (spent_s() - spent) * 1e3;
    if (to != NULL)
        take(to, ms, spent_ms);
    if (and_to != NULL)
        take(and_to, ms, spent_ms);
}

static void frame(driver *d)
{
    draw(d, &d->all, &d->scale);
}

static void fit(driver *d)
{
    scene_view all = scene_fit(d->model, d->view.width, d->view.height);
    d->view.from_ns = all.from_ns;
    d->view.to_ns = all.to_ns;
}

static void save(driver *d, const char *name)
{
    char path[4096];
    if (d->folder == NULL)
        return;
    snprintf(path, sizeof path, "%s/%s.png", d->folder, name);
    cairo_surface_write_to_png(d->surface, path);
}

/* Resident memory that is the program's own, in bytes, without the pages of mapped files. */
static double own_memory(void)
{
    char line[256];
    double kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "RssAnon:", 8) == 0)
            kib = strtod(line + 8, NULL);
    if (file != NULL)
        fclose(file);
    return kib * 1024;
}

static void read_log(driver *d, double begin, bool again)
{
    double first_s = 0, indexed_s = 0;
    double before = own_memory();
    static frames meanwhile;
    unsigned shown = 0;
    bool any = false;
    while (indexed_s == 0) {
        double progress = model_progress(d->model);
        unsigned generation = model_generation(d->model);
        if (generation != shown) {
            shown = generation;
            model_lock(d->model);
            int64_t from_ns, to_ns;
            any = model_time_range(d->model, &from_ns, &to_ns);
            fit(d);
            model_unlock(d->model);
            draw(d, &meanwhile, NULL);
            if (any && first_s == 0) {
                first_s = now_s() - begin;
                save(d, "first");
            }
        } else if (any && progress >= 1 && model_is_settled(d->model)) {
            indexed_s = now_s() - begin;
        }
        usleep(again ? 1000 : 100000); /* as often as the window does while a log is read */
    }
    size_t count = model_count(d->model);
    printf("  first picture %.3f s, all of it %.3f s, %zu records\n", first_s, indexed_s, count);
    printf("  memory %.1f bytes a record of its own, %.1f of the store\n", (own_memory() - before) / (double)count,
           (double)store_memory(model_store(d->model)) / (double)count);
    print_frames("while it was read", &meanwhile);
}

/* How long it takes until only what an expression says is shown; NULL: all again. */
static void filter_log(driver *d, const char *expression)
{
    double begin = now_s();
    if (!model_set_filter(d->model, expression))
        return;
    do
        usleep(1000);
    while (!model_is_settled(d->model) || model_progress(d->model) < 1);
    printf("  %s: %zu records after %.3f s\n", expression != NULL ? expression : "all again", model_count(d->model),
           now_s() - begin);
    fflush(stdout);
}

/* From all of the log in to a microsecond around a place. */
static void go_through(driver *d)
{
    int64_t from_ns, to_ns;
    model_lock(d->model);
    model_time_range(d->model, &from_ns, &to_ns);
    fit(d);
    model_unlock(d->model);
    scene_view whole = d->view;
    double width = (double)(whole.to_ns - whole.from_ns);
    for (unsigned level = 0; width > 1000; level++, width /= 4) {
        char name[64];
        d->scale.count = 0;
        for (unsigned place = 0; place < PLACES; place++) {
            double share = (place + 0.5) / PLACES;
            int64_t center = from_ns + (int64_t)(share * (double)(to_ns - from_ns));
            d->view.from_ns = center - (int64_t)(width / 2);
            d->view.to_ns = center + (int64_t)(width / 2);
            for (unsigned i = 0; i < PANS; i++) {
                scene_pan(&d->view, 0.07);
                frame(d);
                scene_zoom(&d->view, i % 2 == 0 ? 0.9 : 1 / 0.9, 0.3);
                frame(d);
            }
            if (place == PLACES / 2) {
                snprintf(name, sizeof name, "level-%02u", level);
                save(d, name);
            }
        }
        snprintf(name, sizeof name, width >= 1e9 ? "%.4g s wide" : "%.4g us wide", width / (width >= 1e9 ? 1e9 : 1e3));
        print_frames(name, &d->scale);
    }
    print_frames("all scales", &d->all);
}

int main(int argc, char **argv)
{
    bool again = false;
    int width = 1280, height = 800;
    static driver d;
    program_start("drive", argv);
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], "--again") == 0)
            again = true;
        else if (strcmp(argv[i], "--png") == 0 && i + 1 < argc)
            d.folder = argv[++i];
        else if (strcmp(argv[i], "--size") == 0 && i + 1 < argc && sscanf(argv[++i], "%dx%d", &width, &height) != 2)
            return 2;
    if (argc < 2)
        return 2;
    d.surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    d.cr = cairo_create(d.surface);
    d.view = (scene_view){
        .from_ns = 0, .to_ns = 1000000, .width = width, .height = height, .selected = -1, .overview = true};
    program_reading reading = {0};
    double begin = now_s();
    d.model = model_new(NULL, &reading);
    draw(&d, NULL, NULL); /* the empty window: fonts are found here */
    printf("  empty window %.3f s\n", now_s() - begin);
    begin = now_s();
    if (!model_add_source(d.model, argv[1], true))
        return 1;
    model_start(d.model);
    read_log(&d, begin, again);
    go_through(&d);
    filter_log(&d, "HOST != dpss1.lbl.gov"); /* what the store knows */
    filter_log(&d, NULL);
    filter_log(&d, "BLOCK.ID > 1000"); /* the log is read for that */
    filter_log(&d, NULL);
    model_free(d.model);
    return 0;
}
