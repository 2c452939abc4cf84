#include "config.h"

#include "reader/time_index.h"

#include "base/write_some.h"
#include "record/crc32c.h"
#include "record/varint.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[4] = {'N', 'L', 'I', '1'};

#define LARGEST                                                                                                        \
    ((off_t)1 << 28) /* maximum size of an index; the index of a 1 EiB file needs one hundredth of this                \
                      * size */

char *nl_time_index_name(const char *path)
{
    char *name;
    return asprintf(&name, "%s" NL_TIME_INDEX_SUFFIX, path) >= 0 ? name : NULL;
}

/*
 * Sets *sum to the checksum of the last bytes before `end`, at most `maximum` bytes. Returns false if the file cannot
 * be read.
 */
static bool sum_before(int fd, uint64_t end, size_t maximum, uint32_t *sum)
{
    char bytes[NL_TIME_INDEX_HEAD];
    size_t size = end < maximum ? (size_t)end : maximum;
    if (!nl_read_all_at(fd, bytes, size, end - size))
        return false;
    *sum = nl_crc32c(0, bytes, size);
    return true;
}

/* ---- writing ---- */

/* Returns the checksum of an entry, which also covers the offset where the piece begins. */
static uint32_t sum_entry(uint32_t sum, uint64_t begin, const char *entry)
{
    char place[8];
    nl_le64_put(place, begin);
    return nl_crc32c(nl_crc32c(sum, place, sizeof place), entry, NL_TIME_INDEX_ENTRY - 4);
}

bool nl_time_index_put_header(int fd, uint64_t end, char header[NL_TIME_INDEX_HEADER], uint32_t *whole)
{
    uint32_t size = end < NL_TIME_INDEX_HEAD ? (uint32_t)end : NL_TIME_INDEX_HEAD, sum;
    if (!sum_before(fd, size, size, &sum))
        return false;
    memcpy(header, magic, sizeof magic);
    nl_le32_put(header + 4, size);
    nl_le32_put(header + 8, sum);
    nl_le32_put(header + 12, nl_crc32c(0, header, 12));
    *whole = nl_crc32c(0, header, NL_TIME_INDEX_HEADER);
    return true;
}

bool nl_time_index_put_entry(int fd, uint32_t sum, uint64_t begin, nl_time_piece *piece,
                             char entry[NL_TIME_INDEX_ENTRY])
{
    if (!sum_before(fd, piece->end, NL_TIME_INDEX_TAIL, &piece->tail))
        return false;
    nl_le64_put(entry, piece->end);
    nl_le64_put(entry + 8, (uint64_t)piece->min_ns);
    nl_le64_put(entry + 16, (uint64_t)piece->max_ns);
    nl_le64_put(entry + 24, piece->records);
    nl_le32_put(entry + 32, piece->tail);
    nl_le32_put(entry + 36, sum_entry(sum, begin, entry));
    return true;
}

/* ---- reading ---- */

static bool parse_entry(const char *entry, uint32_t sum, uint64_t begin, nl_time_piece *piece)
{
    *piece = (nl_time_piece){.end = nl_le64_get(entry),
                             .min_ns = (int64_t)nl_le64_get(entry + 8),
                             .max_ns = (int64_t)nl_le64_get(entry + 16),
                             .records = nl_le64_get(entry + 24),
                             .tail = nl_le32_get(entry + 32)};
    return nl_le32_get(entry + 36) == sum_entry(sum, begin, entry);
}

/* Returns whether the header is valid and belongs to the file. */
static bool is_of(const char *header, int fd)
{
    uint32_t size = nl_le32_get(header + 4), sum;
    return memcmp(header, magic, sizeof magic) == 0 && nl_le32_get(header + 12) == nl_crc32c(0, header, 12) &&
           size <= NL_TIME_INDEX_HEAD && sum_before(fd, size, size, &sum) && sum == nl_le32_get(header + 8);
}

/*
 * Reads the entries before the first invalid entry. Each valid piece is in the file and ends after the previous piece.
 */
static void time_index_read_entries(nl_time_index *index, const char *data, size_t size, uint64_t file_size)
{
    size_t maximum = size / NL_TIME_INDEX_ENTRY;
    index->pieces = calloc(maximum > 0 ? maximum : 1, sizeof *index->pieces);
    for (; index->pieces != NULL && index->count < maximum; index->count++) {
        nl_time_piece *piece = &index->pieces[index->count];
        uint64_t begin = nl_time_index_start(index, index->count);
        if (!parse_entry(data + index->count * NL_TIME_INDEX_ENTRY, index->sum, begin, piece) ||
            piece->end > file_size || piece->end <= begin)
            break;
    }
    index->surplus = index->count * NL_TIME_INDEX_ENTRY < size;
}

static bool time_index_read_all(int fd, int index_fd, nl_time_index *index)
{
    struct stat file, status;
    if (fstat(fd, &file) != 0 || fstat(index_fd, &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_size < NL_TIME_INDEX_HEADER || status.st_size > LARGEST)
        return false;
    size_t size = (size_t)status.st_size;
    char *data = malloc(size);
    bool good = data != NULL && nl_read_all_at(index_fd, data, size, 0) && is_of(data, fd);
    index->sum = good ? nl_crc32c(0, data, NL_TIME_INDEX_HEADER) : 0;
    if (good)
        time_index_read_entries(index, data + NL_TIME_INDEX_HEADER, size - NL_TIME_INDEX_HEADER,
                                (uint64_t)file.st_size);
    free(data);
    return good;
}

nl_time_index_outcome nl_time_index_read(const char *path, int fd, nl_time_index *index)
{
    *index = (nl_time_index){0};
    char *name = nl_time_index_name(path);
    int index_fd = name != NULL ? open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
    free(name);
    if (index_fd < 0)
        return NL_TIME_INDEX_NONE;
    struct stat status;
    bool begun = fstat(index_fd, &status) != 0 ||
                 status.st_size > 0; /* false if the writer was killed before it wrote the header */
    bool good = begun && time_index_read_all(fd, index_fd, index);
    close(index_fd);
    if (!begun)
        return NL_TIME_INDEX_NONE;
    return good ? NL_TIME_INDEX_READ : NL_TIME_INDEX_OTHER;
}

void nl_time_index_free(nl_time_index *index)
{
    free(index->pieces);
    *index = (nl_time_index){0};
}

bool nl_time_index_holds(const nl_time_index *index, int fd, size_t i)
{
    uint32_t sum;
    return i == 0 ||
           (sum_before(fd, index->pieces[i - 1].end, NL_TIME_INDEX_TAIL, &sum) && sum == index->pieces[i - 1].tail);
}

void nl_time_piece_add(nl_time_piece *piece, const nl_time_piece *what)
{
    piece->min_ns = what->min_ns < piece->min_ns ? what->min_ns : piece->min_ns;
    piece->max_ns = what->max_ns > piece->max_ns ? what->max_ns : piece->max_ns;
    bool known = piece->records != UINT64_MAX && what->records != UINT64_MAX;
    piece->records = known ? piece->records + what->records : UINT64_MAX;
}

static bool is_later(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

bool nl_time_index_is_outdated(const nl_time_index *index, const char *path, int fd)
{
    struct stat file, other;
    char *name = nl_time_index_name(path);
    bool outdated = name != NULL && fstat(fd, &file) == 0 && stat(name, &other) == 0 &&
                    (uint64_t)file.st_size == nl_time_index_start(index, index->count) &&
                    is_later(file.st_mtim, other.st_mtim);
    free(name);
    return outdated;
}
