#include "config.h"

#include "file_inputs.h"

#include "base/buffer.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "flush.h"
#include "input/file_records.h"
#include "input/position_log.h"
#include "numbered_input.h"
#include "output/outputs.h"
#include "program/program.h"
#include "server.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    TICK_MS = 200,
    SCAN_NS = 1000000000, /* interval between searches for new files */
    READ_SIZE = 256 << 10,
    IDLE_S = 1,      /* time without growth after which the last record of a file is complete */
    COPY_S = 5,      /* time after its latest change during which a file may be an incomplete copy of a followed file */
    DAMAGED_S = 60,  /* time after its latest change during which an incomplete compressed file is read again */
    MISSING_S = 5,   /* time to search for missing content, because a rename may be in progress */
    REMOVED_S = 5,   /* a removed file is read for this time after it last grew */
    RENAMED_S = 600, /* a file that is no longer at its path is read for this time after it last grew */
    FINISHED_MAX = 256, /* maximum number of remembered finished files whose paths match no pattern */
    COMPARED_SIZE = 64 << 10,
    DIRECTORY_MAX = 10000, /* maximum number of files that are examined in a search for a copy */
};

typedef struct followed {
    struct followed *next;
    file_state state;
    file_content *content; /* NULL: closed */
    file_reader *reader;   /* NULL: the format is unknown */
    int64_t grown_ns;      /* time at which netlogd last read a piece, or began to follow the file */
    struct timespec seen;  /* of a finished file: the file's modification time when its content was last compared */
    uint64_t first;        /* hash of the first bytes when the file was found; used until netlogd has a place */
    size_t first_size;     /* at most FILE_MARK_SIZE; 0: not known */
    int64_t missing_ns;    /* time at which netlogd first failed to find the content; 0: found */
    bool lost;             /* missing content was reported */
    uint64_t scan;         /* number of the latest search in which the file's path matched a pattern */
    bool unreadable;       /* a failure to open the file was reported */
    uint64_t records;
} followed;

static struct {
    struct event *tick;
    position_log *log;
    followed *files;
    unsigned latest_id;
    uint64_t next;      /* number of the next record */
    uint64_t records;   /* number of records since netlogd started */
    file_piece *pieces; /* pieces in the log at the start; those from piece_at on must be read again */
    size_t piece_count, piece_at;
    int64_t awaited_ns; /* time at which the content of a piece was first missing; 0: never */
    int64_t scanned_ns;
    uint64_t scan; /* number of the latest search for new files */
    numbered_input *input;
    nl_buffer bytes;
    bool unacknowledged; /* pieces were put since the latest line "stored" */
    bool reported;       /* a failure to write the log was reported */
} inputs;

/* ---- the list of files ---- */

static followed *find_file(unsigned id)
{
    followed *f = inputs.files;
    while (f != NULL && f->state.id != id)
        f = f->next;
    return f;
}

static followed *add_followed(const file_state *state)
{
    followed *f = nl_memory_check(calloc(1, sizeof *f)), **end = &inputs.files;
    while (*end != NULL)
        end = &(*end)->next;
    *end = f;
    f->state = *state;
    f->state.path = program_copy(state->path);
    f->grown_ns = nl_monotonic_ns();
    if (state->id > inputs.latest_id)
        inputs.latest_id = state->id;
    return f;
}

static void close_followed(followed *f)
{
    file_content_close(f->content);
    file_reader_free(f->reader);
    f->content = NULL;
    f->reader = NULL;
}

static void remove_followed(followed *f)
{
    followed **at = &inputs.files;
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    close_followed(f);
    free(f->state.path);
    free(f);
}

/*
 * Removes the oldest finished files from the list if there are too many. Keeps the files whose paths match a pattern.
 */
static void forget_finished(void)
{
    size_t count = 0;
    for (const followed *f = inputs.files; f != NULL; f = f->next)
        count += f->state.finished && f->scan != inputs.scan;
    for (followed *f = inputs.files, *next; f != NULL && count > FINISHED_MAX; f = next) {
        next = f->next;
        if (!f->state.finished || f->scan == inputs.scan)
            continue;
        remove_followed(f);
        count--;
    }
}

static void set_path(followed *f, const char *path, const struct stat *status)
{
    char *copy = program_copy(path);
    free(f->state.path);
    f->state.path = copy;
    f->state.device = status->st_dev;
    f->state.inode = status->st_ino;
}

static bool is_inode(const followed *f, const struct stat *status)
{
    return f->state.device == status->st_dev && f->state.inode == status->st_ino;
}

