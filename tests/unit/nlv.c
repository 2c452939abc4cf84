/* nlv's model: its content compared with a simple implementation; its index; its limits. */
#include "config.h"

#include "lifelines.h"
#include "model/catalog.h"
#include "model/checks.h"
#include "model/waterfall.h"
#include "model/edges.h"
#include "model/export.h"
#include "model/index.h"
#include "model/comparison.h"
#include "model/model.h"
#include "model/model_loading.h"
#include "model/search.h"
#include "model/session.h"
#include "model/request_lines.h"
#include "requests/assembler.h"
#include "model/slow.h"
#include "model/statistics.h"
#include "model/threads.h"
#include "model/tracks.h"
#include "scene/comparison_drawing.h"
#include "scene/layers.h"
#include "scene/layout.h"
#include "scene/scene.h"
#include "scene/waterfall_drawing.h"
#include "transport/writer.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/netlogger-nlv-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static uint64_t state = 88172645463325252u;

static unsigned nlv_draw(unsigned max)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state % max);
}

/* ---- lists ---- */

static float measures[100000];

static float measure_of(const void *user, uint32_t record)
{
    (void)user;
    return measures[record / 3];
}

static void check_extremes(const list *l, size_t from, size_t to)
{
    list_extremes e = list_find_extremes(l, from, to, measure_of, NULL);
    assert_true(e.min == measures[list_at(l, e.min_at) / 3]);
    assert_true(e.max == measures[list_at(l, e.max_at) / 3]);
    assert_true(e.min_at + LIST_BLOCK > from && e.min_at < to);
    size_t slack = to - from >= 8 * LIST_BLOCK ? LIST_BLOCK : to - from >= 8 * LIST_NODE ? LIST_NODE : 0;
    for (size_t i = from; i + slack < to; i++) { /* a wide range may end a little earlier */
        assert_true(measures[list_at(l, i) / 3] >= e.min);
        assert_true(measures[list_at(l, i) / 3] <= e.max);
    }
}

static void test_lists(void **unused)
{
    (void)unused;
    for (int has_values = 0; has_values < 2; has_values++) {
        list l = {.has_values = has_values};
        for (uint32_t i = 0; i < 100000; i++) {
            measures[i] = (float)nlv_draw(1000000);
            list_append(&l, 3 * i, measures[i]);
        }
        for (int i = 0; i < 300; i++) {
            size_t from = nlv_draw(99999), to = from + 1 + nlv_draw((unsigned)(i % 2 == 0 ? 100 : 99999 - from));
            check_extremes(&l, from, MIN(to, l.count));
        }
        for (int i = 0; i < 1000; i++) {
            uint32_t record = nlv_draw(301000);
            size_t expected = MIN((record + 2) / 3, 100000), from = nlv_draw(100000);
            assert_int_equal(list_find(&l, record, 0), expected);
            assert_int_equal(list_find(&l, record, from), MAX(expected, from));
            for (size_t grain = LIST_NODE; grain <= LIST_BLOCK; grain *= LIST_BLOCK / LIST_NODE) {
                size_t near = list_find_near(&l, record, from, grain);
                size_t node = expected > 0 ? (expected - 1) / grain * grain : 0;
                assert_int_equal(near, node >= from + grain ? node : MAX(expected, from));
            }
        }
        list_drop(&l, 3 * 50000);
        assert_true(l.start > 40000 && l.start <= 50000);
        assert_int_equal(list_find(&l, 3 * 70000, l.start), 70000);
        list_truncate(&l, 60001, measure_of, NULL);
        list_truncate(&l, 60000, measure_of, NULL);
        check_extremes(&l, 59000, 60000);
        for (uint32_t i = 60000; i < 99000; i++)
            list_append(&l, 3 * i, measures[i]);
        check_extremes(&l, 59000, 98000);
        list_free(&l);
    }
}

/* ---- a store compared with a trace ---- */

typedef struct line {
    int64_t time_ns;
    unsigned event, object, host;
} line;

static const char *const line_event_names[] = {"Asked", "Taken", "Done", "Back", "Load", "Oops"};

/*
 * Makes the lines of a log: steps of objects, loads and points, with times out of order by up to that many
 * microseconds. No object has its first event after its last event, which would begin another request.
 */
static line *make_lines(size_t count, unsigned disorder_us)
{
    line *lines = g_new(line, count);
    for (size_t i = 0; i < count; i++) {
        unsigned kind = nlv_draw(20);
        unsigned event = kind < 17 ? (unsigned)i % 3 + (i % 40 >= 20) : kind < 19 ? 4 : 5;
        int64_t time_us = (int64_t)i * 10 + (disorder_us > 0 ? nlv_draw(disorder_us) : 0);
        lines[i] = (line){(INT64_C(1767268800000000) + time_us) * 1000, event, (unsigned)(i / 40) * 10 + nlv_draw(10),
                          nlv_draw(5)};
    }
    return lines;
}

static void write_lines(const char *path, const line *lines, size_t count, const char *mode)
{
    FILE *file = fopen(path, mode);
    for (size_t i = 0; i < count; i++) {
        char date[NL_TIME_TEXT_SIZE];
        nl_time_format_ulm(lines[i].time_ns, date);
        fprintf(file, "DATE=%s HOST=h%u PROG=p%u LVL=Usage NL.EVNT=%s REQ.ID=r%u LOAD=%u.5\n", date, lines[i].host,
                lines[i].host % 2, line_event_names[lines[i].event], lines[i].object, lines[i].object % 100);
    }
    assert_int_equal(fclose(file), 0);
}

static drawing *make_drawing(void)
{
    static const char *const events[] = {"Asked", "Taken", "Done", "Back", NULL}, *const ids[] = {"REQ.ID", NULL};
    drawing *d = drawing_new();
    drawing_add_lifeline(d, "R", events, ids, "HOST");
    drawing_add_loadline(d, "load", "Load", "LOAD", "");
    drawing_add_point(d, "oops", "Oops");
    return d;
}

static model *read_model(drawing *d, const char *path, program_reading *reading, model_options options)
{
    model *m = model_new(d, reading);
    model_set_options(m, options);
    assert_true(model_add_source(m, path, false));
    model_load(m);
    return m;
}

static trace *read_trace(const char *path)
{
    trace *t = trace_new();
    nl_reader *reader = nl_reader_open(path, NULL);
    const nl_record *record;
    while (nl_reader_next(reader, &record) == NL_OK)
        trace_add(t, record);
    nl_reader_close(reader);
    trace_sort(t);
    return t;
}

/* Compares the steps of every object. */
static void compare_objects(const store *s, const trace *t, const lifelines *expected)
{
    size_t steps = 0;
    for (uint32_t record = 0; record < s->count; record++) {
        int32_t number = expected->object_of_record[record];
        uint32_t object = store_object(s, record, 0);
        assert_int_equal(number < 0, object == STORE_NONE);
        steps += object != STORE_NONE;
    }
    assert_int_equal(steps, expected->step_count);
    for (size_t i = 0; i < expected->object_count; i++) {
        const lifeline_object *o = &expected->objects[i];
        const lifeline_step *own = &expected->steps[o->first_step];
        uint32_t record = store_last_step(s, store_object(s, own[0].record, 0), 0);
        for (uint32_t step = o->step_count; step-- > 0;) {
            assert_int_equal(record, own[step].record);
            assert_int_equal(spec_step_of(s->spec, store_event(s, record), 0).row, own[step].event);
            record = store_previous(s, record, 0);
        }
        assert_int_equal(record, STORE_NONE);
    }
    (void)t;
}

static size_t list_count(const list *l)
{
    return l != NULL ? l->count - l->start : 0;
}

/* Every segment, start, value and point is in its list, in order. */
static void compare_lists(const store *s)
{
    const lifeline_lists *l = &s->lifelines[0];
    size_t places[5][4] = {{0}}, loads[8] = {0}, oops = 0;
    for (uint32_t record = 0; record < s->count; record++) {
        uint16_t event = store_event(s, record);
        if (store_object(s, record, 0) != STORE_NONE) {
            unsigned row = spec_step_of(s->spec, event, 0).row;
            uint32_t causes[EDGES_MAX];
            size_t count = edges_find(s, record, 0, causes);
            for (size_t i = 0; i < MAX(count, 1); i++) {
                unsigned from = count == 0 ? 4 : spec_step_of(s->spec, store_event(s, causes[i]), 0).row;
                const list *own = from == 4 ? l->starts[row] : l->segments[from * 4 + row];
                assert_non_null(own);
                if (from < 4)
                    assert_true(list_value(own, places[from][row]) ==
                                (float)(store_time(s, record) - store_time(s, causes[i])));
                assert_int_equal(list_at(own, places[from][row]++), record);
            }
        } else if (strcmp(names_text(s->names.events, event), "Load") == 0) {
            for (size_t i = 0; i < s->loadlines[0].count; i++)
                if (s->loadlines[0].hosts[i].host == store_host(s, record))
                    assert_int_equal(list_at(s->loadlines[0].hosts[i].list, loads[i]++), record);
        } else {
            assert_int_equal(list_at(&s->points[0], oops++), record);
        }
    }
    for (unsigned from = 0; from < 5; from++)
        for (unsigned row = 0; row < 4; row++)
            assert_int_equal(list_count(from == 4 ? l->starts[row] : l->segments[from * 4 + row]), places[from][row]);
    assert_int_equal(s->points[0].count, oops);
}

static void nlv_compare(const model *m, const char *path)
{
    const store *s = model_store(m);
    trace *t = read_trace(path);
    drawing *d = make_drawing();
    lifelines *expected = lifelines_build(t, g_ptr_array_index(d->lifelines, 0));
    assert_int_equal(s->count, trace_count(t));
    assert_int_equal(s->late.count, 0);
    for (uint32_t i = 0; i < s->count; i++) {
        const trace_record *r = trace_get(t, i);
        assert_int_equal(store_time(s, i), r->time_ns);
        assert_string_equal(names_text(s->names.events, store_event(s, i)), trace_string(t, r->event));
        assert_string_equal(names_text(s->names.hosts, store_host(s, i)), trace_string(t, r->host));
        assert_string_equal(names_text(s->names.progs, store_prog(s, i)), trace_string(t, r->prog));
    }
    compare_objects(s, t, expected);
    compare_lists(s);
    lifelines_free(expected);
    drawing_free(d);
    trace_free(t);
}

static void test_stores(void **unused)
{
    (void)unused;
    static const struct {
        size_t count;
        unsigned disorder_us;
    } cases[] = {{1, 0}, {3000, 0}, {3000, 500}, {3000, 100000}, {150000, 0}, {150000, 3000}, {150000, 3000000}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        line *lines = make_lines(cases[i].count, cases[i].disorder_us);
        program_reading reading = {0};
        const char *path = path_of("a.log");
        write_lines(path, lines, cases[i].count, "w");
        model *m = read_model(make_drawing(), path, &reading, (model_options){0});
        nlv_compare(m, path);
        model_free(m);
        g_free(lines);
    }
}

/* Two logs cover the same time, and nlv reads one after the other. Therefore, the whole second log is late. */
static void test_what_is_late(void **unused)
{
    (void)unused;
    line *lines = make_lines(300000, 0);
    const char *path = path_of("late.log");
    write_lines(path, lines + 150000, 150000, "w");
    write_lines(path, lines, 150000, "a");
    program_reading reading = {0};
    model *m = read_model(make_drawing(), path, &reading, (model_options){0});
    nlv_compare(m, path);
    model_free(m);
    g_free(lines);
}

/* ---- the index ---- */

static model *read_from_index(const char *path, program_reading *reading)
{
    drawing *wanted = make_drawing();
    index_found found;
    log_file *file = log_file_open(path, reading);
    assert_non_null(file);
    bool good = index_read(path, file, wanted, &found);
    drawing_free(wanted);
    log_file_free(file);
    if (!good)
        return NULL;
    drawing_free(found.drawing);
    prints_free(&found.prints);
    g_array_free(found.blocks, TRUE);
    index_position at = {0};
    index_state state = INDEX_MORE;
    while (state == INDEX_MORE)
        state = index_check(found.store, &at, 100000);
    if (state == INDEX_DAMAGED) {
        store_free(found.store);
        return NULL;
    }
    return model_of_store(found.store, make_drawing(), reading);
}

static void write_index_of(const model *m, const char *path)
{
    atomic_bool stopping = false;
    prints p = {0};
    log_file *file = log_file_open(path, &(program_reading){0});
    assert_non_null(file);
    uint64_t size = log_file_size(file);
    prints_add(&p, 0, size, 0);
    assert_true(prints_complete(&p, file->fd));
    assert_true(index_write(model_store(m), model_drawing(m), false, path, file, size, &p, &stopping));
    stopping = true;
    assert_false(index_write(model_store(m), model_drawing(m), false, path, file, size, &p, &stopping));
    prints_free(&p);
    log_file_free(file);
}

static void test_index(void **unused)
{
    (void)unused;
    line *lines = make_lines(150000, 3000);
    char *path = g_strdup(path_of("indexed.log")), *index = g_strdup_printf("%s.nlv-index", path);
    program_reading reading = {0};
    write_lines(path, lines, 100000, "w");
    model *m = read_model(make_drawing(), path, &reading, (model_options){0});
    assert_null(read_from_index(path, &reading));
    write_index_of(m, path);
    model_free(m);
    m = read_from_index(path, &reading);
    assert_non_null(m);
    nlv_compare(m, path);
    model_free(m);

    /* The log has grown: the index is still valid, and new records come after it. */
    write_lines(path, lines + 100000, 50000, "a");
    m = read_from_index(path, &reading);
    assert_non_null(m);
    assert_int_equal(model_store(m)->count, 100000);
    model_free(m);

    /* The log was cut short, and is a different log. */
    assert_int_equal(truncate(path, 5000), 0);
    assert_null(read_from_index(path, &reading));

    /* The index is damaged, cut short, empty, or random. */
    write_lines(path, lines, 20000, "w");
    m = read_model(make_drawing(), path, &reading, (model_options){0});
    write_index_of(m, path);
    model_free(m);
    gchar *bytes;
    gsize size;
    assert_true(g_file_get_contents(index, &bytes, &size, NULL));
    for (int i = 0; i < 200; i++) {
        gchar *damaged = g_memdup2(bytes, size);
        damaged[nlv_draw((unsigned)size)] ^= (gchar)(1 + nlv_draw(255));
        gsize kept = i % 2 == 0 ? size : nlv_draw((unsigned)size);
        assert_true(g_file_set_contents(index, damaged, (gssize)kept, NULL));
        m = read_from_index(path, &reading);
        if (m != NULL) { /* bytes between sections have no meaning */
            nlv_compare(m, path);
            model_free(m);
        }
        g_free(damaged);
    }
    g_free(bytes);
    index_remove(path);
    assert_int_not_equal(access(index, F_OK), 0);
    g_free(lines);
    g_free(path);
    g_free(index);
}

static const model_options any_size = {.index_size = 1};

/* Opens a log as the program does, with its index if present, and compares it. Returns whether the index was used. */
static bool open_again(const char *path)
{
    program_reading reading = {0};
    model *m = read_model(make_drawing(), path, &reading, any_size);
    nlv_compare(m, path);
    bool was = model_store(m)->mapped != NULL;
    model_free(m);
    return was;
}

