/*
 * Writes Chrome's trace format (JSON) for chrome://tracing and Perfetto's viewer.
 *
 * A record becomes an instant event whose args are the record in JSON, so that nlconv can read it again. Hosts are
 * processes, and programs are their threads. The lifelines follow, as nestable async events (one for an object, and one
 * inside it for each segment), and the loadlines, as counters; nlconv does not read these again.
 */
#include "config.h"

#include "convert/json_text.h"
#include "convert/keys.h"
#include "convert/picture.h"

#include "requests/hash64.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct chrome_writer {
    exporter base;
    picture *picture;
    const exporter_kind *args_kind;
    exporter *args;
    bool begun;        /* an event was written */
    char lifeline[16]; /* the number of the current lifeline */
} chrome_writer;

static void open_writer(exporter *base)
{
    chrome_writer *w = (chrome_writer *)base;
    w->picture = picture_new();
    w->args_kind = &json_exporter;
    w->args = exporter_open(w->args_kind, NULL);
}

static void chrome_write_close_writer(exporter *base)
{
    chrome_writer *w = (chrome_writer *)base;
    exporter_close(w->args);
    picture_free(w->picture);
}

static void chrome_write_begin(exporter *base, sink *s)
{
    (void)base;
    JSON_PUT(&s->bytes, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":\"netlogger\"},\"traceEvents\":[\n");
}

static unsigned chrome_write_number_of(uint32_t string)
{
    return string == TRACE_NONE ? 1 : string + 2;
}

static void put_quoted(nl_buffer *out, const char *text)
{
    if (json_put_quoted(out, (nl_string){text, strlen(text)}))
        return;
    char *valid = g_utf8_make_valid(text, -1);
    json_put_quoted(out, (nl_string){valid, strlen(valid)});
    g_free(valid);
}

/* Writes {"ph":...,"ts":...,"pid":...,"tid":... */
static void begin_event(chrome_writer *w, nl_buffer *out, const char *phase, int64_t time_ns, uint32_t host,
                        uint32_t prog)
{
    char text[160];
    uint64_t size = time_ns < 0 ? 0 - (uint64_t)time_ns : (uint64_t)time_ns;
    int length = snprintf(text, sizeof text, "%s{\"ph\":\"%s\",\"ts\":%s%" PRIu64 ".%03u,\"pid\":%u,\"tid\":%u",
                          w->begun ? ",\n" : "", phase, time_ns < 0 ? "-" : "", size / 1000, (unsigned)(size % 1000),
                          chrome_write_number_of(host), chrome_write_number_of(prog));
    json_put(out, text, (size_t)length);
    w->begun = true;
}

static void chrome_write_put(exporter *base, const nl_record *record, bool typed, sink *s)
{
    chrome_writer *w = (chrome_writer *)base;
    nl_buffer *out = &s->bytes;
    trace_add(w->picture->trace, record);
    const trace_record *kept = trace_get(w->picture->trace, trace_count(w->picture->trace) - 1);
    begin_event(w, out, "i", record->time_ns, kept->host, kept->prog);
    JSON_PUT(out, ",\"s\":\"t\",\"cat\":\"netlogger\",\"name\":");
    put_quoted(out, kept->event != TRACE_NONE ? trace_string(w->picture->trace, kept->event) : "");
    JSON_PUT(out, ",\"args\":");
    w->args_kind->put(w->args, record, typed, s);
    out->size--; /* the newline */
    JSON_PUT(out, "}");
}

/* Writes a segment of a lifeline, or the whole lifeline. */
static void put_span(chrome_writer *w, const lifelines *l, size_t object, const char *name, size_t from, size_t to,
                     sink *s)
{
    const trace *t = w->picture->trace;
    const lifeline_object *o = &l->objects[object];
    const trace_record *first = trace_get(t, l->steps[o->first_step].record);
    char id[64];
    int size = snprintf(id, sizeof id, ",\"cat\":\"netlogger.lifeline\",\"id\":\"%s.%zu\"", w->lifeline, object);
    const size_t ends[] = {from, to};
    for (int i = 0; i < 2; i++) {
        begin_event(w, &s->bytes, i == 0 ? "b" : "e", lifelines_time_ns(l, t, &l->steps[ends[i]]), first->host,
                    first->prog);
        json_put(&s->bytes, id, (size_t)size);
        JSON_PUT(&s->bytes, ",\"name\":");
        put_quoted(&s->bytes, name);
        JSON_PUT(&s->bytes, "}");
    }
}

