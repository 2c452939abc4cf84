/* nlv's pictures of many lines: each pixel compared with a simple model, bands compared with the whole, and work shared
 * by threads. */
#include "config.h"

#include "scene/axis.h"
#include "scene/beside.h"
#include "scene/density.h"
#include "scene/heat_scale.h"
#include "scene/waterfall_drawing.h"

#include <glib.h>
#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <cmocka.h>

static unsigned unit_scene_draw(unsigned max)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state % max);
}

enum { WIDTH = 61, HEIGHT = 83 };

/* Draws an area on an empty picture. cairo frees it. */
static cairo_surface_t *painted(density *d, float max)
{
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, WIDTH, HEIGHT);
    cairo_t *cr = cairo_create(surface);
    density_paint(d, cr, false, max);
    cairo_destroy(cr);
    cairo_surface_flush(surface);
    return surface;
}

static uint32_t pixel(cairo_surface_t *surface, int x, int y)
{
    const unsigned char *data = cairo_image_surface_get_data(surface);
    return *(const uint32_t *)(const void *)(data + (size_t)y * (size_t)cairo_image_surface_get_stride(surface) +
                                             (size_t)x * 4);
}

/* Asserts that a pixel has the wanted color, at the strength of the pixel. */
static void assert_color(uint32_t pixel, color wanted)
{
    double alpha = (pixel >> 24) / 255.0;
    assert_true(alpha > 0.2);
    assert_true(fabs((pixel >> 16 & 0xff) / 255.0 - wanted.red * alpha) < 0.01);
    assert_true(fabs((pixel >> 8 & 0xff) / 255.0 - wanted.green * alpha) < 0.01);
    assert_true(fabs((pixel & 0xff) / 255.0 - wanted.blue * alpha) < 0.01);
}

/* Vertical lines of two colors and every length are at random positions. A pixel has its most frequent color. */
static void test_the_majority_has_the_pixel(void **unused)
{
    (void)unused;
    unsigned lines[HEIGHT][2] = {0};
    density *d = density_new(0, 0, WIDTH, HEIGHT, 1);
    for (unsigned i = 0; i < 4000; i++) {
        unsigned from = unit_scene_draw(HEIGHT), to = from + unit_scene_draw(HEIGHT - from + 1),
                 which = unit_scene_draw(5) < 2;
        density_line(d, 20.5, from, 20.5, to, 1, which);
        for (unsigned y = from; y < to; y++)
            lines[y][which]++;
    }
    cairo_surface_t *surface = painted(d, 0);
    unsigned strongest = 0;
    for (unsigned y = 0; y < HEIGHT; y++) {
        unsigned all = lines[y][0] + lines[y][1];
        assert_int_equal(pixel(surface, 19, (int)y), 0);
        assert_int_equal(pixel(surface, 21, (int)y), 0);
        if (2 * lines[y][0] != all)
            assert_color(pixel(surface, 20, (int)y), palette_series(lines[y][1] > lines[y][0], false));
        strongest = MAX(strongest, pixel(surface, 20, (int)y) >> 24);
    }
    assert_true(strongest > 200);
    cairo_surface_destroy(surface);
    density_free(d);
}

/* A line in front of all others keeps its color for any order of drawing. */
static void test_what_is_on_top_stays(void **unused)
{
    (void)unused;
    density *d = density_new(0, 0, WIDTH, HEIGHT, 1);
    density_line(d, 5.5, 0, 5.5, HEIGHT, 1000, 1);
    density_line_on_top(d, 5.5, 10, 5.5, 31, DENSITY_ALARM);
    density_line(d, 5.5, 0, 5.5, HEIGHT, 1000, 1);
    cairo_surface_t *surface = painted(d, 0);
    for (int y = 0; y < HEIGHT; y++)
        assert_color(pixel(surface, 5, y), y >= 10 && y < 31 ? palette_alarm() : palette_series(1, false));
    cairo_surface_destroy(surface);
    density_free(d);
}

typedef struct line {
    double x0, y0, x1, y1;
    float weight;
    unsigned color;
    bool is_on_top;
} line;

static line any_line(void)
{
    line l = {unit_scene_draw(WIDTH * 20) / 10.0 - WIDTH / 2.0,
              unit_scene_draw(HEIGHT * 20) / 10.0 - HEIGHT / 2.0,
              unit_scene_draw(WIDTH * 20) / 10.0 - WIDTH / 2.0,
              unit_scene_draw(HEIGHT * 20) / 10.0 - HEIGHT / 2.0,
              1 + (float)unit_scene_draw(30),
              unit_scene_draw(7),
              unit_scene_draw(20) == 0};
    if (unit_scene_draw(2) == 0)
        l.x1 = l.x0;
    return l;
}