/* Changes a digit of an object's number near a position, and restores the file's time. */
static void change_quietly(const char *path, double share)
{
    struct stat before;
    gchar *bytes;
    gsize size;
    assert_int_equal(stat(path, &before), 0);
    assert_true(g_file_get_contents(path, &bytes, &size, NULL));
    char *place = strstr(bytes + (size_t)(share * (double)size), " REQ.ID=r");
    assert_non_null(place);
    place += strlen(" REQ.ID=r");
    FILE *file = fopen(path, "r+");
    fseek(file, place - bytes, SEEK_SET);
    fputc(*place == '9' ? '1' : *place + 1, file);
    fclose(file);
    struct timespec times[2] = {before.st_atim, before.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    g_free(bytes);
}

static void copy_file(const char *from, const char *to)
{
    gchar *bytes;
    gsize size;
    assert_true(g_file_get_contents(from, &bytes, &size, NULL));
    assert_true(g_file_set_contents(to, bytes, (gssize)size, NULL));
    g_free(bytes);
}

static void test_index_of_a_log_that_changes(void **unused)
{
    (void)unused;
    line *lines = make_lines(160000, 3000);
    char *path = g_strdup(path_of("changing.log")), *index = g_strdup_printf("%s.nlv-index", path);
    write_lines(path, lines, 80000, "w");
    assert_false(open_again(path));
    assert_true(open_again(path));

    /*
     * The log grows first by many records and then by few. nlv uses the index, and the next index includes the new
     * records.
     */
    write_lines(path, lines + 80000, 79000, "a");
    assert_true(open_again(path));
    write_lines(path, lines + 159000, 1, "a");
    assert_true(open_again(path));
    index_found found;
    drawing *wanted = make_drawing();
    log_file *file = log_file_open(path, &(program_reading){0});
    assert_non_null(file);
    assert_true(index_read(path, file, wanted, &found));
    assert_true(found.is_sure);
    assert_int_equal(found.store->count, 159001);
    store_free(found.store);
    drawing_free(found.drawing);
    prints_free(&found.prints);
    drawing_free(wanted);
    g_array_free(found.blocks, TRUE);
    log_file_free(file);

    /* The log was copied together with its index. */
    char *other = g_strdup(path_of("copied.log")), *other_index = g_strdup_printf("%s.nlv-index", other);
    copy_file(path, other);
    copy_file(index, other_index);
    assert_true(open_again(other));

    /*
     * The log was changed near its ends and in its middle, and its size and times are the same. It also has grown
     * since.
     */
    for (int i = 0; i < 15; i++) {
        assert_true(open_again(path));
        change_quietly(path, i / 15.1);
        if (i % 3 == 2)
            write_lines(path, lines + 159001 + i, 1, "a");
        assert_false(open_again(path));
    }

    /* The log was cut short, and rewritten from its start: with fewer, more and different records. */
    write_lines(path, lines, 70000, "w");
    assert_false(open_again(path));
    write_lines(path, lines + 1, 100000, "w");
    assert_false(open_again(path));
    assert_true(open_again(path));
    index_remove(other);
    index_remove(path);
    g_free(lines);
    g_free(path);
    g_free(index);
    g_free(other);
    g_free(other_index);
}

/* ---- blocks ---- */

/* Writes the records of a log as blocks. */
static void write_blocks(const char *from, const char *to, int zstd_level, bool truncate)
{
    char *url = g_strdup_printf("file:%s", to);
    nl_reader *reader = nl_reader_open(from, NULL);
    nl_writer *writer = nl_writer_open(
        url, &(nl_writer_options){
                 .format = NL_FORMAT_NLB, .buffer_size = 20000, .truncate = truncate, .zstd_level = zstd_level});
    const nl_record *record;
    assert_non_null(writer);
    while (nl_reader_next(reader, &record) == NL_OK)
        assert_int_equal(nl_writer_put(writer, record), NL_OK);
    assert_int_equal(nl_writer_close(writer), NL_OK);
    nl_reader_close(reader);
    g_free(url);
}

static void append_file(const char *from, const char *to)
{
    gchar *bytes;
    gsize size;
    FILE *file = fopen(to, "a");
    assert_true(g_file_get_contents(from, &bytes, &size, NULL));
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    g_free(bytes);
}

/* Two logs of the same records give the same result, and each record is fetched in an order that jumps between blocks.
 */
static void compare_records(const model *a, const model *b)
{
    uint32_t count = model_store(a)->count;
    assert_int_equal(model_store(b)->count, count);
    for (uint32_t i = 0; i < count; i++) {
        /* Some records are fetched in random order. Such a fetch takes the time to decode the whole block. */
        uint32_t record = i % 16 == 0 ? (uint32_t)((uint64_t)i * 7919 % count) : i;
        char *first = model_describe(a, record, ""), *second = model_describe(b, record, "");
        assert_null(strstr(first, "no longer"));
        assert_string_equal(first, second);
        g_free(first);
        g_free(second);
    }
}

static size_t count_matches(model *m, const char *expression)
{
    search *s = search_new(m, expression);
    while (!search_is_done(s))
        g_usleep(1000);
    size_t count = search_count(s);
    search_free(s);
    return count;
}

static void check_blocks(const char *text, const char *path)
{
    program_reading reading = {0};
    model *expected = read_model(make_drawing(), text, &reading, (model_options){0});
    model *m = read_model(make_drawing(), path, &reading, (model_options){0});
    nlv_compare(m, path);
    compare_records(expected, m);
    assert_int_equal(count_matches(m, "LOAD > 50"), count_matches(expected, "LOAD > 50"));
    assert_int_equal(reading.malformed, 0);
    assert_int_equal(reading.lost, 0);
    model_set_filter(m, "REQ.ID != r1");
    model_load(m);
    model_set_filter(m, NULL);
    model_load(m);
    nlv_compare(m, path);
    model_free(m);
    model_free(expected);
}

static void test_blocks(void **unused)
{
    (void)unused;
    line *lines = make_lines(90000, 3000);
    char *text = g_strdup(path_of("text.log")), *path = g_strdup(path_of("blocks.nlb"));
    char *more = g_strdup(path_of("more.log")), *all = g_strdup(path_of("all.log"));
    write_lines(text, lines, 40000, "w");
    write_lines(more, lines + 40000, 50000, "w");
    for (int level = -1; level <= 1; level += 2) {
        write_lines(all, lines, 40000, "w");
        write_blocks(text, path, level, true);
        check_blocks(text, path);

        /* The index covers all records, also after the log grows. nlv uses the index to fetch records. */
        assert_false(open_again(path));
        assert_true(open_again(path));
        check_blocks(text, path);
        write_blocks(more, path, level, false);
        assert_true(open_again(path));
        assert_true(open_again(path));
        write_lines(all, lines + 40000, 50000, "a");
        program_reading reading = {0};
        model *expected = read_model(make_drawing(), all, &reading, (model_options){0});
        model *m = read_model(make_drawing(), path, &reading, any_size);
        assert_non_null(model_store(m)->mapped);
        compare_records(expected, m);
        assert_int_equal(count_matches(m, "LOAD > 50"), count_matches(expected, "LOAD > 50"));
        model_free(m);
        model_free(expected);
        index_remove(path);
    }

    /* Text, blocks, and text again, whose last line has no newline. */
    char *mixed = g_strdup(path_of("mixed.log"));
    copy_file(text, mixed);
    write_blocks(more, path, -1, true);
    append_file(path, mixed);
    write_lines(mixed, lines, 30000, "a");
    write_lines(all, lines, 30000, "a");
    struct stat status;
    assert_int_equal(stat(mixed, &status), 0);
    assert_int_equal(truncate(mixed, status.st_size - 1), 0);
    check_blocks(all, mixed);

    /* A file that is compressed as a whole. */
    char *packed = g_strdup(path_of("packed.zst")), *command = g_strdup_printf("zstd -q -f %s -o %s", mixed, packed);
    assert_int_equal(system(command), 0);
    check_blocks(all, packed);

    /* A damaged block: its records are missing and reported; all others are present. */
    gchar *bytes;
    gsize size;
    program_reading reading = {0};
    assert_true(g_file_get_contents(path, &bytes, &size, NULL));
    bytes[size / 2] ^= 1;
    assert_true(g_file_set_contents(path, bytes, (gssize)size, NULL));
    model *m = read_model(make_drawing(), path, &reading, (model_options){0});
    nlv_compare(m, path);
    assert_int_equal(reading.malformed, 1);
    model_free(m);
    g_free(bytes);
    g_free(command);
    g_free(packed);
    g_free(mixed);
    g_free(all);
    g_free(more);
    g_free(text);
    g_free(path);
    g_free(lines);
}

/* ---- bounds ---- */

/* Returns the number of lines, of the requests around a record, that begin at a dropped record. */
static size_t count_dropped_lines(const model *m, uint32_t around)
{
    const store *s = model_store(m);
    size_t dropped = 0;
    for (uint32_t record = around; record < around + 1000; record++) {
        uint32_t object = store_object(s, record, 0);
        if (object == STORE_NONE)
            continue;
        const request_drawn *drawn = request_lines_find(m, 0, object);
        for (guint i = 0; i < drawn->lines->len; i++)
            dropped += g_array_index(drawn->lines, request_line, i).from < s->first;
    }
    return dropped;
}

/* The lines of a request are looked up again when its first records have been dropped. */
static void drop_records_of_lines(const model *m)
{
    store *s = (store *)model_store(m);
    uint32_t first = s->first + STORE_CHUNK;
    assert_int_equal(count_dropped_lines(m, first), 0);
    assert_true(store_shrink(s, store_memory(s) - 1));
    assert_int_equal(s->first, first);
    assert_int_equal(count_dropped_lines(m, first), 0);
    for (uint32_t object = 0; object < s->objects[0].count; object++)
        assert_true(store_last_step(s, object, 0) >= s->first); /* or STORE_NONE */
}

/* The limit always holds, also with late records: the newest records stay, and the others are counted. */
static void test_memory_is_limited(void **unused)
{
    (void)unused;
    enum { LIMIT = 16 << 20, COUNT = 600000 };
    for (unsigned disorder_us = 0; disorder_us <= 3000000; disorder_us += 3000000) {
        line *lines = make_lines(COUNT, disorder_us);
        const char *path = path_of("limited.log");
        program_reading reading = {0};
        write_lines(path, lines, COUNT, "w");
        model *m = read_model(make_drawing(), path, &reading, (model_options){.memory_max = LIMIT});
        const store *s = model_store(m);
        assert_in_range(store_memory(s), LIMIT / 4, LIMIT);
        assert_int_equal(s->count - s->first + store_missing(s), COUNT);
        assert_true(s->first > 0);
        for (uint32_t record = s->first; record < s->count; record++) {
            uint32_t before = store_previous(s, record, 0);
            assert_true(before == STORE_NONE || (before >= s->first && before < record));
        }
        char *text = model_missing(m), *first = model_describe(m, s->first, "");
        assert_non_null(strstr(text, "memory limit of 16 MiB"));
        assert_null(strstr(first, "no longer"));
        drop_records_of_lines(m);
        g_free(text);
        g_free(first);
        model_free(m);
        g_free(lines);
    }
}

/* Late records do not displace others: records that fit in order fit in any order. */
static void test_late_records_fit(void **unused)
{
    (void)unused;
    enum { COUNT = 600000, EVERY = 7919 };
    const int64_t day_ns = INT64_C(86400) * NL_NS_PER_SECOND;
    const char *path = path_of("fits.log");
    size_t memory = 0;
    for (size_t late = 0; late < 3; late++) { /* zero, one, and some */
        line *lines = make_lines(COUNT, 0);
        for (size_t i = 400000; late > 0 && i < COUNT; i += late == 1 ? COUNT : EVERY)
            lines[i].time_ns -= day_ns;
        write_lines(path, lines, COUNT, "w");
        program_reading reading = {0};
        model *m = read_model(make_drawing(), path, &reading, (model_options){.memory_max = memory / 4 * 5});
        const store *s = model_store(m);
        assert_int_equal(store_missing(s), 0);
        assert_int_equal(s->count, COUNT);
        memory = late == 0 ? store_memory(s) : memory;
        assert_true(late == 0 || store_memory(s) <= memory / 4 * 5);
        model_free(m);
        g_free(lines);
    }
}

static void test_names_are_limited(void **unused)
{
    (void)unused;
    enum { SIZE = 1 << 20 };
    names *n = names_new();
    char *text = g_malloc0(SIZE);
    for (uint16_t i = 0; i < 20; i++) {
        memset(text, 'a' + i, SIZE);
        assert_int_equal(names_put(n, (nl_string){text, SIZE}), i < NAMES_BYTES_MAX / SIZE ? i : NAMES_OTHERS);
    }
    assert_int_equal(names_put(n, (nl_string){"", 0}), NAMES_BYTES_MAX / SIZE);
    g_free(text);
    names_free(n);
}

/* In a log with very many hosts, most lists are short. */
static void test_short_lists_are_small(void **unused)
{
    (void)unused;
    list l = {.has_values = true};
    size_t before = 0;
    for (uint32_t i = 0; i < 3 * LIST_BLOCK; i++) {
        list_append(&l, i, (float)i);
        assert_true(list_memory(&l) >= before);
        before = list_memory(&l);
        if (i == 0)
            assert_true(before < 1200);
    }
    assert_true(before < (size_t)3 * LIST_BLOCK * 8 + 8192);
    for (size_t count = 3 * LIST_BLOCK; count > 0; count -= MIN(count, 61)) {
        list_truncate(&l, count, NULL, NULL);
        list_append(&l, (uint32_t)count, 1);
        assert_int_equal(list_at(&l, count), count);
        assert_int_equal(list_at(&l, count - 1), count - 1);
    }
    list_free(&l);
}

/* Decoded records are shown without delay, found again, and read again for a filter. */
static void test_feed(void **unused)
{
    (void)unused;
    enum { COUNT = 10000 };
    program_reading reading = {0};
    feed *f = feed_new();
    model *m = model_new(make_drawing(), &reading);
    model_add_feed(m, feed_ref(f), "sensors");
    model_start(m);
    for (int i = 0; i < COUNT; i++) {
        nl_record *record = nl_record_new();
        nl_record_set_time(record, INT64_C(1767268800000000000) + i);
        nl_record_set_host(record, "h", 1);
        nl_record_set_event(record, "Load", 4);
        nl_record_add_int(record, "LOAD", i);
        assert_true(feed_put(f, record)); /* waits for the model */
        nl_record_free(record);
    }
    const char *const filters[] = {NULL, "LOAD < 5000", NULL};
    for (size_t i = 0; i < G_N_ELEMENTS(filters); i++) {
        size_t expected = filters[i] != NULL ? COUNT / 2 : COUNT, count = 0;
        assert_true(i == 0 || model_set_filter(m, filters[i]));
        for (int wait = 0; wait < 1000 && (count != expected || !model_is_settled(m)); wait++) {
            g_usleep(10000);
            model_lock(m);
            count = model_count(m);
            model_unlock(m);
        }
        assert_int_equal(count, expected);
    }
    model_lock(m);
    char *text = model_describe(m, COUNT - 1, "");
    model_unlock(m);
    assert_non_null(strstr(text, "LOAD=9999"));
    g_free(text);
    model_free(m);
    nl_record *late = nl_record_new();
    assert_false(feed_put(f, late));
    nl_record_free(late);
    feed_unref(f);
}

/* If its records cannot be stored, a feed ends, and nlv continues. */
static void test_feed_without_space(void **unused)
{
    (void)unused;
    enum { COUNT = 100000 };
    program_reading reading = {0};
    struct rlimit usual;
    getrlimit(RLIMIT_FSIZE, &usual);
    signal(SIGXFSZ, SIG_IGN);
    feed *f = feed_new();
    model *m = model_new(make_drawing(), &reading);
    model_add_feed(m, feed_ref(f), "sensors");
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){64 << 10, usual.rlim_max});
    model_start(m);
    nl_record *record = nl_record_new();
    nl_record_set_time(record, INT64_C(1767268800000000000));
    nl_record_set_host(record, "h", 1);
    nl_record_set_event(record, "Load", 4);
    int put = 0;
    while (put < COUNT && feed_put(f, record))
        put++;
    assert_in_range(put, 1, COUNT - 1);
    char *notice = NULL;
    for (int wait = 0; wait < 1000 && notice == NULL; wait++) {
        g_usleep(10000);
        notice = model_take_notice(m);
    }
    setrlimit(RLIMIT_FSIZE, &usual);
    assert_non_null(notice);
    assert_non_null(strstr(notice, "sensors cannot be read completely: write a temporary file: "));
    g_free(notice);
    assert_true(model_count(m) > 0);
    model_free(m);
    nl_record_free(record);
    feed_unref(f);
}

static void test_feed_without_temporary_file(void **unused)
{
    (void)unused;
    program_reading reading = {0};
    char *usual = g_strdup(getenv("TMPDIR"));
    g_setenv("TMPDIR", path_of("missing"), TRUE);
    feed *f = feed_new();
    model *m = model_new(make_drawing(), &reading);
    model_add_feed(m, feed_ref(f), "sensors");
    if (usual != NULL)
        g_setenv("TMPDIR", usual, TRUE);
    else
        g_unsetenv("TMPDIR");
    nl_record *record = nl_record_new();
    assert_false(feed_put(f, record));
    char *notice = model_take_notice(m);
    assert_non_null(notice);
    g_free(notice);
    g_free(usual);
    nl_record_free(record);
    model_free(m);
    feed_unref(f);
}

/* ---- odd logs ---- */

static size_t count_of(const char *text, size_t size)
{
    const char *path = path_of("odd.log");
    program_reading reading = {0};
    assert_true(g_file_set_contents(path, text, (gssize)size, NULL));
    model *m = read_model(NULL, path, &reading, (model_options){0});
    size_t count = model_count(m);
    for (uint32_t i = 0; i < count; i++)
        g_free(model_describe(m, i, ""));
    model_free(m);
    return count;
}

