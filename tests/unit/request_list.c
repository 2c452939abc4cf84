/* nlv's list of requests and its heat map, and how they are read from logs. */
#include "config.h"

#include "model/model.h"
#include "model/request_reading.h"
#include "scene/scene.h"
#include "base/time_internal.h"
#include "transport/writer.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/netlogger-requests-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* ---- the heat map ---- */

static void test_rows_of_durations(void **unused)
{
    (void)unused;
    unsigned before = 0;
    for (int64_t ns = 0; ns < INT64_MAX / 2; ns = ns + ns / 7 + 1) {
        unsigned row = heat_row(ns);
        assert_in_range(row, before, HEAT_ROWS - 1);
        assert_true(heat_row_ns(row) <= (double)ns && (double)ns < heat_row_ns(row + 1));
        before = row;
    }
    assert_in_range(heat_row(INT64_MAX), before, HEAT_ROWS - 1);
    assert_int_equal(heat_row(-5), 0);
}

/* The map keeps all requests and their times while its width doubles in both directions. */
static void test_map_widens(void **unused)
{
    (void)unused;
    static const int64_t starts[] = {0, 5, -700000, 1000000000, -3600000000000, 86400000000000, 40};
    heat_map h;
    heat_map_init(&h);
    for (size_t i = 0; i < G_N_ELEMENTS(starts); i++)
        heat_map_add(&h, starts[i], 1000 << i, i % 2);
    assert_int_equal(h.count, G_N_ELEMENTS(starts));
    assert_int_equal(h.failed, G_N_ELEMENTS(starts) / 2);
    assert_int_equal(h.max_ns, 1000 << (G_N_ELEMENTS(starts) - 1));
    for (size_t i = 0; i < G_N_ELEMENTS(starts); i++) {
        double column = floor(heat_map_column(&h, starts[i]));
        assert_true(column >= 0 && column < HEAT_COLUMNS);
        const heat_cell *cell = &h.columns[(int)column][heat_row(1000 << i)];
        assert_int_equal(cell->count, 1);
        assert_int_equal(cell->failed, i % 2);
    }
    heat_map_add(&h, INT64_MAX / 2, 1, false); /* times that are as far apart as possible */
    heat_map_add(&h, -INT64_MAX / 2, 1, false);
    assert_int_equal(h.count, G_N_ELEMENTS(starts) + 2);
    heat_map_clear(&h);
}

static void test_quantiles_and_outliers(void **unused)
{
    (void)unused;
    heat_map h;
    heat_map_init(&h);
    assert_true(heat_quantile(h.totals, 0.5) == 0);
    for (int i = 0; i < 100000; i++)
        heat_map_add(&h, i * INT64_C(1000000), 1000000 + i * 10, false);
    for (int i = 0; i < 50; i++)
        heat_map_add(&h, i * INT64_C(2000000000), 50000000, false);
    assert_true(fabs(heat_quantile(h.totals, 0.5) / 1500000 - 1) < 0.1);
    assert_true(fabs(heat_quantile(h.totals, 0.99) / 1990000 - 1) < 0.1);
    double slow_ns = heat_map_slow_ns(&h);
    assert_true(slow_ns > 2100000 && slow_ns < 50000000);
    heat_map_clear(&h);
}

/* ---- the list ---- */

static request_summary summary(request_list *l, int64_t start_ns, int64_t duration_ns, const char *slowest,
                               uint8_t errors, const char *name)
{
    return (request_summary){.start_ns = start_ns,
                             .duration_ns = duration_ns,
                             .slowest = names_put(l->names, (nl_string){slowest, strlen(slowest)}),
                             .errors = errors,
                             .name_hash = request_name_hash(name)};
}

static void check_sorted(const request_list *l, const request_choice *choice, request_column column, bool descending,
                         size_t max, size_t all, const uint32_t *expected, size_t count)
{
    uint32_t *found;
    assert_int_equal(request_list_sort(l, choice, column, descending, max, &found), all);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(found[i], expected[i]);
    g_free(found);
}

