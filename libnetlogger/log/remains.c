#include "config.h"

#include "log/remains.h"

#include "base/error.h"
#include "base/memory.h"
#include "record/block_read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOGS_MAX = 1000000 };

/*
 * The module trusts nothing in this memory, because the killed program may have overwritten it. The module checks sizes
 * against the files and numbers against their ranges, and truncates texts at the end of their field.
 */

static bool is_zero(const char *bytes, size_t size)
{
    size_t zeros = 0;
    while (zeros < size && bytes[zeros] == 0)
        zeros++;
    return zeros == size;
}

/*
 * Looks for bytes other than 0 after the header of a file of `size` bytes. Uses system calls instead of the mapping,
 * because reading a hole of the file through a mapping allocates memory. Returns NL_END if there are no such bytes, and
 * NL_MALFORMED with the reason if there are such bytes. Returns NL_FAILED with the reason if the file cannot be read.
 */
static nl_status find_data(const nl_mapping *mapping, size_t size)
{
    char piece[4096];
    bool zero = true;
    off_t at = NL_SHARED_HEADER;
    if (mapping->fd < 0) /* the memory is a copy */
        zero = is_zero(mapping->memory + at, size - NL_SHARED_HEADER);
    while (mapping->fd >= 0 && zero && (at = lseek(mapping->fd, at, SEEK_DATA)) >= 0) {
        ssize_t got = pread(mapping->fd, piece, sizeof piece, at);
        if (got < 0 && errno != EINTR)
            return nl_error_set_errno("read a file of shared memory");
        zero = got <= 0 || is_zero(piece, (size_t)got);
        at += got > 0 ? got : 0;
    }
    if (at < 0 && errno != ENXIO) /* ENXIO: no data after this offset */
        return nl_error_set_errno("read a file of shared memory");
    if (zero)
        return NL_END;
    nl_error_set(NL_ERROR_INVALID, "damaged header");
    return NL_MALFORMED;
}

/*
 * Checks the head of a file of `size` bytes. Returns:
 *   NL_OK         the head is valid
 *   NL_END        the process was killed before it wrote the head, so the file has no events
 *   NL_MALFORMED  the file is damaged or has another layout; the error has the reason
 *   NL_FAILED     the file cannot be read; the error has the reason
 */
static nl_status check_head(const nl_mapping *mapping, size_t size)
{
    const nl_shared_head *head = (const nl_shared_head *)(const void *)mapping->memory;
    if (memcmp(head->magic, NL_SHARED_MAGIC, sizeof head->magic) == 0 && head->version == NL_SHARED_VERSION)
        return NL_OK;
    if (is_zero(mapping->memory, NL_SHARED_HEADER))
        return find_data(mapping, size);
    if (memcmp(head->magic, NL_SHARED_MAGIC, sizeof head->magic) == 0)
        nl_error_set(NL_ERROR_UNSUPPORTED,
                     "the file has layout %u, not %u; use the nlrecover of the version that wrote the file",
                     head->version, NL_SHARED_VERSION);
    else
        nl_error_set(NL_ERROR_INVALID, "damaged header");
    return NL_MALFORMED;
}

/*
 * Copies a file to memory of this process, in the layout of nl_mapping_map. Bytes after the end of the file are zero.
 * Does not write to holes of the file, so that the copy needs only as much memory as the file. Returns NULL with errno
 * on failure.
 */
static char *copy_file(int fd, size_t size, size_t repeat)
{
    char *memory = nl_mapping_map(-1, size, repeat);
    off_t at = 0, end = (off_t)size;
    ssize_t got = memory != NULL ? 1 : 0;
    while (got != 0 && (at = lseek(fd, at, SEEK_DATA)) >= 0 && at < end) {
        off_t hole = lseek(fd, at, SEEK_HOLE);
        got = hole < at ? -1 : pread(fd, memory + at, (size_t)((hole < end ? hole : end) - at), at);
        if (got < 0 && errno != EINTR)
            break;
        at += got > 0 ? got : 0;
    }
    if (memory == NULL || got == 0 || at >= end || errno == ENXIO) /* ENXIO: no data after the last hole */
        return memory;
    int error = errno;
    munmap(memory, repeat > 0 ? 2 * size - repeat : size);
    errno = error;
    return NULL;
}