static void test_odd_logs(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        size_t count;
    } cases[] = {
        {"", 0},
        {"\n\n\n", 0},
        {"nonsense\n", 0},
        {"DATE=20260101000000 NL.EVNT=A\n", 1},
        {"DATE=20260101000000 NL.EVNT=A", 1},
        {"DATE=20260101000000 NL.EVNT=A\nDATE=2026", 1},
        {"DATE=20260101000000 NL.EVNT=A\nDATE=20260101000001 NL.EVNT=B DATE=20260101000002 NL.EVNT=C\n", 2},
        {"prefix: DATE=20260101000000 NL.EVNT=A\n", 1},
        {"\nnonsense\nDATE=19700101000000 NL.EVNT=A\nDATE=21060207062815 NL.EVNT=B\n", 2},
        {"ts=2026-01-01T00:00:00Z event=a level=Info\nts=2026-01-01T00:00:00+01:00 event=b level=Info\n", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(count_of(cases[i].text, strlen(cases[i].text)), cases[i].count);

    /* Lines longer than a read, and more lines than fit. */
    GString *text = g_string_new("DATE=20260101000000 NL.EVNT=A\nDATE=20260101000001 NL.EVNT=B X=");
    for (int i = 0; i < 5 << 20; i++)
        g_string_append_c(text, 'x');
    g_string_append(text, "\nDATE=20260101000002 NL.EVNT=C\n");
    assert_int_equal(count_of(text->str, text->len), 2);
    g_string_free(text, TRUE);

    /* More different events than there are numbers. */
    text = g_string_new(NULL);
    for (int i = 0; i < 70000; i++)
        g_string_append_printf(text, "DATE=20260101000000 NL.EVNT=E%d HOST=h%d\n", i, i);
    assert_int_equal(count_of(text->str, text->len), 70000);
    g_string_free(text, TRUE);
}

/* Waits until a model that is started has a number of records, and locks it. */
static void wait_for_records(model *m, size_t count)
{
    for (int wait = 0; wait < 1000; wait++) {
        model_lock(m);
        if (model_count(m) == count)
            return;
        model_unlock(m);
        g_usleep(10000);
    }
    fail();
}

/* ---- filters ---- */

static int by_place(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
    return (first > second) - (first < second);
}

/* Returns a hash of the places of an object's records, from a step back to the first. */
static uint64_t way_of(const store *s, uint32_t record)
{
    uint64_t hash = 1;
    for (; record != STORE_NONE; record = store_previous(s, record, 0))
        hash = hash * 31 + store_place(s, record);
    return hash;
}

/* Asserts that two stores have the same content, although their objects may have other numbers. */
static void compare_stores(const store *a, const store *b)
{
    assert_int_equal(a->count, b->count);
    for (uint32_t record = 0; record < a->count; record++) {
        assert_int_equal(store_time(a, record), store_time(b, record));
        assert_int_equal(store_place(a, record), store_place(b, record));
        assert_string_equal(names_text(a->names.events, store_event(a, record)),
                            names_text(b->names.events, store_event(b, record)));
        assert_string_equal(names_text(a->names.hosts, store_host(a, record)),
                            names_text(b->names.hosts, store_host(b, record)));
        assert_int_equal(way_of(a, record), way_of(b, record));
    }
    assert_int_equal(a->point_count, b->point_count);
    for (size_t i = 0; i < a->point_count; i++)
        assert_int_equal(a->points[i].count, b->points[i].count);
    double sums[2] = {0, 0};
    const store *both[2] = {a, b};
    for (int which = 0; which < 2; which++)
        for (size_t j = 0; j < both[which]->loadlines[0].count; j++) {
            const list *l = both[which]->loadlines[0].hosts[j].list;
            for (size_t i = 0; i < l->count; i++)
                sums[which] += list_value(l, i);
        }
    assert_true(sums[0] == sums[1]);
}

static void test_filters(void **unused)
{
    (void)unused;
    enum { COUNT = 30000 };
    static const char *const expressions[] = {
        "HOST == h1",      "NL.EVNT != Asked", "!(HOST in (\"h1\", \"h2\")) && PROG == p0",
        "HOST == none",    "LOAD > 50.5",      "NL.EVNT ~ *e* || PROG == p1",
        "NL.EVNT == Load", "REQ.ID == r17"};
    const char *path = path_of("filter.log");
    line *lines = make_lines(COUNT, 30);
    write_lines(path, lines, COUNT, "w");
    program_reading reading = {0};
    model *all = read_model(make_drawing(), path, &reading, (model_options){.no_index = true});
    model *m = read_model(make_drawing(), path, &reading, (model_options){.no_index = true});
    uint64_t *places = g_new(uint64_t, COUNT);
    for (size_t i = 0; i < G_N_ELEMENTS(expressions); i++) {
        model *read = model_new(make_drawing(), &reading);
        model_set_options(read, (model_options){.no_index = true});
        assert_true(model_set_filter(read, expressions[i]));
        assert_true(model_add_source(read, path, false));
        model_load(read);
        assert_true(model_set_filter(m, expressions[i]));
        model_load(m);
        compare_stores(model_store(read), model_store(m));
        if (i > 0) { /* the previous filter, and this one again */
            assert_true(model_set_filter(m, i % 3 == 0 ? NULL : expressions[i - 1]));
            model_load(m);
            assert_true(model_set_filter(m, expressions[i]));
            model_load(m);
            compare_stores(model_store(read), model_store(m));
        }
        model_free(read);
        if (i % 2 == 0)
            continue; /* from one filter to the next */
        assert_true(model_set_filter(m, NULL));
        model_load(m);
        compare_stores(model_store(all), model_store(m));
    }
    for (uint32_t record = 0; record < COUNT; record++)
        places[record] = store_place(model_store(m), record);
    qsort(places, COUNT, sizeof *places, by_place);
    for (uint32_t record = 1; record < COUNT; record++)
        assert_true(places[record] > places[record - 1]);
    g_free(places);
    model_free(all);
    model_free(m);
    g_free(lines);
}

enum { REQUESTS = 40, REQUEST_RECORDS = 4 };

/*
 * Appends requests of 4 ms. Every tenth request takes 80 ms. The last record of request 7 has STATUS=500. Also appends
 * one record without a request for each request.
 */
static void write_requests(const char *path, int first, int count)
{
    static const char *const events[REQUEST_RECORDS] = {"Page.start", "Query.start", "Query.end", "Page.end"};
    FILE *file = fopen(path, first == 0 ? "w" : "a");
    for (int i = first; i < first + count; i++) {
        const int query_ms = i % 10 == 3 ? 78 : 2, offsets_ms[REQUEST_RECORDS] = {0, 1, 1 + query_ms, 2 + query_ms};
        for (int step = 0; step < REQUEST_RECORDS; step++)
            fprintf(file, "DATE=202601011200%02d.%03d HOST=h%d PROG=p NL.EVNT=%s REQ.ID=r%d%s\n", i, offsets_ms[step],
                    step == 1 || step == 2, events[step], i, i == 7 && step == 3 ? " STATUS=500" : "");
        fprintf(file, "DATE=202601011200%02d.5 HOST=h1 PROG=p NL.EVNT=Load LOAD=%d\n", i, i);
    }
    assert_int_equal(fclose(file), 0);
}

typedef struct expected_filter {
    const char *selects, *shows;
    size_t requests, records; /* numbers of records of requests, and of other records */
} expected_filter;

static const expected_filter expected_filters[] = {
    {"request.duration > 50ms", NULL, 16, 0},
    {"STATUS >= 500", NULL, 4, 0},
    {"any(STATUS >= 500) || request.duration > 50ms", NULL, 20, 0},
    {"span(\"Query\").self > 50ms && !any(REQ.ID == r3)", NULL, 12, 0},
    {"request.duration > 50ms", "HOST == h1", 8, 0},
    {"request.duration > 50ms", "REQ.ID == r3", 4, 0}, /* the second step needs fields that are not in memory */
    {"LOAD < 5 || REQ.ID == r9", NULL, 4, 5},
    {"on critical path", NULL, 160, 0},
    {"request.duration > 5s", NULL, 0, 0},
    {NULL, "HOST == h1", 80, 40},
    {NULL, NULL, 160, 40},
};

static void check_selected(const model *m, const expected_filter *e)
{
    const store *s = model_store(m);
    size_t of_requests = 0;
    for (uint32_t record = s->first; record < s->count; record++)
        of_requests += strcmp(names_text(s->names.events, store_event(s, record)), "Load") != 0;
    assert_int_equal(of_requests, e->requests);
    assert_int_equal(s->count - s->first - of_requests, e->records);
}

/* A filter shows whole requests, whether the filter is set before or after the log is read. */
static void test_filters_of_requests(void **unused)
{
    (void)unused;
    const char *path = path_of("requests.log");
    write_requests(path, 0, REQUESTS);
    program_reading reading = {0};
    model *m = read_model(NULL, path, &reading, (model_options){.no_index = true});
    for (size_t i = 0; i < G_N_ELEMENTS(expected_filters); i++) {
        const expected_filter *e = &expected_filters[i];
        model *first = model_new(NULL, &reading);
        model_set_options(first, (model_options){.no_index = true});
        assert_true(model_set_filters(first, e->selects, e->shows));
        assert_true(model_add_source(first, path, false));
        model_load(first);
        check_selected(first, e);
        model_free(first);
        assert_true(model_set_filters(m, e->selects, e->shows));
        model_load(m);
        check_selected(m, e);
    }
    assert_false(model_set_filters(m, "request.duration > 5ms && STATUS > 4", NULL));
    assert_false(model_set_filters(m, "STATUS > 4)", "HOST == h1"));
    model_free(m);
}

static void test_filter_of_requests_in_a_growing_log(void **unused)
{
    (void)unused;
    const char *path = path_of("growing.log");
    write_requests(path, 0, REQUESTS);
    program_reading reading = {0};
    model *m = model_new(NULL, &reading);
    model_set_options(m, (model_options){.no_index = true});
    assert_true(model_add_source(m, path, true));
    model_start(m);
    wait_for_records(m, REQUESTS * (REQUEST_RECORDS + 1));
    model_unlock(m);
    assert_true(model_set_filter(m, "request.duration > 50ms"));
    wait_for_records(m, REQUESTS / 10 * REQUEST_RECORDS);
    model_unlock(m);
    write_requests(path, REQUESTS, 20);
    wait_for_records(m, (REQUESTS + 20) / 10 * REQUEST_RECORDS);
    model_unlock(m);
    model_find_requests(m, NULL);
    request_filter *filter = NULL;
    assert_true(request_filter_narrow(&filter, "any(REQ.ID == r7) || any(REQ.ID == r47)"));
    model_find_requests(m, filter);
    const GArray *found = NULL;
    for (int wait = 0; wait < 1000 && found == NULL; wait++) {
        g_usleep(10000);
        model_lock(m);
        found = model_found_requests(m);
        model_unlock(m);
    }
    assert_non_null(found);
    assert_int_equal(found->len, 2);
    assert_int_equal(g_array_index(found, request_match, 1).time_ns - g_array_index(found, request_match, 0).time_ns,
                     40 * NL_NS_PER_SECOND);
    model_free(m);
}

/*
 * Appends requests whose query takes 2 ms. Every second request has version 2, whose query takes `more_us` longer. The
 * query of each tenth request varies.
 */
static void write_versions(const char *path, const char *host, const char *prefix, int count, int more_us)
{
    FILE *file = fopen(path, "w");
    for (int i = 0; i < count; i++) {
        const int version = 1 + i % 2, query_us = 2000 + i * 7 % 200 + (version == 2 ? more_us : 0),
                  offsets_us[REQUEST_RECORDS] = {0, 500, 500 + query_us, 1000 + query_us};
        static const char *const events[REQUEST_RECORDS] = {"Page.start", "Query.start", "Query.end", "Page.end"};
        for (int step = 0; step < REQUEST_RECORDS; step++)
            fprintf(file, "DATE=2026010112%02d%02d.%06d HOST=%s PROG=p NL.EVNT=%s REQ.ID=%s%d VERSION=%d\n",
                    i / 600 % 60, i / 10 % 60, i % 10 * 100000 + offsets_us[step], host, events[step], prefix, i,
                    version);
    }
    assert_int_equal(fclose(file), 0);
}

static const compared_row *find_compared(const comparison *c, const char *name)
{
    for (guint i = 0; i < c->rows->len; i++)
        if (strcmp(comparison_row(c, i)->name, name) == 0)
            return comparison_row(c, i);
    fail();
    return NULL;
}

/* nlv compares two groups, two logs and two times. It shows their durations, and the places with differences. */
static void test_comparisons(void **unused)
{
    (void)unused;
    enum { COUNT = 1000 };
    char *before = g_strdup(path_of("before.log")), *after = g_strdup(path_of("after.log"));
    write_versions(before, "h", "b", COUNT, 0);
    write_versions(after, "h", "a", COUNT, 300);
    static const struct {
        const char *first, *second;
        uint64_t requests;
        double difference_us;
    } cases[] = {
        {"VERSION == 1", "VERSION == 2", COUNT, 150},
        {"VERSION == 1", NULL, COUNT, 150},
        {NULL, NULL, COUNT, 150},
        {"log:before.log", NULL, COUNT, 150},
        {"log:after.log", "log:before.log", COUNT, -150},
        {"any(VERSION == 2)", "VERSION == 1", COUNT, -150},
    };
    program_reading reading = {0};
    model *m = model_new(NULL, &reading);
    model_set_options(m, (model_options){.no_index = true});
    assert_true(model_add_source(m, before, false));
    assert_true(model_add_source(m, after, false));
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        assert_true(model_compare(m, cases[i].first, cases[i].second));
        assert_null(model_comparison(m));
        model_load(m);
        const comparison *c = model_comparison(m);
        assert_non_null(c);
        assert_null(c->reason);
        assert_int_equal(c->sides[0].requests, cases[i].requests);
        assert_int_equal(c->sides[1].requests, cases[i].requests);
        assert_true(c->changed);
        assert_true(fabs(c->total.after - c->total.before - cases[i].difference_us * 1e3) < 2e3);
        const compared_row *query = find_compared(c, "Query"), *page = find_compared(c, "Page");
        assert_true(query->changed);
        assert_false(page->changed);
        assert_ptr_equal(query, comparison_row(c, 0)); /* the largest difference comes first */
        double sum = 0;
        for (guint row = 0; row < c->rows->len; row++)
            sum += comparison_row(c, row)->time.after;
        assert_true(fabs(sum - c->total.after) < 1);
        if (cases[i].first == NULL) { /* the first log: from 3000 to 3199 us, five requests of each duration */
            assert_int_equal(c->sides[0].median_ns, 3099000);
            assert_int_equal(c->sides[0].p99_ns, 3197000);
        }
    }
    assert_true(model_compare(m, "VERSION == 7", NULL));
    model_load(m);
    assert_non_null(strstr(model_comparison(m)->reason, "VERSION == 7 has 0 requests"));
    assert_false(model_compare(m, "VERSION ==", NULL));
    assert_false(model_compare(m, "VERSION == 1", "VERSION == 1)"));
    assert_false(model_compare(m, "request.duration > 1ms) || (request.duration > 2ms", NULL));
    assert_false(model_compare(m, "VERSION == 1", "request.duration > 1ms)"));
    model_free(m);
    g_free(before);
    g_free(after);
}

/* A comparison is limited to the requests of the filter, and counts the others. */
static void test_comparison_of_filtered_requests(void **unused)
{
    (void)unused;
    enum { COUNT = 1000 };
    const char *path = path_of("filtered.log");
    write_versions(path, "h", "r", COUNT, 300);
    program_reading reading = {0};
    model *m = read_model(NULL, path, &reading, (model_options){.no_index = true});
    assert_int_equal(model_log_count(m), 1);
    assert_true(model_set_filters(m, "REQ.ID ~ 'r1*'", "HOST == none"));
    model_set_find_progress(m, 0.5);
    assert_true(model_compare(m, "VERSION == 1", NULL));
    assert_true(model_find_progress(m) == 0);
    model_load(m);
    const comparison *c = model_comparison(m);
    for (unsigned side = 0; side < COMPARED_SIDES; side++) {
        assert_int_equal(c->sides[side].requests, side == 0 ? 55 : 56); /* r1, r10 to r19, r100 to r199 */
        assert_int_equal(c->sides[side].requests + c->sides[side].unselected, COUNT);
    }
    char *text = comparison_describe_left_out(c);
    assert_string_equal(text,
                        "Only requests that match the filter are compared: REQ.ID ~ \"r1*\" && HOST == \"none\".");
    g_free(text);
    assert_true(model_set_filter(m, NULL));
    assert_true(model_compare(m, "VERSION == 1", NULL));
    model_load(m);
    assert_int_equal(model_comparison(m)->sides[0].requests, COUNT / 2);
    assert_null(comparison_describe_left_out(model_comparison(m)));
    model_free(m);
}

/* Requests that cannot be compared are counted. */
static void test_requests_that_are_left_out(void **unused)
{
    (void)unused;
    static const char *const events[] = {"Work.start", "Work.end", NULL}, *const ids[] = {NULL};
    static const char span[] = "DATE=202601010000%02d.%d HOST=h PROG=p NL.EVNT=%s.%s SIZE=%d\n";
    enum { COUNT = 50 };
    const char *path = path_of("left-out.log");
    FILE *file = fopen(path, "w");
    for (int i = 0; i < COUNT; i++) {
        fprintf(file, span, i, 1, i == 8 ? "Hidden" : "Work", "start", i % 2);
        fprintf(file, span, i, 2, i == 8 ? "Hidden" : "Work", "end", i % 2);
    }
    fprintf(file, span, COUNT, 1, "Work", "start", 0); /* it is unknown whether these spans are one request */
    fprintf(file, span, COUNT, 2, "Rest", "start", 0);
    fprintf(file, span, COUNT, 3, "Work", "end", 0);
    fprintf(file, span, COUNT, 4, "Rest", "end", 0);
    fclose(file);
    program_reading reading = {0};
    drawing *d = drawing_new();
    drawing_add_lifeline(d, "work", events, ids, NULL);
    model *m = read_model(d, path, &reading, (model_options){.no_index = true});
    assert_true(model_compare(m, "SIZE == 0", NULL));
    model_load(m);
    const comparison *c = model_comparison(m);
    assert_int_equal(c->sides[0].requests, COUNT / 2 - 1);
    assert_int_equal(c->sides[1].requests, COUNT / 2);
    char *text = comparison_describe_left_out(c);
    assert_string_equal(text, "A leaves out 1 request, because the drawing shows no event of it. "
                              "A leaves out 2 spans, because spans without an ID overlap in one thread or program. "
                              "B leaves out 2 spans, because spans without an ID overlap in one thread or program.");
    g_free(text);
    model_free(m);
}