/*
 * Writes the state of a file to the log. Reports a failure once. Callers may ignore the failure, because netlogd reads
 * no further pieces until it can write to the log.
 */
static bool note_file(const followed *f)
{
    bool good = position_log_add_file(inputs.log, &f->state) == NL_OK;
    if (!good && !inputs.reported)
        program_error("%s; netlogd does not read files until it can write", nl_error_message());
    inputs.reported = !good;
    return good;
}

/*
 * Adds a file with a new ID and the other members of a state. Returns NULL if the log of positions cannot be written; a
 * later search then finds the file.
 */
static followed *add_file(const file_state *state)
{
    file_state fresh = *state;
    fresh.id = inputs.latest_id + 1;
    followed *f = add_followed(&fresh);
    f->scan = inputs.scan;
    if (note_file(f))
        return f;
    remove_followed(f);
    return NULL;
}

static void finish_followed(followed *f)
{
    f->state.finished = true;
    note_file(f);
    close_followed(f);
}

/* ---- finding content ---- */

/* Opens the file at path and sets *status. Returns the open file if its content matches the place of f, otherwise
 * NULL. */
static file_content *open_matching(const followed *f, const char *path, struct stat *status)
{
    file_content *c = file_content_open(path);
    if (c != NULL && (fstat(file_content_descriptor(c), status) != 0 || !file_content_has(c, &f->state.place))) {
        file_content_close(c);
        c = NULL;
    }
    return c;
}

/* Opens the file at the path of f. Returns the open file if its inode and content still match f, otherwise NULL. */
static file_content *open_at_path(const followed *f)
{
    struct stat status;
    file_content *c = open_matching(f, f->state.path, &status);
    if (c != NULL && !is_inode(f, &status)) {
        file_content_close(c);
        c = NULL;
    }
    return c;
}

/*
 * Returns whether the file with this status is a followed file other than f. The other file must be open, because a new
 * file may have the inode of a closed file.
 */
static bool is_read_as_another(const followed *f, const struct stat *status)
{
    for (const followed *other = inputs.files; other != NULL; other = other->next)
        if (other != f && other->content != NULL && is_inode(other, status))
            return true;
    return false;
}

/* Returns the directory of a path, with a slash. The caller frees it. */
static char *directory_of_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? program_format("%.*s", (int)(slash - path + 1), path) : program_copy("./");
}

/* The best match in a search for content. */
typedef struct match {
    file_content *content;
    char *path;
    struct stat status;
    bool same; /* the match has the inode of the followed file; otherwise, it is a copy */
} match;

/*
 * Returns whether match a is better than match b. The file itself is better than a copy, and a copy is better than a
 * compressed copy. Otherwise, the file that changed later is better.
 */
static bool is_better(const match *a, const match *b)
{
    bool a_packed = file_content_is_packed(a->content), b_packed = file_content_is_packed(b->content);
    if (a->same != b->same)
        return a->same;
    if (a_packed != b_packed)
        return b_packed;
    return a->status.st_mtim.tv_sec > b->status.st_mtim.tv_sec;
}

/* Replaces the best match if the file at m->path is a better match. Takes ownership of the path. */
static void compare_match(const followed *f, match *m, match *best)
{
    m->content = open_matching(f, m->path, &m->status);
    m->same = m->content != NULL && is_inode(f, &m->status);
    bool possible = m->content != NULL && (m->same || f->state.place.offset > 0) && !is_read_as_another(f, &m->status);
    if (possible && (best->content == NULL || is_better(m, best))) {
        match worse = *best;
        *best = *m;
        *m = worse;
    }
    file_content_close(m->content);
    free(m->path);
}

/*
 * Searches the directory of f for the best match, and opens it as the content of f. May miss a file that is renamed
 * during the search.
 */
static void search_directory(followed *f)
{
    char *directory = directory_of_path(f->state.path);
    match best = {0};
    DIR *d = opendir(directory);
    struct dirent *entry;
    for (int i = 0; d != NULL && i < DIRECTORY_MAX && (entry = readdir(d)) != NULL; i++)
        compare_match(f, &(match){.path = program_format("%s%s", directory, entry->d_name)}, &best);
    if (d != NULL)
        closedir(d);
    free(directory);
    if (best.content == NULL)
        return;
    f->content = best.content;
    f->state.ending = f->state.ending || !best.same || file_content_is_packed(best.content);
    set_path(f, best.path, &best.status);
    free(best.path);
    note_file(f);
}

