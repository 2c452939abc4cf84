#include "config.h"

#include "pipeline/pipeline_inside.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- chunks ---- */

static void prepare_sink(pipeline *p, sink *s)
{
    s->where = p->pass->where;
    s->fraction = p->pass->reading->fraction;
    s->strict = p->pass->strict;
    s->about = &p->pass->about;
    s->lines_before = p->lines;
}

static void empty_chunk(chunk *c)
{
    sink *s = &c->s;
    s->bytes.size = s->report_text.size = s->report_count = 0;
    s->records = s->unterminated = 0;
    s->stopped = s->undated = false;
    memset(s->losses, 0, sizeof s->losses);
    c->in.size = 0;
    c->lines = 0;
    c->blocks = c->in_place = c->last = false;
    c->expanded = 0;
    c->state = CHUNK_FREE;
}

uint64_t pipeline_count_lines(const char *at, size_t size)
{
    uint64_t count = 0;
    for (const char *end = at + size; size > 0 && (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
        count++;
    return count;
}

void pipeline_commit(pipeline *p, chunk *c)
{
    pass *pass = p->pass;
    if (!p->stopped && !p->failed) {
        if (!pass->is_first)
            sink_report(&c->s, pass->reading, p->name, p->lines, c->offset);
        p->stopped = c->s.stopped;
        pass->records += c->s.records;
        pass->undated = pass->undated || c->s.undated;
        if (!pass->is_first)
            pass->reading->unterminated += c->s.unterminated;
        for (size_t i = 0; i < LOSS_COUNT; i++)
            pass->losses[i] += c->s.losses[i];
        if (pass->to->learn != NULL)
            p->failed = !pass->to->learn(pass->export_shared, (nl_string){c->s.bytes.data, c->s.bytes.size});
        else
            p->failed = !output_write(pass->out, c->s.bytes.data, c->s.bytes.size);
        p->lines += c->lines;
    }
    empty_chunk(c);
}

/* Waits for the oldest chunk that is on its way, and commits it. */
static void commit_oldest(pipeline *p)
{
    chunk *c = &p->chunks[p->committed % p->chunk_count];
    pthread_mutex_lock(&p->lock);
    while (c->state != CHUNK_DONE)
        pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
    pipeline_commit(p, c);
    p->committed++;
}

static void commit_all(pipeline *p)
{
    while (p->committed < p->filled)
        commit_oldest(p);
}

/* What a chunk's bytes become. */
static void convert(chunk *c, importer *in, exporter *out)
{
    const importer_kind *kind = in->kind;
    c->s.out = out;
    c->lines = c->blocks ? 0 : pipeline_count_lines(c->in.data, c->in.size);
    kind->read(in, c->in.data, c->in.size, &c->s);
    if (c->last && kind->end != NULL && !c->s.stopped)
        kind->end(in, &c->s);
    if (out->kind->flush != NULL)
        out->kind->flush(out, &c->s);
}

static void *work(void *user);

static void start_workers(pipeline *p)
{
    unsigned wanted = p->pass->from->in_order || p->pass->to->in_order ? 0 : p->pass->threads;
    while (p->thread_count < wanted && pthread_create(&p->threads[p->thread_count], NULL, work, p) == 0)
        p->thread_count++;
    if (p->thread_count == 0)
        p->in_order = importer_open(p->pass->from, p->import_shared);
}

void pipeline_dispatch(pipeline *p)
{
    chunk *c = pipeline_filling(p);
    if (!c->in_place && p->thread_count == 0 && p->in_order == NULL)
        start_workers(p);
    if (!c->in_place)
        prepare_sink(p, &c->s);
    if (p->in_order != NULL && !c->in_place) {
        convert(c, p->in_order, p->own);
        c->in_place = true;
    }
    pthread_mutex_lock(&p->lock);
    c->state = c->in_place ? CHUNK_DONE : CHUNK_READY;
    p->filled++;
    pthread_cond_signal(&p->ready);
    pthread_mutex_unlock(&p->lock);
    if (p->in_order != NULL)
        commit_all(p);
    else if (p->filled - p->committed == p->chunk_count)
        commit_oldest(p);
    program_progress("converting", nl_source_position(p->source), nl_source_size(p->source), p->pass->records);
}

static void *work(void *user)
{
    pipeline *p = user;
    pass *pass = p->pass;
    importer *in = importer_open(pass->from, p->import_shared);
    exporter *out = exporter_open(pass->to, pass->export_shared);
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->taken < p->filled && p->chunks[p->taken % p->chunk_count].state != CHUNK_READY)
            p->taken++;
        if (p->taken < p->filled) {
            chunk *c = &p->chunks[p->taken++ % p->chunk_count];
            c->state = CHUNK_TAKEN;
            pthread_mutex_unlock(&p->lock);
            convert(c, in, out);
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
    pass->from->close(in);
    pass->to->close(out);
    return NULL;
}

/* ---- what the main thread converts itself ---- */

chunk *pipeline_in_place(pipeline *p)
{
    if (!pipeline_filling(p)->in_place && pipeline_filling(p)->in.size > 0)
        pipeline_dispatch(p);
    chunk *c = pipeline_filling(p);
    if (!c->in_place) {
        c->in_place = true;
        prepare_sink(p, &c->s);
        c->s.out = p->own;
    }
    return c;
}

void pipeline_dispatch_in_place(pipeline *p)
{
    chunk *c = pipeline_filling(p);
    if (p->own->kind->flush != NULL)
        p->own->kind->flush(p->own, &c->s);
    pipeline_dispatch(p);
}

static void drain(sink *s)
{
    pipeline *p = s->drain_user;
    p->failed = p->failed || !output_write(p->pass->out, s->bytes.data, s->bytes.size);
    s->bytes.size = 0;
}

void pipeline_write_edge(pipeline *p, void (*edge)(exporter *e, sink *s))
{
    sink s = {.out = p->own, .drain = drain, .drain_user = p};
    if (edge == NULL || p->failed)
        return;
    edge(p->own, &s);
    drain(&s);
    for (size_t i = 0; i < LOSS_COUNT; i++)
        p->pass->losses[i] += s.losses[i];
    nl_buffer_free(&s.bytes);
}

/* ---- a whole pass ---- */

static void open_pipeline(pipeline *p)
{
    p->wanted = PIPELINE_CHUNK_SIZE;
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
        p->pass->from->close(p->in_order);
    p->pass->to->close(p->own);
    if (p->import_shared != NULL)
        p->pass->from->unshare(p->import_shared);
    for (size_t i = 0; i < p->chunk_count; i++) {
        chunk *c = &p->chunks[i];
        nl_buffer_free(&c->in);
        nl_buffer_free(&c->s.bytes);
        nl_buffer_free(&c->s.report_text);
        free(c->s.reports);
    }
    free(p->chunks);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->ready);
    pthread_mutex_destroy(&p->lock);
    program_progress_end();
}

static bool say_status(const pipeline *p, nl_status status)
{
    if (status == NL_MALFORMED)
        program_error("%s: unrecognized format; name it with --from-format", p->name);
    else if (status == NL_FAILED && !p->pass->is_first)
        program_error("%s", nl_error_message());
    return status != NL_MALFORMED && status != NL_FAILED && !p->failed;
}

/* Reads one source of the input; what it became is committed. */
static bool read_source(pipeline *p, const char *name)
{
    p->name = name;
    if (pass_reads_folder(p->pass))
        return pipeline_read_folder(p, name);
    p->source = program_source_open_stored(p->pass->read_from != NULL ? p->pass->read_from : name);
    if (p->source == NULL) {
        program_error("%s", nl_error_message());
        return false;
    }
    p->lines = p->offset = 0;
    bool good = say_status(p, pipeline_read_all(p));
    commit_all(p);
    nl_source_close(p->source);
    return good;
}

/* Of what is read one after another only lines and blocks make one log. */
static bool can_go_on(const pipeline *p, size_t i)
{
    if (i == 0 || p->pass->from == NULL || p->pass->from->blocks)
        return true;
    program_error("%s: files of format %s are not read one after another: convert each by itself", p->pass->sources[i],
                  p->pass->from->name);
    return false;
}

bool pass_run(pass *pass)
{
    pipeline p = {.pass = pass};
    bool good = true;
    pass->threads = pass->threads > PIPELINE_MOST_THREADS ? PIPELINE_MOST_THREADS : pass->threads;
    open_pipeline(&p);
    for (size_t i = 0; i < pass->source_count && !p.failed && !p.stopped; i++) {
        if (!can_go_on(&p, i)) {
            good = false;
            break;
        }
        good = read_source(&p, pass->sources[i]) && good;
    }
    if (p.begun)
        pipeline_write_edge(&p, pass->to->end);
    pass->unwritten = p.failed || !p.begun;
    pass->stopped = p.stopped;
    close_pipeline(&p);
    return good && !p.failed;
}
