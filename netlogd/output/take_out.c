#include "config.h"

#include "take_out.h"

#include "base/memory.h"
#include "program/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void regions_add(regions *r, uint64_t from, uint64_t to, bool line)
{
    struct region *latest = r->count > 0 ? &r->places[r->count - 1] : NULL;
    if (latest != NULL && from < latest->to) {
        latest->from = from < latest->from ? from : latest->from;
        latest->to = to > latest->to ? to : latest->to;
        return;
    }
    NL_ARRAY_GROW(r->places, r->count, r->capacity);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): while places is NULL, count and capacity are 0 */
    r->places[r->count++] = (struct region){from, to, line};
}

bool regions_reach(const regions *r, uint64_t at)
{
    return r->count > 0 && r->places[r->count - 1].to >= at;
}

uint64_t regions_bytes(const regions *r)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < r->count; i++)
        bytes += r->places[i].to - r->places[i].from;
    return bytes;
}

void regions_free(regions *r)
{
    free(r->places);
    *r = (regions){0};
}

/* Copies the bytes [from, to) of `in` to `out`. Returns false on failure. */
static bool take_out_copy(FILE *in, FILE *out, uint64_t from, uint64_t to)
{
    static char piece[64 << 10];
    if (fseeko(in, (off_t)from, SEEK_SET) != 0)
        return false;
    while (from < to) {
        size_t length = to - from < sizeof piece ? (size_t)(to - from) : sizeof piece;
        size_t got = fread(piece, 1, length, in);
        if (got == 0 || fwrite(piece, 1, got, out) != got)
            return false;
        from += got;
    }
    return true;
}

/* Returns the end of the region, including its newline. */
static uint64_t end_of(FILE *in, const struct region *place)
{
    uint64_t to = place->to;
    if (!place->line || fseeko(in, (off_t)to, SEEK_SET) != 0)
        return to;
    int byte = fgetc(in);
    while (byte == '\r') {
        to++;
        byte = fgetc(in);
    }
    return byte == '\n' ? to + 1 : place->to;
}

static bool split(FILE *in, FILE *good, FILE *damaged, const regions *r, uint64_t size)
{
    uint64_t at = 0;
    for (size_t i = 0; i < r->count; i++) {
        uint64_t to = end_of(in, &r->places[i]);
        to = to < size ? to : size;
        if (!take_out_copy(in, good, at, r->places[i].from) || !take_out_copy(in, damaged, r->places[i].from, to))
            return false;
        at = to;
    }
    return take_out_copy(in, good, at, size) && fflush(good) == 0 && fsync(fileno(good)) == 0 && fflush(damaged) == 0 &&
           fsync(fileno(damaged)) == 0;
}

bool make_alike(int fd, const struct stat *as)
{
    bool given = fchown(fd, as->st_uid, as->st_gid) == 0 || errno == EPERM;
    return given && fchmod(fd, as->st_mode & 07777) == 0;
}

bool take_out(const char *path, const regions *r)
{
    char *beside = program_format("%s.repaired", path), *aside = program_format("%s.damaged", path);
    struct stat status = {0};
    /* An interrupted repair may have left the file. The lock excludes another running repair. */
    if (unlink(beside) != 0 && errno != ENOENT)
        program_error("remove %s: %s", beside, strerror(errno));
    FILE *in = fopen(path, "re"), *good = fopen(beside, "wxe"), *damaged = fopen(aside, "ae");
    bool made = good != NULL;
    bool done = in != NULL && good != NULL && damaged != NULL && fstat(fileno(in), &status) == 0 &&
                make_alike(fileno(good), &status) && split(in, good, damaged, r, (uint64_t)status.st_size) &&
                rename(beside, path) == 0;
    if (!done)
        program_error("repair %s: %s", path, strerror(errno));
    if (!done && made)
        unlink(beside);
    for (int i = 0; i < 3; i++) {
        FILE *file = i == 0 ? in : i == 1 ? good : damaged;
        if (file != NULL)
            fclose(file);
    }
    free(beside);
    free(aside);
    return done;
}
