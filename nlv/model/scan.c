#include "config.h"

#include "model/scan.h"

#include "model/prints.h"
#include "record/line_scanner.h"
#include "base/buffer.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum {
    PIECE = 1 << 20,
    BEYOND = 4 << 10, /* number of bytes after a piece to read with the piece, to include the end of its last line */
    LINE_SIZE_MAX = 16 << 20, /* maximum size of a line in bytes; nlv does not search for the ends of longer lines */
    ODD_SIZE_MAX = 2 << 20,   /* maximum size of a record in bytes; decoders reject longer records */
    THREADS_MAX = 64,
    LINES_AT_ONCE = 1024,
    RUN_SIZE = 256 << 10, /* bytes of blocks per piece */
    RUN_RECORDS = 4096,   /* records in blocks per piece */
};

typedef struct slot {
    scan_part part;
    bool done;
} slot;

typedef struct scan {
    const scan_job *job;
    GArray *runs; /* size_t: the index of the first block of each piece; NULL: text */
    size_t pieces;
    slot *slots; /* piece number N uses slot number N modulo slot_count */
    size_t slot_count;
    pthread_mutex_t lock; /* protects all members below, and slot.done */
    pthread_cond_t changed;
    size_t next, taken; /* next: number of pieces begun; taken: number of pieces passed to `take` */
    bool stopped;
} scan;

typedef struct worker {
    const scan_job *job;
    extractor extractor;
    nl_line_scanner *scanner;
    nl_record *record;
    nl_buffer bytes;
} worker;

/*
 * Reads the piece at `start`, from the byte before the piece to the end of the line that contains the piece's last
 * byte. Stores the bytes in w->bytes, and returns the offset of the first byte. Sets *piece_end to the offset of the
 * piece's end.
 */
static uint64_t read_piece(worker *w, uint64_t start, uint64_t *piece_end)
{
    const scan_job *job = w->job;
    uint64_t first = start > job->from ? start - 1 : start, end = MIN(start + PIECE, job->to);
    w->bytes.size = 0;
    *piece_end = end;
    for (uint64_t wanted = MIN(end + BEYOND, job->to);;) {
        size_t size = (size_t)(wanted - first), before = w->bytes.size;
        nl_buffer_reserve(&w->bytes, size - before + 64);
        ssize_t got = log_file_read_at(job->file->fd, w->bytes.data + before, size - before, first + before);
        w->bytes.size += (size_t)got;
        uint64_t last = end - 1 - first; /* the newline of the last line is at or after this byte */
        if (w->bytes.size < size || wanted == job->to || wanted - start > LINE_SIZE_MAX ||
            memchr(w->bytes.data + MAX(before, last), '\n', size - MAX(before, last)) != NULL)
            return first;
        wanted = MIN(wanted + 8 * (wanted - end), job->to);
    }
}

static void add_odd(scan_part *p, const log_block *block, uint64_t offset, const char *line, size_t size, bool ends)
{
    if (p->odd_count == p->odd_capacity) {
        p->odd_capacity = MAX(2 * p->odd_capacity, 64);
        p->odd = g_renew(scan_odd, p->odd, p->odd_capacity);
    }
    size_t kept = block != NULL ? size : MIN(size, ODD_SIZE_MAX);
    p->odd[p->odd_count++] = (scan_odd){block, offset, p->odd_text.size, kept, p->lines_after, p->bytes_after};
    nl_buffer_append(&p->odd_text, line, kept);
    if (kept < size || !ends)
        p->odd_text.data[p->odd_text.size - 1] = '\n';
    p->lines_after = p->bytes_after = 0;
}

static void scan_take_line(worker *w, scan_part *p, nl_scanned_line line, const char *text, size_t size)
{
    const scan_job *job = w->job;
    uint64_t offset = nl_line_offset(line);
    if (nl_line_is_plain(line) &&
        nl_record_decode(w->record, job->file->format, job->file->fraction, text, nl_line_size(line)) == NL_OK) {
        extract(&w->extractor, w->record, place_make(job->file->number, offset), &p->rows);
        p->lines_after++;
        p->bytes_after += size;
        return;
    }
    add_odd(p, NULL, offset, text, size, true);
}

static void scan_lines(worker *w, scan_part *p, const char *text, size_t size, uint64_t offset)
{
    nl_scanned_line lines[LINES_AT_ONCE];
    size_t used = 1;
    while (size > 0 && used > 0) {
        size_t count = nl_lines_scan(w->scanner, text, size, offset, lines, LINES_AT_ONCE, &used);
        for (size_t i = 0; i < count; i++) {
            uint64_t at = nl_line_offset(lines[i]) - offset;
            uint64_t next = i + 1 < count ? nl_line_offset(lines[i + 1]) - offset : used;
            scan_take_line(w, p, lines[i], text + at, (size_t)(next - at));
        }
        text += used;
        size -= used;
        offset += used;
    }
}