static void test_sorted_and_chosen(void **unused)
{
    (void)unused;
    request_list *l = request_list_new(REQUEST_LIST_MAX);
    const request_summary requests[] = {
        summary(l, 100, 5000, "Query", 0, "a"), summary(l, 200, 9000, "Disk", REQUEST_FAILED, "b"),
        summary(l, 300, 1000, "Query", REQUEST_INCOMPLETE, "c"), summary(l, 400, 7000, "Parse", 0, "d")};
    for (size_t i = 0; i < G_N_ELEMENTS(requests); i++)
        request_list_append(l, &requests[i]);
    request_choice all = request_choice_all, some = {200, 400, 0, INFINITY, false, NULL};
    check_sorted(l, &all, REQUEST_BY_DURATION, true, 10, 4, (uint32_t[]){1, 3, 0, 2}, 4);
    check_sorted(l, &all, REQUEST_BY_DURATION, true, 2, 4, (uint32_t[]){1, 3}, 2);
    check_sorted(l, &all, REQUEST_BY_START, false, 10, 4, (uint32_t[]){0, 1, 2, 3}, 4);
    check_sorted(l, &all, REQUEST_BY_SLOWEST, false, 10, 4, (uint32_t[]){1, 3, 0, 2}, 4);
    check_sorted(l, &all, REQUEST_BY_ERROR, true, 10, 4, (uint32_t[]){1, 2, 3, 0}, 4);
    check_sorted(l, &some, REQUEST_BY_DURATION, true, 10, 2, (uint32_t[]){1, 2}, 2);
    all.text = "quer";
    check_sorted(l, &all, REQUEST_BY_DURATION, true, 10, 2, (uint32_t[]){0, 2}, 2);
    all.text = "d"; /* the ID of a request; also parts of "failed", "incomplete" and "Disk" */
    check_sorted(l, &all, REQUEST_BY_START, false, 10, 2, (uint32_t[]){1, 3}, 2);
    all.text = "Failed";
    check_sorted(l, &all, REQUEST_BY_START, false, 10, 1, (uint32_t[]){1}, 1);
    all.text = "nothing like this";
    check_sorted(l, &all, REQUEST_BY_START, false, 10, 0, NULL, 0);
    request_list_free(l);
}

/* The first requests of a long list are those of a complete sort. */
static void test_many_are_sorted(void **unused)
{
    (void)unused;
    enum { COUNT = 50000, MAX_SHOWN = 1000 };
    request_list *l = request_list_new(REQUEST_LIST_MAX);
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < COUNT; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        request_summary one = summary(l, i, (int64_t)(random >> 34), "x", 0, "x");
        request_list_append(l, &one);
    }
    uint32_t *some, *all;
    request_list_sort(l, &request_choice_all, REQUEST_BY_DURATION, true, MAX_SHOWN, &some);
    request_list_sort(l, &request_choice_all, REQUEST_BY_DURATION, true, COUNT, &all);
    for (int i = 0; i + 1 < COUNT; i++)
        assert_true(request_list_at(l, all[i])->duration_ns >= request_list_at(l, all[i + 1])->duration_ns);
    assert_memory_equal(some, all, MAX_SHOWN * sizeof *some);
    g_free(some);
    g_free(all);
    request_list_free(l);
}

/* The list counts the requests of each of a few logs separately. */
static void test_counts_by_log(void **unused)
{
    (void)unused;
    for (unsigned logs = 1; logs <= REQUEST_LOGS_MAX + 1; logs++) {
        request_list *l = request_list_new(REQUEST_LIST_MAX);
        l->by_log = true;
        for (unsigned i = 0; i < 10 * logs; i++) {
            request_summary one = summary(l, i, 1000, "x", 0, "x");
            one.step_place = place_make(i % logs, i);
            request_list_append(l, &one);
        }
        assert_int_equal(request_list_has_logs(l), logs >= 2 && logs <= REQUEST_LOGS_MAX);
        assert_int_equal(l->heat.count, 10 * logs);
        for (unsigned i = 0; i < MIN(logs, REQUEST_LOGS_MAX); i++) {
            assert_int_equal(l->logs[i].heat.count, 10);
            assert_int_equal(l->logs[i].first.start_ns, i);
        }
        request_list_free(l);
    }
}

