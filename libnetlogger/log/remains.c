#include "config.h"

#include "log/remains.h"

#include "base/error.h"
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
 * All of this memory is a stranger's word: of a program that may have overwritten it before it died. Sizes are checked
 * against the files' own, numbers against what they can be, and texts are cut at the end of their field.
 */

static bool is_head(const nl_shared_head *head)
{
    return memcmp(head->magic, NL_SHARED_MAGIC, sizeof head->magic) == 0 && head->version == NL_SHARED_VERSION;
}

/*
 * A file's bytes in memory of this process's own, as nl_mapping_map; what the file no longer has is zero. Holes stay
 * holes, so that no more memory is taken than its owner has filled. NULL when there is none.
 */
static char *copy_file(int fd, size_t size, size_t repeat)
{
    char *memory = nl_mapping_map(-1, size, repeat);
    off_t at = 0, end = (off_t)size;
    while (memory != NULL && (at = lseek(fd, at, SEEK_DATA)) >= 0 && at < end) {
        off_t hole = lseek(fd, at, SEEK_HOLE);
        ssize_t got = hole < at ? -1 : pread(fd, memory + at, (size_t)((hole < end ? hole : end) - at), at);
        if (got == 0 || (got < 0 && errno != EINTR))
            break;
        at += got > 0 ? got : 0;
    }
    return memory;
}

static void get_memory(const nl_remains *remains, const char *name, nl_mapping *mapping, size_t size, size_t repeat)
{
    mapping->size = size + (repeat > 0 ? size - repeat : 0);
    if (!remains->copied) {
        mapping->memory = nl_mapping_map(mapping->fd, size, repeat);
        return;
    }
    mapping->memory = copy_file(mapping->fd, size, repeat);
    snprintf(mapping->name, sizeof mapping->name, "%s", name); /* for nl_remains_save_log */
    close(mapping->fd);
    mapping->fd = -1;
}

/* Maps or copies a file of the folder; the part behind repeat once more behind it. False when it is not there or too
 * small. */
static bool map_file(const nl_remains *remains, const char *name, size_t least, size_t most, size_t repeat,
                     nl_mapping *mapping)
{
    *mapping = (nl_mapping){.fd = openat(remains->folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
    struct stat status;
    if (mapping->fd < 0)
        return false;
    if (fstat(mapping->fd, &status) == 0 && S_ISREG(status.st_mode) && (size_t)status.st_size >= least &&
        (size_t)status.st_size <= most)
        get_memory(remains, name, mapping, (size_t)status.st_size, repeat);
    if (mapping->memory != NULL && is_head((const nl_shared_head *)(void *)mapping->memory))
        return true;
    nl_mapping_remove(mapping);
    return false;
}

/*
 * Whether the process lives all the same: one that closes all its descriptors, as daemons do, closes the lock too. Its
 * memory says then that it has the folder's files mapped. A process of another PID namespace can't be asked; the lock
 * is all there is.
 */
static bool is_mapped(const char *name)
{
    unsigned user, process;
    char path[64], line[512];
    if (sscanf(name, "netlogger-%u-%u-", &user, &process) != 2)
        return false;
    snprintf(path, sizeof path, "/proc/%u/maps", process);
    FILE *maps = fopen(path, "re");
    bool found = false;
    while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL)
        found = strstr(line, name) != NULL;
    if (maps != NULL)
        fclose(maps);
    return found;
}

nl_status nl_remains_open(nl_remains *remains, int parent, const char *name)
{
    *remains = (nl_remains){.folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                            .lock = -1,
                            .sites = {.fd = -1}};
    if (remains->folder < 0)
        return errno == ENOENT ? NL_AGAIN : nl_error_set_errno("open %s", name);
    remains->lock = openat(remains->folder, "lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (remains->lock < 0 || fcntl(remains->lock, F_OFD_SETLK, &lock) != 0) {
        nl_status status = remains->lock >= 0 || errno == ENOENT ? NL_AGAIN : nl_error_set_errno("open %s/lock", name);
        nl_remains_close(remains);
        return status;
    }
    struct stat status;
    if (is_mapped(name) || fstat(remains->folder, &status) != 0) {
        nl_remains_close(remains);
        return NL_AGAIN;
    }
    remains->owner = status.st_uid;
    remains->copied = status.st_uid != geteuid();
    map_file(remains, "sites", NL_SHARED_SITES_SIZE, NL_SHARED_SITES_SIZE, 0, &remains->sites);
    return NL_OK;
}

void nl_remains_close(nl_remains *remains)
{
    nl_mapping_remove(&remains->sites);
    if (remains->lock >= 0)
        close(remains->lock);
    if (remains->folder >= 0)
        close(remains->folder);
}

/* ---- rings ---- */

static bool is_sound(const nl_ring *ring)
{
    const nl_shared_ring *shared = ring->shared;
    uint64_t tail = shared->tail & ~NL_TAIL_PINNED;
    return shared->size == ring->mask + 1 && shared->published >= tail && shared->published - tail <= shared->size;
}

static nl_ring *open_ring(const nl_remains *remains, const char *name)
{
    nl_mapping mapping;
    if (!map_file(remains, name, NL_SHARED_HEADER + 4096, NL_SHARED_HEADER + (1u << 30), NL_SHARED_HEADER, &mapping))
        return NULL;
    uint64_t size = (mapping.size - NL_SHARED_HEADER) / 2;
    nl_ring *ring = nl_ring_over(&mapping, size);
    NL_REQUIRE(ring != NULL, "out of memory");
    if ((size & (size - 1)) == 0 && is_sound(ring))
        return ring;
    nl_ring_remove(ring);
    return NULL;
}

static void open_rings(const nl_remains *remains, unsigned number, nl_remains_log *log)
{
    DIR *folder = fdopendir(dup(remains->folder));
    if (folder == NULL)
        return;
    rewinddir(folder);
    char prefix[32];
    snprintf(prefix, sizeof prefix, "ring-%u-", number);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        nl_ring *ring = NULL;
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            ring = open_ring(remains, entry->d_name);
        if (ring != NULL) {
            ring->next = log->rings;
            log->rings = ring;
        }
    }
    closedir(folder);
}