/* Reports once that the content is missing. Reports nothing if netlogd has not read any of the content. */
static void report_missing(followed *f)
{
    if (f->state.place.offset == 0 || f->lost)
        return;
    f->lost = true;
    program_error("%s: the file was removed, replaced or truncated; lines that netlogd had not read are lost",
                  f->state.path);
    nl_write(server_log(), NL_WARNING, "Netlogd.InputLost", "FILE=%s OFFSET=%" PRIu64, f->state.path,
             f->state.place.offset);
}

/*
 * Opens the content of f. Returns false if netlogd does not find it. Searches the directory when the content is first
 * missing, and then only in ticks that also search for new files.
 */
static bool open_followed(followed *f, int64_t now_ns)
{
    f->content = open_at_path(f);
    if (f->content == NULL && (f->missing_ns == 0 || now_ns - inputs.scanned_ns >= SCAN_NS))
        search_directory(f);
    if (f->content == NULL) {
        f->missing_ns = f->missing_ns == 0 ? now_ns : f->missing_ns;
        return false;
    }
    f->missing_ns = 0;
    f->lost = false;
    return true;
}

/*
 * Returns whether the file exists but cannot be opened, for example because of its permissions. Reports the failure
 * once.
 */
static bool is_unreadable(followed *f)
{
    struct stat status;
    if (stat(f->state.path, &status) != 0 || !is_inode(f, &status))
        return false;
    file_content *c = file_content_open(f->state.path);
    bool unreadable = c == NULL;
    if (unreadable && !f->unreadable)
        program_print_error();
    f->unreadable = unreadable;
    file_content_close(c);
    return unreadable;
}

/* ---- reading a piece ---- */

typedef enum piece_result {
    PIECE_PUT,
    PIECE_NONE,    /* no whole record */
    PIECE_CHANGED, /* the file no longer has this content */
    PIECE_FAILED,
} piece_result;

/*
 * Creates the reader of a file. Returns PIECE_NONE if the format cannot be determined yet or is not supported, and
 * PIECE_FAILED if the content cannot be read, for example because a compressed file is incomplete.
 */
static piece_result make_reader(followed *f)
{
    char *head = nl_memory_check(malloc(FILE_HEAD_SIZE));
    ssize_t got = file_content_read(f->content, 0, head, FILE_HEAD_SIZE);
    bool idle = f->state.ending || nl_monotonic_ns() - f->grown_ns >= IDLE_S * NL_NS_PER_SECOND;
    if (got > 0 &&
        (idle || f->state.format[0] != '?' || f->state.place.offset > 0 || memchr(head, '\n', (size_t)got) != NULL)) {
        f->reader = file_reader_new(f->state.path, server_host(), server_settings()->fraction, f->state.format,
                                    (nl_string){head, (size_t)got});
        if (f->reader == NULL) {
            program_print_error();
            finish_followed(f);
        }
    }
    free(head);
    if (f->reader == NULL)
        return got < 0 ? PIECE_FAILED : PIECE_NONE;
    if (f->state.format[0] != '?')
        return PIECE_PUT;
    snprintf(f->state.format, sizeof f->state.format, "%s", file_reader_format(f->reader));
    return note_file(f) ? PIECE_PUT : PIECE_NONE;
}

/* Returns the place after size bytes of inputs.bytes, which begin at offset `start`. */
static file_place place_after(const followed *f, uint64_t start, size_t size)
{
    file_place to = {.offset = start + size, .head = f->state.place.head};
    size_t mark = file_mark_size(to.offset);
    if (f->state.place.offset < FILE_MARK_SIZE) /* in this case, `start` is 0 */
        to.head = file_mark_hash(inputs.bytes.data, mark);
    to.tail = file_mark_hash(inputs.bytes.data + size - mark, mark);
    return to;
}

/*
 * Reads the last bytes before the place, and up to `size` bytes after it, into inputs.bytes. Checks that the content
 * still matches the place. Returns the number of bytes after the place, or -1 with *result set.
 */
static ssize_t read_next(followed *f, size_t size, piece_result *result)
{
    const file_place *place = &f->state.place;
    size_t before = file_mark_size(place->offset);
    char mark[FILE_MARK_SIZE];
    inputs.bytes.size = 0;
    nl_memory_check(nl_buffer_reserve(&inputs.bytes, before + size) ? &inputs : NULL);
    ssize_t got = file_content_read(f->content, place->offset - before, inputs.bytes.data, before + size);
    *result = PIECE_FAILED;
    if (got < 0)
        return -1;
    *result = PIECE_CHANGED;
    /* The head is read after the rest, because the file may be truncated between two reads. */
    if ((size_t)got < before)
        return -1;
    if (before > 0 && (file_mark_hash(inputs.bytes.data, before) != place->tail ||
                       file_content_read(f->content, 0, mark, before) != (ssize_t)before ||
                       file_mark_hash(mark, before) != place->head))
        return -1;
    return got - (ssize_t)before;
}