/* The requests of the first and of the second half of a log do not differ. */
static void test_comparison_without_difference(void **unused)
{
    (void)unused;
    const char *path = path_of("same.log");
    write_versions(path, "h", "r", 2000, 0);
    program_reading reading = {0};
    model *m = model_new(NULL, &reading);
    model_set_options(m, (model_options){.no_index = true});
    assert_true(model_add_source(m, path, false));
    assert_true(model_compare(m, "DATE < 20260101120140", NULL));
    model_load(m);
    const comparison *c = model_comparison(m);
    assert_int_equal(c->sides[0].requests, 1000);
    assert_int_equal(c->sides[1].requests, 1000);
    assert_false(c->changed);
    for (guint row = 0; row < c->rows->len; row++)
        assert_false(comparison_row(c, row)->changed);
    model_free(m);
}

/* ---- the model's results ---- */

static void test_what_begins_anew(void **unused)
{
    (void)unused;
    enum { COUNT = 20000 };
    const char *path = path_of("again.log");
    line *lines = make_lines(COUNT, 0);
    write_lines(path, lines, COUNT, "w");
    program_reading reading = {0};
    drawing *d = make_drawing();
    drawing_lifeline *l = g_ptr_array_index(d->lifelines, 0);
    l->again = true;
    g_strfreev(l->ids);
    l->ids = g_strsplit("NONE|REQ.ID", ";", -1); /* the first field that is present */
    trace *t = read_trace(path);
    model *m = read_model(drawing_copy(d), path, &reading, (model_options){.no_index = true});
    lifelines *expected = lifelines_build(t, l);
    compare_objects(model_store(m), t, expected);
    size_t begins = 0;
    for (uint32_t record = 0; record < model_store(m)->count; record++)
        begins += store_event(model_store(m), record) == 0;
    assert_true(expected->object_count >= begins);
    lifelines_free(expected);
    trace_free(t);
    model_free(m);
    drawing_free(d);
    g_free(lines);
}

static void test_clock_errors(void **unused)
{
    (void)unused;
    const char *path = path_of("clock.log");
    FILE *file = fopen(path, "w");
    fputs("DATE=20260101000000 HOST=a NL.EVNT=Asked REQ.ID=1\n"
          "DATE=20260101000002 HOST=a NL.EVNT=ClockTracking CLOCK.ERROR=1500.5\n"
          "DATE=20260101000003 HOST=a NL.EVNT=Asked REQ.ID=2\n"
          "DATE=20260101000005 HOST=a NL.EVNT=NetLogger.Clock ERROR.NS=700\n"
          "DATE=20260101000006 HOST=a NL.EVNT=Asked REQ.ID=3\n"
          "DATE=20260101000006 HOST=b NL.EVNT=ClockKernel CLOCK.ERROR=-1\n"
          "DATE=20260101000001 HOST=b NL.EVNT=Asked REQ.ID=4\n", /* a late record: others move */
          file);
    fclose(file);
    program_reading reading = {0};
    model *m = read_model(make_drawing(), path, &reading, (model_options){.no_index = true});
    const store *s = model_store(m);
    assert_int_equal(s->unordered, 1);
    uint16_t a = names_find(s->names.hosts, "a"), b = names_find(s->names.hosts, "b");
    assert_true(store_clock_at(s, a, 0).high_ns == 1500500); /* all measurements are later, so the first one counts */
    assert_true(store_clock_at(s, a, 3).high_ns == 1500500);
    assert_true(store_clock_at(s, a, 5).high_ns == 700 &&
                store_clock_at(s, a, 5).low_ns == -700); /* the more precise measurement */
    assert_false(store_clock_at(s, b, 5).is_known);
    assert_int_equal(model_color_count(m), 2); /* clock records alone do not make a host visible */
    model_free(m);
}

/* ---- branches ---- */

/* A page calls users and orders in parallel; orders asks the database. Times are in microseconds. */
typedef struct page_event {
    int time_us;
    const char *host, *program, *event;
} page_event;

static const page_event page_events[] = {
    {0, "web", "frontend", "Page.start"},    {100, "app1", "users", "Users.start"},
    {150, "app2", "orders", "Orders.start"}, {300, "db", "db", "Query.start"},
    {800, "app1", "users", "Users.end"},     {900, "db", "db", "Query.end"},
    {1000, "app2", "orders", "Orders.end"},  {1100, "web", "frontend", "Page.end"},
};

static void write_pages(const char *path, unsigned count, unsigned ids, unsigned later)
{
    FILE *file = fopen(path, "w");
    for (unsigned i = 0; i < count; i++)
        for (size_t j = 0; j < G_N_ELEMENTS(page_events); j++) {
            const page_event *e = &page_events[j];
            char date[NL_TIME_TEXT_SIZE];
            /* Which of two backends begins and ends first varies. */
            bool is_users = strcmp(e->program, "users") == 0;
            int64_t time_us = INT64_C(1767225600000000) + (i + later) * INT64_C(10000) + e->time_us +
                              (is_users ? i % 2 * 70 + i % 3 * 100 : 0);
            nl_time_format_ulm(time_us * 1000, date);
            fprintf(file, "DATE=%s HOST=%s PROG=%s LVL=Usage NL.EVNT=%s REQ.ID=%u\n", date, e->host, e->program,
                    e->event, i % ids);
        }
    fclose(file);
}

static gint by_text(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns the names of the events from which lines lead to a record, in alphabetical order. */
static char *causes_of(const store *s, uint32_t record)
{
    uint32_t found[EDGES_MAX];
    size_t count = edges_find(s, record, 0, found);
    GPtrArray *names = g_ptr_array_new();
    for (size_t i = 0; i < count; i++)
        g_ptr_array_add(names, (char *)names_text(s->names.events, store_event(s, found[i])));
    g_ptr_array_sort(names, by_text);
    g_ptr_array_add(names, NULL);
    char *text = g_strjoinv(" ", (char **)names->pdata);
    g_ptr_array_free(names, TRUE);
    return text;
}

static const char *expected_causes(const char *event)
{
    static const char *const causes[][2] = {
        {"Page.start", ""},
        {"Users.start", "Page.start"},
        {"Orders.start", "Page.start"},
        {"Query.start", "Orders.start"},
        {"Users.end", "Users.start"},
        {"Query.end", "Query.start"},
        {"Orders.end", "Query.end"},
        {"Page.end", "Orders.end Users.end"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(causes); i++)
        if (strcmp(causes[i][0], event) == 0)
            return causes[i][1];
    return NULL;
}

static void test_branches(void **unused)
{
    (void)unused;
    enum { COUNT = 200 };
    const char *path = path_of("pages.log");
    program_reading reading = {0};
    write_pages(path, COUNT, COUNT, 0);
    model *m = read_model(NULL, path, &reading, (model_options){.no_index = true});
    const store *s = model_store(m);
    assert_int_equal(s->count, COUNT * G_N_ELEMENTS(page_events));
    for (uint32_t record = 0; record < s->count; record++) {
        char *causes = causes_of(s, record);
        assert_string_equal(causes, expected_causes(names_text(s->names.events, store_event(s, record))));
        g_free(causes);
    }
    assert_null(s->lifelines[0].violations); /* concurrency is no error */
    statistics *of = statistics_new(m, INT64_MIN, INT64_MAX);
    unsigned spans = 0;
    for (guint i = 0; i < of->segments->len; i++) {
        const segment_statistics *one = &g_array_index(of->segments, segment_statistics, i);
        const drawing_lifeline *l = g_ptr_array_index(model_drawing(m)->lifelines, one->lifeline);
        spans += one->is_span;
        if (one->is_span && strcmp(l->events[one->from], "Page.start") == 0)
            assert_true(one->count == COUNT && one->min_ns == 1.1e6F && one->max_ns == 1.1e6F);
    }
    assert_int_equal(spans, 2); /* Page and Orders; Users and Query are segments */
    statistics_free(of);
    slow_line slow = slow_find(m, INT64_MIN, INT64_MAX); /* not the wait of the frontend for orders */
    assert_true(slow.is_found && store_time(s, slow.to) - store_time(s, slow.from) == 600000);
    assert_string_equal(names_text(s->names.events, store_event(s, slow.to)), "Query.end");
    scene_view whole = scene_fit(m, 1000, 600), first = scene_first(m, 1000, 600);
    assert_true(first.to_ns - first.from_ns < (whole.to_ns - whole.from_ns) / 10 &&
                first.to_ns - first.from_ns > 600000);
    model_free(m);
}

/* What nlstat --slowest reports about a request. */
typedef struct reported_request {
    int64_t from_ns, to_ns, slowest_ns;
    char *slowest;
} reported_request;

typedef struct reporting {
    assembler *assembler;
    GArray *requests; /* reported_request */
} reporting;

static void report_request(void *user, const request_graph *g, const char *name, uint32_t by, bool cut)
{
    (void)name, (void)by, (void)cut;
    const reporting *r = user;
    reported_request one = {g->from_ns, g->to_ns, 0, NULL};
    for (size_t i = 0; i < g->span_count; i++)
        if (g->spans[i].path_ns > one.slowest_ns) {
            one.slowest_ns = g->spans[i].path_ns;
            one.slowest =
                (char *)event_names_text(request_reader_names(assembler_reader(r->assembler)), g->spans[i].name);
        }
    one.slowest = g_strdup(one.slowest);
    g_array_append_val(r->requests, one);
}

static void report_record(void *user, const nl_record *record)
{
    assembler_add(((reporting *)user)->assembler, record);
}

/* Checks that every request that is drawn is also a request of the assembler, which nlstat uses, and is the same. */
static void compare_with_assembler(const model *m)
{
    const store *s = model_store(m);
    const drawing_lifeline *l = g_ptr_array_index(model_drawing(m)->lifelines, 0);
    reporting r = {.requests = g_array_new(FALSE, FALSE, sizeof(reported_request))};
    r.assembler = assembler_new(&(assembler_options){
        .ids = (const char *const *)l->ids, .memory_max = 64 << 20, .take = report_request, .user = &r});
    for (uint32_t record = s->first; record < s->count; record++)
        assert_true(model_record(m, record, report_record, &r));
    assembler_finish(r.assembler);
    assert_int_equal(r.requests->len, s->objects[0].count);
    for (uint32_t object = 0; object < s->objects[0].count; object++) {
        const request_drawn *drawn = request_lines_find(m, 0, object);
        bool is_found = false;
        assert_true(drawn->has_graph);
        for (guint i = 0; i < r.requests->len && !is_found; i++) {
            const reported_request *one = &g_array_index(r.requests, reported_request, i);
            is_found = one->from_ns == drawn->from_ns && one->to_ns == drawn->to_ns &&
                       one->slowest_ns == drawn->slowest_ns && g_strcmp0(one->slowest, drawn->slowest) == 0;
        }
        assert_true(is_found);
    }
    for (guint i = 0; i < r.requests->len; i++)
        g_free(g_array_index(r.requests, reported_request, i).slowest);
    g_array_free(r.requests, TRUE);
    assembler_free(r.assembler);
}

/* Returns the names of the events from which drawn lines lead to a record, in alphabetical order. */
static char *drawn_causes_of(const model *m, uint32_t record)
{
    const store *s = model_store(m);
    const request_drawn *drawn = request_lines_find(m, 0, store_object(s, record, 0));
    GPtrArray *names = g_ptr_array_new();
    for (guint i = 0; i < drawn->lines->len; i++) {
        const request_line *line = &g_array_index(drawn->lines, request_line, i);
        assert_false(line->is_impossible);
        if (line->to == record)
            g_ptr_array_add(names, (char *)names_text(s->names.events, store_event(s, line->from)));
    }
    g_ptr_array_sort(names, by_text);
    g_ptr_array_add(names, NULL);
    char *text = g_strjoinv(" ", (char **)names->pdata);
    g_ptr_array_free(names, TRUE);
    return text;
}

/* The lines of single requests are the edges of their graphs; here, precedence joins the programs. */
static void test_lines_of_requests(void **unused)
{
    (void)unused;
    enum { COUNT = 60 };
    const char *path = path_of("lines.log");
    program_reading reading = {0};
    write_pages(path, COUNT, COUNT, 0);
    model *m = read_model(NULL, path, &reading, (model_options){.no_index = true});
    const store *s = model_store(m);
    for (uint32_t record = 0; record < s->count; record++) {
        char *causes = drawn_causes_of(m, record);
        assert_string_equal(causes, expected_causes(names_text(s->names.events, store_event(s, record))));
        g_free(causes);
    }
    compare_with_assembler(m);
    model_free(m);
}

/* Writes requests of a web server that calls a database. Every fifth request calls another host again after a failure.
 */
static void write_retries(const char *path)
{
    enum { COUNT = 200 };
    FILE *file = fopen(path, "w");
    static const char *const form = "DATE=20260101000000.%06d HOST=%s PROG=%s LVL=Usage NL.EVNT=%s REQ.ID=%d\n";
    for (int i = 0; i < COUNT; i++) {
        int at = i * 4000;
        fprintf(file, form, at, "web", "shop", "Serve.start", i);
        for (int attempt = 0; attempt < (i % 5 == 3 ? 2 : 1); attempt++, at += 900) {
            const char *host = attempt == 0 ? "db1" : "db2";
            fprintf(file, form, at + 100, "web", "shop", "Call.start", i);
            fprintf(file, form, at + 200, host, "dbd", "Query.start", i);
            fprintf(file, form, at + 600 + i % 7, host, "dbd", "Query.end", i);
            fprintf(file, form, at + 700 + i % 7, "web", "shop", "Call.end", i);
        }
        fprintf(file, form, at + 100, "web", "shop", "Serve.end", i);
    }
    fclose(file);
}

/* A second attempt on another host follows from the caller, which waited for the first attempt. No other line leads
 * from the first attempt to the second. Lines between programs are inferred, and have a certainty. */
static void test_lines_of_retries(void **unused)
{
    (void)unused;
    const char *path = path_of("retries.log");
    program_reading reading = {0};
    write_retries(path);
    model *m = read_model(NULL, path, &reading, (model_options){.no_index = true});
    const store *s = model_store(m);
    unsigned queries = 0, inferred = 0;
    for (uint32_t record = 0; record < s->count; record++) {
        char *causes = drawn_causes_of(m, record);
        const char *event = names_text(s->names.events, store_event(s, record));
        if (strcmp(event, "Query.start") == 0) {
            assert_string_equal(causes, "Call.start");
            queries++;
        }
        g_free(causes);
        const request_drawn *drawn = request_lines_find(m, 0, store_object(s, record, 0));
        const request_line *line = request_lines_cause(drawn, record);
        const bool is_between = line != NULL && store_prog(s, line->from) != store_prog(s, record);
        assert_true(line != NULL || strcmp(event, "Serve.start") == 0);
        if (line == NULL)
            continue;
        assert_int_equal(line->is_inferred, is_between);
        assert_true(is_between ? line->certainty > 0.5 && line->certainty <= 1 : line->certainty == 1);
        inferred += is_between;
    }
    assert_int_equal(queries, 240);
    assert_int_equal(inferred, 2 * queries);
    model_free(m);
}

/* If the lines of requests are inferred while the log is short, they are inferred again when the log has grown. */
static void test_lines_of_a_growing_log(void **unused)
{
    (void)unused;
    enum { COUNT = 60 };
    const char *path = path_of("growing.log");
    program_reading reading = {0};
    write_pages(path, COUNT, COUNT, 0);
    model *m = read_model(NULL, path, &reading, (model_options){.no_index = true});
    drawing *d = drawing_copy(model_drawing(m));
    model_free(m);
    char *all;
    gsize size, page_size = 0;
    assert_true(g_file_get_contents(path, &all, &size, NULL));
    for (size_t i = 0; i < G_N_ELEMENTS(page_events); i++)
        page_size += strcspn(all + page_size, "\n") + 1;
    assert_true(g_file_set_contents(path, all, (gssize)page_size, NULL));
    m = model_new(d, &reading);
    model_set_options(m, (model_options){.no_index = true});
    assert_true(model_add_source(m, path, true));
    model_start(m);
    wait_for_records(m, G_N_ELEMENTS(page_events));
    const store *s = model_store(m);
    assert_non_null(request_lines_find(m, 0, 0));
    model_unlock(m);
    FILE *file = fopen(path, "a");
    assert_int_equal(fwrite(all + page_size, 1, size - page_size, file), size - page_size);
    fclose(file);
    g_free(all);
    wait_for_records(m, COUNT * G_N_ELEMENTS(page_events));
    assert_ptr_equal(s, model_store(m));
    for (uint32_t record = 0; record < s->count; record++) {
        char *causes = drawn_causes_of(m, record);
        assert_string_equal(causes, expected_causes(names_text(s->names.events, store_event(s, record))));
        g_free(causes);
    }
    model_unlock(m);
    model_free(m);
}

/* A line has the name of its own host, or of both hosts that it joins. */
static void test_hosts_of_lines(void **unused)
{
    (void)unused;
    const char *path = path_of("lines.log");
    program_reading reading = {0};
    write_pages(path, 20, 20, 0);
    model *m = read_model(NULL, path, &reading, (model_options){.no_index = true});
    const store *s = model_store(m);
    const char *color = model_color_text(m, model_object_color(m, 0, 0));
    const request_drawn *drawn = request_lines_find(m, 0, 0);
    unsigned same = 0, joins = 0;
    for (guint i = 0; i < drawn->lines->len; i++) {
        const request_line *line = &g_array_index(drawn->lines, request_line, i);
        const slow_line slow = {.from = line->from, .to = line->to};
        const char *from = names_text(s->names.hosts, store_host(s, line->from)),
                   *to = names_text(s->names.hosts, store_host(s, line->to));
        char *text = slow_hosts(m, &slow), *both = g_strdup_printf("%s \342\206\222 %s", from, to);
        if (strcmp(from, to) == 0) {
            assert_string_equal(text, from);
            same++;
        } else if (strcmp(from, color) != 0 && strcmp(to, color) != 0) {
            assert_string_equal(text, both);
            joins++;
        }
        g_free(both);
        g_free(text);
    }
    assert_true(same > 0 && joins > 0);
    model_free(m);
}

/* Draws a waterfall into a picture, so that a sanitizer sees every access. */
static void draw_waterfall(const waterfall *w, double width)
{
    cairo_surface_t *picture = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)width, (int)waterfall_height(w) + 1);
    cairo_t *cr = cairo_create(picture);
    waterfall_draw(w, cr, width, 0, false);
    assert_int_equal(cairo_status(cr), CAIRO_STATUS_SUCCESS);
    cairo_destroy(cr);
    cairo_surface_destroy(picture);
}

