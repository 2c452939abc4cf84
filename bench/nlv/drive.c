/*
 * Drives nlv's model and scene without a window, and prints times:
 * - drive LOG [--again] [--cold] [--scale N] [--size WxH] [--png DIRECTORY]
 * - drive LOG --views [--scale N] [--size WxH]
 * - drive LOG --open
 * - drive LOG --live RECORDS-PER-SECOND SECONDS MEGABYTES
 *
 * The model's thread opens and reads a log while the program draws frames into an image. Then the program zooms in and
 * pans at every scale from the whole log down to a microsecond. --cold removes the log and its index from the page
 * cache before the program opens the log.
 *
 * With --views, the program prints the times of frames of every view of the log: of the picture at all scales, of the
 * waterfalls of requests, and of a comparison of the requests in the first half of the log with the others.
 *
 * With --open, the program only opens the log, prints one line, and waits until the log's index is written. The line
 * contains the seconds until the first picture, the seconds until the whole log is loaded, the peak resident memory in
 * MB, and the number of records.
 *
 * With --live, another process appends the lines of LOG to LOG.live at the given rate. The model follows the file and
 * keeps MEGABYTES of records. The program draws the last seconds 60 times per second, as the window does.
 */
#include "config.h"

#include "model/model.h"
#include "model/threads.h"
#include "scene/comparison_drawing.h"
#include "scene/scene.h"
#include "scene/waterfall_drawing.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    FRAMES_MAX = 20000,
    PANS = 6,
    PLACES = 5,
    INDEX_WAIT_MS = 5000,
    WATERFALLS = 300,
    COMPARISONS = 100,
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/*
 * Returns this thread's processor time. On an idle machine, this is the time of a frame without the work of the thread
 * that helps to draw (beside.h).
 */
static double spent_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

typedef struct frames {
    double ms[FRAMES_MAX], spent_ms[FRAMES_MAX];
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
    frames all, scale, rest;
    double pixels;         /* number of pixels per unit */
    const char *directory; /* directory for pictures; NULL: write no pictures */
} driver;

static void drive_take(frames *f, double ms, double spent_ms)
{
    if (f->count == FRAMES_MAX)
        return;
    f->ms[f->count] = ms;
    f->spent_ms[f->count++] = spent_ms;
}

/* Draws a frame. Adds the frame's cost to `to` and to `and_to`, each of which may be NULL. */
static void drive_draw(driver *d, frames *to, frames *and_to)
{
    double begin = now_s(), spent = spent_s();
    model_lock(d->model);
    scene_draw(d->model, &d->view, d->cr);
    model_unlock(d->model);
    cairo_surface_flush(d->surface);
    double ms = (now_s() - begin) * 1e3, spent_ms = (spent_s() - spent) * 1e3;
    if (to != NULL)
        drive_take(to, ms, spent_ms);
    if (and_to != NULL)
        drive_take(and_to, ms, spent_ms);
}

/* Draws a coarse frame, as the window does, if the latest frame of a resting view took long. */
static void frame(driver *d)
{
    const frames *rest = &d->rest;
    d->view.is_coarse = rest->count > 0 && rest->ms[rest->count - 1] > (d->pixels > 1 ? 8 : 11);
    drive_draw(d, &d->all, &d->scale);
}

static void come_to_rest(driver *d)
{
    d->view.is_coarse = false;
    drive_draw(d, &d->rest, NULL);
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
    if (d->directory == NULL)
        return;
    snprintf(path, sizeof path, "%s/%s.png", d->directory, name);
    cairo_surface_write_to_png(d->surface, path);
}

/* Returns the resident memory of the program in bytes, without mapped files. */
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

/* The disk reads of this process: the number of page faults, and the number of bytes. */
typedef struct disk {
    long faults;
    double bytes;
} disk;

static disk disk_so_far(void)
{
    struct rusage used;
    char line[256];
    disk sum = {0};
    FILE *file = fopen("/proc/self/io", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "read_bytes:", 11) == 0)
            sum.bytes = strtod(line + 11, NULL);
    if (file != NULL)
        fclose(file);
    getrusage(RUSAGE_SELF, &used);
    sum.faults = used.ru_majflt;
    return sum;
}

