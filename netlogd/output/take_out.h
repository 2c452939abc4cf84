/* Removes damaged regions from a file. This module has no state. */
#ifndef NETLOGD_OUTPUT_TAKE_OUT_H
#define NETLOGD_OUTPUT_TAKE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Regions of a file, sorted and without overlaps. {0} is empty. */
typedef struct regions {
    struct region {
        uint64_t from, to; /* bytes [from, to) */
        bool line;         /* the newline after the region, if any, belongs to the region */
    } * places;
    size_t count, capacity;
} regions;

/*
 * Adds a region. Only the latest region may extend beyond `from`. Joins the region with the latest region if they
 * overlap.
 */
void regions_add(regions *r, uint64_t from, uint64_t to, bool line);

/* Returns whether the latest region extends to `at`. */
bool regions_reach(const regions *r, uint64_t at);

uint64_t regions_bytes(const regions *r);
void regions_free(regions *r);

/*
 * Moves the regions to the end of PATH.damaged. Writes the rest to another file, syncs it and renames it to path, so
 * that a crash leaves the old or the new file. On failure, reports the error and returns false.
 */
bool take_out(const char *path, const regions *r);

/*
 * Gives a new file the owner and permissions of another file, because root may repair files of netlogd's user. (A user
 * who may not change the owner already owns the file.) Returns false and sets errno on failure.
 */
bool make_alike(int fd, const struct stat *as);

#endif