static void test_waterfall(void **unused)
{
    (void)unused;
    enum { COUNT = 30 };
    const char *path = path_of("waterfall.log");
    program_reading reading = {0};
    write_pages(path, COUNT, COUNT, 0);
    model *m = read_model(NULL, path, &reading, (model_options){.no_index = true});
    const store *s = model_store(m);
    GHashTable *colors = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL); /* by host, plus 1 */
    for (uint32_t record = 0; record < s->count; record += 7) {
        const uint32_t found = store_find_place(s, store_time(s, record), store_place(s, record));
        assert_int_equal(found, record);
        waterfall *w = waterfall_read(m, 0, found);
        int64_t path_ns = 0;
        unsigned waits = 0;
        assert_null(w->reason);
        assert_int_equal(w->left_out, 0);
        const waterfall_row *root = &g_array_index(w->rows, waterfall_row, 0);
        assert_string_equal(root->name, "Page");
        assert_true(root->begin_ns == 0 && root->end_ns == 1100000 && w->length_ns == 1100000);
        for (guint i = 0; i < w->rows->len; i++) {
            const waterfall_row *span = &g_array_index(w->rows, waterfall_row, i);
            assert_true(span->parent == G_MAXUINT ? span->depth == 0 : span->parent < i);
            assert_true(span->median_ns > 0 && span->end_ns >= span->begin_ns);
            if (!span->is_wait) { /* the host has the color that it has in the picture, in every waterfall */
                char *host = g_strndup(span->place, strcspn(span->place, " "));
                const uint16_t number = names_find(s->names.hosts, host);
                const gpointer color = GUINT_TO_POINTER(span->color + 1), known = g_hash_table_lookup(colors, host);
                assert_true(known == NULL || known == color);
                assert_true(!model_has_host_color(m, number) || span->color == model_host_color(m, number));
                g_hash_table_replace(colors, host, color);
            }
            char *text = waterfall_describe(w, i);
            assert_non_null(strstr(text, span->name));
            g_free(text);
        }
        for (guint i = 0; i < w->path->len; i++) {
            const waterfall_step *step = &g_array_index(w->path, waterfall_step, i);
            const waterfall_row *row =
                step->row != G_MAXUINT ? &g_array_index(w->rows, waterfall_row, step->row) : NULL;
            path_ns += step->to_ns - step->from_ns;
            if (row == NULL)
                assert_true(step->to_ns - step->from_ns < w->length_ns / WATERFALL_WAITS_MAX);
            else if (row->is_wait)
                assert_true(row->begin_ns == step->from_ns && row->end_ns == step->to_ns);
            waits += row != NULL && row->is_wait;
        }
        assert_true(path_ns == w->length_ns);
        assert_true(waits > 0);
        assert_int_equal(waterfall_find(w, waterfall_height(w) - 1), G_MAXUINT); /* the last record */
        assert_true(w->records->len >= w->rows->len && w->more == 0);
        for (guint i = 0; i < w->records->len; i++) {
            const waterfall_record *r = &g_array_index(w->records, waterfall_record, i);
            assert_true(r->time_ns >= (i > 0 ? (r - 1)->time_ns : 0) && r->time_ns <= w->length_ns);
            assert_true(*r->event != '\0' && *r->place != '\0');
            assert_null(strstr(r->fields, "REQ.ID=")); /* the same in all records */
        }
        assert_int_equal(waterfall_find(w, 0), G_MAXUINT);
        draw_waterfall(w, 800);
        draw_waterfall(w, 50);
        waterfall_free(w);
    }
    assert_true(g_hash_table_size(colors) > 1);
    g_hash_table_destroy(colors);
    waterfall *none = waterfall_read(m, 0, STORE_NONE);
    assert_non_null(none->reason);
    draw_waterfall(none, 300);
    waterfall_free(none);
    model_free(m);
}

/* The events of a request are points, so its waterfall consists of waits. */
static void test_waterfall_of_points(void **unused)
{
    (void)unused;
    enum { COUNT = 30 };
    static const char *const names[] = {"Asked", "Queued", "Answered"};
    const char *path = path_of("points.log");
    program_reading reading = {0};
    FILE *file = fopen(path, "w");
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < 3; k++)
            fprintf(file, "DATE=202601010000%02d.%06d HOST=h%d PROG=p LVL=Usage NL.EVNT=%s REQ.ID=%d\n", i,
                    k * 300 + (k == 2 && i == 7 ? 900 : 0), k % 2, names[k], i);
    fclose(file);
    model *m = read_model(NULL, path, &reading, (model_options){.no_index = true});
    for (uint32_t record = 0; record < model_store(m)->count; record += 3) {
        waterfall *w = waterfall_read(m, 0, record);
        assert_null(w->reason);
        assert_int_equal(w->rows->len, 2);
        const waterfall_row *first = &g_array_index(w->rows, waterfall_row, 0),
                            *second = &g_array_index(w->rows, waterfall_row, 1);
        assert_string_equal(first->name, "Asked \342\206\222 Queued");
        assert_string_equal(first->place, "h0 p \342\206\222 h1 p");
        assert_true(first->is_wait && second->is_wait);
        assert_true(first->begin_ns == 0);
        assert_true(first->end_ns == 300000);
        assert_true(first->median_ns == 300000);
        assert_true(second->begin_ns == 300000);
        assert_true(second->end_ns == (record / 3 == 7 ? 1500000 : 600000));
        assert_true(second->median_ns == 300000);
        draw_waterfall(w, 500);
        waterfall_free(w);
    }
    model_free(m);
}

static void test_durations_are_readable(void **unused)
{
    (void)unused;
    static const struct {
        double ns;
        const char *text;
    } durations[] = {{0, "0 ns"},          {999, "999 ns"},    {-1500, "-1.5 µs"}, {999.7e6, "1 s"},
                     {57.5e6, "57.5 ms"},  {119e9, "119 s"},   {150e9, "2.5 min"}, {29800e9, "8.28 h"},
                     {259200e9, "3 days"}, {2e17, "2315 days"}};
    for (size_t i = 0; i < G_N_ELEMENTS(durations); i++) {
        char *text = checks_time_text(durations[i].ns);
        assert_string_equal(text, durations[i].text);
        g_free(text);
    }
}

typedef struct order_event {
    unsigned time_us;
    const char *program, *event, *span, *parent, *causes;
} order_event;

/* Two calls with the same name run at the same time, and end in either order. */
static const order_event order_events[] = {
    {0, "frontend", "Order.start", "1", "", ""},
    {100, "frontend", "Call.start", "2", "1", "Order.start"},
    {110, "frontend", "Call.start", "3", "1", "Order.start"},
    {200, "prices", "Prices.start", "4", "2", "Call.start"},
    {250, "stock", "Stock.start", "5", "3", "Call.start"},
    {600, "prices", "Prices.end", "4", "", "Prices.start"},
    {650, "frontend", "Call.end", "2", "", "Prices.end"},
    {800, "stock", "Stock.end", "5", "", "Stock.start"},
    {850, "frontend", "Call.end", "3", "", "Stock.end"},
    {900, "frontend", "Render.start", "6", "1", "Call.end Call.end"},
    {950, "frontend", "Render.end", "6", "", "Render.start"},
    {1000, "frontend", "Order.end", "1", "", "Render.end"},
};

static const char *causes_of_order_event(const char *event, unsigned *calls_ended)
{
    for (size_t i = 0; i < G_N_ELEMENTS(order_events); i++)
        if (strcmp(order_events[i].event, event) == 0 && strcmp(event, "Call.end") != 0)
            return order_events[i].causes;
    (*calls_ended)++;
    return NULL;
}

/* Parallel calls fork and join along the edges of the graph, although their events have the same names. */
static void test_parallel_calls(void **unused)
{
    (void)unused;
    enum { COUNT = 40 };
    const char *path = path_of("orders.log");
    program_reading reading = {0};
    FILE *file = fopen(path, "w");
    for (unsigned i = 0; i < COUNT; i++)
        for (size_t j = 0; j < G_N_ELEMENTS(order_events); j++) {
            const order_event *e = &order_events[j];
            char date[NL_TIME_TEXT_SIZE];
            unsigned later = i % 2 == 1 && (j == 5 || j == 6) ? 230 : 0;
            nl_time_format_ulm((INT64_C(1767225600000000) + i * INT64_C(5000) + e->time_us + later) * 1000, date);
            fprintf(file, "DATE=%s HOST=%s PROG=%s LVL=Usage NL.EVNT=%s TRACE.ID=t%u SPAN.ID=%u%s", date, e->program,
                    e->program, e->event, i, i, e->span);
            fprintf(file, *e->parent != '\0' ? " PARENT.ID=%u%s\n" : "\n", i, e->parent);
        }
    fclose(file);
    model *m = read_model(NULL, path, &reading, (model_options){.no_index = true});
    const store *s = model_store(m);
    assert_int_equal(s->objects[0].count, COUNT);
    unsigned calls_ended = 0;
    for (uint32_t record = 0; record < s->count; record++) {
        char *causes = drawn_causes_of(m, record);
        const char *expected = causes_of_order_event(names_text(s->names.events, store_event(s, record)), &calls_ended);
        if (expected != NULL)
            assert_string_equal(causes, expected);
        else
            assert_true(strcmp(causes, "Prices.end") == 0 || strcmp(causes, "Stock.end") == 0);
        g_free(causes);
    }
    assert_int_equal(calls_ended, 2 * COUNT);
    compare_with_assembler(m);
    model_free(m);
}

/*
 * Returns a log of requests that follow each other at once. Every tenth request is slow. Records of the load follow all
 * requests.
 */
static model *read_requests(unsigned count, program_reading *reading)
{
    static const char form[] = "DATE=%s HOST=h PROG=p LVL=Usage NL.EVNT=%s %s=%u\n";
    const char *path = path_of("requests.log");
    FILE *file = fopen(path, "w");
    char date[NL_TIME_TEXT_SIZE];
    int64_t time_us = INT64_C(1767225600000000);
    for (unsigned i = 0; i < count; i++)
        for (unsigned step = 0; step < 3; step++) {
            static const char *const events[] = {"Got", "Parsed", "Done"};
            nl_time_format_ulm(time_us * 1000, date);
            fprintf(file, form, date, events[step], "REQ.ID", i);
            time_us += step == 1 && i % 10 == 7 ? 15000 + i : 1000 + 10 * i;
        }
    for (unsigned i = 0; i < 30; i++) {
        nl_time_format_ulm((time_us + i * 1000) * 1000, date);
        fprintf(file, form, date, "Load", "LOAD", i * i % 17);
    }
    fclose(file);
    return read_model(NULL, path, reading, (model_options){.no_index = true});
}

/* The first view has 25 requests, including a slow request, or the whole log if it has no more than 50 requests. */
static void test_first_view(void **unused)
{
    (void)unused;
    program_reading reading = {0};
    model *m = read_requests(100, &reading);
    const store *s = model_store(m);
    scene_view first = scene_first(m, 1000, 600);
    const slow_line slow = slow_find(m, first.from_ns, first.to_ns);
    assert_true(slow.is_found && store_time(s, slow.from) >= first.from_ns && store_time(s, slow.to) <= first.to_ns &&
                store_time(s, slow.to) - store_time(s, slow.from) > 15000000);
    const int64_t slow_ns = store_time(s, slow.from);
    const slow_line cut =
        slow_find_longest(m, slow_ns - 5000000, slow_ns + 10000000); /* the end of the line is not in view */
    assert_true(cut.is_found && cut.from == slow.from && cut.to == slow.to);
    unsigned begun = 0;
    for (uint32_t i = store_find_time(s, first.from_ns); i < store_find_time(s, first.to_ns); i++)
        begun += strcmp(names_text(s->names.events, store_event(s, i)), "Got") == 0;
    assert_true(begun >= 25 && begun <= 30);
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, 1000, 600);
    cairo_t *cr = cairo_create(surface);
    assert_int_equal(layout_make(m, &first, cr).pane_count, 2); /* in a window, panes stay where they are */
    first.hides_empty = true;
    assert_int_equal(layout_make(m, &first, cr).pane_count, 1);
    scene_view whole = scene_fit(m, 1000, 600);
    whole.hides_empty = true;
    assert_int_equal(layout_make(m, &whole, cr).pane_count, 2);
    cairo_destroy(cr);
    cairo_surface_destroy(surface);
    model_free(m);
    m = read_requests(40, &reading);
    whole = scene_fit(m, 1000, 600);
    first = scene_first(m, 1000, 600);
    assert_true(first.from_ns == whole.from_ns && first.to_ns == whole.to_ns && first.names_slowest);
    model_free(m);
}

/* ---- threads ---- */

/* Returns a model whose threads have been read from lines: the time in ms after 12:00:00, and the other fields. */
static model *read_threads(const char *const *lines, program_reading *reading)
{
    const char *path = path_of("threads.log");
    FILE *file = fopen(path, "w");
    for (; *lines != NULL; lines++) {
        int time_ms, at;
        assert_int_equal(sscanf(*lines, "%d %n", &time_ms, &at), 1);
        fprintf(file, "DATE=20260101120000.%03d000 LVL=Usage %s\n", time_ms, *lines + at);
    }
    fclose(file);
    model *m = model_new(NULL, reading);
    model_set_options(m, (model_options){.no_index = true});
    model_want_threads(m);
    assert_true(model_add_source(m, path, false));
    model_load(m);
    return m;
}

static int64_t after_noon(double ms)
{
    return INT64_C(1767268800) * 1000000000 + (int64_t)(ms * 1e6);
}

static void check_bar(const GArray *bars, guint i, double begin_ms, double end_ms)
{
    const thread_bar *bar = &g_array_index(bars, thread_bar, i);
    assert_true(i < bars->len);
    assert_true(bar->begin_ns == after_noon(begin_ms) && bar->end_ns == after_noon(end_ms));
}

/* Compares thread_lane_find with a linear search, for bars of 1 s and every beginning of the search. */
static void test_every_search_in(const GArray *bars)
{
    GArray *lane = g_array_new(FALSE, FALSE, sizeof(thread_bar));
    for (int i = 0; i < 40; i++) {
        thread_bar bar = g_array_index(bars, thread_bar, 0);
        bar.begin_ns = i;
        bar.end_ns = i + 1;
        g_array_append_val(lane, bar);
    }
    for (size_t from = 0; from <= lane->len; from++)
        for (int64_t time = 0; time <= 41; time++)
            assert_int_equal(thread_lane_find(lane, time, from), MIN(MAX(from, (size_t)time), lane->len));
    g_array_free(lane, TRUE);
}