/* The writer thread was killed between deciding that events are the batch's and saying so everywhere: shared.h. */
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

unsigned nl_remains_last_log(const nl_remains *remains)
{
    unsigned last = 0, number;
    DIR *folder = fdopendir(dup(remains->folder));
    if (folder == NULL)
        return 0;
    rewinddir(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (sscanf(entry->d_name, "log-%u", &number) == 1 && number >= last && number < LOGS_MAX)
            last = number + 1;
    closedir(folder);
    return last;
}

static void end_text(char *text, size_t size)
{
    text[size - 1] = '\0';
}

nl_status nl_remains_open_log(const nl_remains *remains, unsigned number, nl_remains_log *log)
{
    *log = (nl_remains_log){.outbox = {.mapping = {.fd = -1}}};
    char name[32];
    snprintf(name, sizeof name, "log-%u", number);
    size_t size = NL_SHARED_HEADER + NL_SHARED_BATCH_SIZE;
    if (!map_file(remains, name, size, size, 0, &log->outbox.mapping))
        return NL_END;
    nl_shared_log *shared = (nl_shared_log *)(void *)log->outbox.mapping.memory;
    log->outbox.shared = shared;
    log->outbox.batch = log->outbox.mapping.memory + NL_SHARED_HEADER;
    end_text(shared->url, sizeof shared->url);
    end_text(shared->prog, sizeof shared->prog);
    end_text(shared->host, sizeof shared->host);
    open_rings(remains, number, log);
    finish_commit(log);
    if (shared->batch_size > NL_SHARED_BATCH_SIZE || shared->batch_start > shared->batch_size)
        shared->batch_size = shared->batch_start = shared->batch_records = 0;
    for (nl_ring *ring = log->rings; ring != NULL; ring = ring->next)
        if (!is_sound(ring))
            ring->shared->tail = ring->shared->published;
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

/* The data first: a header never speaks of what is not there. Where it fails, more is sent again. */
static void save_file(const nl_remains *remains, const nl_mapping *mapping, size_t size)
{
    struct stat status;
    int fd = openat(remains->folder, mapping->name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
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
    /* The batch first: killed in between, what was in a ring is sent twice, but not lost. */
    save_file(remains, &log->outbox.mapping, NL_SHARED_HEADER + log->outbox.shared->batch_size);
    for (const nl_ring *ring = log->rings; ring != NULL; ring = ring->next)
        save_file(remains, &ring->mapping, NL_SHARED_HEADER + ring->mask + 1);
}

/* ---- the batch that was on its way into a file ---- */

/* How many of the last bytes of text[0..size) are the first ones of wanted. */
static size_t overlap(const char *text, size_t size, const char *wanted, size_t wanted_size)
{
    for (size_t count = size < wanted_size ? size : wanted_size; count > 0; count--)
        if (memcmp(text + size - count, wanted, count) == 0)
            return count;
    return 0;
}

/* How much of data[0..size) is whole records. */
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

/*
 * How much of wanted is in the file from offset on: all of it somewhere, or its first bytes at the end. The file is
 * read and not mapped, for whose it is may cut it off meanwhile.
 */
static size_t find_in_file(int fd, uint64_t offset, const char *wanted, size_t wanted_size)
{
    enum { PIECE = 1 << 20 };
    char *text = malloc(wanted_size + PIECE);
    NL_REQUIRE(text != NULL, "out of memory");
    size_t size = 0, there = 0;
    ssize_t got;
    while (there == 0 && ((got = pread(fd, text + size, PIECE, (off_t)offset)) > 0 || (got < 0 && errno == EINTR))) {
        offset += got > 0 ? (uint64_t)got : 0;
        size += got > 0 ? (size_t)got : 0;
        if (memmem(text, size, wanted, wanted_size) != NULL)
            there = wanted_size;
        if (size > wanted_size) {
            memmove(text, text + size - wanted_size, wanted_size);
            size = wanted_size;
        }
    }
    if (there == 0)
        there = overlap(text, size, wanted, wanted_size);
    free(text);
    return there;
}

void nl_remains_settle_batch(nl_shared_log *shared, const char *batch, int fd, bool cut_off)
{
    const char *wanted = batch + shared->batch_start;
    size_t wanted_size = shared->batch_size - shared->batch_start;
    struct stat status;
    if (wanted_size == 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
        (uint64_t)status.st_size <= shared->file_offset)
        return;
    size_t there = find_in_file(fd, shared->file_offset, wanted, wanted_size);
    size_t whole = whole_records(shared, wanted, there);
    if (cut_off && whole < there) {
        if (fstat(fd, &status) == 0 && ftruncate(fd, status.st_size - (off_t)(there - whole)) != 0)
            return;
        there = whole;
    }
    shared->batch_start += there;
    if (shared->batch_start == shared->batch_size)
        shared->batch_size = shared->batch_start = shared->batch_records = 0;
    shared->file_offset = UINT64_MAX;
}
