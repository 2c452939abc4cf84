#include "config.h"

#include "model/scan.h"

#include "model/prints.h"
#include "model/text_file.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum {
    PIECE = 1 << 20,
    BEYOND = 4 << 10,        /* read at once behind a piece, for the line that ends there */
    LINE_LONGEST = 16 << 20, /* of what is longer, no end is looked for */
    ODD_LONGEST = 2 << 20,   /* a decoder takes no longer record anyway */
    THREADS_MOST = 64,
    LINES_AT_ONCE = 1024,
};

typedef struct slot {
    scan_part part;
    bool done;
} slot;

typedef struct scan {
    const scan_job *job;
    size_t pieces;
    slot *slots; /* a piece's is at its number modulo slot_count */
    size_t slot_count;
    pthread_mutex_t lock; /* of all below, and of done */
    pthread_cond_t changed;
    size_t next, taken; /* to be begun; handed out */
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
 * Reads the piece at start, from one byte before it where there is one, until the line that holds its last byte ends.
 * Returns the offset of the first byte that was read; what is there is in bytes.
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
        ssize_t got = text_read_at(job->fd, w->bytes.data + before, size - before, first + before);
        w->bytes.size += (size_t)got;
        uint64_t last = end - 1 - first; /* the newline behind the last line that begins here is not before it */
        if (w->bytes.size < size || wanted == job->to || wanted - start > LINE_LONGEST ||
            memchr(w->bytes.data + MAX(before, last), '\n', size - MAX(before, last)) != NULL)
            return first;
        wanted = MIN(wanted + 8 * (wanted - end), job->to);
    }
}

static void add_odd(scan_part *p, uint64_t offset, const char *line, size_t size, bool ends)
{
    if (p->odd_count == p->odd_room) {
        p->odd_room = MAX(2 * p->odd_room, 64);
        p->odd = g_renew(scan_odd, p->odd, p->odd_room);
    }
    size_t kept = MIN(size, ODD_LONGEST);
    p->odd[p->odd_count++] = (scan_odd){offset, p->odd_text.size, kept, p->lines_after, p->bytes_after};
    nl_buffer_append(&p->odd_text, line, kept);
    if (kept < size || !ends)
        p->odd_text.data[p->odd_text.size - 1] = '\n';
    p->lines_after = p->bytes_after = 0;
}

static void take_line(worker *w, scan_part *p, nl_scanned_line line, const char *text, size_t size)
{
    const scan_job *job = w->job;
    uint64_t offset = nl_line_offset(line);
    if (nl_line_is_plain(line) &&
        nl_record_decode(w->record, job->format, job->fraction, text, nl_line_size(line)) == NL_OK) {
        extract(&w->extractor, w->record, place_make(job->text, offset), &p->rows);
        p->lines_after++;
        p->bytes_after += size;
        return;
    }
    add_odd(p, offset, text, size, true);
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
            take_line(w, p, lines[i], text + at, (size_t)(next - at));
        }
        text += used;
        size -= used;
        offset += used;
    }
}

static void scan_piece(worker *w, scan_part *p, uint64_t start)
{
    const scan_job *job = w->job;
    uint64_t piece_end, first = read_piece(w, start, &piece_end);
    const char *data = w->bytes.data, *end = data + w->bytes.size, *line = data;
    batch_clear(&p->rows, job->spec->layers);
    p->odd_text.size = p->odd_count = 0;
    p->lines_after = p->bytes_after = 0;
    p->met_nul = false;
    p->from = p->end = start;
    if (start > job->from) {
        line = w->bytes.size > 0 ? memchr(data, '\n', w->bytes.size) : NULL;
        line = line != NULL ? line + 1 : end;
    }
    uint64_t begin = first + (uint64_t)(line - data);
    if (begin >= piece_end || line >= end)
        return; /* no line begins here */
    const char *last = data + (piece_end - 1 - first);
    const char *newline = last < end ? memchr(last, '\n', (size_t)(end - last)) : NULL;
    bool endless = newline == NULL && (uint64_t)(end - data) >= LINE_LONGEST;
    if (newline == NULL)
        newline = memrchr(line, '\n', (size_t)(end - line));
    p->from = p->end = begin;
    const char *stop = newline != NULL ? newline + 1 : line;
    scan_lines(w, p, line, (size_t)(stop - line), begin);
    p->end = begin + (uint64_t)(stop - line);
    if (endless) {
        add_odd(p, p->end, stop, (size_t)(end - stop), false);
        p->end = first + w->bytes.size;
    }
    p->print = job->has_prints ? prints_hash(line, (size_t)(p->end - p->from)) : 0;
    p->met_nul = nl_line_scanner_met_nul(w->scanner);
}

static void worker_begin(worker *w, const scan_job *job)
{
    *w = (worker){.job = job,
                  .extractor = {.spec = job->spec, .filter = job->filter, .clocks = job->clocks, .names = job->names}};
    w->scanner = nl_line_scanner_new(job->format, job->fraction);
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
        scan_piece(w, &own->part, s->job->from + (uint64_t)piece * PIECE);
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

static void scan_alone(const scan_job *job, size_t pieces, scan_take *take, void *user)
{
    worker *w = g_new(worker, 1);
    scan_part part = {0};
    worker_begin(w, job);
    for (size_t i = 0; i < pieces; i++) {
        scan_piece(w, &part, job->from + (uint64_t)i * PIECE);
        if (!take(user, &part))
            break;
    }
    worker_end(w);
    g_free(w);
    free_part(&part);
}

void scan_run(const scan_job *job, scan_take *take, void *user)
{
    size_t pieces = (size_t)((job->to - job->from + PIECE - 1) / PIECE);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t threads = MIN(MIN(pieces, THREADS_MOST), (size_t)MAX(processors, 1));
    pthread_t ids[THREADS_MOST];
    scan s = {.job = job, .pieces = pieces, .slot_count = 4 * threads + 4};
    size_t begun = 0;
    if (pieces > 2) {
        s.slots = g_new0(slot, s.slot_count);
        pthread_mutex_init(&s.lock, NULL);
        pthread_cond_init(&s.changed, NULL);
        while (begun < threads && pthread_create(&ids[begun], NULL, work, &s) == 0)
            begun++;
    }
    if (begun == 0) {
        scan_alone(job, pieces, take, user);
    } else {
        hand_out(&s, take, user);
        for (size_t i = 0; i < begun; i++)
            pthread_join(ids[i], NULL);
    }
    if (s.slots == NULL)
        return;
    for (size_t i = 0; i < s.slot_count; i++)
        free_part(&s.slots[i].part);
    g_free(s.slots);
    pthread_mutex_destroy(&s.lock);
    pthread_cond_destroy(&s.changed);
}