/* Returns a model of 40 records: 39 in the first seconds, and one after `gap_s` seconds. */
static model *read_gap(unsigned gap_s, program_reading *reading)
{
    const char *path = path_of("gap.log");
    FILE *file = fopen(path, "w");
    for (unsigned i = 0; i < 40; i++) {
        const unsigned s = i == 39 ? i + gap_s : i;
        fprintf(file, "DATE=2026010112%02u%02u HOST=h PROG=p LVL=Usage NL.EVNT=E\n", s / 60, s % 60);
    }
    fclose(file);
    model *m = model_new(NULL, reading);
    model_set_options(m, (model_options){.no_index = true});
    assert_true(model_add_source(m, path, false));
    model_load(m);
    return m;
}

/* A store may have the address and the number of records of an earlier store that had a gap. */
static void test_gap_of_an_earlier_store(void **unused)
{
    (void)unused;
    program_reading reading = {0};
    checks_gap gap;
    model *with = read_gap(3000, &reading), *without = read_gap(0, &reading);
    assert_true(model_find_gap(with, &gap));
    store *first = (store *)model_store(with), *second = (store *)model_store(without), kept = *first;
    assert_int_equal(first->count, second->count);
    model_replace_store(with, second, drawing_copy(model_drawing(with)), COLORS_ANEW);
    *first = *second;
    *second = kept;
    model_replace_store(with, first, drawing_copy(model_drawing(with)), COLORS_ANEW);
    assert_false(model_find_gap(with, &gap));
    model_free(with);
    model_free(without);
}

/* The waterfall of a request has the corrected times, also of an event that precedes spans in another time zone. */
static void test_waterfall_in_another_time_zone(void **unused)
{
    (void)unused;
    program_reading reading = {0};
    const char *path = path_of("zones.log");
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 30; i++) {
        fprintf(file, "DATE=2026010104%02d05 HOST=h PROG=p LVL=Usage NL.EVNT=plan JOB.ID=j%d\n", i % 5, i);
        fprintf(file, "DATE=2026010104%02d10 HOST=h PROG=p LVL=Usage NL.EVNT=inv.start JOB.ID=j%d\n", i + 6, i);
        fprintf(file, "DATE=2026010112%02d20 HOST=h PROG=p LVL=Usage NL.EVNT=inv.end JOB.ID=j%d dur=4.5\n", i + 6, i);
    }
    fclose(file);
    model *m = model_new(NULL, &reading);
    model_set_options(m, (model_options){.no_index = true, .reads_requests = true});
    assert_true(model_add_source(m, path, false));
    model_load(m);
    assert_true(model_has_right_zones(m));
    const request_list *l = model_requests(m);
    assert_int_equal(l->count, 30);
    for (uint32_t i = 0; i < l->count; i++) {
        const request_summary *r = request_list_at(l, i);
        waterfall *w = waterfall_read(m, r->lifeline, store_find_place(model_store(m), r->step_ns, r->step_place));
        assert_null(w->reason);
        assert_int_equal(w->length_ns, r->duration_ns);
        assert_true(w->length_ns < INT64_C(3600) * 1000000000);
        waterfall_free(w);
    }
    model_free(m);
}

/* Draws a model in a window that is too low for all rows. Returns the pixels, which the caller frees. Sets
 * *bottom to the bottom of the visible rows. */
static uint32_t *draw_low(const model *m, bool names_slowest, int width, int height, double *bottom)
{
    uint32_t *pixels = g_new0(uint32_t, (size_t)width * (size_t)height);
    cairo_surface_t *surface =
        cairo_image_surface_create_for_data((unsigned char *)pixels, CAIRO_FORMAT_RGB24, width, height, 4 * width);
    cairo_t *cr = cairo_create(surface);
    scene_view view = scene_fit(m, width, height);
    view.overview = view.scrolls = true;
    view.names_slowest = names_slowest;
    scene_draw(m, &view, cr);
    const layout l = layout_make(m, &view, cr);
    assert_true(l.scroll_max > 0);
    *bottom = l.scroll_bottom;
    cairo_destroy(cr);
    cairo_surface_destroy(surface);
    return pixels;
}

/* The longest line and its text stay inside of the rows that are not scrolled out of the window. */
static void test_longest_line_in_a_low_window(void **unused)
{
    enum { EVENTS = 20, WIDTH = 1000, HEIGHT = 260 };
    (void)unused;
    program_reading reading = {0};
    double bottom;
    const char *path = path_of("low.log");
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 20; i++)
        for (int event = 0; event < EVENTS; event++)
            fprintf(file, "DATE=2026010112%02d%02d.%d HOST=h PROG=p LVL=Usage NL.EVNT=e%02d REQ.ID=r%d\n", i,
                    event == 0 ? 0 : 50, event, event, i);
    fclose(file);
    model *m = model_new(NULL, &reading);
    model_set_options(m, (model_options){.no_index = true});
    assert_true(model_add_source(m, path, false));
    model_load(m);
    uint32_t *with = draw_low(m, true, WIDTH, HEIGHT, &bottom), *without = draw_low(m, false, WIDTH, HEIGHT, &bottom);
    int last = 0;
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        last = with[i] != without[i] ? i / WIDTH : last;
    assert_true(last <= bottom);
    g_free(with);
    g_free(without);
    model_free(m);
}

/* The memory of many spans stays within the limit, also while nlv makes the next list of them. */
static void test_memory_of_threads(void **unused)
{
    enum { LIMIT = 16 << 20, RECORDS = 400000, THREADS = 200 };
    (void)unused;
    drawing *d = drawing_new();
    nl_record *r = nl_record_new();
    const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    thread_collector *c = thread_collector_new(d, NL_FRACTION_DECIMAL, LIMIT, false);
    for (int64_t i = 0; i < RECORDS; i++) {
        nl_record_clear(r);
        nl_record_set_time(r, after_noon((double)i));
        nl_record_set_host(r, "h", 1);
        nl_record_set_prog(r, "p", 1);
        const char *event = i / THREADS % 2 == 0 ? "Work.start" : "Work.end";
        nl_record_set_event(r, event, strlen(event));
        nl_record_add_int(r, "TID", i % THREADS);
        thread_collector_add(c, r, (uint64_t)i);
    }
    thread_list *shown = thread_collector_list(c, false), *next = thread_collector_list(c, true);
    const size_t after = mallinfo2().uordblks + mallinfo2().hblkhd;
    assert_true(next->is_cut);
    assert_int_equal(next->rows->len, THREADS);
    assert_true(after - before < LIMIT);
    thread_list_free(shown);
    thread_list_free(next);
    thread_collector_free(c);
    nl_record_free(r);
    drawing_free(d);
}

/* Spans of threads are nested in lanes. Pairs of events of different requests do not form spans. */
static void test_spans_of_threads(void **unused)
{
    static const char *const lines[] = {
        "10 HOST=b PROG=p NL.EVNT=Work TID=10 PID=1 DUR.MS=9",
        "8 HOST=b PROG=p NL.EVNT=Part TID=10 PID=1 DUR.MS=4",
        "11 HOST=b PROG=p NL.EVNT=Query.start TID=9 PID=1 REQ.ID=x",
        "12 HOST=b PROG=p NL.EVNT=Query.start TID=9 PID=1 REQ.ID=y",
        "13 HOST=b PROG=p NL.EVNT=Query.end TID=9 PID=1 REQ.ID=x",
        "15 HOST=b PROG=p NL.EVNT=Query.end TID=9 PID=1 REQ.ID=y",
        "16 HOST=b PROG=p NL.EVNT=Note TID=11 PID=1",
        "17 HOST=a PROG=q NL.EVNT=Alone PID=3 DUR.MS=1",
        "18 HOST=a PROG=q NL.EVNT=None DUR.MS=1",
        NULL,
    };
    (void)unused;
    program_reading reading = {0};
    model *m = read_threads(lines, &reading);
    const thread_list *l = model_threads(m);
    assert_true(l != NULL && l->is_complete && l->names_threads && !l->is_cut);
    assert_int_equal(l->rows->len, 3);
    static const char *const expected[][2] = {{"a", "3"}, {"b", "9"}, {"b", "10"}};
    for (guint i = 0; i < l->rows->len; i++) {
        const thread_row *r = g_ptr_array_index(l->rows, i);
        assert_string_equal(r->host, expected[i][0]);
        assert_string_equal(r->thread, expected[i][1]);
        assert_null(r->states);
        assert_int_equal(r->lane_count, i == 0 ? 1 : 2);
    }
    const thread_row *queries = g_ptr_array_index(l->rows, 1), *work = g_ptr_array_index(l->rows, 2);
    check_bar(queries->lanes[0], 0, 11, 13);
    check_bar(queries->lanes[1], 0, 12, 15);
    check_bar(work->lanes[0], 0, 1, 10);
    check_bar(work->lanes[1], 0, 4, 8);
    assert_string_equal(names_text(l->names, g_array_index(work->lanes[1], thread_bar, 0).name), "Part");
    assert_int_equal(thread_lane_find(work->lanes[0], after_noon(9.9), 0), 0);
    assert_int_equal(thread_lane_find(work->lanes[0], after_noon(10), 0), 1);
    test_every_search_in(work->lanes[0]);
    model_free(m);
    static const char *const without[] = {"1 HOST=b PROG=p NL.EVNT=Work DUR.MS=9", NULL};
    m = read_threads(without, &reading);
    assert_true(model_threads(m)->rows->len == 0 && !model_threads(m)->names_threads);
    model_free(m);
}

#define SWITCH "PROG=x NL.EVNT=sched.sched_switch PREV.COMM=x PREV.STATE="

/* States come from the kernel's events, which may be in any order, and belong to the thread with the same TID. After
 * lost events, and if the end of a state is missing, the state is unknown. */
static void test_states_of_threads(void **unused)
{
    static const char *const lines[] = {
        "3 HOST=h CPU=0 TID=7 PREV.PID=7 NEXT.PID=0 " SWITCH "1",
        "1 HOST=h CPU=0 TID=0 PREV.PID=0 NEXT.PID=7 " SWITCH "0",
        "2 HOST=h TID=7 PROG=x NL.EVNT=syscalls.sys_enter_recvfrom",
        "6 HOST=h TID=0 PROG=x NL.EVNT=sched.sched_wakeup EV.PID=7 COMM=app",
        "8 HOST=h CPU=1 TID=0 PREV.PID=0 NEXT.PID=7 " SWITCH "0",
        "9 HOST=h TID=7 PROG=x NL.EVNT=syscalls.sys_exit_recvfrom",
        "10 HOST=h CPU=1 TID=7 PREV.PID=7 NEXT.PID=8 " SWITCH "2",
        "12 HOST=h CPU=1 TID=8 PREV.PID=9 NEXT.PID=7 " SWITCH "0",
        "13 HOST=h PROG=nlkernel NL.EVNT=NetLogger.Lost COUNT=5",
        "14 HOST=h CPU=1 TID=7 PREV.PID=7 NEXT.PID=0 " SWITCH "0",
        "20 HOST=h PROG=app NL.EVNT=Serve TID=7 PID=5 DUR.MS=19",
        "19 HOST=h PROG=app NL.EVNT=http.GET.futex TID=7 PID=5 DUR.NS=500000 PARENT.ID=1 STATUS=200",
        "21 HOST=other PROG=app NL.EVNT=Serve TID=7 PID=5 DUR.MS=19",
        "22 HOST=h PROG=idle NL.EVNT=Quantum TID=30 FROM=20260101120000.021 DUR.NS=1000000 STATE=0",
        NULL,
    };
    static const struct {
        double begin_ms, end_ms;
        thread_state state;
    } expected[] = {{1, 3, THREAD_RUNNING},
                    {3, 6, THREAD_NETWORK},
                    {6, 8, THREAD_RUNNABLE},
                    {8, 10, THREAD_RUNNING},
                    {10, 12, THREAD_DISK}};
    (void)unused;
    program_reading reading = {0};
    model *m = read_threads(lines, &reading);
    const thread_list *l = model_threads(m);
    assert_int_equal(l->rows->len, 3); /* the states of threads 8 and 9 are unknown */
    const thread_row *app = g_ptr_array_index(l->rows, 0), *other = g_ptr_array_index(l->rows, l->rows->len - 1);
    assert_string_equal(app->program, "app");
    assert_int_equal(app->states->len, G_N_ELEMENTS(expected));
    for (guint i = 0; i < G_N_ELEMENTS(expected); i++) {
        check_bar(app->states, i, expected[i].begin_ms, expected[i].end_ms);
        assert_int_equal(g_array_index(app->states, thread_bar, i).name, expected[i].state);
    }
    assert_int_equal(app->waits->len, 1);
    check_bar(app->waits, 0, 18.5, 19);
    assert_int_equal(app->running_ns, 4000000);
    assert_string_equal(other->host, "other");
    assert_null(other->states); /* the same TID on another host */
    model_free(m);
}

/* A short wait interrupts a long wait. A thread that is parked sleeps. */
static void test_waits_that_overlap(void **unused)
{
    static const char *const lines[] = {
        "20 HOST=h PROG=app NL.EVNT=Serve TID=7 PID=5 DUR.MS=19",
        "12 HOST=h PROG=app NL.EVNT=DiskRequest TID=7 FROM=20260101120000.002 DUR.NS=10000000",
        "5 HOST=h PROG=app NL.EVNT=FutexWait TID=7 FROM=20260101120000.004 DUR.NS=1000000",
        "14 HOST=h PROG=app NL.EVNT=LockWait TID=7 FROM=20260101120000.011 DUR.NS=3000000",
        "16 HOST=h PROG=app NL.EVNT=Sleep TID=7 FROM=20260101120000.015 DUR.NS=1000000 STATE=64",
        NULL,
    };
    static const struct {
        double begin_ms, end_ms;
        thread_state state;
    } expected[] = {{2, 4, THREAD_DISK}, {4, 5, THREAD_FUTEX}, {5, 11, THREAD_DISK}, {11, 14, THREAD_LOCK}};
    (void)unused;
    program_reading reading = {0};
    model *m = read_threads(lines, &reading);
    const thread_row *app = g_ptr_array_index(model_threads(m)->rows, 0);
    assert_int_equal(app->waits->len, G_N_ELEMENTS(expected));
    for (guint i = 0; i < G_N_ELEMENTS(expected); i++) {
        check_bar(app->waits, i, expected[i].begin_ms, expected[i].end_ms);
        assert_int_equal(g_array_index(app->waits, thread_bar, i).name, expected[i].state);
    }
    assert_int_equal(thread_lane_find(app->waits, after_noon(6), 0), 2);
    assert_int_equal(g_array_index(app->states, thread_bar, 0).name, THREAD_WAITING);
    assert_int_equal(app->running_ns, 0);
    model_free(m);
}

/* ---- tracks ---- */

static void test_sets_of_tracks(void **unused)
{
    (void)unused;
    track_set s = {.count = 0}, copy;
    char text[TRACK_SET_TEXT_SIZE];
    const uint32_t a = track_key("thread", "a"), b = track_key("host", "a");
    assert_true(a != 0 && b != 0 && a != b);
    track_set_put(&s, a, true);
    track_set_put(&s, b, true);
    track_set_put(&s, a, true);
    track_set_write(&s, text);
    track_set_read(&copy, text);
    assert_true(copy.count == 2 && track_set_has(&copy, a) && track_set_has(&copy, b));
    track_set_put(&copy, a, false);
    assert_true(copy.count == 1 && !track_set_has(&copy, a));
    for (uint32_t key = 1; key <= TRACK_SET_MAX + 1; key++)
        track_set_put(&s, key, true);
    assert_true(s.count == TRACK_SET_MAX && !track_set_has(&s, a) && !track_set_has(&s, 1) && track_set_has(&s, 2));
    track_set_read(&copy, "..x.ffffffffff.12.-");
    assert_true(copy.count == 1 && track_set_has(&copy, 0x12));
}

