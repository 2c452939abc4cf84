#include "config.h"

#include "pipeline/chunks.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- chunks ---- */

static void chunk_prepare_sink(pipeline *p, sink *s)
{
    s->where = p->pass->where;
    s->fraction = p->pass->reading->fraction;
    s->strict = p->pass->strict;
    s->about = &p->pass->about;
    s->lines_before = p->lines;
}

static void chunk_empty(chunk *c)
{
    sink *s = &c->s;
    s->bytes.size = s->report_text.size = s->report_count = 0;
    s->seen = s->records = s->unterminated = 0;
    s->stopped = s->undated = false;
    memset(s->losses, 0, sizeof s->losses);
    c->in.size = 0;
    c->lines = 0;
    c->blocks = c->is_converted = c->last = false;
    c->expanded = 0;
    c->state = CHUNK_FREE;
}

static void pipeline_drain(sink *s)
{
    pipeline *p = s->drain_user;
    p->failed = p->failed || !output_write(p->pass->out, s->bytes.data, s->bytes.size);
    s->bytes.size = 0;
}

/* Writes the header or the trailer of the output. */
static void pipeline_write_edge(pipeline *p, void (*edge)(exporter *e, sink *s))
{
    sink s = {.out = p->own, .drain = pipeline_drain, .drain_user = p};
    if (edge == NULL || p->failed)
        return;
    edge(p->own, &s);
    pipeline_drain(&s);
    for (size_t i = 0; i < LOSS_COUNT; i++)
        p->pass->losses[i] += s.losses[i];
    nl_buffer_free(&s.bytes);
}

/* Writes the output header if it has not been written yet. */
static void pipeline_begin_output(pipeline *p)
{
    if (!p->begun)
        pipeline_write_edge(p, p->pass->to->begin);
    p->begun = true;
}

void chunk_commit(pipeline *p, chunk *c)
{
    pass *pass = p->pass;
    if (!p->stopped && !p->failed) {
        if (c->s.seen > 0)
            pipeline_begin_output(p);
        if (!pass->is_first) {
            program_count_records(pass->reading, c->s.seen);
            sink_report(&c->s, pass->reading, p->name, p->lines, c->offset);
        }
        p->stopped = c->s.stopped;
        pass->records += c->s.records;
        pass->undated = pass->undated || c->s.undated;
        if (!pass->is_first)
            program_add_unterminated(pass->reading, c->s.unterminated, p->name);
        for (size_t i = 0; i < LOSS_COUNT; i++)
            pass->losses[i] += c->s.losses[i];
        if (pass->to->learn != NULL)
            p->failed = !pass->to->learn(pass->export_shared, (nl_string){c->s.bytes.data, c->s.bytes.size});
        else
            p->failed = !output_write(pass->out, c->s.bytes.data, c->s.bytes.size);
        p->lines += c->lines;
    }
    chunk_empty(c);
}

/* Waits for the oldest chunk and commits it. */
static void commit_oldest(pipeline *p)
{
    chunk *c = &p->chunks[p->committed % p->chunk_count];
    pthread_mutex_lock(&p->lock);
    while (c->state != CHUNK_DONE)
        pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
    chunk_commit(p, c);
    p->committed++;
}

static void commit_all(pipeline *p)
{
    while (p->committed < p->filled)
        commit_oldest(p);
}

/* Converts the bytes of a chunk. The chunk's sink collects the output. */
static void chunk_convert(chunk *c, importer *in, exporter *out)
{
    const importer_kind *kind = in->kind;
    c->s.out = out;
    c->lines = c->blocks ? 0 : cutter_count_lines(c->in.data, c->in.size);
    kind->read(in, c->in.data, c->in.size, &c->s);
    if (c->last && kind->end != NULL && !c->s.stopped)
        kind->end(in, &c->s);
    if (out->kind->flush != NULL)
        out->kind->flush(out, &c->s);
}

static void *run_thread(void *user);

static void start_workers(pipeline *p)
{
    unsigned wanted = p->pass->from->in_order || p->pass->to->in_order ? 0 : p->pass->threads;
    while (p->thread_count < wanted && pthread_create(&p->threads[p->thread_count], NULL, run_thread, p) == 0)
        p->thread_count++;
    if (p->thread_count == 0)
        p->in_order = importer_open(p->pass->from, p->cut.head);
}

void chunk_dispatch(pipeline *p)
{
    chunk *c = chunk_filling(p);
    if (!c->is_converted && p->thread_count == 0 && p->in_order == NULL)
        start_workers(p);
    if (!c->is_converted)
        chunk_prepare_sink(p, &c->s);
    if (p->in_order != NULL && !c->is_converted) {
        chunk_convert(c, p->in_order, p->own);
        c->is_converted = true;
    }
    pthread_mutex_lock(&p->lock);
    c->state = c->is_converted ? CHUNK_DONE : CHUNK_READY;
    p->filled++;
    pthread_cond_signal(&p->ready);
    pthread_mutex_unlock(&p->lock);
    if (p->in_order != NULL)
        commit_all(p);
    else if (p->filled - p->committed == p->chunk_count)
        commit_oldest(p);
    program_progress("converting", nl_source_position(p->source), nl_source_size(p->source), p->pass->records);
}