static void scene_put(density *d, const line *l)
{
    if (l->is_on_top)
        density_line_on_top(d, l->x0, l->y0, l->x1, l->y1, l->color);
    else
        density_line(d, l->x0, l->y0, l->x1, l->y1, l->weight, l->color);
}

/*
 * The same lines, drawn into bands one after the other, give the same picture. Most lines are partly outside of a band.
 */
static void test_bands_are_the_whole(void **unused)
{
    (void)unused;
    static line lines[500];
    for (unsigned run = 0; run < 20; run++) {
        double scale = run % 2 + 1,
               borders[] = {0, unit_scene_draw(200) / 10.0, 20 + unit_scene_draw(300) / 10.0, HEIGHT / scale};
        density *whole = density_new(0, 0, WIDTH / scale, HEIGHT / scale, scale),
                *parted = density_new(0, 0, WIDTH / scale, HEIGHT / scale, scale);
        density_set_line_width(whole, 1 + run % 3);
        density_set_line_width(parted, 1 + run % 3);
        for (size_t i = 0; i < G_N_ELEMENTS(lines); i++) {
            lines[i] = any_line();
            scene_put(whole, &lines[i]);
        }
        for (size_t b = 0; b + 1 < G_N_ELEMENTS(borders); b++) {
            density *band = density_band(parted, MIN(borders[b], borders[3]), MIN(borders[b + 1], borders[3]));
            for (size_t i = 0; i < G_N_ELEMENTS(lines); i++)
                scene_put(band, &lines[i]);
            density_join(band);
        }
        cairo_surface_t *one = painted(whole, 50), *other = painted(parted, 50);
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++)
                assert_int_equal(pixel(one, x, y), pixel(other, x, y));
        cairo_surface_destroy(one);
        cairo_surface_destroy(other);
        density_free(whole);
        density_free(parted);
    }
}

enum { PARTS = 100 };
typedef struct parts {
    atomic_int next, done[PARTS], workers;
} parts;

static void do_parts(void *user)
{
    parts *p = user;
    p->workers++;
    for (int i; (i = p->next++) < PARTS;)
        p->done[i]++;
    p->workers--;
}

/* Each part is done once. On return, no thread works any more, even if the other thread began late. */
static void test_work_is_shared(void **unused)
{
    (void)unused;
    for (unsigned run = 0; run < 3000; run++) {
        parts p = {0};
        beside_run(do_parts, &p);
        assert_int_equal(p.workers, 0);
        for (unsigned i = 0; i < PARTS; i++)
            assert_int_equal(p.done[i], 1);
    }
}

static void test_numbers_of_axes(void **unused)
{
    (void)unused;
    static const struct {
        double value, step;
        const char *label;
    } labels[] = {{2.5e6, 5e6, "2.5 M"}, {5e6, 5e6, "5 M"}, {0, 5e6, "0"},        {0.125, 0.25, "0.125"},
                  {50, 50, "50"},        {1.5, 1, "1.5"},   {2500, 500, "2.5 k"}, {24.05e9, 0.05e9, "24.05 G"}};
    for (size_t i = 0; i < G_N_ELEMENTS(labels); i++) {
        char text[32];
        axis_number_label(labels[i].value, labels[i].step, text);
        assert_string_equal(text, labels[i].label);
    }
}

static void test_ticks_of_durations(void **unused)
{
    (void)unused;
    static const struct {
        double span_ns;
        const char *label;
    } labels[] = {{0, "0 ns"},
                  {2e6, "2 ms"},
                  {90e9, "90 s"},
                  {130e9, "2 min 10 s"},
                  {3600e9, "60 min"},
                  {7200e9, "2 h"},
                  {7800e9, "2 h 10 min"},
                  {172800e9, "2 days"},
                  {194400e9, "2 days 6 h"},
                  {125e6, "125 ms"},
                  {17812.8e9, "4 h 57 min"},
                  {7199.9e9, "120 min"}};
    for (size_t i = 0; i < G_N_ELEMENTS(labels); i++) {
        char text[32];
        axis_span_label(labels[i].span_ns, text);
        assert_string_equal(text, labels[i].label);
    }
}