/* Waits until the whole log is loaded. Draws only the first picture. */
static void drive_open_log(driver *d, const char *log, double begin)
{
    struct rusage used;
    double first_s = 0;
    while (model_progress(d->model) < 1 || !model_is_settled(d->model) || first_s == 0) {
        int64_t from_ns, to_ns;
        model_lock(d->model);
        bool any = model_time_range(d->model, &from_ns, &to_ns);
        if (any && first_s == 0)
            fit(d);
        model_unlock(d->model);
        if (any && first_s == 0) {
            drive_draw(d, NULL, NULL);
            first_s = now_s() - begin;
        }
        usleep(1000);
    }
    double all_s = now_s() - begin;
    getrusage(RUSAGE_SELF, &used);
    printf("%.3f %.3f %.1f %zu\n", first_s, all_s, (double)used.ru_maxrss * 1024 / 1e6, model_count(d->model));
    char *index = g_strdup_printf("%s.nlv-index", log);
    for (int i = 0; i < INDEX_WAIT_MS && access(index, F_OK) != 0; i++)
        usleep(1000);
    g_free(index);
}

static void read_log(driver *d, double begin, bool again)
{
    double first_s = 0, indexed_s = 0;
    disk before_first = disk_so_far(), at_first = before_first;
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
            drive_draw(d, &meanwhile, NULL);
            if (any && first_s == 0) {
                first_s = now_s() - begin;
                at_first = disk_so_far();
                save(d, "first");
            }
        } else if (any && progress >= 1 && model_is_settled(d->model)) {
            indexed_s = now_s() - begin;
        }
        usleep(again ? 1000 : 100000); /* draw as often as the window does while it reads a log */
    }
    size_t count = model_count(d->model);
    printf("  first picture %.3f s, whole log %.3f s, %zu records\n", first_s, indexed_s, count);
    printf("  before the first picture: %ld page faults that read from the disk, %.1f MB read from the disk\n",
           at_first.faults - before_first.faults, (at_first.bytes - before_first.bytes) / 1e6);
    printf("  private memory %.1f bytes per record, the store %.1f bytes per record\n",
           (own_memory() - before) / (double)count, (double)store_memory(model_store(d->model)) / (double)count);
    print_frames("while it was read", &meanwhile);
}

/* Measures the time until the model shows only the records that match expression, or all records if it is NULL. */
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

/* Zooms from the whole log to a microsecond around one time. Prints the times of each scale if `prints_scales` is true.
 */
static void go_through(driver *d, bool prints_scales)
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
            come_to_rest(d);
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
        if (prints_scales)
            print_frames(name, &d->scale);
    }
    print_frames("all scales", &d->all);
    if (d->rest.count > 0)
        print_frames("at rest", &d->rest);
}

/* ---- the other views ---- */

static void wait_for_requests(const driver *d)
{
    while (model_progress(d->model) < 1 || !model_is_settled(d->model) || model_requests_progress(d->model) < 1)
        usleep(1000);
}

static void draw_waterfalls(driver *d)
{
    static frames f;
    model_lock(d->model);
    const request_list *l = model_requests(d->model);
    const uint32_t count = l != NULL ? l->count : 0;
    model_unlock(d->model);
    for (uint32_t i = 0; i < MIN(count, WATERFALLS); i++) {
        const double begin = now_s(), spent = spent_s();
        model_lock(d->model);
        const request_summary *r = request_list_at(l, (uint32_t)((uint64_t)i * count / WATERFALLS));
        waterfall *w =
            waterfall_read(d->model, r->lifeline, store_find_place(model_store(d->model), r->step_ns, r->step_place));
        model_unlock(d->model);
        waterfall_draw(w, d->cr, d->view.width, 0, false);
        cairo_surface_flush(d->surface);
        drive_take(&f, (now_s() - begin) * 1e3, (spent_s() - spent) * 1e3);
        waterfall_free(w);
    }
    print_frames("waterfalls", &f);
}

