#include "config.h"

#include "log/recover.h"

#include "base/error.h"
#include "format/block_read.h"

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

/* Maps a file of the folder; the part behind repeat once more behind it. False when it is not there or too small. */
static bool map_file(int folder, const char *name, size_t least, size_t most, size_t repeat, nl_mapping *mapping)
{
    *mapping = (nl_mapping){.fd = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
    struct stat status;
    if (mapping->fd < 0)
        return false;
    if (fstat(mapping->fd, &status) == 0 && S_ISREG(status.st_mode) && (size_t)status.st_size >= least &&
        (size_t)status.st_size <= most) {
        size_t size = (size_t)status.st_size;
        mapping->size = size + (repeat > 0 ? size - repeat : 0);
        mapping->memory = nl_mapping_map(mapping->fd, size, repeat);
    }
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
    if (is_mapped(name)) {
        nl_remains_close(remains);
        return NL_AGAIN;
    }
    map_file(remains->folder, "sites", NL_SHARED_SITES_SIZE, NL_SHARED_SITES_SIZE, 0, &remains->sites);
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

static nl_ring *open_ring(int folder, const char *name)
{
    nl_mapping mapping;
    if (!map_file(folder, name, NL_SHARED_HEADER + 4096, NL_SHARED_HEADER + (1u << 30), NL_SHARED_HEADER, &mapping))
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
            ring = open_ring(remains->folder, entry->d_name);
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
    if (!map_file(remains->folder, name, size, size, 0, &log->outbox.mapping))
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

/* What stands in the file from offset on; NULL when that is nothing or cannot be read. */
static char *map_rest(int fd, uint64_t offset, size_t *size, void **mapped, size_t *mapped_size)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || (uint64_t)status.st_size <= offset)
        return NULL;
    uint64_t page = offset / 4096 * 4096;
    *mapped_size = (size_t)((uint64_t)status.st_size - page);
    *mapped = mmap(NULL, *mapped_size, PROT_READ, MAP_SHARED, fd, (off_t)page);
    if (*mapped == MAP_FAILED)
        return NULL;
    *size = (size_t)((uint64_t)status.st_size - offset);
    return (char *)*mapped + (offset - page);
}

void nl_remains_settle_batch(nl_shared_log *shared, const char *batch, int fd, bool cut_off)
{
    const char *wanted = batch + shared->batch_start;
    size_t wanted_size = shared->batch_size - shared->batch_start, size, mapped_size;
    void *mapped;
    char *text = wanted_size == 0 ? NULL : map_rest(fd, shared->file_offset, &size, &mapped, &mapped_size);
    if (text == NULL)
        return;
    size_t there =
        memmem(text, size, wanted, wanted_size) != NULL ? wanted_size : overlap(text, size, wanted, wanted_size);
    munmap(mapped, mapped_size);
    size_t whole = whole_records(shared, wanted, there);
    if (cut_off && whole < there) {
        struct stat status;
        if (fstat(fd, &status) == 0 && ftruncate(fd, status.st_size - (off_t)(there - whole)) != 0)
            return;
        there = whole;
    }
    shared->batch_start += there;
    if (shared->batch_start == shared->batch_size)
        shared->batch_size = shared->batch_start = shared->batch_records = 0;
    shared->file_offset = UINT64_MAX;
}