/* A full list keeps errors and slow requests, and the heat map counts all requests. */
static void test_full_list(void **unused)
{
    (void)unused;
    enum { LIMIT = 200000, COUNT = LIMIT + 100 };
    request_list *l = request_list_new(LIMIT);
    request_summary one = summary(l, 0, 0, "x", 0, "x");
    for (int i = 0; i < COUNT; i++) {
        one.start_ns = i;
        one.duration_ns = i == 77 ? 1000000000 : 1000 + i % 1000;
        one.errors = i % 10000 == 5;
        request_list_append(l, &one);
    }
    assert_in_range(l->count, LIMIT / 4, LIMIT / 4 * 3);
    assert_int_equal(l->count + l->dropped, COUNT);
    assert_int_equal(l->heat.count, COUNT);
    uint32_t *found;
    request_list_sort(l, &request_choice_all, REQUEST_BY_DURATION, true, 1, &found);
    assert_int_equal(request_list_at(l, found[0])->start_ns, 77);
    g_free(found);
    request_choice failed = request_choice_all;
    failed.text = "failed";
    assert_int_equal(request_list_sort(l, &failed, REQUEST_BY_START, true, 1, &found), COUNT / 10000 + 1);
    g_free(found);
    request_list_free(l);
}

/* ---- requests of logs ---- */

enum { REQUESTS = 2000, SLOW = 700, FAILED = 1300 };

/*
 * Returns records of requests that branch: a server calls "Query" on one host and "Render" on another at the same time.
 * Usually Query takes longer. In request SLOW, Render takes 90 ms. Request FAILED ends with status 500, and the last
 * request has no end.
 */
static char *make_requests(void)
{
    GString *text = g_string_new(NULL);
    for (int i = 0; i < REQUESTS; i++) {
        const int at = i * 10000, render = i == SLOW ? 90000 : i % 3 == 0 ? 3200 : 1000;
        const struct {
            int us;
            const char *event, *host, *more;
        } records[] = {
            {0, "Serve.start", "web", ""},
            {500, "Query.start", "db", ""},
            {500, "Render.start", "app", ""},
            {500 + render, "Render.end", "app", ""},
            {3500, "Query.end", "db", ""},
            {MAX(4000, 1000 + render), "Serve.end", "web", i == FAILED ? " STATUS=500" : " STATUS=200"},
        };
        for (size_t r = 0; r < G_N_ELEMENTS(records) - (i + 1 == REQUESTS); r++)
            g_string_append_printf(text,
                                   "DATE=202601011200%02d.%06d HOST=%s PROG=p LVL=Usage NL.EVNT=%s REQ.ID=r%d%s\n",
                                   (at + records[r].us) / 1000000, (at + records[r].us) % 1000000, records[r].host,
                                   records[r].event, i, records[r].more);
    }
    return g_string_free(text, FALSE);
}

static model *load_requests(const char *const *paths)
{
    static program_reading reading;
    model *m = model_new(NULL, &reading);
    model_set_options(m, (model_options){.no_index = true, .reads_requests = true});
    for (; *paths != NULL; paths++)
        assert_true(model_add_source(m, *paths, false));
    model_load(m);
    return m;
}

static void check_step(const model *m, const request_summary *r, const char *event)
{
    const store *s = model_store(m);
    uint32_t record = store_find_time(s, r->step_ns);
    while (record < s->count && store_place(s, record) != r->step_place)
        record++;
    assert_in_range(record, 0, s->count - 1);
    assert_string_equal(names_text(s->names.events, store_event(s, record)), event);
    assert_int_not_equal(store_object(s, record, s->spec->lifelines[r->lifeline].layer), STORE_NONE);
}