/* Tracks that are too low to read scroll. A pinned track is above them, and a collapsed track has only a line. */
static void test_tracks_scroll_collapse_and_pin(void **unused)
{
    (void)unused;
    program_reading reading = {0};
    FILE *file = fopen(path_of("tracks.log"), "w");
    for (unsigned i = 0; i < 400; i++)
        fprintf(file, "DATE=20260101120000.%06u HOST=h PROG=p LVL=Usage NL.EVNT=Kind%u LOAD=%u\n", i * 1000, i % 40,
                i % 7);
    fclose(file);
    model *m = read_model(NULL, path_of("tracks.log"), &reading, (model_options){.no_index = true});
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, 900, 400);
    cairo_t *cr = cairo_create(surface);
    scene_view view = scene_fit(m, 900, 400);
    layout l = layout_make(m, &view, cr);
    assert_true(l.scroll_max == 0); /* pictures do not scroll */
    view.scrolls = true;
    l = layout_make(m, &view, cr);
    assert_true(l.scroll_max > 0 && scene_scroll_page(m, &view, cr) > 50);
    scene_scroll(m, &view, cr, 1e9);
    assert_true(view.scroll == l.scroll_max);
    const layout end = layout_make(m, &view, cr);
    assert_true(fabs(end.panes[end.pane_count - 1].bottom - end.scroll_bottom) < 1);
    const uint32_t first = scene_step_track(m, &view, cr, 0, 1), last = l.panes[l.pane_count - 1].track;
    scene_show_track(m, &view, cr, first);
    assert_true(view.scroll == 0);
    assert_true(scene_pin_track(m, &view, cr, last));
    const layout pinned = layout_make(m, &view, cr);
    assert_true(pinned.panes[0].track == last && pinned.panes[0].is_pinned && pinned.panes[0].top == pinned.top);
    assert_true(pinned.scroll_top >= pinned.panes[0].bottom);
    assert_true(scene_pin_track(m, &view, cr, last));
    for (unsigned i = 0; i < l.pane_count; i++)
        scene_toggle_track(m, &view, cr, l.panes[i].track);
    const layout collapsed = layout_make(m, &view, cr);
    assert_true(collapsed.scroll_max == 0);
    for (unsigned i = 0; i < l.pane_count; i++)
        assert_true(collapsed.panes[i].is_collapsed &&
                    collapsed.panes[i].bottom - collapsed.panes[i].top <= LAYOUT_LINE);
    scene_draw(m, &view, cr);
    assert_true(scene_find_track(m, &view, cr, collapsed.left + 5, collapsed.panes[0].top + 3) == first);
    assert_true(scene_expand_next(m, &view, cr) && !layout_make(m, &view, cr).panes[0].is_collapsed);
    cairo_destroy(cr);
    cairo_surface_destroy(surface);
    model_free(m);
}

/* With 200 threads, the rows scroll, and a host collapses. A click on a span finds its record. */
static void test_rows_of_threads(void **unused)
{
    enum { THREADS = 200 };
    (void)unused;
    program_reading reading = {0};
    FILE *file = fopen(path_of("threads.log"), "w");
    for (unsigned i = 0; i < THREADS; i++)
        fprintf(file, "DATE=20260101120000.%06u HOST=h%u PROG=p LVL=Usage NL.EVNT=Work TID=%u DUR.MS=100\n", 500000 + i,
                i / 100, i);
    fclose(file);
    model *m = model_new(NULL, &reading);
    model_want_threads(m);
    assert_true(model_add_source(m, path_of("threads.log"), false));
    model_load(m);
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, 900, 500);
    cairo_t *cr = cairo_create(surface);
    scene_view view = scene_fit(m, 900, 500);
    view.from_ns = after_noon(300);
    view.scrolls = view.shows_threads = true;
    layout l = layout_make(m, &view, cr);
    assert_int_equal(l.pane_count, 1);
    assert_true(l.scroll_max > THREADS * 10);
    GArray *slots = threads_layer_slots(m, &view, false);
    assert_int_equal(slots->len, THREADS + 2); /* 2 hosts */
    const thread_slot host = g_array_index(slots, thread_slot, 0), slot = g_array_index(slots, thread_slot, 3);
    g_array_free(slots, TRUE);
    const double x = layout_x(&l, &view, after_noon(450)), y = l.panes[0].top + slot.top + slot.height / 3;
    scene_found found;
    assert_true(scene_find(m, &view, cr, x, y, &found) && found.record == 2);
    char *text = scene_describe_thread(m, &view, cr, x, y);
    assert_string_equal(text, "Work, 100 ms\nh0 p 2");
    g_free(text);
    const uint32_t pinned = threads_layer_track(m, &slot);
    scene_toggle_track(m, &view, cr, threads_layer_track(m, &host));
    slots = threads_layer_slots(m, &view, false);
    assert_int_equal(slots->len, THREADS / 2 + 2);
    g_array_free(slots, TRUE);
    scene_toggle_track(m, &view, cr, threads_layer_track(m, &host));
    assert_false(scene_pin_track(m, &view, cr, threads_layer_track(m, &host)));
    assert_true(scene_pin_track(m, &view, cr, pinned));
    l = layout_make(m, &view, cr);
    assert_true(l.pane_count == 2 && l.panes[0].is_pinned && l.scroll_top > l.panes[0].top + 10);
    scene_draw(m, &view, cr);
    cairo_destroy(cr);
    cairo_surface_destroy(surface);
    model_free(m);
}

/* If a range has so many requests that the module examines only some of them, it states this. */
static void test_longest_line_of_a_sample(void **unused)
{
    (void)unused;
    program_reading reading = {0};
    model *m = read_requests(100, &reading);
    assert_false(slow_find_longest(m, INT64_MIN, INT64_MAX).is_sampled);
    model_free(m);
    m = read_requests(8000, &reading);
    assert_true(slow_find_longest(m, INT64_MIN, INT64_MAX).is_sampled);
    model_free(m);
}

/* Statistics contain the durations of whole requests, the sum of each segment, and the record of each maximum. */
static void test_statistics_of_requests(void **unused)
{
    enum { COUNT = 100 };
    (void)unused;
    program_reading reading = {0};
    model_free(read_requests(COUNT, &reading)); /* writes the log */
    model *m =
        read_model(NULL, path_of("requests.log"), &reading, (model_options){.no_index = true, .reads_requests = true});
    const store *s = model_store(m);
    statistics *of = statistics_new(m, INT64_MIN, INT64_MAX);
    assert_int_equal(of->requests.count, COUNT);
    assert_false(of->requests.is_partial);
    double longest_ns = 0;
    for (uint32_t i = 0; i < COUNT; i++)
        longest_ns = MAX(longest_ns, (double)request_list_at(model_requests(m), i)->duration_ns);
    assert_true(fabs(of->requests.max_ns - longest_ns) < longest_ns * 1e-6);
    assert_int_equal(request_list_at(model_requests(m), of->requests.max_index)->duration_ns, (int64_t)longest_ns);
    for (guint i = 0; i < of->segments->len; i++) {
        const segment_statistics *one = &g_array_index(of->segments, segment_statistics, i);
        const spec_lifeline *l = &s->spec->lifelines[one->lifeline];
        const uint32_t before = store_previous(s, one->max_record, l->layer);
        assert_true(one->sum_ns >= one->max_ns && one->sum_ns <= one->max_ns * (double)one->count);
        if (!one->is_span && before != STORE_NONE)
            assert_true(fabs((double)(store_time(s, one->max_record) - store_time(s, before)) - one->max_ns) < 1000);
    }
    for (guint i = 0; i < of->loadlines->len; i++) {
        const loadline_statistics *one = &g_array_index(of->loadlines, loadline_statistics, i);
        assert_string_equal(names_text(s->names.events, store_event(s, one->max_record)), "Load");
    }
    assert_true(of->loadlines->len > 0);
    statistics_free(of);
    of = statistics_new(m, store_time(s, 0), store_time(s, 0));
    assert_int_equal(of->requests.count, 0);
    statistics_free(of);
    model_free(m);
}

/*
 * If a gap covers nearly the whole log, the first view shows the side that records cover evenly, although the other
 * side has more records.
 */
static void test_first_view_beside_a_gap(void **unused)
{
    (void)unused;
    enum { SPREAD = 100, TOGETHER = 300 };
    for (int is_end_spread = 0; is_end_spread < 2; is_end_spread++) {
        const int64_t day_us = INT64_C(86400000000), early_us = INT64_C(1767225600000000), late_us = early_us + day_us;
        const int64_t spread_us = is_end_spread ? late_us : early_us, together_us = is_end_spread ? early_us : late_us;
        const char *path = path_of("gap.log");
        program_reading reading = {0};
        FILE *file = fopen(path, "w");
        for (int side = 0; side < 2; side++) {
            const bool is_spread = side == is_end_spread;
            for (int i = 0; i < (is_spread ? SPREAD : TOGETHER); i++) {
                char date[NL_TIME_TEXT_SIZE];
                nl_time_format_ulm(
                    (is_spread ? spread_us + i * INT64_C(1000000) : together_us + i / 150 * INT64_C(10000000)) * 1000,
                    date);
                fprintf(file, "DATE=%s HOST=h PROG=p LVL=Usage NL.EVNT=%s\n", date, is_spread ? "Work" : "Plan");
            }
        }
        fclose(file);
        model *m = read_model(NULL, path, &reading, (model_options){.no_index = true});
        scene_view first = scene_first(m, 1000, 600);
        assert_true(first.from_ns <= spread_us * 1000 && first.from_ns > (spread_us - 60000000) * 1000);
        assert_true(first.to_ns >= (spread_us + (SPREAD - 1) * 1000000) * 1000 &&
                    first.to_ns < (spread_us + 160 * INT64_C(1000000)) * 1000);
        model_free(m);
    }
}

/* If the IDs repeat, the requests are different. This also holds with an index, which keeps the learned order. */
static void test_repeated_ids(void **unused)
{
    (void)unused;
    enum { COUNT = 200, IDS = 50 };
    const char *path = path_of("repeated.log");
    program_reading reading = {0};
    write_pages(path, COUNT, IDS, 0);
    for (int indexed = 0; indexed < 2; indexed++) {
        model *m = read_model(NULL, path, &reading, (model_options){.index_size = 1});
        const store *s = model_store(m);
        assert_int_equal(s->objects[0].count, COUNT);
        for (uint32_t record = 0; record < s->count; record++) {
            char *causes = causes_of(s, record);
            assert_string_equal(causes, expected_causes(names_text(s->names.events, store_event(s, record))));
            g_free(causes);
        }
        model_free(m);
    }
}

/* nlv reads a log after a newer log with the same IDs. */
static void test_logs_with_equal_ids(void **unused)
{
    (void)unused;
    enum { IDS = 50 };
    char *first = g_strdup(path_of("first.log")), *second = g_strdup(path_of("second.log"));
    program_reading reading = {0};
    write_pages(first, 2 * IDS, IDS, IDS);
    write_pages(second, IDS, IDS, 0);
    model *m = model_new(NULL, &reading);
    model_set_options(m, (model_options){.no_index = true});
    assert_true(model_add_source(m, first, false) && model_add_source(m, second, false));
    model_load(m);
    const store *s = model_store(m);
    for (uint32_t record = 0; record < s->count; record++) {
        uint32_t causes[EDGES_MAX];
        size_t count = edges_find(s, record, 0, causes);
        for (size_t i = 0; i < count; i++)
            assert_true(store_time(s, record) - store_time(s, causes[i]) < 5 * 1000 * 1000);
    }
    assert_int_equal(s->objects[0].count, 3 * IDS);
    model_free(m);
    g_free(first);
    g_free(second);
}

/* Two logs of the same time have equal IDs. The waterfall of a record has only the records of one log. */
static void test_waterfalls_of_logs_with_equal_ids(void **unused)
{
    (void)unused;
    enum { COUNT = 60 };
    char *first = g_strdup(path_of("one.log")), *second = g_strdup(path_of("other.log"));
    program_reading reading = {0};
    write_versions(first, "h", "r", COUNT, 0);
    write_versions(second, "g", "r", COUNT, 300);
    model *m = model_new(NULL, &reading);
    model_set_options(m, (model_options){.no_index = true});
    assert_true(model_add_source(m, first, false) && model_add_source(m, second, false));
    model_load(m);
    const store *s = model_store(m);
    for (uint32_t record = 0; record < s->count; record++) {
        waterfall *w = waterfall_read(m, 0, record);
        assert_int_equal(w->records->len, REQUEST_RECORDS);
        assert_int_equal(w->rows->len, 2);
        assert_in_range(w->length_ns, 3000000, 3500000);
        waterfall_free(w);
    }
    model_free(m);
    g_free(first);
    g_free(second);
}

/* An effect before its cause is impossible only if their edge is certain and the clocks are known. */
static void test_violations(void **unused)
{
    (void)unused;
    static const char *const form =
        "DATE=20260101000000.%06d HOST=%s PROG=%s LVL=Usage NL.EVNT=%s TRACE.ID=%d SPAN.ID=%d%c %s\n";
    const char *path = path_of("violations.log");
    program_reading reading = {0};
    for (int round = 0; round < 4; round++) {
        bool is_explicit = round % 2 == 1, has_clocks = round >= 2;
        FILE *file = fopen(path, "w");
        for (int i = 0; has_clocks && i < 2; i++)
            fprintf(file,
                    "DATE=20260101000000 HOST=%c NL.EVNT=ClockOffset CLOCK.COLLECTOR=c CLOCK.OFFSET=0 CLOCK.ERROR=5\n",
                    "ab"[i]);
        for (int i = 0; i < 20; i++) { /* the child of the last request begins and ends before its parent */
            int at = i * 1000, child = i == 19 ? at - 400 : at + 100;
            char parent[32];
            g_snprintf(parent, sizeof parent, is_explicit ? "PARENT.ID=%da" : "NOTE=%d", i);
            fprintf(file, form, at, "a", "p", "Call.start", i, i, 'a', "");
            fprintf(file, form, child, "b", "q", "Work.start", i, i, 'b', parent);
            fprintf(file, form, child + 100, "b", "q", "Work.end", i, i, 'b', parent);
            fprintf(file, form, at + 500, "a", "p", "Call.end", i, i, 'a', "");
        }
        fclose(file);
        model *m = read_model(NULL, path, &reading, (model_options){.no_index = true});
        const lifeline_lists *l = &model_store(m)->lifelines[0];
        size_t count = 0;
        for (size_t i = 0; l->violations != NULL && i < (size_t)l->rows * l->rows; i++)
            count += list_count(l->violations[i]);
        assert_int_equal(count, is_explicit && has_clocks);
        count = 0;
        for (uint32_t object = 0; object < model_store(m)->objects[0].count; object++) {
            const request_drawn *drawn = request_lines_find(m, 0, object);
            for (guint i = 0; i < drawn->lines->len; i++)
                count += g_array_index(drawn->lines, request_line, i).is_impossible;
        }
        assert_int_equal(count, is_explicit && has_clocks);
        model_free(m);
    }
}

/* Requests of two hosts. The clock of host b is 300 us slow or, in traces, 400 us fast. */
static void write_skewed(const char *path, bool is_trace)
{
    static const struct {
        const char *event, *host, *program, *ids;
        int after_us;
    } rows[] = {{"Serve.start", "a", "web", "SPAN.ID=1", 0},
                {"Call.start", "a", "web", "SPAN.ID=2 PARENT.ID=1", 1000},
                {"Work.start", "b", "dbd", "SPAN.ID=3 PARENT.ID=2", 100},
                {"Work.end", "b", "dbd", "SPAN.ID=3 PARENT.ID=2", 5000},
                {"Call.end", "a", "web", "SPAN.ID=2 PARENT.ID=1", 100},
                {"Serve.end", "a", "web", "SPAN.ID=1", 900}};
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 60; i++) {
        int at_us = i * 100000;
        for (size_t k = 0; k < G_N_ELEMENTS(rows); k++) {
            at_us += rows[k].after_us + (k == 3 ? i * 977 % 61 * 1000 : k > 0 ? i * 31 % 17 : 0);
            const int skew_us = *rows[k].host != 'b' ? 0 : is_trace ? 400 : -300;
            fprintf(file, "DATE=202601010000%02d.%06d HOST=%s PROG=%s LVL=Usage NL.EVNT=%s ", at_us / 1000000,
                    (at_us + skew_us) % 1000000, rows[k].host, rows[k].program, rows[k].event);
            fprintf(file, is_trace ? "TRACE.ID=%d " : "ID=%d", i + 100);
            fputs(is_trace ? rows[k].ids : "", file);
            fputc('\n', file);
        }
    }
    fclose(file);
}

/* nlv corrects clocks, and knows which spans wait for children, as nlstat does. */
static void test_graphs_with_different_clocks(void **unused)
{
    (void)unused;
    const char *path = path_of("skewed.log");
    program_reading reading = {0};
    for (int is_trace = 0; is_trace < 2; is_trace++) {
        write_skewed(path, is_trace);
        model *m = read_model(NULL, path, &reading, (model_options){.no_index = true});
        compare_with_assembler(m);
        for (uint32_t object = 0; object < model_store(m)->objects[0].count; object++)
            assert_string_equal(request_lines_find(m, 0, object)->slowest, "Work");
        model_free(m);
    }
}

static void write_machines(const char *path, const char *of_b)
{
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 2; i++)
        fprintf(file,
                "DATE=20260101000000 HOST=%c NL.EVNT=ClockKernel CLOCK.SYNCHRONIZED=false CLOCK.MACHINE=%s "
                "CLOCK.ERROR=16000000\n"
                "DATE=20260101000001 HOST=%c NL.EVNT=ClockOffset CLOCK.COLLECTOR=c CLOCK.OFFSET=100 CLOCK.ERROR=5000\n",
                "ab"[i], i == 0 ? "00000000000000aa" : of_b, "ab"[i]);
    fclose(file);
}

