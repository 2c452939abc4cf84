#include "config.h"

#include "convert/pipeline.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_SIZE = 1 << 20,    /* bytes of input that a thread takes at once */
    RECORD_LIMIT = 64 << 20, /* of what is no record by then the rest of the line is passed over */
    REPORT_LIMIT = 1 << 20,  /* bytes that are kept of it */
    DETECT_SIZE = 64 << 10,  /* bytes that tell the format */
    MOST_THREADS = 16,
};

typedef enum chunk_state { CHUNK_FREE, CHUNK_READY, CHUNK_TAKEN, CHUNK_DONE } chunk_state;

typedef struct chunk {
    chunk_state state;
    nl_buffer in;
    uint64_t offset; /* of its first byte, from the start of the input */
    uint64_t lines;  /* in it */
    bool blocks;     /* it has no lines */
    bool in_place;   /* what is in its sink was made by the main thread */
    bool last;
    sink s;
} chunk;

typedef struct pipeline {
    pass *pass;
    const char *name; /* of what is read now */
    nl_source *source;
    void *import_shared;
    importer *in_order; /* of the main thread; NULL when chunks go to the workers */
    exporter *own;      /* the main thread's */
    pthread_t threads[MOST_THREADS];
    unsigned thread_count;
    pthread_mutex_t lock;
    pthread_cond_t ready, done;
    chunk *chunks; /* a ring; [committed, filled) are on their way, and the one at filled is being filled */
    size_t chunk_count, committed, filled, taken;
    bool closing;
    uint64_t lines;  /* in what was committed */
    uint64_t offset; /* of what comes next */
    bool failed;     /* writing did, or learning */
    bool stopped;    /* by strict */
    bool begun;      /* the format is known, and the output's head written */
    bool skipping;   /* the rest of a line that is too long */
    size_t wanted;   /* no record is looked for in fewer bytes */
} pipeline;

/* ---- chunks ---- */

static chunk *filling(pipeline *p)
{
    return &p->chunks[p->filled % p->chunk_count];
}

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
    s->bytes.size = s->words.size = s->report_count = 0;
    s->records = s->unterminated = 0;
    s->stopped = s->undated = false;
    memset(s->losses, 0, sizeof s->losses);
    c->in.size = 0;
    c->lines = 0;
    c->blocks = c->in_place = c->last = false;
    c->state = CHUNK_FREE;
}