static void check_requests(const model *m)
{
    const request_list *l = model_requests(m);
    assert_non_null(l);
    assert_int_equal(l->count, REQUESTS);
    assert_true(model_requests_progress(m) == 1);
    uint32_t *found;
    request_list_sort(l, &request_choice_all, REQUEST_BY_DURATION, true, 2, &found);
    const request_summary *slow = request_list_at(l, found[0]), *usual = request_list_at(l, found[1]);
    assert_int_equal(slow->duration_ns, 91000000);
    assert_int_equal(usual->duration_ns, 4200000);
    assert_int_equal(slow->name_hash, request_name_hash("r700"));
    assert_string_equal(names_text(l->names, slow->slowest), "Render");
    assert_string_equal(names_text(l->names, usual->slowest), "Render");
    assert_in_range(slow->share, 95, 99);
    assert_in_range(usual->share, 70, 80);
    assert_int_equal(slow->host_count, 3);
    assert_int_equal(slow->errors, 0);
    assert_in_range(slow->position, 0, 2);
    assert_in_range(usual->position, 12, 13);
    check_step(m, slow, "Serve.end");
    g_free(found);
    request_choice chosen = request_choice_all;
    chosen.text = "r1";
    assert_int_equal(request_list_sort(l, &chosen, REQUEST_BY_START, true, 1, &found), 1);
    assert_int_equal(request_list_at(l, found[0])->duration_ns, 4000000);
    assert_string_equal(names_text(l->names, request_list_at(l, found[0])->slowest), "Query");
    g_free(found);
    assert_int_equal(request_list_sort(l, &request_choice_all, REQUEST_BY_ERROR, true, 3, &found), REQUESTS);
    assert_int_equal(request_list_at(l, found[0])->errors, REQUEST_FAILED);
    assert_int_equal(request_list_at(l, found[0])->name_hash, request_name_hash("r1300"));
    assert_int_equal(request_list_at(l, found[1])->errors, REQUEST_INCOMPLETE);
    assert_int_equal(request_list_at(l, found[1])->name_hash, request_name_hash("r1999"));
    assert_int_equal(request_list_at(l, found[2])->errors, 0);
    g_free(found);
}

/* Writes the records whose host begins with one of these letters. */
static void write_records(const char *path, const char *text, const char *hosts, bool blocks)
{
    nl_writer *w = nl_writer_open(
        path,
        &(nl_writer_options){.format = blocks ? NL_FORMAT_NLB : NL_FORMAT_ULM, .buffer_size = 20000, .truncate = true});
    assert_non_null(w);
    nl_decoder *decoder = nl_decoder_new(&(nl_decoder_options){.format = NL_FORMAT_ULM});
    const nl_record *record;
    nl_decoder_feed(decoder, text, strlen(text));
    while (nl_decoder_next(decoder, &record) == NL_OK)
        if (strchr(hosts, record->host.data[0]) != NULL)
            assert_int_equal(nl_writer_put(w, record), NL_OK);
    nl_decoder_free(decoder);
    assert_int_equal(nl_writer_close(w), NL_OK);
}

static void test_text_blocks_and_several_logs(void **unused)
{
    (void)unused;
    char *text = make_requests(), *one = g_strdup(path_of("one.log")), *blocks = g_strdup(path_of("one.nlb")),
         *web = g_strdup(path_of("web.log")), *rest = g_strdup(path_of("rest.nlb"));
    write_records(one, text, "wda", false);
    write_records(blocks, text, "wda", true);
    write_records(web, text, "w", false);
    write_records(rest, text, "da", true);
    const char *const logs[][3] = {{one, NULL, NULL}, {blocks, NULL, NULL}, {web, rest, NULL}};
    for (size_t i = 0; i < G_N_ELEMENTS(logs); i++) {
        model *m = load_requests(logs[i]);
        check_requests(m);
        model_free(m);
    }
    g_free(text);
    g_free(one);
    g_free(blocks);
    g_free(web);
    g_free(rest);
}

static void wait_for_requests(model *m, uint32_t count)
{
    for (int i = 0;; i++) {
        assert_in_range(i, 0, 30000);
        model_lock(m);
        const request_list *l = model_requests(m);
        const bool is_there = l != NULL && l->count == count && l->heat.count == count;
        model_unlock(m);
        if (is_there)
            return;
        g_usleep(1000);
    }
}