/*
 * Logs the first `whole` bytes after the place as a piece, and puts its records. If `again` is not NULL, the piece is
 * in the log already.
 */
static piece_result put_piece(followed *f, size_t whole, const file_piece *again)
{
    uint64_t from = f->state.place.offset;
    size_t before = file_mark_size(from), header = file_reader_header_size(f->reader);
    const char *data = inputs.bytes.data + before;
    size_t skip = from < header ? (header - from < whole ? (size_t)(header - from) : whole) : 0;
    file_piece piece = {.id = f->state.id, .first = inputs.next, .from = from};
    piece.to = place_after(f, from - before, before + whole);
    exporter *to = numbered_input_begin(inputs.input, inputs.next);
    if (whole > skip)
        file_reader_read(f->reader, data + skip, whole - skip, to);
    piece.count = numbered_input_end(inputs.input);
    if (again == NULL && position_log_add_piece(inputs.log, &piece) != NL_OK) {
        if (!inputs.reported)
            program_error("%s; netlogd does not read files until it can write", nl_error_message());
        inputs.reported = true;
        return PIECE_FAILED;
    }
    inputs.reported = false;
    f->state.place = piece.to;
    f->records += piece.count;
    inputs.records += piece.count;
    inputs.next += piece.count;
    inputs.unacknowledged = true;
    numbered_input_put(inputs.input, whole);
    return PIECE_PUT;
}

/* Reads and puts the next whole records of a file. */
static piece_result read_piece(followed *f)
{
    size_t maximum = server_settings()->max_record_size;
    bool idle = f->state.ending || nl_monotonic_ns() - f->grown_ns >= IDLE_S * NL_NS_PER_SECOND;
    piece_result result = f->reader == NULL ? make_reader(f) : PIECE_PUT;
    if (result != PIECE_PUT)
        return result;
    for (size_t size = READ_SIZE;; size = 2 * size < maximum ? 2 * size : maximum) {
        ssize_t got = read_next(f, size, &result);
        if (got < 0)
            return result;
        if (got == 0)
            return PIECE_NONE;
        const char *data = inputs.bytes.data + file_mark_size(f->state.place.offset);
        bool at_end = (size_t)got < size;
        size_t whole =
            at_end && f->state.ending ? (size_t)got : file_reader_cut(f->reader, data, (size_t)got, at_end && idle);
        if (whole == 0 && !at_end && size >= maximum)
            whole = (size_t)got; /* a record that is too long becomes several records */
        if (whole > 0)
            return put_piece(f, whole, NULL);
        if (at_end)
            return PIECE_NONE;
    }
}

/*
 * Reads a piece again, and puts it. Recognizes the content by the place after the piece, because every content matches
 * the place before the first piece (offset 0).
 */
static piece_result read_same_piece(followed *f, const file_piece *piece, int64_t now_ns)
{
    size_t size = (size_t)(piece->to.offset - piece->from);
    piece_result result = PIECE_CHANGED;
    file_place from = f->state.place;
    f->state.place = piece->to;
    if (f->content != NULL && !file_content_has(f->content, &piece->to))
        close_followed(f);
    bool opened = f->content != NULL || open_followed(f, now_ns);
    f->state.place = from;
    if (!opened || (f->reader == NULL && make_reader(f) != PIECE_PUT))
        return PIECE_CHANGED;
    ssize_t got = read_next(f, size, &result);
    if (got < 0)
        return result;
    size_t before = file_mark_size(from.offset);
    file_place to = got == (ssize_t)size ? place_after(f, from.offset - before, before + size) : from;
    bool same = to.offset == piece->to.offset && to.head == piece->to.head && to.tail == piece->to.tail;
    return same ? put_piece(f, size, piece) : PIECE_CHANGED;
}

/*
 * Reads a piece again that netlogd had read before it was killed. Returns false if the content is missing now, but may
 * be found later. The caller then tries again, because the pieces must be put in order.
 */
static bool read_again(const file_piece *piece, int64_t now_ns)
{
    followed *f = find_file(piece->id);
    bool possible = f != NULL && f->state.place.offset == piece->from && piece->to.offset - piece->from <= UINT32_MAX;
    if (!possible || read_same_piece(f, piece, now_ns) != PIECE_PUT) {
        if (inputs.awaited_ns == 0)
            inputs.awaited_ns = now_ns;
        if (possible && now_ns - inputs.awaited_ns < MISSING_S * NL_NS_PER_SECOND)
            return false;
        if (f != NULL) {
            f->state.place = piece->to;
            report_missing(f);
        }
    }
    inputs.next = piece->first + piece->count;
    return true;
}

