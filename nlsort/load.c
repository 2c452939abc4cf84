#include "config.h"

#include "record/format.h"
#include "load.h"

#include "base/error.h"
#include "reader/decoder_work.h"

#include "program/program.h"
#include "base/buffer.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PIECE_MAX = 4 << 20,
    PIECE_MIN = 64 << 10,
    PIECES_IN_MEMORY = 64, /* a piece has 1/64 of the memory, within PIECE_MIN and PIECE_MAX bytes */
    SHORTEST_LINE = 20,    /* length of DATE=YYYYMMDDhhmmss and a newline */
    SIDE_SHARE = 8,        /* 1/8 of the memory is for records in a different format */
    DECODED_AT_ONCE = 256 << 10,
};

struct load {
    input_settings *settings;
    const char *path;
    int fd;
    off_t at; /* offset of the bytes that are not in a table yet */
    nl_decoder *decoder;
    uint64_t passed_lines, passed_bytes; /* lines and bytes that bypassed the decoder since the latest
                                          * load_inform_decoder */
    bool decoding;                       /* the decoder reads the rest of the file */
    nl_buffer held;                      /* input of the decoder */
    table *t;                            /* the table to which the decoder adds blocks */
};

/* ---- opening ---- */

static bool is_text(const program_reading *reading, int fd)
{
    enum { HEAD_SIZE = 64 << 10 };
    char *head = nl_memory_check(malloc(HEAD_SIZE));
    ssize_t got = pread(fd, head, HEAD_SIZE, 0);
    bool good = got > 0 && program_is_read_in_place(reading, head, (size_t)got);
    free(head);
    return good;
}

/* Returns the format of the file's first record, or NL_FORMAT_UNKNOWN. */
static nl_format find_format(const program_reading *reading, int fd)
{
    nl_decoder *decoder =
        nl_decoder_new(&(nl_decoder_options){.format = reading->format, .fraction = reading->fraction});
    nl_format format = NL_FORMAT_UNKNOWN;
    char *bytes = nl_memory_check(malloc(DECODED_AT_ONCE));
    const nl_record *record;
    ssize_t got;
    for (off_t at = 0; format == NL_FORMAT_UNKNOWN; at += got) {
        got = pread(fd, bytes, DECODED_AT_ONCE, at);
        if (got > 0)
            nl_decoder_feed(decoder, bytes, (size_t)got);
        else
            nl_decoder_finish(decoder);
        if (nl_decoder_next(decoder, &record) == NL_OK)
            format = record->raw_format == NL_FORMAT_UNKNOWN ? NL_FORMAT_NLB : record->raw_format;
        else if (got <= 0)
            break;
    }
    nl_decoder_free(decoder);
    free(bytes);
    return format;
}