/* Requests are added while the log grows. A request that was open is then complete. */
static void test_growing_log(void **unused)
{
    (void)unused;
    static program_reading reading;
    char *text = make_requests(), *path = g_strdup(path_of("growing.log"));
    const size_t half = (size_t)(strstr(text, "NL.EVNT=Serve.start REQ.ID=r1000") - text);
    const size_t line = (size_t)((char *)memrchr(text, '\n', half) + 1 - text);
    const size_t cut = (size_t)((char *)memrchr(text, '\n', line - 1) + 1 - text); /* request 999 is open */
    FILE *f = fopen(path, "w");
    fwrite(text, 1, cut, f);
    fflush(f);
    model *m = model_new(NULL, &reading);
    model_set_options(m, (model_options){.no_index = true});
    assert_true(model_add_source(m, path, true));
    model_start(m);
    wait_for_requests(m, 1000);
    fwrite(text + cut, 1, strlen(text + cut), f);
    fclose(f);
    wait_for_requests(m, REQUESTS);
    model_lock(m);
    check_requests(m);
    model_unlock(m);
    model_free(m);
    g_free(path);
    g_free(text);
}

/* ---- the picture ---- */

/* Returns the number of places with 2x2 pixels of a color, above the legend in the last lines. */
static unsigned count_pixels(cairo_surface_t *surface, uint32_t color)
{
    const unsigned char *data = cairo_image_surface_get_data(surface);
    const int stride = cairo_image_surface_get_stride(surface), legend = 30;
    unsigned count = 0;
    for (int y = 0; y + 1 < cairo_image_surface_get_height(surface) - legend; y++)
        for (int x = 0; x + 1 < cairo_image_surface_get_width(surface); x++) {
            bool is_all = true;
            for (int corner = 0; corner < 4; corner++) {
                uint32_t pixel;
                memcpy(&pixel, data + (y + corner / 2) * stride + 4 * (x + corner % 2), sizeof pixel);
                is_all = is_all && (pixel & 0xffffff) == color;
            }
            count += is_all;
        }
    return count;
}

/* One failed and one slow request of a million are visible in the first picture, at least as 2x2 pixels. */
static void test_outliers_are_visible(void **unused)
{
    (void)unused;
    char *text = make_requests(), *path = g_strdup(path_of("one.log"));
    write_records(path, text, "wda", false);
    model *m = load_requests((const char *const[]){path, NULL});
    request_list *l = (request_list *)model_requests(m); /* the model is not running */
    request_summary one = *request_list_at(l, 0);
    heat_map_clear(&l->heat);
    heat_map_init(&l->heat);
    const int64_t start_ns = one.start_ns;
    for (int i = 0; i < 1000000; i++) {
        const bool is_slow = i == 300000, is_failed = i == 600000;
        heat_map_add(&l->heat, start_ns + i * INT64_C(19000), is_slow ? 900000000 : 4000000 + i % 1000000, is_failed);
    }
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, 1000, 600);
    cairo_t *cr = cairo_create(surface);
    scene_view view = scene_first(m, 1000, 600);
    scene_draw(m, &view, cr);
    assert_in_range(count_pixels(surface, 0xe66100), 1, 16);
    assert_in_range(count_pixels(surface, 0xc2006b), 1, 64);
    const uint64_t count = l->heat.count; /* another map with the same counts has its own picture */
    heat_map_clear(&l->heat);
    heat_map_init(&l->heat);
    while (l->heat.count < count)
        heat_map_add(&l->heat, start_ns + (int64_t)l->heat.count * 19000, 4000000 + (int64_t)l->heat.count % 1000000,
                     false);
    scene_draw(m, &view, cr);
    assert_int_equal(count_pixels(surface, 0xc2006b), 0);
    cairo_destroy(cr);
    cairo_surface_destroy(surface);
    model_free(m);
    g_free(path);
    g_free(text);
}

/* ---- spans that begin in another time zone ---- */

enum { JOBS = 120, ZONE_H = 8 };

/* Returns the true start of a job in milliseconds. */
static int64_t job_begin_ms(int job)
{
    return INT64_C(1331762710000) + job * INT64_C(7000);
}

static int job_dur_ms(int job)
{
    return job % 10 == 0 ? 0 : 300 + job * 37 % 9000;
}