static void put_lifeline(chrome_writer *w, const lifelines *l, sink *s)
{
    for (size_t i = 0; i < l->object_count; i++) {
        const lifeline_object *o = &l->objects[i];
        char *name = picture_object_name(w->picture, l, o);
        put_span(w, l, i, name, o->first_step, o->first_step + o->step_count - 1, s);
        g_free(name);
        for (size_t step = o->first_step; step + 1 < o->first_step + o->step_count; step++)
            put_span(w, l, i, trace_string(w->picture->trace, l->events[l->steps[step].event]), step, step + 1, s);
        sink_drain(s);
    }
}

static void put_counters(chrome_writer *w, const drawing_loadline *line, sink *s)
{
    const trace *t = w->picture->trace;
    uint32_t event = trace_find(t, line->event), field = trace_find(t, line->field);
    for (size_t i = 0; i < trace_count(t) && event != TRACE_NONE && field != TRACE_NONE; i++) {
        const trace_record *r = trace_get(t, i);
        uint32_t value = r->event == event ? trace_value(t, r, field) : TRACE_NONE;
        nl_field number = {.type = NL_TYPE_DOUBLE};
        if (value == TRACE_NONE || !trace_number(t, value, &number.double_value))
            continue;
        begin_event(w, &s->bytes, "C", r->time_ns, r->host, r->prog);
        JSON_PUT(&s->bytes, ",\"cat\":\"netlogger.loadline\",\"name\":");
        put_quoted(&s->bytes, line->name);
        JSON_PUT(&s->bytes, ",\"args\":{");
        put_quoted(&s->bytes, *line->unit != '\0' ? line->unit : "value");
        JSON_PUT(&s->bytes, ":");
        json_put_value(&s->bytes, &number, true, s);
        JSON_PUT(&s->bytes, "}}");
        sink_drain(s);
    }
}

/* Names processes and threads. */
static void put_names(chrome_writer *w, sink *s)
{
    const trace *t = w->picture->trace;
    GHashTable *named = g_hash_table_new_full(hash64, g_int64_equal, g_free, NULL);
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_record *r = trace_get(t, i);
        const gint64 keys[] = {r->host, (gint64)((uint64_t)chrome_write_number_of(r->prog) << 32 | r->host)};
        const char *const kinds[] = {"process_name", "thread_name"};
        const uint32_t strings[] = {r->host, r->prog};
        for (int k = 0; k < 2; k++) {
            if (strings[k] == TRACE_NONE || !g_hash_table_add(named, g_memdup2(&keys[k], sizeof keys[k])))
                continue;
            begin_event(w, &s->bytes, "M", 0, r->host, r->prog);
            JSON_PUT(&s->bytes, ",\"name\":");
            put_quoted(&s->bytes, kinds[k]);
            JSON_PUT(&s->bytes, ",\"args\":{\"name\":");
            put_quoted(&s->bytes, trace_string(t, strings[k]));
            JSON_PUT(&s->bytes, "}}");
        }
    }
    g_hash_table_destroy(named);
}

static void chrome_write_end(exporter *base, sink *s)
{
    chrome_writer *w = (chrome_writer *)base;
    picture *p = w->picture;
    picture_finish(p, picture_take(w->base.shared));
    for (guint i = 0; i < p->lifelines->len; i++) {
        snprintf(w->lifeline, sizeof w->lifeline, "%u", i);
        put_lifeline(w, g_ptr_array_index(p->lifelines, i), s);
    }
    for (guint i = 0; i < p->drawing->loadlines->len; i++)
        put_counters(w, g_ptr_array_index(p->drawing->loadlines, i), s);
    put_names(w, s);
    JSON_PUT(&s->bytes, "\n]}\n");
}

const exporter_kind chrome_exporter = {
    .name = "chrome",
    .what = "Chrome's trace format: records, lifelines, loadlines",
    .in_order = true,
    .share = picture_share,
    .unshare = picture_unshare,
    .size = sizeof(chrome_writer),
    .open = open_writer,
    .close = chrome_write_close_writer,
    .begin = chrome_write_begin,
    .put = chrome_write_put,
    .end = chrome_write_end,
};