static uint64_t count_lines(const char *at, size_t size)
{
    uint64_t count = 0;
    for (const char *end = at + size; size > 0 && (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
        count++;
    return count;
}

static void say_malformed(pipeline *p, const chunk *c)
{
    program_reading *reading = p->pass->reading;
    for (size_t i = 0; !p->pass->is_first && i < c->s.report_count; i++) {
        const report *r = &c->s.reports[i];
        nl_malformed what = {.source = p->name,
                             .line = r->line == 0 ? 0 : p->lines + r->line,
                             .offset = c->offset + r->offset,
                             .reason = c->s.words.data + r->reason,
                             .text = {c->s.words.data + r->text, r->text_size}};
        program_malformed(reading, &what);
    }
}

/* Writes what was made of a chunk, and counts. */
static void commit(pipeline *p, chunk *c)
{
    pass *pass = p->pass;
    if (!p->stopped && !p->failed) {
        say_malformed(p, c);
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
    commit(p, c);
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
    c->lines = c->blocks ? 0 : count_lines(c->in.data, c->in.size);
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
        p->in_order = p->pass->from->open(p->import_shared);
}

/* Sends the chunk that was filled on its way; then there is an empty one to fill. */
static void dispatch(pipeline *p)
{
    chunk *c = filling(p);
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
    importer *in = pass->from->open(p->import_shared);
    exporter *out = pass->to->open(pass->export_shared);
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

/* The chunk that is being filled, for records that are put into its sink at once. */
static chunk *in_place(pipeline *p)
{
    if (!filling(p)->in_place && filling(p)->in.size > 0)
        dispatch(p);
    chunk *c = filling(p);
    if (!c->in_place) {
        c->in_place = true;
        prepare_sink(p, &c->s);
        c->s.out = p->own;
    }
    return c;
}

static void dispatch_in_place(pipeline *p)
{
    chunk *c = filling(p);
    if (p->own->kind->flush != NULL)
        p->own->kind->flush(p->own, &c->s);
    dispatch(p);
}

static void drain(sink *s)
{
    pipeline *p = s->drain_user;
    p->failed = p->failed || !output_write(p->pass->out, s->bytes.data, s->bytes.size);
    s->bytes.size = 0;
}

/* Writes the output's head or foot. */
static void write_edge(pipeline *p, void (*edge)(exporter *e, sink *s))
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

/* ---- cutting ---- */

/* Passes over the rest of what is too long to be a record. False when all that was read belongs to it. */
static bool pass_over_line(pipeline *p, chunk *c)
{
    const char *newline = c->in.size > 0 ? memchr(c->in.data, '\n', c->in.size) : NULL;
    size_t size = newline != NULL ? (size_t)(newline + 1 - c->in.data) : c->in.size;
    c->in.size -= size;
    memmove(c->in.data, c->in.data + size, c->in.size);
    p->offset += size;
    p->skipping = newline == NULL;
    return !p->skipping;
}

/* There is no whole record in so many bytes: the first line of them is given up. */
static void give_up_line(pipeline *p)
{
    chunk *c = filling(p);
    nl_buffer text = c->in;
    c->in = (nl_buffer){0};
    c->offset = p->offset;
    in_place(p);
    sink_malformed(&c->s, 1, 0, "record is longer than 64 MiB", text.data,
                   text.size < REPORT_LIMIT ? text.size : REPORT_LIMIT);
    c->lines = 1;
    dispatch(p);
    nl_buffer *rest = &filling(p)->in;
    nl_buffer_free(rest);
    *rest = text;
    pass_over_line(p, filling(p));
}

static size_t whole_lines(const char *data, size_t size)
{
    const char *newline = size > 0 ? memrchr(data, '\n', size) : NULL;
    return newline != NULL ? (size_t)(newline + 1 - data) : 0;
}

/* Sends the first bytes of what was read on their way; the rest begins the next chunk. */
static void cut_at(pipeline *p, size_t size)
{
    chunk *c = filling(p);
    size_t rest = c->in.size - size;
    c->in.size = size;
    c->offset = p->offset;
    p->offset += size;
    const char *after = c->in.data + size; /* stays there: a chunk keeps its memory, and there are several */
    dispatch(p);
    nl_buffer_append(&filling(p)->in, after, rest);
}

/* Takes the head of the input when it is there. False while it is not. */
static bool take_head(pipeline *p, bool all)
{
    const importer_kind *from = p->pass->from;
    chunk *c = filling(p);
    if (from->head == NULL || p->import_shared != NULL)
        return true;
    nl_buffer in = c->in;
    c->in = (nl_buffer){0};
    c = in_place(p);
    size_t size = from->head(in.data, in.size, all, &p->import_shared, &c->s);
    c->lines = count_lines(in.data, size);
    p->offset += size;
    if (size > 0 || c->s.report_count > 0)
        dispatch(p);
    else
        c->in_place = false;
    memmove(in.data, in.data + size, in.size - size);
    in.size -= size;
    c = filling(p);
    nl_buffer_free(&c->in);
    c->in = in;
    return p->import_shared != NULL;
}

/* ---- blocks of the binary format, and text among them: the library's decoder finds them ---- */

typedef struct block_cutter {
    pipeline *p;
    uint64_t base; /* of what the decoder counts, in the input */
} block_cutter;

static void on_block(void *user, const nl_block_view *block)
{
    block_cutter *b = user;
    pipeline *p = b->p;
    if (filling(p)->in_place)
        dispatch_in_place(p);
    chunk *c = filling(p);
    if (c->in.size > 0 &&
        (c->in.size + block->bytes.size > CHUNK_SIZE || c->offset + c->in.size != b->base + block->offset)) {
        dispatch(p);
        c = filling(p);
    }
    if (c->in.size == 0)
        c->offset = b->base + block->offset;
    c->blocks = true;
    nl_buffer_append(&c->in, block->bytes.data, block->bytes.size);
}

/* What the decoder of blocks could not read. */
static void on_malformed(void *user, const nl_malformed *what)
{
    block_cutter *b = user;
    chunk *c = in_place(b->p);
    c->offset = b->base;
    sink_malformed(&c->s, what->line, what->offset, what->reason, what->text.data, what->text.size);
}

static void on_lost(void *user, const nl_lost *what)
{
    block_cutter *b = user;
    nl_lost named = *what;
    named.source = b->p->name;
    if (!b->p->pass->is_first)
        program_lost(b->p->pass->reading, &named);
}

/* The text among the blocks is converted here. */
static void take_records(pipeline *p, nl_decoder *decoder)
{
    const nl_record *record;
    while (!p->stopped && nl_decoder_next(decoder, &record) == NL_OK) {
        chunk *c = in_place(p);
        sink_put(&c->s, record, false);
        if (c->s.bytes.size >= CHUNK_SIZE)
            dispatch_in_place(p);
    }
}

/* The rest of the input, of which some was read already: it may hold blocks. */
static nl_status cut_blocks(pipeline *p)
{
    block_cutter b = {.p = p, .base = p->offset};
    nl_decoder_options options = {.source = p->name,
                                  .format = p->pass->from->format,
                                  .fraction = p->pass->reading->fraction,
                                  .on_malformed = on_malformed,
                                  .on_lost = on_lost,
                                  .streams =
                                      p->pass->is_first ? NULL : program_archive_streams(p->pass->reading, p->name),
                                  .user = &b};
    nl_decoder *decoder = nl_decoder_new(&options);
    nl_decoder_on_unread_block(decoder, on_block, &b);
    chunk *c = filling(p);
    nl_buffer begun = c->in;
    c->in = (nl_buffer){0};
    nl_decoder_feed(decoder, begun.data, begun.size);
    take_records(p, decoder);
    const char *data;
    size_t size;
    nl_status status = NL_END;
    while (!p->stopped && !p->failed && (status = program_source_read(p->source, &data, &size)) == NL_OK) {
        nl_decoder_feed(decoder, data, size);
        take_records(p, decoder);
    }
    nl_decoder_finish(decoder);
    take_records(p, decoder);
    in_place(p)->s.unterminated += nl_decoder_get_stats(decoder)->unterminated;
    p->pass->reading->repeated += nl_decoder_get_stats(decoder)->repeated;
    dispatch_in_place(p);
    nl_decoder_free(decoder);
    nl_buffer_free(&begun);
    return status;
}

/* ---- the whole input ---- */

/* Cuts what was read. all: nothing more comes. False when the rest is not to be cut so: it may hold blocks. */
static bool cut(pipeline *p, bool all)
{
    const importer_kind *from = p->pass->from;
    if (p->skipping && !pass_over_line(p, filling(p)))
        return true;
    if (!take_head(p, all))
        return true;
    chunk *c = filling(p);
    if (c->in.size == 0 && !all)
        return true;
    size_t size = all ? c->in.size : (from->cut != NULL ? from->cut : whole_lines)(c->in.data, c->in.size);
    if (from->blocks && c->in.size > 0 && memchr(c->in.data, '\0', c->in.size) != NULL)
        return false;
    c->last = all;
    p->wanted = CHUNK_SIZE;
    if (size > 0 || all)
        cut_at(p, size);
    else if (c->in.size > RECORD_LIMIT)
        give_up_line(p);
    else /* what was looked through already is looked through a few times at most */
        p->wanted = 2 * c->in.size;
    return true;
}

/* Finds out the format from what was read; the output begins when it is known. */
static bool settle_format(pipeline *p)
{
    const nl_buffer *in = &filling(p)->in;
    if (p->pass->from == NULL)
        p->pass->from = in->size == 0 ? &ulm_importer : importer_kind_detect(in->data, in->size);
    if (p->pass->from == NULL)
        return false;
    if (!p->begun)
        write_edge(p, p->pass->to->begin);
    p->begun = true;
    return true;
}

static nl_status read_all(pipeline *p)
{
    const char *data;
    size_t size;
    nl_status status = NL_OK;
    while (!p->stopped && !p->failed && (status = program_source_read(p->source, &data, &size)) == NL_OK) {
        nl_buffer_append(&filling(p)->in, data, size);
        bool detected = p->pass->from != NULL;
        if (filling(p)->in.size < (detected ? p->wanted : DETECT_SIZE))
            continue;
        if (!settle_format(p))
            return NL_MALFORMED;
        if (!cut(p, false))
            return cut_blocks(p);
    }
    if (p->stopped || p->failed)
        return NL_END;
    if (!settle_format(p))
        return NL_MALFORMED;
    return cut(p, status == NL_END || status == NL_FAILED) ? status : cut_blocks(p);
}

static void open_pipeline(pipeline *p)
{
    p->wanted = CHUNK_SIZE;
    p->chunk_count = 2 * p->pass->threads + 2;
    p->chunks = calloc(p->chunk_count, sizeof *p->chunks);
    if (p->chunks == NULL)
        program_fail(PROGRAM_PROBLEM, "out of memory");
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->ready, NULL);
    pthread_cond_init(&p->done, NULL);
    p->own = p->pass->to->open(p->pass->export_shared);
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
        nl_buffer_free(&c->s.words);
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
        program_error("%s: it is not told by the content what format this is: see --from", p->name);
    else if (status == NL_FAILED && !p->pass->is_first)
        program_error("%s", nl_error_message());
    return status != NL_MALFORMED && status != NL_FAILED && !p->failed;
}

/* Reads one source of the input; what it became is committed. */
static bool read_source(pipeline *p, const char *name)
{
    p->name = name;
    p->source = program_source_open(p->pass->read_from != NULL ? p->pass->read_from : name);
    if (p->source == NULL) {
        program_error("%s", nl_error_message());
        return false;
    }
    p->lines = p->offset = 0;
    bool good = say_status(p, read_all(p));
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
    pass->threads = pass->threads > MOST_THREADS ? MOST_THREADS : pass->threads;
    open_pipeline(&p);
    for (size_t i = 0; i < pass->source_count && !p.failed && !p.stopped; i++) {
        if (!can_go_on(&p, i)) {
            good = false;
            break;
        }
        good = read_source(&p, pass->sources[i]) && good;
    }
    if (p.begun)
        write_edge(&p, pass->to->end);
    pass->unwritten = p.failed || !p.begun;
    pass->stopped = p.stopped;
    close_pipeline(&p);
    return good && !p.failed;
}