/* ---- following ---- */

/*
 * Begins to read the content that has replaced the content of f at the same path and inode. If netlogd does not find
 * the rest of the old content now, follow_file searches again.
 */
static void follow_replaced(followed *f, int64_t now_ns)
{
    file_state fresh = f->state;
    fresh.finished = fresh.ending = false;
    fresh.place = (file_place){0};
    strcpy(fresh.format, "?");
    followed *added = add_file(&fresh);
    if (added != NULL)
        open_followed(added, now_ns);
    close_followed(f);
    f->state.inode = 0; /* the inode belongs to the new content */
    if (!open_followed(f, now_ns))
        note_file(f);
}

/* Returns whether netlogd no longer expects f to grow. netlogd must have read all whole records of f. */
static bool is_over(const followed *f, const struct stat *status, int64_t now_ns)
{
    struct stat at_path;
    int64_t silent_ns = now_ns - f->grown_ns;
    if (f->state.ending)
        return true;
    if (status->st_nlink == 0)
        return silent_ns >= REMOVED_S * NL_NS_PER_SECOND;
    return silent_ns >= RENAMED_S * NL_NS_PER_SECOND && (stat(f->state.path, &at_path) != 0 || !is_inode(f, &at_path));
}

/* Reads a piece of a file. Returns whether there may be more to read now. */
static bool follow_file(followed *f, int64_t now_ns)
{
    struct stat status;
    if (f->state.finished)
        return false;
    if (f->content == NULL && !open_followed(f, now_ns)) {
        if (is_unreadable(f) || now_ns - f->missing_ns < MISSING_S * NL_NS_PER_SECOND)
            return false;
        report_missing(f);
        f->state.inode = 0; /* a new file may have the same inode */
        finish_followed(f);
        return false;
    }
    if (file_content_is_packed(f->content))
        f->state.ending = true;
    if (fstat(file_content_descriptor(f->content), &status) != 0)
        return false;
    uint64_t before = f->state.place.offset;
    piece_result result = read_piece(f);
    if (f->state.finished)
        return false;
    if (result == PIECE_CHANGED) {
        follow_replaced(f, now_ns);
        return true;
    }
    if (result == PIECE_PUT && f->state.place.offset > before)
        f->grown_ns = now_ns;
    else if (result == PIECE_NONE && is_over(f, &status, now_ns)) {
        if (f->state.ending) {
            finish_followed(f);
            return false;
        }
        f->state.ending = true; /* reads a last line without a newline */
        note_file(f);
        return true;
    } else if (result == PIECE_FAILED && f->state.ending &&
               nl_time_now_ns() - status.st_ctim.tv_sec * NL_NS_PER_SECOND >= DAMAGED_S * NL_NS_PER_SECOND) {
        program_error("%s: %s", f->state.path, nl_error_message());
        finish_followed(f);
        return false;
    }
    return result == PIECE_PUT;
}

/* ---- new files ---- */

/* Returns whether the file with this status is at the path of an output. */
static bool is_output(const struct stat *status)
{
    struct stat own;
    for (size_t i = 0; outputs_get(i) != NULL; i++) {
        const char *path = output_get_options(outputs_get(i))->path;
        if (path != NULL && stat(path, &own) == 0 && own.st_dev == status->st_dev && own.st_ino == status->st_ino)
            return true;
    }
    return false;
}

/* Returns whether `of` has the last bytes of c at the same offset. */
static bool has_end(file_content *of, file_content *c)
{
    char mine[FILE_MARK_SIZE], other[FILE_MARK_SIZE];
    struct stat status;
    if (fstat(file_content_descriptor(c), &status) != 0)
        return false;
    size_t size = file_mark_size((uint64_t)status.st_size);
    uint64_t from = (uint64_t)status.st_size - size;
    return file_content_read(c, from, mine, size) == (ssize_t)size &&
           file_content_read(of, from, other, size) == (ssize_t)size && memcmp(mine, other, size) == 0;
}

/*
 * Returns whether the first bytes of two contents are equal. Compares at most COMPARED_SIZE bytes, and no more than the
 * shorter content has. Sets *contained to whether `of` seems to contain all of c. Also compares the last bytes of c if
 * c has at least COMPARED_SIZE bytes and is not compressed. For compressed content, the first bytes suffice, because it
 * does not grow.
 */