static void draw_comparisons(driver *d)
{
    static frames f;
    char middle[NL_TIME_TEXT_SIZE], first[NL_TIME_TEXT_SIZE + 16];
    const comparison *c = NULL;
    int64_t from_ns, to_ns;
    model_lock(d->model);
    model_time_range(d->model, &from_ns, &to_ns);
    model_unlock(d->model);
    nl_time_format_ulm(from_ns + (to_ns - from_ns) / 2, middle);
    snprintf(first, sizeof first, "DATE < %s", middle);
    if (!model_compare(d->model, first, NULL))
        return;
    while ((c = model_comparison(d->model)) == NULL)
        usleep(1000);
    model_lock(d->model);
    waterfall *typical[] = {comparison_read_typical(d->model, c, 0), comparison_read_typical(d->model, c, 1)};
    model_unlock(d->model);
    const comparison_view view = {
        .width = d->view.width, .height = d->view.height, .requests = {typical[0], typical[1]}};
    for (unsigned i = 0; i < COMPARISONS && c->reason == NULL; i++) {
        const double begin = now_s(), spent = spent_s();
        comparison_draw(c, &view, d->cr);
        cairo_surface_flush(d->surface);
        drive_take(&f, (now_s() - begin) * 1e3, (spent_s() - spent) * 1e3);
    }
    print_frames("comparisons", &f);
    waterfall_free(typical[0]);
    waterfall_free(typical[1]);
}

/* Draws a row for each thread, with scrolling, if the log has threads. */
static void draw_threads(driver *d)
{
    const double begin = now_s();
    model_want_threads(d->model);
    while (model_threads_progress(d->model) < 1)
        usleep(1000);
    model_lock(d->model);
    const thread_list *threads = model_threads(d->model);
    const guint rows = threads != NULL ? threads->rows->len : 0;
    model_unlock(d->model);
    if (rows == 0)
        return;
    printf("  %u threads read in %.3f s\n", rows, now_s() - begin);
    d->view.shows_threads = d->view.scrolls = true;
    d->all.count = d->rest.count = 0;
    go_through(d, false);
    d->view.shows_threads = d->view.scrolls = false;
}

static void draw_views(driver *d)
{
    wait_for_requests(d);
    d->view.histogram = true;
    go_through(d, false);
    draw_waterfalls(d);
    if (model_requests(d->model) != NULL && model_requests(d->model)->count > 0)
        draw_comparisons(d);
    draw_threads(d);
}

/* ---- real time ---- */

/*
 * Appends lines from one file to another at a given rate until the process is killed. Adds the number of appended lines
 * to *written.
 */
static void drive_grow(const char *from, const char *to, double rate, volatile uint64_t *written)
{
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    struct stat status;
    if (in < 0 || out < 0 || fstat(in, &status) != 0)
        _exit(1);
    const char *data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, in, 0), *at = data;
    const char *end = data + status.st_size;
    double begin = now_s();
    while (at < end) {
        uint64_t due = (uint64_t)((now_s() - begin) * rate), lines = 0;
        const char *stop = at;
        while (stop < end && *written + lines < due) {
            stop = (const char *)memchr(stop, '\n', (size_t)(end - stop)) + 1;
            lines++;
        }
        if (stop > at && write(out, at, (size_t)(stop - at)) != stop - at)
            _exit(1);
        *written += lines;
        at = stop;
        usleep(5000);
    }
    pause();
}