static void *run_thread(void *user)
{
    pipeline *p = user;
    pass *pass = p->pass;
    importer *in = importer_open(pass->from, p->cut.head);
    exporter *out = exporter_open(pass->to, pass->export_shared);
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->taken < p->filled && p->chunks[p->taken % p->chunk_count].state != CHUNK_READY)
            p->taken++;
        if (p->taken < p->filled) {
            chunk *c = &p->chunks[p->taken++ % p->chunk_count];
            c->state = CHUNK_TAKEN;
            pthread_mutex_unlock(&p->lock);
            chunk_convert(c, in, out);
            pthread_mutex_lock(&p->lock);
            c->state = CHUNK_DONE;
            pthread_cond_signal(&p->done);
        } else if (p->closing) {
            break;
        } else {
            pthread_cond_wait(&p->ready, &p->lock);
        }
    }
    pthread_mutex_unlock(&p->lock);
    importer_close(in);
    exporter_close(out);
    return NULL;
}

/* ---- conversion in the main thread ---- */

chunk *chunk_convert_here(pipeline *p)
{
    if (!chunk_filling(p)->is_converted && chunk_filling(p)->in.size > 0)
        chunk_dispatch(p);
    chunk *c = chunk_filling(p);
    if (!c->is_converted) {
        c->is_converted = true;
        chunk_prepare_sink(p, &c->s);
        c->s.out = p->own;
    }
    return c;
}

void chunk_dispatch_converted(pipeline *p)
{
    chunk *c = chunk_filling(p);
    if (p->own->kind->flush != NULL)
        p->own->kind->flush(p->own, &c->s);
    chunk_dispatch(p);
}

/* ---- passes ---- */

static void open_pipeline(pipeline *p)
{
    p->chunk_count = 2 * p->pass->threads + 2;
    p->chunks = nl_memory_check(calloc(p->chunk_count, sizeof *p->chunks));
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->ready, NULL);
    pthread_cond_init(&p->done, NULL);
    p->own = exporter_open(p->pass->to, p->pass->export_shared);
}

static void end_workers(pipeline *p)
{
    pthread_mutex_lock(&p->lock);
    p->closing = true;
    pthread_cond_broadcast(&p->ready);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->thread_count; i++)
        pthread_join(p->threads[i], NULL);
}

static void close_pipeline(pipeline *p)
{
    end_workers(p);
    if (p->in_order != NULL)
        importer_close(p->in_order);
    exporter_close(p->own);
    cutter_reset(&p->cut);
    for (size_t i = 0; i < p->chunk_count; i++) {
        chunk *c = &p->chunks[i];
        nl_buffer_free(&c->in);
        sink_free(&c->s);
    }
    free(p->chunks);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->ready);
    pthread_mutex_destroy(&p->lock);
    program_progress_end();
}

bool pass_reads_directory(const pass *p)
{
    return p->from != NULL && p->from->read_path != NULL;
}

bool pipeline_report_input(const pipeline *p)
{
    return !p->pass->is_first && program_input_failed(p->pass->reading);
}

/* Reads one source of the input and commits its chunks. On failure, reports the error and returns false. */
static bool pipeline_read_source(pipeline *p, const char *name)
{
    p->name = name;
    if (pass_reads_directory(p->pass))
        return input_read_directory(p);
    p->source = program_source_open_stored(p->pass->copy != NULL ? p->pass->copy : name);
    if (p->source == NULL)
        return pipeline_report_input(p);
    p->lines = p->offset = 0;
    bool good = input_read(p);
    commit_all(p);
    nl_pieces_free(&p->pieces);
    nl_source_close(p->source);
    return good;
}

/* Returns whether the source at index i can follow the earlier sources, because all of them have the library's formats.
 * Otherwise, prints a message and returns false. */
static bool can_go_on(const pipeline *p, size_t i)
{
    if (i == 0 || p->pass->from == NULL || p->pass->from->blocks)
        return true;
    program_error("%s: cannot join files in the format %s; convert each file by itself", p->pass->sources[i],
                  p->pass->from->name);
    return false;
}

bool pass_run(pass *pass)
{
    pipeline p = {.pass = pass};
    bool good = true;
    pass->threads = pass->threads > THREADS_MAX ? THREADS_MAX : pass->threads;
    open_pipeline(&p);
    for (size_t i = 0; i < pass->source_count && !p.failed && !p.stopped; i++) {
        if (!can_go_on(&p, i)) {
            good = false;
            break;
        }
        good = pipeline_read_source(&p, pass->sources[i]) && good;
    }
    if (p.begun)
        pipeline_write_edge(&p, pass->to->end);
    pass->failed = p.failed;
    pass->unwritten = p.failed || !p.begun;
    pass->stopped = p.stopped;
    close_pipeline(&p);
    return good && !p.failed;
}