static void test_clocks_of_the_axis(void **unused)
{
    (void)unused;
    const int64_t noon_ns = INT64_C(1767268800) * NL_NS_PER_SECOND;
    char text[NL_TIME_TEXT_SIZE];
    setenv("TZ", "XYZ-05:30", 1);
    tzset();
    assert_int_equal(axis_shift_ns(AXIS_UTC, noon_ns, 7), 0);
    assert_int_equal(axis_shift_ns(AXIS_LOCAL, noon_ns, 7), INT64_C(19800) * NL_NS_PER_SECOND);
    assert_int_equal(axis_shift_ns(AXIS_RELATIVE, noon_ns, 7), -7);
    axis_relative_label(INT64_C(90062500000000), 500000000, text);
    assert_string_equal(text, "+25:01:02.5");
    axis_relative_label(-INT64_C(60000000000), 60 * NL_NS_PER_SECOND, text);
    assert_string_equal(text, "-0:01:00");
    char full[AXIS_TIME_SIZE];
    axis_write_time(AXIS_UTC, 0, noon_ns + 500000000, full);
    assert_string_equal(full, "2026-01-01T12:00:00.500000Z");
    axis_write_time(AXIS_LOCAL, 0, noon_ns + 500000000, full);
    assert_string_equal(full, "2026-01-01T17:30:00.500000+05:30");
    axis_write_clock(AXIS_LOCAL, 0, noon_ns, full);
    assert_string_equal(full, "17:30:00.000000+05:30");
    axis_write_time(AXIS_RELATIVE, noon_ns, noon_ns + INT64_C(62500000000), full);
    assert_string_equal(full, "+0:01:02.5");
    unsetenv("TZ");
    tzset();
}

/* The axis of a waterfall of ten hours has a line every two hours. */
static void test_axis_of_a_long_waterfall(void **unused)
{
    (void)unused;
    enum { WIDE = 1000, TALL = 60, AXIS_Y = 20 };
    waterfall_row span = {.name = "job", .place = "host", .parent = G_MAXUINT, .median_ns = -1};
    waterfall w = {.rows = g_array_new(FALSE, FALSE, sizeof span),
                   .path = g_array_new(FALSE, FALSE, sizeof(waterfall_step)),
                   .records = g_array_new(FALSE, FALSE, sizeof(waterfall_record)),
                   .length_ns = INT64_C(36000000000000)};
    span.end_ns = w.length_ns;
    g_array_append_val(w.rows, span);
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, WIDE, TALL);
    cairo_t *cr = cairo_create(surface);
    waterfall_draw(&w, cr, WIDE, 0, false);
    cairo_destroy(cr);
    cairo_surface_flush(surface);
    unsigned lines = 0;
    for (int x = 0; x < WIDE; x++)
        lines += pixel(surface, x, AXIS_Y) != pixel(surface, 1, AXIS_Y);
    assert_int_equal(lines, 6);
    cairo_surface_destroy(surface);
    g_array_free(w.rows, TRUE);
    g_array_free(w.path, TRUE);
    g_array_free(w.records, TRUE);
}

/* One request of a few nanoseconds does not stretch the axis of the heat map, but can be marked. */
static void test_shortest_request_does_not_stretch_the_heat_map(void **unused)
{
    (void)unused;
    const int64_t typical_ns = 1000000, shortest_ns = 3;
    const layout l = {.left = 100,
                      .right = 900,
                      .overview_right = 700,
                      .histogram_left = 720,
                      .overview_top = 400,
                      .overview_bottom = 500,
                      .whole_to_ns = INT64_C(1000000000)};
    heat_map h;
    heat_map_init(&h);
    for (int i = 0; i < 1000; i++)
        heat_map_add(&h, i * INT64_C(1000000), typical_ns + i * 5000, false);
    const heat_scale before = heat_scale_of(&h, &l);
    assert_false(before.is_cut);
    heat_map_add(&h, 0, shortest_ns, true);
    const heat_scale after = heat_scale_of(&h, &l);
    assert_true(after.is_cut);
    assert_true(after.low > heat_row(typical_ns / 100));
    assert_true(after.low <= before.low);
    request_choice lowest = heat_scale_area(&h, &l, 100, 490, 110, 499);
    assert_true(lowest.shortest_ns <= (double)shortest_ns);
    /* two of twenty requests are too many to omit their rows */
    heat_map_clear(&h);
    heat_map_init(&h);
    for (int i = 0; i < 20; i++)
        heat_map_add(&h, i * INT64_C(1000000), i < 2 ? shortest_ns : typical_ns, false);
    assert_false(heat_scale_of(&h, &l).is_cut);
    heat_map_clear(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ticks_of_durations),
        cmocka_unit_test(test_clocks_of_the_axis),
        cmocka_unit_test(test_axis_of_a_long_waterfall),
        cmocka_unit_test(test_shortest_request_does_not_stretch_the_heat_map),
        cmocka_unit_test(test_numbers_of_axes),
        cmocka_unit_test(test_the_majority_has_the_pixel),
        cmocka_unit_test(test_what_is_on_top_stays),
        cmocka_unit_test(test_bands_are_the_whole),
        cmocka_unit_test(test_work_is_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