static void scan_text(worker *w, scan_part *p, uint64_t start)
{
    const scan_job *job = w->job;
    uint64_t piece_end, first = read_piece(w, start, &piece_end);
    const char *data = w->bytes.data, *end = data + w->bytes.size, *line = data;
    p->from = p->end = start;
    if (start > job->from) {
        line = w->bytes.size > 0 ? memchr(data, '\n', w->bytes.size) : NULL;
        line = line != NULL ? line + 1 : end;
    }
    uint64_t begin = first + (uint64_t)(line - data);
    if (begin >= piece_end || line >= end)
        return; /* no line begins in this piece */
    const char *last = data + (piece_end - 1 - first);
    const char *newline = last < end ? memchr(last, '\n', (size_t)(end - last)) : NULL;
    bool endless = newline == NULL && (uint64_t)(end - data) >= LINE_SIZE_MAX;
    if (newline == NULL)
        newline = memrchr(line, '\n', (size_t)(end - line));
    p->from = p->end = begin;
    const char *stop = newline != NULL ? newline + 1 : line;
    scan_lines(w, p, line, (size_t)(stop - line), begin);
    p->end = begin + (uint64_t)(stop - line);
    if (endless) {
        add_odd(p, NULL, p->end, stop, (size_t)(end - stop), false);
        p->end = first + w->bytes.size;
    }
    p->print = job->has_prints ? prints_hash(line, (size_t)(p->end - p->from)) : 0;
    p->met_nul = nl_line_scanner_met_nul(w->scanner);
}

/* ---- blocks ---- */

/*
 * Returns the index of the first block of each piece. Pieces are small enough to occupy many threads, and large enough
 * to keep the overhead low.
 */
static GArray *cut_runs(const scan_job *job)
{
    GArray *runs = g_array_new(FALSE, FALSE, sizeof(size_t));
    uint64_t size = RUN_SIZE, records = 0;
    for (size_t i = 0; i < job->block_count; i++) {
        if (size >= RUN_SIZE || records >= RUN_RECORDS) {
            g_array_append_val(runs, i);
            size = records = 0;
        }
        size += job->blocks[i].size;
        records += job->blocks[i].count;
    }
    return runs;
}

typedef struct block_rows {
    extractor *extractor;
    batch *rows;
    unsigned file;
} block_rows;

static void take_row(void *user, const nl_record *record, uint64_t position)
{
    const block_rows *r = user;
    extract(r->extractor, record, place_make(r->file, position), r->rows);
}

static void scan_block(worker *w, scan_part *p, const log_block *b, nl_decoder **decoder, const char *bytes)
{
    block_rows rows = {&w->extractor, &p->rows, w->job->file->number};
    size_t count = p->rows.count, value_count = p->rows.value_count;
    if (log_block_decode(b, w->job->file, decoder, bytes, take_row, &rows) || !log_block_is_binary(bytes, b->size))
        return;
    p->rows.count = count;
    p->rows.value_count = value_count;
    add_odd(p, b, b->offset, bytes, b->size, true);
}

static void scan_run_of_blocks(worker *w, scan_part *p, const log_block *b, const log_block *end, uint64_t from)
{
    const scan_job *job = w->job;
    /* NOLINTBEGIN(clang-analyzer-core.NullDereference): the run has blocks */
    bool has_print = job->has_prints && b->offset - from < PIECE; /* not with many bytes outside of blocks */
    uint64_t start = has_print ? from : b->offset, to = end[-1].offset + end[-1].size;
    /* NOLINTEND(clang-analyzer-core.NullDereference) */
    w->bytes.size = 0;
    nl_buffer_reserve(&w->bytes, (size_t)(to - start) + 64);
    p->from = from;
    p->end = to;
    if (log_file_read_at(job->file->fd, w->bytes.data, (size_t)(to - start), start) != (ssize_t)(to - start))
        return;                 /* the file was truncated */
    nl_decoder *decoder = NULL; /* not reused, because a decoder stores the numbers of all its blocks */
    for (; b < end; b++)
        scan_block(w, p, b, &decoder, w->bytes.data + (b->offset - start));
    nl_decoder_free(decoder);
    p->print = has_print ? prints_hash(w->bytes.data, (size_t)(to - start)) : 0;
}

/* ---- pieces ---- */

