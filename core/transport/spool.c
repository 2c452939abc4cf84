#include "config.h"

#include "transport/spool.h"

#include "base/descriptor.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/monotonic.h"
#include "base/private_directory.h"
#include "record/block_read.h"
#include "transport/destination.h"
#include "base/buffer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SEGMENTS = 16,         /* files that a full spool has, about: what drop oldest takes at a time */
    HEADER_SIZE = 24,      /* segment_header */
    PEEK_SIZE = 256 << 10, /* bytes that are delivered at a time, unless a put was larger */
    PUT_HEAD = 4,          /* each put stands behind its size */
};

static const char MAGIC[8] = "NLSPOOL1";

typedef struct segment_header {
    char magic[8];
    uint64_t delivered; /* where what is not delivered begins */
    uint64_t lost;      /* records that were dropped before this file's */
} segment_header;

_Static_assert(sizeof(segment_header) == HEADER_SIZE, "no padding");

typedef struct segment {
    struct segment *next; /* newer */
    char name[64];
    int fd;
    nl_identity identity; /* of fd */
    uint64_t size;        /* bytes, header and all */
    bool unsafe;          /* something was written to it that nl_spool_sync has not made safe */
    segment_header header;
} segment;

struct nl_spool {
    char *folder;
    int folder_fd;
    nl_identity identity; /* of folder_fd */
    size_t limit;
    bool oldest;
    uint64_t used;   /* bytes of all segments */
    uint64_t name;   /* random, the first part of names */
    unsigned number; /* the second */
    segment *segments, **last;
    int64_t unsafe_since_ns; /* on the monotonic clock; 0: everything is on the disk */
};

static bool lock(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &whole) == 0;
}

static void append(nl_spool *spool, segment *s)
{
    *spool->last = s;
    spool->last = &s->next;
    spool->used += s->size;
}

static void remove_first(nl_spool *spool)
{
    segment *first = spool->segments;
    spool->segments = first->next;
    if (spool->segments == NULL)
        spool->last = &spool->segments;
    spool->used -= first->size;
    unlinkat(spool->folder_fd, first->name, 0);
    nl_identity_close(&first->identity, first->fd);
    free(first);
}

/* NULL when there is no memory; the descriptor stays the caller's then. */
static segment *new_segment(const char *name, int fd, uint64_t size, const segment_header *header)
{
    segment *s = nl_memory_check(calloc(1, sizeof *s));
    if (s == NULL)
        return NULL;
    memcpy(s->name, name, strnlen(name, sizeof s->name - 1));
    s->fd = fd;
    s->identity = nl_identity_of(fd);
    s->size = size;
    s->header = *header;
    return s;
}

/* ---- what others have left ---- */

static int by_time_then_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_spool_file(const struct dirent *entry)
{
    size_t size = strlen(entry->d_name);
    return size > 6 && size < sizeof((segment *)0)->name && strcmp(entry->d_name + size - 6, ".spool") == 0;
}