static bool is_same_beginning(file_content *c, file_content *of, bool *contained)
{
    char *mine = nl_memory_check(malloc(COMPARED_SIZE)), *other = nl_memory_check(malloc(COMPARED_SIZE));
    ssize_t size = file_content_read(c, 0, mine, COMPARED_SIZE), got = file_content_read(of, 0, other, COMPARED_SIZE);
    ssize_t common = size < got ? size : got;
    bool same = common > 0 && memcmp(mine, other, (size_t)common) == 0;
    free(mine);
    free(other);
    *contained = same && common == size && (size < COMPARED_SIZE || file_content_is_packed(c) || has_end(of, c));
    return same;
}

/* A new file that is compared with the known files. */
typedef struct candidate {
    const char *path;
    const struct stat *status;
    file_content *content;
    char head[FILE_MARK_SIZE]; /* its first bytes */
    ssize_t head_size;         /* -1: they cannot be read */
    bool recent;               /* it changed recently, and may be incomplete */
    const followed *like; /* a file that begins like the candidate, although the candidate is not its copy; or NULL */
} candidate;

/*
 * Returns whether the candidate may be a copy of f. Sets c->like to f if the candidate is not a copy, but begins like
 * f.
 *
 * Until f is truncated, f contains all bytes of its copy. The candidate counts as a copy if all its bytes are in f and
 * it changed recently, because it may be an incomplete copy. It also counts as a copy if all its bytes are in f and its
 * path begins with the path of f, because f may not be truncated yet. After the truncation of f, the copy is complete
 * and matches the place of f.
 */
static bool may_be_copy(candidate *c, followed *f)
{
    uint64_t offset = f->state.place.offset, first = offset > 0 ? f->state.place.head : f->first;
    size_t size = offset > 0 ? file_mark_size(offset) : f->first_size;
    bool named = strncmp(c->path, f->state.path, strlen(f->state.path)) == 0, contained = false;
    if (offset == 0 && !c->recent && !named)
        return false;
    if (size > 0 && c->head_size >= (ssize_t)size && file_mark_hash(c->head, size) != first)
        return false;
    file_content *opened = f->content == NULL ? open_at_path(f) : NULL, *of = f->content != NULL ? f->content : opened;
    bool same = of != NULL && is_same_beginning(c->content, of, &contained), copy = contained && (c->recent || named);
    /* f may be truncated during the comparison, so its place is checked after that. */
    if (of == NULL || !file_content_has(of, &f->state.place))
        copy = offset > 0 && !f->state.finished && file_content_has(c->content, &f->state.place);
    if (same && !copy)
        c->like = f;
    file_content_close(opened);
    return copy;
}

/* Returns whether the content is empty, or is compressed and incomplete within its first COMPARED_SIZE bytes. */
static bool is_unfinished(file_content *c)
{
    char *start = nl_memory_check(malloc(COMPARED_SIZE));
    ssize_t got = file_content_read(c, 0, start, COMPARED_SIZE);
    free(start);
    return got <= 0;
}

/*
 * Continues f, which is finished or missing, with the candidate. If f is finished and still has its own file, the
 * candidate becomes another known file.
 */
static void continue_with(const candidate *c, followed *f)
{
    file_content *own = open_at_path(f);
    file_state copy = f->state;
    file_content_close(own);
    if (own != NULL && !f->state.finished) /* its own file has appeared, and is read next */
        return;
    if (own != NULL) {
        copy.path = (char *)(uintptr_t)c->path; /* add_followed copies it */
        copy.device = c->status->st_dev;
        copy.inode = c->status->st_ino;
        copy.finished = false;
        copy.ending = true;
        add_file(&copy);
        return;
    }
    set_path(f, c->path, c->status);
    f->scan = inputs.scan;
    f->missing_ns = 0;
    f->state.finished = false;
    f->state.ending = true;
    note_file(f);
}

/*
 * Returns whether the candidate is a copy of a known file, or can be an incomplete copy. In both cases, netlogd must
 * not read it from its beginning now. If the known file is finished or missing, continues with the copy. Reports a file
 * that is not a copy, but begins like a known file, because its lines may be stored twice.
 */