static void test_hosts_that_share_a_clock(void **unused)
{
    (void)unused;
    const char *path = path_of("machines.log");
    program_reading reading = {0};
    for (int shared = 0; shared < 2; shared++) {
        write_machines(path, shared ? "00000000000000aa" : "00000000000000bb");
        model *m = read_model(make_drawing(), path, &reading, (model_options){.no_index = true});
        const store *s = model_store(m);
        uint16_t a = names_find(s->names.hosts, "a"), b = names_find(s->names.hosts, "b");
        assert_false(store_clock_said(s, a, 3).is_known); /* not 16 s */
        assert_int_equal(store_clock_at(s, a, 3).is_known, !shared);
        assert_true(store_clock_bound_ns(s, a, b, 3) == (shared ? 0 : 10e6));
        model_free(m);
    }
}

/* The measured clock of b is 3 s fast: in the log, its requests arrive 3 s after they were sent. */
static void write_wrong_clocks(const char *path)
{
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 20; i++) {
        fprintf(file, "DATE=202601010000%02d.1 HOST=a NL.EVNT=Asked REQ.ID=%d\n", i, i);
        if (i % 10 == 0)
            fprintf(file,
                    "DATE=202601010000%02d.2 HOST=b NL.EVNT=ClockOffset CLOCK.COLLECTOR=a CLOCK.OFFSET=-3000000 "
                    "CLOCK.ERROR=50\n",
                    i + 3);
        fprintf(file, "DATE=202601010000%02d.3 HOST=b NL.EVNT=Taken REQ.ID=%d\n", i + 3, i);
    }
    fclose(file);
}

static void test_clocks_corrected(void **unused)
{
    (void)unused;
    const char *path = path_of("wrong.log");
    write_wrong_clocks(path);
    program_reading reading = {0};
    model *m = read_model(make_drawing(), path, &reading, (model_options){.no_index = true}),
          *logged = read_model(make_drawing(), path, &reading, (model_options){.no_index = true});
    const store *s = model_store(m);
    uint16_t b = names_find(s->names.hosts, "b");
    store_clock off = store_clock_at(s, b, 5);
    assert_true(off.is_measured && off.low_ns <= -3e9 && off.high_ns > -3.0001e9 && off.high_ns < -2.9999e9);
    for (int filtered = 0; filtered < 3; filtered++) { /* 0 and 2: without a filter; 1: with a filter */
        assert_true(model_set_filter(m, filtered == 1 ? "REQ.ID == 7 || NL.EVNT == ClockOffset" : NULL));
        model_correct_clocks(m, true);
        model_load(m);
        s = model_store(m);
        assert_int_equal(model_count(m), filtered == 1 ? 4 : 42);
        b = names_find(s->names.hosts, "b");
        for (uint32_t record = 1; record < s->count; record++)
            if (strcmp(names_text(s->names.events, store_event(s, record)), "Taken") ==
                0) /* the previous step is the request's Asked */
                assert_int_equal((store_time(s, record) - store_time(s, store_previous(s, record, 0)) + 50000) / 100000,
                                 2000);
        store_clock now = store_clock_at(s, b, s->count - 1);
        assert_true(now.is_measured && now.low_ns < 0 && now.high_ns > 0 && now.high_ns - now.low_ns < 200e3);
    }
    char *text = model_describe(m, s->count - 1, "");
    assert_non_null(strstr(text, "DATE.ORIGINAL=20260101000022.3"));
    g_free(text);
    bool is_told = false; /* other notices are about the records */
    for (char *told; !is_told && (told = model_take_notice(m)) != NULL; g_free(told))
        is_told = strstr(told, "to the clock of a by these offsets: b \342\210\2223 s") != NULL;
    assert_true(is_told);
    model_correct_clocks(m, false);
    model_load(m);
    compare_stores(model_store(logged), model_store(m));
    model_free(m);
    model_free(logged);
}

static void test_sessions(void **unused)
{
    (void)unused;
    session *s = session_new();
    s->all = false;
    s->from_ns = -5;
    s->to_ns = INT64_MAX;
    s->filter = g_strdup("A == \"b;\\n\" && C > 1");
    g_strfreev(s->hidden[1]);
    s->hidden[1] = g_strsplit("h1,h;2,\303\244", ",", -1);
    s->drawing = g_strdup("[view]\ntitle=x=y\n");
    s->clock = 2;
    s->threads = true;
    track_set_put(&s->pinned, 7, true);
    session_mark_add(s, 20, "second\nline");
    session_mark_add(s, 10, "");
    assert_int_equal(session_mark_add(s, 20, "third"), 2);
    session *copy = session_copy(s);
    char *one = session_text(s), *other = session_text(copy);
    assert_string_equal(one, other);
    assert_string_equal(copy->filter, s->filter);
    assert_true(copy->clock == 2 && copy->threads && track_set_has(&copy->pinned, 7) && copy->collapsed.count == 0);
    assert_string_equal(copy->drawing, s->drawing);
    assert_string_equal(copy->hidden[1][1], "h;2");
    assert_string_equal(g_array_index(copy->marks, session_mark, 1).note, "second\nline");
    assert_int_equal(session_mark_next(copy, 10, false)->time_ns, 20);
    assert_int_equal(session_mark_next(copy, 20, true)->time_ns, 10);
    assert_null(session_mark_next(copy, 20, false));
    session_mark_note(copy, 1, "another");
    assert_string_equal(session_difference(s, copy), "a note");
    session *other_tracks = session_copy(s);
    track_set_put(&other_tracks->collapsed, 9, true);
    assert_string_equal(session_difference(s, other_tracks), "the tracks");
    other_tracks->clock = 1;
    assert_string_equal(session_difference(s, other_tracks), "the time format");
    session_free(other_tracks);
    assert_true(session_write(s, path_of("sessions/one")));
    session *again = session_read(path_of("sessions/one"));
    char *third = session_text(again);
    assert_string_equal(one, third);
    assert_null(session_read(path_of("none")));
    assert_null(session_parse("\377 no [file"));
    session_free(session_parse("[mark 1]\ntime=x\n[view]\nfrom=9\nto=1\n"));
    session_free(again);
    session_free(copy);
    session_free(s);
    g_free(one);
    g_free(other);
    g_free(third);
}

static void test_what_there_is_to_be_drawn(void **unused)
{
    (void)unused;
    const char *path = path_of("catalog.log");
    line *lines = make_lines(5000, 0);
    write_lines(path, lines, 5000, "w");
    program_reading reading = {0};
    model *m = read_model(NULL, path, &reading, (model_options){.no_index = true});
    catalog *c = catalog_new(m);
    assert_int_equal(c->events->len, 6);
    char **none = catalog_fields(c, "None", false), **oops = catalog_fields(c, "Oops", false);
    assert_int_equal(g_strv_length(none), 0);
    assert_int_equal(g_strv_length(oops), 2);
    g_strfreev(none);
    g_strfreev(oops);
    char **numbers = catalog_fields(c, NULL, true), **all = catalog_fields(c, "Load", false);
    assert_int_equal(g_strv_length(numbers), 1);
    assert_string_equal(numbers[0], "LOAD");
    assert_int_equal(g_strv_length(all), 2);
    g_strfreev(numbers);
    g_strfreev(all);
    catalog_free(c);
    model_free(m);
    g_free(lines);
}

/* Returns the text of a file, valid until the next call; "" if the file does not exist. */
static const char *contents_of(const char *name)
{
    static char text[64];
    char *all = NULL;
    snprintf(text, sizeof text, "%s", g_file_get_contents(path_of(name), &all, NULL, NULL) ? all : "");
    g_free(all);
    return text;
}

/* Returns the number of files whose names begin so. */
static int called(const char *start)
{
    int count = 0;
    GDir *all = g_dir_open(folder, 0, NULL);
    assert_non_null(all);
    for (const char *name; (name = g_dir_read_name(all)) != NULL;)
        count += g_str_has_prefix(name, start);
    g_dir_close(all);
    return count;
}

static void test_export(void **unused)
{
    (void)unused;
    const char *path = path_of("export.log");
    line *lines = make_lines(3000, 0);
    write_lines(path, lines, 3000, "w");
    program_reading reading = {0};
    model *m = read_model(make_drawing(), path, &reading, (model_options){.no_index = true});
    assert_true(g_file_set_contents(path_of("out.part"), "somebody's own", -1, NULL));
    for (size_t i = 0; export_format(i) != NULL; i++) {
        uint64_t written;
        GArray *some = export_places_of_range(m, lines[100].time_ns, lines[1099].time_ns);
        assert_int_equal(some->len, 1000);
        bool good = export_records(m, some, export_format(i), path_of("out"), &written);
        assert_true(good);
        assert_int_equal(written, 1000);
        assert_false(export_records(m, some, export_format(i), path_of("no/out"), &written));
        assert_true(*nl_error_message() != '\0');
        g_array_free(some, TRUE);
    }
    assert_string_equal(contents_of("out.part"), "somebody's own");
    assert_int_equal(called("out."), 1);
    uint32_t first = 0;
    while (store_object(model_store(m), first, 0) == STORE_NONE)
        first++;
    GArray *object = export_places_of_object(m, 0, store_object(model_store(m), first, 0));
    assert_true(object->len >= 1);
    char *text;
    uint64_t written;
    /* A file's permissions stay, and a symbolic link stays a link. */
    struct stat status;
    assert_int_equal(chmod(path_of("out"), 0600), 0);
    char *link = g_strdup(path_of("link"));
    assert_int_equal(symlink("out", link), 0);
    assert_true(export_records(m, object, "ulm", link, &written));
    assert_true(lstat(link, &status) == 0 && S_ISLNK(status.st_mode));
    assert_int_equal(unlink(link), 0);
    assert_int_equal(mkfifo(link, 0600), 0); /* no reader */
    assert_false(export_records(m, object, "ulm", link, &written));
    assert_non_null(strstr(nl_error_message(), "not a regular file"));
    g_free(link);
    assert_int_equal(stat(path_of("out"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_true(g_file_get_contents(path_of("out"), &text, NULL, NULL));
    char name[32];
    snprintf(name, sizeof name, "REQ.ID=r%u", lines[first].object);
    assert_non_null(strstr(text, name));
    assert_false(export_records(m, object, "none", path_of("out"), &written));
    g_free(text);
    g_array_free(object, TRUE);
    model_free(m);
    g_free(lines);
}

static int make_folder(void **unused)
{
    (void)unused;
    setenv("XDG_CACHE_HOME", folder, 1);
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **unused)
{
    (void)unused;
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

/* In a short time of a log with many requests, slow_find_longest leaves no request out. */
static void test_slowest_of_many(void **unused)
{
    (void)unused;
    program_reading reading = {0};
    model *m = read_requests(5000, &reading);
    const store *s = model_store(m);
    unsigned looked = 0;
    for (uint32_t i = 0; i + 1 < s->count; i += 50) {
        if (strcmp(names_text(s->names.events, store_event(s, i)), "Parsed") != 0)
            continue;
        const slow_line line = slow_find_longest(m, store_time(s, i), store_time(s, i + 1));
        assert_true(line.is_found && line.from == i && line.to == i + 1);
        looked++;
    }
    assert_true(looked > 50);
    model_free(m);
}

/* Many short lines of one kind take more time than the longest line, which is of another kind. */
static void test_longest_line(void **unused)
{
    (void)unused;
    const char *path = path_of("pieces.log");
    FILE *file = fopen(path, "w");
    int64_t time_us = INT64_C(1767225600000000);
    for (unsigned i = 0; i < 40; i++)
        for (unsigned step = 0; step < 32; step++) {
            char date[NL_TIME_TEXT_SIZE];
            nl_time_format_ulm(time_us * 1000, date);
            fprintf(file, "DATE=%s HOST=h PROG=p LVL=Usage NL.EVNT=%s REQ.ID=%u\n", date,
                    step == 0    ? "Asked"
                    : step == 31 ? "Complete"
                                 : "Piece",
                    i);
            time_us += step == 0 ? 10000 + i : 1000;
        }
    fclose(file);
    program_reading reading = {0};
    model *m = read_model(NULL, path, &reading, (model_options){.no_index = true});
    const store *s = model_store(m);
    slow_line slow = slow_find(m, INT64_MIN, INT64_MAX);
    assert_true(slow.is_found && slow.requests == 40);
    assert_string_equal(names_text(s->names.events, store_event(s, slow.from)), "Piece");
    slow = slow_find_longest(m, INT64_MIN, INT64_MAX);
    assert_true(slow.is_found && slow.requests == 40 && store_time(s, slow.to) - store_time(s, slow.from) == 10039000);
    assert_string_equal(names_text(s->names.events, store_event(s, slow.from)), "Asked");
    model_free(m);
}

/*
 * The longest line of two tiers' access logs is the span of the server, not the 2 ms from its end to the end of the
 * proxy's span, which contains it.
 */
static void test_longest_span(void **unused)
{
    (void)unused;
    const char *path = path_of("tiers.log");
    FILE *file = fopen(path, "w");
    for (unsigned i = 0; i < 80; i++) {
        const bool is_proxy = i % 2 == 1;
        const unsigned took_ms = i / 2 == 20 ? 70 : 10;
        char date[NL_TIME_TEXT_SIZE];
        nl_time_format_ulm((INT64_C(1767225600000) + i / 2 * 100 + took_ms + (is_proxy ? 4 : 2)) * 1000000, date);
        fprintf(file, "DATE=%s HOST=%s PROG=%s LVL=Usage request_id=%u duration=0.0%u\n", date, is_proxy ? "a" : "b",
                is_proxy ? "proxy" : "server", i / 2, took_ms + (is_proxy ? 4 : 0));
    }
    fclose(file);
    program_reading reading = {0};
    model *m = read_model(NULL, path, &reading, (model_options){.no_index = true});
    const store *s = model_store(m);
    const slow_line slow = slow_find_longest(m, INT64_MIN, INT64_MAX);
    assert_true(slow.is_found && slow.from == slow.to && slow.requests == 40);
    assert_string_equal(names_text(s->names.events, store_event(s, slow.to)), "request of server");
    assert_int_equal(store_duration(s, slow.to), 70000000);
    const slow_line kind = slow_find(m, INT64_MIN, INT64_MAX);
    assert_true(kind.is_found && kind.from == slow.from && kind.to == slow.to);
    assert_int_equal(kind.end_ns - kind.begin_ns, 74000000); /* the span of the proxy */
    model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_stores),
        cmocka_unit_test(test_what_is_late),
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_odd_logs),
        cmocka_unit_test(test_index_of_a_log_that_changes),
        cmocka_unit_test(test_blocks),

        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_comparisons),
        cmocka_unit_test(test_comparison_without_difference),
        cmocka_unit_test(test_comparison_of_filtered_requests),
        cmocka_unit_test(test_requests_that_are_left_out),
        cmocka_unit_test(test_filters_of_requests),
        cmocka_unit_test(test_filter_of_requests_in_a_growing_log),
        cmocka_unit_test(test_what_begins_anew),
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_lines_of_requests),
        cmocka_unit_test(test_lines_of_retries),
        cmocka_unit_test(test_lines_of_a_growing_log),
        cmocka_unit_test(test_hosts_of_lines),
        cmocka_unit_test(test_waterfall),
        cmocka_unit_test(test_waterfall_of_points),
        cmocka_unit_test(test_durations_are_readable),
        cmocka_unit_test(test_parallel_calls),
        cmocka_unit_test(test_first_view),
        cmocka_unit_test(test_slowest_of_many),
        cmocka_unit_test(test_longest_line),
        cmocka_unit_test(test_longest_span),
        cmocka_unit_test(test_first_view_beside_a_gap),
        cmocka_unit_test(test_repeated_ids),
        cmocka_unit_test(test_logs_with_equal_ids),
        cmocka_unit_test(test_waterfalls_of_logs_with_equal_ids),
        cmocka_unit_test(test_violations),
        cmocka_unit_test(test_graphs_with_different_clocks),
        cmocka_unit_test(test_clock_errors),
        cmocka_unit_test(test_hosts_that_share_a_clock),
        cmocka_unit_test(test_clocks_corrected),
        cmocka_unit_test(test_sessions),
        cmocka_unit_test(test_what_there_is_to_be_drawn),
        cmocka_unit_test(test_export),
        cmocka_unit_test(test_memory_is_limited),
        cmocka_unit_test(test_late_records_fit),
        cmocka_unit_test(test_feed),
        cmocka_unit_test(test_feed_without_space),
        cmocka_unit_test(test_feed_without_temporary_file),
        cmocka_unit_test(test_names_are_limited),
        cmocka_unit_test(test_gap_of_an_earlier_store),
        cmocka_unit_test(test_waterfall_in_another_time_zone),
        cmocka_unit_test(test_longest_line_in_a_low_window),
        cmocka_unit_test(test_memory_of_threads),
        cmocka_unit_test(test_spans_of_threads),
        cmocka_unit_test(test_states_of_threads),
        cmocka_unit_test(test_waits_that_overlap),
        cmocka_unit_test(test_sets_of_tracks),
        cmocka_unit_test(test_tracks_scroll_collapse_and_pin),
        cmocka_unit_test(test_rows_of_threads),
        cmocka_unit_test(test_statistics_of_requests),
        cmocka_unit_test(test_longest_line_of_a_sample),
        cmocka_unit_test(test_short_lists_are_small),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