static double processor_s(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

/* Returns the number of records that were read, including dropped records. */
static uint64_t taken(const model *m)
{
    return model_store(m)->count + model_store(m)->late.count;
}

static int follow(driver *d, const char *log, double rate, double seconds, size_t memory_max)
{
    char *live = g_strdup_printf("%s.live", log);
    volatile uint64_t *written = mmap(NULL, sizeof *written, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0)
        drive_grow(log, live, rate, written);
    while (*written == 0)
        usleep(1000);
    model_set_options(d->model, (model_options){.memory_max = memory_max});
    if (!model_add_source(d->model, live, true))
        return 1;
    model_start(d->model);
    double begin = now_s(), spent = processor_s(), told = begin;
    uint64_t behind_max = 0;
    while (now_s() - begin < seconds) {
        double frame_begin = now_s();
        model_lock(d->model);
        uint64_t wrote = *written, have = taken(d->model);
        int64_t from_ns, to_ns;
        if (model_time_range(d->model, &from_ns, &to_ns)) {
            d->view.to_ns = to_ns;
            d->view.from_ns = to_ns - INT64_C(5) * NL_NS_PER_SECOND;
        }
        model_unlock(d->model);
        if (now_s() - begin > 1) /* the existing records must be read first */
            behind_max = MAX(behind_max, wrote - MIN(have, wrote));
        drive_draw(d, &d->all, NULL);
        if (now_s() - told > seconds / 5) {
            told = now_s();
            printf("  %3.0f s: %9llu records written, %6llu not yet read, %9zu in memory, %.0f MB\n", told - begin,
                   (unsigned long long)wrote, (unsigned long long)(wrote - MIN(have, wrote)), model_count(d->model),
                   own_memory() / 1e6);
        }
        double left = 1 / 60.0 - (now_s() - frame_begin);
        if (left > 0)
            usleep((useconds_t)(left * 1e6));
    }
    printf("  at most %llu records not yet drawn (%.3f s), %.0f %% of a processor\n", (unsigned long long)behind_max,
           (double)behind_max / rate, 100 * (processor_s() - spent) / seconds);
    print_frames("in real time", &d->all);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    unlink(live);
    g_free(live);
    model_free(d->model);
    return 0;
}

/* Removes a file from the page cache. */
static void drive_forget(const char *path)
{
    int fd = open(path, O_RDONLY);
    if (fd >= 0 && fdatasync(fd) == 0)
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    if (fd >= 0)
        close(fd);
}

static void forget_all(const char *log)
{
    char *index = g_strdup_printf("%s.nlv-index", log);
    drive_forget(log);
    drive_forget(index);
    g_free(index);
}

int main(int argc, char **argv)
{
    bool again = false, only_open = false, shows_views = false;
    double scale = 1, rate = 0, seconds = 0, max = 0;
    int width = 1280, height = 800;
    static driver d;
    program_start("drive");
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], "--again") == 0)
            again = true;
        else if (strcmp(argv[i], "--open") == 0)
            only_open = true;
        else if (strcmp(argv[i], "--views") == 0)
            shows_views = true;
        else if (strcmp(argv[i], "--cold") == 0)
            forget_all(argv[1]);
        else if (strcmp(argv[i], "--scale") == 0 && i + 1 < argc)
            scale = strtod(argv[++i], NULL);
        else if (strcmp(argv[i], "--live") == 0 && i + 3 < argc) {
            rate = strtod(argv[++i], NULL);
            seconds = strtod(argv[++i], NULL);
            max = strtod(argv[++i], NULL);
        } else if (strcmp(argv[i], "--png") == 0 && i + 1 < argc)
            d.directory = argv[++i];
        else if (strcmp(argv[i], "--size") == 0 && i + 1 < argc && sscanf(argv[++i], "%dx%d", &width, &height) != 2)
            return 2;
    if (argc < 2)
        return 2;
    d.surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)(width * scale), (int)(height * scale));
    cairo_surface_set_device_scale(d.surface, scale, scale);
    d.pixels = scale;
    d.cr = cairo_create(d.surface);
    d.view = (scene_view){
        .from_ns = 0, .to_ns = 1000000, .width = width, .height = height, .selected = -1, .overview = true};
    program_reading reading = {0};
    double begin = now_s();
    d.model = model_new(NULL, &reading);
    drive_draw(&d, NULL, NULL); /* draw an empty window, to load the fonts */
    if (!only_open && !shows_views)
        printf("  empty window %.3f s\n", now_s() - begin);
    if (rate > 0)
        return follow(&d, argv[1], rate, seconds, (size_t)(max * 1e6));
    begin = now_s();
    if (!model_add_source(d.model, argv[1], true))
        return 1;
    model_start(d.model);
    if (only_open) {
        drive_open_log(&d, argv[1], begin);
        model_free(d.model);
        return 0;
    }
    if (shows_views) {
        draw_views(&d);
        model_free(d.model);
        return 0;
    }
    read_log(&d, begin, again);
    go_through(&d, true);
    filter_log(&d, "HOST != dpss1.lbl.gov"); /* uses columns in memory */
    filter_log(&d, NULL);
    filter_log(&d, "BLOCK.ID > 1000"); /* reads the log */
    filter_log(&d, NULL);
    model_free(d.model);
    return 0;
}