static bool is_copy(candidate *c)
{
    bool copy = c->recent && is_unfinished(c->content);
    for (followed *f = inputs.files; f != NULL && !copy; f = f->next) {
        bool enough =
            f->state.place.offset > FILE_MARK_SIZE || (f->state.place.offset > 0 && file_content_is_packed(c->content));
        if ((f->state.finished || f->missing_ns != 0) && enough && file_content_has(c->content, &f->state.place)) {
            continue_with(c, f);
            copy = true;
        } else {
            copy = may_be_copy(c, f);
        }
    }
    if (!copy && c->like != NULL) {
        program_error("%s: begins like %s; if this file is a copy, its lines are stored twice", c->path,
                      c->like->state.path);
        nl_write(server_log(), NL_WARNING, "Netlogd.InputCopy", "FILE=%s OF=%s", c->path, c->like->state.path);
    }
    return copy;
}

/*
 * Returns whether f is the file with this status. If f is finished, compares the content, because a new file may have
 * the inode of f. Follows f again if f has grown.
 */
static bool is_known_file(followed *f, const char *path, const struct stat *status)
{
    if (!is_inode(f, status))
        return false;
    if (!f->state.finished || (f->seen.tv_sec == status->st_mtim.tv_sec && f->seen.tv_nsec == status->st_mtim.tv_nsec))
        return true;
    struct stat opened;
    file_content *c = open_matching(f, path, &opened);
    bool same = c != NULL,
         grown = same && !file_content_is_packed(c) && (uint64_t)status->st_size > f->state.place.offset;
    file_content_close(c);
    f->seen = status->st_mtim;
    if (!same)
        f->state.inode = 0;
    else if (grown)
        f->state.finished = f->state.ending = false; /* the last line may be incomplete again */
    return same;
}

/* Adds the file at path unless it is a copy of a known file. */
static void add_path(const char *path, const struct stat *status)
{
    candidate c = {.path = path, .status = status, .content = file_content_open(path)};
    followed *f = NULL;
    if (c.content != NULL)
        c.head_size = file_content_read(c.content, 0, c.head, sizeof c.head);
    c.recent = nl_time_now_ns() - status->st_ctim.tv_sec * NL_NS_PER_SECOND < COPY_S * NL_NS_PER_SECOND;
    if (c.content == NULL || !is_copy(&c))
        f = add_file(&(file_state){.device = status->st_dev,
                                   .inode = status->st_ino,
                                   .format = "?",
                                   .path = (char *)(uintptr_t)path}); /* add_followed copies it */
    if (f != NULL && c.head_size > 0) {
        f->first_size = (size_t)c.head_size;
        f->first = file_mark_hash(c.head, f->first_size);
    }
    file_content_close(c.content);
}

static void find_path(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || strchr(path, '\n') != NULL || is_output(&status))
        return;
    followed *known = inputs.files;
    while (known != NULL && !is_known_file(known, path, &status))
        known = known->next;
    if (known != NULL) {
        known->scan = inputs.scan;
        if (strcmp(known->state.path, path) != 0) {
            set_path(known, path, &status);
            note_file(known);
        }
        return;
    }
    add_path(path, &status);
}

static void scan_patterns(int64_t now_ns)
{
    const settings *s = server_settings();
    if (inputs.scanned_ns != 0 && now_ns - inputs.scanned_ns < SCAN_NS)
        return;
    inputs.scanned_ns = now_ns;
    inputs.scan++;
    for (size_t i = 0; i < s->input_count; i++) {
        glob_t found = {0};
        if (glob(s->inputs[i], 0 /* sorted, so that a file precedes its compressed copy */, NULL, &found) == 0)
            for (size_t k = 0; k < found.gl_pathc; k++)
                find_path(found.gl_pathv[k]);
        globfree(&found);
    }
    forget_finished();
    numbered_input_touch(inputs.input);
}

/* ---- the event loop ---- */

static void on_tick(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what, (void)user;
    int64_t now_ns = nl_monotonic_ns();
    bool more = false, may = !flush_is_paused() && !outputs_are_blocked() && !server_is_stopping();
    if (may && inputs.piece_at < inputs.piece_count) {
        more = read_again(&inputs.pieces[inputs.piece_at], now_ns);
        inputs.piece_at += more;
        for (followed *f = inputs.files; f != NULL && inputs.piece_at == inputs.piece_count; f = f->next)
            if (f->state.finished)
                close_followed(f);
    } else if (may) {
        followed *f = inputs.files, *next;
        for (; f != NULL && !flush_is_paused() && !outputs_are_blocked(); f = next) {
            next = f->next;
            more = follow_file(f, now_ns) || more;
        }
        if (f == NULL) /* the copies of all truncated files must be found first */
            scan_patterns(now_ns);
    }
    if (more)
        event_active(inputs.tick, EV_TIMEOUT, 0);
    else
        event_add(inputs.tick, &(struct timeval){.tv_usec = TICK_MS * 1000});
}