static void adopt(nl_spool *spool, const char *name)
{
    segment_header header;
    struct stat status;
    int fd = openat(spool->folder_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return;
    /* The last look is whether it still has that name: another may have delivered and removed it meanwhile. */
    if (lock(fd) && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1 &&
        pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header &&
        memcmp(header.magic, MAGIC, sizeof MAGIC) == 0 && header.delivered >= HEADER_SIZE &&
        header.delivered <= (uint64_t)status.st_size) {
        segment *s = new_segment(name, fd, (uint64_t)status.st_size, &header);
        if (s != NULL) {
            append(spool, s);
            return;
        }
    }
    close(fd); /* another process, or the next one, delivers it */
}

static void adopt_all(nl_spool *spool)
{
    struct dirent **entries;
    int count = scandir(spool->folder, &entries, is_spool_file, by_time_then_name);
    for (int i = 0; i < count; i++) {
        adopt(spool, entries[i]->d_name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

/* ---- opening ---- */

static void forget_segments(nl_spool *spool)
{
    for (segment *s = spool->segments, *next; s != NULL; s = next) {
        next = s->next;
        nl_identity_close(&s->identity, s->fd);
        free(s);
    }
    spool->segments = NULL;
    spool->last = &spool->segments;
    spool->used = 0;
    spool->number = 0; /* a new file for what is put next */
}

/* Whether nobody else can change the spool's directory, or replace it in the directory above. */
static nl_status check_owner(const nl_spool *spool)
{
    char problem[512], *above = nl_memory_check(strdup(spool->folder));
    struct stat status;
    if (above == NULL)
        return NL_FAILED;
    *strrchr(above, '/') = '\0';
    nl_status result = NL_OK;
    if (fstat(spool->folder_fd, &status) != 0)
        result = nl_error_set_errno("open the spool %s", spool->folder);
    else if (!nl_private_directory_check(spool->folder, &status, false, problem, sizeof problem))
        result = nl_error_set(NL_ERROR_INVALID, "spool: %s", problem);
    else if (stat(*above != '\0' ? above : "/", &status) != 0)
        result = nl_error_set_errno("open the spool %s", above);
    else if (!nl_private_directory_check(above, &status, true, problem, sizeof problem))
        result = nl_error_set(NL_ERROR_INVALID, "spool: %s", problem);
    free(above);
    return result;
}

/* Opens the directory. NL_FAILED with the reason. */
static nl_status open_folder(nl_spool *spool)
{
    spool->folder_fd = open(spool->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (spool->folder_fd < 0)
        return nl_error_set_errno("open the spool %s", spool->folder);
    spool->identity = nl_identity_of(spool->folder_fd);
    nl_status status = check_owner(spool);
    if (status != NL_OK)
        close(spool->folder_fd);
    return status;
}

/* Begins anew with what is on disk when the program has closed a descriptor. False when it cannot be opened again. */
static bool check_descriptors(nl_spool *spool)
{
    bool good = nl_identity_holds(&spool->identity, spool->folder_fd);
    for (const segment *s = spool->segments; s != NULL && good; s = s->next)
        good = nl_identity_holds(&s->identity, s->fd);
    if (good)
        return true;
    forget_segments(spool);
    nl_identity_close(&spool->identity, spool->folder_fd);
    if (open_folder(spool) != NL_OK) {
        spool->folder_fd = -1;
        return false;
    }
    adopt_all(spool);
    return true;
}

/* FOLDER and in it the destination's: what is no letter, digit, dot or hyphen in its URL becomes '_'. */
static char *folder_of(const char *folder, const nl_url *url)
{
    size_t size = strcspn(url->text, "?");
    char *path;
    if (asprintf(&path, "%s/%.*s", folder, (int)(size < 200 ? size : 200), url->text) < 0) {
        nl_memory_failed();
        return NULL;
    }
    for (char *at = path + strlen(folder) + 1; *at != '\0'; at++)
        if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-", *at) == NULL)
            *at = '_';
    return path;
}

nl_spool *nl_spool_open(const char *folder, const nl_url *destination, size_t size, bool oldest)
{
    nl_spool *spool = nl_memory_check(calloc(1, sizeof *spool));
    if (spool == NULL)
        return NULL;
    spool->folder = folder_of(folder, destination);
    if (spool->folder == NULL) {
        free(spool);
        return NULL;
    }
    spool->limit = size;
    spool->oldest = oldest;
    spool->last = &spool->segments;
    if (getrandom(&spool->name, sizeof spool->name, 0) != (ssize_t)sizeof spool->name)
        spool->name = (uint64_t)nl_time_now_ns();
    mkdir(folder, 0700);
    mkdir(spool->folder, 0700);
    if (open_folder(spool) != NL_OK) {
        free(spool->folder);
        free(spool);
        return NULL;
    }
    adopt_all(spool);
    return spool;
}

void nl_spool_close(nl_spool *spool)
{
    if (spool == NULL)
        return;
    forget_segments(spool);
    nl_identity_close(&spool->identity, spool->folder_fd);
    free(spool->folder);
    free(spool);
}

/* ---- putting ---- */

static segment *start_segment(nl_spool *spool)
{
    char name[64];
    snprintf(name, sizeof name, "%020" PRId64 "-%016" PRIx64 "-%06u.spool", nl_time_now_ns(), spool->name,
             ++spool->number);
    int fd = openat(spool->folder_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    segment_header header = {.delivered = HEADER_SIZE};
    memcpy(header.magic, MAGIC, sizeof MAGIC);
    if (fd < 0 || !lock(fd) || pwrite(fd, &header, sizeof header, 0) != (ssize_t)sizeof header) {
        nl_error_set_errno("write the spool %s/%s", spool->folder, name);
        if (fd >= 0) {
            unlinkat(spool->folder_fd, name, 0);
            close(fd);
        }
        return NULL;
    }
    segment *s = new_segment(name, fd, HEADER_SIZE, &header);
    if (s != NULL) {
        append(spool, s);
    } else {
        unlinkat(spool->folder_fd, name, 0);
        close(fd);
    }
    return s;
}

static bool write_all(int fd, const char *data, size_t size, uint64_t at)
{
    while (size > 0) {
        ssize_t put = pwrite(fd, data, size, (off_t)at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        data += put;
        size -= (size_t)put;
        at += (uint64_t)put;
    }
    return true;
}

/* The newest segment, if it is this process's and has room; otherwise a new one. */
static segment *segment_for(nl_spool *spool)
{
    segment *newest = spool->segments;
    while (newest != NULL && newest->next != NULL)
        newest = newest->next;
    if (newest != NULL && spool->number > 0 && newest->size < spool->limit / SEGMENTS)
        return newest;
    return start_segment(spool);
}

/* Appends the next put of a segment. False when it has no more, or there is no memory (nl_memory_failures). */
static bool read_put(segment *s, uint64_t *at, nl_buffer *out)
{
    uint32_t size;
    if (s->size - *at < PUT_HEAD || pread(s->fd, &size, PUT_HEAD, (off_t)*at) != PUT_HEAD || size == 0 ||
        size > s->size - *at - PUT_HEAD)
        return false;
    if (!nl_buffer_reserve(out, size))
        return false;
    if (pread(s->fd, out->data + out->size, size, (off_t)(*at + PUT_HEAD)) != (ssize_t)size)
        return false;
    out->size += size;
    *at += PUT_HEAD + size;
    return true;
}

/* Returns the number of records in a put, which is whole lines or whole blocks. */
static uint64_t count_put(const char *data, size_t size)
{
    nl_block_header header;
    bool blocks = nl_block_parse_header(data, size, &header) == NL_OK;
    return nl_records_count(blocks ? NL_FORMAT_NLB : NL_FORMAT_ULM, data, size);
}

/* Returns the number of records in a segment that are not delivered. */
static uint64_t count_undelivered(segment *s)
{
    uint64_t count = 0, at = s->header.delivered;
    nl_buffer put = {0};
    for (; read_put(s, &at, &put); put.size = 0)
        count += count_put(put.data, put.size);
    nl_buffer_free(&put);
    return count;
}

static void write_header(const segment *s)
{
    write_all(s->fd, (const char *)&s->header, sizeof s->header, 0);
}

/* The oldest file goes; the next one says how much that was. */
static bool give_up_first(nl_spool *spool)
{
    const unsigned failures = nl_memory_failures;
    uint64_t lost = spool->segments->header.lost + count_undelivered(spool->segments);
    if (nl_memory_failures != failures)
        return false;
    if (spool->segments->next == NULL && start_segment(spool) == NULL)
        return false;
    remove_first(spool);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): another one was begun where there was none */
    spool->segments->header.lost += lost;
    write_header(spool->segments);
    return true;
}

/* A put that no spool of this size could hold is given up itself: the next file says how much that was. */
static nl_status give_up_put(nl_spool *spool, const char *data, size_t size)
{
    if (spool->used + HEADER_SIZE > spool->limit && !give_up_first(spool))
        return NL_FAILED;
    segment *next = start_segment(spool);
    if (next == NULL)
        return NL_FAILED;
    next->header.lost += count_put(data, size);
    write_header(next);
    return NL_OK;
}

nl_status nl_spool_put(nl_spool *spool, const char *data, size_t size)
{
    if (!check_descriptors(spool))
        return NL_FAILED;
    bool too_large = HEADER_SIZE + PUT_HEAD + size > spool->limit;
    if (too_large && spool->oldest)
        return give_up_put(spool, data, size);
    while (spool->oldest && spool->segments != NULL && spool->used + PUT_HEAD + size > spool->limit)
        if (!give_up_first(spool))
            return NL_FAILED;
    if (too_large)
        return nl_error_set(NL_ERROR_LIMIT, "the spool %s is smaller than what is to be put there, %zu bytes",
                            spool->folder, size);
    if (spool->used + PUT_HEAD + size > spool->limit)
        return nl_error_set(NL_ERROR_LIMIT, "the spool %s is full (what is in it is kept)", spool->folder);
    segment *s = segment_for(spool);
    if (s == NULL)
        return NL_FAILED;
    /* The size goes last: what it does not cover was never put, whenever the process is killed. */
    uint32_t head = (uint32_t)size;
    if (!write_all(s->fd, data, size, s->size + PUT_HEAD) ||
        !write_all(s->fd, (const char *)&head, PUT_HEAD, s->size)) {
        nl_error_set_errno("write the spool %s/%s", spool->folder, s->name);
        if (ftruncate(s->fd, (off_t)s->size) != 0)
            spool->number = 0; /* nothing more goes behind what could not be cut off */
        return NL_FAILED;
    }
    s->size += PUT_HEAD + size;
    spool->used += PUT_HEAD + size;
    s->unsafe = true;
    if (spool->unsafe_since_ns == 0)
        spool->unsafe_since_ns = nl_monotonic_ns();
    return NL_OK;
}

nl_status nl_spool_sync(nl_spool *spool)
{
    if (spool->unsafe_since_ns == 0)
        return NL_OK;
    if (!check_descriptors(spool))
        return NL_FAILED;
    for (segment *s = spool->segments; s != NULL; s = s->next) {
        if (s->unsafe && fdatasync(s->fd) != 0)
            return nl_error_set_errno("fsync the spool %s/%s", spool->folder, s->name);
        s->unsafe = false;
    }
    /* The names of new files are in the directory, and its name in the one above. */
    int above = openat(spool->folder_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = fsync(spool->folder_fd) == 0 && above >= 0 && fsync(above) == 0;
    nl_status status = synced ? NL_OK : nl_error_set_errno("fsync the spool %s", spool->folder);
    if (above >= 0)
        close(above);
    if (synced)
        spool->unsafe_since_ns = 0;
    return status;
}

int64_t nl_spool_unsafe_since_ns(const nl_spool *spool)
{
    return spool->unsafe_since_ns;
}

bool nl_spool_is_empty(const nl_spool *spool)
{
    return spool->segments == NULL;
}

/* ---- delivering ---- */

nl_status nl_spool_peek(nl_spool *spool, nl_buffer *out)
{
    out->size = 0;
    if (!check_descriptors(spool))
        return NL_FAILED;
    for (unsigned failures = nl_memory_failures; spool->segments != NULL;) {
        uint64_t at = spool->segments->header.delivered;
        while (out->size < PEEK_SIZE && read_put(spool->segments, &at, out))
            continue;
        if (out->size > 0 || spool->segments->header.lost > 0)
            return NL_OK;
        if (nl_memory_failures != failures)
            return NL_FAILED;
        remove_first(spool); /* delivered to its end, or to where a killed process stopped */
    }
    return NL_END;
}

void nl_spool_delivered(nl_spool *spool, size_t size)
{
    segment *s = spool->segments;
    uint32_t head;
    /* Part of a put that was delivered is delivered again, with the rest of it, unless it is all. */
    while (size > 0 && pread(s->fd, &head, PUT_HEAD, (off_t)s->header.delivered) == PUT_HEAD && head > 0 &&
           head <= size) {
        size -= head;
        s->header.delivered += PUT_HEAD + head;
    }
    write_header(s);
    if (s->header.delivered >= s->size && s->header.lost == 0)
        remove_first(spool);
}

uint64_t nl_spool_lost(const nl_spool *spool)
{
    return spool->segments != NULL ? spool->segments->header.lost : 0;
}

void nl_spool_lost_told(nl_spool *spool)
{
    spool->segments->header.lost = 0;
    write_header(spool->segments);
}