/*
 * Maps or copies a file of the directory. If repeat > 0, also maps or copies the bytes from the offset `repeat` to the
 * end of the file a second time, directly after the first time. Returns NL_OK. Returns NL_END if the file does not
 * exist or has no events, because the process was killed while it created the file. Returns NL_MALFORMED with the
 * reason if the file is damaged. Returns NL_FAILED with the reason if the file cannot be read. After the last two, the
 * caller must not remove the file.
 */
static nl_status map_file(const nl_remains *remains, const char *name, size_t size_min, size_t size_max, size_t repeat,
                          nl_mapping *mapping)
{
    *mapping = (nl_mapping){.fd = openat(remains->directory, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
    struct stat status;
    if (mapping->fd < 0)
        return errno == ENOENT ? NL_END : nl_error_set_errno("open %s", name);
    if (fstat(mapping->fd, &status) != 0)
        goto failed;
    size_t size = (size_t)status.st_size;
    nl_status head = size == 0 && S_ISREG(status.st_mode) ? NL_END : NL_MALFORMED;
    if (!S_ISREG(status.st_mode) || size < size_min || size > size_max) {
        nl_error_set(NL_ERROR_INVALID, "invalid size");
        goto invalid;
    }
    mapping->size = repeat > 0 ? 2 * size - repeat : size;
    mapping->memory =
        remains->copied ? copy_file(mapping->fd, size, repeat) : nl_mapping_map(mapping->fd, size, repeat);
    if (mapping->memory == NULL)
        goto failed;
    if (remains->copied) {
        snprintf(mapping->name, sizeof mapping->name, "%s", name); /* for nl_remains_save_log */
        close(mapping->fd);
        mapping->fd = -1;
    }
    head = check_head(mapping, size);
    if (head == NL_OK)
        return NL_OK;
invalid:
    nl_mapping_leave(mapping);
    return head;
failed:
    nl_error_set_errno("read %s", name);
    nl_mapping_leave(mapping);
    return NL_FAILED;
}

/* Closes a file whose memory is complete, because a program may have few descriptors and many threads. */
static void close_file(nl_mapping *mapping)
{
    if (mapping->fd >= 0)
        close(mapping->fd);
    mapping->fd = -1;
}

/*
 * Returns NL_OK if the process still runs and has files of the directory mapped, otherwise NL_END. Returns NL_FAILED if
 * the state is unknown. The lock alone is not sufficient, because a process that closes all its descriptors, as daemons
 * do, also releases its lock. For a process in another PID namespace or of another user, the function checks only the
 * lock.
 */
static nl_status find_mapped(const char *name)
{
    unsigned user, process;
    char path[64], line[512];
    if (sscanf(name, "netlogger-%u-%u-", &user, &process) != 2)
        return NL_END;
    snprintf(path, sizeof path, "/proc/%u/maps", process);
    FILE *maps = fopen(path, "re");
    if (maps == NULL)
        return errno == ENOENT || errno == EACCES || errno == EPERM ? NL_END : nl_error_set_errno("open %s", path);
    bool found = false;
    while (!found && fgets(line, sizeof line, maps) != NULL)
        found = strstr(line, name) != NULL;
    /* ESRCH means that the process has just ended. */
    bool failed = !found && ferror(maps) != 0 && errno != ESRCH;
    if (failed)
        nl_error_set_errno("read %s", path);
    fclose(maps);
    return failed ? NL_FAILED : found ? NL_OK : NL_END;
}

nl_status nl_remains_open(nl_remains *remains, int parent, const char *name)
{
    *remains = (nl_remains){.directory = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                            .lock = -1,
                            .sites = {.fd = -1}};
    if (remains->directory < 0)
        return errno == ENOENT ? NL_AGAIN : nl_error_set_errno("open %s", name);
    remains->lock = openat(remains->directory, "lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (remains->lock < 0 || fcntl(remains->lock, F_OFD_SETLK, &lock) != 0) {
        nl_status status = remains->lock >= 0 || errno == ENOENT ? NL_AGAIN : nl_error_set_errno("open %s/lock", name);
        nl_remains_close(remains);
        return status;
    }
    struct stat status;
    nl_status mapped = find_mapped(name);
    if (mapped == NL_END && fstat(remains->directory, &status) != 0)
        mapped = nl_error_set_errno("open %s", name);
    if (mapped == NL_END) {
        remains->owner = status.st_uid;
        remains->copied = status.st_uid != geteuid();
        nl_status sites = map_file(remains, "sites", NL_SHARED_SITES_SIZE, NL_SHARED_SITES_SIZE, 0, &remains->sites);
        close_file(&remains->sites);
        if (sites == NL_OK || sites == NL_END)
            return NL_OK;
        mapped = nl_error_prepend("recover %s/sites", name);
    }
    nl_remains_close(remains);
    return mapped == NL_OK ? NL_AGAIN : mapped;
}

void nl_remains_close(nl_remains *remains)
{
    nl_mapping_leave(&remains->sites);
    if (remains->lock >= 0)
        close(remains->lock);
    if (remains->directory >= 0)
        close(remains->directory);
}

/* ---- rings ---- */

/* Returns whether the head of a ring is valid, and will still be valid after finish_commit. */
static bool is_head_valid(const nl_ring *ring, const nl_shared_log *log)
{
    const nl_shared_ring *shared = ring->shared;
    const bool commits = log->commit != log->applied && shared->next_commit == log->commit;
    uint64_t tail = (commits ? shared->next_tail : shared->tail) & ~NL_TAIL_PINNED;
    return shared->size == ring->mask + 1 && shared->published >= tail && shared->published - tail <= shared->size;
}

/*
 * Checks a ring whose head is not valid. Returns:
 *   NL_END        the process was killed while it created the ring, so the ring has no events
 *   NL_MALFORMED  the ring is damaged; the error has the reason
 *   NL_FAILED     the ring cannot be read; the error has the reason
 */
static nl_status check_invalid_ring(const nl_ring *ring, size_t size)
{
    const nl_shared_ring *shared = ring->shared;
    if (shared->size == 0 && shared->published == 0 && shared->tail == 0)
        return find_data(&ring->mapping, NL_SHARED_HEADER + size);
    nl_error_set(NL_ERROR_INVALID, "damaged header");
    return NL_MALFORMED;
}

static nl_status map_ring(const nl_remains *remains, const char *name, nl_mapping *mapping)
{
    return map_file(remains, name, NL_SHARED_HEADER + 4096, NL_SHARED_HEADER + (1u << 30), NL_SHARED_HEADER, mapping);
}

static void report_damaged(const nl_remains *remains, const char *name)
{
    if (remains->on_damaged != NULL)
        remains->on_damaged(remains->user, name);
}

/*
 * Opens a ring and adds it to the log, unless the ring is damaged. Returns NL_OK, or NL_FAILED if the ring may have
 * events that cannot be read now.
 */
static nl_status open_ring(const nl_remains *remains, const char *name, nl_remains_log *log)
{
    nl_mapping mapping;
    nl_status status = map_ring(remains, name, &mapping);
    if (status == NL_MALFORMED) {
        log->damaged = true;
        report_damaged(remains, name);
    }
    if (status != NL_OK)
        return status == NL_FAILED ? NL_FAILED : NL_OK;
    uint64_t size = (mapping.size - NL_SHARED_HEADER) / 2;
    nl_ring *ring = nl_memory_check(nl_ring_over(&mapping, size));
    if (ring == NULL) {
        nl_mapping_leave(&mapping);
        return NL_FAILED;
    }
    if ((size & (size - 1)) != 0 || !is_head_valid(ring, log->outbox.shared)) {
        status = check_invalid_ring(ring, size);
        if (status == NL_MALFORMED) {
            log->damaged = true;
            report_damaged(remains, name);
        }
        nl_ring_remove(ring);
        return status == NL_FAILED ? NL_FAILED : NL_OK;
    }
    close_file(&ring->mapping);
    ring->next = log->rings;
    log->rings = ring;
    return NL_OK;
}

/*
 * Calls function for each name in the directory until function fails. Also returns NL_FAILED if the directory cannot be
 * read.
 */
static nl_status list_directory(const nl_remains *remains, nl_status (*function)(void *user, const char *name),
                                void *user)
{
    int fd = openat(remains->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (directory == NULL) {
        nl_error_set_errno("read a directory of shared memory");
        if (fd >= 0)
            close(fd);
        return NL_FAILED;
    }
    nl_status status = NL_OK;
    const struct dirent *entry;
    while (status == NL_OK && (errno = 0, entry = readdir(directory)) != NULL)
        status = function(user, entry->d_name);
    if (status == NL_OK && errno != 0)
        status = nl_error_set_errno("read a directory of shared memory");
    closedir(directory);
    return status;
}

typedef struct ring_search {
    const nl_remains *remains;
    nl_remains_log *log;
    char prefix[32];
} ring_search;

static nl_status on_name_of_ring(void *user, const char *name)
{
    const ring_search *search = user;
    return strncmp(name, search->prefix, strlen(search->prefix)) == 0 ? open_ring(search->remains, name, search->log)
                                                                      : NL_OK;
}

static nl_status open_rings(const nl_remains *remains, unsigned number, nl_remains_log *log)
{
    ring_search search = {.remains = remains, .log = log};
    snprintf(search.prefix, sizeof search.prefix, "ring-%u-", number);
    return list_directory(remains, on_name_of_ring, &search);
}

static nl_status on_name_of_lone_ring(void *user, const char *name)
{
    const ring_search *search = user;
    nl_mapping mapping;
    if (strncmp(name, search->prefix, strlen(search->prefix)) != 0)
        return NL_OK;
    nl_status status = map_ring(search->remains, name, &mapping);
    if (status == NL_OK)
        nl_mapping_leave(&mapping);
    return status == NL_OK ? NL_MALFORMED : status == NL_END ? NL_OK : status;
}

/*
 * Checks a log whose file has no head. A process writes the head of a log before the heads of its rings. Returns:
 *   NL_END        no ring of the log has a head
 *   NL_MALFORMED  a ring has a head, so the log's file is damaged; the error has the reason
 *   NL_FAILED     the rings cannot be examined; the error has the reason
 */
static nl_status check_headless(const nl_remains *remains, unsigned number)
{
    ring_search search = {.remains = remains};
    snprintf(search.prefix, sizeof search.prefix, "ring-%u-", number);
    nl_status status = list_directory(remains, on_name_of_lone_ring, &search);
    if (status == NL_MALFORMED)
        nl_error_set(NL_ERROR_INVALID, "damaged header");
    return status == NL_OK ? NL_END : status;
}

/* Completes a commit during which the writer thread was killed (see shared.h). */
static void finish_commit(nl_remains_log *log)
{
    nl_shared_log *shared = log->outbox.shared;
    for (nl_ring *ring = log->rings; ring != NULL; ring = ring->next) {
        ring->shared->tail &= ~NL_TAIL_PINNED;
        if (shared->commit == shared->applied || ring->shared->next_commit != shared->commit)
            continue;
        ring->shared->tail = ring->shared->next_tail;
        ring->shared->sequence = ring->shared->next_sequence;
    }
    if (shared->commit != shared->applied) {
        shared->batch_size = shared->next_size;
        shared->batch_records = shared->next_records;
        __atomic_store_n(&shared->applied, shared->commit, __ATOMIC_RELEASE);
    }
}

static nl_status on_name_of_log(void *user, const char *name)
{
    unsigned *count = user, number;
    if (sscanf(name, "log-%u", &number) == 1 && number >= *count && number < LOGS_MAX)
        *count = number + 1;
    return NL_OK;
}

nl_status nl_remains_count_logs(const nl_remains *remains, unsigned *count)
{
    *count = 0;
    return list_directory(remains, on_name_of_log, count);
}

static void end_text(char *text, size_t size)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the file is mapped */
    text[size - 1] = '\0';
}

nl_status nl_remains_open_log(const nl_remains *remains, unsigned number, nl_remains_log *log)
{
    *log = (nl_remains_log){.outbox = {.mapping = {.fd = -1}}};
    char name[32];
    snprintf(name, sizeof name, "log-%u", number);
    size_t size = NL_SHARED_HEADER + NL_SHARED_BATCH_SIZE;
    nl_status status = map_file(remains, name, size, size, 0, &log->outbox.mapping);
    if (status == NL_END && faccessat(remains->directory, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        status = check_headless(remains, number);
    if (status == NL_MALFORMED)
        report_damaged(remains, name);
    if (status != NL_OK)
        return status;
    nl_shared_log *shared = (nl_shared_log *)(void *)log->outbox.mapping.memory;
    log->outbox.shared = shared;
    log->outbox.batch = log->outbox.mapping.memory + NL_SHARED_HEADER;
    end_text(shared->url, sizeof shared->url);
    end_text(shared->prog, sizeof shared->prog);
    end_text(shared->host, sizeof shared->host);
    const uint64_t batch_size = shared->commit != shared->applied ? shared->next_size : shared->batch_size;
    const bool moves = batch_size > 0 && shared->batch_start >= batch_size; /* nl_outbox_send was moving the batch */
    if (batch_size > NL_SHARED_BATCH_SIZE || (moves && shared->batch_start > NL_SHARED_BATCH_SIZE - batch_size)) {
        nl_error_set(NL_ERROR_INVALID, "damaged header");
        report_damaged(remains, name);
        nl_remains_close_log(log);
        return NL_MALFORMED;
    }
    if (open_rings(remains, number, log) !=
        NL_OK) { /* a ring may be missing, and a recovery without it would lose events */
        nl_remains_close_log(log);
        return NL_FAILED;
    }
    finish_commit(log);
    if (moves || shared->batch_size == 0) /* the process was killed while it moved the batch, or emptied it */
        shared->batch_start = 0;
    if (shared->batch_size == 0)
        shared->batch_records = 0;
    return NL_OK;
}

void nl_remains_close_log(nl_remains_log *log)
{
    for (nl_ring *ring = log->rings, *next; ring != NULL; ring = next) {
        next = ring->next;
        nl_ring_remove(ring);
    }
    nl_mapping_remove(&log->outbox.mapping);
}

/*
 * Writes the data of a file before the header, which describes the data. If a write fails, a later recovery sends some
 * records again.
 */
static void save_file(const nl_remains *remains, const nl_mapping *mapping, size_t size)
{
    struct stat status;
    int fd = openat(remains->directory, mapping->name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return;
    size_t data = size - NL_SHARED_HEADER;
    bool saved = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == remains->owner &&
                 pwrite(fd, mapping->memory + NL_SHARED_HEADER, data, NL_SHARED_HEADER) == (ssize_t)data &&
                 pwrite(fd, mapping->memory, NL_SHARED_HEADER, 0) == NL_SHARED_HEADER;
    (void)saved;
    close(fd);
}

void nl_remains_save_log(const nl_remains *remains, const nl_remains_log *log)
{
    if (!remains->copied)
        return;
    /* The batch is written first, so that a kill between the two steps sends events twice instead of losing them. */
    save_file(remains, &log->outbox.mapping, NL_SHARED_HEADER + log->outbox.shared->batch_size);
    for (const nl_ring *ring = log->rings; ring != NULL; ring = ring->next)
        save_file(remains, &ring->mapping, NL_SHARED_HEADER + ring->mask + 1);
}

/* ---- a batch that was being written to a file ---- */

/* Returns the size of the whole records in data[0..size). */
static size_t whole_records(const nl_shared_log *shared, const char *data, size_t size)
{
    if (shared->format != NL_FORMAT_NLB) {
        const char *newline = memrchr(data, '\n', size);
        return newline == NULL ? 0 : (size_t)(newline + 1 - data);
    }
    size_t at = 0;
    nl_block_header header;
    while (at < size && nl_block_parse_header(data + at, size - at, &header) == NL_OK &&
           nl_block_total_size(&header) <= size - at)
        at += nl_block_total_size(&header);
    return at;
}

typedef struct found_prefix {
    size_t longest; /* bytes of the longest prefix */
    uint64_t end;   /* end of the first prefix of this length */
    size_t at_end;  /* bytes of the longest prefix that ends the file */
} found_prefix;

/*
 * Returns, for each prefix of text, the length in bytes of the longest shorter prefix that is also its suffix. Knuth,
 * Morris and Pratt ("Fast Pattern Matching in Strings", 1977) describe this table. The caller frees the table. Returns
 * NULL if memory runs out.
 */
static uint32_t *make_prefix_table(const char *text, size_t size)
{
    uint32_t *table = nl_memory_check(malloc((size + 1) * sizeof *table));
    if (table == NULL)
        return NULL;
    table[0] = table[1] = 0;
    for (size_t i = 1, matched = 0; i < size; i++) {
        while (matched > 0 && text[i] != text[matched])
            matched = table[matched];
        matched += text[i] == text[matched];
        table[i + 1] = (uint32_t)matched;
    }
    return table;
}

/*
 * Searches for prefixes of the non-empty text in the file from offset. Reads the file instead of mapping it, because
 * the file's owner may truncate it.
 */
static nl_status find_prefixes(int fd, uint64_t offset, const char *text, size_t size, found_prefix *found)
{
    char piece[16 << 10];
    uint32_t *table = make_prefix_table(text, size);
    *found = (found_prefix){0};
    if (table == NULL)
        return NL_FAILED;
    ssize_t got = 1;
    size_t matched = 0;
    bool failed = false;
    while (got != 0 && found->longest < size) {
        got = pread(fd, piece, sizeof piece, (off_t)offset);
        if (got < 0 && errno != EINTR) {
            failed = errno == EIO; /* other errors mean that the file is not a regular file */
            break;
        }
        for (ssize_t i = 0; i < got && found->longest < size; i++) {
            while (matched > 0 && piece[i] != text[matched])
                matched = table[matched];
            matched += piece[i] == text[matched];
            if (matched > found->longest)
                *found = (found_prefix){.longest = matched, .end = offset + (uint64_t)i + 1};
        }
        offset += got > 0 ? (uint64_t)got : 0;
    }
    found->at_end = matched;
    if (failed)
        nl_error_set_errno("read the log's file");
    free(table);
    return failed ? NL_FAILED : NL_OK;
}

/*
 * Searches the file from `offset` for parts of the text `wanted`. Sets *there to the size in bytes of the part that the
 * file has, and *ends_file to whether the file ends with that part. If a program was killed during a write, the file
 * has only a prefix of the text. Other programs may have appended text after the prefix or between two parts of it. A
 * match shorter than MATCH_MIN bytes is a coincidence, unless it starts at a record and either ends the file or
 * completes `wanted`. Returns NL_FAILED with the reason if memory runs out or the file cannot be read.
 */
static nl_status find_in_file(const nl_shared_log *shared, int fd, uint64_t offset, const char *wanted, size_t size,
                              size_t *there, bool *ends_file)
{
    enum { MATCH_MIN = 32 };
    *there = 0;
    *ends_file = false;
    while (*there < size && !*ends_file) {
        found_prefix found;
        if (find_prefixes(fd, offset, wanted + *there, size - *there, &found) != NL_OK)
            return NL_FAILED;
        bool at_end = found.at_end > 0 && found.at_end == found.longest;
        bool at_record = whole_records(shared, wanted, *there) == *there;
        if (found.longest < MATCH_MIN && !(at_record && (at_end || found.longest == size - *there)))
            break;
        *ends_file = at_end;
        *there += found.longest;
        offset = found.end;
    }
    return NL_OK;
}

nl_status nl_remains_settle_batch(nl_shared_log *shared, const char *batch, int fd, bool cut_off)
{
    const char *wanted = batch + shared->batch_start;
    size_t wanted_size = shared->batch_size - shared->batch_start, there;
    bool ends_file;
    struct stat status;
    if (wanted_size == 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
        (uint64_t)status.st_size <= shared->file_offset)
        return NL_OK;
    if (find_in_file(shared, fd, shared->file_offset, wanted, wanted_size, &there, &ends_file) != NL_OK)
        return NL_FAILED;
    size_t whole = whole_records(shared, wanted, there);
    if (cut_off && ends_file && whole < there &&
        (fstat(fd, &status) != 0 || ftruncate(fd, status.st_size - (off_t)(there - whole)) != 0))
        return nl_error_set_errno("truncate the last record of a file");
    /* If another program's text follows a truncated record, the record cannot be completed. The whole record is written
     * again. */
    const size_t done = cut_off || !ends_file ? whole : there;
    if (done < wanted_size) {
        shared->batch_start += done;
    } else { /* store the size first; if this process is then killed, the next recovery finds an empty batch
              * (shared.h) */
        __atomic_store_n(&shared->batch_size, 0, __ATOMIC_RELEASE);
        shared->batch_records = 0;
        __atomic_store_n(&shared->batch_start, 0, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&shared->file_offset, UINT64_MAX, __ATOMIC_RELEASE);
    return NL_OK;
}
