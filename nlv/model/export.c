#include "config.h"

#include "model/export.h"

#include "base/error.h"
#include "base/replacement.h"
#include "base/write_some.h"
#include "convert/convert.h"
#include "model/request_lines.h"

#include <glib.h>
#include <unistd.h>

enum { AT_ONCE = 256, /* number of records to write before unlocking the model */ DRAIN_SIZE = 1 << 20 };

const char *export_format(size_t i)
{
    const exporter_kind *kind = exporter_kind_at(i);
    return kind != NULL ? kind->name : NULL;
}

const char *export_format_what(size_t i)
{
    return exporter_kind_at(i)->what;
}

/* ---- selection ---- */

GArray *export_places_of_range(const model *m, int64_t from_ns, int64_t to_ns)
{
    const store *s = model_store(m);
    GArray *places = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    uint32_t end = to_ns == INT64_MAX ? s->count : store_find_time(s, to_ns + 1);
    for (uint32_t record = store_find_time(s, from_ns); record < end; record++) {
        uint64_t place = store_place(s, record);
        g_array_append_val(places, place);
    }
    return places;
}

GArray *export_places_of_object(const model *m, size_t lifeline, uint32_t object)
{
    const store *s = model_store(m);
    GArray *places = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    if (lifeline >= s->spec->lifeline_count)
        return places;
    unsigned layer = s->spec->lifelines[lifeline].layer;
    for (uint32_t record = store_last_step(s, object, layer); record < s->count;
         record = store_previous(s, record, layer)) {
        uint64_t place = store_place(s, record);
        g_array_prepend_val(places, place);
    }
    return places;
}

GArray *export_places_of_span(const model *m, uint32_t record)
{
    GArray *places = g_array_new(FALSE, FALSE, sizeof(uint64_t)),
           *steps = request_lines_steps(m, REQUEST_NO_LIFELINE, record);
    for (guint i = 0; steps != NULL && i < steps->len; i++) {
        const uint64_t place = store_place(model_store(m), g_array_index(steps, uint32_t, i));
        g_array_append_val(places, place);
    }
    if (steps != NULL)
        g_array_free(steps, TRUE);
    return places;
}

/* ---- writing ---- */

typedef struct passing {
    const exporter_kind *kind;
    void *shared;
    exporter *exporter;
    sink sink;
    int fd;
    uint64_t records;
    bool failed; /* the pass has failed; the current thread's error is the reason */
    bool unlearned;
} passing;

static void drain(passing *p)
{
    sink *s = &p->sink;
    if (p->kind->learn != NULL)
        p->unlearned = p->unlearned || !p->kind->learn(p->shared, (nl_string){s->bytes.data, s->bytes.size});
    else if (s->bytes.size > 0 && !p->failed && !nl_write_all(p->fd, s->bytes.data, s->bytes.size))
        p->failed = nl_error_set_errno("write") != NL_OK;
    s->bytes.size = 0;
}

static void export_take(void *user, const nl_record *record)
{
    passing *p = user;
    p->records++;
    sink_put(&p->sink, record, false);
}

static void run_pass(passing *p, model *m, const GArray *places)
{
    p->exporter = exporter_open(p->kind, p->shared);
    p->sink.out = p->exporter;
    if (p->kind->begin != NULL)
        p->kind->begin(p->exporter, &p->sink);
    for (guint i = 0; i < places->len && !p->failed && !p->unlearned;) {
        model_lock(m);
        for (guint end = MIN(places->len, i + AT_ONCE); i < end; i++)
            model_record_at(m, g_array_index(places, uint64_t, i), export_take, p);
        model_unlock(m);
        if (p->sink.bytes.size < DRAIN_SIZE)
            continue;
        if (p->kind->flush != NULL)
            p->kind->flush(p->exporter, &p->sink);
        drain(p);
    }
    if (p->kind->flush != NULL)
        p->kind->flush(p->exporter, &p->sink);
    if (p->kind->end != NULL)
        p->kind->end(p->exporter, &p->sink);
    drain(p);
    exporter_close(p->exporter);
    nl_buffer_free(&p->sink.bytes);
    nl_buffer_free(&p->sink.report_text);
}

/* Writes the drawing to a temporary file, for formats that need lifelines. Returns the file's path, or NULL if there
 * are no lifelines or on failure. The caller removes the file and frees the path. */
static char *drawing_file(model *m)
{
    char *path = NULL;
    int fd = g_file_open_tmp("nlv-XXXXXX.nlv", &path, NULL);
    if (fd < 0)
        return NULL;
    close(fd);
    model_lock(m);
    bool good = model_drawing(m)->lifelines->len > 0 && drawing_write(model_drawing(m), path);
    model_unlock(m);
    if (!good) {
        unlink(path);
        g_clear_pointer(&path, g_free);
    }
    return path;
}

static bool write_passes(model *m, const GArray *places, const exporter_kind *kind, int fd, uint64_t *written)
{
    char *drawn = kind->share != NULL ? drawing_file(m) : NULL;
    void *shared = kind->share != NULL ? kind->share(drawn) : NULL;
    passing last = {.kind = kind, .shared = shared, .fd = fd};
    bool good = kind->share == NULL || shared != NULL;
    if (good && kind->first_pass != NULL) {
        passing first = {.kind = kind->first_pass, .shared = shared};
        run_pass(&first, m, places);
        good = !first.unlearned;
    }
    if (good)
        run_pass(&last, m, places);
    if (kind->unshare != NULL && shared != NULL)
        kind->unshare(shared);
    if (drawn != NULL)
        unlink(drawn);
    g_free(drawn);
    *written = last.records;
    if (!good)
        nl_error_set(NL_ERROR_INVALID, "the format %s cannot represent these records", kind->name);
    return good && !last.failed;
}

bool export_records(model *m, const GArray *places, const char *format, const char *path, uint64_t *written)
{
    const exporter_kind *kind = exporter_kind_find(format);
    *written = 0;
    if (kind == NULL)
        return nl_error_false(NL_ERROR_INVALID, "%s: unknown format", format);
    /* reject other files, because opening a pipe could block forever */
    if (g_file_test(path, G_FILE_TEST_EXISTS) && !g_file_test(path, G_FILE_TEST_IS_REGULAR))
        return nl_error_false(NL_ERROR_INVALID, "%s: not a regular file", path);
    nl_replacement file;
    if (!nl_replacement_open(&file, path))
        return nl_error_set_errno("open %s", path), false;
    bool good = write_passes(m, places, kind, file.fd, written);
    if (good && !nl_replacement_keep(&file))
        good = nl_error_set_errno("write") == NL_OK;
    if (!good)
        nl_error_prepend("%s", path);
    nl_replacement_free(&file);
    close(file.fd);
    return good;
}