/* Opens a regular text file. Returns its descriptor, or -1 if the source is of another kind or cannot be opened. */
static int open_text(const program_reading *reading, const char *path)
{
    nl_url *url = nl_url_parse(path);
    int fd = -1;
    if (url != NULL && url->scheme == NL_SCHEME_FILE && url->option_count == 0)
        fd = open(url->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    else if (url != NULL && url->scheme == NL_SCHEME_STDIO && lseek(STDIN_FILENO, 0, SEEK_CUR) == 0)
        fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    nl_url_free(url);
    struct stat status;
    if (fd >= 0 &&
        (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0 || !is_text(reading, fd))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool may_take_block(void *user)
{
    const load *l = user;
    return !table_is_full(l->t);
}

/* Moves the records of a block to the table, unless memory runs out or the decoder must decode them. */
static void take_block(void *user, const nl_block_view *view)
{
    const load *l = user;
    if (view->taken && !packed_add_block(l->settings->shapes, nl_decoder_taken_block(l->decoder), l->t))
        nl_decoder_decline_block(l->decoder);
}

load *load_open(input_settings *settings, const char *path)
{
    int fd = open_text(&settings->reading, path);
    if (fd < 0)
        return NULL;
    nl_format own = find_format(&settings->reading, fd);
    if (!nl_format_is_text(own) && !(settings->packed && own == NL_FORMAT_NLB)) {
        close(fd);
        return NULL;
    }
    if (settings->format == NL_FORMAT_UNKNOWN)
        settings->format = own;
    load *l = nl_memory_check(calloc(1, sizeof *l));
    *l = (load){.settings = settings, .path = path, .fd = fd};
    l->decoder = program_reading_decoder(&settings->reading, path);
    l->decoding = settings->packed || own != settings->format; /* every record must be converted */
    if (settings->packed) {
        nl_decoder_on_block(l->decoder, true, take_block, l);
        nl_decoder_ask(l->decoder, may_take_block, l);
    }
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return l;
}

int load_descriptor(const load *l)
{
    return l->decoding ? -1 : l->fd;
}

bool load_is_unterminated(const load *l)
{
    return nl_decoder_get_stats(l->decoder)->unterminated > 0;
}

void load_close(load *l)
{
    program_count_records(&l->settings->reading, l->passed_lines);
    program_reading_close_decoder(&l->settings->reading, l->decoder, l->path);
    nl_buffer_free(&l->held);
    close(l->fd);
    free(l);
}

static ssize_t read_at(load *l, char *to, size_t size, off_t at)
{
    size_t done = 0;
    while (done < size) {
        ssize_t got = pread(l->fd, to + done, size - done, at + (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

/* ---- reading pieces ---- */

typedef struct part {
    size_t start, end;       /* offsets in the table's text */
    size_t lines, lines_end; /* offsets of the start and the end of the lines that begin and end in this part; equal if
                              * there is no such line */
    line_list *list;
    size_t first; /* index in `list` of the first of these lines; the entry before this index is free */
    size_t count;
    bool odd; /* some lines need the decoder */
} part;

typedef struct segment {
    load *l;
    table *t;
    size_t start; /* offset of the start of this segment in the table's text */
    size_t end;   /* offset of the end of this segment in the table's text */
    bool whole;   /* the segment extends to the end of the file */
    size_t piece;

    pthread_mutex_t lock; /* protects the members below */
    part *parts;
    size_t count, capacity;
    size_t busy;  /* number of parts that are being read */
    size_t lines; /* number of lines found so far */
    bool full;
    bool met_nul;
} segment;

/*
 * Assigns the next part to a thread, and sets *index to its index. Returns false if no part is left or the memory is
 * used up.
 */
static bool claim(segment *s, size_t *index)
{
    pthread_mutex_lock(&s->lock);
    size_t read_bytes = s->start + (s->count + 1) * s->piece;
    size_t text_cost = s->t->refers ? s->t->kept + (s->busy + 1) * s->piece : read_bytes;
    size_t lines_cost = (s->t->line_count + s->lines) * TABLE_LINE_COST;
    size_t busy_cost = (s->busy + 1) * (s->piece / SHORTEST_LINE + 2) * TABLE_LINE_COST;
    s->full = s->full || (s->t->goal > 0 && read_bytes > s->t->goal) ||
              text_cost + lines_cost + busy_cost > s->t->memory - s->t->memory / SIDE_SHARE;
    bool more = !s->full && s->start + s->count * s->piece < s->end;
    if (more) {
        NL_ARRAY_GROW(s->parts, s->count, s->capacity);
        *index = s->count++;
        s->busy++;
    }
    pthread_mutex_unlock(&s->lock);
    return more;
}

/* Finds the lines that begin and end in a part. */
static void scan_part(const segment *s, nl_line_scanner *scanner, line_list *list, part *p)
{
    const char *text = s->t->text;
    const char *newline = p->end > p->start ? memchr(text + p->start, '\n', p->end - p->start) : NULL;
    p->lines = p->lines_end = newline != NULL ? (size_t)(newline + 1 - text) : p->end;
    line_list_reserve(list, 1);
    list->count++;
    p->list = list;
    p->first = list->count;
    for (size_t used = 1; used > 0 && p->lines_end < p->end;) {
        line_list_reserve(list, (p->end - p->lines_end) / 100 + 1);
        nl_scanned_line *lines = list->lines + list->count;
        size_t got = nl_lines_scan(scanner, text + p->lines_end, p->end - p->lines_end, p->lines_end, lines,
                                   list->capacity - list->count, &used);
        for (size_t i = 0; i < got; i++)
            p->odd |= !nl_line_is_plain(lines[i]);
        list->count += got;
        p->lines_end += used;
    }
    p->count = list->count - p->first;
}

static void read_parts(void *user, size_t worker)
{
    segment *s = user;
    nl_line_scanner *scanner = nl_line_scanner_new(s->l->settings->format, s->l->settings->reading.fraction);
    size_t index;
    while (claim(s, &index)) {
        part p = {.start = s->start + index * s->piece};
        p.end = s->end - p.start < s->piece ? s->end : p.start + s->piece;
        table_fetch(s->t, p.start, p.end);
        scan_part(s, scanner, &s->t->lists[worker], &p);
        table_forget(s->t, p.start, p.end);
        pthread_mutex_lock(&s->lock);
        s->parts[index] = p;
        s->lines += p.count;
        s->busy--;
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_lock(&s->lock);
    s->met_nul |= nl_line_scanner_met_nul(scanner);
    pthread_mutex_unlock(&s->lock);
    nl_line_scanner_free(scanner);
}

/* ---- joining the pieces ---- */

static void load_inform_decoder(load *l)
{
    nl_decoder_pass_over(l->decoder, l->settings->format, l->passed_lines, l->passed_bytes);
    program_count_records(&l->settings->reading, l->passed_lines);
    l->passed_lines = l->passed_bytes = 0;
}

/*
 * Returns the output line of a record. If the record's bytes in the table have the output's format, these bytes are the
 * output line. Otherwise, adds a copy or a conversion of the record to the table.
 */
static nl_scanned_line line_of(load *l, table *t, const nl_record *record)
{
    if (record->raw_format == l->settings->format) {
        if (record->raw.data >= t->text && record->raw.data < t->text + t->used && record->raw.size < NL_LINE_LONGEST)
            return (nl_scanned_line){record->time_ns,
                                     nl_line_place((uint64_t)(record->raw.data - t->text), record->raw.size, true)};
        return table_keep(t, record->time_ns, record->raw);
    }
    nl_buffer line = {0};
    nl_record_encode(record, l->settings->format, &line);
    nl_scanned_line kept = table_keep(t, record->time_ns, (nl_string){line.data, line.size - 1});
    nl_buffer_free(&line);
    return kept;
}

/*
 * Decodes the line at `offset`, whose size includes its newline. Sets *line to the output line. Returns false if the
 * line contains no record.
 */
static bool decode_line(load *l, table *t, uint64_t offset, size_t size, nl_scanned_line *line)
{
    const nl_record *record;
    bool found = false;
    load_inform_decoder(l);
    nl_decoder_feed(l->decoder, t->text + offset, size);
    while (nl_decoder_next(l->decoder, &record) == NL_OK) { /* a line contains at most one record */
        *line = line_of(l, t, record);
        found = true;
    }
    return found;
}

/* The state of a traversal of a segment's lines in order. */
typedef struct joining {
    segment *s;
    nl_line_scanner *scanner; /* scanner for single lines */
    size_t side_max; /* maximum of t->used: the end of the segment plus space for records in a different format */
    uint64_t done;   /* offset in the table's text of the first byte that is not finished */
} joining;

/*
 * Appends the record of a line to `lines`. `size` is the size of the line with its newline. Returns false if the memory
 * is used up.
 */
static bool load_take_line(joining *j, nl_scanned_line line, size_t size, nl_scanned_line *lines, size_t *count)
{
    load *l = j->s->l;
    table *t = j->s->t;
    if (nl_line_is_plain(line)) {
        lines[(*count)++] = line;
        l->passed_lines++;
        l->passed_bytes += size;
    } else {
        if (t->used > j->side_max)
            return false;
        *count += decode_line(l, t, nl_line_offset(line), size, &lines[*count]);
    }
    j->done += size;
    return true;
}

/*
 * Adds the line that began in an earlier part and ends at offset `end`. Stores it in the free entry before the part's
 * lines, and sets *taken to the number of stored lines. Returns false if the memory is used up.
 */
static bool load_add_seam(joining *j, const part *p, size_t end, size_t *taken)
{
    nl_scanned_line line;
    size_t used, size = end - j->done;
    nl_lines_scan(j->scanner, j->s->t->text + j->done, size, j->done, &line, 1, &used);
    return load_take_line(j, line, size, p->list->lines + p->first - 1, taken);
}

/* Adds the lines of a part, without the lines that contain no record. Returns false if the memory is used up. */
static bool load_add_lines(joining *j, const part *p, size_t *count)
{
    nl_scanned_line *lines = p->list->lines + p->first;
    if (!p->odd) {
        j->s->l->passed_lines += p->count;
        j->s->l->passed_bytes += p->lines_end - p->lines;
        j->done = p->lines_end;
        *count = p->count;
        return true;
    }
    bool fits = true;
    *count = 0;
    for (size_t i = 0; i < p->count && fits; i++) {
        size_t end = i + 1 < p->count ? nl_line_offset(lines[i + 1]) : p->lines_end;
        fits = load_take_line(j, lines[i], end - nl_line_offset(lines[i]), lines, count);
    }
    return fits;
}

/*
 * Adds the lines of all parts. Returns false if the memory is used up. A last line without a newline stays unfinished.
 */
static bool load_join(joining *j)
{
    segment *s = j->s;
    bool fits = true;
    for (size_t i = 0; i < s->count && fits; i++) {
        const part *p = &s->parts[i];
        bool has_newline = p->lines > p->start && s->t->text[p->lines - 1] == '\n';
        if (!has_newline)
            continue;
        size_t before = 0, count = 0;
        fits = load_add_seam(j, p, p->lines, &before) && load_add_lines(j, p, &count);
        table_add_piece(s->t, p->list, p->first - before, before + count);
        table_forget(s->t, s->parts[i > 0 ? i - 1 : i].start, p->end);
    }
    return fits;
}

static void load_add_last(load *l, table *t, uint64_t offset, size_t size)
{
    const nl_record *record;
    load_inform_decoder(l);
    nl_decoder_feed(l->decoder, t->text + offset, size);
    nl_status status = nl_decoder_next(l->decoder, &record);
    nl_decoder_finish(l->decoder);
    if (status != NL_OK)
        status = nl_decoder_next(l->decoder, &record);
    for (; status == NL_OK; status = nl_decoder_next(l->decoder, &record)) {
        line_list *list = &t->lists[0];
        line_list_reserve(list, 1);
        list->lines[list->count++] = line_of(l, t, record);
        table_add_piece(t, list, list->count - 1, 1);
    }
}

/* ---- decoding of the rest ---- */

static bool decode_rest(load *l, table *t)
{
    const nl_record *record;
    l->t = t;
    for (;;) {
        nl_status status = nl_decoder_next(l->decoder, &record);
        if (status == NL_END)
            return true;
        if (status == NL_AGAIN && nl_decoder_is_paused(l->decoder))
            return false;
        if (status == NL_OK) {
            nl_buffer line = {0};
            nl_string text = record->raw;
            if (record->raw_format != l->settings->format) {
                input_make_line(l->settings, record, &line);
                text = (nl_string){line.data, line.size - 1};
            }
            table_add(t, record->time_ns, text);
            nl_buffer_free(&line);
            if (table_is_full(t))
                return false;
            continue;
        }
        nl_buffer_reserve(&l->held, DECODED_AT_ONCE);
        ssize_t got = read_at(l, l->held.data, DECODED_AT_ONCE, l->at);
        if (got > 0) {
            nl_decoder_feed(l->decoder, l->held.data, (size_t)got);
            l->at += got;
            continue;
        }
        if (got < 0) {
            nl_error_set_errno("%s", l->path);
            program_input_failed(&l->settings->reading);
        }
        nl_decoder_finish(l->decoder);
    }
}

/* ---- segments ---- */

/* Finishes a segment of the file. Returns true at the end of the file, and false if the table is full. */
static bool finish_segment(segment *s, joining *j, size_t used)
{
    load *l = s->l;
    table *t = s->t;
    size_t end = s->count > 0 ? s->parts[s->count - 1].end : s->start;
    table_keep_mapped(t, end);
    j->side_max = end + t->memory / SIDE_SHARE;
    bool last = load_join(j) && s->whole && end == s->end;
    l->at += (off_t)(j->done - s->start);
    if (last && j->done < end)
        load_add_last(l, t, j->done, end - j->done);
    if (last)
        return true;
    if (j->done == s->start) { /* no line was finished; if the table is empty, the line is larger than the memory */
        if (t->line_count == 0) {
            table_unmap(t, used);
            l->decoding = true;
            load_inform_decoder(l);
            return decode_rest(l, t);
        }
    }
    return false;
}

bool load_into(load *l, table *t)
{
    if (l->decoding)
        return decode_rest(l, t);
    size_t used = t->used, counts[WORKERS_MAX];
    for (size_t i = 0; i < WORKERS_MAX; i++)
        counts[i] = t->lists[i].count;
    size_t piece = t->memory / PIECES_IN_MEMORY;
    segment s = {.l = l,
                 .t = t,
                 .piece = piece > PIECE_MAX   ? PIECE_MAX
                          : piece < PIECE_MIN ? PIECE_MIN
                                              : piece,
                 .lock = PTHREAD_MUTEX_INITIALIZER};
    if (!table_map(t, l->fd, l->at, &s.start, &s.end, &s.whole)) {
        l->decoding = true;
        return decode_rest(l, t);
    }
    workers_run(s.end - s.start <= s.piece ? 1 : workers_count(), read_parts, &s);
    if (s.met_nul) {
        table_unmap(t, used);
        for (size_t i = 0; i < WORKERS_MAX; i++)
            t->lists[i].count = counts[i];
        free(s.parts);
        l->decoding = true;
        load_inform_decoder(l);
        return decode_rest(l, t);
    }
    joining j = {
        .s = &s, .done = s.start, .scanner = nl_line_scanner_new(l->settings->format, l->settings->reading.fraction)};
    bool end = finish_segment(&s, &j, used);
    nl_line_scanner_free(j.scanner);
    free(s.parts);
    return end;
}