/*
 * Writes a log like those of a workflow system. The end of a job is logged up to 5 s late, and carries its duration.
 * Jobs with a duration begin in another time zone. Jobs without one begin and end in the right zone.
 */
static void write_jobs(const char *path, int from, int to, const char *mode)
{
    FILE *file = fopen(path, mode);
    for (int i = from; i < to; i++) {
        const int64_t begin_ns = job_begin_ms(i) * 1000000,
                      logged_ns = begin_ns - (job_dur_ms(i) > 0 ? ZONE_H * 3600 * NL_NS_PER_SECOND : 0),
                      end_ns = begin_ns + (job_dur_ms(i) + i % 5 * 1000) * INT64_C(1000000);
        char text[NL_TIME_TEXT_SIZE];
        nl_time_format_iso(logged_ns, text);
        fprintf(file, "ts=%s event=job.start level=Info host=w job.id=j%d\n", text, i);
        nl_time_format_iso(begin_ns + job_dur_ms(i) * INT64_C(500000), text);
        fprintf(file, "ts=%s event=job.host level=Info host=w job.id=j%d\n", text, i);
        nl_time_format_iso(end_ns, text);
        fprintf(file, "ts=%s event=job.end level=Info host=w job.id=j%d dur=%d.%03d\n", text, i, job_dur_ms(i) / 1000,
                job_dur_ms(i) % 1000);
    }
    assert_int_equal(fclose(file), 0);
}

/*
 * Checks that the records are in order of time. Returns the number of jobs that have the right start and the right
 * end.
 */
static int count_right_jobs(const model *m)
{
    const store *s = model_store(m);
    int right = 0;
    for (uint32_t record = s->first; record < s->count; record++) {
        assert_true(record == s->first || store_time(s, record - 1) <= store_time(s, record));
        if (strcmp(names_text(s->names.events, store_event(s, record)), "job.end") != 0)
            continue;
        uint32_t begin = record;
        while (begin != STORE_NONE && strcmp(names_text(s->names.events, store_event(s, begin)), "job.start") != 0)
            begin = store_previous(s, begin, 0);
        if (begin == STORE_NONE)
            continue;
        const int64_t begin_ms = store_time(s, begin) / 1000000;
        const int job = (int)((begin_ms - job_begin_ms(0)) / 7000);
        const int64_t expected_ms = job_dur_ms(job) > 0 ? job_dur_ms(job) : job % 5 * 1000;
        right += job >= 0 && job < JOBS && begin_ms == job_begin_ms(job) &&
                 store_time(s, record) / 1000000 - begin_ms == expected_ms;
    }
    return right;
}

static int count_notices(model *m, const char *text)
{
    int count = 0;
    for (char *notice; (notice = model_take_notice(m)) != NULL; g_free(notice))
        count += strstr(notice, text) != NULL;
    return count;
}

static void test_spans_that_begin_in_another_zone(void **unused)
{
    (void)unused;
    char *path = g_strdup(path_of("jobs.bp"));
    write_jobs(path, 0, JOBS, "w");
    model *m = load_requests((const char *const[]){path, NULL});
    const request_list *l = model_requests(m);
    assert_int_equal(model_store(m)->count, 3 * JOBS);
    assert_int_equal(count_right_jobs(m), JOBS);
    assert_int_equal(l->count, JOBS);
    for (uint32_t i = 0; i < l->count; i++)
        check_step(m, request_list_at(l, i), "job.end");
    assert_true(model_has_right_zones(m));
    assert_int_equal(count_notices(m, "108 job.start events on w were logged 8 h too early: the durations"), 1);
    model_load(m); /* nothing new: the correction stays, and nlv reports it once */
    assert_int_equal(count_right_jobs(m), JOBS);
    assert_int_equal(count_notices(m, "corrected"), 0);
    assert_true(model_set_filters(m, NULL, "NL.EVNT != \"job.host\""));
    model_load(m);
    assert_int_equal(model_store(m)->count, 2 * JOBS);
    assert_int_equal(count_right_jobs(m), JOBS);
    model_free(m);
    g_free(path);
}