static void replace_log(void)
{
    if (position_log_begin_replacement(inputs.log, inputs.next) != NL_OK)
        return;
    for (const followed *f = inputs.files; f != NULL; f = f->next)
        position_log_add_file(inputs.log, &f->state);
    position_log_end_replacement(inputs.log);
}

void file_inputs_acknowledge(void)
{
    if (inputs.log == NULL || !inputs.unacknowledged || inputs.piece_at < inputs.piece_count)
        return;
    if (position_log_is_large(inputs.log))
        replace_log();
    else if (position_log_add_stored(inputs.log, inputs.next) != NL_OK)
        return;
    inputs.unacknowledged = false;
}

/* ---- start and end ---- */

static void load_file(void *user, const file_state *state)
{
    followed *f = find_file(state->id);
    (void)user;
    if (f == NULL) {
        add_followed(state);
        return;
    }
    char *path = program_copy(state->path);
    file_place place = f->state.place;
    free(f->state.path);
    f->state = *state;
    f->state.path = path;
    f->state.place = place;
}

static void load_piece(void *user, const file_piece *piece)
{
    (void)user;
    inputs.pieces = nl_memory_check(reallocarray(inputs.pieces, inputs.piece_count + 1, sizeof *inputs.pieces));
    inputs.pieces[inputs.piece_count++] = *piece;
}

static void load_stored(void *user, uint64_t next)
{
    (void)user;
    inputs.next = next;
}

/* Moves the place of each file past the pieces that the outputs have stored. netlogd reads the other pieces again. */
static void apply_pieces(void)
{
    uint64_t stored = numbered_input_get_stored(inputs.input, inputs.next);
    if (stored < inputs.next) /* the outputs lack records before inputs.next, because a piece was lost */
        stored = inputs.next;
    for (; inputs.piece_at < inputs.piece_count; inputs.piece_at++) {
        const file_piece *piece = &inputs.pieces[inputs.piece_at];
        followed *f = find_file(piece->id);
        inputs.next = piece->first;
        if (piece->first + piece->count > stored)
            return;
        if (f != NULL)
            f->state.place = piece->to;
        inputs.next += piece->count;
    }
}

void file_inputs_start(void)
{
    if (server_settings()->input_count == 0)
        return;
    position_visitor visitor = {.on_file = load_file, .on_piece = load_piece, .on_stored = load_stored};
    char *path = outputs_name_beside(".inputs");
    if (path == NULL)
        program_fail(PROGRAM_PROBLEM, "--input requires an output with a file or a spool; netlogd stores its positions "
                                      "in the input files beside this output");
    inputs.log = position_log_open(path, &visitor);
    if (inputs.log == NULL)
        program_fail(PROGRAM_PROBLEM, "%s", nl_error_message());
    free(path);
    inputs.input = numbered_input_new("file", position_log_stream(inputs.log));
    apply_pieces();
    inputs.tick = server_new_event(-1, 0, on_tick, NULL);
    event_priority_set(inputs.tick, SERVER_PRIORITY_TURN);
    event_active(inputs.tick, EV_TIMEOUT, 0);
    for (size_t i = 0; i < server_settings()->input_count; i++)
        nl_write(server_log(), NL_USAGE, "Netlogd.Input", "FILE=%s", server_settings()->inputs[i]);
}

void file_inputs_describe(request *r)
{
    for (const followed *f = inputs.files; f != NULL; f = f->next) {
        nl_record *record = request_record(r, NL_USAGE, "Netlogd.Input");
        request_add_text(record, "FILE", f->state.path);
        request_add_text(record, "FORMAT", f->state.format);
        nl_record_add_uint(record, "OFFSET", f->state.place.offset);
        nl_record_add_uint(record, "RECORDS", f->records);
        nl_record_add_bool(record, "FINISHED", f->state.finished);
        request_put(r, record);
    }
}

file_inputs_counts file_inputs_count(void)
{
    file_inputs_counts counts = {.records = inputs.records};
    for (const followed *f = inputs.files; f != NULL; f = f->next)
        counts.files++;
    return counts;
}

void file_inputs_free(void)
{
    if (inputs.log == NULL)
        return;
    event_free(inputs.tick);
    if (!inputs.unacknowledged && inputs.piece_at == inputs.piece_count)
        replace_log();
    while (inputs.files != NULL)
        remove_followed(inputs.files); /* NOLINT(clang-analyzer-unix.Malloc): the list changes */
    position_log_close(inputs.log);
    numbered_input_free(inputs.input);
    nl_buffer_free(&inputs.bytes);
    free(inputs.pieces);
}