static void scan_piece(worker *w, scan_part *p, const GArray *runs, size_t piece)
{
    const scan_job *job = w->job;
    batch_clear(&p->rows, job->spec->layers);
    p->odd_text.size = p->odd_count = 0;
    p->lines_after = p->bytes_after = 0;
    p->print = 0;
    p->met_nul = false;
    if (runs == NULL) {
        scan_text(w, p, job->from + (uint64_t)piece * PIECE);
        return;
    }
    size_t first = g_array_index(runs, size_t, piece);
    size_t end = piece + 1 < runs->len ? g_array_index(runs, size_t, piece + 1) : job->block_count;
    const log_block *before = first > 0 ? &job->blocks[first - 1] : NULL;
    scan_run_of_blocks(w, p, job->blocks + first, job->blocks + end,
                       before != NULL ? before->offset + before->size : job->from);
}

static void worker_begin(worker *w, const scan_job *job)
{
    *w = (worker){.job = job,
                  .extractor = {.spec = job->spec,
                                .keeps_none = job->keeps_none,
                                .filter = job->filter,
                                .clocks = job->clocks,
                                .zones = job->zones,
                                .has_nanoseconds = job->has_nanoseconds,
                                .fraction = job->file->fraction,
                                .log = job->file->log,
                                .names = job->names}};
    if (job->file->format != NL_FORMAT_NLB)
        w->scanner = nl_line_scanner_new(job->file->format, job->file->fraction);
    w->record = nl_record_new();
}

static void worker_end(worker *w)
{
    nl_line_scanner_free(w->scanner);
    nl_record_free(w->record);
    nl_buffer_free(&w->bytes);
}

static void *work(void *user)
{
    scan *s = user;
    worker *w = g_new(worker, 1);
    worker_begin(w, s->job);
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->stopped && s->next < s->pieces && s->next >= s->taken + s->slot_count)
            pthread_cond_wait(&s->changed, &s->lock);
        if (s->stopped || s->next >= s->pieces)
            break;
        size_t piece = s->next++;
        pthread_mutex_unlock(&s->lock);
        slot *own = &s->slots[piece % s->slot_count];
        scan_piece(w, &own->part, s->runs, piece);
        pthread_mutex_lock(&s->lock);
        own->done = true;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    worker_end(w);
    g_free(w);
    return NULL;
}

static void free_part(scan_part *p)
{
    batch_free(&p->rows);
    nl_buffer_free(&p->odd_text);
    g_free(p->odd);
}

static void hand_out(scan *s, scan_take *take, void *user)
{
    bool more = true;
    while (more && s->taken < s->pieces) {
        slot *own = &s->slots[s->taken % s->slot_count];
        pthread_mutex_lock(&s->lock);
        while (!own->done)
            pthread_cond_wait(&s->changed, &s->lock);
        pthread_mutex_unlock(&s->lock);
        more = take(user, &own->part);
        pthread_mutex_lock(&s->lock);
        own->done = false;
        s->taken++;
        s->stopped = !more;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
    }
}

static void scan_alone(const scan *s, scan_take *take, void *user)
{
    worker *w = g_new(worker, 1);
    scan_part part = {0};
    worker_begin(w, s->job);
    for (size_t i = 0; i < s->pieces; i++) {
        scan_piece(w, &part, s->runs, i);
        if (!take(user, &part))
            break;
    }
    worker_end(w);
    g_free(w);
    free_part(&part);
}

void scan_run(const scan_job *job, scan_take *take, void *user)
{
    GArray *runs = job->file->format == NL_FORMAT_NLB ? cut_runs(job) : NULL;
    size_t pieces = runs != NULL ? runs->len : (size_t)((job->to - job->from + PIECE - 1) / PIECE);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t threads = MIN(MIN(pieces, THREADS_MAX), (size_t)MAX(processors, 1));
    pthread_t ids[THREADS_MAX];
    scan s = {.job = job, .runs = runs, .pieces = pieces, .slot_count = 4 * threads + 4};
    size_t begun = 0;
    if (pieces > 2) {
        s.slots = g_new0(slot, s.slot_count);
        pthread_mutex_init(&s.lock, NULL);
        pthread_cond_init(&s.changed, NULL);
        while (begun < threads && pthread_create(&ids[begun], NULL, work, &s) == 0)
            begun++;
    }
    if (begun == 0) {
        scan_alone(&s, take, user);
    } else {
        hand_out(&s, take, user);
        for (size_t i = 0; i < begun; i++)
            pthread_join(ids[i], NULL);
    }
    if (runs != NULL)
        g_array_free(runs, TRUE);
    if (s.slots == NULL)
        return;
    for (size_t i = 0; i < s.slot_count; i++)
        free_part(&s.slots[i].part);
    g_free(s.slots);
    pthread_mutex_destroy(&s.lock);
    pthread_cond_destroy(&s.changed);
}