/* A comparison waits until the times are corrected. */
static void test_comparison_after_correction_of_zones(void **unused)
{
    (void)unused;
    enum { MANY_JOBS = 5000 }; /* so many that reading them takes much longer than a round of the loop below */
    char *path = g_strdup(path_of("compared.bp"));
    write_jobs(path, 0, MANY_JOBS, "w");
    program_reading reading = {0};
    model *m = model_new(NULL, &reading);
    model_set_options(m, (model_options){.no_index = true});
    assert_true(model_add_source(m, path, true));
    assert_true(model_compare(m, "request.duration > 5s", NULL));
    model_start(m);
    const comparison *c = NULL;
    for (int wait = 0; wait < 20000 && c == NULL; wait++) {
        g_usleep(1000);
        model_lock(m);
        c = model_comparison(m);
        assert_true(c == NULL || model_has_right_zones(m));
        model_unlock(m);
    }
    assert_non_null(c);
    model_free(m);
    g_free(path);
}

/* Starts that are equally early, but have no duration that proves this, stay as logged. */
static void test_zones_without_proof(void **unused)
{
    (void)unused;
    char *path = g_strdup(path_of("unproved.bp"));
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 30; i++)
        fprintf(file,
                "ts=2012-03-14T14:%02d:10.0Z event=job.start level=Info host=w job.id=%d\n"
                "ts=2012-03-14T22:%02d:20.0Z event=job.end level=Info host=w job.id=%d\n",
                i, i, i, i);
    fclose(file);
    model *m = load_requests((const char *const[]){path, NULL});
    const store *s = model_store(m);
    assert_int_equal(store_time(s, s->count - 1) - store_time(s, s->first),
                     (8 * 3600 + 29 * 60 + 10) * NL_NS_PER_SECOND);
    assert_false(model_has_right_zones(m));
    assert_int_equal(
        count_notices(m,
                      "takes at least 8 h: these events are in different time zones, or the clock of a host is wrong."),
        1);
    model_free(m);
    g_free(path);
}

/* Two logs of the same time have equal IDs. Each log has its own requests. */
static void test_logs_with_equal_ids(void **unused)
{
    (void)unused;
    enum { COUNT = 100 };
    char *paths[2] = {g_strdup(path_of("one.log")), g_strdup(path_of("other.log"))};
    for (int log = 0; log < 2; log++) {
        FILE *file = fopen(paths[log], "w");
        for (int i = 0; i < 4 * COUNT; i++) /* requests of 3 ms; the other log is 1 ms later */
            fprintf(file, "DATE=202601011200%02d.%03d HOST=h PROG=p LVL=Usage NL.EVNT=%s REQ.ID=r%d\n", i / 40,
                    i / 4 % 10 * 100 + i % 4 + log,
                    (const char *const[]){"Page.start", "Query.start", "Query.end", "Page.end"}[i % 4], i / 4);
        fclose(file);
    }
    model *m = load_requests((const char *const[]){paths[0], paths[1], NULL});
    const request_list *l = model_requests(m);
    assert_int_equal(l->count, 2 * COUNT);
    for (uint32_t i = 0; i < l->count; i++) {
        assert_int_equal(request_list_at(l, i)->duration_ns, 3000000);
        assert_int_equal(request_list_at(l, i)->errors, 0);
        check_step(m, request_list_at(l, i), "Page.end");
    }
    model_free(m);
    g_free(paths[0]);
    g_free(paths[1]);
}

/* ---- selected records and found requests ---- */

/* Appends requests of two records, one per second. Each record has more than 1,000 bytes. */
static void write_long_requests(const char *path, int from, int to)
{
    FILE *file = fopen(path, "a");
    for (int i = from; i < to; i++)
        for (int step = 0; step < 2; step++)
            fprintf(file, "DATE=20260101%02d%02d%02d.%d HOST=h PROG=p LVL=Usage NL.EVNT=%s REQ.ID=r%d NOTE=%01000d\n",
                    i / 3600, i / 60 % 60, i % 60, step, step == 0 ? "Page.start" : "Page.end", i, i);
    assert_int_equal(fclose(file), 0);
}

/* Marks all bytes of a text log as read. */
static void read_to_end(source *s)
{
    (void)source_look(s);
    log_file *f = source_file(s);
    f->is_numbered = true;
    f->scanned = s->at = log_file_size(f);
}

/* Takes the selected records until no more can be read. Returns their number. */
static size_t take_all_selected(request_reading *r, const GPtrArray *sources, size_t max)
{
    size_t count = 0;
    for (bool more = true; more;) {
        more = request_reading_step(r, sources, true);
        if (more && !request_reading_is_full(r))
            continue;
        GArray *taken = request_reading_take_selected(r);
        assert_in_range(taken->len, 0, max);
        count += taken->len;
        g_array_free(taken, TRUE);
    }
    return count;
}

/*
 * The memory for the results of a filter and of a search is limited. A growing log adds only its new records to the
 * results.
 */
static void test_results_need_bounded_memory(void **unused)
{
    (void)unused;
    enum { COUNT = 8000, OPEN_MAX = 100, MORE = 50, MEMORY = 1 << 20, MATCHES = MEMORY / 32 / 24 };
    /* when memory for open requests runs out, the places of all of them may be added at once */
    const size_t places_max = MEMORY / 32 / sizeof(uint64_t) + MEMORY / 4 / sizeof(request_event);
    char *path = g_strdup(path_of("long.log"));
    write_long_requests(path, 0, COUNT);
    program_reading reading = {0};
    model *m = load_requests((const char *const[]){path, NULL});
    GPtrArray *sources = g_ptr_array_new_with_free_func((GDestroyNotify)source_close);
    g_ptr_array_add(sources, source_open(path, true, &reading));
    read_to_end(g_ptr_array_index(sources, 0));
    request_filter *all = NULL;
    assert_true(request_filter_narrow(&all, "request.duration >= 0s"));
    request_reading *r = request_reading_new(m, &reading);
    request_reading_set_memory(r, MEMORY);
    request_reading_select(r, all);
    const size_t first = take_all_selected(r, sources, places_max);
    assert_in_range(first, 2 * (COUNT - OPEN_MAX), 2 * COUNT); /* the last requests may not be over */
    write_long_requests(path, COUNT, COUNT + MORE);
    read_to_end(g_ptr_array_index(sources, 0));
    const size_t second = take_all_selected(r, sources, places_max);
    assert_in_range(second, 2, 2 * (OPEN_MAX + MORE));
    assert_in_range(first + second, 2 * (COUNT + MORE - OPEN_MAX), 2 * (COUNT + MORE));
    request_reading_find(r, all);
    while (request_reading_step(r, sources, false))
        ;
    uint64_t unlisted;
    GArray *found = request_reading_take_matches(r, &unlisted);
    assert_int_equal(found->len, MATCHES);
    assert_in_range(found->len + unlisted, COUNT + MORE, COUNT + MORE + OPEN_MAX); /* cut requests count twice */
    g_array_free(found, TRUE);
    request_reading_free(r);
    request_filter_free(all);
    g_ptr_array_free(sources, TRUE);
    model_free(m);
    g_free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_of_durations),
        cmocka_unit_test(test_map_widens),
        cmocka_unit_test(test_quantiles_and_outliers),
        cmocka_unit_test(test_sorted_and_chosen),
        cmocka_unit_test(test_many_are_sorted),
        cmocka_unit_test(test_counts_by_log),
        cmocka_unit_test(test_full_list),
        cmocka_unit_test(test_text_blocks_and_several_logs),
        cmocka_unit_test(test_growing_log),
        cmocka_unit_test(test_outliers_are_visible),
        cmocka_unit_test(test_spans_that_begin_in_another_zone),
        cmocka_unit_test(test_comparison_after_correction_of_zones),
        cmocka_unit_test(test_zones_without_proof),
        cmocka_unit_test(test_logs_with_equal_ids),
        cmocka_unit_test(test_results_need_bounded_memory),
    };
    if (mkdtemp(folder) == NULL)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (const char *const *name = (const char *const[]){"one.log", "one.nlb", "web.log", "rest.nlb", "growing.log",
                                                         "jobs.bp", "unproved.bp", NULL};
         *name != NULL; name++)
        unlink(path_of(*name));
    rmdir(folder);
    return failed;
}
